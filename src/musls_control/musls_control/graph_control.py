"""A controller that flies in a ROS graph: measured motion in, acceleration set-points out.

Logic of the `formation` node that is tested without ROS. The controller sees what is published of
load and drones; PX4s see its forces as acceleration set-points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import DroneSetpoints
from musls_control.controllers.interface import Controller
from musls_control.heard_motion import HeardMotion
from musls_control.payload.forces_to_setpoints import ForcesToSetpoints
from musls_control.phases import GROUND_PHASES
from musls_control.reference import LoadReference
from musls_description.system import SlungLoadSystem

Array = NDArray[np.float64]

STEP_S = 0.02
"""Time between two messages of /clock, and two steps."""


class GraphControl(HeardMotion):
    """Runs a controller of level `autopilot_forces` on what was heard.

    Attributes:
        flies: Whether the controller has taken over.
    """

    def __init__(self, controller: Controller, system: SlungLoadSystem, period_s: float) -> None:
        """Prepare.

        Args:
            controller: Level `autopilot_forces`, built for this period.
            system: What is flown.
            period_s: Time between two steps.
        """
        super().__init__(system.n_drones, system.n_rotors)
        self._controller, self.flies = controller, False
        self._setpoints = DroneSetpoints.unset(system.n_drones)
        self._ask = ForcesToSetpoints(system, self._setpoints, period_s)
        limits = [(d.rotors[0].speed_min_rad_s, d.rotors[0].speed_max_rad_s) for d in system.drones]
        self._slowest, self._fastest = np.array(limits).T[:, :, None]
        if type(controller).__module__.startswith(__package__):
            self._compile(system)

    def _compile(self, system: SlungLoadSystem) -> None:
        """Ask once before anything flies: the first call of ours may compile for half a minute."""
        places, speeds = self.estimate.position_enu_m[1:], self.speeds_rad_s
        for place, root, cable in zip(
            places, system.load.cable_attachments_m, system.cables, strict=True
        ):
            place[:] = np.add(root, [0.0, 0.0, cable.length_m])
        speeds[:] = 0.5 * (self._slowest + self._fastest)
        self.step(0.0, LoadReference(np.zeros((5, 4))))
        self.rest()
        places[:], speeds[:] = 0.0, 0.0

    def rest(self) -> None:
        """Somebody else flies; the next step takes over anew."""
        self.flies = False

    def step(self, time_s: float, reference: LoadReference) -> tuple[Array, Array]:
        """Ask for accelerations.

        Args:
            time_s: Now.
            reference: What is asked of the load.

        Returns:
            Acceleration set-points (n, 3) [m/s2, ENU] and yaws (n,) of the drones; not to be kept.
        """
        estimate = self.estimate
        self.turn_rates()
        if not self.flies:
            self._ask.start(self.speeds_rad_s, estimate.drones)
            self._controller.start(time_s, estimate)
            self.flies = True
        forces = self._controller.step(time_s, reference, estimate)
        throttle = (self.speeds_rad_s - self._slowest) / (self._fastest - self._slowest)
        self._ask(forces, throttle, estimate.drones)
        return self._setpoints.data[:, 6:9], self._setpoints.data[:, 9]


def takes_part(stage: str) -> bool:
    """Whether a controller flies in a stage: not while the load stands or comes or goes."""
    return stage not in GROUND_PHASES
