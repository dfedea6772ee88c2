"""Curves of least k-th derivative: closed forms, optimality, conditioning, corridors."""

from fractions import Fraction
from itertools import pairwise
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from scipy.interpolate import BSpline

from musls_control.trajectories.min_derivative import (
    PARTS,
    CorridorBox,
    MinDerivative,
    PathEnd,
    Tube,
)
from musls_control.trajectories.splines import (
    bernstein_rows,
    best_times,
    cost_and_slopes,
    least_derivative,
    peaks,
    times_by_rule,
)
from musls_description.config.errors import ConfigError

SLALOM = [[0, 0, 0], [0.5, -0.5, 0.25], [1, 0, 0.5], [1.5, -0.5, 0.75], [2, 0, 1]]
ORDERS = range(1, 7)


def smooth_step(k):
    """Rest-to-rest polynomial of least k-th derivative on [0, 1]: a regularised beta function."""
    density = Polynomial([0.0, 1.0]) ** (k - 1) * Polynomial([1.0, -1.0]) ** (k - 1)
    whole = density.integ()
    return whole / whole(1.0)


def curve(points, times, k, start=None, end=None):
    points = np.array(points, float)
    rest = np.zeros((k - 1, points.shape[1]))
    start, end = (rest if given is None else given for given in (start, end))
    return least_derivative(points, np.array(times, float), k, start, end)


def derivatives_at(spline, times, order):
    return spline.derivatives(np.atleast_1d(np.array(times, float)), order + 1)[:, order]


# ---------- Closed forms


@pytest.mark.parametrize("k", ORDERS)
def test_rest_to_rest_is_the_known_polynomial(k):
    """k = 3: 10 s^3 - 15 s^4 + 6 s^5; k = 4: 35 s^4 - 84 s^5 + 70 s^6 - 20 s^7."""
    spline = curve([[0.5, -1.0], [2.5, 3.0]], [1.7], k)
    wanted = smooth_step(k)
    share = np.linspace(0.0, 1.0, 101)
    for order in range(2 * k):
        expected = (wanted.deriv(order) if order else wanted)(share) / 1.7**order
        found = derivatives_at(spline, 1.7 * share, order) - (order == 0) * np.array([0.5, -1.0])
        scale = np.abs(expected).max()
        assert np.allclose(found, np.outer(expected, [2.0, 4.0]), rtol=0, atol=1e-9 * scale)
    if k == 3:
        assert np.allclose(wanted.coef, [0, 0, 0, 10, -15, 6])
    if k == 4:
        assert np.allclose(wanted.coef, [0, 0, 0, 0, 35, -84, 70, -20])


@pytest.mark.parametrize("k", ORDERS)
def test_cost_of_rest_to_rest(k):
    """Distance squared over T^(2k-1), times (2k-1)! (2k-2)! / ((k-1)!)^2."""
    spline = curve([[0.0], [3.0]], [2.0], k)
    constant = factorial(2 * k - 1) * factorial(2 * k - 2) / factorial(k - 1) ** 2
    assert spline.cost() == pytest.approx(9.0 / 2.0 ** (2 * k - 1) * constant, rel=1e-9)


def test_cubic_spline_is_the_textbook_one():
    from scipy.interpolate import CubicSpline

    times = np.array([0.0, 0.7, 2.0, 2.4, 4.0])
    x = np.array([0.0, 1.0, -0.5, 0.2, 2.0])
    found = curve(x[:, None], np.diff(times), 2)
    wanted = CubicSpline(times, x, bc_type=((1, 0.0), (1, 0.0)))
    t = np.linspace(0.0, 4.0, 200)
    assert np.allclose(derivatives_at(found, t, 0)[:, 0], wanted(t), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("limits", "duration"), [((3, 10), 13.096409), ((2, 5), 20.053377)])
def test_slaloms_of_the_paper_take_as_long_as_there(limits, duration):
    slalom = MinDerivative(points=SLALOM, speed_m_s=limits[0], acceleration_m_s2=limits[1])
    assert slalom.duration_s == pytest.approx(duration, abs=1e-6)


# ---------- Interpolation, smoothness


@settings(max_examples=40)
@given(k=st.integers(1, 6), seed=st.integers(0, 10**6), m=st.integers(2, 12))
def test_points_ends_and_inner_derivatives(k, seed, m):
    rng = np.random.default_rng(seed)
    points, times = rng.normal(size=(m, 3)), rng.uniform(0.5, 2.0, m - 1)
    start, end = (rng.normal(size=(k - 1, 3)) for _ in range(2))
    spline = curve(points, times, k, start, end)
    at = np.concatenate([[0.0], np.cumsum(times)])
    assert np.allclose(derivatives_at(spline, at, 0), points, rtol=0, atol=1e-9)
    for j in range(1, k):
        scale = np.abs(derivatives_at(spline, np.linspace(0, at[-1], 200), j)).max()
        assert np.allclose(derivatives_at(spline, 0.0, j)[0], start[j - 1], atol=1e-7)
        last = derivatives_at(spline, at[-1], j)[0]
        assert np.allclose(last, end[j - 1], rtol=0, atol=1e-8 * max(scale, 1.0))
    # Continuous up to 2k - 2: one side's limit is the other's value.
    for j in range(2 * k - 1):
        scale = np.abs(derivatives_at(spline, np.linspace(0, at[-1], 200), j)).max()
        before, after = (derivatives_at(spline, at[1:-1] + s * 1e-9, j) for s in (-1.0, 1.0))
        assert np.allclose(before, after, rtol=0, atol=1e-5 * max(scale, 1e-12))


@pytest.mark.parametrize("k", ORDERS)
def test_free_ends_are_the_natural_ones_and_cost_less(k):
    times = [1.0, 0.7, 1.3]
    points = np.array([[0.0], [1.0], [0.5], [2.0]])
    free = np.full((k - 1, 1), np.nan)
    spline, rest = curve(points, times, k, free, free), curve(points, times, k)
    for t in (0.0, 3.0):
        for j in range(k, 2 * k - 1):
            assert abs(derivatives_at(spline, t, j)[0, 0]) < 1e-6 * 10**j
    assert spline.cost() <= rest.cost() * (1.0 + 1e-12)
    if k > 1:
        assert spline.cost() < rest.cost()


# ---------- Optimality


@settings(max_examples=40)
@given(k=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_no_feasible_curve_costs_less(k, seed):
    """A change that is zero at the points is orthogonal to the optimum: their costs add up."""
    rng = np.random.default_rng(seed)
    m = 5
    points, times = rng.normal(size=(m, 1)), rng.uniform(0.5, 2.0, m - 1)
    spline = curve(points, times, k)
    at = np.concatenate([[0.0], np.cumsum(times)])
    # Zero at the points, anything in the middle of the segments, at rest at both ends.
    between = np.zeros((2 * m - 1, 1))
    between[1::2, 0] = rng.normal(size=m - 1)
    wiggle = curve(between, np.repeat(times / 2.0, 2), k)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    cost = cross = own = 0.0
    breaks = np.sort(np.concatenate([at, 0.5 * (at[:-1] + at[1:])]))
    for a, b in pairwise(breaks):
        t = 0.5 * (a + b) + 0.5 * (b - a) * nodes
        x = derivatives_at(spline, t, k)[:, 0]
        w = derivatives_at(wiggle, t, k)[:, 0]
        half = 0.5 * (b - a) * weights
        cost, cross, own = cost + half @ x**2, cross + half @ (x * w), own + half @ w**2
    assert cost == pytest.approx(spline.cost(), rel=1e-9)
    assert abs(cross) <= 1e-7 * np.sqrt(cost * own)
    for size in (1e-3, 0.1, 1.0):
        assert cost + 2.0 * size * cross + size**2 * own >= cost * (1.0 - 1e-9)


@pytest.mark.parametrize("k", ORDERS)
def test_slopes_of_the_cost_are_difference_quotients(k):
    rng = np.random.default_rng(k)
    points, times = rng.normal(size=(5, 3)), rng.uniform(0.5, 2.0, 4)
    _, slopes = cost_and_slopes(curve(points, times, k), times)
    for i in range(4):
        step = 1e-5 * times[i] * np.eye(4)[i]
        up, down = curve(points, times + step, k).cost(), curve(points, times - step, k).cost()
        assert slopes[i] == pytest.approx((up - down) / (2e-5 * times[i]), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_best_times_cannot_be_improved(k):
    points = np.array(SLALOM, float)
    rest = np.zeros((k - 1, 3))
    rule = times_by_rule(points, 2.0, 5.0)
    best = best_times(points, rule, k, rest, rest)
    assert best.sum() == pytest.approx(rule.sum())
    cost = curve(points, best, k).cost()
    assert cost < curve(points, rule, k).cost()
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = best * np.exp(0.05 * rng.normal(size=4))
        other *= rule.sum() / other.sum()
        assert curve(points, other, k).cost() >= cost * (1.0 - 1e-9)
    # A symmetric path has symmetric times.
    assert np.allclose(best, best[::-1], rtol=1e-3)


def test_optimised_times_reach_a_limit_and_keep_both():
    flight = MinDerivative(
        points=SLALOM, allocation="optimised", speed_m_s=1.0, acceleration_m_s2=1.5
    )
    d = flight.derivatives(np.linspace(0.0, flight.duration_s, 20001))
    speed, acceleration = np.linalg.norm(d[:, 1:3, :3], axis=2).max(axis=0)
    assert speed <= 1.0 + 1e-4 and acceleration <= 1.5 + 1e-4
    assert speed > 0.999 or acceleration > 1.498


# ---------- Conditioning


def exact(times, points, k, at):
    """The same curve in rational numbers: pieces in powers of time, conditions as they are."""
    times, points = [Fraction(t) for t in times], [Fraction(x) for x in points]
    degree, pieces = 2 * k - 1, len(times) - 1
    width = degree + 1

    def row(piece, order, h):
        fall = factorial
        return {
            piece * width + q: Fraction(fall(q), fall(q - order) * fall(order)) * h ** (q - order)
            for q in range(order, width)
        }

    rows = [(row(0, j, Fraction(0)), points[0] if j == 0 else Fraction(0)) for j in range(k)]
    for i in range(1, pieces):
        h = times[i] - times[i - 1]
        rows += [(row(i - 1, 0, h), points[i]), (row(i, 0, Fraction(0)), points[i])]
        for j in range(1, degree):
            joint = row(i - 1, j, h)
            joint[i * width + j] = Fraction(-1)
            rows.append((joint, Fraction(0)))
    h = times[-1] - times[-2]
    rows += [(row(pieces - 1, j, h), points[-1] if j == 0 else Fraction(0)) for j in range(k)]
    solution = _eliminate(rows, pieces * width)
    found = []
    for t in map(Fraction, at):
        piece = min(max(i for i in range(pieces + 1) if times[i] <= t), pieces - 1)
        local = solution[piece * width : (piece + 1) * width]
        found.append(float(sum(c * (t - times[piece]) ** q for q, c in enumerate(local))))
    return np.array(found)


def _eliminate(rows, n):
    """Gaussian elimination of sparse rows of fractions."""
    active, done = [[dict(row), right] for row, right in rows], []
    for column in range(n):
        holding = [i for i, (row, _) in enumerate(active) if row.get(column)]
        pivot, right = active.pop(min(holding, key=lambda i: len(active[i][0])))
        right /= pivot[column]
        pivot = {key: value / pivot[column] for key, value in pivot.items()}
        for entry in active:
            factor = entry[0].pop(column, 0)
            if factor:
                for key, value in pivot.items():
                    if key != column:
                        entry[0][key] = entry[0].get(key, Fraction(0)) - factor * value
                entry[1] -= factor * right
        done.append((column, pivot, right))
    solution = [Fraction(0)] * n
    for column, pivot, right in reversed(done):
        solution[column] = right - sum(v * solution[c] for c, v in pivot.items() if c != column)
    return solution


@pytest.mark.parametrize(("k", "m"), [(2, 50), (3, 50), (4, 30), (6, 9)])
def test_times_of_very_different_length_against_exact_arithmetic(k, m):
    rng = np.random.default_rng(k)
    lengths = np.where(rng.random(m - 1) < 0.5, 1.0, 1e-3)
    lengths[:2] = 1.0, 1e-3
    x = rng.normal(size=m)
    spline = curve(x[:, None], lengths, k)
    times = np.concatenate([[0.0], np.cumsum(lengths)])
    at = np.sort(rng.uniform(0.0, times[-1], 100))
    wanted = exact(times, x, k, at)
    size = np.abs(wanted).max()
    assert np.allclose(derivatives_at(spline, at, 0)[:, 0], wanted, rtol=0, atol=1e-6 * size)
    # Such times make the curve swing far beyond its points (to `size`); it still meets them.
    assert np.allclose(derivatives_at(spline, times, 0)[:, 0], x, rtol=0, atol=1e-13 * size + 1e-11)


@pytest.mark.parametrize("k", ORDERS)
def test_fifty_points_in_fitting_times_are_met_to_rounding(k):
    """Segments 1:1000 in length and time alike, as on a path with details."""
    rng = np.random.default_rng(k)
    lengths = np.exp(np.cumsum(np.clip(rng.normal(0.0, 1.0, 49), -1.5, 1.5)))
    lengths = np.exp(np.interp(np.log(lengths), np.log([lengths.min(), lengths.max()]), [-6.9, 0]))
    assert lengths.max() / lengths.min() == pytest.approx(992, rel=0.01)
    way = rng.normal(size=(49, 3))
    way *= (lengths / np.linalg.norm(way, axis=1))[:, None]
    points = np.concatenate([np.zeros((1, 3)), np.cumsum(way, axis=0)])
    spline = curve(points, lengths, k)
    at = np.concatenate([[0.0], np.cumsum(lengths)])
    size = np.abs(spline.derivatives(np.linspace(0, at[-1], 5000), 1)).max()
    assert np.allclose(derivatives_at(spline, at, 0), points, rtol=0, atol=1e-9 * max(1.0, size))


# ---------- Corridor


def excess(flight, bound_of):
    """How far a flight leaves its bounds, on a fine grid of each segment [m]."""
    at, worst = flight.point_s, -np.inf
    for segment in range(len(flight.points) - 1):
        t = np.linspace(at[segment], at[segment + 1], 2001)
        t[-1] -= 1e-9
        worst = max(worst, bound_of(segment).excess_m(flight.derivatives(t)[:, 0, :3]))
    return worst


def tube_of(flight, radius):
    def tube(k):
        one, other = (np.array(flight.points[i].position_m) for i in (k, k + 1))
        return Tube(one, (other - one) / np.linalg.norm(other - one), radius)

    return tube


@pytest.mark.parametrize("k", ORDERS)
@pytest.mark.parametrize("radius", [0.2, 0.02])
def test_corridor_is_kept_everywhere(k, radius):
    flight = MinDerivative(points=SLALOM, order=k, corridor_m=radius)
    free = MinDerivative(points=SLALOM, order=k)
    assert excess(flight, tube_of(flight, radius)) <= 1e-9
    assert np.allclose(flight.derivatives(flight.point_s)[:, 0, :3], SLALOM, rtol=0, atol=1e-9)
    cost, least = flight.splines[0].cost(), free.splines[0].cost()
    assert cost >= least * (1.0 - 1e-9)
    if excess(free, tube_of(free, radius)) <= 0.0:
        assert cost == pytest.approx(least)


def test_a_corridor_costs_little_more_than_its_exact_optimum():
    """k = 1, 2 against a fine quadratic programme on samples, an outer approximation."""
    radius = 0.03
    flight = MinDerivative(points=SLALOM, order=2, corridor_m=radius)
    # Cubic through the same points, the slopes free, and pulled to the lines at 60 samples each:
    # the least cost with bounds at samples only is a lower bound of that with bounds everywhere.
    assert flight.splines[0].cost() < 1.02 * _sampled_optimum(flight, radius)


def _sampled_optimum(flight, radius):
    import clarabel
    from scipy import sparse

    points = np.array(SLALOM, float)
    per, segment = 60, np.diff(flight.point_s)
    h = np.repeat(segment / per, per)
    n = len(h) + 1
    t = np.concatenate([[0.0], np.cumsum(h)])
    # Natural finite elements for the second derivative: cubic B-splines on the fine grid.
    knots = np.concatenate([t[[0] * 3], t, t[[-1] * 3]])
    basis = BSpline(knots, np.eye(n + 2), 3)
    second = basis(t, nu=2)  # linear between knots
    mass = sparse.diags_array([h / 6, np.r_[h, 0] / 3 + np.r_[0, h] / 3, h / 6], offsets=[-1, 0, 1])
    cost = second.T @ (mass @ second)
    value, slope = basis(t), basis(t[[0, -1]], nu=1)
    equal = np.vstack([value[::per], slope])
    rows, right, cones = [], [], []
    for k in range(len(segment)):
        tube = tube_of(flight, radius)(k)
        across = np.linalg.svd(tube.direction[None])[2][1:]
        for i in range(per * k + 1, per * (k + 1)):
            rows.append(np.vstack([np.zeros(3 * (n + 2)), np.kron(across, value[i])]))
            right.append(np.concatenate([[radius], across @ tube.start]))
            cones.append(clarabel.SecondOrderConeT(3))
    equals = sparse.block_diag([equal] * 3)
    wanted = np.concatenate([np.concatenate([points[:, d], [0.0, 0.0]]) for d in range(3)])
    quiet = clarabel.DefaultSettings()
    quiet.verbose = False
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.triu(sparse.block_diag([cost] * 3))),
        np.zeros(3 * (n + 2)),
        sparse.csc_matrix(sparse.vstack([equals, sparse.csr_array(np.vstack(rows))])),
        np.concatenate([wanted, *right]),
        [clarabel.ZeroConeT(equals.shape[0]), *cones],
        quiet,
    ).solve()
    return 2.0 * solution.obj_val


def test_boxes_are_kept_and_the_yaw_is_left_alone():
    box = CorridorBox(low_m=(-0.1, -0.55, -0.1), high_m=(1.05, 0.05, 0.503))
    points = [[0, 0, 0, 0.0], [0.5, -0.5, 0.5, 0.7], [1, 0, 0.3, -0.3]]
    flight = MinDerivative(points=points, boxes=[box, box], order=4)
    free = MinDerivative(points=points, order=4)
    assert excess(free, lambda k: box) > 1e-4
    assert excess(flight, lambda k: box) <= 1e-9
    t = np.linspace(0.0, flight.duration_s, 500)
    assert np.allclose(flight.pose(t)[:, 3], free.pose(t)[:, 3], rtol=0, atol=1e-9)


def test_bernstein_points_of_a_piece():
    rng = np.random.default_rng(0)
    knots = np.concatenate([[0.0] * 6, np.sort(rng.uniform(0, 1, 5)), [1.0] * 6])
    coefficients = rng.normal(size=11)
    for piece in range(5, 11):
        points = bernstein_rows(knots, 5, piece) @ coefficients[piece - 5 : piece + 1]
        for share in (0.0, 0.3, 0.999):
            t = knots[piece] + share * (knots[piece + 1] - knots[piece])
            values = points.copy()
            while len(values) > 1:  # de Casteljau
                values = (1.0 - share) * values[:-1] + share * values[1:]
            assert values[0] == pytest.approx(BSpline(knots, coefficients, 5)(t), abs=1e-12)


# ---------- The trajectory


def test_points_are_passed_without_stopping_unless_asked():
    corners = [[0, 0, 1], [1, 0, 1], [1, 1, 1.5], [2, 1, 1], [3, 0, 1]]
    passed = MinDerivative(points=corners)
    assert (np.linalg.norm(passed.derivatives(passed.point_s[1:-1])[:, 1], axis=1) > 0.1).all()
    points = [*corners[:2], {"position_m": corners[2], "hold_s": 1.5}, *corners[3:]]
    stopped = MinDerivative(points=points)
    assert stopped.duration_s == pytest.approx(passed.duration_s + 1.5)
    held = stopped.derivatives(stopped.point_s[2] + np.linspace(0.0, 1.5, 20))
    assert np.allclose(held[:, 0, :3], corners[2], rtol=0, atol=1e-9)
    assert np.allclose(held[1:-1, 1:], 0.0)


def test_motion_at_the_ends():
    flight = MinDerivative(
        points=[[0, 0, 1], [2, 0, 1]],
        start=PathEnd(velocity_m_s=(0.3, 0.1, 0.0), acceleration_m_s2=(0.0, 0.2, 0.0)),
        end=PathEnd(velocity_m_s="free"),
    )
    first = flight.derivatives(np.zeros(1))[0]
    assert np.allclose(first[1:4, :3], [[0.3, 0.1, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.0]])
    last = flight.derivatives(np.array([flight.duration_s]))[0]
    assert abs(last[1, 0]) > 0.01 and np.allclose(last[2:4, :3], 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"points": [[0, 0, 1]]}, "points"),
        ({"points": [[0, 0, 1], [0, 0, 1]]}, "points.0 and points.1 coincide"),
        ({"points": [[0, 0, 1], [1, 0, 1], [1, 0, 1, 2.0]]}, "points.1 and points.2 coincide"),
        ({"points": SLALOM, "order": 0}, "order"),
        ({"points": SLALOM, "order": 7}, "order"),
        ({"points": SLALOM, "order": 2.5}, "order"),
        ({"points": SLALOM, "corridor_m": 0.0}, "corridor_m"),
        ({"points": SLALOM, "segment_s": [1.0, 1.0]}, "segment_s has 2 entries for 4"),
        ({"points": SLALOM, "segment_s": [1.0, 1.0, 1.0, 0.0]}, "segment_s"),
        ({"points": SLALOM, "segment_s": [1.0] * 4, "allocation": "optimised"}, "not both"),
        ({"points": SLALOM, "allocation": "best"}, "allocation"),
        ({"points": SLALOM, "boxes": [None]}, "boxes has 1"),
        (
            {
                "points": [[0, 0, 1], [3, 0, 1]],
                "boxes": [{"low_m": [-1, -1, 0], "high_m": [2, 1, 2]}],
            },
            "boxes.0 excludes points.1",
        ),
        (
            {
                "points": [[0, 0, 1], [3, 0, 1]],
                "boxes": [{"low_m": [-1, -1, 0], "high_m": [4, -2, 2]}],
            },
            "low_m",
        ),
    ],
)
def test_bad_values_are_refused_in_one_line(keys, part):
    with pytest.raises(ConfigError) as error:
        MinDerivative(**keys)
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_a_corridor_that_cannot_be_kept_is_named():
    """At the start the motion goes out of a tube that is narrower than the turn needs."""
    flight = MinDerivative(
        points=[[0, 0, 1], [5, 0, 1]],
        order=2,
        segment_s=[1.0],
        corridor_m=0.01,
        start=PathEnd(velocity_m_s=(0.0, 100.0, 0.0)),
    )
    with pytest.raises(ConfigError, match="corridor"):
        flight.derivatives(np.zeros(1))
    assert PARTS[-1] * 0.01 < 100.0


def test_peaks_of_rest_to_rest():
    speed, acceleration = peaks(curve([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]], [2.0], 3))
    assert speed == pytest.approx(1.875 * 3.0 / 2.0, rel=1e-4)
    assert acceleration == pytest.approx(10.0 / np.sqrt(3.0) * 3.0 / 4.0, rel=1e-3)


def test_the_load_tilts_as_given_at_each_point():
    tilts = [[0.1, 0.0], [0.8, -0.3], [0.0, 0.2]]
    points = [[0, 0, 1], {"position_m": [1, 0, 1.5], "hold_s": 1.0}, [3, 2, 2]]
    level, tilted = MinDerivative(points=points), MinDerivative(points=points, tilts_rad=tilts)
    found = tilted.tilt(tilted.point_s)
    assert np.allclose(found[:, 0], tilts, atol=1e-9)
    assert np.allclose(found[[0, 1, 2], 1:3], 0.0, atol=1e-6)  # at rest at the ends and the hold
    times = np.linspace(0.0, level.duration_s, 50)
    assert np.allclose(level.derivatives(times), tilted.derivatives(times), atol=1e-9)
    assert not level.tilt(times).any()
    with pytest.raises(ValueError, match="tilts_rad has 2 entries for 3 points"):
        MinDerivative(points=points, tilts_rad=tilts[:2])
    with pytest.raises(ValueError, match=r"tilts_rad\.1 = \[0.8, 1.6\]"):
        MinDerivative(points=points, tilts_rad=[tilts[0], [0.8, 1.6], tilts[2]])
