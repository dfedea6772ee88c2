"""Flights through a ROS graph, without ROS: what is heard, the controller, the mission file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from musls_control.autopilot import DroneSetpoints
from musls_control.chain import ForcesToSetpoints
from musls_control.controllers import (
    AnyController,
    Controller,
    ControlLevel,
    ControlSetup,
    FormationSpec,
    level_of,
)
from musls_control.controllers.payload.controller import flying_controller
from musls_control.estimate import Estimate
from musls_control.mission.carrying import Carried
from musls_control.mission.contingency import Contingency
from musls_control.mission.delivery import Outlet, compile_delivery
from musls_control.mission.guidance import FlightGuidance, KnownState, guide
from musls_control.mission.plan import FlightPlan, GroundSpot, compile_air_plan, compile_plan
from musls_control.mission.spec import ContingencySpec, MissionSpec
from musls_control.real_flight.before_arming import ArmingLimits, check_before_arming
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.config.schema import Positive, build, spec
from musls_description.config.strict_yaml import parse_yaml, read_text
from musls_description.hanging.cone import Cone
from musls_description.hanging.hang import hang
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import rotate
from musls_description.system.obstacles import WorldSpec
from musls_description.system.slung_system import (
    RigSystem,
    SlungLoadSystem,
    formation_of,
    slung_system,
    system_class,
)

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
        since_s, estimate = time_s - self._stamps_s[0, body], self.estimate
        if since_s > 0.0 and not np.isfinite(self._stamps_s[1, body]):
            way_m = np.subtract(position, estimate.position_enu_m[body])
            known = since_s < LONGEST_STEP_S
            estimate.velocity_enu_m_s[body] = way_m / since_s if known else np.nan
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
        self.controller, self.flies = controller, False
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
        self.rest()
        return None

    def step(
        self, time_s: float, reference: LoadReference, motion: ReceivedMotion
    ) -> tuple[Array, Array]:
        """Return accelerations (n, 3) [m/s2, ENU] and yaws (n,) of the drones; not to be kept."""
        estimate, speeds = motion.estimate, motion.rotor_speed_rad_s
        motion.turn_rates()
        if not self.flies:
            self._ask.start(speeds, estimate.drones)
            self.controller.start(time_s, estimate)
            self.flies = True
        forces = self.controller.step(time_s, reference, estimate)
        self._ask(forces, self._ask.throttle(speeds))
        return self._setpoints.data[:, 6:9], self._setpoints.data[:, 9]


@spec
class ControllerSetting:
    """Parts of a scenario that a controller, a delivery or a contingency must know.

    Attributes:
        controller: Which one.
        gravity_m_s2: Gravity.
        contingency: What is done about a drone that is lost; None for nothing.
        world: Obstacles.
        cable_model: How the cables are modelled, as in a scenario.
    """

    controller: AnyController = Field(default_factory=FormationSpec)
    gravity_m_s2: Positive = STANDARD_GRAVITY_M_S2
    contingency: ContingencySpec | None = None
    world: WorldSpec = Field(default_factory=WorldSpec)
    cable_model: str = "rigid_links"


@dataclass(frozen=True)
class MissionFile:
    """Mission and formation as a file gives them.

    Attributes:
        system: Masses, inertias, cables.
        lands: Whether the flight starts and ends on the ground.
    """

    name: str
    system: RigSystem
    mission: MissionSpec
    formation: Cone
    lands: bool
    flown: ControllerSetting

    @property
    def n_drones(self) -> int:
        """Number of drones."""
        return self.system.n_drones

    def control(self, period_s: float) -> GraphControl | None:
        """Make the scenario's controller, None for the formation's set-points alone."""
        flown = self.flown
        kind = flown.controller.kind
        if self.delivers:
            slung_system(self.system, "mission.kind = delivery")
        if isinstance(flown.controller, FormationSpec):
            return None
        if self.delivers:
            raise ConfigError(
                f"controller.kind = {kind}: mission.kind = delivery is flown by the formation; "
                "choose controller.kind: formation"
            )
        system = formation_of(self.system, f"controller.kind = {kind}")
        setup = ControlSetup(
            system,
            self.formation,
            flown.gravity_m_s2,
            period_s,
            rods=flown.cable_model == "rigid_rods",
            obstacles=flown.world.obstacles,
        )
        controller = flying_controller(flown.controller.build(setup), setup)
        if level_of(controller) is not ControlLevel.AUTOPILOT_FORCES:
            raise ConfigError(
                f"controller.kind = {kind} (level {level_of(controller).value}) cannot fly through "
                f"the ROS graph: choose formation or a controller of level "
                f"{ControlLevel.AUTOPILOT_FORCES.value}, such as payload with output: autopilot"
            )
        return GraphControl(controller, system, period_s)

    @property
    def delivers(self) -> bool:
        """Whether a load is picked up and left; from a start in the air only its way is flown."""
        return self.mission.kind == "delivery" and self.lands

    def contingency(self) -> Contingency | None:
        """Make what answers the loss of a drone, None without one and for a start in the air."""
        spec = self.flown.contingency
        if spec is None or not self.lands:
            return None
        if not isinstance(self.flown.controller, FormationSpec):
            raise ConfigError(
                "contingency changes the set-points of the formation and needs controller.kind: "
                "formation; or leave contingency out"
            )
        if spec.hook != "release":
            raise ConfigError(
                f"contingency.hook = {spec.hook}: in the ROS graph hook: release is needed"
            )
        system = formation_of(self.system, "contingency")
        hanging = hang(system, self.formation, self.flown.gravity_m_s2)
        return Contingency(replace(spec, delay_s=0.0), hanging, self.mission, ahead=True)

    def guidance(
        self, plan: FlightPlan, known: KnownState, out: Outlet, **options: Any
    ) -> FlightGuidance:
        """Make what guides a flight, see `guide`; hooks that are to close later open now."""
        gravity = self.flown.gravity_m_s2
        flight = guide(
            plan, self.mission, self.formation, self.system, gravity, known, out, **options
        )
        if flight.player.keeper is not None:
            flight.player.keeper.begin()
        return flight

    def check(self, plan: FlightPlan, limits: ArmingLimits) -> None:
        """Refuse to arm for a plan, see `check_before_arming` (raises ConfigError)."""
        given = self.mission.delivery
        tied = given is None or given.pick_up != "hook"
        check_before_arming(self.system, plan, limits, tied=tied)

    def plan(self, load_enu_m: Array, load_yaw_rad: float, drones_enu_m: Array) -> FlightPlan:
        """Sample the set-points of a flight that begins at load, (3,), and drones, (n, 3)."""
        if not self.mission.stages:
            raise ConfigError("mission.stages is missing: real drones fly a load in formation")
        first = self.mission.stages[0].pose(np.zeros(1))[0]
        if self.lands:
            system = formation_of(self.system, "start = ground")
            spot = GroundSpot.of(system, load_enu_m, load_yaw_rad, drones_enu_m)
            carried = Carried.of(hang(system, self.formation, self.flown.gravity_m_s2, first))
            if self.delivers:
                return compile_delivery(self.mission, self.formation, spot, carried)
            return compile_plan(self.mission, self.formation, spot, carried)
        return compile_air_plan(self.mission, self.formation, first, self.n_drones)


def read_mission_file(path: Path) -> MissionFile:
    """Read a resolved scenario (as `musls fly` saves it beside every result)."""
    text = read_text(path)
    data = parse_yaml(text, str(path))
    system = data.get("system") if isinstance(data, Mapping) else None
    drones = system.get("drones") if isinstance(system, Mapping) else None
    if not isinstance(drones, list):
        raise ConfigError(
            f"{path}: system.drones is missing: a resolved scenario is needed, such as the "
            "scenario.yaml in a result folder of musls fly"
        )
    if "mission" not in data:
        raise ConfigError(f"{path}: mission is missing")
    known = ("controller", "contingency", "world", "cable_model")
    flown = {key: data[key] for key in known if key in data}
    physics = data.get("physics")
    if isinstance(physics, Mapping) and "gravity_m_s2" in physics:
        flown["gravity_m_s2"] = physics["gravity_m_s2"]
    return MissionFile(
        str(data.get("name", path.stem)),
        build(system_class(system), system, f"{path}: system"),
        build(MissionSpec, data["mission"], f"{path}: mission"),
        build(Cone, data.get("formation") or {}, f"{path}: formation"),
        _starts_on_ground(data.get("start", "ground")),
        build(ControllerSetting, flown, str(path)),
    )


def _starts_on_ground(start: Any) -> bool:
    """Whether a scenario's start, a kind or a mapping with one, is on the ground."""
    return (start.get("kind", "ground") if isinstance(start, Mapping) else start) == "ground"
