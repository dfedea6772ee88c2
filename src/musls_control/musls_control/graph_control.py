"""A controller that flies in a ROS graph: measured motion in, acceleration set-points out.

Logic of the `formation` node that is tested without ROS. The controller sees what is published of
load and drones; PX4s see its forces as acceleration set-points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import DroneSetpoints
from musls_control.controllers.interface import Controller
from musls_control.estimate import Estimate
from musls_control.payload.forces_to_setpoints import ForcesToSetpoints
from musls_control.phases import GROUND_PHASES
from musls_control.reference import LoadReference
from musls_description.rotations import rotate
from musls_description.system import SlungLoadSystem

Array = NDArray[np.float64]

STEP_S = 0.02
"""Time between two messages of /clock, and two steps."""

_SAME_S = 1e-4
"""Two stamps that differ by less are the same moment."""


class GraphControl:
    """Runs a controller of level `autopilot_forces` on what was heard.

    Attributes:
        estimate: What is known of load and drones, row 0 the load.
        flies: Whether the controller has taken over.
    """

    def __init__(self, controller: Controller, system: SlungLoadSystem, period_s: float) -> None:
        """Prepare.

        Args:
            controller: Level `autopilot_forces`, built for this period.
            system: What is flown.
            period_s: Time between two steps.
        """
        n = system.n_drones
        self._controller, self.flies = controller, False
        self.estimate = Estimate.zeros(n)
        self._setpoints = DroneSetpoints.unset(n)
        self._ask = ForcesToSetpoints(system, self._setpoints, period_s)
        self._omega_enu_rad_s = np.zeros((1 + n, 3))
        self._speeds_rad_s = np.zeros((n, system.n_rotors))
        limits = [(d.rotors[0].speed_min_rad_s, d.rotors[0].speed_max_rad_s) for d in system.drones]
        self._slowest, self._fastest = np.array(limits).T[:, :, None]
        self._heard_s = np.full((3, 1 + n), -np.inf)
        self._heard_s[2, 0] = np.inf  # a load has no rotors

    def on_pose(
        self, body: int, time_s: float, position: Sequence[float], q: Sequence[float]
    ) -> None:
        """Take a pose of body 0 (load) to n [m, ENU; unit quaternion w, x, y, z]."""
        self._heard_s[0, body] = time_s
        self.estimate.position_enu_m[body] = position
        self.estimate.orientation_wxyz[body] = q

    def on_twist(
        self, body: int, time_s: float, velocity: Sequence[float], omega_enu: Sequence[float]
    ) -> None:
        """Take a twist, both parts seen in the world [m/s, rad/s]."""
        self._heard_s[1, body] = time_s
        self.estimate.velocity_enu_m_s[body] = velocity
        self._omega_enu_rad_s[body] = omega_enu

    def on_rotors(self, body: int, time_s: float, speed_rad_s: Sequence[float]) -> None:
        """Take the rotor speeds of a drone, body 1 to n."""
        self._heard_s[2, body] = time_s
        self._speeds_rad_s[body - 1] = speed_rad_s

    def knows(self, time_s: float) -> bool:
        """Whether everything was heard up to a time."""
        return bool((self._heard_s >= time_s - _SAME_S).all())

    def age_s(self, time_s: float) -> float:
        """Age of the oldest thing that is known; infinite before all was heard."""
        return time_s - float(self._heard_s.min())

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
        inverse = estimate.orientation_wxyz * [1.0, -1.0, -1.0, -1.0]
        estimate.omega_body_rad_s[:] = rotate(inverse, self._omega_enu_rad_s)
        if not self.flies:
            self._ask.start(self._speeds_rad_s, estimate.drones)
            self._controller.start(time_s, estimate)
            self.flies = True
        forces = self._controller.step(time_s, reference, estimate)
        throttle = (self._speeds_rad_s - self._slowest) / (self._fastest - self._slowest)
        self._ask(forces, throttle, estimate.drones)
        return self._setpoints.data[:, 6:9], self._setpoints.data[:, 9]


def takes_part(stage: str) -> bool:
    """Whether a controller flies in a stage: not while the load stands or comes or goes."""
    return stage not in GROUND_PHASES
