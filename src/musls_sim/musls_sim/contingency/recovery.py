"""Notices the loss of a drone in flight and lets the others take its part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from musls_control.estimate import Estimate
from musls_control.formation import drone_poses
from musls_control.mission.plan import FlightPlan
from musls_control.mission.spec import GROUND_PHASES, MissionSpec
from musls_control.reference import Piece, Reference, StraightMove
from musls_control.trajectories.base import smoothstep
from musls_description.arrays import Array
from musls_description.drone import tip_radius_m
from musls_description.errors import ConfigError
from musls_description.spawn import ground_radius_m
from musls_description.system import formation_of
from musls_sim.contingency.reallocation import Reallocation, reallocate
from musls_sim.plants.changes import CutCable
from musls_sim.scenario.events import EventContext
from musls_sim.scenario.physics import CONTROL_PERIOD_S
from musls_sim.scenario.scenario import MIN_DRONES, ContingencySpec, Scenario
from musls_sim.session.guidance import Guidance, MissionGuidance

# ---------- How the loss of a drone or of a cable is noticed: by measurements only


class LossDetector:
    """Watches places of drones and forces of cables."""

    def __init__(self, spec: ContingencySpec, even_share_n: Array, period_s: float) -> None:
        """`even_share_n`: even part of the load's weight, of each cable, (n,)."""
        self._spec, self._slack_n, self._period_s = spec, spec.slack_share * even_share_n, period_s
        self._slack_s, self._taut_s = np.zeros((2, len(even_share_n)))
        self._carried = np.zeros(len(even_share_n), bool)

    def fallen(self, estimate: Estimate, setpoint_enu_m: Array) -> list[tuple[int, str]]:
        """Drones (from 0) that fall, and what was seen.

        `setpoint_enu_m`: where the drones are to be, (n, 3).
        """
        drones = estimate.drones
        below = setpoint_enu_m[:, 2] - drones.position_enu_m[:, 2]
        sinking = -drones.velocity_enu_m_s[:, 2]
        found = (below > self._spec.drop_m) & (sinking > self._spec.sink_m_s)
        return [
            (int(i), f"{below[i]:.2f} m below its set-point, sinking at {sinking[i]:.1f} m/s")
            for i in np.flatnonzero(found)
        ]

    def slackened(self, estimate: Estimate, *, lifting: bool = False) -> list[tuple[int, str]]:
        """Cables (from 0) that have carried nothing for too long, and what was seen.

        `lifting`: the load is only being taken up: a cable that has not carried yet, for as long as
        it may be slack, is not lost, it is late.
        """
        slack = estimate.tension_n[:, 0] < self._slack_n
        self._taut_s = np.where(slack, 0.0, self._taut_s + self._period_s)
        self._carried |= self._taut_s > self._spec.slack_s
        counts = slack & self._carried if lifting else slack
        self._slack_s = np.where(counts, self._slack_s + self._period_s, 0.0)
        late = self._slack_s > self._spec.slack_s
        return [
            (int(i), f"no force in its cable for {self._slack_s[i]:.1f} s")
            for i in np.flatnonzero(late)
        ]


# ---------- The rest of the flight as set-points: new formation, then on, or down

ASIDE_M = np.array([1.0, 1.0])
"""Outwards and upwards: where a drone without cable goes, out of the others' way."""


@dataclass(frozen=True)
class Situation:
    """State of a flight at the moment its plan is replaced.

    Attributes:
        drones_enu_m: Present set-points of the drones, (n, 3).
        offsets_m: New places in the frame of the load's set-point, (n, 3); NaN for drones that
            do not fly any more.
    """

    plan: FlightPlan
    row: int
    drones_enu_m: Array
    offsets_m: Array

    @property
    def pose(self) -> Array:
        """Set-point of the load: x, y, z [m], yaw [rad], (4,)."""
        return self.plan.load_pose[self.row]

    def places(self, pose: Array) -> Array:
        """Places of the drones for poses of the load, (k, 4) to (k, n, 3); those lost stay."""
        found, _ = drone_poses(
            pose[:, :3], pose[:, 3], self.offsets_m, np.zeros(len(self.offsets_m))
        )
        return np.where(np.isnan(found), self.drones_enu_m, found)


def continued(now: Situation, mission: MissionSpec, speed_m_s: float) -> FlightPlan:
    """New formation, then the rest of the plan in it."""
    old, begin = now.plan, min(now.row + 1, len(now.plan.stage) - 1)
    pose, planned = old.load_pose[begin:], old.drone_position_enu_m[begin:]
    # Where the drones leave the formation, to land, the way there starts at the new places.
    leaves = np.isin([old.stage_names[k] for k in old.stage[begin:]], ("spread", "land"))
    drones = now.places(pose)
    if leaves.any():
        row = int(leaves.argmax())
        count = min(max(1, int(mission.form_up_s * old.rate_hz)), len(pose) - row)
        ahead = np.arange(len(pose) - row) + 1.0
        left = smoothstep(np.clip(1.0 - ahead / count, 0.0, 1.0))
        shift = drones[row] - planned[row]
        drones[row:] = planned[row:] + left[:, None, None] * shift
        gone = np.isnan(now.offsets_m[:, 0])
        drones[row:, gone] = now.drones_enu_m[gone]
    rest = replace(old.part(begin), drone_position_enu_m=drones)
    return _joined(_reformed(now, mission, speed_m_s), rest)


def landed(
    now: Situation, scenario: Scenario, *, reforms: bool, speed_m_s: float, lower_m_s: float
) -> FlightPlan:
    """Set the load down where it is, then land around it."""
    system, mission = formation_of(scenario.system, "contingency"), scenario.mission
    if reforms:
        plan = _reformed(now, mission, speed_m_s)
    else:  # the move down begins where the set-points are
        plan = _plan(now, "lower", Reference.rest(now.pose), now.drones_enu_m[None])
    resting = now.pose.copy()
    resting[2] = min(-system.load.collision.bottom_m, now.pose[2])
    slack = resting.copy()
    slack[2] = min(mission.slack_height_m, resting[2])
    plan = _joined(plan, _carried(now, "lower", now.pose, resting, lower_m_s))
    plan = _joined(plan, _carried(now, "slacken", resting, slack, lower_m_s))
    start = plan.drone_position_enu_m[-1]
    end = start.copy()
    for i in np.flatnonzero(~np.isnan(now.offsets_m[:, 0])):
        outward = start[i, :2] - slack[:2]
        outward /= max(float(np.linalg.norm(outward)), 1e-9)
        anchor_m = float(np.hypot(*system.load.cable_attachments_m[i][:2]))
        end[i, :2] = slack[:2] + outward * (anchor_m + ground_radius_m(system, int(i)))
        end[i, 2] = -system.drones[i].collision.bottom_m
    low = end + [0.0, 0.0, mission.rise_m]
    low = np.where(np.isnan(now.offsets_m), start, low)
    spread = _flown(now, "spread", slack, start, low, mission.form_up_s, mission.settle_s)
    land = _plan(now, "land", Reference.rest(slack), end[None])
    land = replace(land, landing_speed_m_s=mission.landing_speed_m_s)
    return _joined(_joined(plan, spread), land)


def _reformed(now: Situation, mission: MissionSpec, speed_m_s: float) -> FlightPlan:
    """The way to the new formation, with the load's set-point at rest."""
    places = now.places(now.pose[None])[0]
    farthest = float(np.linalg.norm(places - now.drones_enu_m, axis=1).max())
    # A smooth move is 1.5 times as fast in its middle as on average.
    duration_s = max(1.0, 1.5 * farthest / speed_m_s)
    return _flown(now, "reform", now.pose, now.drones_enu_m, places, duration_s, mission.settle_s)


def _carried(now: Situation, name: str, start: Array, end: Array, speed_m_s: float) -> FlightPlan:
    """A straight move of the load, in formation."""
    rate = now.plan.rate_hz
    share = _shares(now, float(np.linalg.norm(end[:3] - start[:3])) / speed_m_s)
    move = Piece(-1.0 / rate, -1.0 / rate, StraightMove(start, end, len(share) / rate))
    pose = start + share[:, None] * (end - start)
    return _plan(now, name, Reference([move]), now.places(pose))


def _flown(
    now: Situation,
    name: str,
    load_pose: Array,
    start: Array,
    end: Array,
    duration_s: float,
    hold_s: float,
) -> FlightPlan:
    """A smooth move of the drones, (n, 3) to (n, 3), and a rest; the load's set-point rests."""
    share = smoothstep(_shares(now, duration_s))
    share = np.append(share, np.ones(int(hold_s * now.plan.rate_hz)))
    drones = start + share[:, None, None] * (end - start)
    return _plan(now, name, Reference.rest(load_pose), drones)


def _shares(now: Situation, duration_s: float) -> Array:
    """Share of a move at each of its rows; the first one already moves, (k,)."""
    count = max(1, int(np.ceil(duration_s * now.plan.rate_hz - 1e-9)))
    return (1.0 + np.arange(count)) / count


def _plan(now: Situation, name: str, reference: Reference, drones: Array) -> FlightPlan:
    """Plan of one phase; the drones' headings stay."""
    yaw = np.tile(now.plan.drone_yaw_rad[now.row], (len(drones), 1))
    stage = np.zeros(len(drones), np.int64)
    return FlightPlan(now.plan.rate_hz, reference, drones, yaw, stage, (name,))


def _joined(first: FlightPlan, rest: FlightPlan) -> FlightPlan:
    """One plan, then another one of the same rate."""
    return replace(
        rest,
        reference=first.reference.then(rest.reference, first.duration_s),
        drone_position_enu_m=np.vstack([first.drone_position_enu_m, rest.drone_position_enu_m]),
        drone_yaw_rad=np.vstack([first.drone_yaw_rad, rest.drone_yaw_rad]),
        stage=np.concatenate([first.stage, rest.stage + len(first.stage_names)]),
        stage_names=(*first.stage_names, *rest.stage_names),
    )


def landed_clear(
    now: Situation,
    lost: NDArray[np.bool_],
    drones_enu_m: Array,
    apart_m: Array,
    reach_m: Array,
) -> FlightPlan | None:
    """The rest of a landing with places that keep clear of the drones that lie on the ground.

    Args:
        now: Where the flight is: its drones begin to spread out.
        lost: Drones that do not fly any more, (n,).
        drones_enu_m: Where all drones are, (n, 3).
        apart_m: Least level distance of each two, (n, n).
        reach_m: Largest level distance of each from the load, (n,).

    Returns:
        None where the places are clear already.
    """
    plan = now.plan.part(now.row)
    planned = plan.drone_position_enu_m
    spots = planned[-1, :, :2].copy()
    spots[lost] = drones_enu_m[lost, :2]
    clear = _moved_apart(spots, lost, apart_m, plan.load_pose[-1, :2], reach_m)
    shift = np.where(lost[:, None], 0.0, clear - spots)
    if np.abs(shift).max() < 1e-3:
        return None
    spreading = max(int((plan.stage == plan.stage[0]).sum()) - 1, 1)
    share = np.minimum(np.arange(len(planned)) / spreading, 1.0)
    moved = planned.copy()
    moved[:, :, :2] += smoothstep(share)[:, None, None] * shift
    return replace(plan, drone_position_enu_m=moved)


def _moved_apart(
    spots: Array, fixed: NDArray[np.bool_], apart_m: Array, load_enu_m: Array, reach_m: Array
) -> Array:
    """Move places within reach of the load, by little, until they are apart; (n, 2)."""
    places = spots.copy()
    for _ in range(300):
        way = places[:, None] - places[None]
        distance = np.linalg.norm(way, axis=2) + 1e9 * np.eye(len(places))
        missing = np.maximum(apart_m - distance, 0.0)
        missing[np.ix_(fixed, fixed)] = 0.0
        if missing.max() < 1e-4:
            break
        # Each of two gives way by half, one beside a fixed place by all of it.
        share = np.where(fixed[:, None], 0.0, np.where(fixed[None], 1.0, 0.5))
        places += ((share * missing / np.maximum(distance, 1e-9))[:, :, None] * way).sum(axis=1)
        out = places - load_enu_m
        too_far = reach_m / np.maximum(np.linalg.norm(out, axis=1), 1e-9)
        places[~fixed] = (load_enu_m + np.minimum(too_far, 1.0)[:, None] * out)[~fixed]
    return places


def aside(scenario: Scenario, drone: int) -> Array:
    """Place of a drone (from 0) that has lost its cable, in the frame of the load's set-point."""
    place: Array = scenario.formation.offsets_m(scenario.system.n_drones)[drone].copy()
    outward = place[:2] / max(float(np.linalg.norm(place[:2])), 1e-9)
    place[:2] += ASIDE_M[0] * outward
    place[2] += ASIDE_M[1]
    return place


# ---------- From the loss to the answer

CHECK_PERIODS = 5
"""Control periods between two looks: 50 Hz."""

TAUT_SHARE = 0.95
"""Drones land no farther from the load than this share of their cable."""

MIN_LEFT = 3
"""With fewer drones no new formation is looked for."""

UNWATCHED = GROUND_PHASES - {"lift"}
"""Phases in which nothing is watched: the load stands, or is being set down."""

Note = Callable[[float, str, str], None]


@dataclass(frozen=True)
class _Loss:
    """A loss that was noticed, of a drone (from 0), and when something is done about it.

    Attributes:
        falls: Whether the drone itself is lost, and not its cable only.
    """

    drone: int
    falls: bool
    act_tick: int


def contingency_of(
    scenario: Scenario, context: EventContext, guidance: Guidance, note: Note, *, guided: bool
) -> Contingency | None:
    """Contingency step of a scenario; None where it has no `contingency`.

    `note`: writes down what happened: time, kind, text.
    `guided`: whether the mission's set-points fly the drones, and not a controller.
    """
    spec = scenario.contingency
    if spec is None:
        return None
    if not isinstance(guidance, MissionGuidance) or not guided or context.estimator is None:
        raise ConfigError(
            "contingency changes the set-points of the formation and needs controller.kind: "
            f"formation, not {scenario.controller.kind}; or leave contingency out "
            "(--set contingency=null)"
        )
    system = formation_of(scenario.system, "contingency")
    if system.n_drones < MIN_DRONES:
        raise ConfigError(
            f"contingency: {system.name} has {system.n_drones} drones; the loss of one can be "
            f"survived by {MIN_DRONES} or more"
        )
    if spec.hook == "release":
        try:
            context.check(CutCable(1, 1))
        except ConfigError as error:
            raise ConfigError(f"contingency.hook = release: {error}; or hook: hold") from None
    return Contingency(scenario, spec, context, guidance, context.estimator.estimate, note)


class Contingency:
    """Watches for losses and answers them.

    Attributes:
        answers: The formations that were found, one for each loss; None where there was none.
    """

    def __init__(
        self,
        scenario: Scenario,
        spec: ContingencySpec,
        context: EventContext,
        guidance: MissionGuidance,
        estimate: Estimate,
        note: Note,
    ) -> None:
        self._scenario, self._spec, self._context = scenario, spec, context
        self._system = system = formation_of(scenario.system, "contingency")
        self._guidance, self._estimate, self._note = guidance, estimate, note
        n = system.n_drones
        share = system.load.mass_kg * scenario.physics.gravity_m_s2 / n
        self._detector = LossDetector(spec, np.full(n, share), CHECK_PERIODS * CONTROL_PERIOD_S)
        self._gone, self._idle = np.zeros(n, bool), np.zeros(n, bool)
        self._pending: list[_Loss] = []
        self._spreads = False
        self.answers: list[Reallocation | None] = []

    def step(self, tick: int) -> None:
        """Look, and do what is due."""
        if tick % CHECK_PERIODS == 0 and self._guidance.stage not in UNWATCHED:
            self._look(tick)
        if self._gone.any() and not self._spreads and self._guidance.stage == "spread":
            self._spreads = True
            self._land_clear(tick)
        for loss in [loss for loss in self._pending if loss.act_tick <= tick]:
            self._pending.remove(loss)
            self._answer(loss, tick)

    def _land_clear(self, tick: int) -> None:
        """Land beside the drones that have fallen down, not on them."""
        guidance = self._guidance
        radii = np.array([tip_radius_m(drone) for drone in self._scenario.system.drones])
        apart_m = radii[:, None] + radii[None] + self._spec.clearance_m
        places = self._planned_places()
        now = Situation(guidance.plan, guidance.row, places, np.zeros_like(places))
        found = self._estimate.drones.position_enu_m
        hooks = np.array(self._system.load.cable_attachments_m)[:, :2]
        lengths = np.array([cable.length_m for cable in self._system.cables])
        reach_m = np.linalg.norm(hooks, axis=1) + TAUT_SHARE * lengths
        plan = landed_clear(now, self._gone, found, apart_m, reach_m)
        if plan is not None:
            guidance.replace(plan, tick, self._gone)

    def _look(self, tick: int) -> None:
        setpoint = self._guidance.setpoint.position_enu_m
        fallen = self._detector.fallen(self._estimate, setpoint)
        lifting = self._guidance.stage == "lift"
        slack = self._detector.slackened(self._estimate, lifting=lifting)
        act_tick = tick + round(self._spec.delay_s / CONTROL_PERIOD_S)
        for seen, falls in ((fallen, True), (slack, False)):
            for drone, why in seen:
                if self._gone[drone] or self._idle[drone]:
                    continue
                (self._gone if falls else self._idle)[drone] = True
                self._note(tick * CONTROL_PERIOD_S, "drone_given_up", f"drone_{drone + 1}: {why}")
                self._pending.append(_Loss(drone, falls, act_tick))

    def _answer(self, loss: _Loss, tick: int) -> None:
        """Let go what is lost, and change the plan."""
        time_s, spec = tick * CONTROL_PERIOD_S, self._spec
        if spec.hook == "release":  # what is left of a cable that is slack is let go, too
            self._context.apply(CutCable(loss.drone + 1, 1))
            self._note(time_s, "hook_opened", f"cable_{loss.drone + 1} at the load")
        found = self._formation()
        self.answers.append(found)
        guidance, scenario = self._guidance, self._scenario
        offsets = scenario.formation.offsets_m(len(self._gone)).copy()
        if found is not None:
            offsets[:] = found.offsets_m
        offsets[self._gone] = np.nan
        for drone in np.flatnonzero(self._idle):
            offsets[drone] = aside(scenario, int(drone))
        now = Situation(guidance.plan, guidance.row, self._planned_places(), offsets)
        if found is not None and found.thrust_margin >= spec.margin and spec.then == "continue":
            plan = continued(now, scenario.mission, spec.speed_m_s)
        else:
            plan = landed(
                now,
                scenario,
                reforms=found is not None and found.thrust_margin > 1.0,
                speed_m_s=spec.speed_m_s,
                lower_m_s=spec.lower_speed_m_s,
            )
        guidance.replace(plan, tick, self._gone)
        self._note(time_s, "reallocated", self._sentence(found))

    def _planned_places(self) -> Array:
        return self._guidance.plan.drone_position_enu_m[self._guidance.row].copy()

    def _formation(self) -> Reallocation | None:
        lost = np.flatnonzero(self._gone | self._idle) + 1
        hanging = np.flatnonzero(self._gone) + 1 if self._spec.hook == "hold" else np.zeros(0, int)
        if len(self._gone) - len(lost) < MIN_LEFT:
            return None
        return reallocate(self._scenario, lost.tolist(), hanging.tolist(), self._spec)

    def _sentence(self, found: Reallocation | None) -> str:
        if found is None:
            return "no formation holds the load: it is set down at once"
        margin = (
            f"thrust margin {found.thrust_margin:.2f}, load leans {found.load_tilt_deg:.0f} deg"
        )
        if found.thrust_margin < self._spec.margin:
            return f"too little thrust to go on ({margin}): the load is set down"
        goes_on = self._spec.then == "continue"
        return f"new formation ({margin}): {'the mission goes on' if goes_on else 'landing'}"
