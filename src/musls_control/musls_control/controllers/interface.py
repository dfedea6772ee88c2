"""What a controller is: reference and estimate in, commands of one level out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from musls_control.estimate import Estimate
from musls_control.formation import Cone
from musls_control.reference import LoadReference
from musls_description.system import SlungLoadSystem

Array = NDArray[np.float64]


class ControlLevel(str, Enum):
    """What a controller puts out; adapters complete the chain down to the rotors.

    Attributes:
        DRONE_SETPOINTS: Position and yaw of each drone, (n, 4) [m, rad], or all columns of
            `DroneSetpoints`, (n, 12); the autopilot flies to them.
        FORCES: Force of each drone's rotors, world ENU, (n, 3) [N], or with the drone's yaw as
            fourth column, (n, 4); an attitude controller turns the drones there. Three more
            columns, (n, 7), are a moment in the drone's frame that is added [N m].
        AUTOPILOT_FORCES: The same, but the autopilot turns the drones there: the forces reach it
            as acceleration set-points, built-in and real PX4s alike. Added moments are left out.
        THRUST_MOMENT: Thrust along the body's z axis and moment in the body's frame of each
            drone, (n, 4) [N, N m]; the rotors are mixed for them.
        ROTOR_SPEEDS: Commanded rotor speeds, (n, n_rotors) [rad/s].
        IDEAL_THRUST_MOMENT: As THRUST_MOMENT, but acting on the bodies at once, without rotors.
    """

    DRONE_SETPOINTS = "drone_setpoints"
    FORCES = "forces"
    AUTOPILOT_FORCES = "autopilot_forces"
    THRUST_MOMENT = "thrust_moment"
    ROTOR_SPEEDS = "rotor_speeds"
    IDEAL_THRUST_MOMENT = "ideal_thrust_moment"


@dataclass(frozen=True)
class ControlSetup:
    """What a controller may know before the flight.

    Attributes:
        system: Masses, inertias, attachments, cables.
        formation: Places of the drones around the load.
        gravity_m_s2: Gravity.
        period_s: Time between two calls of `Controller.step`.
        rods: Whether rigid rods join load and drones to one body (`cable_model: rigid_rods`).
    """

    system: SlungLoadSystem
    formation: Cone
    gravity_m_s2: float
    period_s: float
    rods: bool = False


class Controller(ABC):
    """Base of all controllers, ours and users' own.

    A controller flies while the load hangs in the air: from the end of the lift to the beginning
    of the lowering, and all the time in a flight that starts in the air. Before and after that the
    formation flies the drones by their set-points.

    Attributes:
        level: What `step` returns, a `ControlLevel` or its text.
        setup: What is known of the system, from `prepare` on.

    A controller that reports something about the flight has a list
    `happened: list[tuple[str, str]]` and appends a kind (one word) and a text to it. Each entry
    becomes an event of the flight, and the list is emptied.
    """

    level: ClassVar[ControlLevel | str]
    setup: ControlSetup

    def prepare(self, setup: ControlSetup) -> None:
        """Store what is known of the system; called once, before the flight.

        A class that overrides this method must first call `super().prepare(setup)`.
        """
        self.setup = setup

    def start(self, time_s: float, estimate: Estimate) -> None:  # noqa: B027 (optional)
        """Begin to control; called before the first `step` and again after each pause."""

    @abstractmethod
    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Return the commands for the coming control period, see `ControlLevel` for the shapes.

        Args:
            time_s: Simulated time.
            reference: Set-point of the load at this time, with derivatives.
            estimate: Measured motion of load and drones, and tensions.
        """
