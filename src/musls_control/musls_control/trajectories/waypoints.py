"""Straight flights between poses."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from musls_control.trajectories.base import (
    Array,
    Periodic,
    Repetitions,
    at_rest,
    rate_of_part,
)
from musls_control.trajectories.points import Point
from musls_description.schema import Positive, spec

MOST_POINTS = 100_000
"""All repetitions; the points are written out before the flight."""


@spec
class Waypoints(Periodic):
    """Straight flights between poses, constant speed, yaw turning evenly on the way.

    The velocity jumps at the points; they are passed without stopping unless they have a `hold_s`.

    Attributes:
        kind: "waypoints".
        points: At least one, each [x, y, z], [x, y, z, yaw] or a mapping with hold_s.
        speed_m_s: Speed between points.
        yaw_rate_rad_s: Largest turn rate between points.
        repetitions: Number of passes through the list (from the last point back to the first).
    """

    kind: Literal["waypoints"] = "waypoints"
    points: Annotated[tuple[Point, ...], Field(min_length=1, max_length=MOST_POINTS)]
    speed_m_s: Positive = 0.5
    yaw_rate_rad_s: Positive = 0.5
    repetitions: Repetitions = 1

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if len(self.points) * self.repetitions > MOST_POINTS:
            raise ValueError(f"points times repetitions must be at most {MOST_POINTS}")

    def _knots(self) -> tuple[Array, Array]:
        """Times and poses between which the set-point moves linearly, all repetitions."""
        times: list[float] = []
        poses: list[Array] = []
        now = 0.0
        for point in self.points * self.repetitions:
            pose = np.array([*point.position_m, point.yaw_rad])
            if poses:
                move = np.abs(pose - poses[-1])
                turn_s = move[3] / self.yaw_rate_rad_s
                now += max(np.linalg.norm(move[:3]) / self.speed_m_s, turn_s, 1e-3)
            times.append(now)
            poses.append(pose)
            if point.hold_s > 0.0 or len(self.points) * self.repetitions == 1:
                now += max(point.hold_s, 1e-6)
                times.append(now)
                poses.append(pose)
        return np.array(times), np.array(poses)

    @property
    def duration_s(self) -> float:
        """How long it takes, all repetitions."""
        return float(self._knots()[0][-1])

    @property
    def period_s(self) -> float:
        """Mean time of one repetition."""
        return self.duration_s / self.repetitions

    def pose(self, time_s: Array) -> Array:
        """Poses at times, see `Trajectory.pose`."""
        times, poses = self._knots()
        return np.column_stack([np.interp(time_s, times, poses[:, k]) for k in range(4)])

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        found = at_rest(self.pose(time_s))
        times, poses = self._knots()
        rates = np.diff(poses, axis=0) / np.diff(times)[:, None]
        found[:, 1] = rate_of_part(time_s, times[:-1], rates, times[-1])
        return found
