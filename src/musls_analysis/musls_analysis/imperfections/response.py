"""How a drone in PX4's position loop answers a push that turns with it, in linear approximation.

PX4's horizontal position and velocity loops on a double integrator give, from an acceleration b to
the displacement,

    s / ((1 + Kd) s^3 + Kv s^2 + (Kv Kx + Ki) s + Ki Kx)

with MPC_XY_P = Kx and MPC_XY_VEL_P_ACC, I, D = Kv, Ki, Kd. The zero is the integrator, which takes
up what stands still in the world. A tilt is fixed in the drone: b = R(yaw) b_body. Cables stiffen
this by up to a third; the fit corrects the common factor by flying.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.signal import cont2discrete, lfilter

Array = NDArray[np.float64]


def displacements(
    time_s: Array, yaw_rad: Array, gains: Mapping[str, float], airborne_s: float
) -> Array:
    """Horizontal displacements by an acceleration of 1 m/s2 along the body's x and y axes.

    Args:
        time_s: Evenly spaced times, (T,).
        yaw_rad: Heading of the drone, (T,).
        gains: PX4's parameters by name.
        airborne_s: When it took off; before that nothing moves.

    Returns:
        Along the world's x and y, for each body axis, (2 axes, T, 2) [m per m/s2].
    """
    kx, kv = gains["MPC_XY_P"], gains["MPC_XY_VEL_P_ACC"]
    ki, kd = gains["MPC_XY_VEL_I_ACC"], gains["MPC_XY_VEL_D_ACC"]
    step_s = float(time_s[1] - time_s[0])
    loop = ([1.0, 0.0], [1.0 + kd, kv, kv * kx + ki, ki * kx])
    forward, back, _ = cont2discrete(loop, step_s, "bilinear")
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    pushes = np.array([[c, s], [-s, c]]) * (time_s >= airborne_s)
    found: Array = np.moveaxis(lfilter(np.ravel(forward), back, pushes), 1, 2)
    return found
