"""What a massless cable looks like: straight when taut, hanging like a fine line when slack."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STRAIGHT = 1e-6
"""Share of the length by which the ends are closer, below which the line is drawn straight."""

MOST_STEPS = 20
"""Of Newton's method; it takes 6."""


def hanging_line(
    a_enu_m: Array, b_enu_m: Array, length_m: float, points: int, ground_enu_m: float | None
) -> Array:
    """Points of a line of a length between two ends: a catenary, cut off at the ground.

    Args:
        a_enu_m: One end, (3,).
        b_enu_m: The other, (3,).
        length_m: Length of the line.
        points: Number of points.
        ground_enu_m: Height of the ground, None for none.

    Returns:
        From a to b, evenly along the line where it hangs free, (points, 3).
    """
    span = b_enu_m - a_enu_m
    along = np.linspace(0.0, 1.0, points)
    flat, rise = float(np.hypot(*span[:2])), float(span[2])
    if np.hypot(flat, rise) > length_m * (1.0 - STRAIGHT):
        straight: Array = a_enu_m + along[:, None] * span
        return straight
    if flat < 1e-3 * length_m:  # a loop straight down
        low = 0.5 * (length_m - rise)
        height = np.where(along * length_m < low, -along * length_m, along * length_m - 2.0 * low)
        line = a_enu_m + np.column_stack([along * span[0], along * span[1], height])
    else:
        # sqrt(l^2 - h^2) = 2 c sinh(w / 2 c) with w the width, h the rise: find 1 / c.
        ratio = np.sqrt(length_m**2 - rise**2) / flat
        c = 0.5 * flat / _arc(float(ratio))
        middle = 0.5 * flat - c * np.arctanh(rise / length_m)
        begin = np.sinh(-middle / c)
        x = middle + c * np.arcsinh(begin + along * length_m / c)
        z = c * (np.cosh((x - middle) / c) - np.cosh(middle / c))
        line = a_enu_m + np.column_stack([x / flat * span[0], x / flat * span[1], z])
    if ground_enu_m is not None:
        line[:, 2] = np.maximum(line[:, 2], min(ground_enu_m, a_enu_m[2], b_enu_m[2]))
    shape: Array = line
    return shape


def _arc(ratio: float) -> float:
    """Solve sinh(s) / s = ratio > 1 by Newton's method for its logarithm, which is convex in s."""
    s = math.sqrt(6.0 * math.log(ratio))
    for _ in range(MOST_STEPS):
        step = (math.log(math.sinh(s) / s) - math.log(ratio)) / (1.0 / math.tanh(s) - 1.0 / s)
        s -= step
        if abs(step) < 1e-14 * s:
            break
    return s
