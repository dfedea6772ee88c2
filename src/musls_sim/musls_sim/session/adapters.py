"""Adapters from the levels of controllers down to rotor speeds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_control.estimate import Estimate
from musls_control.geometric_attitude import GeometricAttitude
from musls_control.mixing import RotorMixer
from musls_control.px4_cascade.allocation import rotor_lag_s
from musls_description.system import RigSystem

Array = NDArray[np.float64]

BANDWIDTH = 0.3
"""Natural frequency of roll and pitch times the time constant of the rotors; 12 rad/s for an x500.
Higher ones let the lag of the rotors eat up the damping."""


class ThrustMomentToRotors:
    """Mixes thrust and moment of each drone to rotor speeds through the true rotor geometry."""

    def __init__(self, system: RigSystem) -> None:
        """Prepare the mixer.

        Raises:
            ConfigError: The rotors cannot produce roll, pitch, yaw and thrust independently.
        """
        self._mixer = RotorMixer(system.drones)
        self._thrust_n = np.zeros(system.n_drones)
        self._moment_n_m = np.zeros((system.n_drones, 3))

    def __call__(self, commands: Array, rotor_speed_rad_s: Array) -> None:
        """Write the rotor speeds.

        Args:
            commands: Thrust [N] and moment [N m, FLU] of each drone, (n, 4).
            rotor_speed_rad_s: Result, (n, n_rotors).
        """
        self._thrust_n[:], self._moment_n_m[:] = commands[:, 0], commands[:, 1:4]
        self._mixer.step(self._thrust_n, self._moment_n_m, rotor_speed_rad_s)


class ForcesToRotors:
    """Turns the drones so that their thrust gives the wanted forces, then mixes the rotors."""

    def __init__(self, system: RigSystem) -> None:
        """Prepare attitude control and mixer.

        Raises:
            ConfigError: The rotors cannot produce roll, pitch, yaw and thrust independently.
        """
        lag_s = max(rotor_lag_s(drone) for drone in system.drones)
        tilting = BANDWIDTH / lag_s
        self._attitude = GeometricAttitude(
            [drone.inertia_kg_m2 for drone in system.drones], (tilting, tilting, tilting / 3.0)
        )
        self._mixer = RotorMixer(system.drones)
        n = system.n_drones
        self._force_n, self._yaw_rad = np.zeros((n, 3)), np.zeros(n)
        self._thrust_n, self._moment_n_m = np.zeros(n), np.zeros((n, 3))

    def __call__(
        self, commands: Array, yaw_rad: Array, estimate: Estimate, rotor_speed_rad_s: Array
    ) -> None:
        """Write the rotor speeds.

        Args:
            commands: Force of each drone's rotors, world ENU, (n, 3) [N], or with the drone's yaw
                as fourth column, (n, 4), or with a moment that is added, FLU [N m], (n, 7).
            yaw_rad: Yaws of the drones where the commands have none, (n,).
            estimate: Measured attitudes and rates.
            rotor_speed_rad_s: Result, (n, n_rotors).
        """
        self._force_n[:] = commands[:, 0:3]
        self._yaw_rad[:] = commands[:, 3] if commands.shape[1] > 3 else yaw_rad
        drones = estimate.drones
        self._attitude.step(
            self._force_n,
            self._yaw_rad,
            drones.orientation_wxyz,
            drones.omega_body_rad_s,
            self._thrust_n,
            self._moment_n_m,
        )
        if commands.shape[1] == 7:
            self._moment_n_m += commands[:, 4:7]
        self._mixer.step(self._thrust_n, self._moment_n_m, rotor_speed_rad_s)
