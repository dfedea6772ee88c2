"""Quasi-static estimate of the load: where it would hang at rest below the accelerating drones.

The load's potential energy in the apparent gravity g - a is least, with a the drones' mean
acceleration and the cables as stiff springs that only pull. Any number of drones and attachments;
what has no influence on the energy, such as the yaw below one drone, stays as it was.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from musls_control.estimate import MOTION, Estimate
from musls_control.estimators import DroneSensors, EstimatorSetup, LoadEstimator
from musls_control.estimators.taut import (
    across,
    add_wrench,
    cable_records,
    chord,
    chord_slope,
    load_record,
    matrix_of,
    shift,
    wrench_slope,
)
from musls_description.config.schema import NonNegative, spec
from musls_description.numerics.arrays import Records
from musls_description.numerics.compiled import compiled

STRETCH_M = 5e-4
"""Stretch of cables that carry the load alone, each its share: small enough to count as
inextensible."""

FIRST_STEPS = 200
STEPS = 2
"""Newton's steps at the start and in each period, which begins at the last one's solution."""

LARGEST_STEP = 0.1
"""Largest Newton step [m, rad]."""


@spec
class QuasiStaticSpec:
    """Load at rest below the drones, from their positions and accelerations.

    Attributes:
        kind: "quasi_static".
        lag_s: Time constant of the low-pass on the drones' mean acceleration.
    """

    kind: Literal["quasi_static"] = "quasi_static"
    lag_s: NonNegative = 0.2

    def build(self, setup: EstimatorSetup) -> QuasiStatic:
        """Make the estimator."""
        estimator = QuasiStatic(self.lag_s)
        estimator.prepare(setup)
        return estimator


class QuasiStatic(LoadEstimator):
    """Load where it would hang at rest below the drones; velocities are the rate of that place."""

    def __init__(self, lag_s: float = 0.2) -> None:
        self._lag_s = lag_s

    def prepare(self, setup: EstimatorSetup) -> None:
        """Make the tables."""
        super().prepare(setup)
        self._cables = cable_records(setup.system)
        self._load = load_record(setup.system, setup.gravity_m_s2, setup.period_s)
        self._share = setup.period_s / (self._lag_s + setup.period_s)
        self._motion = np.zeros(1, MOTION)
        self._standing: Records | None = None

    def start(self, sensors: DroneSensors, estimate: Estimate, *, on_ground: bool) -> None:
        """Find where the load hangs; on the ground it stays where it stands until it is lifted."""
        self._motion[:] = estimate.records[:1]
        self._standing = self._motion.copy() if on_ground else None
        self._motion["acceleration"] = sensors.drones.acceleration_enu_m_s2.mean(axis=0)
        self._hang(sensors, estimate, FIRST_STEPS)

    def step(self, sensors: DroneSensors, estimate: Estimate) -> None:
        """Follow the drones."""
        mean = sensors.drones.acceleration_enu_m_s2.mean(axis=0)
        acceleration = self._motion["acceleration"]
        acceleration += self._share * (mean - acceleration)
        self._hang(sensors, estimate, STEPS)

    def _hang(self, sensors: DroneSensors, estimate: Estimate, steps: int) -> None:
        tension = hang(self._motion[0], sensors.drones.records, self._cables, self._load, steps)
        standing = self._standing
        if standing is not None and self._motion["position"][0, 2] < standing["position"][0, 2]:
            estimate.records[:1] = standing
            estimate.tension_n[:] = 0.0
        else:
            estimate.records[:1] = self._motion
            estimate.tension_n[:] = tension[:, None]


@compiled()
def hang(motion, drones, cables, load, steps):
    """Bring a load to rest below the drones and return its cables' tensions, (n,)."""
    n = len(cables)
    c = load[0]
    stiffness = c.mass * c.gravity / (n * STRETCH_M)
    pull = -c.mass * motion.acceleration
    pull[2] -= c.mass * c.gravity
    tension = np.zeros(n)
    motion.velocity[:] = 0.0
    motion.omega[:] = 0.0
    twist = np.zeros(6)
    for k in range(steps + 1):
        rotation = matrix_of(motion.attitude)
        residual = np.zeros(6)
        follows = np.zeros(6)
        slope = np.zeros((6, 6))
        residual[:3] = pull
        for i in range(n):
            cable = cables[i]
            reach, upper_velocity = chord(motion, drones[i], cable)
            length = np.linalg.norm(reach)
            unit = reach / length
            tension[i] = max(0.0, stiffness * (length - cable.length))
            if tension[i] > 0.0:
                force = tension[i] * unit
                by_chord = tension[i] * across(unit, length) + stiffness * np.outer(unit, unit)
                add_wrench(residual, force, rotation, cable)
                add_wrench(follows, by_chord @ upper_velocity, rotation, cable)
                by_load = by_chord @ chord_slope(rotation, cable)
                slope += wrench_slope(force, by_load, rotation, cable)
        for j in range(6):  # what has no influence stays
            slope[j, j] -= 1e-6 * stiffness
        if k == steps:
            twist = np.linalg.solve(slope, -follows)
            break
        step = np.linalg.solve(slope, -residual)
        largest = np.abs(step).max()
        if largest > LARGEST_STEP:
            step *= LARGEST_STEP / largest
        shift(motion, step)
    motion.velocity[:] = twist[:3]
    motion.omega[:] = twist[3:]
    return tension
