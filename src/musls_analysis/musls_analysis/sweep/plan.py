"""From a sweep to its runs, all checked before the first one starts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from musls_analysis.sweep.sampling import points
from musls_analysis.sweep.spec import Metric, OverlayFigure, SweepSpec
from musls_control.phases import PHASES
from musls_description.errors import ConfigError
from musls_description.names import near_names
from musls_description.schema import to_data
from musls_sim.scenario import Scenario, load_scenario

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
    """All runs of a sweep.

    Attributes:
        sweep: What was asked for.
        runs: In the order of the points, no two with the same settings.
        duplicates: Number of combinations left out because another one has the same settings.
    """

    sweep: SweepSpec
    runs: tuple[Run, ...]
    duplicates: int


def make_plan(sweep: SweepSpec, scenario: Path) -> Plan:
    """Resolve and check every run.

    Args:
        sweep: The sweep.
        scenario: File of its scenario.

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
    from musls_analysis.sweep.metrics import FLIGHT_COLUMNS, SUMMARY_PARTS
    from musls_analysis.sweep.signals import signal_names

    where = f"sweep {sweep.name}"
    for signal in _signals(sweep):
        known = signal_names(bodies)
        if signal not in known:
            raise ConfigError(f"{where}: no signal '{signal}': {near_names(signal, known)}")
    for body in sweep.series:
        if body not in bodies:
            raise ConfigError(f"{where}: series: no '{body}': {near_names(body, sorted(bodies))}")
    stages = {f.stage for f in sweep.figures if isinstance(f, OverlayFigure)}
    stages |= {m.stage for m in sweep.metrics if m.stage}
    known = sorted(kinds | PHASES)
    for stage in stages:
        if not {stage, stage.rsplit("_", 1)[0]} & set(known):
            raise ConfigError(f"{where}: no stage '{stage}': {near_names(stage, known)}")
    for metric in sweep.metrics:
        _check_path(metric, (*FLIGHT_COLUMNS, *SUMMARY_PARTS), where)


def _check_path(metric: Metric, known: tuple[str, ...], where: str) -> None:
    head = (metric.path or known[0]).partition(".")[0]
    if head not in known:
        raise ConfigError(f"{where}: metric '{metric.path}': {near_names(head, known)}")
