"""What nodes read from stamped messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Hears best-effort publishers, too, as those of motion capture are."""


def place_and_yaw(message: PoseStamped) -> np.ndarray:
    """x, y, z, yaw of a pose, (4,)."""
    p, q = message.pose.position, message.pose.orientation
    yaw = np.arctan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y**2 + q.z**2))
    return np.array([p.x, p.y, p.z, yaw])


def time_of(message: Any) -> float:
    """Stamp of a message [s]."""
    return message.header.stamp.sec + message.header.stamp.nanosec * 1e-9
