"""Rotations as arrays of quaternions [w, x, y, z]."""

from __future__ import annotations

import numpy as np


def relative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rotation from b to a: conj(b) a, elementwise over the rows.

    Args:
        a: Quaternions (..., 4).
        b: Quaternions (..., 4).
    """
    w1, x1, y1, z1 = np.moveaxis(b * np.array([1.0, -1.0, -1.0, -1.0]), -1, 0)
    w2, x2, y2, z2 = np.moveaxis(a, -1, 0)
    return np.stack(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ],
        axis=-1,
    )


def roll_pitch_yaw(q: np.ndarray) -> np.ndarray:
    """Angles of the sequence yaw (z), pitch (y), roll (x); not unwrapped.

    Args:
        q: Unit quaternions body to world (..., 4).

    Returns:
        Roll, pitch, yaw [rad] (..., 3).
    """
    w, x, y, z = np.moveaxis(q, -1, 0)
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return np.stack([roll, pitch, yaw], axis=-1)


def wrapped(angle_rad: np.ndarray) -> np.ndarray:
    """Angles brought to [-pi, pi)."""
    return (angle_rad + np.pi) % (2.0 * np.pi) - np.pi
