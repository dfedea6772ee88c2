"""Conversions between ENU/FLU (this project) and NED/FRD (PX4).

World: NED (x, y, z) = ENU (y, x, -z). Body: FRD (x, y, z) = FLU (x, -y, -z). Both maps are their
own inverse. This is the only place outside the controllers where NED exists.
"""

from __future__ import annotations

import math

from musls_description.compiled import compiled

HALF_SQRT2 = math.sqrt(0.5)


@compiled()
def world_enu_ned(x, y, z):
    """Swap a world vector between ENU and NED."""
    return y, x, -z


@compiled()
def body_flu_frd(x, y, z):
    """Swap a body vector between FLU and FRD."""
    return x, -y, -z


@compiled()
def wrap_pi(angle_rad):
    """Wrap an angle to [-pi, pi); NaN stays NaN."""
    return angle_rad - 2.0 * math.pi * math.floor((angle_rad + math.pi) / (2.0 * math.pi))


@compiled()
def yaw_enu_ned(yaw_rad):
    """Swap a yaw angle between ENU (from east, anti-clockwise) and NED (from north, clockwise)."""
    return wrap_pi(0.5 * math.pi - yaw_rad)


@compiled()
def orientation_enu_ned(w, x, y, z):
    """Swap a quaternion [w, x, y, z] between FLU-to-ENU and FRD-to-NED.

    The product (ENU to NED) * q * (FRD to FLU), written out. The map is its own inverse.
    """
    return (
        HALF_SQRT2 * (w + z),
        HALF_SQRT2 * (x + y),
        HALF_SQRT2 * (x - y),
        HALF_SQRT2 * (w - z),
    )
