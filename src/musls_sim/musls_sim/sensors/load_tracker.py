"""Motion of the load from motion capture alone: it carries no IMU.

Between samples the load is taken to move on at constant velocity and to turn at a constant rate. A
sample that arrives late is compared with what was predicted for the time when it was taken, and the
difference corrects the predictions from then on, by the stationary gains of a Kalman filter whose
process noise is an acceleration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.compiled_rotations import multiply, turned
from musls_sim.sensors.stationary_filter import stationary_gains

Array = NDArray[np.float64]

ACCELERATION_M_S2 = 3.0
"""Standard deviation of the load's acceleration between samples: swinging and gusts."""

ANGULAR_ACCELERATION_RAD_S2 = 6.0


NO_LOAD = {
    "gains": np.zeros(0),
    "history": np.zeros((0, 13)),
    "samples": np.zeros((0, 8)),
    "load_noise": np.zeros((0, 6)),
}
"""Tables of `track` where nobody follows the load."""


class LoadTracker:
    """Prepares what `track` needs to follow the load's pose; see the module's text.

    Attributes:
        seen: Whether motion capture sees the load.
        noise: Standard normal numbers of a block of periods, (block, 6).
    """

    noise: Array

    def __init__(
        self,
        start: Array,
        *,
        period_s: float,
        rate_hz: float,
        latency_s: float,
        position_noise_m: float,
        attitude_noise_rad: float,
        generator: np.random.Generator,
    ) -> None:
        """Start at the true motion.

        Args:
            start: Row of the load in `PlantState.motion`, (16,).
            period_s: Control period.
            rate_hz: Samples per second.
            latency_s: From taking a sample until it is there.
            position_noise_m: Standard deviation per axis.
            attitude_noise_rad: Standard deviation per axis.
            generator: Source of the noise.
        """
        interval = max(1.0 / rate_hz, period_s)
        self._gains = np.array(
            [
                period_s,
                position_noise_m,
                attitude_noise_rad,
                *_gains(interval, ACCELERATION_M_S2, max(position_noise_m, 1e-5)),
                *_gains(interval, ANGULAR_ACCELERATION_RAD_S2, max(attitude_noise_rad, 1e-5)),
            ]
        )
        self.seen = True
        self._start, self._ring = start[:13], round(latency_s / period_s) + 1
        self._generator = generator

    def tables(self, block: int) -> dict[str, Array]:
        """Tables of `track`, whose noise lasts for a block of periods.

        History and samples are rings over the last periods: predicted motion, and samples on their
        way (valid in column 7).
        """
        return {
            "gains": self._gains,
            "history": np.tile(self._start, (self._ring, 1)),
            "samples": np.zeros((self._ring, 8)),
            "load_noise": np.zeros((block, 6)),
        }

    def draw(self) -> None:
        """Draw the noise of the next block of periods."""
        self._generator.standard_normal(out=self.noise)


def _gains(interval_s: float, acceleration: float, noise: float) -> tuple[float, float]:
    """Stationary Kalman gains on position [1] and rate [1/s] of a constant-rate model."""
    transition = np.array([[1.0, interval_s], [0.0, 1.0]])
    process = (acceleration * interval_s) ** 2 * np.array(
        [[interval_s**2 / 4.0, interval_s / 2.0], [interval_s / 2.0, 1.0]]
    ) + 1e-18 * np.eye(2)
    on_value, on_rate = stationary_gains(transition, process, noise**2)
    return float(on_value), float(on_rate)


@compiled()
def _turn(q, x, y, z):
    """Turn a quaternion by a rotation vector in the body frame, in place."""
    q[0], q[1], q[2], q[3] = turned(q[0], q[1], q[2], q[3], x, y, z)


@compiled()
def track(truth, noise, sampled, tick, gains, history, samples, estimate):
    """Predict, take a sample if one is due, correct by the one that arrives."""
    ring = history.shape[0]
    dt = gains[0]
    now, before, then = tick % ring, (tick - 1) % ring, (tick + 1) % ring
    h = history[now]
    previous = estimate if tick == 0 else history[before]
    for k in range(3):
        h[k] = previous[k] + dt * previous[3 + k]
        h[3 + k] = previous[3 + k]
        h[10 + k] = previous[10 + k]
    for k in range(4):
        h[6 + k] = previous[6 + k]
    _turn(h[6:10], dt * h[10], dt * h[11], dt * h[12])
    z = samples[now]
    z[7] = 0.0
    if sampled:
        z[7] = 1.0
        for k in range(3):
            z[k] = truth[k] + gains[1] * noise[k]
        for k in range(4):
            z[3 + k] = truth[6 + k]
        _turn(z[3:7], gains[2] * noise[3], gains[2] * noise[4], gains[2] * noise[5])
    if samples[then, 7] > 0.0:
        _correct(history, then, samples[then], gains)
        samples[then, 7] = 0.0
    for k in range(13):
        if k >= 3 and k < 6:
            estimate[10 + k] = (h[k] - estimate[k]) / dt  # column 13 on: acceleration
        estimate[k] = h[k]


@compiled()
def _correct(history, then, z, gains):
    """Correct the predictions from a sample's time on by the error at that time."""
    ring, dt = history.shape[0], gains[0]
    old = history[then]
    ex, ey, ez = z[0] - old[0], z[1] - old[1], z[2] - old[2]
    w, x, y, z_ = multiply(old[6], -old[7], -old[8], -old[9], z[3], z[4], z[5], z[6])
    twice = 2.0 if w >= 0.0 else -2.0
    rx, ry, rz = twice * x, twice * y, twice * z_
    for d in range(ring):
        h = history[(then + d) % ring]
        shift = gains[3] + gains[4] * d * dt
        h[0] += shift * ex
        h[1] += shift * ey
        h[2] += shift * ez
        h[3] += gains[4] * ex
        h[4] += gains[4] * ey
        h[5] += gains[4] * ez
        angle = gains[5] + gains[6] * d * dt
        _turn(h[6:10], angle * rx, angle * ry, angle * rz)
        h[10] += gains[6] * rx
        h[11] += gains[6] * ry
        h[12] += gains[6] * rz
