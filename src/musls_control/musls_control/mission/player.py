"""Plays a flight plan; the caller gives the time.

Everything that can happen is a `FlightPlan`: a gate stops its time, as a pause does; a goal, an
abort or a delivery that is given up replaces the rest of it by one that begins where the set-points
are now, so that set-points never jump.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import numpy as np
from pydantic import Field

from musls_control.autopilot import DroneSetpoints
from musls_control.mission.delivery import Delivery
from musls_control.mission.phase_end import GATES, Reason, in_place
from musls_control.mission.plan import (
    DeliveryGate,
    Draft,
    FlightPlan,
    GroundSpot,
    set_load_down,
    spread_and_land,
)
from musls_control.mission.rows import PLAY, ROUNDING_ROWS, due_row
from musls_control.mission.spec import BELOW_FORMATION, LANDING, LOWERING, MissionSpec
from musls_control.reference import LoadReference, Reference
from musls_description.config.schema import spec
from musls_description.hanging.cone import Cone
from musls_description.numerics import rotations
from musls_description.numerics.arrays import Array

NOWHERE = np.full((1, 3), np.nan)


WayDown = Callable[[FlightPlan, int], FlightPlan]


class PlayState(str, Enum):
    """State of the player."""

    IDLE = "idle"
    FLYING = "flying"
    PAUSED = "paused"
    GOAL = "goal"
    ABORTING = "aborting"
    DONE = "done"


class CommandRefusal(Exception):  # noqa: N818 (an answer, not an error of the program)
    """The present state does not allow what was asked for; the text says why."""


@dataclass(frozen=True)
class FormationSetpoint:
    """Set-points of load and drones at one time, ENU; NaN means "not given".

    Attributes:
        load_pose: x, y, z [m], yaw [rad], (4,).
        drones: Places and yaws, and what is fed forward beside them; while they land a velocity in
            place of the height.
        row: Counts the changes of the set-points.
    """

    load_pose: Array
    drones: DroneSetpoints
    stage: str
    row: int


@spec
class GoalSettings:
    """Speeds of goals, and the region in which they are accepted.

    Attributes:
        goal_speed_m_s: Speed of the load on the way to a goal, and when aborting.
        goal_yaw_rate_rad_s: Yaw rate of the load then.
        goal_radius_m: Farthest goal from the world's origin, horizontally.
        goal_height_m: Highest goal.
    """

    goal_speed_m_s: Annotated[float, Field(ge=0.05, le=2.0)] = 0.4
    goal_yaw_rate_rad_s: Annotated[float, Field(ge=0.05, le=1.5)] = 0.3
    goal_radius_m: Annotated[float, Field(ge=0.1, le=1000.0)] = 10.0
    goal_height_m: Annotated[float, Field(ge=0.1, le=1000.0)] = 5.0


class FlightPlayer:
    """Set-points over time of one flight that people may pause, send elsewhere and abort.

    At its gates it waits for a delivery that passes them.

    Attributes:
        play: State in the plan, `PLAY`, (1,); compiled code may continue in it.
        reason: Why the phase before the present one ended.
    """

    def __init__(
        self,
        plan: FlightPlan,
        cone: Cone,
        mission: MissionSpec,
        goals: GoalSettings,
        keeper: Delivery | None = None,
    ) -> None:
        """Prepare; the mission's settling time is kept on the way to goals and when aborting."""
        self.keeper = keeper
        self.play = np.zeros(1, PLAY)
        self.reason = Reason("")
        self._rest: Reference | None
        self._take(plan, 0.0)
        self.state = PlayState.IDLE
        self.goals = goals
        self._whole = plan
        self._cone = cone
        self._mission = mission
        self._rest = Reference.rest(plan.load_pose[0])
        self._paused_at_s: float | None = None
        self._resume = PlayState.FLYING
        self._rows_before = 0
        self._down: WayDown | None = None
        self._held = False
        self._hold_row = -1
        self._aside_m = np.zeros(2)  # of its set-points is where the formation holds
        self._shifted = False  # a pause has begun or ended since `play_to`

    def _take(self, plan: FlightPlan, time_s: float) -> None:
        """Fly a plan from a time on."""
        self.plan = plan
        self._rest = None
        self.play[0] = np.zeros(1, PLAY)[0]
        self.play["row"] = -1
        self.play["begun"] = time_s
        self.play["rate"] = plan.rate_hz
        self._gates = [] if self.keeper is None else list(plan.gates)
        self._waits = False
        self._due = -1
        self._missed = 0

    @property
    def row(self) -> int:
        """Present row of the plan."""
        return max(int(self.play["row"][0]), 0)

    @property
    def begin_s(self) -> float:
        """Time when the plan began, or would have begun without its waits."""
        return float(self.play["begun"][0])

    @property
    def next_s(self) -> float:
        """Time at which `play_to` has something to do; in the past while it is always so."""
        if self._shifted:
            return 0.0
        if self.state is PlayState.PAUSED:
            return np.inf
        if self._waits or self.ended:
            return 0.0
        rows = int(self.play["row"][0]) + 1 - 2.0 * ROUNDING_ROWS  # never later than `due_row`
        return self.begin_s + rows / self.plan.rate_hz

    @property
    def plays(self) -> bool:
        """Whether the plan goes on by time alone: no gate, pause, hold or guard stops it here."""
        moves = self.state in _MOVING and self.keeper is None and self._hold_row < 0
        return moves and not self._shifted and bool(self.plan.plain[self.row])

    @property
    def number(self) -> int:
        """Number of the present row among all rows of this flight."""
        return self._rows_before + self.row

    @property
    def stage(self) -> str:
        """Present phase or stage."""
        return self.plan.stage_at(self.row)

    @property
    def reference(self) -> Reference:
        """Reference of the load since `begin_s`; at rest while paused, idle or a row waits."""
        return self._rest or self.plan.reference

    @property
    def ended(self) -> bool:
        """Whether the last row has been shown for its time, at the last `advance`."""
        return self._due >= len(self.plan.stage)

    def advance(self, time_s: float, places_enu_m: Array | None = None) -> None:
        """Go to the row that is due.

        `places_enu_m`: where load and drones are, (1 + n, 3), for rows that wait for them; None
        waits for nobody.
        """
        rate = self.plan.rate_hz
        rows = len(self.plan.stage)
        plan = self.plan
        row_before = int(self.play["row"][0])
        wait = int(self.play["next_wait"][0])
        gate_now: DeliveryGate | None = None
        waits = plan.waits if places_enu_m is not None else plan.waits[:0]
        places = NOWHERE if places_enu_m is None else np.ascontiguousarray(places_enu_m)
        due = int(due_row(self.play[0], waits, plan.drone_position_enu_m, places, time_s))
        if self._gates and due >= self._gates[0].row:
            gate = self._gates[0]
            assert self.keeper is not None
            if self._waits or due > gate.row:
                self.play["begun"] = time_s - gate.row / rate
                due = gate.row
            self._waits = not self.keeper.passes(gate, time_s)
            if self._waits:
                due = gate.row - 1
            else:
                gate_now = self._gates.pop(0)
        self._due = due
        self.play["row"] = min(max(due, 0), rows - 1)
        if row_before >= 0 and plan.stage[row_before] != plan.stage[self.row]:
            self.reason = self._why_on(row_before, wait, gate_now, places)
        if self.play["waited"][0] == 0:
            self._rest = None
        elif self._rest is None:
            self._rest = Reference.rest(plan.load_pose[self.row])

    def _why_on(
        self, row: int, wait: int, gate: DeliveryGate | None, places_enu_m: Array
    ) -> Reason:
        """Why the phase of a row ended; `wait`: the wait that was next, `gate`: one that let on."""
        plan = self.plan
        if gate is not None:
            return Reason(GATES[gate.what])
        if int(self.play["next_wait"][0]) > wait:
            if int(self.play["missed"][0]) > self._missed:
                return Reason(self._what_is_off(places_enu_m))
            return in_place(plan.waits[wait], plan.rate_hz)
        begins = np.flatnonzero(plan.begins)
        k = int(np.searchsorted(begins, row, side="right"))
        return Reason(f"after its planned {(begins[k] - begins[k - 1]) / plan.rate_hz:.1f} s")

    def missed(self, places_enu_m: Array) -> str:
        """Bodies not in place when the last wait ran out of time; empty if nothing new."""
        count = int(self.play["missed"][0])
        before = self._missed
        self._missed = count
        return "" if count == before else self._what_is_off(places_enu_m)

    def _what_is_off(self, places_enu_m: Array) -> str:
        wait = self.plan.waits[int(self.play["next_wait"][0]) - 1]
        targets = self.plan.drone_position_enu_m[max(int(wait["row"]) - 1, 0)]
        off_m = np.linalg.norm(places_enu_m[1:] - targets, axis=1)
        reasons = [
            f"drone_{i + 1} is {off_m[i]:.2f} m from its place"
            for i in np.flatnonzero(off_m > wait["near"])
        ]
        height_m = float(places_enu_m[0, 2])
        (low_m, high_m) = (wait["lowest"], wait["highest"])
        if not low_m <= height_m <= high_m:
            heights = f"{low_m:.2f} to {high_m:.2f} m" if np.isfinite(low_m) else f"{high_m:.2f} m"
            reasons.append(f"the load is {height_m:.2f} m high, not {heights}")
        if wait["still"] and not reasons:
            reasons = ["the load still moves aside"]
        waited_s = int(wait["longest"]) / self.plan.rate_hz
        stage = self.plan.stage_at(min(int(wait["row"]), len(self.plan.stage) - 1))
        return f"{', '.join(reasons)} after {waited_s:g} s: {stage} begins all the same"

    @property
    def held(self) -> bool:
        """Whether a person has paused the flight."""
        return self._held

    @property
    def moving(self) -> bool:
        """Whether set-points move, and may be paused."""
        return self.state in _MOVING and not self.touches_down

    @property
    def touches_down(self) -> bool:
        """Whether the drones sink to the ground."""
        return self.state in _MOVING and self.plan.lands_in(self.row)

    def start(self, time_s: float) -> None:
        """Begin to fly.

        Raises:
            CommandRefusal: A flight is under way or over.
        """
        if self.state is not PlayState.IDLE:
            raise CommandRefusal(f"cannot start: {self.state.value}")
        self.state = PlayState.FLYING
        self._rest = None
        self.play["begun"] = time_s

    def at(self, time_s: float, places_enu_m: Array | None = None) -> FormationSetpoint:
        """Set-points at a time, see `play_to`."""
        self.play_to(time_s, places_enu_m)
        return self.setpoint

    def play_to(self, time_s: float, places_enu_m: Array | None = None) -> None:
        """Go to a time, which must not go back; places as for `advance`."""
        self._shifted = False
        if self.state not in (PlayState.IDLE, PlayState.PAUSED):
            self.advance(time_s, places_enu_m)
        if self.keeper is not None and self.state is PlayState.FLYING and self.keeper.turns_back:
            self.abort(time_s, f"the delivery is given up: {self.keeper.aborted}")
            self.advance(time_s)
        if 0 <= self._hold_row <= self.row and self.state in _MOVING:
            self.pause(time_s)
        lands = self.plan.landing_speed_m_s is not None
        if self.state is PlayState.FLYING and self.ended and not lands:
            self.state = PlayState.DONE

    @property
    def setpoint(self) -> FormationSetpoint:
        """Present set-points."""
        plan = self.plan
        row = self.row
        drones = plan.drone_setpoints(row, touches_down=self.touches_down)
        return FormationSetpoint(plan.load_pose[row], drones, plan.stage_at(row), self.number)

    def reference_at(self, time_s: float) -> LoadReference:
        """Set-point of the load at a time, with derivatives; at rest while paused or idle."""
        return self.reference.at(time_s - self.begin_s)

    def begin_at(self, places_enu_m: Array) -> None:
        """Lead the drones to the plan from where they are, (n, 3), NaN for what is not known."""
        self.plan = self.plan.from_places(self.row, places_enu_m)

    def pause(self, time_s: float, *, by_guard: bool = False) -> None:
        """Hold the present set-points; a pause of the guard's may become a person's.

        Raises:
            CommandRefusal: Nothing is being flown, or the drones are touching down.
        """
        if self.state is PlayState.PAUSED and not (by_guard or self._held):
            self._held = True
            return
        if self.state not in _MOVING:
            raise CommandRefusal(f"cannot pause: {self.state.value}")
        if self.touches_down:
            raise CommandRefusal("cannot pause: touching down")
        self._resume = self.state
        self.state = PlayState.PAUSED
        self._paused_at_s = time_s
        self._held = not by_guard
        self._hold_row = -1
        self._shifted = True
        self._rest = Reference.rest(self.plan.load_pose[self.row])

    def hold_aside(self, way_m: Array) -> None:
        """Hold the formation aside of its set-points in a pause, by (2,); it returns afterwards."""
        places = self.plan.drone_position_enu_m[self.row].copy()
        places[:, :2] += way_m
        self.plan = self.plan.from_places(self.row, places)
        self._aside_m = way_m
        self._rows_before += 1  # they are other set-points

    def resume(self, time_s: float) -> None:
        """Continue after a pause.

        Raises:
            CommandRefusal: Not paused.
        """
        if self.state is not PlayState.PAUSED or self._paused_at_s is None:
            raise CommandRefusal(f"cannot resume: {self.state.value}")
        self.state = self._resume
        self._held = False
        self._rest = None
        self._aside_m = np.zeros(2)
        self.stand_still(time_s, time_s - self._paused_at_s)
        self._paused_at_s = None

    def stand_still(self, time_s: float, gap_s: float) -> None:
        """Skip a gap, until now, in which the plan was not played; it continues where it was.

        A plan that began within the gap begins now.
        """
        if self.state is PlayState.PAUSED:
            return
        gap_s = min(gap_s, max(time_s - self.begin_s, 0.0))
        self.play["begun"] += gap_s
        self._shifted = True
        if self.keeper is not None:
            self.keeper.stand_still(gap_s)

    def go_to(self, load_pose: Array, time_s: float) -> None:
        """Carry the load to a pose, x, y, z [m, ENU], yaw [rad], (4,), and hold it there.

        Raises:
            CommandRefusal: The load is not in the air, or the pose is not finite, too low, too
                high or too far away.
        """
        state = self._resume if self.state is PlayState.PAUSED else self.state
        if state not in (PlayState.FLYING, PlayState.GOAL):
            raise CommandRefusal(f"no goal accepted: {state.value}")
        if self.keeper is not None:
            raise CommandRefusal("no goal accepted: a delivery is flown")
        if self._down is not None:
            raise CommandRefusal("no goal accepted: a drone is lost")
        if self._mission.drones or self.plan.held is not None:
            raise CommandRefusal(
                "no goal accepted: a rig or drones on paths of their own fly their plan"
            )
        pose = self.plan.load_pose[self.row]
        ground = self._whole.ground
        rest = -np.inf
        if ground is not None:
            rest = self._draft("").floor_m(ground.rests_m(pose)) + 1e-9
        if pose[2] <= rest or self.stage in (*LOWERING, *LANDING):
            raise CommandRefusal("no goal accepted: the load is not in the air")
        goals = self.goals
        near = np.hypot(*load_pose[:2]) <= goals.goal_radius_m
        if not (near and rest < load_pose[2] <= goals.goal_height_m and np.isfinite(load_pose[3])):
            raise CommandRefusal(
                f"goal {np.round(load_pose, 3).tolist()}: must be finite, {rest:g} to "
                f"{goals.goal_height_m:g} m high and within {goals.goal_radius_m:g} m of the origin"
            )
        draft = self._draft("goal")
        self._carry(draft, "goal", load_pose)
        self._replace(draft.plan(), time_s, Reason("a goal was set"))
        self.state = PlayState.GOAL

    def abort(self, time_s: float, why: str = "an abort was asked for") -> None:
        """Bring the load to where it was to be set down, and land; `why` is recorded.

        Before the load is lifted the drones land around it; a plan that ends in the air just stops.

        Raises:
            CommandRefusal: Nothing is being flown, or it is landing already.
        """
        if self.state in (PlayState.IDLE, PlayState.DONE, PlayState.ABORTING):
            raise CommandRefusal(f"nothing to abort: {self.state.value}")
        landing = (*LOWERING, *LANDING) if self.keeper is None else LANDING
        if self.stage in landing and self.state is not PlayState.GOAL:
            raise CommandRefusal("nothing to abort: landing already")
        ground = self._whole.ground
        down = self._draft("abort").plan() if ground is None else self._way_down(ground)
        self._replace(down, time_s, Reason(why, planned=False))
        self.state = PlayState.DONE if ground is None else PlayState.ABORTING

    def turn_back(self, time_s: float, why: str = "") -> None:
        """Abort the flight; what is lowering or landing already goes on, after a pause too."""
        try:
            self.abort(time_s, why)
        except CommandRefusal:
            if self.state is PlayState.PAUSED:
                self.resume(time_s)

    def set_down(self, time_s: float, why: str = "") -> None:
        """Lower the load where it is and land around it; a delivery is aborted as its own way is.

        What is lowering or landing already goes on, after a pause too. A plan that ends in the air
        stays paused.
        """
        ground = self._whole.ground
        if ground is None or self.state in (PlayState.IDLE, PlayState.DONE):
            return
        if self.stage in (*LOWERING, *LANDING):
            if self.state is PlayState.PAUSED:
                self.resume(time_s)
            return
        if self.keeper is not None:
            self.abort(time_s, why)
            return
        self._replace(self._way_down(ground, carries=False), time_s, Reason(why, planned=False))
        self.state = PlayState.ABORTING

    def swap(
        self,
        plan: FlightPlan,
        time_s: float,
        down: WayDown | None = None,
        *,
        hold_row: int = -1,
        reason: Reason | None = None,
    ) -> None:
        """Fly another rest of the flight, which begins where the set-points are; ends a pause.

        `down`: makes the way down from a row of a plan from now on, when the formation is another.
        `hold_row`: a pause that a person asked for holds again from this row on; -1 for never.
        `reason`: why, where the present phase ends with it.
        """
        if self.state is PlayState.PAUSED:
            self.state = self._resume
        was_held = self._held
        self._down = down or self._down
        self.keeper = None
        self._replace(plan, time_s, reason or self.reason)
        self._hold_row = hold_row if was_held else -1

    def finish(self) -> None:
        """End the flight: all drones are down and disarmed."""
        self.state = PlayState.DONE

    def _replace(self, plan: FlightPlan, time_s: float, reason: Reason) -> None:
        """Continue with another plan, which begins with the present set-points."""
        self.reason = reason
        self._rows_before += self.row + 1
        self._take(plan, time_s)
        self._gates = []
        self._paused_at_s = None
        self._held = False
        self._hold_row = -1
        self._aside_m = np.zeros(2)

    def _draft(self, name: str) -> Draft:
        """Draft of a plan whose first row are the present set-points."""
        plan = self.plan
        now = slice(self.row, self.row + 1)
        draft = Draft.of(self._mission, self._cone, plan.drone_yaw_rad.shape[1])
        draft.go_on_from(plan, self.row)
        pose = plan.load_pose[now].copy()
        pose[:, :2] += self._aside_m
        draft.add(name, pose, plan.drone_position_enu_m[now])
        draft.yaw[-1] = plan.drone_yaw_rad[now]
        return draft

    def _carry(self, draft: Draft, name: str, pose: Array) -> None:
        """Append a straight move of the load to a pose, the shorter way round."""
        end = pose.copy()
        end[3] = rotations.near(end[3], draft.last[3])
        speed = self.goals.goal_speed_m_s
        yaw_rate = self.goals.goal_yaw_rate_rad_s
        draft.move(name, end, speed, yaw_rate, self._mission.settle_s)

    def _way_down(self, ground: GroundSpot, *, carries: bool = True) -> FlightPlan:
        """The rest of an aborted flight; `carries` the load to its planned place first."""
        pose = self.plan.load_pose[self.row]
        whole = self._whole
        stage = self.stage
        if self._down is not None:
            return self._down(self.plan, self.row)
        if stage in BELOW_FORMATION:  # touch down below the present places
            return self._draft(LANDING[1]).plan(ground)
        if self.keeper is not None and stage != "form_up":
            return self.keeper.way_back(self.row)
        draft = self._draft("abort")
        hangs = pose[2] > draft.floor_m(ground.rests_m(pose)) + 1e-9
        if carries and hangs and "lower" in whole.stage_names:
            lower = whole.stage == whole.stage_names.index("lower")
            place = whole.load_pose[-1].copy()
            place[2] = max(pose[2], whole.load_pose[lower, 2].max())
            self._carry(draft, "abort", place)
        set_load_down(draft, ground)
        spread_and_land(draft, ground)
        return draft.plan(ground)


_MOVING = (PlayState.FLYING, PlayState.GOAL, PlayState.ABORTING)
