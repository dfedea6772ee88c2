"""One estimator of parameters: residuals of recordings in, estimates with their covariance out.

A `Model` gives the residuals of recordings for values of its parameters. They are fitted by bounded
non-linear least squares (trust region reflective, derivatives by differences), every recording with
the same weight. Which groups of parameters are fitted at all can be chosen by cross-validation:
with residuals r and derivatives J of each recording, what parameters fitted to some recordings
leave of another follows from linear least squares. A model that is linear, with sensitivities that
are known, is solved at once (`fitted_linear`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import least_squares
from scipy.special import stdtrit

from musls_analysis.estimation.system_parameters import Setup, SystemParameter
from musls_description.numerics.arrays import Array
from musls_sim.plants.interface import SimulationDiverged

DIFFERENCE = 0.1
"""Step of the finite differences in units of a parameter's scale."""

MAX_ROUNDS = 20
TOLERANCE = 1e-3

MAX_FITS = 3
"""Times that groups are chosen: at the start, and where the fits have gone."""

CONFIDENCE = 0.9
INTERVAL = 1.645
"""Standard deviations of an interval of that confidence on either side."""


class Model(Protocol):
    """Residuals of recordings for values of parameters.

    Attributes:
        setup: Set-up that takes the values of a fit.
        parameters: Parameters that can be fitted, p.
        recordings: Names of the r recordings.
    """

    setup: Setup
    parameters: Sequence[SystemParameter]
    recordings: list[str]

    def residuals(self, values: Sequence[Array]) -> list[list[Array]]:
        """Residuals (k, channels) of each recording with each set of values, [values][recording].

        Not a number where values make the physics fail.
        """

    def errors(self, residual: Array) -> dict[str, float]:
        """Errors of a recording that people read, by name with unit."""


@dataclass(frozen=True)
class Derivatives:
    """Residuals of one recording, (k, channels), their derivatives per scale, (k, channels, p)."""

    residual: Array
    jacobian: Array

    @property
    def weight(self) -> float:
        """Weight that makes all recordings count equally."""
        return float(self.residual.size**-0.5)

    @property
    def normal(self) -> Array:
        """J^T J, (p, p)."""
        return np.asarray(np.einsum("kci,kcj->ij", self.jacobian, self.jacobian))

    def changed(self, columns: Sequence[int], by: Array) -> Array:
        """Residuals after a change of some parameters, to first order, (k, channels)."""
        return np.asarray(self.residual + self.jacobian[..., columns] @ by)


def rms(residuals: Sequence[Array]) -> float:
    """Root-mean-square length of residuals (k, channels); recordings have the same weight."""
    return float(np.sqrt(np.mean([np.mean(np.sum(r**2, axis=1)) for r in residuals])))


def derivatives(
    model: Model, value: Array, free: Sequence[int], here: list[Array] | None = None
) -> list[Derivatives]:
    """Residuals, if not given, and their derivatives by some parameters, of each recording.

    Forward differences, away from a bound that is near and from where the physics fails.

    Raises:
        SimulationDiverged: The physics fails with these values, or with all that are near.
    """

    def moved(column: int, by: float) -> Array:
        p = model.parameters[column]
        values = value.copy()
        values[column] = p.from_scale(p.to_scale(value[column]) + by * p.scale)
        return values

    steps = [
        DIFFERENCE if moved(c, DIFFERENCE)[c] < model.parameters[c].upper else -DIFFERENCE
        for c in free
    ]
    points = [moved(c, by) for c, by in zip(free, steps, strict=True)]
    if here is None:
        here, *there = model.residuals([value, *points])
    else:
        there = model.residuals(points)
    for k, c in enumerate(free):
        if not _finite(there[k]):
            steps[k] = -steps[k]
            (there[k],) = model.residuals([moved(c, steps[k])])
    if not all(map(_finite, [here, *there])):
        raise SimulationDiverged(
            "a recording cannot be replayed with values near to those looked for; choose fewer "
            "parameters or another --cable-model"
        )
    return [
        Derivatives(
            at,
            np.stack([(row[r] - at) / by for row, by in zip(there, steps, strict=True)], axis=-1),
        )
        for r, at in enumerate(here)
    ]


def _finite(residuals: Sequence[Array]) -> bool:
    return all(np.isfinite(r).all() for r in residuals)


@dataclass(frozen=True)
class Fit:
    """Parameters fitted to all recordings.

    Attributes:
        value: All values, the free ones fitted, (p,).
        side: Bound that each free one is at: -1 lower, 1 upper, 0 between them.
        converged: False if the rounds were used up first.
        derivatives: Derivatives with respect to the free parameters, at the value.
    """

    value: Array
    side: Array
    converged: bool
    derivatives: list[Derivatives]


def fitted(model: Model, start: Array, free: Sequence[int]) -> Fit:
    """Fit some parameters to all recordings, each with the same weight, in units of the scales."""
    parameters = [model.parameters[c] for c in free]
    cache: dict[bytes, list[Array]] = {}
    slopes: dict[bytes, list[Derivatives]] = {}

    def values(x: Array) -> Array:
        value = start.copy()
        value[list(free)] = [
            p.from_scale(at * p.scale) for p, at in zip(parameters, x, strict=True)
        ]
        return value

    def residual(x: Array) -> Array:
        cache.clear()
        (cache[x.tobytes()],) = model.residuals([values(x)])
        return np.concatenate([r.ravel() * r.size**-0.5 for r in cache[x.tobytes()]])

    def jacobian(x: Array) -> Array:
        slopes.clear()
        slopes[x.tobytes()] = derivatives(model, values(x), free, cache.get(x.tobytes()))
        return np.vstack(
            [one.weight * one.jacobian.reshape(-1, len(free)) for one in slopes[x.tobytes()]]
        )

    low, high, begin = (
        [p.to_scale(value) / p.scale for p, value in zip(parameters, ends, strict=True)]
        for ends in (
            [p.lower for p in parameters],
            [p.upper for p in parameters],
            start[list(free)],
        )
    )
    solution = least_squares(
        residual,
        begin,
        jacobian,
        bounds=(low, high),
        method="trf",
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        gtol=1e-10,
        max_nfev=MAX_ROUNDS,
    )
    value = values(solution.x)
    at = slopes.get(solution.x.tobytes()) or derivatives(model, value, free)
    return Fit(value, solution.active_mask, solution.status > 0, at)


# ---------- Cross-validation


def best_change(slopes: Sequence[Derivatives], columns: Sequence[int]) -> Array:
    """Least-squares step of the parameters (p,), minimum norm; recordings have equal weight."""
    jacobian = [
        one.weight * one.jacobian[..., columns].reshape(one.residual.size, len(columns))
        for one in slopes
    ]
    residual = [one.weight * one.residual.ravel() for one in slopes]
    solved = np.linalg.lstsq(np.vstack(jacobian), -np.concatenate(residual), rcond=1e-3)
    return np.asarray(solved[0])


def left_out(slopes: Sequence[Derivatives], columns: Sequence[int]) -> list[Array]:
    """Residuals of each recording with parameters that were fitted to the others."""
    return [
        one.changed(columns, best_change([*slopes[:i], *slopes[i + 1 :]], columns))
        for i, one in enumerate(slopes)
    ]


def choose(
    slopes: Sequence[Derivatives],
    groups: Mapping[str, Sequence[int]],
    worth: float,
    *,
    simplest_first: bool = False,
) -> list[str]:
    """Choose groups of columns with which recordings that are left out are predicted better.

    One by one, the most helpful first, while one takes away a share `worth` of the error;
    `simplest_first`: each once, in the order given.
    """
    selection: list[str] = []
    rest = list(groups)
    error = rms(left_out(slopes, []))
    while rest:
        errors = {
            name: rms(left_out(slopes, [c for group in [*selection, name] for c in groups[group]]))
            for name in (rest[:1] if simplest_first else rest)
        }
        best = min(errors, key=errors.__getitem__)
        rest.remove(best)
        if errors[best] <= (1.0 - worth) * error:
            selection = [*selection, best]
            error = errors[best]
        elif not simplest_first:
            break
    return selection


def at_start(
    slopes: Sequence[Derivatives], model: Model, start: Array, value: Array
) -> list[Derivatives]:
    """Derivatives at values, with residuals as they are, to first order, at the start."""
    back = np.array(
        [
            (p.to_scale(a) - p.to_scale(b)) / p.scale
            for p, a, b in zip(model.parameters, start, value, strict=True)
        ]
    )
    return [Derivatives(one.residual + one.jacobian @ back, one.jacobian) for one in slopes]


# ---------- How well a least-squares fit determines its parameters

NEARLY_SINGULAR = 0.02
"""Ratio of the singular values of the Jacobian (columns of unit length) below which the parameters
of the smaller one are said to be hard to tell apart."""

SINGULAR = 1e-5
"""Ratio of singular values below which parameters cannot be told apart: infinite uncertainty."""

TAKES_PART = 0.3
"""Share in a singular vector (of unit length) from which a parameter is named."""

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Uncertainty:
    """Uncertainty of estimates, from the Jacobian and the residuals.

    Attributes:
        std: Standard deviations, infinite where the data say nothing, (p,).
        correlation: Correlation of the parameters, (p, p); NaN beside an infinite deviation.
        alike: Groups of parameters (by index) whose effects can hardly be told apart.
        effective_samples: Independent residuals of a channel.
    """

    std: Array
    correlation: Array
    alike: Groups
    effective_samples: float


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


def directions(normal: Array) -> tuple[Array, Array, Array]:
    """Normal equations J^T J (p, p) with columns of J of unit length, in their own axes.

    Returns:
        Lengths of the columns (p,), singular values from the largest (p,), their vectors (p, p) in
        rows.
    """
    length = np.sqrt(np.diag(normal))
    unit = np.where(length > 0.0, length, 1.0)
    square, vectors = np.linalg.eigh(normal / np.outer(unit, unit))
    return length, np.sqrt(np.maximum(square[::-1], 0.0)), vectors.T[::-1]


def alike(normal: Array) -> Groups:
    """Groups of parameters whose effects are nearly the same, from J^T J (p, p)."""
    _, singular, vectors = directions(normal)
    groups = [
        tuple(int(i) for i in np.flatnonzero(np.abs(vector) > TAKES_PART))
        for vector, value in zip(vectors, singular, strict=True)
        if value < NEARLY_SINGULAR * singular[0]
    ]
    return tuple(group for group in groups if len(group) > 1)


def correlation_of(covariance: Array) -> tuple[Array, Array]:
    """Standard deviations (p,) and correlations (p, p) of a covariance."""
    std = np.sqrt(np.diag(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        return std, covariance / np.outer(std, std)


def uncertainty(jacobian: Array, residual: Array) -> Uncertainty:
    """Covariance of a least-squares fit whose residuals (k, channels) are correlated in time.

    With H = J^T J, J (k, channels, p) the derivatives of the residuals, the estimate's covariance
    is H^-1 (sum_c s_c^2 tau_c J_c^T J_c) H^-1: every channel c has its own variance s_c^2, and
    neighbouring residuals are as good as one in tau_c (`correlation_time`). What the model cannot
    follow is counted as such noise; it is no random error, so that the true deviation may be
    larger.
    """
    k, channels, p = jacobian.shape
    each = np.einsum("kci,kcj->cij", jacobian, jacobian)
    length, singular, vectors = directions(each.sum(axis=0))
    unit = np.where(length > 0.0, length, 1.0)
    good = singular > SINGULAR * max(singular, default=0.0)
    inverse = (vectors[good].T / singular[good] ** 2) @ vectors[good]
    times = np.array([correlation_time(residual[:, c]) for c in range(channels)])
    variance = np.sum(residual**2, axis=0) / k * (k * channels / max(k * channels - p, 1))
    spread = np.einsum("c,cij->ij", variance * times, each) / np.outer(unit, unit)
    std, correlation = correlation_of(inverse @ spread @ inverse)
    undetermined = (length <= 0.0) | np.any(np.abs(vectors[~good]) > 1e-3, axis=0)
    correlation[undetermined] = correlation[:, undetermined] = np.nan
    return Uncertainty(
        np.where(undetermined, np.inf, std / unit),
        correlation,
        alike(each.sum(axis=0)),
        float(np.mean(k / times)),
    )


# ---------- Linear models: weighted least squares over cycles, with a prior
#
# Where the sensitivities are known, a fit is one solution: what is recorded minus what was
# simulated is the sum of sensitivities times parameters, and noise. Cycles are independent of one
# another, samples of one cycle are not; so the spread is that from cycle to cycle. Where a stage
# has too few of them, parts of cycles take their place.

ENOUGH_CYCLES = 5
PARTS = 6
"""Parts of a cycle, where a stage has fewer cycles than that."""
UNKNOWN_SHARE = 0.8
"""Ratio of posterior to prior deviation from which the data do not determine a parameter."""


@dataclass(frozen=True)
class Unit:
    """Independent piece of data: a cycle or a part of one.

    Attributes:
        group: Stage of the cycle.
        sensitivity: (rows, p).
        residual: Recorded minus simulated, (rows,).
    """

    group: str
    sensitivity: Array
    residual: Array


@dataclass(frozen=True)
class LinearFit:
    """Parameters (p,) with their uncertainty.

    Attributes:
        residual_rms: Root-mean-square residuals before and after the fit.
    """

    value: Array
    uncertainty: Uncertainty
    residual_rms: tuple[float, float]

    @property
    def std(self) -> Array:
        """Standard deviations, (p,)."""
        return self.uncertainty.std

    @property
    def low(self) -> Array:
        """Lower ends of the 90 % intervals, (p,)."""
        return self.value - INTERVAL * self.std

    @property
    def high(self) -> Array:
        """Upper ends, (p,)."""
        return self.value + INTERVAL * self.std


def units_of(group: str, sensitivity: Array, residual: Array) -> list[Unit]:
    """Units of a stage's cycles; samples that are NaN do not count.

    The sensitivity of a cycle is (M, k, p), M phases and k coordinates, or (k, p) in all phases;
    the residual of all cycles is (cycles, M, k).
    """
    p = sensitivity.shape[-1]
    sensitivity = np.broadcast_to(sensitivity, (*residual.shape[1:], p))
    parts = 1 if len(residual) >= ENOUGH_CYCLES else PARTS
    units = []
    for cycle in residual:
        for part in np.array_split(np.arange(len(sensitivity)), parts):
            rows = sensitivity[part].reshape(-1, p)
            y = cycle[part].ravel()
            good = np.isfinite(y)
            if good.any():
                units.append(Unit(group, rows[good], y[good]))
    return units


def fitted_linear(units: Sequence[Unit], prior: Array) -> LinearFit:
    """Estimate the parameters from the units of all stages.

    Every stage has the same weight, however many cycles it has: what is wrong with the model is the
    same in all of them. `prior` is the standard deviation of each parameter before anything is
    seen, (p,); it holds those that the data say nothing about. The covariance is
    H^-1 (sum_u (g_u - g)(g_u - g)^T) H^-1 with the gradient g_u of each unit, g their mean in a
    stage: independent units, whatever correlation there is in one (Liang and Zeger, Biometrika 73,
    1986).
    """
    groups = [[u for u in units if u.group == g] for g in dict.fromkeys(u.group for u in units)]
    weight = {group[0].group: 1.0 / sum(len(u.residual) for u in group) for group in groups}
    normal = sum(weight[u.group] * u.sensitivity.T @ u.sensitivity for u in units)
    right = sum(weight[u.group] * u.sensitivity.T @ u.residual for u in units)
    value = np.zeros(len(prior))
    inverse = np.zeros(2 * (len(prior),))
    for _ in range(2):  # the noise is what is left, known only after a first solution
        noise = sum(weight[u.group] * np.sum(_left(u, value) ** 2) for u in units) / len(groups)
        inverse = np.linalg.inv(normal + np.diag(noise / (np.asarray(prior) ** 2 * len(units))))
        value = inverse @ right
    spread = np.zeros_like(inverse)
    for group in groups:
        gradients = weight[group[0].group] * np.array(
            [u.sensitivity.T @ _left(u, value) for u in group]
        )
        centred = gradients - gradients.mean(axis=0)
        spread += centred.T @ centred
    std, correlation = correlation_of(inverse @ spread @ inverse)
    # Of few units the spread is found too small, by (n - 1) / n, and is itself uncertain.
    fewest = min(map(len, groups))
    few = max(fewest - 1, 1)
    wide = stdtrit(few, 0.5 + 0.5 * CONFIDENCE) * np.sqrt(fewest / few) / INTERVAL
    after = sum(float(np.sum(_left(u, value) ** 2)) for u in units)
    before = sum(float(np.sum(u.residual**2)) for u in units)
    count = sum(len(u.residual) for u in units)
    uncertainty = Uncertainty(wide * std, correlation, alike(np.asarray(normal)), float(len(units)))
    return LinearFit(value, uncertainty, (np.sqrt(before / count), np.sqrt(after / count)))


def _left(unit: Unit, value: Array) -> Array:
    """Residual that parameters leave, (rows,)."""
    return unit.residual - unit.sensitivity @ value
