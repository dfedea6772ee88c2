"""Flights through a ROS graph, without ROS: mission file, motion, controller, delivery, loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from musls_control.autopilot import DroneSetpoints
from musls_control.contingency.loss import MIN_DRONES, ContingencySpec, LossDetector
from musls_control.contingency.rest_of_flight import (
    Situation,
    goes_on,
    landed,
    landed_clear,
    rest_of_flight,
    room_to_land,
    sentence,
)
from musls_control.controllers import AnyController, ControlLevel, ControlSetup, FormationSpec
from musls_control.controllers.interface import Controller, level_of, prepare_controller
from musls_control.estimate import Estimate
from musls_control.mission.before_arming import ArmingLimits, check_before_arming
from musls_control.mission.carrying import Carried
from musls_control.mission.delivery import (
    Delivery,
    compile_delivery,
    delivery_of,
)
from musls_control.mission.plan import (
    FlightPlan,
    GroundSpot,
    compile_air_plan,
    compile_plan,
)
from musls_control.mission.spec import MissionSpec
from musls_control.payload.actuation import ForcesToSetpoints
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.config.schema import Positive, build, spec
from musls_description.config.strict_yaml import parse_yaml, read_text
from musls_description.hanging.cone import Cone
from musls_description.hanging.hang import hang
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import rotate
from musls_description.system.drone import tip_radius_m
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


class ReceivedMotion:
    """Keeps the newest pose and twist of load and drones and the speeds of the rotors.

    Attributes:
        estimate: What is known of load and drones, row 0 the load; without `omega_body_rad_s`, see
            `turn_rates`.
        speeds_rad_s: Rotors, (n, n_rotors).
    """

    def __init__(self, n_drones: int, n_rotors: int) -> None:
        self.estimate = Estimate.zeros(n_drones)
        self.speeds_rad_s = np.zeros((n_drones, n_rotors))
        self._omega_enu_rad_s = np.zeros((1 + n_drones, 3))
        self._heard_s = np.full((3, 1 + n_drones), -np.inf)
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
        self.speeds_rad_s[body - 1] = speed_rad_s

    def is_complete_until(self, time_s: float) -> bool:
        """Whether everything was heard up to a time."""
        return bool((self._heard_s >= time_s - _STAMP_TOLERANCE_S).all())

    def age_s(self, time_s: float) -> float:
        """Age of the oldest thing that is known; infinite before all was heard."""
        return time_s - float(self._heard_s.min())

    def turn_rates(self) -> None:
        """Write the angular velocities into the estimate, as the bodies see them."""
        inverse = self.estimate.orientation_wxyz * [1.0, -1.0, -1.0, -1.0]
        self.estimate.omega_body_rad_s[:] = rotate(inverse, self._omega_enu_rad_s)


# ---------- A controller that flies in a ROS graph: measured motion in, accelerations out
#
# It sees what is published of load and drones; PX4s see its forces as acceleration set-points.

STEP_S = 0.02
"""Time between two messages of /clock, and two steps."""


class GraphControl(ReceivedMotion):
    """Runs a controller of level `autopilot_forces` on what was heard.

    Attributes:
        controller: The controller.
        flies: Whether it has taken over.
    """

    def __init__(self, controller: Controller, system: SlungLoadSystem, period_s: float) -> None:
        """Prepare a controller of level `autopilot_forces` that was built for this period."""
        super().__init__(system.n_drones, system.n_rotors)
        self.controller, self.flies = controller, False
        self._setpoints = DroneSetpoints.unset(system.n_drones)
        self._ask = ForcesToSetpoints(system, self._setpoints, period_s)
        if type(controller).__module__.startswith(__package__):
            self._compile(system)

    def _compile(self, system: SlungLoadSystem) -> None:
        """Ask once before anything flies: the first call of ours may compile for half a minute."""
        places, speeds = self.estimate.position_enu_m[1:], self.speeds_rad_s
        for place, root, cable in zip(
            places, system.load.cable_attachments_m, system.cables, strict=True
        ):
            place[:] = np.add(root, [0.0, 0.0, cable.length_m])
        speeds[:] = [
            [0.5 * (rotor.speed_min_rad_s + rotor.speed_max_rad_s) for rotor in drone.rotors]
            for drone in system.drones
        ]
        self.step(0.0, LoadReference(np.zeros((5, 4))))
        self.rest()
        places[:], speeds[:] = 0.0, 0.0

    def rest(self) -> None:
        """Somebody else flies; the next step takes over anew."""
        self.flies = False

    def numbers(self) -> dict[str, float]:
        """The controller's figures of its own, see `Controller.numbers`."""
        return {name: float(value) for name, value in self.controller.numbers().items()}

    def take_events(self) -> list[tuple[str, str]]:
        """Reports of the controller since the last call, kinds and texts."""
        events = list(self.controller.happened)
        self.controller.happened.clear()
        return events

    def step(self, time_s: float, reference: LoadReference) -> tuple[Array, Array]:
        """Return accelerations (n, 3) [m/s2, ENU] and yaws (n,) of the drones; not to be kept."""
        estimate = self.estimate
        self.turn_rates()
        if not self.flies:
            self._ask.start(self.speeds_rad_s, estimate.drones)
            self.controller.start(time_s, estimate)
            self.flies = True
        forces = self.controller.step(time_s, reference, estimate)
        self._ask(forces, self._ask.throttle(self.speeds_rad_s))
        return self._setpoints.data[:, 6:9], self._setpoints.data[:, 9]


# ---------- A delivery that flies in a ROS graph: measured motion in, gates and events out
#
# Hooks open and close through events of the simulator; that they have closed is heard as an
# event, too.

LONGEST_STEP_S = 0.5
"""A longer gap between two samples is not weighed over."""


class GraphDelivery(ReceivedMotion):
    """A delivery that is watched with what was heard, its hooks behind a topic (see `Hooks`).

    Attributes:
        closed: Hooks that were heard to close since they were asked to.
    """

    def __init__(
        self, mission: MissionSpec, cone: Cone, system: SlungLoadSystem, gravity_m_s2: float
    ) -> None:
        super().__init__(system.n_drones, system.n_rotors)
        self._mission, self._cone, self.system = mission, cone, system
        self._given, self._gravity_m_s2 = delivery_of(mission), gravity_m_s2
        self.closed = 0
        self.watch: Delivery

    def begin(
        self,
        plan: FlightPlan,
        send: Callable[[dict[str, Any]], None],
        tell: Callable[[str, str], None],
    ) -> None:
        """Get ready for a flight; hooks that are to close later open now.

        `send` lets an event happen, given by its fields; `tell` gets kind and text of it.
        """
        self._send, self._tell = send, tell
        self._told, self._last_s, self.closed = False, -np.inf, 0
        self.watch = Delivery(
            self._mission,
            self._cone,
            self.system,
            plan,
            self,
            estimate=self.estimate,
            rotor_speed_rad_s=self.speeds_rad_s,
            gravity_m_s2=self._gravity_m_s2,
        )
        if self._given.pick_up == "hook":
            self.open()

    def open(self) -> None:
        """See `Hooks`."""
        self._send({"kind": "release"})

    def close(self) -> None:
        """See `Hooks`."""
        self.closed = 0
        hook = {"distance_m": self._given.hook_distance_m, "speed_m_s": self._given.hook_speed_m_s}
        for cable in range(1, len(self.system.cables) + 1):
            self._send({"kind": "attach", "cable": cable, **hook})

    def note(self, time_s: float, kind: str, what: str) -> None:
        """See `Hooks`."""
        self._tell(kind, what)

    def weigh(self, time_s: float) -> None:
        """Weigh what hangs on the drones since the last time."""
        step_s, self._last_s = time_s - self._last_s, time_s
        if 0.0 < step_s < LONGEST_STEP_S:
            self.watch.weigh(step_s)

    def on_event(self, kind: str) -> None:
        """Something has happened: a hook has closed, or the delivery is to be given up."""
        if kind == "attach":
            self.closed += 1
        elif kind == "abort":
            self.watch.abort("asked for")

    def tell_abort(self) -> None:
        """Say once that the delivery turns back, and why."""
        if not self._told:
            self._told = True
            self.watch.tell_abort(0.0)


# ---------- A contingency that flies in a ROS graph: places of drones in, rest of the flight out


class GraphContingency:
    """Finds the rest of a flight without a drone, for the first one that is lost.

    The formations are found beforehand, because each takes up to a second. They keep clear of the
    place of the lost drone, where it may hover or sink; its hook at the load is to be opened.
    """

    def __init__(
        self,
        system: SlungLoadSystem,
        formation: Cone,
        mission: MissionSpec,
        gravity_m_s2: float,
        spec: ContingencySpec,
    ) -> None:
        self._system, self._mission, self.spec = system, mission, spec
        self._offsets_m, n = formation.offsets_m(system.n_drones), system.n_drones
        hanging = hang(system, formation, gravity_m_s2)
        self.answers = [
            hanging.without([i], margin=spec.margin, clearance_m=spec.clearance_m, hovering=[i])
            for i in range(1, n + 1)
        ]
        even_n = system.load.mass_kg * gravity_m_s2 / n
        self._detector = LossDetector(spec, np.full(n, even_n), np.inf)
        self._estimate, self._seen_s = Estimate.zeros(n), -np.inf

    def fallen(self, time_s: float, drones_enu_m: Array, setpoint_enu_m: Array) -> list[int]:
        """Drones (from 0) that fall, by their places, (n, 3), now and at the last call."""
        drones = self._estimate.drones
        since_s, self._seen_s = time_s - self._seen_s, time_s
        drones.velocity_enu_m_s[:] = (drones_enu_m - drones.position_enu_m) / max(since_s, 1e-3)
        drones.position_enu_m[:] = drones_enu_m
        if since_s > LONGEST_STEP_S:
            return []
        return [drone for drone, _ in self._detector.fallen(self._estimate, setpoint_enu_m)]

    def without(
        self, plan: FlightPlan, row: int, drone: int, place_enu_m: Array, *, falls: bool
    ) -> tuple[FlightPlan, bool, str] | None:
        """The rest of a flight without a drone (from 0) that is at a place, (3,).

        Returns:
            The plan, whether the mission goes on in it after a first phase, and what it is; None
            where the others would come too near a drone that does not fall. A load that is set
            down may go so far back that the drone, which stayed behind, is in its place again.
        """
        found, spec, offsets = self.answers[drone], self.spec, self._offsets_m.copy()
        if found is not None:
            offsets[:] = found.offsets_m
        offsets[drone] = np.nan
        now = Situation(plan, row, plan.drone_position_enu_m[row].copy(), offsets)
        lands = replace(spec, then="land")
        back = replace(now, shift_m=(place_enu_m - now.drones_enu_m[drone])[:2])
        for asked, begin in ((spec, now), (lands, now), (lands, back)):
            way = rest_of_flight(begin, found, self._system, self._mission, asked)
            if falls or self._is_clear(way, drone, place_enu_m):
                self._offsets_m = offsets
                return way, goes_on(found, asked), sentence(found, asked)
        return None

    def down(self, plan: FlightPlan, row: int) -> FlightPlan:
        """The way down, after a loss, from a row of the plan that is flown."""
        drones = plan.drone_position_enu_m[row].copy()
        now = Situation(plan, row, drones, self._offsets_m)
        return landed(now, self._system, self._mission, self.spec, reforms=True)

    def beside(
        self, plan: FlightPlan, row: int, lost: int, drones_enu_m: Array
    ) -> FlightPlan | None:
        """The rest of a landing clear of a drone (from 0) on the ground; None where it is clear."""
        gone = np.arange(self._system.n_drones) == lost
        room = room_to_land(self._system, self.spec.clearance_m)
        return landed_clear(plan, row, gone, drones_enu_m, *room)

    def _is_clear(self, way: FlightPlan, drone: int, place_enu_m: Array) -> bool:
        """Whether the others keep clear of what is above and below a place.

        On the way to their new places they may be as near as they are already.
        """
        radii = np.array([tip_radius_m(d) for d in self._system.drones])
        others = np.arange(len(radii)) != drone
        level = way.drone_position_enu_m[:, others, :2] - place_enu_m[:2]
        tips_m = (np.linalg.norm(level, axis=2) - radii[others] - radii[drone]).min(axis=1)
        clear_m = 0.5 * self.spec.clearance_m
        allowed_m = np.where(way.stage == 0, np.clip(tips_m[0], 0.0, clear_m), clear_m)
        return bool((tips_m >= allowed_m).all())


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
        if isinstance(flown.controller, FormationSpec):
            return None
        if self.mission.kind == "delivery" and self.lands:
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
        controller = flown.controller.build(setup)
        if level_of(controller) is not ControlLevel.AUTOPILOT_FORCES:
            raise ConfigError(
                f"controller.kind = {kind} (level {level_of(controller).value}) cannot fly through "
                f"the ROS graph: choose formation or a controller of level "
                f"{ControlLevel.AUTOPILOT_FORCES.value}, such as payload with output: autopilot"
            )
        prepare_controller(controller, setup)
        return GraphControl(controller, system, period_s)

    def delivery(self) -> GraphDelivery | None:
        """Make the watch over a delivery, None for other missions and for a start in the air."""
        if self.mission.kind != "delivery" or not self.lands:
            return None
        system = slung_system(self.system, "mission.kind = delivery")
        return GraphDelivery(self.mission, self.formation, system, self.flown.gravity_m_s2)

    def contingency(self) -> GraphContingency | None:
        """Make what answers the loss of a drone, None without one and for a start in the air."""
        spec = self.flown.contingency
        if spec is None or not self.lands:
            return None
        formed = isinstance(self.flown.controller, FormationSpec)
        if not formed or self.mission.kind == "delivery":
            raise ConfigError(
                "contingency changes the set-points of the formation and needs controller.kind: "
                "formation and a mission without delivery; or leave contingency out"
            )
        system = formation_of(self.system, "contingency")
        if system.n_drones < MIN_DRONES or spec.hook != "release":
            raise ConfigError(
                f"contingency: in the ROS graph {MIN_DRONES} or more drones and hook: release are "
                f"needed; there are {system.n_drones} drones and hook: {spec.hook}"
            )
        gravity = self.flown.gravity_m_s2
        return GraphContingency(system, self.formation, self.mission, gravity, spec)

    def check(self, plan: FlightPlan, limits: ArmingLimits) -> None:
        """Refuse to arm for a plan, see `check_before_arming` (raises ConfigError)."""
        given = self.mission.delivery
        tied = given is None or given.pick_up != "hook"
        check_before_arming(self.system, plan, limits, tied=tied)

    def plan(self, load_enu_m: Array, load_yaw_rad: float, drones_enu_m: Array) -> FlightPlan:
        """Sample the set-points of a flight that begins at load, (3,), and drones, (n, 3)."""
        first = self.mission.stages[0].pose(np.zeros(1))[0]
        if self.lands:
            system = formation_of(self.system, "start = ground")
            spot = GroundSpot.of(system, load_enu_m, load_yaw_rad, drones_enu_m)
            carried = Carried.of(hang(system, self.formation, self.flown.gravity_m_s2, first))
            if self.mission.kind == "delivery":
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
