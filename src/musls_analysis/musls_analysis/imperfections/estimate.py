"""Weighted least squares over cycles, with intervals by bootstrap.

A model is linear about a simulated flight: what is recorded minus what was simulated is the sum of
sensitivities times parameters, and noise. Cycles are independent of one another, samples of one
cycle are not; so cycles are drawn again, not samples. Where a stage has too few of them, parts of
cycles take their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Array = NDArray[np.float64]

ENOUGH_CYCLES = 5
PARTS = 6
"""Of a cycle, where a stage has fewer cycles than that."""
CONFIDENCE = 0.9
DRAWS = 400
ALIKE = 0.95
"""Correlation from which two parameters are said to be hard to tell apart."""
UNKNOWN_SHARE = 0.8
"""Of the prior deviation: a parameter that the data leave so wide they do not tell."""


@dataclass(frozen=True)
class Unit:
    """What is drawn again as a whole: a cycle, or a part of one.

    Attributes:
        group: Stage; units are drawn among those of their own.
        sensitivity: (rows, p).
        residual: Recorded minus simulated, (rows,).
    """

    group: str
    sensitivity: Array
    residual: Array


@dataclass(frozen=True)
class Estimated:
    """Parameters with their uncertainty.

    Attributes:
        value: (p,).
        low: Lower end of the 90 % interval, (p,).
        high: Upper end, (p,).
        correlation: (p, p).
        units: How many units there were.
        left_m: Root-mean-square residual before and after.
    """

    value: Array
    low: Array
    high: Array
    correlation: Array
    units: int
    left_m: tuple[float, float]

    @property
    def deviation(self) -> Array:
        """Half the interval, (p,)."""
        half: Array = 0.5 * (self.high - self.low)
        return half


def units_of(group: str, sensitivity: Array, residual: Array) -> list[Unit]:
    """Units of a stage's cycles; samples that are NaN do not count.

    Args:
        group: Stage.
        sensitivity: Of a cycle, (M, k, p): M phases, k coordinates.
        residual: Of all cycles, (cycles, M, k).
    """
    p = sensitivity.shape[-1]
    parts = 1 if len(residual) >= ENOUGH_CYCLES else PARTS
    found = []
    for cycle in residual:
        for phases in np.array_split(np.arange(len(sensitivity)), parts):
            rows, y = sensitivity[phases].reshape(-1, p), cycle[phases].ravel()
            good = np.isfinite(y)
            if good.any():
                found.append(Unit(group, rows[good], y[good]))
    return found


def estimate(units: Sequence[Unit], prior: Array, draws: int = DRAWS, seed: int = 0) -> Estimated:
    """Estimate the parameters.

    Every stage has the same weight, however many cycles it has: what is wrong with the model is the
    same in all of them.

    Args:
        units: Of all stages.
        prior: Standard deviation of each parameter before anything is seen, (p,); it holds those
            that the data say nothing about.
        draws: Of the bootstrap.
        seed: Of the draws.
    """
    groups = [[u for u in units if u.group == g] for g in dict.fromkeys(u.group for u in units)]
    normal = [
        np.array([_normal(u) for u in group]) / sum(len(u.residual) for u in group)
        for group in groups
    ]
    count = sum(len(u.residual) for u in units)
    value, hold = np.zeros(len(prior)), np.zeros((len(prior), len(prior) + 1))
    for _ in range(2):  # the noise is what is left, known only after a first solution
        noise = np.mean(
            [np.mean(np.concatenate([_left(u, value) for u in g]) ** 2) for g in groups]
        )
        hold[:, :-1] = np.diag(noise / (np.asarray(prior) ** 2 * max(len(units), 1)))
        value = _solved(hold + sum(part.sum(axis=0) for part in normal))
    generator = np.random.default_rng(seed)
    drawn = hold
    for part in normal:
        k = len(part)
        counts = generator.multinomial(k, np.full(k, 1.0 / k), size=draws)
        drawn = drawn + np.tensordot(counts, part, 1)
    drawn = _solved(drawn)
    fewest = min(len(part) for part in normal)
    # Of few units the spread is found too small, by (n - 1) / n, and is itself uncertain.
    wide = student.ppf(0.5 + 0.5 * CONFIDENCE, max(fewest - 1, 1)) * np.sqrt(
        fewest / max(fewest - 1, 1)
    )
    sigma = drawn.std(axis=0)
    spread = np.maximum(sigma, 1e-12)
    correlation = np.cov(drawn.T).reshape(len(value), -1) / np.outer(spread, spread)
    after = sum(float(np.sum(_left(u, value) ** 2)) for u in units)
    before = sum(float(np.sum(u.residual**2)) for u in units)
    rms = float(np.sqrt(before / count)), float(np.sqrt(after / count))
    return Estimated(
        value, value - wide * sigma, value + wide * sigma, correlation, len(units), rms
    )


def _left(unit: Unit, value: Array) -> Array:
    """Residual that parameters leave, (rows,)."""
    found: Array = unit.residual - unit.sensitivity @ value
    return found


def _solved(equations: Array) -> Array:
    """Solutions of normal equations (..., p, p + 1), (..., p)."""
    return np.asarray(np.linalg.solve(equations[..., :-1], equations[..., -1:])[..., 0])


def _normal(unit: Unit) -> Array:
    """Matrix and right side of the normal equations, (p, p + 1)."""
    rows = unit.sensitivity
    found: Array = rows.T @ np.column_stack([rows, unit.residual])
    return found


def alike(names: Sequence[str], found: Estimated) -> list[str]:
    """Pairs of parameters whose effects are nearly the same, one line each."""
    lines = []
    for i in range(len(names)):
        for j in range(i):
            r = found.correlation[i, j]
            if abs(r) > ALIKE:
                lines.append(f"{names[j]} and {names[i]} are hard to tell apart ({r:+.2f})")
    return lines
