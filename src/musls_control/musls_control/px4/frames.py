"""ENU/FLU (this project) to NED/FRD (PX4) and back: the only place where both exist.

World: NED (x, y, z) = ENU (y, x, -z). Body: FRD (x, y, z) = FLU (x, -y, -z). Each map is its own
inverse, so there is one function for both directions. NaN ("not given" in PX4's set-points) stays
NaN. The functions for arrays allow any leading shape and return float64; those ending in
`_swapped` are the same maps for compiled code, tuples of numbers out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from musls_description.numerics import rotations
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import wrapped

_HALF_SQRT2 = math.sqrt(0.5)


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
    return rotations.wrapped(0.5 * np.pi - np.asarray(yaw_rad, np.float64))


def orientation_enu_ned(quaternion: ArrayLike) -> Array:
    """Swap orientations [w, x, y, z] between FLU-to-ENU and FRD-to-NED, (..., 4).

    The product (ENU to NED) * q * (FRD to FLU), written out.
    """
    w, x, y, z = np.moveaxis(np.asarray(quaternion, np.float64), -1, 0)
    return _HALF_SQRT2 * np.stack([w + z, x + y, x - y, w - z], axis=-1)


@compiled()
def world_swapped(a):
    """Swap a world vector between ENU and NED."""
    return a[1], a[0], -a[2]


@compiled()
def body_swapped(a):
    """Swap a body vector between FLU and FRD."""
    return a[0], -a[1], -a[2]


@compiled()
def yaw_swapped(yaw_rad):
    """Swap a yaw between ENU and NED; the result is in [-pi, pi)."""
    return wrapped(0.5 * math.pi - yaw_rad)


@compiled()
def orientation_swapped(q):
    """Swap a quaternion between FLU-to-ENU and FRD-to-NED."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return (
        _HALF_SQRT2 * (w + z),
        _HALF_SQRT2 * (x + y),
        _HALF_SQRT2 * (x - y),
        _HALF_SQRT2 * (w - z),
    )
