"""Stationary Kalman gains of a filter with one measured quantity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_DOUBLINGS = 60


def stationary_gains(transition: Array, process: Array, variance: float) -> Array:
    """Gains with which a stationary Kalman filter corrects its state by the first of its parts.

    Solves P = F P F' - F P h (h' P h + r)^-1 h' P F' + Q by doubling the number of samples seen
    in each step (Anderson 1978, "Second-order convergent algorithms for the steady-state Riccati
    equation").

    Args:
        transition: F from sample to sample, (n, n).
        process: Covariance Q of the noise that joins the state between samples, (n, n).
        variance: r > 0 of the measurement of the first part of the state.

    Returns:
        P h / (h' P h + r), (n,).
    """
    unit = np.eye(len(transition))
    a, covariance = transition.T, process
    seen = np.zeros_like(process)
    seen[0, 0] = 1.0 / variance
    for _ in range(MOST_DOUBLINGS):
        share = np.linalg.solve(unit + seen @ covariance, np.hstack([a, seen]))
        step = a.T @ covariance @ share[:, : len(unit)]
        seen = seen + a @ share[:, len(unit) :] @ a.T
        a, covariance = a @ share[:, : len(unit)], covariance + step
        if np.abs(step).max() <= 1e-15 * np.abs(covariance).max():
            break
    gains: Array = covariance[:, 0] / (covariance[0, 0] + variance)
    return gains
