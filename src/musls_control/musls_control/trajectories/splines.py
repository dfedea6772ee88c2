"""Curves of least k-th derivative through points: splines in a B-spline basis.

The curve x(t) through given points at given times that minimises the integral of (x^(k))^2 is
the spline of degree 2k - 1 with one simple knot at each inner point: its derivatives up to the
(2k - 2)th are continuous (Schoenberg 1964; RotorTM's eq. 59 and 60 state the same problem with
monomials). So the optimum is found by one banded linear system for the coefficients of B-splines,
whose condition does not grow with the number of points as that of monomials does. Times are counted
in mean segments, which keeps the rows of the k-th derivatives of one size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from musls_description.numerics.arrays import Array

LARGEST_ORDER = 6
"""Largest order of the derivative that is minimised: the spline's degree is then 11."""


@dataclass(frozen=True)
class Spline:
    """A spline in several coordinates.

    Attributes:
        knots: Knots in units of `unit_s`, ascending, the ends 2k-fold.
        coefficients: Coefficients of the B-splines, (n, d).
        order: k, the derivative whose square is minimised.
        unit_s: Unit of the knots' times.
    """

    knots: Array
    coefficients: Array
    order: int
    unit_s: float

    def derivatives(self, time_s: Array, count: int) -> Array:
        """Evaluate at times since the first point, (m,), held at the ends outside, (m, count, d).

        The position is the first of `count`. At a corner the part that begins counts.
        """
        degree = 2 * self.order - 1
        spline = scipy.interpolate.BSpline(self.knots, self.coefficients, degree)
        times = np.clip(time_s / self.unit_s, self.knots[0], self.knots[-1])
        values = np.zeros((len(times), count, self.coefficients.shape[1]))
        for derivative in range(min(count, degree + 1)):
            values[:, derivative] = spline(times, nu=derivative) / self.unit_s**derivative
        return values

    def cost(self) -> float:
        """Integral of the squared k-th derivative over all coordinates, in SI units."""
        nodes, weights = _gauss(np.unique(self.knots), self.order)
        highest = self.derivatives(nodes * self.unit_s, self.order + 1)[:, -1]
        return float(weights @ np.sum(highest**2, axis=1)) * self.unit_s


def least_derivative(
    points: Array, segment_s: Array, order: int, start: Array, end: Array
) -> Spline:
    """Find the curve of least k-th derivative through points.

    Points are (m, d), m >= 2, times between them (m - 1,), all > 0; `order` is k, 1 to
    `LARGEST_ORDER`. `start` and `end` are the first to (k-1)th derivative there in SI units,
    (k-1, d); NaN leaves one free, which makes the derivative of the order 2k - 1 - j zero (the
    natural condition). The spline's time starts at the first point.
    """
    unit_s = float(np.mean(segment_s))
    times = np.concatenate([[0.0], np.cumsum(segment_s / unit_s)])
    knots = clamped_knots(times, order)
    coefficients = np.empty((len(points) - 2 + 2 * order, points.shape[1]))
    for d in range(points.shape[1]):
        ends = start[:, d], end[:, d]
        matrix, values = conditions(knots, times, points[:, d], order, ends, unit_s)
        coefficients[:, d] = scipy.sparse.linalg.splu(matrix.tocsc()).solve(values)
    return Spline(knots, coefficients, order, unit_s)


def clamped_knots(times: Array, order: int) -> Array:
    """Knots of degree 2k - 1 with breaks at times, the ends as often as the degree plus one."""
    ends = np.ones(2 * order - 1)
    return np.concatenate([times[0] * ends, times, times[-1] * ends])


def conditions(
    knots: Array,
    times: Array,
    values: Array,
    order: int,
    ends: tuple[Array, Array],
    unit_s: float,
) -> tuple[scipy.sparse.csr_array, Array]:
    """Linear equations of one coordinate: points and ends, in the order of time.

    Knots and the points' times, (m,), are in units of `unit_s`; `values` are the coordinate there,
    (m,), `order` is k, `ends` the derivatives at start and end, (k - 1,) each, as of
    `least_derivative`. Returns the matrix (m + 2(k - 1), n), with rows of size one, and the
    right-hand side.
    """
    width = 2 * order
    n = len(knots) - 2 * order
    at_points = scipy.sparse.csr_array(
        scipy.interpolate.BSpline.design_matrix(times, knots, width - 1)
    )
    # Of a free derivative the natural condition of the variational problem takes the place.
    first, last = np.zeros((2, order - 1, n))
    right = np.zeros((2, order - 1))
    for side, (rows, derivatives) in enumerate(zip((first, last), ends, strict=True)):
        near = slice(None, width) if side == 0 else slice(-width, None)  # B-splines at this end
        local = knots[: 2 * width] if side == 0 else knots[-2 * width :]
        basis = scipy.interpolate.BSpline(local, np.eye(width), width - 1)
        for j, value in enumerate(derivatives, start=1):
            free = np.isnan(value)
            row = basis(knots[-side], nu=width - 1 - j if free else j)
            size = np.abs(row).max()
            rows[j - 1, near] = row / size
            right[side, j - 1] = 0.0 if free else value * unit_s**j / size
    matrix = scipy.sparse.vstack(
        [at_points[[0]], first, at_points[1:-1], last[::-1], at_points[[-1]]]
    )
    right_side = [values[:1], right[0], values[1:-1], right[1, ::-1], values[-1:]]
    return scipy.sparse.csr_array(matrix), np.concatenate(right_side)


def cost_root(knots: Array, order: int) -> scipy.sparse.csr_array:
    """Matrix F with |F c|^2 = integral of (x^(k))^2, times in units of the knots, (m, n).

    A programme with F is conditioned like the k-th derivative, one with F^T F like its square.
    """
    nodes, weights = _gauss(np.unique(knots), order)
    n = len(knots) - 2 * order
    degree = 2 * order - 1
    rows = scipy.sparse.csr_array(
        scipy.interpolate.BSpline.design_matrix(nodes, knots[order:-order], degree - order)
    )
    change = _differences(knots, degree, order, n)
    highest = rows @ change
    return scipy.sparse.csr_array(scipy.sparse.diags_array(np.sqrt(weights)) @ highest)


def _differences(knots: Array, degree: int, count: int, n: int) -> scipy.sparse.csr_array:
    """Coefficients of the derivative of an order from those of the spline (de Boor, X.15)."""
    change = scipy.sparse.csr_array(scipy.sparse.eye_array(n))
    for step in range(count):
        p = degree - step
        inner = knots[step : len(knots) - step]
        width = inner[p + 1 : -1] - inner[1 : -p - 1]
        scale = scipy.sparse.diags_array(p / width)
        size = change.shape[0]
        step_matrix = scipy.sparse.diags_array(
            [-np.ones(size - 1), np.ones(size - 1)], offsets=[0, 1], shape=(size - 1, size)
        )
        change = scipy.sparse.csr_array(scale @ step_matrix @ change)
    return change


def _gauss(breaks: Array, count: int) -> tuple[Array, Array]:
    """Nodes and weights that integrate polynomials of degree 2 count - 1 between breaks exactly."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    half = 0.5 * np.diff(breaks)
    middle = breaks[:-1] + half
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def bernstein_rows(knots: Array, degree: int, interval: int) -> Array:
    """Bernstein points of a polynomial piece from its B-spline coefficients, by blossoming.

    The piece between knots[i] < knots[i + 1], i = `interval`, has the coefficients from i - p to i.
    The curve lies in the convex hull of the points, (p + 1, p + 1), over the whole piece.
    """
    rows = np.empty((degree + 1, degree + 1))
    a, b = knots[interval], knots[interval + 1]
    for point in range(degree + 1):
        arguments = [b] * point + [a] * (degree - point)
        values = np.eye(degree + 1)
        for level, u in enumerate(arguments, start=1):
            for j in range(degree, level - 1, -1):
                low, high = knots[interval - degree + j], knots[interval + 1 + j - level]
                share = (u - low) / (high - low)
                values[j] = (1.0 - share) * values[j - 1] + share * values[j]
        rows[point] = values[degree]
    return rows


# ---------- How long each segment between way-points takes

LARGEST_RATIO = 100.0
"""Largest ratio between the optimised time of a segment and the mean of all."""


def times_by_rule(points: Array, speed_m_s: float, acceleration_m_s2: float) -> Array:
    """RotorTM's rule: 3 (2 d / v)(1 + 6.5 (v / a) exp(-2 d / v)) for a segment of length d.

    A rule of thumb: neither speed v nor acceleration a is a limit of the curve. Points (m, 3).
    """
    pace = 2.0 * np.linalg.norm(np.diff(points, axis=0), axis=1) / speed_m_s
    slow = 1.0 + 6.5 * speed_m_s / acceleration_m_s2 * np.exp(-pace)
    times: Array = 3.0 * pace * slow
    return times


def cost_and_slopes(spline: Spline, segment_s: Array) -> tuple[float, Array]:
    """Cost of a least-derivative curve and its derivatives with respect to the segments' times.

    The slope is minus the Hamiltonian of the variational problem, which is constant along a
    segment: dJ/dT = -sum over coordinates of (x^(k))^2 + 2 sum_i (-1)^i x^(k+i) x^(k-i).
    """
    k = spline.order
    middle = np.cumsum(segment_s) - 0.5 * segment_s
    d = spline.derivatives(middle, 2 * k)
    energy = d[:, k] ** 2
    for i in range(1, k):
        energy = energy + 2.0 * (-1.0) ** i * d[:, k + i] * d[:, k - i]
    return spline.cost(), -np.sum(energy, axis=1)


def best_times(points: Array, segment_s: Array, order: int, start: Array, end: Array) -> Array:
    """Divide the same whole time among the segments so that the cost is least, (m - 1,).

    Arguments as of `least_derivative`, times as a first guess.
    """
    if len(segment_s) == 1:
        return segment_s
    whole_s = float(np.sum(segment_s))
    guess = np.log(segment_s / np.mean(segment_s))
    first = least_derivative(points, segment_s, order, start, end).cost()

    def cost(logs: Array) -> tuple[float, Array]:
        share = np.exp(logs) / np.sum(np.exp(logs))
        spline = least_derivative(points, whole_s * share, order, start, end)
        value, slopes = cost_and_slopes(spline, whole_s * share)
        by_log = whole_s * share * (slopes - share @ slopes)
        # The logarithm: the cost grows with high powers of the times.
        return float(np.log(value / first)), by_log / value

    limit = float(np.log(LARGEST_RATIO))
    result = scipy.optimize.minimize(
        cost,
        guess,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-limit, limit)] * len(guess),
        options={"maxiter": 300, "ftol": 1e-12, "gtol": 1e-8},
    )
    times: Array = whole_s * np.exp(result.x) / np.sum(np.exp(result.x))
    return times


def scaled_to_limits(
    make: Callable[[Array], Spline], segment_s: Array, speed_m_s: float, acceleration_m_s2: float
) -> Array:
    """Stretch all times, (m - 1,), alike until neither limit is exceeded and one is reached.

    `make` returns the curve for given times; its first three coordinates are x, y, z.
    """
    # One step is exact for a curve from rest to rest; given velocities at the ends take a few.
    for _ in range(20):
        speed, acceleration = peaks(make(segment_s))
        stretch = max(speed / speed_m_s, np.sqrt(acceleration / acceleration_m_s2))
        segment_s = segment_s * stretch
        if abs(stretch - 1.0) < 1e-6:
            break
    return segment_s


def peaks(spline: Spline) -> tuple[float, float]:
    """Largest speed and acceleration of a curve's first three coordinates."""
    breaks = np.unique(spline.knots) * spline.unit_s
    share = np.linspace(0.0, 1.0, 101)
    times = breaks[:-1, None] + np.diff(breaks)[:, None] * share
    # At an end that belongs to the next segment the limit from the left counts for this one.
    times[:, -1] -= 1e-9 * np.diff(breaks)
    d = spline.derivatives(times.ravel(), 3)[:, :, :3]
    norms = np.linalg.norm(d, axis=2).max(axis=0)
    return float(norms[1]), float(norms[2])
