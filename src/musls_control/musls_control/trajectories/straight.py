"""Straight flights between poses: rests, steps, lines, way-points, tension engagement."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.polynomial import Polynomial
from pydantic import BeforeValidator, Field

from musls_control.trajectories.base import (
    ORDERS,
    CycleRule,
    Once,
    Periodic,
    Point2,
    Repetitions,
    at_rest,
    polyline,
)
from musls_control.trajectories.curves import check_rotation
from musls_description.config.schema import Finite, NonNegative, Positive, Vector3, spec
from musls_description.numerics.arrays import Array

MAX_SMOOTH_POINTS = 10_000


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
Points = Annotated[tuple[Point, ...], Field(min_length=2, max_length=MAX_SMOOTH_POINTS)]


def check_distinct(points: tuple[Waypoint, ...]) -> None:
    """Refuse points without a way between them."""
    for k, (one, other) in enumerate(itertools.pairwise(points)):
        if np.linalg.norm(np.subtract(one.position_m, other.position_m)) < 1e-9:
            raise ValueError(
                f"points.{k} and points.{k + 1} coincide at {list(one.position_m)}; to stay at a "
                "point give it a hold_s"
            )


MAX_POINTS = 100_000
"""All repetitions; the points are written out before the flight."""


@spec
class Waypoints(Periodic):
    """Straight flights between poses, constant speed, yaw turning evenly on the way.

    The velocity jumps at the points; they are passed without stopping unless they have a `hold_s`.

    Attributes:
        kind: "waypoints".
        points: Way-points, at least one: [x, y, z], [x, y, z, yaw] or a mapping with hold_s.
        speed_m_s: Speed between points.
        yaw_rate_rad_s: Largest turn rate between points.
        repetitions: Number of passes through the list (from the last point back to the first).
    """

    kind: Literal["waypoints"] = "waypoints"
    points: Annotated[tuple[Point, ...], Field(min_length=1, max_length=MAX_POINTS)]
    speed_m_s: Positive = 0.5
    yaw_rate_rad_s: Positive = 0.5
    repetitions: Repetitions = 1

    def __post_init__(self) -> None:
        if len(self.points) * self.repetitions > MAX_POINTS:
            raise ValueError(f"points times repetitions must be at most {MAX_POINTS}")

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
        """Duration of all repetitions."""
        return float(self._knots()[0][-1])

    @property
    def period_s(self) -> float:
        """Mean time of one repetition."""
        return self.duration_s / self.repetitions

    def derivatives(self, time_s: Array) -> Array:
        return polyline(time_s, *self._knots())


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
        if self.start_m == self.end_m:
            raise ValueError("start_m and end_m must differ")

    @property
    def period_s(self) -> float:
        """Time there and back."""
        return 2.0 * float(np.linalg.norm(np.subtract(self.end_m, self.start_m))) / self.speed_m_s

    def derivatives(self, time_s: Array) -> Array:
        corners_s = 0.5 * self.period_s * np.arange(2.0 * self.repetitions + 1.0)
        ends = np.array([[*self.start_m, self.yaw_rad], [*self.end_m, self.yaw_rad]])
        return polyline(time_s, corners_s, ends[np.arange(len(corners_s)) % 2])


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
        return float(self._cycle[0][-1])

    @cached_property
    def _cycle(self) -> tuple[Array, Array]:
        """Times and poses of the corners of one cycle."""
        low = self.rest_height_m
        high = self.height_m
        yaw = self.yaw_rad
        corners = [
            (0.0, low, 0.0),
            (self.turn_s, low, yaw if self.turn_s > 0.0 else 0.0),
            (self.rest_s, low, yaw if self.turn_s > 0.0 else 0.0),
            (0.0, high, yaw),
            (self.yaw_hold_s, high, yaw),
            (self.yaw_return_s, high, 0.0),
            (self.hold_s, high, 0.0),
            (self.lower_s, low, 0.0),
        ]
        times = np.cumsum([length for length, _, _ in corners])
        return times, np.array([[*self.center_m, z, turn] for _, z, turn in corners])

    def derivatives(self, time_s: Array) -> Array:
        times, poses = self._cycle
        begins = self.period_s * np.arange(self.repetitions)
        corners_s = (begins[:, None] + times).ravel()
        return polyline(time_s, corners_s, np.tile(poses, (self.repetitions, 1)))


@spec
class Hold(Once):
    """Stay at one pose.

    Attributes:
        kind: "hold".
        duration_s: Duration.
        position_m: Place of the load.
        yaw_rad: Yaw of the load.
    """

    kind: Literal["hold"] = "hold"
    duration_s: Positive = 10.0
    position_m: Vector3 = (0.0, 0.0, 1.0)
    yaw_rad: Finite = 0.0

    def derivatives(self, time_s: Array) -> Array:
        return at_rest(np.tile([*self.position_m, self.yaw_rad], (len(time_s), 1)))


@spec
class Step(Once):
    """The set-point jumps, for step responses; the jump itself has no derivative.

    Attributes:
        kind: "step".
        start_m: Place of the load before the jump.
        end_m: Place after it.
        start_rotation_rad: Roll, pitch and yaw before the jump.
        end_rotation_rad: Roll, pitch and yaw after it.
        wait_s: Time before the jump.
        hold_s: Time after it.
    """

    kind: Literal["step"] = "step"
    start_m: Vector3 = (0.0, 0.0, 1.0)
    end_m: Vector3 = (0.5, 0.0, 1.0)
    start_rotation_rad: Vector3 = (0.0, 0.0, 0.0)
    end_rotation_rad: Vector3 = (0.0, 0.0, 0.0)
    wait_s: NonNegative = 2.0
    hold_s: Positive = 10.0

    def __post_init__(self) -> None:
        for rotation in (self.start_rotation_rad, self.end_rotation_rad):
            check_rotation(rotation)

    @property
    def duration_s(self) -> float:
        """Duration of the waits before and after the jump."""
        return self.wait_s + self.hold_s

    def derivatives(self, time_s: Array) -> Array:
        return self._jump(
            time_s,
            [*self.start_m, self.start_rotation_rad[2]],
            [*self.end_m, self.end_rotation_rad[2]],
        )

    def tilt(self, time_s: Array) -> Array:
        return self._jump(time_s, self.start_rotation_rad[:2], self.end_rotation_rad[:2])

    def _jump(self, time_s: Array, before: Sequence[float], after: Sequence[float]) -> Array:
        corners_s = np.array([0.0, self.wait_s, self.wait_s, self.duration_s])
        return polyline(time_s, corners_s, np.array([before, before, after, after]))


_SHARE = Polynomial([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
"""Way against time, both from 0 to 1: velocity and acceleration are zero at both ends."""

PEAK_SPEED = 1.875
"""Greatest speed times duration per distance: 15 / 8."""

PEAK_ACCELERATION = 10.0 / float(np.sqrt(3.0))
"""Greatest acceleration times squared duration per distance."""


@spec
class Quintic(Once):
    """Straight lines between points, from rest to rest by a polynomial of degree five.

    The duration of each line keeps both limits: greatest speed 1.875 d / T, greatest acceleration
    5.774 d / T^2 for a distance d in a time T.

    Attributes:
        kind: "quintic".
        points: Way-points, at least two: [x, y, z], [x, y, z, yaw] or a mapping with hold_s.
        speed_m_s: Greatest speed.
        acceleration_m_s2: Greatest acceleration.
        yaw_rate_rad_s: Greatest turn rate.
        segment_s: Times of the lines instead of the limits.
    """

    kind: Literal["quintic"] = "quintic"
    points: Points
    speed_m_s: Positive = 1.0
    acceleration_m_s2: Positive = 1.0
    yaw_rate_rad_s: Positive = 0.5
    segment_s: tuple[Positive, ...] | None = None

    def __post_init__(self) -> None:
        check_distinct(self.points)
        if self.segment_s is not None and len(self.segment_s) != len(self.points) - 1:
            raise ValueError(
                f"segment_s has {len(self.segment_s)} times for {len(self.points) - 1} lines"
            )

    @cached_property
    def poses(self) -> Array:
        """x, y, z [m], yaw [rad] of the points, (m, 4)."""
        return np.array([[*point.position_m, point.yaw_rad] for point in self.points])

    @cached_property
    def line_s(self) -> Array:
        """Time of each line, (m - 1,)."""
        if self.segment_s is not None:
            return np.array(self.segment_s)
        way = np.abs(np.diff(self.poses, axis=0))
        distance_m = np.linalg.norm(way[:, :3], axis=1)
        times: Array = np.maximum.reduce(
            [
                PEAK_SPEED * distance_m / self.speed_m_s,
                np.sqrt(PEAK_ACCELERATION * distance_m / self.acceleration_m_s2),
                PEAK_SPEED * way[:, 3] / self.yaw_rate_rad_s,
            ]
        )
        return times

    @cached_property
    def start_s(self) -> Array:
        """Time at which each line begins, after the hold at its first point, (m - 1,)."""
        holds = np.array([point.hold_s for point in self.points[:-1]])
        starts: Array = np.cumsum(holds) + np.concatenate([[0.0], np.cumsum(self.line_s[:-1])])
        return starts

    @property
    def duration_s(self) -> float:
        """Duration, holds included."""
        return float(self.start_s[-1] + self.line_s[-1]) + self.points[-1].hold_s

    def derivatives(self, time_s: Array) -> Array:
        line = np.clip(np.searchsorted(self.start_s, time_s, "right") - 1, 0, len(self.line_s) - 1)
        duration = self.line_s[line]
        share = (time_s - self.start_s[line]) / duration
        moving = (share >= 0.0) & (share <= 1.0)
        share = np.clip(share, 0.0, 1.0)
        begin = self.poses[line]
        way = np.diff(self.poses, axis=0)[line]
        values = np.zeros((len(time_s), ORDERS, 4))
        values[:, 0] = begin + _SHARE(share)[:, None] * way
        for order in range(1, ORDERS):
            rate = np.where(moving, _SHARE.deriv(order)(share) / duration**order, 0.0)
            values[:, order] = rate[:, None] * way
        return values
