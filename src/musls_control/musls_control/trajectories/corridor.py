"""Curves of least k-th derivative that stay within a corridor everywhere.

With bounds the optimum is no longer a spline with knots at the way-points alone, so the knots are
refined: each segment is cut into equal parts. A piece of a curve lies within the convex hull of its
Bernstein points. Bounds on those points therefore hold over the whole piece, not at samples alone,
and they come as close to the curve as one likes when the parts get shorter. The rest is a
second-order cone programme, which Clarabel solves (Goulart and Chen 2024, doi 10.48550/
arXiv.2405.12762).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.sparse.linalg import splu

from musls_control.trajectories.splines import (
    Spline,
    bernstein_rows,
    clamped_knots,
    conditions,
    cost_root,
)
from musls_description.arrays import Array
from musls_description.errors import ConfigError
from musls_description.schema import Vector3, spec

PARTS = (4, 8, 16, 32)
"""Into how many parts a segment is cut, one after the other until the cost settles."""

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
        found = _solve(_refined(free, segment_s, parts), points, segment_s, bounds, (start, end))
        if best is not None and (found is None or found.cost() > (1.0 - SETTLED) * best.cost()):
            # A space of curves that holds the one before; where it found worse, rounding won.
            return best if found is None else min(found, best, key=Spline.cost)
        best = found
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
    knots, order, unit_s = refined.knots, refined.order, refined.unit_s
    origin, size_m = points[0, :3], float(np.ptp(points[:, :3], axis=0).max())
    coefficients = (refined.coefficients[:, :3] - origin) / size_m
    times = np.concatenate([[0.0], np.cumsum(segment_s / unit_s)])
    at_points = [
        conditions(
            knots, times, (points[:, d] - origin[d]) / size_m, order,
            (ends[0][:, d] / size_m, ends[1][:, d] / size_m), unit_s,
        )
        for d in range(3)
    ]  # fmt: skip
    equal = sparse.block_diag([matrix for matrix, _ in at_points])
    values = np.concatenate([right for _, right in at_points])
    root = cost_root(knots, order)
    root = sparse.block_diag([root / np.linalg.norm(root @ coefficients)] * 3)
    rows, right, cones = _inequalities(refined, bounds, origin, size_m)
    free, (m, n) = coefficients.T.ravel(), root.shape
    matrix = sparse.block_array(
        [[equal, None], [root, -sparse.eye_array(m)], [rows, sparse.csc_array((len(right), m))]]
    )
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 200
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.diags_array(np.repeat([0.0, 1.0], [n, m]))),
        np.zeros(n + m),
        sparse.csc_matrix(matrix),
        np.concatenate([np.zeros(len(values) + m), right - rows @ free]),
        [clarabel.ZeroConeT(len(values) + m), *cones],
        settings,
    ).solve()
    found = free + np.array(solution.x)[:n]
    if not np.isfinite(found).all():
        return None
    # The solver meets the points to its tolerance; the nearest curve meets them to rounding.
    gram = sparse.csc_matrix(equal @ equal.T)
    found = found - equal.T @ splu(gram).solve(equal @ found - values)
    place = origin + size_m * found.reshape(3, -1).T
    spline = replace(refined, coefficients=np.hstack([place, refined.coefficients[:, 3:]]))
    return spline if _kept(spline, bounds) else None


def _parts(spline: Spline, bounds: list[list[Bound]]) -> int:
    """Into how many parts each segment of a refined spline is cut."""
    return (len(np.unique(spline.knots)) - 1) // len(bounds)


def _inequalities(
    spline: Spline, bounds: list[list[Bound]], origin: Array, size_m: float
) -> tuple[sparse.csc_array, Array, list[object]]:
    """Rows, right-hand side and cones of the bounds on all Bernstein points."""
    n, degree = len(spline.coefficients), 2 * spline.order - 1
    parts = _parts(spline, bounds)
    rows: list[sparse.csr_array] = []
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
    return sparse.csc_array(sparse.vstack(rows)), np.concatenate(right), cones


def _kept(spline: Spline, bounds: list[list[Bound]]) -> bool:
    """Whether all Bernstein points of a spline of equally cut segments lie within the bounds."""
    degree, parts = 2 * spline.order - 1, _parts(spline, bounds)
    for piece in range(len(bounds) * parts):
        if here := bounds[piece // parts]:
            local = spline.coefficients[piece : piece + degree + 1, :3]
            hull = bernstein_rows(spline.knots, degree, piece + degree) @ local
            if any(bound.excess_m(hull) > 0.0 for bound in here):
                return False
    return True


def _refined(spline: Spline, segment_s: Array, parts: int) -> Spline:
    """The same curve with each segment cut into parts."""
    times = np.concatenate([[0.0], np.cumsum(segment_s / spline.unit_s)])
    knots = clamped_knots(_cut(times, parts), spline.order)
    degree = 2 * spline.order - 1
    # Greville points: as many as coefficients, and the equations there are well-conditioned.
    n = len(knots) - degree - 1
    greville = np.array([knots[i + 1 : i + degree + 1].mean() for i in range(n)])
    matrix = sparse.csc_matrix(BSpline.design_matrix(greville, knots, degree))
    values = spline.derivatives(greville * spline.unit_s, 1)[:, 0]
    return Spline(knots, splu(matrix).solve(values), spline.order, spline.unit_s)


def _cut(times: Array, parts: int) -> Array:
    share = np.arange(parts) / parts
    inner = times[:-1, None] + np.diff(times)[:, None] * share
    return np.append(inner.ravel(), times[-1])


def _placed(block: Array, columns: NDArray[np.int64], width: int) -> sparse.csr_array:
    """A dense block in the given columns of an otherwise empty matrix."""
    rows = np.repeat(np.arange(len(block)), len(columns))
    return sparse.csr_array(
        (block.ravel(), (rows, np.tile(columns, len(block)))), shape=(len(block), width)
    )
