"""Flights through a ROS graph, without ROS: what is heard, and the controller that flies in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from musls_control.autopilot import DroneSetpoints
from musls_control.brief.brief import Brief
from musls_control.brief.flown_by import contingency_of, controller_of
from musls_control.chain import ForcesToSetpoints
from musls_control.controllers import Controller, ControlLevel, level_of, within_reach
from musls_control.estimate import Estimate
from musls_control.mission.contingency import Contingency
from musls_control.mission.delivery import Outlet
from musls_control.mission.guidance import FlightGuidance, KnownState, guide
from musls_control.mission.plan import FlightPlan
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import rotate
from musls_description.system.slung_system import SlungLoadSystem, formation_of

# ---------- Motion of load and drones as it is heard in a ROS graph

_STAMP_TOLERANCE_S = 1e-4
"""Two stamps that differ by less are the same moment."""


LONGEST_STEP_S = 0.5
"""Two poses that are farther apart tell no velocity."""


class ReceivedMotion(KnownState):
    """Keeps the newest pose and twist of load and drones and the speeds of the rotors.

    The angular velocities of the estimate are written by `turn_rates`. Without twists, velocities
    are those between two poses. Nobody tells the tensions.
    """

    def __init__(self, n_drones: int, n_rotors: int) -> None:
        estimate = Estimate.zeros(n_drones)
        for unknown in (estimate.position_enu_m, estimate.velocity_enu_m_s, estimate.tension_n):
            unknown[:] = np.nan
        super().__init__(estimate, np.zeros((n_drones, n_rotors)))
        self._omega_enu_rad_s = np.zeros((1 + n_drones, 3))
        self._stamps_s = np.full((3, 1 + n_drones), -np.inf)
        self.expect_rotors(n_rotors)

    def forget(self) -> None:
        """Forget all motion."""
        self.heard_s.clear()
        self.expect_rotors(self.rotor_speed_rad_s.shape[1])
        self._stamps_s[:2] = -np.inf

    def expect_rotors(self, n_rotors: int) -> None:
        """Expect a number of rotors of each drone from now on."""
        self.rotor_speed_rad_s = np.zeros((len(self.drones), n_rotors))
        self._stamps_s[2] = -np.inf
        self._stamps_s[2, 0] = np.inf  # a load has no rotors

    def on_pose(
        self, body: int, time_s: float, position: Sequence[float], q: Sequence[float]
    ) -> None:
        """Take a pose of body 0 (load) to n [m, ENU; unit quaternion w, x, y, z]."""
        since_s = time_s - self._stamps_s[0, body]
        estimate = self.estimate
        if since_s > 0.0 and not np.isfinite(self._stamps_s[1, body]):
            way_m = np.subtract(position, estimate.position_enu_m[body])
            is_fresh = since_s < LONGEST_STEP_S
            estimate.velocity_enu_m_s[body] = way_m / since_s if is_fresh else np.nan
        self._stamps_s[0, body] = time_s
        self.estimate.position_enu_m[body] = position
        self.estimate.orientation_wxyz[body] = q

    def on_twist(
        self, body: int, time_s: float, velocity: Sequence[float], omega_enu: Sequence[float]
    ) -> None:
        """Take a twist, both parts seen in the world [m/s, rad/s]."""
        self._stamps_s[1, body] = time_s
        self.estimate.velocity_enu_m_s[body] = velocity
        self._omega_enu_rad_s[body] = omega_enu

    def on_rotors(self, body: int, time_s: float, speed_rad_s: Sequence[float]) -> None:
        """Take the rotor speeds of a drone, body 1 to n."""
        self._stamps_s[2, body] = time_s
        self.rotor_speed_rad_s[body - 1] = speed_rad_s

    def is_complete_until(self, time_s: float) -> bool:
        """Whether everything up to a time has been received."""
        return bool((self._stamps_s >= time_s - _STAMP_TOLERANCE_S).all())

    def oldest_s(self, time_s: float) -> float:
        """Age of the oldest value that is known; infinite before all were received."""
        return time_s - float(self._stamps_s.min())

    def turn_rates(self) -> None:
        """Write the angular velocities into the estimate, as the bodies see them."""
        inverse = self.estimate.orientation_wxyz * [1.0, -1.0, -1.0, -1.0]
        self.estimate.omega_body_rad_s[:] = rotate(inverse, self._omega_enu_rad_s)


# ---------- A controller that flies in a ROS graph: measured motion in, accelerations out
#
# It sees what is published of load and drones; PX4s see its forces as acceleration set-points.

STEP_S = 0.02
"""Time between two messages of /clock, and two steps."""


class GraphControl:
    """Runs a controller of level `autopilot_forces` on the received state.

    Attributes:
        controller: The controller.
        flies: Whether it has taken over.
    """

    def __init__(self, controller: Controller, system: SlungLoadSystem, period_s: float) -> None:
        """Prepare a controller of level `autopilot_forces` that was built for this period."""
        self.controller = controller
        self.flies = False
        self._setpoints = DroneSetpoints.unset(system.n_drones)
        self._ask = ForcesToSetpoints(system, self._setpoints, period_s)
        self._compile(system)

    def _compile(self, system: SlungLoadSystem) -> None:
        """Call the controller once before arming, yours too: that may compile for a minute.

        At the hand-over in flight there is no time for it. `start` is called again then.
        """
        motion = ReceivedMotion(system.n_drones, system.n_rotors)
        motion.estimate.data[:, :6] = 0.0
        for place, root, cable in zip(
            motion.estimate.drones.position_enu_m,
            system.load.cable_attachments_m,
            system.cables,
            strict=True,
        ):
            place[:] = np.add(root, [0.0, 0.0, cable.length_m])
        motion.rotor_speed_rad_s[:] = [
            [0.5 * (rotor.speed_min_rad_s + rotor.speed_max_rad_s) for rotor in drone.rotors]
            for drone in system.drones
        ]
        self.step(0.0, LoadReference(np.zeros((5, 4))), motion)
        self.rest()

    def rest(self) -> None:
        """Control was handed back; the next step re-initialises."""
        self.flies = False

    def numbers(self) -> dict[str, float]:
        """The controller's figures of its own, see `Controller.numbers`."""
        return {name: float(value) for name, value in self.controller.numbers().items()}

    def take_events(self) -> list[tuple[str, str]]:
        """Reports of the controller since the last call, kinds and texts."""
        events = list(self.controller.happened)
        self.controller.happened.clear()
        return events

    def asked(
        self, flight: FlightGuidance, motion: ReceivedMotion, time_s: float
    ) -> tuple[Array, Array] | None:
        """Last command of the controller, as of `step`; None where the formation flies."""
        if flight.controls(motion.oldest_s(time_s)):
            return self.step(time_s, flight.player.reference_at(time_s), motion)
        if self.flies:
            flight.hand_back()
        self.rest()
        return None

    def step(
        self, time_s: float, reference: LoadReference, motion: ReceivedMotion
    ) -> tuple[Array, Array]:
        """Return accelerations (n, 3) [m/s2, ENU] and yaws (n,) of the drones; not to be kept."""
        estimate = motion.estimate
        speeds = motion.rotor_speed_rad_s
        motion.turn_rates()
        if not self.flies:
            self._ask.start(speeds, estimate.drones)
            self.controller.start(time_s, estimate)
            self.flies = True
        reference = within_reach(self.controller, reference, estimate)
        forces = self.controller.step(time_s, reference, estimate)
        self._ask(forces, self._ask.throttle(speeds))
        return self._setpoints.data[:, 6:9], self._setpoints.data[:, 9]


def control_of(brief: Brief, period_s: float) -> GraphControl | None:
    """Make the controller of a flight, None for the formation's set-points alone.

    Raises:
        ConfigError: It cannot fly through the graph.
    """
    if brief.delivers or brief.follows_plan:
        return None
    kind = brief.controller.kind
    system = formation_of(brief.system, f"controller.kind = {kind}")
    controller = controller_of(brief, period_s)
    if controller is None:
        return None
    if level_of(controller) is not ControlLevel.AUTOPILOT_FORCES:
        raise ConfigError(
            f"controller.kind = {kind} (level {level_of(controller).value}) cannot fly through "
            f"the ROS graph: choose formation or a controller of level "
            f"{ControlLevel.AUTOPILOT_FORCES.value}, such as payload with output: autopilot"
        )
    return GraphControl(controller, system, period_s)


def graph_contingency(brief: Brief) -> Contingency | None:
    """Make what answers the loss of a drone, None without one and for a start in the air.

    Raises:
        ConfigError: It cannot act in the graph.
    """
    spec = brief.contingency
    if spec is None or not brief.lands:
        return None
    if not brief.follows_plan:
        raise ConfigError(
            "contingency changes the set-points of the formation and needs controller.kind: "
            "formation; or leave contingency out"
        )
    if spec.hook != "release":
        raise ConfigError(
            f"contingency.hook = {spec.hook}: in the ROS graph hook: release is needed"
        )
    formation_of(brief.system, "contingency")
    return contingency_of(brief, ahead=True)


def guidance_of(
    brief: Brief, plan: FlightPlan, known: KnownState, out: Outlet, **options: Any
) -> FlightGuidance:
    """Make what guides a flight, see `guide`; hooks that are to close later open now."""
    flight = guide(
        plan,
        brief.mission,
        brief.formation,
        brief.system,
        brief.gravity_m_s2,
        known,
        out,
        **options,
    )
    if flight.player.keeper is not None:
        flight.player.keeper.begin()
    return flight
