"""Action `fly_mission`: start a mission, hear how it goes, abort it by cancelling.

Needs the package musls_interfaces, which `musls ros setup` builds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from musls_interfaces.action import FlyMission
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node

from musls_control.mission.player import PlayState


class MissionAction:
    """One goal at a time; it ends with the flight.

    A goal is executed, in the sense of rclpy, only to hand out its result: a callback that waited
    for the end of a flight would hold up the node.
    """

    def __init__(
        self, node: Node, start: Callable[[str], str], abort: Callable[[], str], ready: str
    ) -> None:
        """Offer the action.

        `start`: starts a mission from a file, "" for the present one; returns why not, or "".
        `abort`: brings the load back and lands; returns why not, or "".
        `ready`: state in which no flight is under way.
        """
        self._start = start
        self._abort = abort
        self._over = {ready, PlayState.DONE.value}
        self._goal: ServerGoalHandle | None = None
        self._result = FlyMission.Result()
        self._turned_back = False
        self._server = ActionServer(
            node,
            FlyMission,
            "fly_mission",
            execute_callback=self._hand_out,
            goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
        )

    def show_state(self, state: str) -> None:
        """Take note of the formation's state; the goal ends with the flight."""
        self._turned_back |= state == PlayState.ABORTING.value
        if self._goal is not None and state in self._over:
            success = state == PlayState.DONE.value and not self._turned_back
            self._end("" if success else "the flight was given up, see /events and the log")

    def show_progress(
        self, stage: str, state: str, time_left_s: float, errors_m: Sequence[float]
    ) -> None:
        """Log the flight's progress."""
        if self._goal is not None:
            self._goal.publish_feedback(
                FlyMission.Feedback(
                    stage=stage, state=state, time_left_s=time_left_s, tracking_error_m=errors_m
                )
            )

    def _on_goal(self, _: FlyMission.Goal) -> GoalResponse:
        return GoalResponse.ACCEPT if self._goal is None else GoalResponse.REJECT

    def _on_accepted(self, goal: ServerGoalHandle) -> None:
        self._goal = goal
        self._turned_back = False
        refusal = self._start(goal.request.mission_file)
        if refusal:
            self._end(refusal)

    def _on_cancel(self, _: ServerGoalHandle) -> CancelResponse:
        return CancelResponse.REJECT if self._abort() else CancelResponse.ACCEPT

    def _end(self, why: str) -> None:
        goal = self._goal
        self._goal = None
        assert goal is not None
        self._result = FlyMission.Result(success=not why, message=why)
        goal.execute()

    def _hand_out(self, goal: ServerGoalHandle) -> FlyMission.Result:
        if goal.is_cancel_requested:
            goal.canceled()
        elif self._result.success:
            goal.succeed()
        else:
            goal.abort()
        return self._result
