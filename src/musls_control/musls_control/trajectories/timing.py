"""How long each segment between way-points takes: by a rule, or so that the cost is least."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from musls_control.trajectories.splines import EndConditions, Spline, least_derivative

Array = NDArray[np.float64]

LARGEST_RATIO = 100.0
"""Between two segments' times that are optimised and their mean."""


def times_by_rule(points: Array, speed_m_s: float, acceleration_m_s2: float) -> Array:
    """RotorTM's rule: 3 (2 d / v)(1 + 6.5 (v / a) exp(-2 d / v)) for a segment of length d.

    A rule of thumb: neither speed nor acceleration is a limit of the curve.

    Args:
        points: (m, 3).
        speed_m_s: v.
        acceleration_m_s2: a.

    Returns:
        Times, (m - 1,).
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


def best_times(
    points: Array, segment_s: Array, order: int, start: EndConditions, end: EndConditions
) -> Array:
    """Divide the same whole time among the segments so that the cost is least.

    Args:
        points: (m, d).
        segment_s: First guess, (m - 1,).
        order: k.
        start: Derivatives at the first point.
        end: Derivatives at the last one.

    Returns:
        Times, (m - 1,), with the sum of the guess.
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
    found = minimize(
        cost, guess, jac=True, method="L-BFGS-B", bounds=[(-limit, limit)] * len(guess),
        options={"maxiter": 300, "ftol": 1e-12, "gtol": 1e-8},
    )  # fmt: skip
    times: Array = whole_s * np.exp(found.x) / np.sum(np.exp(found.x))
    return times


def scaled_to_limits(
    make: Callable[[Array], Spline], segment_s: Array, speed_m_s: float, acceleration_m_s2: float
) -> Array:
    """Stretch all times alike until neither limit is exceeded and one is reached.

    Args:
        make: Curve for given times; its first three coordinates are x, y, z.
        segment_s: Times, (m - 1,).
        speed_m_s: Largest speed.
        acceleration_m_s2: Largest acceleration.
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
