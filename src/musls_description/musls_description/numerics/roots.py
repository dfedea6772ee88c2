"""Root of a function of one variable."""

from __future__ import annotations

import math
from collections.abc import Callable

RELATIVE = 4.0 * 2.0**-52
"""Tolerance of a root over its size."""

MOST_STEPS = 100


def root_between(
    gap: Callable[[float], float], low: float, high: float, tolerance: float = 2e-12
) -> float:
    """Find the root of a continuous function between two signs, by Brent's method.

    Step by step as `scipy.optimize.brentq`, whose package takes a tenth of a second to import: most
    flights need no more of it.

    Raises:
        ValueError: The function has the same sign at both ends.
    """
    before, x = low, high
    gap_before, gap_x = gap(before), gap(x)
    if gap_before == 0.0:
        return before
    if gap_x != 0.0 and (gap_before < 0.0) == (gap_x < 0.0):
        raise ValueError(f"no change of sign between {low:g} and {high:g}")
    across, gap_across = before, gap_before
    step = last_step = x - before
    for _ in range(MOST_STEPS):
        if (gap_before < 0.0) != (gap_x < 0.0):
            across, gap_across = before, gap_before
            step = last_step = x - before
        if abs(gap_across) < abs(gap_x):
            before, x, across = x, across, x
            gap_before, gap_x, gap_across = gap_x, gap_across, gap_x
        least = 0.5 * (tolerance + RELATIVE * abs(x))
        half = 0.5 * (across - x)
        if gap_x == 0.0 or abs(half) < least:
            break
        tried = math.inf
        if abs(last_step) > least and abs(gap_x) < abs(gap_before):
            tried = _interpolated(before, x, across, gap_before, gap_x, gap_across)
        if 2.0 * abs(tried) < min(abs(last_step), 3.0 * abs(half) - least):
            last_step, step = step, tried
        else:
            last_step = step = half
        before, gap_before = x, gap_x
        if abs(step) > least:
            x += step
        else:
            x += least if half > 0.0 else -least
        gap_x = gap(x)
    return x


def _interpolated(
    before: float, x: float, across: float, gap_before: float, gap_x: float, gap_across: float
) -> float:
    """Step from x to the root of a line or a hyperbola through the places that are known."""
    if before == across:
        return -gap_x * (x - before) / (gap_x - gap_before)
    slope = (gap_before - gap_x) / (before - x)
    slope_across = (gap_across - gap_x) / (across - x)
    weighted = gap_across * slope_across - gap_before * slope
    return -gap_x * weighted / (slope_across * slope * (gap_across - gap_before))
