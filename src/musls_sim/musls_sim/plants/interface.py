"""What every plant offers: a state of contiguous arrays and a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import MuslsError
from musls_description.system import SlungLoadSystem

Array = NDArray[np.float64]


class SimulationDiverged(MuslsError):
    """The state became non-finite or left all physical bounds."""


@dataclass(frozen=True)
class PlantState:
    """State after the last step. Row 0 is the load, row i drone i. The plant writes in place.

    Attributes:
        position_enu_m: Centres of mass, world, (1 + n, 3).
        orientation: Quaternions [w, x, y, z], body FLU to world, (1 + n, 4).
        velocity_enu_m_s: World, (1 + n, 3).
        omega_body_rad_s: Body frame, (1 + n, 3).
        acceleration_enu_m_s2: Mean over the last step, world, (1 + n, 3).
        rotor_speed_rad_s: (n, n_rotors).
        cable_force_n: Force in each cable at the load and at the drone, in the frame of the link
            there: x is the tension (negative: the chain pushes), y and z the force across,
            (n, 2, 3).
        tension_peak_n: Largest tension of each cable within the last step, either end, (n,).
    """

    position_enu_m: Array
    orientation: Array
    velocity_enu_m_s: Array
    omega_body_rad_s: Array
    acceleration_enu_m_s2: Array
    rotor_speed_rad_s: Array
    cable_force_n: Array
    tension_peak_n: Array

    @classmethod
    def zeros(cls, system: SlungLoadSystem) -> PlantState:
        """State with everything zero and upright."""
        n = system.n_drones
        orientation = np.zeros((1 + n, 4))
        orientation[:, 0] = 1.0
        vectors = [np.zeros((1 + n, 3)) for _ in range(4)]
        return cls(
            vectors[0], orientation, vectors[1], vectors[2], vectors[3],
            np.zeros((n, len(system.drones[0].rotors))), np.zeros((n, 2, 3)), np.zeros(n),
        )

    @property
    def tension_n(self) -> Array:
        """Tension of each cable at the load and at the drone, (n, 2) [N]."""
        return self.cable_force_n[:, :, 0]


class Plant(Protocol):
    """Holds the physics of one system."""

    system: SlungLoadSystem
    state: PlantState
    time_s: float
    period_s: float
    """Time that one call of `step` advances, the control period."""
    physics_step_s: float
    """Time step of the physics; an integer number of them makes a period."""

    def step(self, rotor_command_rad_s: Array, wind_enu_m_s: Array) -> None:
        """Advance one period with rotor speeds commanded and wind held.

        Args:
            rotor_command_rad_s: (n_drones, n_rotors).
            wind_enu_m_s: Air velocity, world, (3,).

        Raises:
            SimulationDiverged: The state is not physical any more.
        """

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Joints of cable `index` (from 0) from the load to the drone, (links + 1, 3)."""
