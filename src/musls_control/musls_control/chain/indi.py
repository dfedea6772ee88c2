"""Incremental control (INDI): what the model leaves out is measured, and commanded against.

E. Tal and S. Karaman, "Accurate tracking of aggressive quadrotor trajectories using incremental
nonlinear dynamic inversion and differential flatness", IEEE TCST 2021; S. Sun et al., "Agile and
cooperative aerial manipulation of a cable-suspended load", Science Robotics 2025, with the force of
the cable. From accelerometer, gyro and rotor speeds, with the rotors' force T z and moment M_r,

    f = m a - T z,      tau = J w' + w x J w - M_r

are the force of cable, weight and air on a drone and their moment. A controller of forces counts on
f_c and tau_c. Both are smoothed by the same filter H, a Butterworth of second order, and the drone
gets

    F = F_d - H (f - f_c),      M = M_d - H (tau - tau_c),

with the controller's force F_d and the moment M_d of the geometric attitude control. Where the
controller counts on f_c = m a_d - F_d at once, this is the incremental law F = m a_d - H f of the
papers but for f_c - H f_c. A cable, though, pulls with the thrust, which is late: f_c is delayed as
the thrust is, sideways by the lag of the attitude, upwards by that of the rotors.

The moment in yaw is left as it is, as in the public code of arXiv 2508.01522: a taut cable whose
twist is locked holds the yaw of its drone, so it answers each moment with the opposite one, and
feedback of that grows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from musls_control.chain.attitude import GeometricAttitude
from musls_control.estimate import BodyMotion
from musls_control.px4.allocation import rotor_lag_s
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    cross,
    elementwise,
    increase,
    put,
    rotate,
    rotate_by,
    scale,
    sub,
)
from musls_description.system.drone import Drone, wrench_of_thrusts

CUT_OFF_HZ = 8.0
"""Of the filter; its delay is 0.225 / CUT_OFF_HZ, 28 ms."""

SMOOTHED = np.dtype([("value", float, 3), ("past", float, (2, 3))])
"""A filtered vector and the filter's memory (direct form II, transposed)."""

SENSED = np.dtype(
    [
        ("mass", float),
        ("inertia", float, (3, 3)),
        ("rate", float, 3),  # body rate of the period before
        ("counted", float, 3),  # f_c, late as the thrust is
        ("share", float, 3),  # of a new sample in it
        ("begun", float),  # 0 before the first sample
        ("force", SMOOTHED),  # f - f_c, world [N]
        ("moment", SMOOTHED),  # tau - tau_c, body [N m]
    ]
)
"""Memory of an incremental controller for a drone."""


class Incremental:
    """Measured and modelled forces and moments of all drones.

    Attributes:
        drones: (n,) records of `SENSED`.
    """

    def __init__(self, drones: Sequence[Drone], period_s: float, turn_s: float) -> None:
        """Prepare; `turn_s` is the lag with which the drones turn their thrust."""
        self.drones: Records = np.zeros(len(drones), SENSED)
        self.drones["mass"] = [drone.mass_kg for drone in drones]
        self.drones["inertia"] = [drone.inertia_kg_m2 for drone in drones]
        thrust = [[rotor.thrust_coefficient_n_s2 for rotor in drone.rotors] for drone in drones]
        self._wrench = np.array([wrench_of_thrusts(drone) for drone in drones])
        self._wrench *= np.array(thrust)[:, None, :]
        numerator, denominator = scipy.signal.butter(2, CUT_OFF_HZ, fs=1.0 / period_s)
        self._filter = np.array([*numerator, *denominator[1:]])
        self._period_s = period_s
        for record, drone in zip(self.drones, drones, strict=True):
            late = np.array([turn_s, turn_s, rotor_lag_s(drone)])
            record["share"] = period_s / (period_s + late)

    def start(self, motion: BodyMotion) -> None:
        """Begin as if everything were as counted on."""
        self.drones["rate"] = motion.omega_body_rad_s
        for name in ("force", "moment"):
            self.drones[name] = 0.0
        self.drones["begun"] = 0.0

    def correct(
        self, attitude: GeometricAttitude, commands: Array, motion: BodyMotion, speeds: Array
    ) -> None:
        """Correct the forces and moments in `attitude.drones` by what was measured.

        Commands are those of `ControlLevel.FORCES`, (n, 3 to 10); speeds are the rotors' present
        ones, (n, n_rotors) [rad/s]. Without columns of counted forces the forces stay as they are.
        """
        measure(
            self.drones, motion.records, speeds**2, self._wrench, commands, self._filter,
            self._period_s,
        )  # fmt: skip
        if commands.shape[1] == 10:
            attitude.drones["force"] -= self.drones["force"]["value"]


@compiled()
def measure(drones, bodies, speeds2, wrenches, commands, coefficients, period):
    """Filter the part of each drone's measured force and moment that the model does not explain."""
    for i in range(len(drones)):
        drone, body = drones[i], bodies[i]
        wrench = wrenches[i] @ speeds2[i]
        omega = (body.omega[0], body.omega[1], body.omega[2])
        turning = scale(1.0 / period, sub(omega, drone.rate))
        put(drone.rate, omega)
        gyroscopic = cross(omega, rotate(drone.inertia, omega))
        moment = add(rotate(drone.inertia, turning), gyroscopic)
        moment = sub(moment, (wrench[1], wrench[2], wrench[3]))
        if commands.shape[1] > 4:
            moment = add(moment, commands[i, 4:7])
        smooth(drone.moment, (moment[0], moment[1], 0.0), coefficients)  # not in yaw, see above
        if commands.shape[1] > 7:
            force = scale(drone.mass, body.acceleration)
            force = sub(force, rotate_by(body.attitude, (0.0, 0.0, wrench[0])))
            counted = commands[i, 7:10]
            if drone.begun == 0.0:
                put(drone.counted, counted)
                drone.begun = 1.0
            increase(drone.counted, elementwise(drone.share, sub(counted, drone.counted)))
            smooth(drone.force, sub(force, drone.counted), coefficients)


@compiled()
def smooth(signal, sample, coefficients):
    """Advance a filter by a sample."""
    b0, b1, b2, a1, a2 = coefficients
    for k in range(3):
        x = sample[k]
        y = b0 * x + signal.past[0, k]
        signal.past[0, k] = b1 * x - a1 * y + signal.past[1, k]
        signal.past[1, k] = b2 * x - a2 * y
        signal.value[k] = y
