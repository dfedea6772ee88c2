"""Curves of least k-th derivative through way-points."""

from __future__ import annotations

import itertools
from functools import cached_property, partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from musls_control.trajectories.base import ORDERS, Once
from musls_control.trajectories.corridor import Bound, CorridorBox, Tube, within_corridor
from musls_control.trajectories.splines import (
    LARGEST_ORDER,
    Spline,
    best_times,
    least_derivative,
    scaled_to_limits,
    times_by_rule,
)
from musls_control.trajectories.straight import Points, check_distinct
from musls_description.arrays import Array
from musls_description.schema import Number, Positive, Vector3, spec

Order = Annotated[int, Field(ge=1, le=LARGEST_ORDER), Number]
EndValue = Vector3 | Literal["free"]


@spec
class PathEnd:
    """Motion at the beginning or at the end of a path; what is not given is zero.

    Derivatives of an order from k on cannot be prescribed and are not used. "free" leaves a
    derivative to the optimisation. The yaw is at rest at both ends.

    Attributes:
        velocity_m_s: Velocity.
        acceleration_m_s2: Acceleration.
        jerk_m_s3: Jerk.
        snap_m_s4: Snap.
    """

    velocity_m_s: EndValue = (0.0, 0.0, 0.0)
    acceleration_m_s2: EndValue = (0.0, 0.0, 0.0)
    jerk_m_s3: EndValue = (0.0, 0.0, 0.0)
    snap_m_s4: EndValue = (0.0, 0.0, 0.0)

    def conditions(self, order: int) -> Array:
        """First to (k-1)th derivative of x, y, z and yaw for a minimised k-th one, (k-1, 4)."""
        found = np.zeros((order - 1, 4))
        given = (self.velocity_m_s, self.acceleration_m_s2, self.jerk_m_s3, self.snap_m_s4)
        for row, value in zip(found, given, strict=False):
            row[:3] = np.nan if value == "free" else value
        return found


@spec
class MinDerivative(Once):
    """Smooth curve through way-points: the integral of its squared k-th derivative is least.

    The points are passed without stopping, except where a point has a `hold_s`. The derivatives up
    to the (2k - 2)th are continuous. Order 4 is minimum snap, 3 minimum jerk.

    Attributes:
        kind: "min_derivative".
        points: At least two, each [x, y, z], [x, y, z, yaw] or a mapping with hold_s.
        order: k, 1 to 6.
        speed_m_s: Speed v in the rule for the segments' times; with "optimised" the largest speed.
        acceleration_m_s2: Acceleration a in this rule; with "optimised" the largest acceleration.
        allocation: Times of the segments: "rule" is RotorTM's, 3 (2d/v)(1 + 6.5 (v/a) exp(-2d/v))
            for a distance d, "optimised" those of least cost for which speed and acceleration
            stay at or below their limits and one of the two is reached.
        segment_s: Times of the segments, instead of `allocation`.
        start: Motion at the first point.
        end: Motion at the last point.
        corridor_m: Largest distance from the straight lines between the points.
        boxes: One box for each segment, or null for none.
    """

    kind: Literal["min_derivative"] = "min_derivative"
    points: Points
    order: Order = 4
    speed_m_s: Positive = 2.0
    acceleration_m_s2: Positive = 5.0
    allocation: Literal["rule", "optimised"] = "rule"
    segment_s: tuple[Positive, ...] | None = None
    start: PathEnd = Field(default_factory=PathEnd)
    end: PathEnd = Field(default_factory=PathEnd)
    corridor_m: Positive | None = None
    boxes: tuple[CorridorBox | None, ...] | None = None

    def __post_init__(self) -> None:
        check_distinct(self.points)
        count = len(self.points) - 1
        for name, given in (("segment_s", self.segment_s), ("boxes", self.boxes)):
            if given is not None and len(given) != count:
                raise ValueError(f"{name} has {len(given)} entries for {count} segments")
        if self.segment_s is not None and self.allocation == "optimised":
            raise ValueError("give either segment_s or allocation: optimised, not both")
        for k, box in enumerate(self.boxes or ()):
            for point in (k, k + 1):
                place = self._poses[point : point + 1, :3]
                if box is not None and box.excess_m(place) > -1e-6:
                    raise ValueError(
                        f"boxes.{k} excludes points.{point} at {place[0].tolist()}, or has it on "
                        "its edge; the point must be inside"
                    )

    @property
    def duration_s(self) -> float:
        """Duration, holds included."""
        return float(self._spans[1][-1]) + self.points[-1].hold_s

    def derivatives(self, time_s: Array) -> Array:
        splines, (begin, end) = self.splines, self._spans
        number = np.clip(np.searchsorted(begin, time_s, "right") - 1, 0, len(splines) - 1)
        found = np.empty((len(time_s), ORDERS, 4))
        for k in np.unique(number):
            here = number == k
            found[here] = splines[k].derivatives(time_s[here] - begin[k], ORDERS)
        held = (time_s < begin[0]) | (time_s > end[number])
        found[held, 1:] = 0.0
        return found

    @cached_property
    def point_s(self) -> Array:
        """Times at which the points are reached, holds included, (m,)."""
        holds = np.cumsum([point.hold_s for point in self.points[:-1]])
        lengths = np.concatenate(self._times)
        return np.concatenate([[0.0], np.cumsum(lengths) + holds])

    @cached_property
    def splines(self) -> tuple[Spline, ...]:
        """The curves between stops, in x, y, z [m] and yaw [rad]."""
        return tuple(
            self._curve(first, last, times)
            for (first, last), times in zip(self._runs, self._times, strict=True)
        )

    @cached_property
    def _runs(self) -> list[tuple[int, int]]:
        """First and last point of each curve between two stops."""
        last = len(self.points) - 1
        stops = [0, *(k for k in range(1, last) if self.points[k].hold_s > 0.0), last]
        return list(itertools.pairwise(stops))

    @cached_property
    def _times(self) -> list[Array]:
        """Times of the segments of each run."""
        if self.segment_s is not None:
            return [np.array(self.segment_s[first:last]) for first, last in self._runs]
        found = []
        for first, last in self._runs:
            points = self._poses[first : last + 1]
            times = times_by_rule(points[:, :3], self.speed_m_s, self.acceleration_m_s2)
            if self.allocation == "optimised":
                start, end = self._ends(first, last)
                times = best_times(points, times, self.order, start, end)
                times = scaled_to_limits(
                    partial(self._curve, first, last),
                    times,
                    self.speed_m_s,
                    self.acceleration_m_s2,
                )
            found.append(times)
        return found

    @cached_property
    def _poses(self) -> Array:
        return np.array([[*point.position_m, point.yaw_rad] for point in self.points])

    @cached_property
    def _spans(self) -> tuple[Array, Array]:
        """Begin of each run, after the hold at its first point, and its end."""
        first, last = np.array(self._runs).T
        holds = np.array([point.hold_s for point in self.points])
        return self.point_s[first] + holds[first], self.point_s[last]

    def _ends(self, first: int, last: int) -> tuple[Array, Array]:
        """Conditions at the ends of a run; at a stop on the way rest."""
        rest = np.zeros((self.order - 1, 4))
        return (
            self.start.conditions(self.order) if first == 0 else rest,
            self.end.conditions(self.order) if last == len(self.points) - 1 else rest,
        )

    def _curve(self, first: int, last: int, times: Array) -> Spline:
        points, (start, end) = self._poses[first : last + 1], self._ends(first, last)
        free = least_derivative(points, times, self.order, start, end)
        bounds = [self._bounds(k) for k in range(first, last)]
        if not any(bounds):
            return free
        return within_corridor(free, points, times, bounds, start, end)

    def _bounds(self, segment: int) -> list[Bound]:
        """Bounds of a segment by the corridor and the boxes."""
        found: list[Bound] = []
        if self.corridor_m is not None:
            one, other = self._poses[segment, :3], self._poses[segment + 1, :3]
            way = other - one
            found.append(Tube(one, way / np.linalg.norm(way), self.corridor_m))
        box = self.boxes[segment] if self.boxes is not None else None
        if box is not None:
            found.append(box)
        return found
