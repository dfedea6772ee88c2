"""Guides a flight: set-points, faults and losses, when a controller flies, when the flight is over.

The one machine of session and ROS graph. Its inputs are the time and the known
state of the bodies; it is independent of clock, ROS and plant, and its requests go to an `Outlet`.
Differences between a simulation and real drones, such as the age of a pose, are inputs, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.estimate import Estimate
from musls_control.guard import LAG_S, FlightEnd, Guard, GuardStep, Health, tracking_error_m
from musls_control.mission.contingency import Contingency, Loss, LossKind
from musls_control.mission.delivery import Delivery, Outlet
from musls_control.mission.phase_end import DISARMED, Reason, sentence
from musls_control.mission.plan import FlightPlan
from musls_control.mission.player import FlightPlayer, FormationSetpoint, GoalSettings, PlayState
from musls_control.mission.rest_of_flight import landed_clear, room_to_land
from musls_control.mission.rows import ASIDE, LOWERS, SPREADS, TAKEN_UP, look_down, nothing_found
from musls_control.mission.spec import (
    BEFORE_FORMATION,
    GROUND_PHASES,
    LANDING,
    LOWERING,
    ContingencySpec,
    MissionSpec,
)
from musls_control.px4.offboard import start_refusal
from musls_description.hanging.cone import Cone
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import RigSystem, SlungLoadSystem, slung_system

OFFBOARD = "offboard"
"""The node that commands the autopilots, among the bodies that are watched."""

READY = "idle"
AIRBORNE = "airborne"
"""Phases of a drone that may be started: on the ground, and in a flight that starts in the air."""

POSE_AGE_S = 1.0
"""Older poses do not say where load and drones stand."""

TOO_OLD_S = 0.1
"""Age of the motion of load or drones at which a controller gives way to the formation."""

SILENT_S = 5.0
"""Silence of the offboard node after which a start is given up; on the ground there is time."""

HELD_LOOKS = 10
"""Looks in a row at which a drone holds that are no fault: a node was late, it goes on at once."""


@dataclass
class KnownState:
    """Known state of load and drones; the flight's driver keeps it up to date.

    Attributes:
        estimate: Motion of the bodies and tensions of the cables; NaN where not known.
        rotor_speed_rad_s: (n, n_rotors).
        heard_s: Time of the last message about a body, by name, and of the last heartbeat.
        phases: Phases of the drones, see `musls_control.px4.offboard.Phase`.
        reasons: Why a drone failed.
        doubts: Why the poses of a body are taken to be wrong, by name; "" where they are not.
        charge: Share of the charge that a drone's battery has left, by name; NaN if unknown.
        opens_hooks: Whether a simulator or node opens hooks on request.
        silent: Why drones that decide for themselves count as lost, by name; None where the
            measurements alone say who is lost.
    """

    estimate: Estimate
    rotor_speed_rad_s: Array
    heard_s: dict[str, float] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    charge: dict[str, float] = field(default_factory=dict)
    opens_hooks: Callable[[], bool] = lambda: True
    silent: dict[str, str] | None = None

    @classmethod
    def always(cls, estimate: Estimate, rotor_speed_rad_s: Array) -> KnownState:
        """State for a simulation, where everything is known at once and all drones listen."""
        state = cls(estimate, rotor_speed_rad_s)
        state.heard_s = dict.fromkeys((*state.bodies, OFFBOARD), np.inf)
        state.phases = dict.fromkeys(state.drones, "flying")
        return state

    @property
    def drones(self) -> list[str]:
        """Names of the drones."""
        return [f"drone_{i}" for i in range(1, len(self.estimate.position_enu_m))]

    @property
    def bodies(self) -> list[str]:
        """Names of load and drones, in the order of the estimate."""
        return ["load", *self.drones]

    def age_s(self, body: str, time_s: float) -> float:
        """Age of the newest news of a body."""
        return time_s - self.heard_s.get(body, -np.inf)

    def unseen(self, time_s: float) -> list[str]:
        """Bodies without a recent message."""
        return [body for body in self.bodies if self.age_s(body, time_s) > POSE_AGE_S]

    def missing(
        self, time_s: float, ready: Sequence[str] = (READY,), charge: float = 0.0
    ) -> list[str]:
        """Conditions that a start waits for: poses, drone phases in `ready`, the offboard node.

        `charge`: share that each battery must have, if it is known.
        """
        reasons = []
        for body in self.unseen(time_s):
            doubt = self.doubts.get(body, "")
            reasons.append(f"no pose of {body}" + f" ({doubt})" * bool(doubt))
        if self.age_s(OFFBOARD, time_s) > POSE_AGE_S:
            reasons.append("no heartbeat of the offboard node")
        for drone in self.drones:
            phase = self.phases.get(drone, "not heard")
            why = self.reasons.get(drone)
            if phase not in ready:
                reasons.append(f"{drone} is {phase}" + (f": {why}" if why else ""))
            charge_left = self.charge.get(drone, np.nan)
            if charge_left < charge:
                reasons.append(
                    f"battery of {drone} at {100.0 * charge_left:.0f} %, "
                    f"at least {100.0 * charge:.0f} % is needed (charge_to_start)"
                )
        return reasons


def health_of(
    known: KnownState, time_s: float, recent_enu_m: Sequence[Array] = ()
) -> dict[str, Health]:
    """Health of load, drones and the offboard node.

    `recent_enu_m`: last set-points of the drones, (n, 3) each; none on the ground.
    """
    health = dict[str, Health]()
    places = known.estimate.position_enu_m
    for k, body in enumerate(known.bodies):
        error_m = 0.0
        if k and len(recent_enu_m) and np.isfinite(places[k]).all():
            error_m = tracking_error_m(np.stack([now[k - 1] for now in recent_enu_m]), places[k])
        health[body] = Health(
            known.age_s(body, time_s),
            error_m,
            known.phases.get(body, ""),
            doubt=known.doubts.get(body, ""),
            charge=known.charge.get(body, np.nan),
        )
    health[OFFBOARD] = Health(known.age_s(OFFBOARD, time_s), news="heartbeat")
    return health


class FlightGuidance:
    """Guides one flight.

    Attributes:
        player: Player of the plan.
        guard: Watches for faults; None for nobody.
        watches: Whether the guard acts; may be changed at any time.
        contingency: Answers the loss of a drone; None without.
        end: Whom the end of the flight waits for.
        phase: Present phase, whose end is reported; empty before the first set-points.
        down: Observations on the way down, `DOWN`, (1,).
        found: Findings there, see `look_down`, (n, 6).
    """

    def __init__(
        self,
        player: FlightPlayer,
        known: KnownState,
        out: Outlet,
        *,
        guard: Guard | None = None,
        contingency: Contingency | None = None,
        resume_by: str = "resume",
        room: tuple[Array, Array] | None = None,
    ) -> None:
        """`resume_by`: how people resume a flight, in words. `room`: see `room_to_land`."""
        self.player = player
        self.known = known
        self.guard = guard
        self.contingency = contingency
        self.end = FlightEnd()
        self.watches = True
        self._out = out
        self._resume_by = resume_by
        self.phase = ""
        self._pending: list[tuple[float, Loss]] = []
        self._said = set[str]()
        self._room = room
        self._strays = np.zeros(len(known.drones), bool)
        self.down, self.found = nothing_found(len(known.drones))
        self._recent: deque[tuple[float, Array]] = deque()
        self._held_looks = dict.fromkeys(known.drones, 0)
        if contingency is not None:
            contingency.begin()

    @property
    def gone(self) -> list[str]:
        """Drones that do not fly any more, or that have no guidance."""
        way = self.contingency
        return [] if way is None else [f"drone_{i + 1}" for i in np.flatnonzero(way.gone)]

    @property
    def away(self) -> NDArray[np.bool_]:
        """Drones that are gone, or do not follow while the load is lowered, (n,).

        Nobody waits for them, and the others land clear of them.
        """
        return self._strays if self.contingency is None else self._strays | self.contingency.gone

    # ---------- Begin and end

    def begin(self, time_s: float) -> str:
        """Start the flight when all drones fly; why they cannot, "" where nothing is wrong."""
        state = self.known
        guided = state.age_s(OFFBOARD, time_s) < SILENT_S
        why = start_refusal(state.phases, state.reasons, guided=guided)
        if not why and all(state.phases.get(drone) == "flying" for drone in state.drones):
            self.player.start(time_s)
        return why

    def is_over(self, time_s: float) -> bool:
        """Whether all drones are disarmed, or lost and said so."""
        state = self.known
        guard = self.guard or Guard()
        settings = guard.settings
        before = set(self.end.lost)
        over = self.end.look(
            time_s,
            {drone: state.phases.get(drone, "") for drone in state.drones},
            lost_after_s=settings.lost_after_s,
            heard=state.age_s(OFFBOARD, time_s) <= settings.pose_age_s,
            descends=self.player.touches_down or guard.step is GuardStep.LAND,
            given_up=self.gone,
        )
        for drone in sorted(self.end.lost - before):
            place = state.estimate.position_enu_m[state.bodies.index(drone)]
            sighting = "never seen" if np.isnan(place[2]) else f"last seen {place[2]:.2f} m high"
            self._out.tell(time_s, "lost", f"{drone}: not known to be disarmed, {sighting}")
        return over

    def enter(self, time_s: float, phase: str, reason: Reason) -> None:
        """Report the end of the phase before, if another one begins."""
        if self.phase and phase != self.phase:
            self._out.end_phase(time_s, sentence(self.phase, reason))
        self.phase = phase

    # ---------- Set-points

    @property
    def next_s(self) -> float:
        """Time when `step` has work to do; in the past for at once."""
        player = self.player
        return player.next_s if player.keeper is None else min(player.next_s, player.keeper.next_s)

    def step(self, time_s: float) -> FormationSetpoint:
        """Set-points for a time; a delivery weighs and watches meanwhile."""
        player = self.player
        delivery = self.player.keeper
        places = self.known.estimate.position_enu_m
        if self.away.any():
            places = places.copy()
            places[1:][self.away] = np.nan
        if delivery is not None:
            delivery.weigh(time_s)
        player.play_to(time_s, places)
        if player.state is not PlayState.IDLE and self.phase != DISARMED and not self._lands:
            self.enter(time_s, player.stage, player.reason)
        if player.stage in (*LOWERING, LANDING[0]):
            self.come_down(time_s)
        if reason := player.missed(places):
            self._out.tell(time_s, "not_in_place", reason)
        if delivery is not None and player.state is not PlayState.IDLE:
            delivery.enter(player.stage)
            if player.state is PlayState.ABORTING:
                delivery.tell_abort(time_s)
        return player.setpoint

    @property
    def _lands(self) -> bool:
        """Whether the guard has had all drones land where they are."""
        return self.guard is not None and self.guard.step is GuardStep.LAND

    def stand_still(self, time_s: float, gap_s: float) -> None:
        """Continue the plan where it was after a gap in the set-points; the drones held."""
        self.player.stand_still(time_s, gap_s)
        if self.player.state is not PlayState.IDLE:
            late = f"no set-points for {gap_s:.1f} s: the plan goes on later"
            self._out.tell(time_s, "late", late)

    def controls(self, age_s: float = 0.0) -> bool:
        """Whether a controller of the load flies, which relies on all drones and on fresh motion.

        `age_s`: age of the oldest part of the motion that it uses.
        """
        player = self.player
        guard = self.guard
        flying = player.state in (PlayState.FLYING, PlayState.GOAL, PlayState.PAUSED)
        if player.state is PlayState.DONE:  # a plan that ended in the air
            flying = player.stage != "abort"
        guarded = guard is not None and guard.step in _GUARDED
        return flying and not guarded and player.stage not in GROUND_PHASES and age_s <= TOO_OLD_S

    def hand_back(self) -> None:
        """Take the drones over from a controller of the load, where they are."""
        self.player.begin_at(self.known.estimate.position_enu_m[1:])

    # ---------- Faults and losses

    @property
    def next_reaction_s(self) -> float:
        """Time of the next reaction to a loss; in the past where somebody has fallen silent."""
        if self._silent:
            return -np.inf
        if not self._pending:
            return np.inf
        return min(due_s for due_s, _ in self._pending)

    def look(self, time_s: float) -> None:
        """Check for lost drones and faults, and run the reactions that are due."""
        player = self.player
        guard = self.guard
        if guard is not None:
            self._keep_recent(time_s)
        if player.state in (PlayState.IDLE, PlayState.DONE):
            if guard is not None:
                guard.step = GuardStep.WATCH
            return
        if player.touches_down or (guard is not None and guard.step is GuardStep.LAND):
            self._pending.clear()  # what sinks below its set-points now is not lost
            return
        bodies = {} if guard is None else self.health(time_s)
        bodies = {body: health for body, health in bodies.items() if body not in self.gone}
        if self._survive(time_s, bodies) or guard is None or not self.watches:
            return
        alone = guard.alone(bodies) if guard.step is GuardStep.LOWER else ""
        self._strays[:] = [drone == alone for drone in self.known.drones]
        waits = player.state is PlayState.PAUSED and not player.held
        carries = player.stage not in (*BEFORE_FORMATION, *LANDING)
        step = guard.look(time_s, bodies, waits=waits, carries=carries)
        if step is not None:
            self._act(step, time_s, bodies)

    def health(self, time_s: float) -> dict[str, Health]:
        """Age of the news, distance from the set-points and phase of all bodies."""
        health = health_of(self.known, time_s, [places for _, places in self._recent])
        for drone, looks in self._held_looks.items():
            if 0 < looks <= HELD_LOOKS:
                health[drone] = replace(health[drone], phase="flying")
        return health

    def _keep_recent(self, time_s: float) -> None:
        """Keep the set-points of the last `LAG_S`, and count the looks at which drones hold."""
        while self._recent and self._recent[0][0] < time_s - LAG_S - 1e-3:
            self._recent.popleft()
        if self.player.state is not PlayState.IDLE:
            self._recent.append((time_s, self.player.setpoint.drones.position_enu_m))
        for drone, looks in self._held_looks.items():
            holds = self.known.phases.get(drone) == "holding"
            self._held_looks[drone] = looks + 1 if holds else 0

    def _survive(self, time_s: float, bodies: dict[str, Health]) -> bool:
        """Continue without lost drones where there is a way."""
        way = self.contingency
        state = self.known
        player = self.player
        guard = self.guard
        if way is None or set(state.unseen(time_s)) - set(self.gone):
            return False
        if (watch := player.plan.rows["watch"][player.row]) and state.opens_hooks():
            lifting = bool(watch == TAKEN_UP)
            setpoints = player.setpoint.drones.position_enu_m
            losses = way.look(time_s, state.estimate, setpoints, lifting=lifting)
            for loss in losses if state.silent is None else self._silent:
                if way.can_answer(loss):
                    way.note(loss)
                    what = f"drone_{loss.drone + 1}: {loss.why}"
                    self._out.tell(time_s, "drone_given_up", what)
                    self._pending.append((time_s + way.spec.delay_s, loss))
            if not self._pending and guard is not None:
                name = guard.given_up(time_s, bodies)
                if name in state.drones:
                    drone = state.drones.index(name)
                    loss = Loss(drone, LossKind.UNGUIDED, guard.fault(bodies[name]))
                    if way.can_answer(loss):
                        return self._go_on_without(way, loss, time_s)
        due = [loss for due_s, loss in self._pending if due_s <= time_s + 1e-9]
        self._pending = [entry for entry in self._pending if entry[1] not in due]
        return any([self._go_on_without(way, loss, time_s) for loss in due])

    @property
    def _silent(self) -> list[Loss]:
        """Drones that have fallen silent, which nobody has answered yet.

        One that sinks as well falls; another one hovers where it is, and lands.
        """
        way = self.contingency
        state = self.known
        if way is None or not state.silent:
            return []
        losses = []
        for name, why in state.silent.items():
            drone = state.drones.index(name)
            falls = bool(way.losses["falls"][drone])
            losses.append(Loss(drone, LossKind.FALLS if falls else LossKind.UNGUIDED, why))
        return [loss for loss in losses if way.can_answer(loss)]

    def _go_on_without(self, way: Contingency, loss: Loss, time_s: float) -> bool:
        """Release the lost drones' cables and replan; a pause by a person stays in force."""
        player = self.player
        name = f"drone_{loss.drone + 1}"
        places = self.known.estimate.drones.position_enu_m
        answer = way.without(loss, player.plan, player.row, places)
        if answer is None:
            if name not in self._said:
                self._said.add(name)
                text = f"{name} is lost where no way of the others keeps clear of it"
                self._out.tell(time_s, "no_way", text)
            return False
        opens = way.spec.hook == "release"
        if loss.kind is LossKind.UNGUIDED and self.known.silent is None:
            self._out.tell(time_s, "drone_given_up", f"{name}: {loss.why}")
            if self.guard is not None and self.guard.doubts(name, self.health(time_s)[name]):
                self._out.ask({"kind": "land", "drone": loss.drone + 1})
        if opens:
            self._out.ask({"kind": "release", "cable": loss.drone + 1})
            self._out.tell(time_s, "hook_opened", f"cable_{loss.drone + 1} at the load")
        holds = answer.goes_on and player.held  # a person decides when the mission goes on
        reformed = int((answer.plan.stage == answer.plan.stage[0]).sum()) - 1
        what = answer.what + " after the pause" * holds
        reason = Reason(f"{name}: {loss.why}: {what}", planned=answer.goes_on)
        hold_row = reformed if holds else -1
        player.swap(answer.plan, time_s, way.down, hold_row=hold_row, reason=reason)
        self._out.tell(time_s, "reallocated", what)
        if self.guard is not None:
            fault = loss.why if loss.kind is LossKind.UNGUIDED else loss.kind.value
            hook = "its hook opens; " * opens
            step = self.guard.survive(time_s)
            self._out.tell(time_s, "guard", f"{step.value}: {name}: {fault}; {hook}{what}")
        return True

    def come_down(self, time_s: float) -> None:
        """Give back what integrators have learned; land round the load, clear of what fell down."""
        player = self.player
        state = self.known
        away = self.away
        if set(state.unseen(time_s)) - {state.drones[k] for k in np.flatnonzero(away)}:
            return
        plan = player.plan
        row = player.row
        motion = state.estimate.data
        assert plan.drone_acceleration_enu_m_s2 is not None
        length_m = 0.0
        if plan.carried is not None and player.keeper is None:  # a delivery leaves the load behind
            length_m = plan.carried.length_m
        places = plan.drone_position_enu_m
        lies = plan.load_pose[-1]
        feed_forward = plan.drone_acceleration_enu_m_s2[row]
        found = self.found
        down = self.down
        phase = look_down(
            down[0], found, plan.rows, row, feed_forward, places[-1], lies, length_m, motion
        )
        if phase == LOWERS and not away.any():
            player.plan = plan.given_back(found, row)
        elif phase == SPREADS:
            aside = found[:, ASIDE:]
            shifts = bool(aside.any())
            aside[away] = 0.0
            if shifts:
                player.plan = plan.moved(aside, row, int(down["spread_rows"][0]))
            if self._room is not None and away.any():
                rest = player.plan.part(row)
                places = state.estimate.drones.position_enu_m
                load = motion[0, :2] if shifts else lies[:2]
                rest = landed_clear(rest, load, away, places, *self._room)
                player.swap(rest, time_s, hold_row=0)

    def _act(self, step: GuardStep, time_s: float, bodies: dict[str, Health]) -> None:
        """Carry out the guard's decision, and report it."""
        player = self.player
        guard = self.guard
        assert guard is not None
        faults = [f"{b}: {what}" for b, h in bodies.items() if (what := guard.fault(h))]
        after_s = guard.settings.abort_after_s
        if not faults and step is GuardStep.RETURN:
            faults = [guard.low(bodies) or f"nobody resumed or aborted for {after_s:g} s"]
        elif not faults:
            faults = [f"faults are over: {self._resume_by} or abort; aborted in {after_s:g} s"]
        why = f"{step.value}: {', '.join(faults)}"
        if step is GuardStep.PAUSE and player.moving:
            player.pause(time_s, by_guard=True)
            player.hold_aside(self._lag_m(bodies))
        elif step is GuardStep.LOWER:
            player.set_down(time_s, why)
        elif step is GuardStep.RETURN:
            player.turn_back(time_s, why)
        elif step is GuardStep.LAND:
            self._out.ask({"kind": "land"})
            self.enter(time_s, LANDING[1], Reason(why, planned=False))
        self._out.tell(time_s, "guard", why)

    def _lag_m(self, bodies: dict[str, Health]) -> Array:
        """Mean level way from the set-points to the drones that follow them, (2,).

        A drone that leaves the formation stops where it is. So do the others: the set-points may be
        a second ahead of them.
        """
        assert self.guard is not None
        state = self.known
        follow = [d in bodies and not self.guard.fault(bodies[d]) for d in state.drones]
        setpoints = self.player.setpoint.drones.position_enu_m
        off_m = (state.estimate.drones.position_enu_m - setpoints)[follow, :2]
        off_m = off_m[np.isfinite(off_m).all(axis=1)]
        return off_m.mean(axis=0) if len(off_m) else np.zeros(2)


def guide(
    plan: FlightPlan,
    mission: MissionSpec,
    formation: Cone,
    system: RigSystem,
    gravity_m_s2: float,
    known: KnownState,
    out: Outlet,
    **options: Any,
) -> FlightGuidance:
    """Make what guides a flight of a plan, with a watch over a delivery that begins on the ground.

    `options`: `goals` of the player, and those of `FlightGuidance`.
    """
    delivery = None
    if mission.kind == "delivery" and plan.ground is not None:
        delivery = Delivery(
            mission,
            formation,
            slung_system(system, "mission.kind = delivery"),
            plan,
            out,
            estimate=known.estimate,
            rotor_speed_rad_s=known.rotor_speed_rad_s,
            gravity_m_s2=gravity_m_s2,
        )
    goals = options.pop("goals", None) or GoalSettings()
    player = FlightPlayer(plan, formation, mission, goals, delivery)
    room = None
    if isinstance(system, SlungLoadSystem):
        way = options.get("contingency")
        spec = ContingencySpec() if way is None else way.spec
        room = room_to_land(system, spec.clearance_m)
    return FlightGuidance(player, known, out, room=room, **options)


_GUARDED = (GuardStep.PAUSE, GuardStep.LOWER, GuardStep.LAND)
"""The drones hold the formation while the guard acts."""
