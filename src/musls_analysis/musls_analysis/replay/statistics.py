"""How well a least-squares fit determines its parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NEARLY_SINGULAR = 0.02
"""Ratio of the singular values of the Jacobian (columns of unit length) below which the parameters
of the smaller one are said to be hard to tell apart."""

SINGULAR = 1e-5
"""The same below which they cannot be told apart at all: their uncertainty is infinite."""

TAKES_PART = 0.3
"""Share in a singular vector (of unit length) from which a parameter is named."""


@dataclass(frozen=True)
class Uncertainty:
    """What a fit's Jacobian and residuals say.

    Attributes:
        std: Standard deviations, infinite where the data say nothing, (p,).
        correlation: Of the parameters, (p, p); NaN beside an infinite deviation.
        effective_samples: Independent residuals among all, see `uncertainty`.
        alike: Groups of parameters (by index) whose effects can hardly be told apart.
    """

    std: Array
    correlation: Array
    effective_samples: float
    alike: tuple[tuple[int, ...], ...]


def correlation_time(series: Array) -> float:
    """Integrated autocorrelation time in samples, at least 1: n / it is the effective number.

    1 + 2 (rho_1 + rho_2 + ...), summed over pairs of lags while a pair is positive (Geyer,
    Practical Markov Chain Monte Carlo, Statist. Sci. 7, 1992, section 3.3).
    """
    n = len(series)
    centred = series - series.mean()
    power = float(centred @ centred)
    if power <= 0.0:
        return 1.0
    rho = np.array([centred[: n - k] @ centred[k:] for k in range(n)]) / power
    time = -1.0
    for pair in range(n // 2):
        both = rho[2 * pair] + rho[2 * pair + 1]
        if both <= 0.0:
            break
        time += 2.0 * both
    return max(time, 1.0)


def uncertainty(jacobian: Array, residual: Array) -> Uncertainty:
    """Covariance of a least-squares fit whose residuals are correlated in time.

    With H = J^T J the estimate's covariance is H^-1 (sum_c s_c^2 tau_c J_c^T J_c) H^-1: every
    channel c (three of position, three of attitude) has its own variance s_c^2, and neighbouring
    residuals are as good as one in tau_c (`correlation_time`). What the model cannot follow is
    counted as such noise; it is no random error, so that the true deviation may be larger.

    Args:
        jacobian: Derivatives of the residuals, (k, channels, p).
        residual: (k, channels).
    """
    k, channels, p = jacobian.shape
    length = np.sqrt(np.sum(jacobian**2, axis=(0, 1)))
    known = length > 0.0
    unit = jacobian.reshape(-1, p) / np.where(known, length, 1.0)
    _, singular, directions = np.linalg.svd(unit, full_matrices=False)
    share = singular / singular[0] if singular[0] > 0.0 else np.zeros(p)
    good = share > SINGULAR
    inverse = (directions[good].T / singular[good] ** 2) @ directions[good]
    times = np.array([correlation_time(residual[:, c]) for c in range(channels)])
    variance = np.sum(residual**2, axis=0) / k * (k * channels / max(k * channels - p, 1))
    rows = unit.reshape(k, channels, p)
    spread = np.einsum("c,kci,kcj->ij", variance * times, rows, rows)
    covariance = inverse @ spread @ inverse
    std = np.sqrt(np.diag(covariance))
    lost = ~known | np.any(np.abs(directions[~good]) > 1e-3, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = covariance / np.outer(std, std)
        std = np.where(lost, np.inf, std / np.where(known, length, 1.0))
    correlation[lost] = correlation[:, lost] = np.nan
    alike = tuple(
        tuple(int(i) for i in np.flatnonzero(np.abs(direction) > TAKES_PART))
        for direction, part in zip(directions, share, strict=True)
        if part < NEARLY_SINGULAR
    )
    return Uncertainty(std, correlation, float(np.sum(k / times)), alike)
