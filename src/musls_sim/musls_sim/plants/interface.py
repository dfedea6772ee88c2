"""What every plant offers: a state of contiguous arrays and a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import MEASUREMENT_COLUMNS
from musls_description.errors import MuslsError
from musls_description.system import SlungLoadSystem

Array = NDArray[np.float64]


class SimulationDiverged(MuslsError):  # noqa: N818 (the name says what happened)
    """The state became non-finite or left all physical bounds."""


@dataclass(frozen=True)
class PlantState:
    """State after the last step. Row 0 is the load, row i drone i. The plant writes in place.

    The motion of all bodies is one contiguous array with the columns of `DroneMeasurements`; the
    named fields are views into it.

    Attributes:
        motion: Memory behind the views, (1 + n, 16).
        rotor_speed_rad_s: (n, n_rotors).
        cable_force_n: Force in each cable at the load and at the drone, in the frame of the link
            there: x is the tension (negative: the chain pushes), y and z the force across,
            (n, 2, 3).
        tension_peak_n: Largest tension of each cable within the last step, either end, (n,).
    """

    motion: Array
    rotor_speed_rad_s: Array
    cable_force_n: Array
    tension_peak_n: Array

    @classmethod
    def zeros(cls, system: SlungLoadSystem) -> PlantState:
        """State with everything zero and upright."""
        n = system.n_drones
        motion = np.zeros((1 + n, MEASUREMENT_COLUMNS))
        motion[:, 6] = 1.0
        rotors = np.zeros((n, len(system.drones[0].rotors)))
        return cls(motion, rotors, np.zeros((n, 2, 3)), np.zeros(n))

    @property
    def position_enu_m(self) -> Array:
        """Centres of mass, world, (1 + n, 3)."""
        return self.motion[:, 0:3]

    @property
    def velocity_enu_m_s(self) -> Array:
        """World, (1 + n, 3)."""
        return self.motion[:, 3:6]

    @property
    def orientation(self) -> Array:
        """Quaternions [w, x, y, z], body FLU to world, (1 + n, 4)."""
        return self.motion[:, 6:10]

    @property
    def omega_body_rad_s(self) -> Array:
        """Body frame, (1 + n, 3)."""
        return self.motion[:, 10:13]

    @property
    def acceleration_enu_m_s2(self) -> Array:
        """Mean over the last step, world, (1 + n, 3)."""
        return self.motion[:, 13:16]

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
