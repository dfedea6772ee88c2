"""State estimation of the drones: ground truth, or motion capture fused with the IMU.

The second stands for what PX4 does with motion capture: between the camera's samples the IMU is
integrated; a sample that arrives late is compared with the state predicted for the time when it
was taken, and the difference corrects the present state (EKF2's delayed fusion with an output
predictor) by the stationary gains of a Kalman filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from musls_control.estimate import Estimate
from musls_description.compiled import compiled
from musls_description.compiled_memory import block_of, borrowed, pack, row_of, table_of
from musls_description.schema import Fraction, NonNegative, spec
from musls_description.vectors import (
    conjugate,
    cross,
    from_rotation_vector,
    increase,
    put,
    quaternion_product,
    rotate_back_by,
    rotate_by,
    turned,
)
from musls_sim.plants.interface import PlantState
from musls_sim.scenario.imperfections import Imperfections

# ---------- Stationary Kalman gains of a filter with one measured quantity

MOST_DOUBLINGS = 60


def stationary_gains(transition: Array, process: Array, variance: float) -> Array:
    """Gains with which a stationary Kalman filter corrects its state by the first of its parts.

    Solves P = F P F' - F P h (h' P h + r)^-1 h' P F' + Q by doubling the number of samples seen
    in each step (Anderson 1978, "Second-order convergent algorithms for the steady-state Riccati
    equation").

    Args:
        transition: F from sample to sample, (n, n).
        process: Covariance Q of the noise that joins the state between samples, (n, n).
        variance: r > 0 of the measurement of the first part of the state.

    Returns:
        P h / (h' P h + r), (n,).
    """
    unit = np.eye(len(transition))
    a, covariance = transition.T, process
    seen = np.zeros_like(process)
    seen[0, 0] = 1.0 / variance
    for _ in range(MOST_DOUBLINGS):
        share = np.linalg.solve(unit + seen @ covariance, np.hstack([a, seen]))
        step = a.T @ covariance @ share[:, : len(unit)]
        seen = seen + a @ share[:, len(unit) :] @ a.T
        a, covariance = a @ share[:, : len(unit)], covariance + step
        if np.abs(step).max() <= 1e-15 * np.abs(covariance).max():
            break
    gains: Array = covariance[:, 0] / (covariance[0, 0] + variance)
    return gains


# ---------- Motion of the load from motion capture alone: it carries no IMU

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
                *_gains_load_tracker(interval, ACCELERATION_M_S2, max(position_noise_m, 1e-5)),
                *_gains_load_tracker(
                    interval, ANGULAR_ACCELERATION_RAD_S2, max(attitude_noise_rad, 1e-5)
                ),
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


def _gains_load_tracker(
    interval_s: float, acceleration: float, noise: float
) -> tuple[float, float]:
    """Stationary Kalman gains on position [1] and rate [1/s] of a constant-rate model."""
    transition = np.array([[1.0, interval_s], [0.0, 1.0]])
    process = (acceleration * interval_s) ** 2 * np.array(
        [[interval_s**2 / 4.0, interval_s / 2.0], [interval_s / 2.0, 1.0]]
    ) + 1e-18 * np.eye(2)
    on_value, on_rate = stationary_gains(transition, process, noise**2)
    return float(on_value), float(on_rate)


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
        _correct_load_tracker(history, then, samples[then], gains)
        samples[then, 7] = 0.0
    for k in range(13):
        if k >= 3 and k < 6:
            estimate[10 + k] = (h[k] - estimate[k]) / dt  # column 13 on: acceleration
        estimate[k] = h[k]


@compiled()
def _correct_load_tracker(history, then, z, gains):
    """Correct the predictions from a sample's time on by the error at that time."""
    ring, dt = history.shape[0], gains[0]
    old = history[then]
    ex, ey, ez = z[0] - old[0], z[1] - old[1], z[2] - old[2]
    w, x, y, z_ = quaternion_product(conjugate(old[6:10]), z[3:7])
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


Array = NDArray[np.float64]


@spec
class TruthSpec:
    """Ground truth: the drones know their state exactly, or with noise as in RotorTM (eq. 75, 76).

    Attributes:
        kind: "truth".
        noise: Standard deviation of white noise on all components of load and drones, fresh each
            control period: positions [m], velocities [m/s], attitudes [rad], body rates [rad/s].
    """

    kind: Literal["truth"] = "truth"
    noise: NonNegative = 0.0


@spec
class MotionCaptureSpec:
    """Motion capture and IMU, noise white and Gaussian (standard deviations).

    Attributes:
        kind: "mocap".
        rate_hz: Samples per second.
        latency_s: From taking a sample until the drone has it.
        position_noise_m: Per axis.
        attitude_noise_rad: Per axis.
        dropout_fraction: Share of samples that get lost, at random.
        gyro_noise_rad_s: Per axis and 4 ms sample.
        accelerometer_noise_m_s2: Per axis and 4 ms sample.
    """

    kind: Literal["mocap"] = "mocap"
    rate_hz: Annotated[float, Field(gt=0.0, le=250.0)] = 100.0
    latency_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.02
    position_noise_m: NonNegative = 0.0005
    attitude_noise_rad: NonNegative = 0.002
    dropout_fraction: Fraction = 0.0
    gyro_noise_rad_s: NonNegative = 0.002
    accelerometer_noise_m_s2: NonNegative = 0.02


SAMPLE, VALID, _RING_COLUMNS = 10, 17, 18
"""Columns of the ring of `MotionCapture`: predicted position, velocity and attitude, sampled
position and attitude, whether there is a sample."""

AnyEstimation = Annotated[TruthSpec | MotionCaptureSpec, Field(discriminator="kind")]


class Estimator(Protocol):
    """Turns the plant's state into what the autopilots are told."""

    estimate: Estimate

    def step(self, state: PlantState) -> None:
        """Update `estimate`; called once per control period."""


class Truth:
    """Ground truth."""

    def __init__(
        self,
        state: PlantState,
        noise: float = 0.0,
        generator: np.random.Generator | None = None,
    ) -> None:
        """Start with the plant's state.

        Args:
            state: The plant's state at time 0.
            noise: Standard deviation of all components, see `TruthSpec`.
            generator: Source of the noise.
        """
        self.estimate = Estimate.zeros(len(state.position_enu_m) - 1, len(state.tension_n))
        self._state, self._tension_n = state, state.tension_n
        self._noise, self._generator = noise, generator
        self.step(state)

    def step(self, state: PlantState) -> None:
        """Copy the state, with noise if there is to be some."""
        if state is not self._state:
            self._state, self._tension_n = state, state.tension_n
        self.estimate.data[:] = state.motion
        self.estimate.tension_n[:] = self._tension_n
        if self._noise > 0.0 and self._generator is not None:
            self._add_noise(self._noise * self._generator.standard_normal((len(state.motion), 12)))

    def _add_noise(self, noise: Array) -> None:
        """Add noise of position, velocity, attitude and body rate, (bodies, 12)."""
        data = self.estimate.data
        data[:, 0:6] += noise[:, 0:6]
        data[:, 10:13] += noise[:, 9:12]
        angle = np.linalg.norm(noise[:, 6:9], axis=1)[:, None]
        axis = noise[:, 6:9] * (0.5 * np.sinc(angle / (2.0 * np.pi)))
        w, v = data[:, 6:7].copy(), data[:, 7:10].copy()
        c = np.cos(0.5 * angle)
        data[:, 6:7] = w * c - np.sum(v * axis, axis=1)[:, None]
        data[:, 7:10] = w * axis + c * v + np.cross(v, axis)


class MotionCapture:
    """Motion capture fused with the IMU, see the module's text."""

    _BLOCK = 500

    def __init__(
        self,
        spec: MotionCaptureSpec,
        state: PlantState,
        period_s: float,
        gravity_m_s2: float,
        generator: np.random.Generator,
        *,
        with_load: bool = False,
    ) -> None:
        """Start at the plant's state.

        Args:
            spec: Rates and noise.
            state: The plant's state at time 0.
            period_s: Control period, time between calls of `step`.
            gravity_m_s2: Gravity.
            generator: Source of all noise.
            with_load: Estimate the load's motion, too; else its row keeps the start.
        """
        n = len(state.position_enu_m) - 1
        self.estimate = Estimate.zeros(n, len(state.tension_n))
        self.estimate.data[:] = state.motion
        self._generator = generator
        self._delay = round(spec.latency_s / period_s)
        constants = [
            period_s,
            gravity_m_s2,
            spec.gyro_noise_rad_s,
            spec.accelerometer_noise_m_s2,
            spec.position_noise_m,
            spec.attitude_noise_rad,
            *_gains(spec, period_s),
            spec.dropout_fraction,
            spec.rate_hz * period_s,  # samples per tick
        ]
        load = _load_tracker(spec, state, period_s, generator) if with_load else None
        self._memory, self._layout, views = pack(
            {
                "constants": np.array(constants),
                # Twelve numbers of noise, then whether a sample gets lost, a number in [0, 1].
                "noise": np.ones((self._BLOCK, n, 13)),
                # Over the last ticks: predicted states, then samples on their way.
                "ring": np.zeros((self._delay + 1, n, _RING_COLUMNS)),
                **(NO_LOAD if load is None else load.tables(self._BLOCK)),
            }
        )
        self._noise = views["noise"]
        self._tick = 0
        self._block = self._BLOCK
        self._blind, self._any_blind = np.zeros(n, bool), False
        self._lossy = spec.dropout_fraction > 0.0
        self._load = load
        if load is not None:
            load.noise = views["load_noise"]

    def step(self, state: PlantState) -> None:
        """Integrate the IMU, take a sample if one is due, fuse the one that arrives."""
        if self._block == self._BLOCK:
            block, n = self._noise.shape[:2]
            self._noise[:, :, :12] = self._generator.standard_normal((block, n, 12))
            if self._lossy:
                self._noise[:, :, 12] = self._generator.random((block, n))
            if self._load is not None:
                self._load.draw()
            self._block = 0
        if self._any_blind:
            chances = self._noise[self._block, :, 12]
            kept = chances.copy()
            chances[self._blind] = -1.0  # every sample gets lost
            self._step(state)
            chances[:] = kept  # the same numbers may serve again
        else:
            self._step(state)

    def see(self, drones: Sequence[int], *, seen: bool, load: bool) -> None:
        """Let motion capture see drones again, or not any more.

        Args:
            drones: Rows of the drones, from 0.
            seen: Whether it sees them from now on.
            load: Whether this goes for the load, too.
        """
        self._blind[list(drones)] = not seen
        self._any_blind = bool(self._blind.any())
        if load and self._load is not None:
            self._load.seen = seen

    def _step(self, state: PlantState) -> None:
        estimate, load = self.estimate, self._load
        _step_all(
            state.motion,
            state.cable_force_n,
            estimate.data,
            estimate.tension_n,
            self._memory,
            self._layout,
            self._tick,
            self._block,
            load is None or load.seen,
        )
        self._tick += 1
        self._block += 1


def _load_tracker(
    spec: MotionCaptureSpec,
    state: PlantState,
    period_s: float,
    generator: np.random.Generator,
) -> LoadTracker:
    """Tracker with noise of its own: the drones' estimates are the same with and without it."""
    return LoadTracker(
        state.motion[0],
        period_s=period_s,
        rate_hz=spec.rate_hz,
        latency_s=spec.latency_s,
        position_noise_m=spec.position_noise_m,
        attitude_noise_rad=spec.attitude_noise_rad,
        generator=generator.spawn(1)[0],
    )


def _gains(spec: MotionCaptureSpec, period_s: float) -> tuple[float, float, float]:
    """Stationary Kalman gains of a sample on position, velocity and attitude.

    The process noise is the IMU's, with a floor: a filter that trusts a perfect IMU completely
    would never forget the errors of its start.
    """
    interval = max(1.0 / spec.rate_hz, period_s)
    accelerometer = max(spec.accelerometer_noise_m_s2, 0.02) * np.sqrt(period_s)
    gyro = max(spec.gyro_noise_rad_s, 0.002) * np.sqrt(period_s)
    position = max(spec.position_noise_m, 1e-4)
    attitude = max(spec.attitude_noise_rad, 1e-4)

    transition = np.array([[1.0, interval], [0.0, 1.0]])
    # Tilt errors leak gravity into the velocity: they dominate the accelerometer's own noise.
    velocity_noise = (accelerometer**2 + (9.8 * 0.01) ** 2 * period_s) * interval
    process = velocity_noise * np.array(
        [[interval**2 / 3.0, interval / 2.0], [interval / 2.0, 1.0]]
    )
    on_position, on_velocity = stationary_gains(transition, process, position**2)
    turn = gyro**2 * interval
    variance = turn / 2.0 + np.sqrt(turn**2 / 4.0 + turn * attitude**2)
    return float(on_position), float(on_velocity), float(variance / (variance + attitude**2))


@compiled()
def _turn(q, x, y, z):
    """Turn a quaternion by a rotation vector in the body frame, in place."""
    q[0], q[1], q[2], q[3] = turned(q, (x, y, z))


@compiled()
def _predict(truth, noise, constants, e):
    """Integrate one drone's IMU over a period."""
    dt, g = constants[0], constants[1]
    fx, fy, fz = rotate_back_by(truth[6:10], (truth[13], truth[14], truth[15] + g))
    fx += constants[3] * noise[3]
    fy += constants[3] * noise[4]
    fz += constants[3] * noise[5]
    for k in range(3):
        e[10 + k] = truth[10 + k] + constants[2] * noise[k]
    _turn(e[6:10], e[10] * dt, e[11] * dt, e[12] * dt)
    ax, ay, az = rotate_by(e[6:10], (fx, fy, fz))
    e[13], e[14], e[15] = ax, ay, az - g
    for k in range(3):
        # The mean acceleration over the step, as the physics integrates (velocity first).
        e[3 + k] += e[13 + k] * dt
        e[k] += e[3 + k] * dt


@compiled()
def _sample(truth, noise, constants, z):
    """Take one motion-capture sample of a drone's pose."""
    for k in range(3):
        z[k] = truth[k] + constants[4] * noise[6 + k]
    for k in range(4):
        z[3 + k] = truth[6 + k]
    s = constants[5]
    _turn(z[3:7], s * noise[9], s * noise[10], s * noise[11])


@compiled()
def _correct(ring, i, then, constants):
    """Correct a drone's predictions from a sample's time on by the error at that time."""
    ticks, dt = ring.shape[0], constants[0]
    old, z = ring[then, i], ring[then, i, SAMPLE:]
    ex, ey, ez = z[0] - old[0], z[1] - old[1], z[2] - old[2]
    qw, qx, qy, qz = quaternion_product(conjugate(old[6:10]), z[3:7])
    turn = constants[8] * (2.0 if qw >= 0.0 else -2.0)
    rx, ry, rz = turn * qx, turn * qy, turn * qz
    for d in range(ticks):
        h = ring[(then + d) % ticks, i]
        shift = constants[6] + constants[7] * d * dt
        h[0] += shift * ex
        h[1] += shift * ey
        h[2] += shift * ez
        h[3] += constants[7] * ex
        h[4] += constants[7] * ey
        h[5] += constants[7] * ez
        _turn(h[6:10], rx, ry, rz)


@compiled()
def _fuse(motion, noise, block, sampled, tick, constants, ring, est):
    """Advance the estimates of all drones by one period."""
    ticks = ring.shape[0]
    now, then = tick % ticks, (tick + 1) % ticks  # the oldest entry is one latency old
    for i in range(est.shape[0]):
        truth, n, e = motion[i + 1], noise[block, i], est[i]
        _predict(truth, n, constants, e)
        for k in range(SAMPLE):
            ring[now, i, k] = e[k]
        ring[now, i, VALID] = 1.0 if sampled and n[12] >= constants[9] else 0.0
        if ring[now, i, VALID] > 0.0:
            _sample(truth, n, constants, ring[now, i, SAMPLE:])
        if ring[then, i, VALID] > 0.0:
            _correct(ring, i, then, constants)
            for k in range(SAMPLE):
                e[k] = ring[now, i, k]
            ring[then, i, VALID] = 0.0


@compiled()
def _step_all(motion, force, estimate, tension, memory, layout, tick, block, load_seen):
    """Advance the estimates of drones and load by one period, in one call."""
    motion, force = borrowed(motion), borrowed(force)
    estimate, tension = borrowed(estimate), borrowed(tension)
    x, p = memory, layout
    constants = row_of(x, p[0])
    sampled = int((tick + 1) * constants[10]) > int(tick * constants[10])
    _fuse(
        motion, block_of(x, p[1]), block, sampled, tick, constants, block_of(x, p[2]), estimate[1:]
    )
    if p[3, 1] == 0:
        return
    gains, history, samples = row_of(x, p[3]), table_of(x, p[4]), table_of(x, p[5])
    noise = table_of(x, p[6])[block]
    track(motion[0], noise, sampled and load_seen, tick, gains, history, samples, estimate[0])
    for i in range(tension.shape[0]):
        tension[i, 0], tension[i, 1] = force[i, 0, 0], force[i, 1, 0]


# ---------- Sensors on a tilted board, beside the centre of mass


class SensedState:
    """The plant's state as the drones' sensors and motion capture find it.

    Attitude and body rates are those of the tilted board, positions and velocities those of the
    point that motion capture reports; accelerations are the centre of mass's, where the IMU is.

    Attributes:
        state: The plant's state, with another memory for the motion.
    """

    def __init__(self, state: PlantState, faults: Imperfections) -> None:
        """Begin with the state as it is now.

        Args:
            state: The plant's state; its memory stays the same.
            faults: Tilts and offsets.
        """
        drones = faults.of_each(len(state.motion) - 1)
        self._true = state.motion
        self._faults = np.array(
            [[*drone.level_tilt_rad, *drone.mocap_offset_m] for drone in drones]
        ).reshape(-1, 5)
        self.state = replace(state, motion=state.motion.copy())
        self.update()

    @classmethod
    def of(cls, state: PlantState, faults: Imperfections) -> SensedState | None:
        """What is sensed of a state, None where it is the truth."""
        if any(any(d.level_tilt_rad) or any(d.mocap_offset_m) for d in faults.drones):
            return cls(state, faults)
        return None

    def update(self) -> None:
        """Follow the plant."""
        _sense(self._true, self._faults, self.state.motion)


@compiled()
def _sense(truth, faults, sensed):
    """Write what is sensed of all bodies, (1 + n, 16), of tilts and offsets (n, 5)."""
    sensed[0] = truth[0]
    for i in range(faults.shape[0]):
        t, s, f = truth[1 + i], sensed[1 + i], faults[i]
        s[:] = t
        q, level = t[6:10], from_rotation_vector((f[0], f[1], 0.0))
        increase(s, rotate_by(q, f[2:5]))
        increase(s[3:6], rotate_by(q, cross(t[10:13], f[2:5])))
        s[6], s[7], s[8], s[9] = quaternion_product(q, level)
        put(s[10:13], rotate_back_by(level, t[10:13]))
