"""Curves of least k-th derivative that stay within a corridor everywhere.

With bounds the optimum is no longer a spline with knots at the way-points alone, so the knots are
refined: each segment is cut into equal parts. A piece of a curve lies within the convex hull of its
Bernstein points. Bounds on those points therefore hold over the whole piece, not at samples alone,
and they come as close to the curve as one likes when the parts get shorter. The rest is a
second-order cone programme, which Clarabel solves (Goulart and Chen 2024, doi 10.48550/
arXiv.2405.12762).
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.sparse.linalg import splu

from musls_control.trajectories.splines import (
    EndConditions,
    Spline,
    bernstein_rows,
    clamped_knots,
    conditions,
    cost_root,
)
from musls_description.errors import ConfigError

Array = NDArray[np.float64]

PARTS = (4, 8, 16, 32)
"""Into how many parts a segment is cut, one after the other until the cost settles."""

SETTLED = 0.02
"""Share of the cost that a finer division may save without being tried further."""

MARGIN = 1e-6
"""Share of a corridor that is kept free for the rounding of the solver."""


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
        """How far the worst of some points, (m, 3), is outside; negative inside."""
        way = points - self.start
        across = way - np.outer(way @ self.direction, self.direction)
        return float(np.linalg.norm(across, axis=1).max() - self.radius_m)


@dataclass(frozen=True)
class Region:
    """Axis-aligned box.

    Attributes:
        low_m: Lowest x, y, z, (3,).
        high_m: Highest, (3,).
    """

    low_m: Array
    high_m: Array

    def excess_m(self, points: Array) -> float:
        """How far the worst of some points, (m, 3), is outside; negative inside."""
        return float(np.maximum(self.low_m - points, points - self.high_m).max())


Bound = Tube | Region


def _across(direction: Array) -> tuple[Array, Array]:
    """Two unit vectors across a direction and each other."""
    helper = np.eye(3)[int(np.argmin(np.abs(direction)))]
    first = np.cross(direction, helper)
    first /= np.linalg.norm(first)
    return first, np.cross(direction, first)


def within_corridor(
    free: Spline,
    points: Array,
    segment_s: Array,
    bounds: list[list[Bound]],
    start: EndConditions,
    end: EndConditions,
) -> Spline:
    """Find the curve of least k-th derivative that keeps all bounds.

    `free` is the curve without bounds, returned if it keeps them. Points are (m, d), the first
    three columns x, y, z; the others have no bounds. There are m - 1 segment times and lists of
    bounds.

    Raises:
        ConfigError: No curve of these times was found.
    """
    if _kept(_refined(free, segment_s, PARTS[-1]), bounds, PARTS[-1]):
        return free
    best: Spline | None = None
    for parts in PARTS:
        found = _solve(_Problem(free, points, segment_s, bounds, start, end, parts))
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


class _Problem:
    """Knots and matrices of one division, lengths and times without units."""

    def __init__(
        self,
        free: Spline,
        points: Array,
        segment_s: Array,
        bounds: list[list[Bound]],
        start: EndConditions,
        end: EndConditions,
        parts: int,
    ) -> None:
        self.order, self.unit_s, self.parts, self.bounds = free.order, free.unit_s, parts, bounds
        self.origin = points[0, :3]
        self.size_m = float(np.ptp(points[:, :3], axis=0).max())
        times = np.concatenate([[0.0], np.cumsum(segment_s / self.unit_s)])
        self.knots = clamped_knots(_cut(times, parts), self.order)
        self.n = len(self.knots) - 2 * self.order
        refined = _refined(free, segment_s, parts)
        self.free = (refined.coefficients[:, :3] - self.origin) / self.size_m
        self._others = refined.coefficients[:, 3:]
        self.root = cost_root(self.knots, self.order)
        self.root = self.root / np.linalg.norm(self.root @ self.free)
        self.equal = []
        for d in range(3):
            first, last = (
                EndConditions(e.derivatives[:, d : d + 1] / self.size_m) for e in (start, end)
            )
            values = (points[:, d] - self.origin[d]) / self.size_m
            self.equal.append(
                conditions(self.knots, times, values, self.order, first, last, self.unit_s)
            )

    def spline(self, coefficients: Array) -> Spline:
        """Spline with units, from coefficients of x, y, z without, (n, 3)."""
        place = self.origin + self.size_m * coefficients
        return Spline(self.knots, np.hstack([place, self._others]), self.order, self.unit_s)

    def inequalities(self) -> tuple[sparse.csc_array, Array, list[object]]:
        """Rows, right-hand side and cones of the bounds, unknowns x, y, z one after the other."""
        degree = 2 * self.order - 1
        rows: list[sparse.csr_array] = []
        right: list[Array] = []
        cones: list[object] = []
        for piece in range(len(self.bounds) * self.parts):
            first = piece  # coefficient
            hull = bernstein_rows(self.knots, degree, piece + degree)
            for bound in self.bounds[piece // self.parts]:
                matrix, offset, kind = self._of_point(bound)
                for weights in hull:
                    block = np.kron(np.eye(3), weights)  # (3, 3 (degree + 1)), one point
                    columns = np.concatenate(
                        [d * self.n + first + np.arange(degree + 1) for d in range(3)]
                    )
                    rows.append(_placed(matrix @ block, columns, 3 * self.n))
                    right.append(offset)
                    cones.append(kind)
        return sparse.csc_array(sparse.vstack(rows)), np.concatenate(right), cones

    def _of_point(self, bound: Bound) -> tuple[Array, Array, object]:
        """A, b and cone of a bound for one point p: b - A p lies in the cone."""
        if isinstance(bound, Region):
            low, high = ((side - self.origin) / self.size_m for side in (bound.low_m, bound.high_m))
            slack = MARGIN * (high - low)
            matrix = np.vstack([np.eye(3), -np.eye(3)])
            return matrix, np.concatenate([high - slack, slack - low]), clarabel.NonnegativeConeT(6)
        matrix = np.vstack([np.zeros(3), *_across(bound.direction)])
        right = matrix @ ((bound.start - self.origin) / self.size_m)
        right[0] = bound.radius_m / self.size_m * (1.0 - MARGIN)
        return matrix, right, clarabel.SecondOrderConeT(3)


def _solve(problem: _Problem) -> Spline | None:
    """Solve the programme of one division; None if that failed or has no solution.

    Unknowns are the change of the free curve's coefficients and what it makes of the k-th
    derivative, w = F change: least |w|^2. No cross term, since the free curve is the optimum.
    """
    n, root = problem.n, sparse.block_diag([problem.root] * 3)
    m = root.shape[0]
    equal = sparse.block_diag([matrix for matrix, _ in problem.equal])
    values = np.concatenate([right for _, right in problem.equal])
    rows, right, cones = problem.inequalities()
    free = problem.free.T.ravel()
    matrix = sparse.block_array(
        [[equal, None], [root, -sparse.eye_array(m)], [rows, sparse.csc_array((len(right), m))]]
    )
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 200
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.diags_array(np.repeat([0.0, 1.0], [3 * n, m]))),
        np.zeros(3 * n + m),
        sparse.csc_matrix(matrix),
        np.concatenate([np.zeros(len(values) + m), right - rows @ free]),
        [clarabel.ZeroConeT(len(values) + m), *cones],
        settings,
    ).solve()
    found = free + np.array(solution.x)[: 3 * n]
    if not np.isfinite(found).all():
        return None
    # The solver meets the points to its tolerance; the nearest curve meets them to rounding.
    gram = sparse.csc_matrix(equal @ equal.T)
    found = found - equal.T @ splu(gram).solve(equal @ found - values)
    spline = problem.spline(found.reshape(3, n).T)
    return spline if _kept(spline, problem.bounds, problem.parts) else None


def _kept(spline: Spline, bounds: list[list[Bound]], parts: int) -> bool:
    """Whether all Bernstein points of a spline of equally cut segments lie within the bounds."""
    degree = 2 * spline.order - 1
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
