"""ENU/FLU (this project) to NED/FRD (PX4) and back, for whatever talks to PX4 in NumPy.

World: NED (x, y, z) = ENU (y, x, -z). Body: FRD (x, y, z) = FLU (x, -y, -z). Each map is its own
inverse, so there is one function for both directions. Any leading shape is allowed, the result is
float64, and NaN ("not given" in PX4's set-points) stays NaN.
The compiled controllers have the same maps for scalars in `px4_cascade.frames`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_HALF_SQRT2 = np.sqrt(0.5)


def world_enu_ned(vector: ArrayLike) -> Array:
    """Swap world vectors between ENU and NED, (..., 3)."""
    return np.asarray(vector, np.float64)[..., [1, 0, 2]] * [1.0, 1.0, -1.0]


def body_flu_frd(vector: ArrayLike) -> Array:
    """Swap body vectors (specific force, body rates) between FLU and FRD, (..., 3)."""
    return np.asarray(vector, np.float64) * [1.0, -1.0, -1.0]


def yaw_enu_ned(yaw_rad: ArrayLike) -> Array:
    """Swap yaws between ENU (from east, anti-clockwise) and NED (from north, clockwise), (...).

    The result is in [-pi, pi).
    """
    yaw = 0.5 * np.pi - np.asarray(yaw_rad, np.float64)
    return yaw - 2.0 * np.pi * np.floor((yaw + np.pi) / (2.0 * np.pi))


def orientation_enu_ned(quaternion: ArrayLike) -> Array:
    """Swap orientations [w, x, y, z] between FLU-to-ENU and FRD-to-NED, (..., 4).

    The product (ENU to NED) * q * (FRD to FLU), written out.
    """
    w, x, y, z = np.moveaxis(np.asarray(quaternion, np.float64), -1, 0)
    return _HALF_SQRT2 * np.stack([w + z, x + y, x - y, w - z], axis=-1)
