"""Gyro low pass and angular acceleration (PX4 v1.15 source, sensors/vehicle_angular_velocity)."""

from __future__ import annotations

import math

from musls_description.compiled import compiled


def butterworth_coefficients(cutoff_hz: float, sample_rate_hz: float) -> tuple[float, float, float]:
    """Return b0, a1, a2 of the second-order Butterworth low pass (b1 = 2 b0, b2 = b0)."""
    k = math.tan(math.pi * cutoff_hz / sample_rate_hz)
    damping = 2.0 * math.cos(math.pi / 4.0) * k
    c = 1.0 + damping + k * k
    return k * k / c, 2.0 * (k * k - 1.0) / c, (1.0 - damping + k * k) / c


def first_order_alpha(cutoff_hz: float, dt_s: float) -> float:
    """Return the weight of the new sample in a first-order low pass; 1 when switched off."""
    if cutoff_hz <= 0.0:
        return 1.0
    return dt_s / (dt_s + 1.0 / (2.0 * math.pi * cutoff_hz))


@compiled()
def filter_gyro(s, omega_raw, p):
    """Low-pass the body rate and differentiate the result, one sample.

    The first sample sets the filter to its steady state, so that a drone that starts while
    rotating sees no step.
    """
    if s.started == 0:
        s.started = 1
        for i in range(3):
            steady = omega_raw[i] / (1.0 + p.gyro_a1 + p.gyro_a2)
            s.delay_1[i] = steady
            s.delay_2[i] = steady
            s.omega[i] = omega_raw[i]
            s.omega_derivative[i] = 0.0
    for i in range(3):
        delay_0 = omega_raw[i] - p.gyro_a1 * s.delay_1[i] - p.gyro_a2 * s.delay_2[i]
        filtered = p.gyro_b0 * (delay_0 + 2.0 * s.delay_1[i] + s.delay_2[i])
        s.delay_2[i] = s.delay_1[i]
        s.delay_1[i] = delay_0
        raw_derivative = (filtered - s.omega[i]) / p.dt_s
        s.omega_derivative[i] += p.gyro_derivative_alpha * (raw_derivative - s.omega_derivative[i])
        s.omega[i] = filtered
