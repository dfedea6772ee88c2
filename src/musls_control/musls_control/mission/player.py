"""Plays a flight plan; the caller gives the time.

Everything that can happen is a `FlightPlan`: a gate stops its time, as a pause does; a goal, an
abort or a delivery that is given up replaces the rest of it by one that begins where the set-points
are now, so that set-points never jump.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musls_control.formation import Cone, drone_poses
from musls_control.mission.plan import FlightPlan, Gate
from musls_control.mission.spec import MissionSpec
from musls_control.phases import BELOW_FORMATION, LANDING, LOWERING
from musls_control.reference import LoadReference, Piece, Reference, StraightMove

Array = NDArray[np.float64]

ROUNDING_ROWS = 1e-6
"""A row counts as due this much early, so that rounding of times delays none."""


class Gatekeeper(Protocol):
    """Decides whether a delivery may pass its gates, and plans its way back."""

    @property
    def turns_back(self) -> bool:
        """Whether the delivery was given up and the drones fly in formation."""

    def passes(self, gate: Gate, time_s: float) -> bool:
        """Whether a gate lets the next row through."""

    def way_back(self, load_pose: Array) -> FlightPlan:
        """The rest of the flight from a set-point of the load on, (4,)."""


class PlanPlayer:
    """Present row of a plan; waits at its gates.

    Attributes:
        row: Present row; -1 before the first.
        begin_s: When the plan began, or would have begun without its waits.
        next_s: When the next row is due; now while it waits, and after the last row.
    """

    def __init__(self, plan: FlightPlan, keeper: Gatekeeper | None = None) -> None:
        """Prepare; `keeper` decides about the gates of a delivery."""
        self.keeper = keeper
        self.take(plan, 0.0)

    def take(self, plan: FlightPlan, time_s: float) -> None:
        """Fly a plan from a time on."""
        self.plan, self.begin_s, self.next_s, self.row = plan, time_s, time_s, -1
        self._gates = [] if self.keeper is None else list(plan.gates)

    @property
    def ended(self) -> bool:
        """Whether the last row has been shown for its time, at the last `advance`."""
        return self._due >= len(self.plan.stage)

    def advance(self, time_s: float) -> bool:
        """Go to the row that is due; returns whether it is another one than before."""
        rate, rows = self.plan.rate_hz, len(self.plan.stage)
        due = int(np.floor((time_s - self.begin_s) * rate + ROUNDING_ROWS))
        if self._gates and due >= self._gates[0].row:
            gate = self._gates[0]
            assert self.keeper is not None
            if self._waits or due > gate.row:
                self.begin_s, due = time_s - gate.row / rate, gate.row
            self._waits = not self.keeper.passes(gate, time_s)
            if self._waits:
                due = gate.row - 1
            else:
                del self._gates[0]
        self._due = due
        row = min(max(due, 0), rows - 1)
        held = self._waits or due >= rows
        self.next_s = time_s if held else self.begin_s + (due + 1) / rate
        changed, self.row = row != self.row, row
        return changed

    _waits, _due = False, -1

    def reference_at(self, time_s: float) -> LoadReference:
        """Set-point of the load at a time, with derivatives."""
        return self.plan.reference.at(time_s - self.begin_s)


class PlayState(str, Enum):
    """State of the player."""

    IDLE = "idle"
    FLYING = "flying"
    PAUSED = "paused"
    GOAL = "goal"
    ABORTING = "aborting"
    DONE = "done"


class Refused(Exception):  # noqa: N818 (an answer, not an error of the program)
    """The present state does not allow what was asked for; the text says why."""


@dataclass(frozen=True)
class FormationSetpoint:
    """Set-points of load and drones at one time, ENU; NaN means "not given".

    Attributes:
        load_pose: x, y, z [m], yaw [rad], (4,).
        drone_position_enu_m: (n, 3); the height is NaN while landing.
        drone_velocity_enu_m_s: (n, 3); only the vertical part, only while landing.
        drone_yaw_rad: (n,).
        row: Counts the changes of the set-points.
    """

    load_pose: Array
    drone_position_enu_m: Array
    drone_velocity_enu_m_s: Array
    drone_yaw_rad: Array
    stage: str
    row: int


@dataclass(frozen=True)
class GoalSettings:
    """How goals are flown to, and which are refused.

    Attributes:
        goal_speed_m_s: Speed of the load on the way to a goal, and when aborting.
        goal_yaw_rate_rad_s: Its turning then.
        goal_radius_m: Farthest goal from the world's origin, horizontally.
        goal_height_m: Highest goal.
    """

    goal_speed_m_s: float = 0.4
    goal_yaw_rate_rad_s: float = 0.3
    goal_radius_m: float = 10.0
    goal_height_m: float = 5.0


class FlightPlayer(PlanPlayer):
    """Set-points over time of one flight that people may pause, send elsewhere and abort."""

    def __init__(
        self,
        plan: FlightPlan,
        cone: Cone,
        mission: MissionSpec,
        goals: GoalSettings,
        keeper: Gatekeeper | None = None,
    ) -> None:
        """Prepare; the mission's settling time is kept on the way to goals and when aborting."""
        super().__init__(plan, keeper)
        self.state, self.goals = PlayState.IDLE, goals
        self._whole, self._cone, self._settle_s = plan, cone, mission.settle_s
        self._paused_at_s: float | None = None
        self._resume = PlayState.FLYING
        self._rows_before, self.row, self._lands = 0, 0, False

    @property
    def moving(self) -> bool:
        """Whether set-points move, and may be paused."""
        return self.state in _MOVING and not self._lands

    def start(self, time_s: float) -> None:
        """Begin to fly.

        Raises:
            Refused: A flight is under way or over.
        """
        if self.state is not PlayState.IDLE:
            raise Refused(f"cannot start: {self.state.value}")
        self.state, self.begin_s = PlayState.FLYING, time_s

    def at(self, time_s: float) -> FormationSetpoint:
        """Set-points at a time, which must not go back."""
        if self.state not in (PlayState.IDLE, PlayState.PAUSED):
            self.advance(time_s)
        if self.keeper is not None and self.state is PlayState.FLYING and self.keeper.turns_back:
            self.abort(time_s)
            self.advance(time_s)
        plan, row = self.plan, self.row
        if self.state is PlayState.FLYING and self.ended and plan.landing_speed_m_s is None:
            self.state = PlayState.DONE
        self._lands = plan.lands_in(row) and self.state in _MOVING
        drones = plan.drone_setpoints(row, touches_down=self._lands)
        return FormationSetpoint(
            plan.load_pose[row],
            drones.position_enu_m,
            drones.velocity_enu_m_s,
            drones.yaw_enu_rad,
            plan.stage_at(row),
            self._rows_before + row,
        )

    def reference_at(self, time_s: float) -> LoadReference:
        """Set-point of the load at a time, with derivatives; at rest while paused or idle."""
        if self.state is PlayState.IDLE or self._paused_at_s is not None:
            return Reference.rest(self.plan.load_pose[self.row]).at(0.0)
        return super().reference_at(time_s)

    def pause(self, time_s: float) -> None:
        """Hold the present set-points.

        Raises:
            Refused: Nothing is being flown, or the drones are touching down.
        """
        if self.state not in _MOVING:
            raise Refused(f"cannot pause: {self.state.value}")
        if self._lands:
            raise Refused("cannot pause: touching down")
        self._resume, self.state, self._paused_at_s = self.state, PlayState.PAUSED, time_s

    def resume(self, time_s: float) -> None:
        """Go on after a pause.

        Raises:
            Refused: Not paused.
        """
        if self.state is not PlayState.PAUSED or self._paused_at_s is None:
            raise Refused(f"cannot resume: {self.state.value}")
        self.begin_s += time_s - self._paused_at_s
        self.state, self._paused_at_s = self._resume, None

    def go_to(self, load_pose: Array, time_s: float) -> None:
        """Carry the load to a pose, x, y, z [m, ENU], yaw [rad], (4,), and hold it there.

        Raises:
            Refused: The load is not in the air, or the pose is not finite, too low, too high or
                too far away.
        """
        if self.state not in (PlayState.FLYING, PlayState.GOAL, PlayState.PAUSED):
            raise Refused(f"no goal accepted: {self.state.value}")
        if self.keeper is not None:
            raise Refused("no goal accepted: a delivery is flown")
        rest, pose = self._resting_height_m(), self.plan.load_pose[self.row]
        if pose[2] <= rest or self._stage in (*LOWERING, *LANDING):
            raise Refused("no goal accepted: the load is not in the air")
        goals = self.goals
        near = np.hypot(*load_pose[:2]) <= goals.goal_radius_m
        if not (near and rest < load_pose[2] <= goals.goal_height_m and np.isfinite(load_pose[3])):
            raise Refused(
                f"goal {np.round(load_pose, 3).tolist()}: must be finite, {rest:g} to "
                f"{goals.goal_height_m:g} m high and within {goals.goal_radius_m:g} m of the origin"
            )
        self._replace(self._carry(pose, load_pose, "goal"), time_s)
        self.state = PlayState.GOAL

    def abort(self, time_s: float) -> None:
        """Bring the load to where it was to be set down, and land.

        Before the load is lifted the drones land around it; a plan that ends in the air just stops.

        Raises:
            Refused: Nothing is being flown, or it is landing already.
        """
        if self.state in (PlayState.IDLE, PlayState.DONE, PlayState.ABORTING):
            raise Refused(f"nothing to abort: {self.state.value}")
        landing = (*LOWERING, *LANDING) if self.keeper is None else LANDING
        if self._stage in landing and self.state is not PlayState.GOAL:
            raise Refused("nothing to abort: landing already")
        if self._whole.landing_speed_m_s is None:
            self._replace(self.plan.part(self.row, self.row + 1), time_s)
            self.state = PlayState.DONE
            return
        self._replace(self._way_down(), time_s)
        self.state = PlayState.ABORTING

    def finish(self) -> None:
        """All drones are down and disarmed."""
        self.state = PlayState.DONE

    @property
    def _stage(self) -> str:
        return self.plan.stage_at(self.row)

    def _resting_height_m(self) -> float:
        """Height of the load's set-point at which the load stands on the ground."""
        first = self._first_row("slacken")
        return float(self._whole.load_pose[first - 1, 2]) + 1e-9 if first else -np.inf

    def _first_row(self, stage: str) -> int:
        """First row of a landing phase in the whole plan; 0 if it has none."""
        if stage not in self._whole.stage_names:
            return 0
        number = len(self._whole.stage_names) - 1 - self._whole.stage_names[::-1].index(stage)
        return int(np.argmax(self._whole.stage == number))

    def _replace(self, plan: FlightPlan, time_s: float) -> None:
        """Go on with another plan, whose first step comes one period of set-points later."""
        row = self.row
        if plan.landing_speed_m_s is None or len(plan.stage) > 1:
            now = replace(
                self.plan.part(row, row + 1),
                stage=np.zeros(1, np.int64),
                stage_names=plan.stage_names[:1],
                reference=Reference.rest(self.plan.load_pose[row]),
            )
            plan = now.then(plan)
        self._rows_before += row + 1
        self.take(plan, time_s)
        self.row, self._gates, self._paused_at_s = 0, [], None

    def _carry(self, start: Array, end: Array, stage: str) -> FlightPlan:
        """Plan of a straight move of the load, drones in formation."""
        rate = self._whole.rate_hz
        end = end.copy()
        end[3] += 2.0 * np.pi * np.round((start[3] - end[3]) / (2.0 * np.pi))
        duration = max(
            np.linalg.norm(end[:3] - start[:3]) / self.goals.goal_speed_m_s,
            abs(end[3] - start[3]) / self.goals.goal_yaw_rate_rad_s,
        )
        count = max(1, int(np.ceil((duration + self._settle_s) * rate)))
        share = np.clip((1.0 + np.arange(count)) / rate / max(duration, 1e-9), 0.0, 1.0)
        pose = start + share[:, None] * (end - start)
        n = self._whole.drone_yaw_rad.shape[1]
        position, yaw = drone_poses(
            pose[:, :3], pose[:, 3], self._cone.offsets_m(n), self._cone.azimuths_rad(n)
        )
        # The first row already moves, see `mission`.
        move = Piece(-1.0 / rate, -1.0 / rate, StraightMove(start.copy(), end, float(duration)))
        stages = np.zeros(count, np.int64)
        return FlightPlan(rate, Reference([move]), position, yaw, stages, (stage,))

    def _way_down(self) -> FlightPlan:
        """The rest of an aborted flight."""
        pose, whole = self.plan.load_pose[self.row], self._whole
        if self._stage in BELOW_FORMATION:
            return self._land_here()
        if self.keeper is not None and self._stage != "form_up":
            return self.keeper.way_back(pose)
        if pose[2] <= whole.load_pose[0, 2] + 1e-9:  # slack: only the drones move
            rest = self._tail("spread", pose)
            return self._spread_out(rest).then(rest)
        if pose[2] <= self._resting_height_m() or not self._first_row("lower"):
            return self._tail("slacken", pose)
        first = self._first_row("lower")
        place = whole.load_pose[first]
        above = np.array([*place[:2], max(pose[2], place[2]), place[3]])
        begin = self._carry(pose, above, "abort")
        if above[2] > place[2]:
            begin = begin.then(self._carry(above, place, "abort"))
        return begin.then(whole.part(first))

    def _tail(self, stage: str, pose: Array) -> FlightPlan:
        """End of the whole plan from a landing phase on, moved to where the load is now."""
        first = self._first_row(stage)
        first += int(np.argmax(self._whole.load_pose[first:, 2] <= pose[2] + 1e-9))  # only down
        tail = self._whole.part(first)
        old = tail.load_pose[0]
        turn = pose[3] - old[3]
        cos, sin = np.cos(turn), np.sin(turn)
        rotation = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        drones = (tail.drone_position_enu_m - [*old[:2], 0.0]) @ rotation.T + [*pose[:2], 0.0]
        return replace(
            tail,
            drone_position_enu_m=drones,
            drone_yaw_rad=tail.drone_yaw_rad + turn,
            reference=tail.reference.relocated(turn, old[:2], pose[:2]),
        )

    def _land_here(self) -> FlightPlan:
        """One row: touch down below the present places."""
        rows = slice(self.row, self.row + 1)
        return replace(
            self._whole.part(len(self._whole.stage) - 1),
            drone_position_enu_m=self.plan.drone_position_enu_m[rows],
            drone_yaw_rad=self.plan.drone_yaw_rad[rows],
            reference=Reference.rest(self.plan.load_pose[self.row]),
        )

    def _spread_out(self, rest: FlightPlan) -> FlightPlan:
        """Plan of a straight move of the drones to the start of another plan, load at rest."""
        start, end = self.plan.drone_position_enu_m[self.row], rest.drone_position_enu_m[0]
        yaw = self.plan.drone_yaw_rad[self.row]
        turn = rest.drone_yaw_rad[0] - yaw
        turn -= 2.0 * np.pi * np.round(turn / (2.0 * np.pi))
        speed, rate = self.goals.goal_speed_m_s, rest.rate_hz
        count = max(1, int(np.ceil(np.linalg.norm(end - start, axis=1).max() / speed * rate)))
        share = (1.0 + np.arange(count)) / count
        return FlightPlan(
            rate,
            Reference.rest(rest.load_pose[0]),
            start + share[:, None, None] * (end - start),
            yaw + share[:, None] * turn,
            np.zeros(count, np.int64),
            ("abort",),
        )


_MOVING = (PlayState.FLYING, PlayState.GOAL, PlayState.ABORTING)
