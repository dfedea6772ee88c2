"""Curves of least k-th derivative through way-points, and within a corridor everywhere.

With bounds the optimum is no longer a spline with knots at the way-points alone, so the knots are
refined: each segment is cut into equal parts. A piece of a curve lies within the convex hull of its
Bernstein points. Bounds on those points therefore hold over the whole piece, not at samples alone,
and they come as close to the curve as one likes when the parts get shorter. The rest is a
second-order cone programme, which Clarabel solves (Goulart and Chen 2024, doi 10.48550/
arXiv.2405.12762).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Literal

import clarabel
import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from musls_control.trajectories.base import ORDERS, Once, Point2
from musls_control.trajectories.splines import (
    LARGEST_ORDER,
    Spline,
    bernstein_rows,
    best_times,
    clamped_knots,
    conditions,
    cost_root,
    least_derivative,
    scaled_to_limits,
    times_by_rule,
)
from musls_control.trajectories.straight import Points, check_distinct
from musls_description.config.errors import ConfigError
from musls_description.config.schema import Number, Positive, Vector3, spec
from musls_description.numerics.arrays import Array

# ---------- Bounds, and the curve that keeps them

PARTS = (4, 8, 16, 32)
"""Numbers of parts into which a segment is cut, tried in turn until the cost settles."""

SETTLED = 0.02
"""Share of the cost that a finer division may save without being tried further."""

MARGIN = 1e-6
"""Share of a corridor that is kept free for the rounding of the solver."""

Condition = tuple[Array, Array, object]
"""A, b and cone of a bound for one point p: b - A p lies in the cone."""


@dataclass(frozen=True)
class Tube:
    """Round the straight line between two points.

    Attributes:
        start: One point, (3,).
        direction: Unit vector to the other, (3,).
        radius_m: Largest distance from the line.
    """

    start: Array
    direction: Array
    radius_m: float

    def excess_m(self, points: Array) -> float:
        """Largest distance of points (m, 3) outside the bound; negative inside."""
        way = points - self.start
        across = way - np.outer(way @ self.direction, self.direction)
        return float(np.linalg.norm(across, axis=1).max() - self.radius_m)

    def condition(self, origin: Array, size_m: float) -> Condition:
        """Condition for points from an origin, in units of a size."""
        helper = np.eye(3)[int(np.argmin(np.abs(self.direction)))]
        across = np.cross(self.direction, helper)
        across /= np.linalg.norm(across)
        matrix = np.vstack([np.zeros(3), across, np.cross(self.direction, across)])
        right = matrix @ ((self.start - origin) / size_m)
        right[0] = self.radius_m / size_m * (1.0 - MARGIN)
        return matrix, right, clarabel.SecondOrderConeT(3)


@spec
class CorridorBox:
    """Axis-aligned box in which a segment has to stay.

    Attributes:
        low_m: Lowest x, y, z.
        high_m: Highest x, y, z.
    """

    low_m: Vector3
    high_m: Vector3

    def __post_init__(self) -> None:
        if not np.all(np.less(self.low_m, self.high_m)):
            raise ValueError(f"low_m {list(self.low_m)} must be below high_m {list(self.high_m)}")

    def excess_m(self, points: Array) -> float:
        """Largest distance of points (m, 3) outside the bound; negative inside."""
        return float(np.maximum(self.low_m - points, points - self.high_m).max())

    def condition(self, origin: Array, size_m: float) -> Condition:
        """Condition for points from an origin, in units of a size."""
        low, high = (np.array([self.low_m, self.high_m]) - origin) / size_m
        slack = MARGIN * (high - low)
        matrix = np.vstack([np.eye(3), -np.eye(3)])
        return matrix, np.concatenate([high - slack, slack - low]), clarabel.NonnegativeConeT(6)


Bound = Tube | CorridorBox


def within_corridor(
    free: Spline,
    points: Array,
    segment_s: Array,
    bounds: list[list[Bound]],
    start: Array,
    end: Array,
) -> Spline:
    """Find the curve of least k-th derivative that keeps all bounds.

    `free` is the curve without bounds, returned if it keeps them. Points are (m, d), the first
    three columns x, y, z; the others have no bounds. There are m - 1 segment times and lists of
    bounds; `start` and `end` are as of `least_derivative`.
    """
    if _kept(_refined(free, segment_s, PARTS[-1]), bounds):
        return free
    best: Spline | None = None
    for parts in PARTS:
        spline = _solve(_refined(free, segment_s, parts), points, segment_s, bounds, (start, end))
        if best is not None and (spline is None or spline.cost() > (1.0 - SETTLED) * best.cost()):
            # A space of curves that holds the one before; where it found worse, rounding won.
            return best if spline is None else min(spline, best, key=Spline.cost)
        best = spline
    if best is None:
        raise ConfigError(
            "no curve through the points with these segment times and end conditions stays within "
            "the corridor: make it wider, or reduce order or the end velocities"
        )
    return best


def _solve(
    refined: Spline,
    points: Array,
    segment_s: Array,
    bounds: list[list[Bound]],
    ends: tuple[Array, Array],
) -> Spline | None:
    """Solve the programme of one division; None if that failed or has no solution.

    `refined` is the free curve with its segments divided. Unknowns are the change of its
    coefficients, x, y, z one after the other, and what it makes of the k-th derivative, w = F
    change: least |w|^2. No cross term, since the free curve is the optimum. Lengths and times are
    without units.
    """
    knots = refined.knots
    order = refined.order
    unit_s = refined.unit_s
    origin = points[0, :3]
    size_m = float(np.ptp(points[:, :3], axis=0).max())
    coefficients = (refined.coefficients[:, :3] - origin) / size_m
    times = np.concatenate([[0.0], np.cumsum(segment_s / unit_s)])
    at_points = [
        conditions(
            knots,
            times,
            (points[:, d] - origin[d]) / size_m,
            order,
            (ends[0][:, d] / size_m, ends[1][:, d] / size_m),
            unit_s,
        )
        for d in range(3)
    ]
    equal = scipy.sparse.block_diag([matrix for matrix, _ in at_points])
    values = np.concatenate([right for _, right in at_points])
    root = cost_root(knots, order)
    root = scipy.sparse.block_diag([root / np.linalg.norm(root @ coefficients)] * 3)
    rows, right, cones = _inequalities(refined, bounds, origin, size_m)
    free = coefficients.T.ravel()
    (m, n) = root.shape
    matrix = scipy.sparse.block_array(
        [
            [equal, None],
            [root, -scipy.sparse.eye_array(m)],
            [rows, scipy.sparse.csc_array((len(right), m))],
        ]
    )
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 200
    solution = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(scipy.sparse.diags_array(np.repeat([0.0, 1.0], [n, m]))),
        np.zeros(n + m),
        scipy.sparse.csc_matrix(matrix),
        np.concatenate([np.zeros(len(values) + m), right - rows @ free]),
        [clarabel.ZeroConeT(len(values) + m), *cones],
        settings,
    ).solve()
    unknowns = free + np.array(solution.x)[:n]
    if not np.isfinite(unknowns).all():
        return None
    # The solver meets the points to its tolerance; the nearest curve meets them to rounding.
    gram = scipy.sparse.csc_matrix(equal @ equal.T)
    unknowns = unknowns - equal.T @ scipy.sparse.linalg.splu(gram).solve(equal @ unknowns - values)
    place = origin + size_m * unknowns.reshape(3, -1).T
    spline = replace(refined, coefficients=np.hstack([place, refined.coefficients[:, 3:]]))
    return spline if _kept(spline, bounds) else None


def _parts(spline: Spline, bounds: list[list[Bound]]) -> int:
    """Number of parts into which each segment of a refined spline is cut."""
    return (len(np.unique(spline.knots)) - 1) // len(bounds)


def _inequalities(
    spline: Spline, bounds: list[list[Bound]], origin: Array, size_m: float
) -> tuple[scipy.sparse.csc_array, Array, list[object]]:
    """Rows, right-hand side and cones of the bounds on all Bernstein points."""
    n = len(spline.coefficients)
    degree = 2 * spline.order - 1
    parts = _parts(spline, bounds)
    rows: list[scipy.sparse.csr_array] = []
    right: list[Array] = []
    cones: list[object] = []
    for piece in range(len(bounds) * parts):
        hull = bernstein_rows(spline.knots, degree, piece + degree)
        columns = np.concatenate([d * n + piece + np.arange(degree + 1) for d in range(3)])
        for bound in bounds[piece // parts]:
            matrix, offset, cone = bound.condition(origin, size_m)
            for weights in hull:
                block = matrix @ np.kron(np.eye(3), weights)  # of one point
                rows.append(_placed(block, columns, 3 * n))
                right.append(offset)
                cones.append(cone)
    return scipy.sparse.csc_array(scipy.sparse.vstack(rows)), np.concatenate(right), cones


def _kept(spline: Spline, bounds: list[list[Bound]]) -> bool:
    """Whether all Bernstein points of a spline of equally cut segments lie within the bounds."""
    degree = 2 * spline.order - 1
    parts = _parts(spline, bounds)
    for piece in range(len(bounds) * parts):
        if here := bounds[piece // parts]:
            local = spline.coefficients[piece : piece + degree + 1, :3]
            hull = bernstein_rows(spline.knots, degree, piece + degree) @ local
            if any(bound.excess_m(hull) > 0.0 for bound in here):
                return False
    return True


def _refined(spline: Spline, segment_s: Array, parts: int) -> Spline:
    """The curve with each segment cut into parts."""
    times = np.concatenate([[0.0], np.cumsum(segment_s / spline.unit_s)])
    knots = clamped_knots(_cut(times, parts), spline.order)
    degree = 2 * spline.order - 1
    # Greville points: as many as coefficients, and the equations there are well-conditioned.
    n = len(knots) - degree - 1
    greville = np.array([knots[i + 1 : i + degree + 1].mean() for i in range(n)])
    matrix = scipy.sparse.csc_matrix(
        scipy.interpolate.BSpline.design_matrix(greville, knots, degree)
    )
    values = spline.derivatives(greville * spline.unit_s, 1)[:, 0]
    return Spline(
        knots, scipy.sparse.linalg.splu(matrix).solve(values), spline.order, spline.unit_s
    )


def _cut(times: Array, parts: int) -> Array:
    share = np.arange(parts) / parts
    inner = times[:-1, None] + np.diff(times)[:, None] * share
    return np.append(inner.ravel(), times[-1])


def _placed(block: Array, columns: NDArray[np.int64], width: int) -> scipy.sparse.csr_array:
    """A dense block in the given columns of an otherwise empty matrix."""
    rows = np.repeat(np.arange(len(block)), len(columns))
    return scipy.sparse.csr_array(
        (block.ravel(), (rows, np.tile(columns, len(block)))), shape=(len(block), width)
    )


# ---------- The trajectory

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
        rows = np.zeros((order - 1, 4))
        values = (self.velocity_m_s, self.acceleration_m_s2, self.jerk_m_s3, self.snap_m_s4)
        for row, value in zip(rows, values, strict=False):
            row[:3] = np.nan if value == "free" else value
        return rows


@spec
class MinDerivative(Once):
    """Smooth curve through way-points: the integral of its squared k-th derivative is least.

    The points are passed without stopping, except where a point has a `hold_s`. The derivatives up
    to the (2k - 2)th are continuous. Order 4 is minimum snap, 3 minimum jerk.

    Attributes:
        kind: "min_derivative".
        points: Way-points, at least two: [x, y, z], [x, y, z, yaw] or a mapping with hold_s.
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
        tilts_rad: Roll and pitch of the load at each point, at rest at both ends; level if left
            out.
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
    tilts_rad: tuple[Point2, ...] | None = None

    def __post_init__(self) -> None:
        check_distinct(self.points)
        count = len(self.points) - 1
        for name, values in (("segment_s", self.segment_s), ("boxes", self.boxes)):
            if values is not None and len(values) != count:
                raise ValueError(f"{name} has {len(values)} entries for {count} segments")
        if self.tilts_rad is not None:
            if len(self.tilts_rad) != count + 1:
                raise ValueError(
                    f"tilts_rad has {len(self.tilts_rad)} entries for {count + 1} points"
                )
            for k, (roll, pitch) in enumerate(self.tilts_rad):
                if abs(pitch) >= 0.5 * np.pi or abs(roll) >= np.pi:
                    raise ValueError(
                        f"tilts_rad.{k} = {[roll, pitch]}: roll must stay below pi, pitch below "
                        "pi / 2"
                    )
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
        return self._motion(time_s)[..., :4]

    def tilt(self, time_s: Array) -> Array:
        if self.tilts_rad is None:
            return super().tilt(time_s)
        return self._motion(time_s)[..., 4:]

    def _motion(self, time_s: Array) -> Array:
        splines = self.splines
        (begin, end) = self._spans
        number = np.clip(np.searchsorted(begin, time_s, "right") - 1, 0, len(splines) - 1)
        values = np.empty((len(time_s), ORDERS, self._poses.shape[1]))
        for k in np.unique(number):
            here = number == k
            values[here] = splines[k].derivatives(time_s[here] - begin[k], ORDERS)
        at_rest = (time_s < begin[0]) | (time_s > end[number])
        values[at_rest, 1:] = 0.0
        return values

    @cached_property
    def point_s(self) -> Array:
        """Times at which the points are reached, holds included, (m,)."""
        holds = np.cumsum([point.hold_s for point in self.points[:-1]])
        lengths = np.concatenate(self._times)
        return np.concatenate([[0.0], np.cumsum(lengths) + holds])

    @cached_property
    def splines(self) -> tuple[Spline, ...]:
        """The curves between stops, in x, y, z [m], yaw and, if given, roll and pitch [rad]."""
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
        times_of_runs = []
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
            times_of_runs.append(times)
        return times_of_runs

    @cached_property
    def _poses(self) -> Array:
        poses = np.array([[*point.position_m, point.yaw_rad] for point in self.points])
        return poses if self.tilts_rad is None else np.hstack([poses, self.tilts_rad])

    @cached_property
    def _spans(self) -> tuple[Array, Array]:
        """Begin of each run, after the hold at its first point, and its end."""
        first, last = np.array(self._runs).T
        holds = np.array([point.hold_s for point in self.points])
        return self.point_s[first] + holds[first], self.point_s[last]

    def _ends(self, first: int, last: int) -> tuple[Array, Array]:
        """Conditions at the ends of a run; at a stop on the way rest."""
        moving = first == 0, last == len(self.points) - 1
        ends = np.zeros((2, self.order - 1, self._poses.shape[1]))
        for end, path_end, here in zip(ends, (self.start, self.end), moving, strict=True):
            if here:
                end[:, :4] = path_end.conditions(self.order)
        return ends[0], ends[1]

    def _curve(self, first: int, last: int, times: Array) -> Spline:
        points = self._poses[first : last + 1]
        (start, end) = self._ends(first, last)
        free = least_derivative(points, times, self.order, start, end)
        bounds = [self._bounds(k) for k in range(first, last)]
        if not any(bounds):
            return free
        return within_corridor(free, points, times, bounds, start, end)

    def _bounds(self, segment: int) -> list[Bound]:
        """Bounds of a segment by the corridor and the boxes."""
        bounds: list[Bound] = []
        if self.corridor_m is not None:
            one = self._poses[segment, :3]
            other = self._poses[segment + 1, :3]
            way = other - one
            bounds.append(Tube(one, way / np.linalg.norm(way), self.corridor_m))
        box = self.boxes[segment] if self.boxes is not None else None
        if box is not None:
            bounds.append(box)
        return bounds
