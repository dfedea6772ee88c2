"""Forces on load and drones that a plan does not know: a heavier load, wind, weak rotors.

Momentum observers (A. De Luca, R. Mattone, "Sensorless robot collision detection and hybrid
force/motion control", IEEE ICRA 2005; T. Tomic, C. Ott, S. Haddadin, "External wrench estimation,
collision detection, and reflex reaction for flying robots", IEEE T-RO 2017), one for each body:

    e^ = K (m v - int (F + m g + c + e^) dt),

so e^ is the force e that is missing, behind a low-pass of K. F is the thrust that was commanded,
behind the lag of the rotors, along the measured z axis of the drone; c the planned pull of the
cables. Neither accelerations nor tensions have to be measured. What the cables really pull is not
known, therefore: with s the direction of a cable from drone to load, d the disturbances and h the
error of the planned tension,

    e_i = d_i + h_i s_i,      e_load = d_load - sum h_i s_i,

of which the smallest d are taken, by the masses of the bodies (least squares). Any of them makes
the model move as the system does, so that no error remains in a steady flight; which body is to
blame cannot be told along a cable.

Velocities that are measured late by a time L look like a force K L m a: faster observers make
accelerated flight worse.
"""

from __future__ import annotations

import numpy as np

from musls_control.controllers.payload.model import PayloadModel
from musls_control.estimate import Estimate
from musls_control.px4.allocation import rotor_lag_s
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import rotate
from musls_description.system.slung_system import SlungLoadSystem

MOST_SHARE = 0.5
"""Largest disturbance over a body's weight: beyond it, something else holds the body."""


class DisturbanceObserver:
    """Observer of the forces on load and drones that the model lacks; equations in the module.

    Attributes:
        missing_n: Missing forces e^ of load (row 0) and drones, world, (1 + n, 3).
    """

    def __init__(self, system: SlungLoadSystem, model: PayloadModel, bandwidth_1_s: float) -> None:
        self._mass_kg = np.r_[model.mass_kg, model.drone_mass_kg][:, None]
        self._weight_n = self._mass_kg * [0.0, 0.0, -model.gravity_m_s2]
        self._bandwidth_1_s = bandwidth_1_s
        self._lags_s = np.array([rotor_lag_s(drone) for drone in system.drones])

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Begin with nothing missing."""
        self._momentum = self._mass_kg * estimate.velocity_enu_m_s
        self.missing_n, self._force_n = np.zeros((2, *self._momentum.shape))
        self._thrust_n: Array | None = None
        self._time_s = time_s

    def step(self, time_s: float, asked_n: Array, pull_n: Array, estimate: Estimate) -> None:
        """Look at the motion, and count on what acts until the next call, whenever that is.

        `asked_n`: forces that the drones are to exert, `pull_n`: of the cables on the drones as
        planned, both (n, 3). On a busy ROS graph calls are missed, so their times count.
        """
        since_s, self._time_s = time_s - self._time_s, time_s
        self._momentum += since_s * self._force_n
        momentum = self._mass_kg * estimate.velocity_enu_m_s
        self.missing_n = self._bandwidth_1_s * (momentum - self._momentum)
        up = rotate(estimate.drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))
        thrust_n = np.maximum(np.sum(asked_n * up, axis=1), 0.0)
        before_n = thrust_n if self._thrust_n is None else self._thrust_n
        self._thrust_n = before_n + since_s / (since_s + self._lags_s) * (thrust_n - before_n)
        self._force_n = self._weight_n + self.missing_n
        self._force_n[0] -= pull_n.sum(axis=0)
        self._force_n[1:] += pull_n + self._thrust_n[:, None] * up

    def disturbances_n(self, directions: Array) -> Array:
        """Disturbances of load and drones, (1 + n, 3), with cables along `directions`, (n, 3)."""
        n = len(directions)
        effect = np.zeros((1 + n, 3, n))
        effect[0] = -directions.T
        effect[1 + np.arange(n), :, np.arange(n)] = directions
        by_mass = 1.0 / self._mass_kg
        rows = (by_mass[..., None] * effect).reshape(-1, n)
        wrong_n = np.linalg.lstsq(rows, (by_mass * self.missing_n).ravel())[0]
        found: Array = self.missing_n - effect @ wrong_n
        size = np.linalg.norm(found, axis=1) / np.linalg.norm(self._weight_n, axis=1)
        return np.asarray(found / np.maximum(size / MOST_SHARE, 1.0)[:, None])
