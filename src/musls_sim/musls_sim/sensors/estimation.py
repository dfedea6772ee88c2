"""State estimation of load and drones: ground truth, or motion capture fused with the IMU.

The second stands for what PX4 does with motion capture: between the camera's samples the IMU is
integrated; a sample that arrives late is compared with the state predicted for the time when it
was taken, and the difference corrects the present state (EKF2's delayed fusion with an output
predictor) by the stationary gains of a Kalman filter. The load carries no IMU: it is predicted to
go on at constant velocity and angular velocity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

import numpy as np
import scipy

from musls_control.estimate import MOTION, Estimate
from musls_control.estimators import DroneErrors
from musls_description.config.errors import ConfigError
from musls_description.config.registry import UserCodeError, file_of, user_code
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    conjugate,
    cross,
    from_rotation_vector,
    increase,
    put,
    put_quaternion,
    quaternion_product,
    rotate_back_by,
    rotate_by,
    scale,
    sub,
    turned,
)
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import PlantState
from musls_sim.sensors.custom import SensorModel, SensorSetup
from musls_sim.sensors.relay import CaptureRelay
from musls_sim.specs.estimation import MotionCaptureSpec, TruthSpec
from musls_sim.specs.imperfections import Imperfections


class Estimator(Protocol):
    """Computes what the autopilots know of their motion from the plant's state, in compiled code.

    Attributes:
        generators: Generators of its noise: "drones", "luck", "load".
    """

    estimate: Estimate
    generators: dict[str, np.random.Generator]


class Truth:
    """Ground truth.

    Attributes:
        noise: Standard deviation of the added noise.
    """

    def __init__(self, state: PlantState, generator: np.random.Generator, noise: float) -> None:
        self.estimate = Estimate.zeros(len(state.motion) - 1, len(state.tension_n))
        self.estimate.data[:] = state.motion
        self.estimate.tension_n[:] = state.tension_n
        self.noise = noise
        self.generators = {"drones": generator}


@compiled()
def copy_truth(motion, estimate):
    """Take the truth for what is known, (1 + n, 16)."""
    for i in range(motion.shape[0]):
        for k in range(motion.shape[1]):
            estimate[i, k] = motion[i, k]


@compiled()
def add_noise(estimate, noise, deviation):
    """Add noise, (1 + n, 13) of standard normal numbers, to places, velocities and turns."""
    for i in range(estimate.shape[0]):
        row = estimate[i]
        by = noise[i]
        for k in range(3):
            row[k] += deviation * by[k]
            row[3 + k] += deviation * by[3 + k]
            row[10 + k] += deviation * by[9 + k]
        put_quaternion(row[6:10], turned(row[6:10], scale(deviation, by[6:9])))


def check_estimate(kind: type, method: str, estimate: Estimate, when: str = "") -> None:
    """Refuse an estimate into which a method of a class wrote what is no number.

    Controllers that fly on it would be blamed for what they make of it.
    """
    for name, numbers in (("data", estimate.data), ("tension_n", estimate.tension_n)):
        if not np.isfinite(numbers.sum()):
            bad = np.argwhere(~np.isfinite(numbers))[0]
            raise UserCodeError(
                f"{file_of(kind)}: {kind.__name__}.{method}{when} wrote {numbers[tuple(bad)]} into "
                f"estimate.{name}{bad.tolist()}: must be finite"
            )


# ---------- Load cells and other sensors beside those of the drones


LOAD_CELL = np.dtype(
    [
        ("cable", np.int64),
        ("samples_per_period", float),
        ("noise", float),  # standard deviation
        ("bias", float),
        ("gain", float),
        ("range", float),  # NaN for no limit
    ],
    align=True,
)


class LoadCells:
    """Load cells of the cables that have some, see `LoadCell`.

    Attributes:
        records: Properties of each load cell, (cells,) of `LOAD_CELL`.
        measured_n: Tensions that they show at both ends, (cells, 2).
        generator: Generator of their noise.
    """

    def __init__(self, system: RigSystem, period_s: float, generator: np.random.Generator) -> None:
        cells = [(i, c.load_cell) for i, c in enumerate(system.cables) if c.load_cell is not None]
        self.records = np.array(
            [
                (
                    i,
                    cell.rate_hz * period_s,
                    cell.noise_n,
                    cell.bias_n,
                    cell.gain,
                    np.nan if cell.range_n is None else cell.range_n,
                )
                for i, cell in cells
            ],
            LOAD_CELL,
        )
        self.measured_n = np.zeros((len(cells), 2))
        self.generator = generator


@compiled()
def read_load_cells(cells, force, noise, tick, measured, tension):
    """Take the samples that are due, (cells, 2); the last ones stand for the tensions.

    `force`: of the cables, (n_cables, 2, 3); `noise`: standard normal numbers, (cells, 2).
    """
    for i in range(len(cells)):
        cell = cells[i]
        rate = cell.samples_per_period
        due = np.floor(tick * rate) > np.floor((tick - 1) * rate)
        for end in range(2):
            if due:
                reading = (
                    cell.gain * force[cell.cable, end, 0] + cell.bias + cell.noise * noise[i, end]
                )
                measured[i, end] = cell.range if reading > cell.range else reading
            tension[cell.cable, end] = measured[i, end]


class Sensors:
    """A step of the session: a scenario's `sensors`, after all estimators.

    Attributes:
        readings: Numbers of all your own sensors, one sensor after the other, NaN before the
            first reading; the memory stays the same.
    """

    def __init__(
        self, models: Sequence[SensorModel], setup: SensorSetup, estimate: Estimate
    ) -> None:
        self._estimate = estimate
        self.readings = np.full(sum(len(model.readings) for model in models), np.nan)
        ends = np.cumsum([len(model.readings) for model in models])
        self._models: list[tuple[SensorModel, Callable[[Estimate], Any], Array]] = []
        for model, end in zip(models, ends, strict=True):
            with user_code(lambda: " before the flight", type(model), "build"):
                measure = model.build(setup)
            self._models.append((model, measure, self.readings[end - len(model.readings) : end]))

    def step(self, tick: int) -> None:
        """Measure the state at the end of the period."""
        for model, measure, readings in self._models:
            with user_code(lambda: ": its function", type(model), "build"):
                answer = measure(self._estimate)
                numbers = np.zeros(0) if answer is None else np.asarray(answer, float).ravel()
            if len(numbers) != len(readings):
                raise UserCodeError(
                    f"{file_of(type(model))}: the function of {type(model).__name__}.build must "
                    f"return {len(readings)} numbers, those of readings, not {len(numbers)}"
                )
            readings[:] = numbers
            check_estimate(type(model), "build: its function", self._estimate)


# ---------- Motion capture

LOAD_ACCELERATION_M_S2 = 3.0
"""Standard deviation of the load's acceleration between samples: swinging and gusts."""

LOAD_ANGULAR_ACCELERATION_RAD_S2 = 6.0

NOISE = np.dtype(
    [
        ("gyro", float, 3),
        ("accelerometer", float, 3),
        ("position", float, 3),
        ("attitude", float, 3),
        ("luck", float),
    ],
    align=True,
)
"""Standard normal numbers for a body and a period, and one in [0, 1] for the loss of a sample."""

PREDICTION = np.dtype(
    [
        ("position", float, 3),
        ("velocity", float, 3),
        ("attitude", float, 4),
        ("omega", float, 3),
        ("sampled_position", float, 3),
        ("sampled_attitude", float, 4),
        ("sampled", bool),
    ],
    align=True,
)
"""Prediction of a body for a period, and the sample that was taken of it then."""

SENSORS = np.dtype(
    [
        ("period", float),
        ("gravity", float),
        ("samples_per_period", float),
        ("dropout", float),
        ("position_noise", float),  # standard deviations
        ("attitude_noise", float),
        ("gyro_noise", float),
        ("accelerometer_noise", float),
        ("position_gain", float),  # of a Kalman filter: 1, 1/s for the velocities
        ("velocity_gain", float),
        ("attitude_gain", float),
        ("omega_gain", float),
        ("seen", np.int64),  # whether motion capture sees it
    ],
    align=True,
)
"""Measurement of a body and gains of its estimate."""


def sensor_noise(generator: np.random.Generator) -> dict[str, np.random.Generator]:
    """Generators of one motion capture and its IMUs: of drones, lost samples, and the load.

    Each has noise of its own: the drones' estimates are the same with and without the load's.
    """
    load, luck = generator.spawn(2)
    return {"drones": generator, "luck": luck, "load": load}


class MotionCapture:
    """Motion capture fused with the IMU: poses with noise, delay and dropouts, velocities filtered.

    Attributes:
        sensors: Properties of each body's measurement, (bodies,) of `SENSORS`.
        ring: Predictions back to the oldest sample under way, (periods, bodies) of `PREDICTION`.
        first: The first body that is estimated: 0 with the load, else 1.
        relay: Judges samples before they are fused; None where nothing lets the capture lie.
        generators: See `Estimator`.
    """

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
        """`with_load`: estimate load and tensions, too; else the load's row keeps the start."""
        bodies = len(state.motion)
        self.estimate = Estimate.zeros(bodies - 1, len(state.tension_n))
        self.estimate.data[:] = state.motion
        self.first = 0 if with_load else 1
        if with_load:
            self.estimate.tension_n[:] = state.tension_n
        self.generators = sensor_noise(generator)
        self.sensors = _sensors(spec, bodies, period_s, gravity_m_s2)
        self.ring = np.zeros((round(spec.latency_s / period_s) + 1, bodies), PREDICTION)
        for name in ("position", "velocity", "attitude", "omega"):
            self.ring[name] = self.estimate.records[name]
        self.relay: CaptureRelay | None = None

    def judge_samples(self, system: RigSystem, *, tied: bool) -> None:
        """Let the relay's filter accept or reject all samples from now on, see `CaptureRelay`."""
        rate, period_s = (float(self.sensors[k][0]) for k in ("samples_per_period", "period"))
        self.relay = CaptureRelay(system, self.estimate, self.ring, rate, period_s, tied=tied)

    def see(self, drones: Sequence[int], *, seen: bool, load: bool) -> None:
        """Let motion capture see drones (from 0) from now on, or lose them."""
        self.sensors["seen"][[0] * load + [1 + i for i in drones]] = seen


def _sensors(spec: MotionCaptureSpec, bodies: int, period_s: float, gravity_m_s2: float) -> Records:
    """Sensors of load and drones, (bodies,)."""
    interval_s = max(1.0 / spec.rate_hz, period_s)
    sensors = np.zeros(bodies, SENSORS)
    sensors["period"] = period_s
    sensors["gravity"] = gravity_m_s2
    sensors["seen"] = True
    sensors["samples_per_period"] = spec.rate_hz * period_s
    sensors["dropout"] = spec.dropout_fraction
    sensors["position_noise"] = spec.position_noise_m
    sensors["attitude_noise"] = spec.attitude_noise_rad
    sensors["gyro_noise"] = spec.gyro_noise_rad_s
    sensors["accelerometer_noise"] = spec.accelerometer_noise_m_s2
    drones = sensors[1:]
    load = sensors[0]
    drones["position_gain"], drones["velocity_gain"], drones["attitude_gain"] = _gains(
        spec, period_s
    )
    load["dropout"] = 0.0
    load["position_gain"], load["velocity_gain"] = _constant_rate_gains(
        interval_s, LOAD_ACCELERATION_M_S2, max(spec.position_noise_m, 1e-5)
    )
    load["attitude_gain"], load["omega_gain"] = _constant_rate_gains(
        interval_s, LOAD_ANGULAR_ACCELERATION_RAD_S2, max(spec.attitude_noise_rad, 1e-5)
    )
    return sensors


# Between samples the load is taken to move on at constant velocity and to turn at a constant
# rate. A sample that arrives late is compared with what was predicted for the time when it was
# taken, and the difference corrects the predictions from then on, by the stationary gains of a
# Kalman filter whose process noise is an acceleration.


@cache
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
    turn = gyro**2 * interval * np.eye(1)
    (on_attitude,) = stationary_gains(np.eye(1), turn, attitude**2)
    return float(on_position), float(on_velocity), float(on_attitude)


MEMORY_S = 0.2
"""Time over which those who use the estimates average; errors that last longer count as such."""

LEAST_ERRORS = DroneErrors(2e-4, 2e-4, 5e-3, 1e-3)
"""Errors of exact estimates, so that a filter has something to weigh by."""


def drone_errors(
    spec: MotionCaptureSpec | TruthSpec, period_s: float, gravity_m_s2: float
) -> DroneErrors:
    """Errors of the drones' estimates that follow from the declared noise, see `DroneErrors`.

    Over long times an estimated place follows the samples, with an error as large as theirs, and
    the IMU's noise behind the filter's gain; an attitude error forgets itself more slowly than
    filters remember.
    """
    if isinstance(spec, TruthSpec):
        # A thrust that is turned by the noise of the attitude: about the weight, and as much again.
        noise = spec.noise
        turned_m_s2 = 2.0 * gravity_m_s2 * spec.noise
        errors = noise, noise, turned_m_s2, noise
    else:
        interval_s = max(1.0 / spec.rate_hz, period_s)
        _, on_velocity, on_attitude = _gains(spec, period_s)
        seen_s = interval_s / (1.0 - spec.dropout_fraction)
        place = spec.position_noise_m**2 * seen_s
        place += spec.accelerometer_noise_m_s2**2 * period_s * (seen_s / on_velocity) ** 2
        lasts_s = seen_s / on_attitude
        turn = spec.attitude_noise_rad**2 * seen_s
        turn += spec.gyro_noise_rad_s**2 * period_s * lasts_s**2
        turn *= min(1.0, MEMORY_S / lasts_s)
        white = np.sqrt([place / period_s, turn / period_s])
        errors = *white, spec.accelerometer_noise_m_s2, spec.gyro_noise_rad_s
    least = LEAST_ERRORS
    floors = least.position_m, least.attitude_rad, least.acceleration_m_s2, least.rate_rad_s
    return DroneErrors(*(max(float(e), floor) for e, floor in zip(errors, floors, strict=True)))


@cache
def _constant_rate_gains(
    interval_s: float, acceleration: float, noise: float
) -> tuple[float, float]:
    """Stationary Kalman gains on position [1] and rate [1/s] of a constant-rate model."""
    transition = np.array([[1.0, interval_s], [0.0, 1.0]])
    process = (acceleration * interval_s) ** 2 * np.array(
        [[interval_s**2 / 4.0, interval_s / 2.0], [interval_s / 2.0, 1.0]]
    ) + 1e-18 * np.eye(2)
    on_value, on_rate = stationary_gains(transition, process, noise**2)
    return float(on_value), float(on_rate)


def stationary_gains(transition: Array, process: Array, variance: float) -> Array:
    """Gains with which a stationary Kalman filter corrects its state by the first of its parts.

    P h / (h' P h + r), (n,), with P = F P F' - F P h (h' P h + r)^-1 h' P F' + Q: F is the
    transition from sample to sample, Q the covariance of the process noise, r > 0 the variance of
    the measurement (raises ConfigError where the noises are too far apart for doubles).
    """
    first = np.eye(len(transition))[:, :1]
    try:
        covariance = scipy.linalg.solve_discrete_are(transition.T, first, process, [[variance]])
    except np.linalg.LinAlgError:
        raise ConfigError(
            f"estimation: measurements with a standard deviation of {np.sqrt(variance):.3g} and "
            f"motion that changes by {np.sqrt(process.max()):.3g} between two of them have no "
            "stationary filter; choose noises and a rate that are nearer to each other"
        ) from None
    return covariance[:, 0] / (covariance[0, 0] + variance)


@compiled()
def _copy(out, body):
    """Copy the motion of a body, without its acceleration."""
    put(out.position, body.position)
    put(out.velocity, body.velocity)
    put_quaternion(out.attitude, body.attitude)
    put(out.omega, body.omega)


@compiled()
def _turn(body, angle):
    """Turn a body by a rotation vector in its own frame."""
    put_quaternion(body.attitude, turned(body.attitude, angle))


@compiled()
def _go_on(e, dt):
    """Predict the load: its velocities stay."""
    increase(e.position, scale(dt, e.velocity))
    _turn(e, scale(dt, e.omega))


@compiled()
def _integrate_imu(truth, noise, sensors, e):
    """Predict a drone by its IMU, which feels the mean acceleration over the step."""
    dt = sensors.period
    up = (0.0, 0.0, sensors.gravity)
    specific_force = rotate_back_by(truth.attitude, add(truth.acceleration, up))
    specific_force = add(specific_force, scale(sensors.accelerometer_noise, noise.accelerometer))
    put(e.omega, add(truth.omega, scale(sensors.gyro_noise, noise.gyro)))
    _turn(e, scale(dt, e.omega))
    put(e.acceleration, sub(rotate_by(e.attitude, specific_force), up))
    increase(e.velocity, scale(dt, e.acceleration))  # as the physics integrates: velocity first
    increase(e.position, scale(dt, e.velocity))


@compiled()
def _take_sample(truth, noise, sensors, p):
    """Sample a body's pose by motion capture."""
    put(p.sampled_position, add(truth.position, scale(sensors.position_noise, noise.position)))
    turn = scale(sensors.attitude_noise, noise.attitude)
    put_quaternion(p.sampled_attitude, turned(truth.attitude, turn))


@compiled()
def _correct(ring, i, then, sensors):
    """Correct a body's predictions from a sample's time on by the error at that time."""
    old = ring[then, i]
    miss = sub(old.sampled_position, old.position)
    w, x, y, z = quaternion_product(conjugate(old.attitude), old.sampled_attitude)
    turn = scale(2.0 if w >= 0.0 else -2.0, (x, y, z))
    for d in range(ring.shape[0]):
        p = ring[(then + d) % ring.shape[0], i]
        since = d * sensors.period
        increase(p.position, scale(sensors.position_gain + sensors.velocity_gain * since, miss))
        increase(p.velocity, scale(sensors.velocity_gain, miss))
        angle = sensors.attitude_gain + sensors.omega_gain * since
        _turn(p, scale(angle, turn))
        increase(p.omega, scale(sensors.omega_gain, turn))


@compiled()
def step_estimates(motion, estimate, noise, sensors, ring, tick, first):
    """Advance the estimates of load and drones, or of the drones only, by one period.

    The IMU is integrated, a sample taken if one is due, the one that arrives fused.
    """
    truths = motion.reshape(-1).view(MOTION)
    estimates = estimate.reshape(-1).view(MOTION)
    noises = noise.reshape(-1).view(NOISE)
    # the oldest is one latency old
    now = tick % ring.shape[0]
    then = (tick + 1) % ring.shape[0]
    for i in range(first, len(sensors)):
        truth = truths[i]
        e = estimates[i]
        s = sensors[i]
        p = ring[now, i]
        vx = e.velocity[0]
        vy = e.velocity[1]
        vz = e.velocity[2]
        if i == 0:
            _go_on(e, s.period)
        else:
            _integrate_imu(truth, noises[i], s, e)
        _copy(p, e)
        due = int((tick + 1) * s.samples_per_period) > int(tick * s.samples_per_period)
        p.sampled = due and s.seen != 0 and noises[i].luck >= s.dropout
        if p.sampled:
            _take_sample(truth, noises[i], s, p)
        if ring[then, i].sampled:
            _correct(ring, i, then, s)
            _copy(e, p)
            ring[then, i].sampled = False
        if i == 0:
            put(e.acceleration, scale(1.0 / s.period, sub(e.velocity, (vx, vy, vz))))


# ---------- Sensors on a tilted board, beside the centre of mass

FAULT = np.dtype([("tilt", float, 2), ("offset", float, 3)], align=True)


class SensedState:
    """The plant's state as the drones' sensors and motion capture find it.

    Attitude and body rates are those of the tilted board, positions and velocities those of the
    point that motion capture reports; accelerations are the centre of mass's, where the IMU is.

    Attributes:
        faults: Faults of the drones, (n,) of `FAULT`.
        state: The plant's state, with another memory for the motion.
    """

    def __init__(self, state: PlantState, faults: Imperfections) -> None:
        drones = faults.of_each(len(state.motion) - 1)
        self.faults = np.array([(d.level_tilt_rad, d.mocap_offset_m) for d in drones], FAULT)
        self.state = replace(state, motion=state.motion.copy())
        sense(state.records, self.faults, self.state.records)

    @classmethod
    def of(cls, state: PlantState, faults: Imperfections) -> SensedState | None:
        """Sensed state of the estimator, None where it is the truth."""
        if any(any(d.level_tilt_rad) or any(d.mocap_offset_m) for d in faults.drones):
            return cls(state, faults)
        return None


@compiled(shared=True)
def sense(truth, faults, sensed):
    """Write what is sensed of all bodies, (1 + n,), with the faults of the drones, (n,)."""
    sensed[0] = truth[0]
    for i in range(len(faults)):
        t = truth[1 + i]
        s = sensed[1 + i]
        f = faults[i]
        level = from_rotation_vector((f.tilt[0], f.tilt[1], 0.0))
        put(s.position, add(t.position, rotate_by(t.attitude, f.offset)))
        put(s.velocity, add(t.velocity, rotate_by(t.attitude, cross(t.omega, f.offset))))
        put_quaternion(s.attitude, quaternion_product(t.attitude, level))
        put(s.omega, rotate_back_by(level, t.omega))
        put(s.acceleration, t.acceleration)
