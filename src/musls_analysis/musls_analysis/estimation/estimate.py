"""Estimate of parameters in tables, figures and files; a replay reads them again."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from musls_analysis.estimation import estimator
from musls_analysis.estimation.estimator import INTERVAL, Derivatives, Model, Uncertainty
from musls_analysis.estimation.system_parameters import Setup, SystemParameter, put_all
from musls_analysis.figures import style
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml
from musls_description.config.strict_yaml import read_json
from musls_description.numerics.arrays import Array
from musls_description.tables import ShownResult, Table

FIT = "fit.json"
SYSTEM = "system.yaml"

FITS = "as_given", "fitted_to_all", "fitted_to_the_others"
"""Values with which each recording has errors; a single one has no others."""


@dataclass(frozen=True, repr=False)
class ParameterEstimate(ShownResult):
    """Parameters of a system estimated from recordings.

    Attributes:
        recordings: Names of the r recordings.
        parameters: Fitted parameters, p.
        start: Values at the beginning, (p,).
        value: Fitted to all recordings, (p,).
        at_bound: "lower", "upper" or "" for each.
        uncertainty: Uncertainty in the parameters' units; a parameter at its bound has NaN.
        own: Values from each recording alone, to first order, (r, p).
        own_std: Standard deviations of these, infinite where it says nothing, (r, p).
        errors: Errors of the model, for each recording and each of `FITS`.
        error_m: Error of the recordings left out with the fitted parameters, NaN of a single one.
        dropped: Groups that are not kept, with that error if they were [m].
        alike: Names of candidates whose effects can hardly be told apart.
        samples: Compared rows of the recordings.
        converged: False if the rounds were used up first.
        setup: The fitted system, and what the recorded poses are poses of.
    """

    recordings: tuple[str, ...]
    parameters: tuple[SystemParameter, ...]
    start: Array
    value: Array
    at_bound: tuple[str, ...]
    uncertainty: Uncertainty
    own: Array
    own_std: Array
    errors: tuple[tuple[dict[str, float], ...], ...]
    error_m: float
    dropped: dict[str, float]
    alike: tuple[tuple[str, ...], ...]
    samples: int
    converged: bool
    setup: Setup

    @property
    def values(self) -> dict[str, float]:
        """Estimates by name."""
        names = [parameter.name for parameter in self.parameters]
        return dict(zip(names, map(float, self.value), strict=True))

    @property
    def told(self) -> NDArray[np.bool_]:
        """Whether a recording alone says something of a parameter, (r, p)."""
        half = np.array([(p.upper - p.lower) / 2.0 for p in self.parameters])
        return np.asarray(self.own_std < half, bool)

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Whether a recording alone contradicts all, beyond both 90 % intervals, (r, p)."""
        apart = np.abs(self.own - self.value)
        beyond = apart > INTERVAL * np.hypot(self.own_std, self.uncertainty.std)
        return np.asarray(self.told & beyond, bool)

    def shown(self) -> Iterator[str | Table]:
        """Parameters with intervals, then errors of each recording, then what was left away."""
        several = len(self.recordings) > 1
        numbers = [f"{i}" for i in range(1, len(self.recordings) + 1)] if several else []
        rows = [[*self._row(k), *(self._own(k) if several else ())] for k in range(len(self.value))]
        heads = "parameter", "value", "+- (90 %)", "unit", "start", *numbers
        yield Table(heads, rows)
        for p, std, bound in zip(self.parameters, self.uncertainty.std, self.at_bound, strict=True):
            if bound:
                yield f"{p.name}: at its {bound} bound, {getattr(p, bound):.4g} {p.unit}".rstrip()
            elif not std < (p.upper - p.lower) / 2.0:
                yield f"{p.name}: hardly determined, if at all"
        if several:
            yield "by number: what each recording says alone; - nothing, ! otherwise than all"
        fits = [name.replace("_", " ") for name in FITS[: len(self.errors[0])]]
        errors = [
            (f"{i}", name, *map(_text, rows))
            for i, (name, rows) in enumerate(
                zip(self.recordings, self.errors, strict=True), start=1
            )
        ]
        yield Table(("", "recording", *fits), errors, names=2)
        for name, error_m in self.dropped.items():
            yield (
                f"{name} is left as it is: recordings left out would be predicted within "
                f"{1e3 * error_m:.1f} instead of {1e3 * self.error_m:.1f} mm"
            )
        for names in self.alike:
            yield f"hard to tell apart: {', '.join(names)}"
        if not self.converged:
            yield "the fit has not converged"

    def _row(self, k: int) -> tuple[str, ...]:
        p = self.parameters[k]
        half = INTERVAL * float(self.uncertainty.std[k])
        wide = f"{half:.2g}" if math.isfinite(half) else "-"
        return p.name, f"{self.value[k]:.4g}", wide, p.unit, f"{self.start[k]:.4g}"

    def _own(self, k: int) -> list[str]:
        cells = zip(self.own[:, k], self.told[:, k], self.differs[:, k], strict=True)
        return [
            f"{own:.4g}{' !' if off else ''}" if is_known else "-" for own, is_known, off in cells
        ]


def _text(errors: Mapping[str, float]) -> str:
    """Errors of a recording by name with unit, such as "12.1 mm 0.8 deg"."""
    return " ".join(
        f"{1e3 * error:.1f} mm" if name.endswith("_m") else f"{error:.1f} deg"
        for name, error in errors.items()
    )


def estimate(
    model: Model,
    groups: Mapping[str, Sequence[SystemParameter]],
    worth: float,
    *,
    simplest_first: bool = False,
) -> ParameterEstimate:
    """Choose groups of a model's parameters by cross-validation, see `choose`, and fit them.

    A single recording is fitted with all of them.
    """
    index = {p.name: k for k, p in enumerate(model.parameters)}
    columns = {name: [index[p.name] for p in members] for name, members in groups.items()}
    every = range(len(index))
    start = np.array([p.inside(p.read(model.setup)) for p in model.parameters])
    several = len(model.recordings) > 1
    if several:
        derivatives = estimator.derivatives(model, start, every)
        before = [one.residual for one in derivatives]
        value = start
        free = list[int]()
        fit = None
        for turn in range(estimator.MAX_FITS):
            names_to_fit = estimator.choose(
                estimator.at_start(derivatives, model, start, value),
                columns,
                worth,
                simplest_first=simplest_first,
            )
            again = sorted(c for name in names_to_fit for c in columns[name])
            if turn and again == free:
                break
            free = again
            fit = estimator.fitted(model, start, free) if free else None
            value = fit.value if fit else start
            derivatives = estimator.derivatives(model, value, every)
    else:
        (before,) = model.residuals([start])
        free = list(every)
        fit = estimator.fitted(model, start, free)
        value = fit.value
        derivatives = fit.derivatives
    return _estimate(model, columns, start, free, fit, before, derivatives)


def _estimate(
    model: Model,
    columns: Mapping[str, Sequence[int]],
    start: Array,
    free: Sequence[int],
    fit: estimator.Fit | None,
    before: Sequence[Array],
    derivatives: Sequence[Derivatives],
) -> ParameterEstimate:
    parameters = [model.parameters[c] for c in free]
    value = fit.value if fit else start
    side = fit.side if fit else np.zeros(0, int)
    slope = np.array([p.slope(v) for p, v in zip(parameters, value[free], strict=True)])
    residuals = [one.residual for one in derivatives]
    stages = [before, residuals]
    several = len(derivatives) > 1
    if several:
        stages.append(estimator.left_out(derivatives, free))
    own = [value[free] + slope * estimator.best_change([one], free) for one in derivatives]
    return ParameterEstimate(
        tuple(model.recordings),
        tuple(parameters),
        start[free],
        value[free],
        tuple({-1: "lower", 0: "", 1: "upper"}[int(at)] for at in side),
        _in_units(derivatives, free, side == 0, slope),
        np.array(own).reshape(len(derivatives), -1),
        np.array([_in_units([one], free, side == side, slope).std for one in derivatives]),
        tuple(tuple(map(model.errors, each)) for each in zip(*stages, strict=True)),
        estimator.rms(stages[2]) if several else math.nan,
        {
            name: estimator.rms(estimator.left_out(derivatives, [*free, *members]))
            for name, members in columns.items()
            if not set(members) <= set(free)
        },
        tuple(
            tuple(model.parameters[c].name for c in group)
            for group in estimator.alike(np.sum([one.normal for one in derivatives], axis=0))
        ),
        sum(len(r) for r in residuals),
        fit is None or fit.converged,
        put_all(
            model.setup, {p.name: float(v) for p, v in zip(parameters, value[free], strict=True)}
        ),
    )


def _in_units(
    derivatives: Sequence[Derivatives], columns: Sequence[int], determinate: Array, slope: Array
) -> Uncertainty:
    """Uncertainty of some parameters [their units], NaN of those that are at a bound."""
    indices = np.flatnonzero(determinate)
    picked = np.array(columns, int)[indices]
    of_kept = estimator.uncertainty(
        np.concatenate([one.jacobian[..., picked] for one in derivatives]),
        np.concatenate([one.residual for one in derivatives]),
    )
    std = np.full(len(columns), np.nan)
    correlation = np.full((len(columns),) * 2, np.nan)
    std[indices] = of_kept.std * slope[indices]
    correlation[np.ix_(indices, indices)] = of_kept.correlation
    return Uncertainty(std, correlation, (), of_kept.effective_samples)


# ---------- Files: fit.json, system.yaml and intervals.png


def write_estimate(result: ParameterEstimate, folder: Path) -> None:
    """Write fit.json, system.yaml to fly with, and a figure of what several recordings say."""
    text = json.dumps(_numbers(result), indent=2)
    (folder / FIT).write_text(text + "\n", encoding="utf-8")
    (folder / SYSTEM).write_text(to_yaml(result.setup.system), encoding="utf-8")
    if len(result.recordings) > 1 and result.parameters:
        with style.styled():
            style.save(intervals_figure(result), folder / "intervals.png")


def write_values(setup: Setup, values: Mapping[str, float], folder: Path) -> None:
    """Write fit.json and system.yaml of a fit that was ended early, from which one can go on."""
    parameters = {name: {"value": value} for name, value in values.items()}
    text = json.dumps({"parameters": parameters, "converged": False}, indent=2)
    (folder / FIT).write_text(text + "\n", encoding="utf-8")
    (folder / SYSTEM).write_text(to_yaml(put_all(setup, dict(values)).system), encoding="utf-8")


def _numbers(result: ParameterEstimate) -> dict[str, Any]:
    """The numbers of an estimate, JSON-ready; null where one is infinite or unknown."""

    def number(value: float) -> float | None:
        return float(value) if math.isfinite(value) else None

    uncertainty = result.uncertainty
    return {
        "recordings": list(result.recordings),
        "parameters": {
            p.name: {
                "value": float(result.value[k]),
                "std": number(uncertainty.std[k]),
                "unit": p.unit,
                "start": float(result.start[k]),
                "lower": p.lower,
                "upper": p.upper,
                "at_bound": result.at_bound[k] or None,
                "of_each_recording": [
                    {"value": float(own), "std": number(std), "differs": bool(off)}
                    for own, std, off in zip(
                        result.own[:, k], result.own_std[:, k], result.differs[:, k], strict=True
                    )
                ],
            }
            for k, p in enumerate(result.parameters)
        },
        "correlation": [[number(c) for c in row] for row in uncertainty.correlation],
        "hard_to_tell_apart": [list(names) for names in result.alike],
        "samples": result.samples,
        "effective_samples": number(uncertainty.effective_samples),
        "converged": result.converged,
        "error_of_recordings_left_out_m": number(result.error_m),
        "left_as_they_are": {
            name: {"error_of_recordings_left_out_m": error_m}
            for name, error_m in result.dropped.items()
        },
        "errors": [dict(zip(FITS, errors, strict=False)) for errors in result.errors],
    }


def with_fit(setup: Setup, path: Path) -> Setup:
    """The setup with the values of a fit, from its fit.json or the folder that holds it."""
    file = path / FIT if os.path.isdir(path) else path
    try:
        entries = read_json(file)["parameters"]
        values = {name: float(entry["value"]) for name, entry in entries.items()}
    except ConfigError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{file}: not the {FIT} of a fit") from None
    if not all(map(math.isfinite, values.values())):
        raise ConfigError(f"{file}: a value that is not finite")
    try:
        return put_all(setup, values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def intervals_figure(result: ParameterEstimate) -> Figure:
    """Draw each parameter: 90 % interval of all recordings as a band, of each as a point."""
    n = len(result.parameters)
    each = len(result.recordings)
    figure = style.new_figure((0.16 * each + 0.42) * n + 0.5)
    axes = figure.subplots(n, 1, squeeze=False)[:, 0]
    style.margins(figure, 2.3, 0.2, 0.3, 0.3, hspace=0.9)
    rows = np.arange(each)
    for k, (ax, p) in enumerate(zip(axes, result.parameters, strict=True)):
        low, high = result.value[k] + INTERVAL * result.uncertainty.std[k] * np.array([-1.0, 1.0])
        ax.axvspan(low, high, color=style.BAND)
        ax.axvline(result.value[k], color=style.INK, linewidth=1.0)
        has_estimate = result.told[:, k]
        ax.errorbar(
            result.own[has_estimate, k],
            rows[has_estimate],
            xerr=INTERVAL * result.own_std[has_estimate, k],
            fmt="o",
            ms=3.5,
            color=style.colour("drone_1"),
            elinewidth=1.0,
        )
        ax.set_yticks(rows, result.recordings, fontsize=6)
        ax.set(ylim=(each - 0.5, -0.5))
        ax.set_title(f"{p.name} [{p.unit}]" if p.unit else p.name, loc="left", fontsize=8)
    return figure
