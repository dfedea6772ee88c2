"""Plays a flight plan; the caller gives the time: start, pause, go to a goal, abort.

Everything that can happen is a `FlightPlan`: a pause stops its time, a goal or an abort replaces
the rest of it by one that begins where the set-points are now, so that set-points never jump.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from musls_control.formation import Cone, drone_poses
from musls_control.mission.plan import FlightPlan, Gatekeeper, joined, part_of
from musls_control.mission.spec import MissionSpec
from musls_control.reference import LoadReference, Piece, Reference, StraightMove

Array = NDArray[np.float64]

LANDING = ("lower", "slacken", "spread", "land")
"""Phases at the end of a plan that ends on the ground, in their order."""

GROUND_PHASES = ("spool_up", "take_off")
"""Phases from which the drones can land where they are."""


class PlayState(str, Enum):
    """What the player does."""

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
        stage: Name of the phase or stage.
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


class PlanPlayer:
    """Set-points over time of one flight.

    Attributes:
        state: What it does.
        plan: What is being flown now.
        goals: For goals and aborts to come.
    """

    def __init__(
        self,
        plan: FlightPlan,
        cone: Cone,
        mission: MissionSpec,
        goals: GoalSettings,
        keeper: Gatekeeper | None = None,
    ) -> None:
        """Prepare.

        Args:
            plan: What to fly.
            cone: Formation.
            mission: Its settling time is kept on the way to goals and when aborting.
            goals: Speeds and limits of goals.
            keeper: Of a delivery.
        """
        self._keeper, self._gates = keeper, list(plan.gates)
        self.plan, self.state, self.goals = plan, PlayState.IDLE, goals
        self._whole, self._cone, self._settle_s = plan, cone, mission.settle_s
        self._begin_s = 0.0
        self._paused_at_s: float | None = None
        self._resume = PlayState.FLYING
        self._rows_before = 0

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
        self.state, self._begin_s = PlayState.FLYING, time_s

    def at(self, time_s: float) -> FormationSetpoint:
        """Set-points at a time, which must not go back."""
        self._attend(time_s)
        row = self._row(time_s)
        last = row == len(self.plan.stage) - 1
        if last and self.state is PlayState.FLYING and self._over(time_s):
            self.state = PlayState.DONE
        plan = self.plan
        position = plan.drone_position_enu_m[row].copy()
        velocity = np.full_like(position, np.nan)
        sink_m_s = plan.landing_speed_m_s if last and self.state in _MOVING else None
        self._lands = sink_m_s is not None
        if sink_m_s is not None:
            # As PX4's land mode: hold the place, sink at a speed.
            position[:, 2] = np.nan
            velocity[:, 2] = -sink_m_s
        return FormationSetpoint(
            plan.load_pose[row],
            position,
            velocity,
            plan.drone_yaw_rad[row],
            plan.stage_names[plan.stage[row]],
            self._rows_before + row,
        )

    _lands = False

    def _attend(self, time_s: float) -> None:
        """Wait at the gates of a delivery, and turn back when it is given up."""
        keeper = self._keeper
        if keeper is None or self.state is not PlayState.FLYING:
            return
        if self._gates and self._row(time_s) >= self._gates[0].row:
            if keeper.passes(self._gates[0], time_s):
                del self._gates[0]
            else:
                self._begin_s = time_s - (self._gates[0].row - 1e-5) / self.plan.rate_hz
        if keeper.turns_back:
            self.abort(time_s)

    def reference_at(self, time_s: float) -> LoadReference:
        """What is asked of the load at a time, with derivatives; at rest while paused or idle."""
        if self.state is PlayState.IDLE or self._paused_at_s is not None:
            return Reference.rest(self.plan.load_pose[self._row(time_s)]).at(0.0)
        return self.plan.reference.at(time_s - self._begin_s)

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
        self._begin_s += time_s - self._paused_at_s
        self.state, self._paused_at_s = self._resume, None

    def go_to(self, load_pose: Array, time_s: float) -> None:
        """Carry the load to a pose and hold it there.

        Args:
            load_pose: x, y, z [m, ENU], yaw [rad], (4,).
            time_s: Now.

        Raises:
            Refused: The load is not in the air, or the pose is not finite, too low, too high or
                too far away.
        """
        if self.state not in (PlayState.FLYING, PlayState.GOAL, PlayState.PAUSED):
            raise Refused(f"no goal accepted: {self.state.value}")
        if self._keeper is not None:
            raise Refused("no goal accepted: a delivery is flown")
        row = self._row(time_s)
        rest = self._resting_height_m()
        if self.plan.load_pose[row, 2] <= rest or self._stage(row) in LANDING:
            raise Refused("no goal accepted: the load is not in the air")
        goals = self.goals
        near = np.hypot(*load_pose[:2]) <= goals.goal_radius_m
        if not (near and rest < load_pose[2] <= goals.goal_height_m and np.isfinite(load_pose[3])):
            raise Refused(
                f"goal {np.round(load_pose, 3).tolist()}: must be finite, {rest:g} to "
                f"{goals.goal_height_m:g} m high and within {goals.goal_radius_m:g} m of the origin"
            )
        self._replace(self._carry(self.plan.load_pose[row], load_pose, "goal"), time_s, row)
        self.state = PlayState.GOAL

    def abort(self, time_s: float) -> None:
        """Bring the load to where it was to be set down, and land.

        Before the load is lifted the drones land around it; a plan that ends in the air just stops.

        Raises:
            Refused: Nothing is being flown, or it is landing already.
        """
        if self.state in (PlayState.IDLE, PlayState.DONE, PlayState.ABORTING):
            raise Refused(f"nothing to abort: {self.state.value}")
        row = self._row(time_s)
        landing = LANDING if self._keeper is None else LANDING[2:]
        if self._stage(row) in landing and self.state is not PlayState.GOAL:
            raise Refused("nothing to abort: landing already")
        if self._whole.landing_speed_m_s is None:
            self._replace(part_of(self.plan, row, row + 1), time_s, row)
            self.state = PlayState.DONE
            return
        self._replace(self._way_down(row), time_s, row)
        self.state = PlayState.ABORTING

    def finish(self) -> None:
        """All drones are down and disarmed."""
        self.state = PlayState.DONE

    def _row(self, time_s: float) -> int:
        if self.state is PlayState.IDLE:
            return 0
        now = time_s if self._paused_at_s is None else self._paused_at_s
        row = int((now - self._begin_s) * self.plan.rate_hz + 1e-6)
        return min(max(row, 0), len(self.plan.stage) - 1)

    def _over(self, time_s: float) -> bool:
        """Whether a plan that ends in the air has ended."""
        ended = time_s - self._begin_s >= self.plan.duration_s - 1e-9
        return ended and self.plan.landing_speed_m_s is None

    def _stage(self, row: int) -> str:
        return self.plan.stage_names[self.plan.stage[row]]

    def _resting_height_m(self) -> float:
        """Height of the load's set-point at which the load stands on the ground."""
        first = self._first_row("slacken")
        return float(self._whole.load_pose[first - 1, 2]) if first else -np.inf

    def _first_row(self, stage: str) -> int:
        """First row of a landing phase in the whole plan; 0 if it has none."""
        if stage not in self._whole.stage_names:
            return 0
        number = len(self._whole.stage_names) - 1 - self._whole.stage_names[::-1].index(stage)
        return int(np.argmax(self._whole.stage == number))

    def _replace(self, plan: FlightPlan, time_s: float, row: int) -> None:
        """Go on with another plan, whose first step comes one period of set-points later."""
        if plan.landing_speed_m_s is None or len(plan.stage) > 1:
            now = replace(
                part_of(self.plan, row, row + 1),
                stage=np.zeros(1, np.int64),
                stage_names=plan.stage_names[:1],
                reference=Reference.rest(self.plan.load_pose[row]),
            )
            plan = joined(now, plan)
        self._rows_before += row + 1
        self.plan, self._begin_s, self._paused_at_s = plan, time_s, None

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
        return FlightPlan(rate, pose, position, yaw, stages, (stage,), Reference([move]))

    def _way_down(self, row: int) -> FlightPlan:
        """The rest of an aborted flight."""
        pose, whole = self.plan.load_pose[row], self._whole
        if self._stage(row) in GROUND_PHASES:
            return self._land_here(row)
        if self._keeper is not None and self._stage(row) != "form_up":
            return self._keeper.way_back(pose)
        if pose[2] <= whole.load_pose[0, 2] + 1e-9:  # slack: only the drones move
            rest = self._tail("spread", pose)
            return joined(self._spread_out(row, rest), rest)
        if pose[2] <= self._resting_height_m() or not self._first_row("lower"):
            return self._tail("slacken", pose)
        first = self._first_row("lower")
        above = np.array([*whole.load_pose[first, :2], pose[2], whole.load_pose[first, 3]])
        above[2] = max(above[2], whole.load_pose[first, 2])
        begin = self._carry(pose, above, "abort")
        if above[2] > whole.load_pose[first, 2]:
            begin = joined(begin, self._carry(above, whole.load_pose[first], "abort"))
        return joined(begin, part_of(whole, first, len(whole.stage)))

    def _tail(self, stage: str, pose: Array) -> FlightPlan:
        """End of the whole plan from a landing phase on, moved to where the load is now."""
        first = self._first_row(stage)
        first += int(np.argmax(self._whole.load_pose[first:, 2] <= pose[2] + 1e-9))  # only down
        tail = part_of(self._whole, first, len(self._whole.stage))
        old = tail.load_pose[0]
        turn = pose[3] - old[3]
        cos, sin = np.cos(turn), np.sin(turn)
        rotation = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        place = [*old[:2], 0.0]
        load = tail.load_pose + [0.0, 0.0, 0.0, turn]
        load[:, :3] = (tail.load_pose[:, :3] - place) @ rotation.T + [*pose[:2], 0.0]
        drones = (tail.drone_position_enu_m - place) @ rotation.T + [*pose[:2], 0.0]
        return replace(
            tail,
            load_pose=load,
            drone_position_enu_m=drones,
            drone_yaw_rad=tail.drone_yaw_rad + turn,
            reference=tail.reference.relocated(turn, old[:2], pose[:2]),
        )

    def _land_here(self, row: int) -> FlightPlan:
        """One row: touch down below the present places."""
        last = part_of(self._whole, len(self._whole.stage) - 1, len(self._whole.stage))
        return replace(
            last,
            load_pose=self.plan.load_pose[row : row + 1],
            drone_position_enu_m=self.plan.drone_position_enu_m[row : row + 1],
            drone_yaw_rad=self.plan.drone_yaw_rad[row : row + 1],
            reference=Reference.rest(self.plan.load_pose[row]),
        )

    def _spread_out(self, row: int, rest: FlightPlan) -> FlightPlan:
        """Plan of a straight move of the drones to the start of another plan, load at rest."""
        start, end = self.plan.drone_position_enu_m[row], rest.drone_position_enu_m[0]
        turn = rest.drone_yaw_rad[0] - self.plan.drone_yaw_rad[row]
        turn -= 2.0 * np.pi * np.round(turn / (2.0 * np.pi))
        speed, rate = self.goals.goal_speed_m_s, rest.rate_hz
        count = max(1, int(np.ceil(np.linalg.norm(end - start, axis=1).max() / speed * rate)))
        share = (1.0 + np.arange(count)) / count
        return FlightPlan(
            rate,
            np.tile(rest.load_pose[0], (count, 1)),
            start + share[:, None, None] * (end - start),
            self.plan.drone_yaw_rad[row] + share[:, None] * turn,
            np.zeros(count, np.int64),
            ("abort",),
            Reference.rest(rest.load_pose[0]),
        )


_MOVING = (PlayState.FLYING, PlayState.GOAL, PlayState.ABORTING)
