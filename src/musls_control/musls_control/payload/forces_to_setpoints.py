"""Forces of drones as acceleration set-points of an autopilot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import DroneSetpoints
from musls_control.estimate import BodyMotion
from musls_control.payload.actuation import ask_autopilot
from musls_description.rotations import rotate
from musls_description.system import RigSystem

Array = NDArray[np.float64]

SMOOTHING_S = 0.2
"""Of motor commands and set-points, before the hover thrust is taken from them."""


class ForcesToSetpoints:
    """Turns wanted forces into the acceleration set-points that make an autopilot exert them.

    PX4 (PositionControl::_accelerationControl, MPC_ACC_DECOUPLE) points the thrust of an
    acceleration set-point (ax, ay, az) along (ax, ay, g), and makes its vertical part
    (az + g) / g times the hover thrust h. A thrust vector F, of which the rotors give |F| at the
    collective command c, thus asks for

        ax = g Fx / Fz,   ay = g Fy / Fz,   az = g (c Fz / (|F| h) - 1).

    The hover thrust is what PX4's estimator says at the time, and PX4 does not tell it. It follows
    from what the motors were commanded and from the set-points of that time: both are smoothed
    alike, and h is their quotient. That also makes up for errors of the thrust curve.
    """

    def __init__(self, system: RigSystem, setpoint: DroneSetpoints, period_s: float) -> None:
        """Read the rotors.

        Args:
            system: The drones.
            setpoint: Is written.
            period_s: Control period.
        """
        self._told = setpoint.data
        self._table = np.array(
            [
                [
                    sum(rotor.thrust_coefficient_n_s2 for rotor in drone.rotors),
                    drone.rotors[0].speed_min_rad_s,
                    drone.rotors[0].speed_max_rad_s,
                ]
                for drone in system.drones
            ]
        )
        # Smoothed motor command, smoothed quotient of command and hover thrust, the present one;
        # then the table and the share of a new sample.
        self._rows = np.zeros((system.n_drones, 7))
        self._rows[:, 3:6] = self._table
        self._rows[:, 6] = period_s / (period_s + SMOOTHING_S)
        self._hover = self._rows[:, :3]

    @property
    def hover_thrust(self) -> Array:
        """Collective command that the autopilots take for their hover, (n,)."""
        thrust: Array = self._hover[:, 0] / self._hover[:, 1]
        return thrust

    def start(self, rotor_speed_rad_s: Array, drones: BodyMotion) -> None:
        """Take over in flight: the present command is about that of hover at the present tilt.

        Args:
            rotor_speed_rad_s: Present speeds of the rotors, (n, n_rotors).
            drones: Measured motion.
        """
        up = rotate(drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
        slowest, fastest = self._table[:, 1], self._table[:, 2]
        command = (rotor_speed_rad_s.mean(axis=1) - slowest) / (fastest - slowest)
        self._hover[:, 0] = np.maximum(command, 0.05)
        self._hover[:, 1] = self._hover[:, 2] = 1.0 / np.maximum(up, 0.5)

    def __call__(self, commands: Array, throttle: Array, drones: BodyMotion) -> None:
        """Write the set-points.

        Args:
            commands: Force of each drone's rotors, world ENU, (n, 3) [N], or with the drone's yaw
                as fourth column, (n, 4) or more.
            throttle: Motor commands of the last period, (n, n_rotors).
            drones: Measured motion.
        """
        ask_autopilot(self._told, commands, throttle, self._rows)
