"""A delivery: pick a load up, carry it, leave it somewhere, come back without it.

    spool_up, take_off, form_up   as in every mission
    tare                          hover with slack cables: the drones weigh themselves
    pick_up                       open hooks come down to the load; waits until they have closed
    tension, lift, weigh          hover with the load and measure its mass
    the stages                    flown with the load
    approach, lower, set_down     waits until the cables are slack and the load rests
    release                       hooks open
    climb                         rises a little, waits until nothing hangs there any more
    return, descend, spread, land

A wait that takes too long aborts: the load comes back, or is landed where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from musls_control.estimate import Estimate
from musls_control.mission.carrying import Carried
from musls_control.mission.plan import (
    HOOKED,
    RELEASED,
    RESTED,
    WEIGHED,
    DeliveryGate,
    Draft,
    FlightPlan,
    GroundSpot,
    fed_as_needed,
    fly_stages,
    lift,
    set_load_down,
    spread_and_land,
    take_off,
)
from musls_control.mission.spec import BEFORE_FORMATION, LANDING, DeliverySpec, MissionSpec
from musls_description.hanging.cone import Cone
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import rotate
from musls_description.system.slung_system import SlungLoadSystem

HOOK_DEPTH_M = 0.05
"""Depth of open hooks below their place on the load."""


def compile_delivery(
    mission: MissionSpec, cone: Cone, ground: GroundSpot, carried: Carried | None = None
) -> FlightPlan:
    """Sample all set-points of a delivery, with the rows that wait; see `compile_plan`."""
    return fed_as_needed(mission, lambda spec: _delivery(spec, cone, ground, carried))


def _delivery(
    mission: MissionSpec, cone: Cone, ground: GroundSpot, carried: Carried | None
) -> FlightPlan:
    spec = delivery_of(mission)
    draft = Draft.of(mission, cone, len(ground.drone_position_enu_m), carried)
    standing = float(ground.load_position_enu_m[2])
    above = standing + spec.clearance_m
    slack_m = mission.slack_height_m + ground.start_m
    take_off(draft, ground, above if spec.pick_up == "hook" else slack_m)
    _hold(draft, "tare", spec.weigh_s)
    if spec.pick_up == "hook":
        draft.rise("pick_up", standing - HOOK_DEPTH_M)
        _wait(draft, HOOKED, spec)
    lift(draft, ground, float(mission.stages[0].pose(np.zeros(1))[0, 2]))
    _hold(draft, "weigh", spec.weigh_s)
    _wait(draft, WEIGHED, spec)
    fly_stages(draft, ground)
    cruise = float(draft.last[2])
    _go(draft, "approach", np.array(spec.place_m))
    if spec.drop == "ground":
        set_load_down(draft, ground, "set_down", hold_s=None)
    _wait(draft, RESTED, spec)
    if spec.drop == "air":
        draft.let_go()
    _hold(draft, "release", mission.settle_s)
    if spec.drop == "ground":
        draft.rise("climb", ground.rests_m(draft.last) + spec.clearance_m)
    _wait(draft, RELEASED, spec)
    draft.rise("climb", cruise)
    _go(draft, "return", ground.load_position_enu_m[:2])
    draft.rise("descend", slack_m)
    spread_and_land(draft, ground)
    return draft.plan(ground)


def compile_abort(
    mission: MissionSpec, cone: Cone, ground: GroundSpot, plan: FlightPlan, row: int
) -> FlightPlan:
    """Sample the rest of a delivery that failed: the load is set down, the drones land round it.

    It begins at a row of the plan, and returns, if it does, at the greatest height of it.
    """
    load_pose = plan.load_pose[row]
    height_m = float(plan.load_pose[:, 2].max())
    draft = Draft.of(mission, cone, len(ground.drone_position_enu_m))
    draft.go_on_from(plan, row)
    draft.add("abort", load_pose[None].copy())
    if delivery_of(mission).abort == "return":
        draft.rise("abort", max(height_m, float(load_pose[2])))
        _go(draft, "return", ground.load_position_enu_m[:2])
    set_load_down(draft, ground, hold_s=None)
    spread_and_land(draft, ground)
    return draft.plan(ground)


def delivery_of(mission: MissionSpec) -> DeliverySpec:
    """Delivery settings of a mission; its kind must be delivery."""
    assert mission.delivery is not None
    return mission.delivery


def _wait(draft: Draft, what: str, spec: DeliverySpec) -> None:
    draft.gates.append(DeliveryGate(len(draft.stage), what, spec.timeout_s))


def _hold(draft: Draft, name: str, duration_s: float) -> None:
    draft.hold(name, draft.last, duration_s, f"mission.delivery: {name}")


def _go(draft: Draft, name: str, place_m: Array) -> None:
    """Append a level move of the load's set-point, and a rest."""
    draft.carry(name, np.array([*place_m, *draft.last[2:]]))


AVERAGING_S = 0.5
"""Time constant of the running mean."""


class PayloadScale:
    """Mass that the drones carry, by their rotors: over windows of time, and all the time.

    The mean thrust over a while, by the rotors' speeds, is the mass that hangs there:

        sum over rotors of integral k w^2 cos(tilt) dt = m (g T + v_z(T) - v_z(0)).

    The thrust constant k need not be right, and the battery may sag (speeds are measured, not
    taken from the commands): before the load is lifted each drone weighs itself, and only the ratio
    counts.

    Attributes:
        own_kg: Mass of each drone with its cable, which it measures itself, (n,).
        carried_kg: Running mean of what all drones carry; zero until they have weighed themselves.
        factor: True over nominal thrust constant of each drone, (n,).
    """

    def __init__(self, own_kg: Array, thrust_n_s2: Array, gravity_m_s2: float) -> None:
        """Begin with the drones' own masses, (n,), and nominal thrust constants, (n, n_rotors)."""
        self.own_kg = own_kg
        self._thrust = thrust_n_s2
        self._gravity = gravity_m_s2
        self.factor = np.ones(len(own_kg))
        self.carried_kg = 0.0
        self._impulse = np.zeros(len(own_kg))
        self._time_s = 0.0
        self._begin_m_s: Array | None = None
        self._last_m_s: Array | None = None

    def add(self, step_s: float, rotor_speed_rad_s: Array, up: Array, rise_m_s: Array) -> None:
        """Take a sample.

        Rotor speeds, (n, n_rotors); vertical parts `up` of the drones' z axes and vertical
        velocities `rise_m_s`, (n,).
        """
        thrust = (self._thrust * rotor_speed_rad_s**2).sum(axis=1) * up
        if self._begin_m_s is None or self._last_m_s is None:
            self._begin_m_s = self._last_m_s = rise_m_s.copy()
            return
        self._impulse += thrust * step_s
        self._time_s += step_s
        specific_force_m_s2 = self._gravity + (rise_m_s - self._last_m_s) / step_s
        self._last_m_s = rise_m_s.copy()
        now = float(
            (self.factor * thrust / np.maximum(specific_force_m_s2, 1.0) - self.own_kg).sum()
        )
        self.carried_kg += (now - self.carried_kg) * step_s / (AVERAGING_S + step_s)

    def begin(self) -> None:
        """Begin a window."""
        self._impulse[:] = 0.0
        self._time_s = 0.0
        self._begin_m_s = None

    def masses_kg(self) -> Array:
        """Mass that hung on each drone's rotors within the window, its own included, (n,)."""
        assert self._begin_m_s is not None and self._last_m_s is not None
        rise = self._last_m_s - self._begin_m_s
        return self.factor * self._impulse / (self._gravity * self._time_s + rise)

    def tare(self) -> None:
        """The drones carried nothing within the window: learn the true thrust constants.

        Nothing is learned from a window without samples: a delivery was given up before it.
        """
        if self._time_s == 0.0:
            return
        self.factor *= self.own_kg / self.masses_kg()
        self.carried_kg = 0.0


WEIGH_EVERY_S = 0.02
LONGEST_STEP_S = 0.5
"""Time between two samples of the rotor speeds, and the longest gap over which the load is
weighed."""


@dataclass
class Outlet:
    """Receivers of what guidance reports and requests; the flight's driver fills them in.

    Attributes:
        tell: Gets what happened: time, kind and text.
        ask: Gets what is to happen, as the fields of an event: `{"kind": "release", "cable": 2}`;
            `{"kind": "land"}` has all autopilots land where they are.
        end_phase: Gets which phase ended and why: time and a line, see `phase_end`.
    """

    tell: Callable[[float, str, str], None] = lambda time_s, kind, what: None
    ask: Callable[[dict[str, Any]], None] = lambda request: None
    end_phase: Callable[[float, str], None] = lambda time_s, what: None


def hook_requests(spec: DeliverySpec, n_cables: int) -> list[dict[str, Any]]:
    """Requests that close hooks that are open at first; none where all are closed."""
    if spec.pick_up != "hook":
        return []
    close = {"distance_m": spec.hook_distance_m, "speed_m_s": spec.hook_speed_m_s}
    return [{"kind": "attach", "cable": 1 + i, **close} for i in range(n_cables)]


class Delivery:
    """Watches over a delivery: weighs, opens and closes hooks, plans the way back.

    Attributes:
        scale: Weighs what the drones carry.
        payload_kg: Measured mass of the load; None before it was weighed.
        aborted: Why the delivery was given up; empty if it was not.
    """

    def __init__(
        self,
        mission: MissionSpec,
        cone: Cone,
        system: SlungLoadSystem,
        plan: FlightPlan,
        out: Outlet,
        *,
        estimate: Estimate,
        rotor_speed_rad_s: Array,
        gravity_m_s2: float,
    ) -> None:
        """Begin with no masses known.

        The mission has a `delivery`. `estimate` and `rotor_speed_rad_s`, (n, n_rotors), are
        measured; their memory stays the same.
        """
        assert plan.ground is not None  # a delivery begins there
        self._mission = mission
        self._cone = cone
        self._plan = plan
        self._ground = plan.ground
        self._out = out
        self._n_cables = len(system.cables)
        self._closed = 0
        self._weighed_s = -np.inf
        self._has_told = False
        self._estimate = estimate
        self._rotor_speed = rotor_speed_rad_s
        self.given = spec = delivery_of(mission)
        slack_m = float(plan.ground.load_position_enu_m[2]) - mission.slack_height_m
        slack_m -= plan.ground.start_m
        if spec.pick_up == "hook":  # the cables hang on the drones alone
            slack_m = np.inf
        constants = [[r.thrust_coefficient_n_s2 for r in d.rotors] for d in system.drones]
        pairs = list(zip(system.drones, system.cables, strict=True))
        own = [d.mass_kg + hanging_share(c.length_m, slack_m) * c.mass_kg for d, c in pairs]
        self._cables_kg = sum(d.mass_kg + c.mass_kg for d, c in pairs) - sum(own)
        self.scale = PayloadScale(np.array(own), np.array(constants), gravity_m_s2)
        self.payload_kg: float | None = None
        self.aborted = ""
        self._stage = ""
        self._waits_since_s: float | None = None

    def begin(self) -> None:
        """Open the hooks that are to close later."""
        if hook_requests(self.given, self._n_cables):
            self._out.ask({"kind": "release"})

    def on_event(self, kind: str) -> None:
        """Take note of an event: a hook has closed, or the delivery is to be given up."""
        if kind == "attach":
            self._closed += 1
        elif kind == "abort":
            self.abort("asked for")

    def stand_still(self, time_s: float) -> None:
        """Skip a time in which the flight was held: no gate has waited meanwhile."""
        if self._waits_since_s is not None:
            self._waits_since_s += time_s

    @property
    def next_s(self) -> float:
        """Time of the next weighing; in the past if the delivery is to turn back."""
        turns = self.turns_back and not self._has_told
        return 0.0 if turns else max(self._weighed_s + WEIGH_EVERY_S, 0.0)

    def weigh(self, time_s: float) -> None:
        """Weigh what hangs on the drones since the last time, if it is time to."""
        step_s = time_s - self._weighed_s
        if step_s < WEIGH_EVERY_S - 1e-6:
            return
        self._weighed_s = time_s
        if step_s >= LONGEST_STEP_S:
            return
        drones = self._estimate.drones
        up = rotate(drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
        self.scale.add(step_s, self._rotor_speed, up, drones.velocity_enu_m_s[:, 2])

    def abort(self, why: str) -> None:
        """Abort the delivery as soon as the drones fly in formation; not while they land."""
        if not self.aborted and self._stage not in LANDING:
            self.aborted = why

    @property
    def turns_back(self) -> bool:
        """Whether it was given up and the drones fly in formation."""
        return bool(self.aborted) and self._stage not in BEFORE_FORMATION

    def way_back(self, row: int) -> FlightPlan:
        """The rest of a delivery that is given up at a row of its plan."""
        return compile_abort(self._mission, self._cone, self._ground, self._plan, row)

    def tell_abort(self, time_s: float) -> None:
        """Say once that the delivery turns back, and why."""
        if not self._has_told:
            self._has_told = True
            self._out.tell(time_s, "abort", f"{self.aborted or 'asked for'}: {self.given.abort}")

    def enter(self, stage: str) -> None:
        """Note that a phase or stage has begun; the present one again changes nothing."""
        before = self._stage
        self._stage = stage
        if before == stage:
            return
        if before == "tare":
            self.scale.tare()
        if stage in ("tare", "weigh"):
            self.scale.begin()
        if stage == "pick_up":
            self._closed = 0
            for hook in hook_requests(self.given, self._n_cables):
                self._out.ask(hook)

    def passes(self, gate: DeliveryGate, time_s: float) -> bool:
        """Whether a gate admits the next row; it gives up after its time."""
        if self._waits_since_s is None:
            self._waits_since_s = time_s
            if gate.what == WEIGHED:
                self._weighed(time_s)
        if self._is_over(gate):
            self._waits_since_s = None
            if gate.what == RESTED:
                self._out.ask({"kind": "release", "name": "delivered"})
            return True
        if time_s - self._waits_since_s > gate.timeout_s + 1e-9:
            self.abort(f"not {gate.what} after {gate.timeout_s:g} s")
        return False

    def left_share(self) -> Array:
        """Share of the mass each drone has flown with that is left without the load, (n,)."""
        carried = self.scale.masses_kg()
        # The cables go with the drones.
        return np.full(len(carried), 1.0 - (self.payload_kg or 0.0) / carried.sum())

    def _weighed(self, time_s: float) -> None:
        own = self.scale.own_kg
        self.payload_kg = float((self.scale.masses_kg() - own).sum()) - self._cables_kg
        self._out.tell(time_s, "weighed", f"load: {self.payload_kg:.3f} kg")

    def _is_over(self, gate: DeliveryGate) -> bool:
        """Whether what a gate waits for has happened."""
        if gate.what == HOOKED:
            return self._closed >= self._n_cables
        slack = self.scale.carried_kg < self.given.slack_share * (self.payload_kg or 0.0)
        if gate.what == RELEASED:
            return slack
        if gate.what == RESTED and self.given.drop == "ground":
            speed = float(np.linalg.norm(self._estimate.velocity_enu_m_s[0]))
            return slack and speed < self.given.rest_speed_m_s
        return True


def hanging_share(length_m: float, slack_m: float) -> float:
    """Share of a slack cable that its upper end carries, with the lower end as low as possible."""
    return 1.0 if slack_m >= length_m else 1.0 - 0.5 * max(slack_m, 0.0) / length_m
