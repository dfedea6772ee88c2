"""From a sweep to its runs, all checked before the first one starts."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_analysis.sweep.spec import (
    Grid,
    LatinHypercube,
    OverlayFigure,
    Parameter,
    SweepSpec,
)
from musls_control.phases import PHASES
from musls_description.errors import ConfigError, near_names
from musls_description.schema import to_data
from musls_sim.scenario.scenario import Scenario, load_scenario

# ---------- From parameters to points: grid, random draws, Latin hypercube

Point = dict[str, Any]


def points(sweep: SweepSpec) -> list[Point]:
    """Values of all parameters, a mapping per point; random draws depend on the seed alone."""
    keys = list(sweep.parameters)
    parameters = list(sweep.parameters.values())
    if isinstance(sweep.sampling, Grid):
        rows = itertools.product(*map(_grid_values, parameters))
        return [dict(zip(keys, row, strict=True)) for row in rows]
    unit = _unit_cube(sweep.sampling, len(keys))
    columns = [_stretch(p, u) for p, u in zip(parameters, unit.T, strict=True)]
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def _unit_cube(sampling: Any, dimensions: int) -> NDArray[np.float64]:
    """Draws in [0, 1), (runs, dimensions)."""
    rng = np.random.default_rng(sampling.seed)
    if isinstance(sampling, LatinHypercube):
        from scipy.stats import qmc

        return qmc.LatinHypercube(dimensions, rng=rng).random(sampling.runs)
    return rng.random((sampling.runs, dimensions))


def _grid_values(parameter: Parameter) -> list[Any]:
    if parameter.values is not None:
        return list(parameter.values)
    low, high = parameter.range
    place = np.geomspace if parameter.log else np.linspace
    values = place(low, high, parameter.count or 0)  # a grid's parameter has one
    if parameter.integer:
        return list(dict.fromkeys(int(v) for v in np.rint(values)))
    return values.tolist()


def _stretch(parameter: Parameter, unit: NDArray[np.float64]) -> list[Any]:
    """Values of a parameter for draws in [0, 1), (runs,)."""
    if parameter.values is not None:
        return [parameter.values[int(u * len(parameter.values))] for u in unit]
    if parameter.mean is not None and parameter.std is not None:
        return _normal(parameter, parameter.mean, parameter.std, unit)
    low, high = parameter.range
    if parameter.integer:  # every whole number gets an equal share (of the logarithm, if log)
        low, high = math.ceil(low) - 0.5, math.floor(high) + 0.5
        if parameter.log:
            low = max(low, 0.5)
    if parameter.log:
        values = low * (high / low) ** unit
    else:
        values = low + (high - low) * unit
    if parameter.integer:
        return [int(v) for v in np.rint(values)]
    return values.tolist()


def _normal(
    parameter: Parameter, mean: float, std: float, unit: NDArray[np.float64]
) -> list[float]:
    """Values of a normal distribution, cut off where it is asked for, for draws in [0, 1)."""
    from scipy.special import ndtr, ndtri

    low, high = (ndtr((limit - mean) / std) for limit in parameter.cut)
    inner = np.clip(low + (high - low) * unit, 1e-12, 1.0 - 1e-12)
    values: list[float] = (mean + std * ndtri(inner)).tolist()
    return values


_NOT_SETTINGS = ("name", "description")
"""Keys that do not change a run."""


@dataclass(frozen=True)
class Run:
    """One run to be made.

    Attributes:
        id: Hash of the resolved settings; equal settings are the same run.
        point: Value of each parameter.
        repetition: From 0.
        settings: The resolved scenario as plain data, with its seed.
    """

    id: str
    point: Mapping[str, Any]
    repetition: int
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, in the order of the points, no two with the same settings.

    `duplicates` combinations are left out because another one has the same settings.
    """

    sweep: SweepSpec
    runs: tuple[Run, ...]
    duplicates: int


def make_plan(sweep: SweepSpec, scenario: Path) -> Plan:
    """Resolve and check every run of a sweep over the scenario in a file.

    Raises:
        ConfigError: A key or value is wrong, in one line.
    """
    runs: dict[str, Run] = {}
    asked = 0
    kinds: set[str] = set()
    bodies: set[str] = set()
    for point in points(sweep):
        chosen = _resolve(sweep, scenario, point)
        kinds |= {stage.kind for stage in chosen.mission.stages}
        bodies |= _bodies(chosen)
        settings = to_data(chosen)
        for repetition in range(sweep.repetitions):
            asked += 1
            seeded = settings | {"seed": chosen.seed + repetition}
            run = Run(run_id(seeded), point, repetition, seeded)
            runs.setdefault(run.id, run)
    _check_names(sweep, kinds, bodies)
    return Plan(sweep, tuple(runs.values()), asked - len(runs))


def run_id(settings: Mapping[str, Any]) -> str:
    """Hash of resolved settings."""
    kept = {key: value for key, value in settings.items() if key not in _NOT_SETTINGS}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def wanted_series(sweep: SweepSpec) -> list[str]:
    """Bodies and cables whose signals are to be kept."""
    return list(dict.fromkeys([*sweep.series, *(s.partition(".")[0] for s in _signals(sweep))]))


def describe_point(point: Mapping[str, Any]) -> str:
    """A point in a few words."""
    return ", ".join(f"{key.rsplit('.', 1)[-1]} = {value}" for key, value in point.items())


def _resolve(sweep: SweepSpec, scenario: Path, point: Mapping[str, Any]) -> Scenario:
    overrides = [_override(key, value) for key, value in {**sweep.set, **point}.items()]
    try:
        return load_scenario(scenario, overrides)
    except ConfigError as error:
        raise ConfigError(
            f"sweep {sweep.name}, run with {describe_point(point)}: {error}"
        ) from None


def _override(key: str, value: Any) -> str:
    # JSON is YAML, and keeps every digit; a system's name is not parsed.
    return f"{key}={value if key == 'system' else json.dumps(value)}"


def _bodies(scenario: Scenario) -> set[str]:
    numbers = range(1, scenario.system.n_drones + 1)
    return {"load", *(f"{part}_{i}" for part in ("drone", "cable") for i in numbers)}


def _signals(sweep: SweepSpec) -> Iterator[str]:
    for figure in sweep.figures:
        if isinstance(figure, OverlayFigure):
            yield from figure.signals
    yield from (metric.signal for metric in sweep.metrics if metric.signal)


def _check_names(sweep: SweepSpec, kinds: set[str], bodies: set[str]) -> None:
    """Refuse signals, bodies and stages that no run can have."""
    from musls_analysis.sweep.signals import FLIGHT_COLUMNS, SUMMARY_PARTS, signal_names

    def check(name: str, known: Sequence[str], what: str, *also: str) -> None:
        if not {name, *also} & set(known):
            raise ConfigError(f"sweep {sweep.name}: {what}: {near_names(name, known)}")

    for signal in _signals(sweep):
        check(signal, signal_names(bodies), f"no signal '{signal}'")
    for body in sweep.series:
        check(body, sorted(bodies), f"series: no '{body}'")
    stages = {f.stage for f in sweep.figures if isinstance(f, OverlayFigure)}
    for stage in stages | {m.stage for m in sweep.metrics if m.stage}:
        check(stage, sorted(kinds | PHASES), f"no stage '{stage}'", stage.rsplit("_", 1)[0])
    for path in (metric.path for metric in sweep.metrics if metric.path):
        check(path.partition(".")[0], (*FLIGHT_COLUMNS, *SUMMARY_PARTS), f"metric '{path}'")
