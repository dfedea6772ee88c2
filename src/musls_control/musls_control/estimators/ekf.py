"""Extended Kalman filter for the load, from what the drones sense alone.

State: pose and twist of the load. Its error has twelve parts: position (world) and turn (load's
frame, R = R^ exp(turn)), velocity and angular velocity. Cables are massless but for their
weight and taut or slack; their directions and rates follow from load and drones. Newton's law for
a drone gives the force of its cable, f = m (a - g) - (rotors' force), whose part along the cable
is the tension. Between measurements the load moves under these tensions. Measured are, of each
taut cable, its length and the direction of f.

The idea of cable directions by the drones' IMUs is that of Sun et al. (Science Robotics 2025),
which has the drones and elastic cables in the filter.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy

from musls_control.estimate import MOTION, Estimate
from musls_control.estimators import DroneSensors, EstimatorSetup, LoadEstimator, LoadImuSpec
from musls_control.estimators.taut import (
    LOAD,
    across,
    add_wrench,
    cable_records,
    chord,
    chord_slope,
    load_record,
    matrix_of,
    shift,
    skew,
    wrench_slope,
)
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled

FILTER = np.dtype(
    [
        *LOAD.descr,
        ("taut", float),  # least tension of a cable whose length is measured [N]
        ("force_noise", float),
        ("length_noise", float),
        ("acceleration_noise", float),
        ("angular_acceleration_noise", float),
        ("gyro_noise", float),
        ("accelerometer_noise", float),
    ]
)
"""Constants of the load and variances of white noise that is fresh in each period."""

NO_IMU = np.zeros(0)

CHANCE = 0.995
"""Share of flights in which a consistent filter's mean innovation is not larger."""

TAUT = 3.0
"""Tension of a taut cable over the standard deviation of its noise, at least."""


@spec
class EkfSpec:
    """Extended Kalman filter from the drones' motion, IMUs and rotor speeds, the load unseen.

    Noises are standard deviations of errors that last `correlation_s`, per axis where there are
    axes.

    Attributes:
        kind: "ekf".
        force_noise_n: Noise of a cable's force, computed from IMU, attitude and rotor speeds.
        length_noise_m: Noise of a taut cable's length between the measured ends: positions, sag.
        acceleration_noise_m_s2: Unmodelled acceleration of the load: wind, drag.
        angular_acceleration_noise_rad_s2: Unmodelled angular acceleration of the load.
        correlation_s: Correlation time of such errors; 0 for white noise.
        start_noise_m: Uncertainty of the load's position at the start.
        start_noise_rad: Uncertainty of its attitude at the start.
        load_imu: IMU on the load, left out for none.
    """

    kind: Literal["ekf"] = "ekf"
    force_noise_n: Positive = 0.1
    length_noise_m: Positive = 0.002
    acceleration_noise_m_s2: NonNegative = 0.1
    angular_acceleration_noise_rad_s2: NonNegative = 0.5
    correlation_s: NonNegative = 0.1
    start_noise_m: Positive = 0.02
    start_noise_rad: Positive = 0.05
    load_imu: LoadImuSpec | None = None

    def build(self, setup: EstimatorSetup) -> Ekf:
        """Make the estimator."""
        estimator = Ekf(self)
        estimator.prepare(setup)
        return estimator


class Ekf(LoadEstimator):
    """Extended Kalman filter of the load; equations in the module's docstring.

    Attributes:
        covariance: Covariance of the error: position [m], turn [rad], velocity [m/s], angular
            velocity [rad/s], (12, 12).
        innovations: Sum of the squared normalised innovations of the last step, and their number,
            (2,).
    """

    needs_rotors = True

    def __init__(self, options: EkfSpec | None = None) -> None:
        self._options = options or EkfSpec()
        self.load_imu = self._options.load_imu

    def prepare(self, setup: EstimatorSetup) -> None:
        """Make the tables."""
        super().prepare(setup)
        options, period_s = self._options, setup.period_s
        self._cables = cable_records(setup.system)
        self._load = load = np.zeros(1, FILTER)
        for name in LOAD.names or ():
            load[name] = load_record(setup.system, setup.gravity_m_s2, period_s)[name]
        # An error that lasts for a time T is, over longer times, as white noise of 2 T / period
        # times its variance.
        self._lasting = lasting = max(1.0, 2.0 * options.correlation_s / period_s)
        load["taut"] = TAUT * options.force_noise_n
        load["force_noise"] = lasting * options.force_noise_n**2
        load["length_noise"] = lasting * options.length_noise_m**2
        load["acceleration_noise"] = lasting * options.acceleration_noise_m_s2**2
        self._turns = not setup.system.load.point_mass
        turning = options.angular_acceleration_noise_rad_s2 if self._turns else 0.0
        load["angular_acceleration_noise"] = lasting * turning**2
        if self.load_imu is not None:
            load["gyro_noise"] = self.load_imu.gyro_noise_rad_s**2
            load["accelerometer_noise"] = self.load_imu.accelerometer_noise_m_s2**2
        self._motion = np.zeros(1, MOTION)
        self.covariance = np.zeros((12, 12))
        self.innovations, self._all_innovations = np.zeros(2), np.zeros(2)
        self._gravity = np.array([0.0, 0.0, -setup.gravity_m_s2])
        self._standing: Records | None = None

    def start(self, sensors: DroneSensors, estimate: Estimate, *, on_ground: bool) -> None:
        """Begin at rest; on the ground the load stays where it stands until it is lifted."""
        self._motion[:] = estimate.records[:1]
        self._standing = self._motion.copy() if on_ground else None
        self._begin()

    def _begin(self) -> None:
        options = self._options
        turn = options.start_noise_rad if self._turns else 0.0
        sigma = np.repeat([options.start_noise_m, turn, options.start_noise_m, turn], 3)
        self.covariance[:] = np.diag(sigma**2)

    def step(self, sensors: DroneSensors, estimate: Estimate) -> None:
        """Predict by the tensions, correct by lengths and directions."""
        drones, cables, load = sensors.drones.records, self._cables, self._load
        rotors, imu = sensors.rotor_force_enu_n, sensors.load_imu
        force = cable_forces(drones, rotors, cables, load[0]["gravity"])
        self.innovations[:] = 0.0
        if self._stands(force):
            self._motion[:] = self._standing
            self._begin()
        else:
            state = self._motion, self.covariance
            told = drones, force, NO_IMU if imu is None else imu
            advance(state, told, cables, load, self.innovations)
            self._all_innovations += self.innovations
        estimate.records[:1] = self._motion
        half = 0.5 * self._cables["mass"][:, None] * (self._motion["acceleration"] - self._gravity)
        estimate.tension_n[:, 0] = np.linalg.norm(force - half, axis=1)
        estimate.tension_n[:, 1] = np.linalg.norm(force + half, axis=1)

    def doubt(self) -> str:
        """Whether the mean normalised innovation is above what chance gives a consistent filter.

        Below is no doubt: then the stated noises are larger than those of the flight.
        """
        total, number = self._all_innovations
        independent = number / self._lasting
        if independent < 1.0:
            return ""
        most = 2.0 * scipy.special.gammaincinv(0.5 * independent, CHANCE) / independent
        if total / number <= most:
            return ""
        return (
            f"load estimator ekf: mean normalised innovation {total / number:.3g}, in "
            f"{100 * CHANCE:g} % of flights below {most:.3g} if its noises are true: the load's "
            "estimate errs more than its covariance says"
        )

    def _stands(self, force: Array) -> bool:
        """Whether the load stands on the ground where the flight began."""
        standing, load = self._standing, self._load[0]
        height_m = self._motion["position"][0, 2]
        low = standing is not None and height_m <= standing["position"][0, 2]
        return bool(low and force[:, 2].sum() < load["mass"] * load["gravity"])


# ---------- Forces of the cables on the load


@compiled()
def cable_forces(drones, rotors, cables, gravity):
    """Forces in the middle of the cables towards the drones, by Newton's law for these, (n, 3)."""
    out = rotors.copy()
    for i in range(len(cables)):
        mass = cables[i].drone_mass + 0.5 * cables[i].mass
        out[i] -= mass * drones[i].acceleration
        out[i, 2] -= mass * gravity
    return out


# ---------- The filter


@compiled()
def advance(states, told, cables, loads, innovations):
    """Predict, then correct."""
    state, load = (states[0][0], states[1]), loads[0]
    predict(state, told, cables, load)
    correct(state, told, cables, load, innovations)


@compiled()
def pull(motion, drones, force, cables, c):
    """Wrench of the cables on the load, (6,), its slope by the load's pose and its noise, (6, 6).

    Forces in the world, moments in the load's frame. The noise is that of the tensions, and of the
    cables' directions by that of the drones' positions.
    """
    wrench, slope, noise, column = np.zeros(6), np.zeros((6, 6)), np.zeros((6, 6)), np.zeros(6)
    rotation = matrix_of(motion.attitude)
    for i in range(len(cables)):
        cable = cables[i]
        reach, _ = chord(motion, drones[i], cable)
        length = np.linalg.norm(reach)
        unit = reach / length
        tension = max(0.0, force[i] @ unit)
        by_load = tension * across(unit, length) @ chord_slope(rotation, cable)
        slope += wrench_slope(tension * unit, by_load, rotation, cable)
        column[:] = 0.0
        add_wrench(column, unit, rotation, cable)
        wrench += tension * column
        noise += c.force_noise * np.outer(column, column)
        aside = axes_across(unit)
        for k in range(2):
            column[:] = 0.0
            add_wrench(column, aside[k], rotation, cable)
            noise += (tension / length) ** 2 * c.length_noise * np.outer(column, column)
    return wrench, slope, noise


@compiled()
def predict(state, told, cables, c):
    """Advance motion and covariance by a period, the load pulled along its cables."""
    motion, covariance = state
    drones, force, imu = told
    dt = c.period
    # Forces are means over the period, so they act where load and drones are in its middle; the
    # drones are told at its end.
    ahead = 0.5 * dt * np.concatenate((motion.velocity, motion.omega))
    shift(motion, ahead)
    middle = drones.copy()
    for i in range(len(cables)):
        shift(middle[i], -0.5 * dt * np.concatenate((drones[i].velocity, drones[i].omega)))
    omega = motion.omega.copy()
    wrench, slope, noise = pull(motion, middle, force, cables, c)
    shift(motion, ahead)
    rotation = matrix_of(motion.attitude)
    spin = c.inertia @ omega
    wrench[3:] -= np.cross(omega, spin)
    by_mass = np.eye(6) / c.mass
    by_mass[3:, 3:] = c.inverse_inertia
    rates, slope, noise = by_mass @ wrench, by_mass @ slope, by_mass @ noise @ by_mass
    if len(imu):  # felt instead of what the cables pull
        rates[:3] = rotation @ imu[:3]
        slope[:3] = 0.0
        slope[:3, 3:] = -rotation @ skew(imu[:3])
        noise[:3] = 0.0
        noise[:, :3] = 0.0
    rates[2] -= c.gravity
    for k in range(3):
        noise[k, k] += c.accelerometer_noise if len(imu) else c.acceleration_noise
        noise[3 + k, 3 + k] += c.angular_acceleration_noise

    step = np.eye(12)  # exp(A dt), to the second order in the slope
    for k in range(6):
        step[k, 6 + k] = dt
    step[:6, :6] += 0.5 * dt * dt * slope
    step[6:, :6] = dt * slope
    step[3:6, 3:6] -= dt * skew(omega)
    step[9:, 9:] += dt * (c.inverse_inertia @ (skew(spin) - skew(omega) @ c.inertia))
    covariance[:] = step @ covariance @ step.T
    covariance[6:, 6:] += dt * dt * noise

    motion.acceleration[:] = rates[:3]
    motion.velocity += dt * rates[:3]
    motion.omega += dt * rates[3:]
    shift(motion, 0.5 * dt * dt * rates)


@compiled()
def correct(state, told, cables, c, innovations):
    """Correct by taut cables' lengths, by cables' directions and by the load's gyro."""
    motion, covariance = state
    drones, force, imu = told
    rotation = matrix_of(motion.attitude)
    error, row = np.zeros(12), np.zeros(12)
    for i in range(len(cables)):
        cable = cables[i]
        reach, _ = chord(motion, drones[i], cable)
        length = np.linalg.norm(reach)
        unit = reach / length
        tension = force[i] @ unit
        by_load = chord_slope(rotation, cable)
        if tension > c.taut or length > cable.length:  # none is longer than it is
            row[:6] = unit @ by_load
            take(error, covariance, row, cable.length - length, c.length_noise, innovations)
        if tension > 0.0:
            axes = axes_across(unit)
            turns, miss_n = (tension / length) * axes @ by_load, axes @ force[i]
            for k in range(2):
                row[:6] = turns[k]
                take(error, covariance, row, miss_n[k], c.force_noise, innovations)
    row[:] = 0.0
    for k in range(3 if len(imu) else 0):
        row[8 + k], row[9 + k] = 0.0, 1.0
        take(error, covariance, row, imu[3 + k] - motion.omega[k], c.gyro_noise, innovations)
    shift(motion, error[:6])
    motion.velocity += error[6:9]
    motion.omega += error[9:]


@compiled()
def axes_across(unit):
    """Two axes across a direction, (2, 3)."""
    axes = np.zeros((2, 3))
    axes[0, np.abs(unit).argmin()] = 1.0
    axes[0] -= (axes[0] @ unit) * unit
    axes[0] /= np.linalg.norm(axes[0])
    axes[1] = np.cross(unit, axes[0])
    return axes


@compiled()
def take(error, covariance, row, miss, variance, innovations):
    """Take one measured number into error and covariance; `miss`: measured minus predicted."""
    spread = covariance @ row
    size = row @ spread + variance
    innovation = miss - row @ error
    innovations[0] += innovation * innovation / size
    innovations[1] += 1.0
    error += innovation / size * spread
    covariance -= np.outer(spread, spread) / size
