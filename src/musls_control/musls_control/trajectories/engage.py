"""Tension engagement: slack cables are jerked taut."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from musls_control.trajectories.base import (
    AT_A_CORNER_S,
    Array,
    CycleRule,
    Periodic,
    Point2,
    Repetitions,
    at_rest,
    rate_of_part,
)
from musls_description.schema import Finite, NonNegative, Positive, spec


@spec
class Engage(Periodic):
    """Tension engagement: turn round the load with slack cables, step up, turn back, set down.

    One repetition, times as in the real flights: turn the formation to `yaw_rad` round the load on
    the ground, rest, step up to `height_m`, hold the yaw, turn it back to zero at a constant rate
    (the load turns with it, swinging about the vertical), hold, go down, until the next one starts.

    Attributes:
        kind: "engage".
        rest_height_m: Height of the set-point at rest; the load stands on the ground, so a height
            below it means slack.
        height_m: Height after the step (the load's set-point rises through the ground by 0.5 m).
        yaw_rad: Yaw of the formation at the step.
        turn_s: Time for the turn to `yaw_rad`; 0 turns at once, in the moment of the step.
        rest_s: Time at rest before the step.
        yaw_hold_s: Time at that yaw after the step.
        yaw_return_s: Time for the yaw to go back to zero.
        hold_s: Time at yaw zero before going down.
        lower_s: Time to go down to `rest_height_m`.
        center_m: Place, x and y.
        repetitions: Number of cycles.
    """

    kind: Literal["engage"] = "engage"
    rest_height_m: Finite = -0.5
    height_m: Positive = 0.5
    yaw_rad: Finite = 1.7
    turn_s: NonNegative = 6.0
    rest_s: NonNegative = 3.0
    yaw_hold_s: NonNegative = 6.6
    yaw_return_s: NonNegative = 9.0
    hold_s: NonNegative = 6.9
    lower_s: Positive = 4.0
    center_m: Point2 = (0.0, 0.0)
    repetitions: Repetitions = 1

    snaps_taut: ClassVar[bool] = True
    sets_load_down: ClassVar[bool] = True
    cycle_rule: ClassVar[CycleRule] = CycleRule.STEP_UP
    # The logs of the real flights know two engagements; the one with the turn is this stage.
    recorded_as: ClassVar[tuple[str, ...]] = ("yaw_engage", "tension_engage")

    @property
    def period_s(self) -> float:
        """Time of one cycle."""
        step = self.turn_s + self.rest_s
        return step + self.yaw_hold_s + self.yaw_return_s + self.hold_s + self.lower_s

    def _pose(self, time_s: Array) -> Array:
        t = np.mod(time_s, self.period_s)
        # Ends of cycles, rounded up or down, are ends; only the first instant is a beginning.
        t = np.where((time_s > 0.0) & (t < 1e-9), self.period_s, t)
        step = self.turn_s + self.rest_s
        lower_start = self.period_s - self.lower_s
        stepped = t >= step
        down = np.clip((t - lower_start) / self.lower_s, 0.0, 1.0)
        z = np.where(
            stepped, self.height_m + down * (self.rest_height_m - self.height_m), self.rest_height_m
        )
        # Before the step to the formation's yaw (within the step if no time is given), then back.
        there = np.clip(t / max(self.turn_s, 1e-9), 0.0, 1.0) if self.turn_s > 0.0 else stepped
        back = np.clip((t - step - self.yaw_hold_s) / max(self.yaw_return_s, 1e-9), 0.0, 1.0)
        yaw = self.yaw_rad * (there - back)
        x, y = np.full_like(t, self.center_m[0]), np.full_like(t, self.center_m[1])
        return np.column_stack([x, y, z, yaw])

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`; the step up adds none."""
        found = at_rest(self._pose(time_s))
        step, lower_start = self.turn_s + self.rest_s, self.period_s - self.lower_s
        back = step + self.yaw_hold_s
        corners = np.array([0.0, self.turn_s, step, back, back + self.yaw_return_s, lower_start])
        rates = np.zeros((6, 2))  # of height and yaw in each part
        if self.turn_s > 0.0:
            rates[0, 1] = self.yaw_rad / max(self.turn_s, 1e-9)
        rates[3, 1] = -self.yaw_rad / max(self.yaw_return_s, 1e-9)
        rates[5, 0] = (self.rest_height_m - self.height_m) / self.lower_s
        cycle = np.clip(
            np.floor((time_s + AT_A_CORNER_S) / self.period_s), 0.0, self.repetitions - 1.0
        )
        time_in_cycle = time_s - cycle * self.period_s
        found[:, 1, 2:] = rate_of_part(time_in_cycle, corners, rates, self.period_s)
        return found
