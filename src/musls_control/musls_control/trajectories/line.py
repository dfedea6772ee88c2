"""Back and forth on a straight line."""

from __future__ import annotations

from typing import Literal

import numpy as np

from musls_control.trajectories.base import (
    Array,
    Periodic,
    Repetitions,
    at_rest,
    rate_of_part,
)
from musls_description.schema import Finite, Positive, Vector3, spec


@spec
class Line(Periodic):
    """Back and forth on a straight line at constant speed.

    Attributes:
        kind: "line".
        start_m: One end.
        end_m: Other end.
        speed_m_s: Speed.
        yaw_rad: Yaw of the load throughout.
        repetitions: Number of cycles, each to the other end and back.
    """

    kind: Literal["line"] = "line"
    start_m: Vector3
    end_m: Vector3
    speed_m_s: Positive = 0.5
    yaw_rad: Finite = 0.0
    repetitions: Repetitions = 1

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if self.start_m == self.end_m:
            raise ValueError("start_m and end_m must differ")

    @property
    def period_s(self) -> float:
        """Time there and back."""
        return 2.0 * float(np.linalg.norm(np.subtract(self.end_m, self.start_m))) / self.speed_m_s

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        phase = np.mod(time_s / self.period_s, 1.0)
        share = 1.0 - np.abs(2.0 * phase - 1.0)
        start, end = np.array(self.start_m), np.array(self.end_m)
        position = start + share[:, None] * (end - start)
        return np.column_stack([position, np.full(len(time_s), self.yaw_rad)])

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        found = at_rest(self.pose(time_s))
        way = np.array(self.end_m) - np.array(self.start_m)
        velocity = self.speed_m_s * way / float(np.linalg.norm(way))
        half_s = 0.5 * self.period_s
        corners = half_s * np.arange(2.0 * self.repetitions)
        rates = np.tile([1.0, -1.0], self.repetitions)
        sign = rate_of_part(time_s, corners, rates, self.duration_s)
        found[:, 1, :3] = sign[:, None] * velocity
        return found
