"""What nodes read from stamped messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Quaternion
from rclpy.qos import QoSProfile, ReliabilityPolicy
from transforms3d.euler import euler2quat, quat2euler

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Hears best-effort publishers, too, as those of motion capture are."""


def place_and_yaw(message: PoseStamped) -> np.ndarray:
    """x, y, z, yaw of a pose, (4,)."""
    p = message.pose.position
    return np.array([p.x, p.y, p.z, yaw_of(message.pose.orientation)])


def yaw_of(q: Quaternion) -> float:
    """Yaw of an orientation: rotation about z after pitch and roll, REP-103 [rad]."""
    return float(quat2euler([q.w, q.x, q.y, q.z], "sxyz")[2])


def turn_to(q: Quaternion, yaw_rad: float) -> None:
    """Fill an orientation that is level with a yaw."""
    q.w, q.x, q.y, q.z = (float(part) for part in euler2quat(0.0, 0.0, yaw_rad, "sxyz"))


def time_of(message: Any) -> float:
    """Stamp of a message [s]."""
    return message.header.stamp.sec + message.header.stamp.nanosec * 1e-9
