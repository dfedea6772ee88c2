"""Straight flights between poses, and the way-points of several trajectories."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from musls_control.trajectories.base import Array, Periodic, Repetitions, at_rest, rate_of_part
from musls_description.schema import Finite, NonNegative, Positive, Vector3, spec

MOST_SMOOTH_POINTS = 10_000


@spec
class Waypoint:
    """A pose on the way; may be written short as [x, y, z] or [x, y, z, yaw].

    Attributes:
        position_m: Place of the load.
        yaw_rad: Yaw of the load.
        hold_s: Time to stay there; 0 goes on without a stop.
    """

    position_m: Vector3
    yaw_rad: Finite = 0.0
    hold_s: NonNegative = 0.0


def _from_numbers(value: Any) -> Any:
    """Write out the short form of a point."""
    if isinstance(value, (list, tuple)) and len(value) in (3, 4):
        point: dict[str, Any] = {"position_m": tuple(value[:3])}
        return {**point, "yaw_rad": value[3]} if len(value) == 4 else point
    return value


Point = Annotated[Waypoint, BeforeValidator(_from_numbers)]
Points = Annotated[tuple[Point, ...], Field(min_length=2, max_length=MOST_SMOOTH_POINTS)]


def check_distinct(points: tuple[Waypoint, ...]) -> None:
    """Refuse points without a way between them.

    Raises:
        ValueError: Two successive points coincide.
    """
    for k, (one, other) in enumerate(itertools.pairwise(points)):
        if np.linalg.norm(np.subtract(one.position_m, other.position_m)) < 1e-9:
            raise ValueError(
                f"points.{k} and points.{k + 1} coincide at {list(one.position_m)}; to stay at a "
                "point give it a hold_s"
            )


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

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        times, poses = self._knots()
        found = at_rest(np.column_stack([np.interp(time_s, times, p) for p in poses.T]))
        rates = np.diff(poses, axis=0) / np.diff(times)[:, None]
        found[:, 1] = rate_of_part(time_s, times[:-1], rates, times[-1])
        return found


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

    def derivatives(self, time_s: Array) -> Array:
        """Poses and their derivatives, see `Trajectory.derivatives`."""
        phase = np.mod(time_s / self.period_s, 1.0)
        share = 1.0 - np.abs(2.0 * phase - 1.0)
        start, way = np.array(self.start_m), np.subtract(self.end_m, self.start_m)
        position = start + share[:, None] * way
        found = at_rest(np.column_stack([position, np.full(len(time_s), self.yaw_rad)]))
        velocity = self.speed_m_s * way / float(np.linalg.norm(way))
        half_s = 0.5 * self.period_s
        corners = half_s * np.arange(2.0 * self.repetitions)
        rates = np.tile([1.0, -1.0], self.repetitions)
        sign = rate_of_part(time_s, corners, rates, self.duration_s)
        found[:, 1, :3] = sign[:, None] * velocity
        return found
