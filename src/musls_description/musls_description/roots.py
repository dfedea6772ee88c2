"""Roots of equations, with nothing but NumPy.

scipy has both, and takes as long to import as a flight of ten seconds takes to fly; a flight
should not wait for it. Where Newton's method does not find the root, scipy's search is asked.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEPS = 30
"""Steps of Newton's method before the search is left to scipy."""

_HALVINGS = 8
_DIFFERENCE = 1e-7


def root(residual: Callable[[Array], Array], guess: Array, tolerance: float) -> Array | None:
    """Find where all residuals vanish.

    Where the solution is not unique, it is the one that the steps of least length lead to.

    Args:
        residual: Function of the unknowns (n,) with residuals (m,).
        guess: Where to begin, (n,).
        tolerance: Largest residual that is allowed.

    Returns:
        The unknowns, (n,); None where nothing was found.
    """
    found = _newton(residual, np.asarray(guess, float), tolerance)
    return nearest_root(residual, guess, tolerance) if found is None else found


def nearest_root(
    residual: Callable[[Array], Array], guess: Array, tolerance: float
) -> Array | None:
    """Find a root as `root` does, by scipy's steps of limited length.

    They do not jump from one root to another. Arguments and result are those of `root`.
    """
    from scipy.optimize import least_squares

    solution = least_squares(
        residual, guess, x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=300
    )
    return solution.x if np.abs(solution.fun).max() <= tolerance else None


def _newton(residual: Callable[[Array], Array], x: Array, tolerance: float) -> Array | None:
    """Newton's method that halves steps which do not help, to the end of the digits."""
    gap = residual(x)
    size = float(np.abs(gap).max())
    for _ in range(STEPS):
        if not np.isfinite(size):
            return None
        step = np.linalg.lstsq(_slope(residual, x, gap), -gap, rcond=1e-10)[0]
        for halving in range(_HALVINGS):
            there = x + 0.5**halving * step
            gap_there = residual(there)
            size_there = float(np.abs(gap_there).max())
            if size_there < size:
                break
        else:
            break
        x, gap, size = there, gap_there, size_there
    return x if size <= tolerance else None


def _slope(residual: Callable[[Array], Array], x: Array, gap: Array) -> Array:
    """Derivatives of the residuals by differences, (m, n)."""
    steps = _DIFFERENCE * np.maximum(np.abs(x), 1.0)
    columns = []
    for k, step in enumerate(steps):
        moved = x.copy()
        moved[k] += step
        columns.append((residual(moved) - gap) / (moved[k] - x[k]))
    return np.array(columns).T


def bisected(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the root of a function that has another sign at either end, to the last digit.

    Raises:
        ValueError: It has the same sign at both.
    """
    sign = np.sign(function(low))
    if sign == 0.0:
        return low
    if sign * function(high) > 0.0:
        raise ValueError(f"no change of sign between {low:g} and {high:g}")
    while low < (middle := 0.5 * (low + high)) < high:
        if sign * function(middle) > 0.0:
            low = middle
        else:
            high = middle
    return high
