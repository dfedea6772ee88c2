"""Motion along closed curves: a phase that starts and stops smoothly, and the chain rule.

The ramp is that of RotorTM's circle: with s = t / ramp_s the phase is
rate ramp_s (2.5 s^4 - 3 s^5 + s^6), its rate goes from 0 to `rate` as a smooth step, and the phase
has three continuous derivatives.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial

from musls_control.trajectories.base import ORDERS, Array

_RAMP = Polynomial([0.0, 0.0, 0.0, 0.0, 2.5, -3.0, 1.0])


def ramped_phase(time_s: Array, rate_rad_s: float, ramp_s: float, cruise_s: float) -> Array:
    """Phase that speeds up, goes on evenly and slows down, with four derivatives.

    Args:
        time_s: Times in [0, 2 ramp_s + cruise_s], (m,).
        rate_rad_s: Rate between the ramps.
        ramp_s: Time of each ramp; the phase advances by rate ramp_s / 2 in it.
        cruise_s: Time between the ramps.

    Returns:
        (m, 5).
    """
    found = np.zeros((len(time_s), ORDERS))
    end_s = 2.0 * ramp_s + cruise_s
    whole = rate_rad_s * (ramp_s + cruise_s)
    up, down = time_s < ramp_s, time_s > ramp_s + cruise_s
    found[:, 0] = rate_rad_s * (time_s - 0.5 * ramp_s)
    found[:, 1] = rate_rad_s
    for order in range(ORDERS):
        factor = rate_rad_s * ramp_s ** (1 - order)
        ramp = _RAMP.deriv(order) if order else _RAMP
        found[up, order] = factor * ramp(time_s[up] / ramp_s)
        # The way down is the way up run backwards from the end.
        backwards = factor * ramp((end_s - time_s[down]) / ramp_s)
        found[down, order] = whole - backwards if order == 0 else (-1.0) ** (order + 1) * backwards
    return found


def wave(phase: Array, amplitude: float, multiple: int, shift_rad: float) -> Array:
    """Sine of a multiple of the phase and its derivatives with respect to the phase.

    Args:
        phase: (m,).
        amplitude: Amplitude.
        multiple: Of the phase.
        shift_rad: Added to it; pi/2 makes a cosine.

    Returns:
        (m, 5).
    """
    quarter = 0.5 * np.pi
    return np.column_stack(
        [
            amplitude * float(multiple) ** j * np.sin(multiple * phase + shift_rad + j * quarter)
            for j in range(ORDERS)
        ]
    )


def along(curve: Array, phase: Array) -> Array:
    """Derivatives with respect to time of a curve run through by a phase (Faa di Bruno).

    Args:
        curve: Derivatives 0 to 4 with respect to the phase, (m, 5).
        phase: Derivatives 0 to 4 of the phase with respect to time, (m, 5).

    Returns:
        (m, 5).
    """
    f0, f1, f2, f3, f4 = curve.T
    _, p1, p2, p3, p4 = phase.T
    return np.column_stack(
        [
            f0,
            f1 * p1,
            f2 * p1**2 + f1 * p2,
            f3 * p1**3 + 3.0 * f2 * p1 * p2 + f1 * p3,
            f4 * p1**4 + 6.0 * f3 * p1**2 * p2 + f2 * (3.0 * p2**2 + 4.0 * p1 * p3) + f1 * p4,
        ]
    )
