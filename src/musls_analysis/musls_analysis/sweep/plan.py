"""The content of a sweep's file, its points, and its runs, all checked before the first one starts.

::

    name: damping
    scenario: engage                       # shipped scenario or file
    set: {system.cables.links: 29}         # for all runs
    parameters:
      system.cables.joint.damping_n_m_s_rad: [1.5e-3, 2e-3, 3e-3, 5e-3]
      system.load.mass_kg: {min: 1.0, max: 2.0, count: 5}     # grid; log: true, integer: true
    sampling: grid                         # or {kind: random | latin_hypercube, runs: 50, seed: 0,
                                           #     correlations: [{keys: [A, B], value: 0.6}]}
    repetitions: 3                         # seeds: the scenario's, +1, +2
    metrics:
      - cables.cable_1.stages.engage.slack_fraction            # any path in summary.json
      - {name: top_m, signal: load.z_m, stage: engage, reduce: max}
    figures:
      - {kind: overlay, stage: engage, signals: [load.z_m, load.yaw_deg]}
      - {kind: metric, panels: [[errors.load.engage.translational_error_m]]}
      - {kind: map, metrics: [top_m]}          # also: parallel, distribution
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from musls_analysis.comparison.errors import StageError
from musls_analysis.comparison.quantities import ERRORS, POSE, TENSION
from musls_analysis.comparison.summary import PEAK_PLACES
from musls_control.mission.spec import PHASES
from musls_description.config.documented_keys import split_unit
from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import (
    FileName,
    Finite,
    NonNegative,
    Number,
    Positive,
    build,
    spec,
    to_data,
)
from musls_description.config.strict_yaml import read_yaml, shown
from musls_sim.scenario.scenario import Scenario, as_override, load_scenario

Columns = Annotated[tuple[str, ...], Field(min_length=1)]

# ---------- Figures that a sweep can have


@spec
class OverlayFigure:
    """Signals of all runs over the time since a stage began, a panel each.

    Attributes:
        kind: Tag.
        name: Name of the file.
        stage: Stage, e.g. "engage".
        signals: E.g. "load.z_m", "load.yaw_deg".
        by: Parameter that colours the lines; default the first. Others go into columns.
        from_s: Start of the time axis after the beginning of the stage.
        until_s: End of the time axis after the beginning of the stage.
    """

    kind: Literal["overlay"] = "overlay"
    name: FileName | None = None
    stage: str
    signals: Columns
    by: str | None = None
    from_s: NonNegative = 0.0
    until_s: Positive | None = None

    def __post_init__(self) -> None:
        if self.until_s is not None and self.until_s <= self.from_s:
            raise ValueError(f"from_s {self.from_s:g} must be below until_s {self.until_s:g}")


@spec
class MetricFigure:
    """Metrics over a parameter, with the spread of the repetitions.

    Attributes:
        kind: Tag.
        name: Name of the file.
        x: Parameter of the horizontal axis; default the first. Others make a line each.
        panels: Columns of the table, a list per panel.
        log: Logarithmic vertical axis.
    """

    kind: Literal["metric"] = "metric"
    name: FileName | None = None
    x: str | None = None
    panels: Annotated[tuple[tuple[str, ...], ...], Field(min_length=1)]
    log: bool = False


@spec
class MapFigure:
    """Metrics over two parameters as coloured cells; means over all others and the repetitions.

    Attributes:
        kind: Tag.
        name: Name of the file.
        x: Parameter of the horizontal axis; default the first.
        y: Parameter of the vertical axis; default the next.
        metrics: Columns of the table, a panel each.
    """

    kind: Literal["map"] = "map"
    name: FileName | None = None
    x: str | None = None
    y: str | None = None
    metrics: Columns


@spec
class RunsFigure:
    """Metrics of all runs.

    Attributes:
        kind: "parallel": each run a line through the values of all parameters and metrics, coloured
            by the last metric; "distribution": how often each value came, with percentiles.
        name: Name of the file.
        metrics: Columns of the table.
    """

    kind: Literal["parallel", "distribution"]
    name: FileName | None = None
    metrics: Columns


@spec
class FanFigure:
    """Paths of all runs: where a body is over time, in bands, and each path from above.

    Attributes:
        kind: Tag.
        name: Name of the file.
        body: "load", "drone_1", ...
    """

    kind: Literal["fan"] = "fan"
    name: FileName | None = None
    body: str = "load"


AnyFigure = Annotated[
    OverlayFigure | MetricFigure | MapFigure | RunsFigure | FanFigure,
    Field(discriminator="kind"),
]


MAX_RUNS = 100_000
"""Largest number of one sweep, repetitions included; all are checked before the first starts."""

LONGEST_RUN_S = 30 * 86400.0
"""Wall time of a run: 30 days."""

Reduction = Literal["max", "min", "largest", "mean", "rms", "range", "last"]


@spec
class Parameter:
    """Values of one scenario key: a list, or a range.

    Attributes:
        values: Listed values.
        min: Lower end of a range.
        max: Upper end.
        mean: Mean of a normal distribution, instead of a range; min and max then cut it off.
        std: Standard deviation of the normal distribution.
        count: Number of values of a range in a grid.
        log: Equal ratios instead of equal distances.
        integer: Round to whole numbers.
        label: Text on axes and in legends.
    """

    values: Annotated[tuple[Any, ...], Field(min_length=1)] | None = None
    min: Finite | None = None
    max: Finite | None = None
    mean: Finite | None = None
    std: Positive | None = None
    count: Annotated[int, Field(ge=2, le=100_000)] | None = None
    log: bool = False
    integer: bool = False
    label: str | None = None

    def __post_init__(self) -> None:
        if self.values is not None:
            numbers = (self.min, self.max, self.count, self.mean, self.std)
            if numbers != (None,) * 5 or self.integer:
                raise ValueError("give either values, or min and max, or mean and std")
            return
        if (self.mean is None) != (self.std is None):
            raise ValueError("give both mean and std")
        if self.normal and (self.count is not None or self.log or self.integer):
            raise ValueError("count, log and integer belong to a range, not to mean and std")
        if not self.normal and (self.min is None or self.max is None):
            raise ValueError("give values, or both min and max")
        low, high = self.range
        if not low < high:
            raise ValueError(f"min {low:g} must be below max {high:g}")
        if self.log and low <= 0.0:
            raise ValueError(f"a range with log: true must be above 0, not begin at {low:g}")

    @property
    def normal(self) -> bool:
        """Whether it has a normal distribution."""
        return self.mean is not None and self.std is not None

    @property
    def range(self) -> tuple[float, float]:
        """Lower and upper end; where a normal distribution is cut off, infinite by default."""
        low = -math.inf if self.min is None else self.min
        return low, math.inf if self.max is None else self.max


@spec
class Grid:
    """All combinations.

    Attributes:
        kind: Tag.
    """

    kind: Literal["grid"] = "grid"


@spec
class Correlation:
    """Two parameters that are drawn together.

    Attributes:
        keys: The parameters.
        value: Correlation of the normal variables behind their draws (a Gaussian copula): that of
            the parameters themselves where both are normal.
    """

    keys: tuple[str, str]
    value: Annotated[float, Field(gt=-1.0, lt=1.0), Number]


@spec
class RandomSampling:
    """Random draws.

    Attributes:
        kind: "random": independent and uniform; "latin_hypercube": one draw in each of `runs` equal
            strata of every parameter (scipy.stats.qmc).
        runs: Number of points.
        seed: Seed of the draws.
        own_noise: Each point has its own noise seed, derived from the scenario's seed.
        correlations: Parameters that are drawn together.
    """

    kind: Literal["random", "latin_hypercube"]
    runs: Annotated[int, Field(ge=1, le=100_000)]
    seed: Annotated[int, Field(ge=0)] = 0
    own_noise: bool = False
    correlations: tuple[Correlation, ...] = ()


@spec
class Metric:
    """One number per run, besides the usual ones.

    Attributes:
        name: Column of the table; default the path or signal.
        path: Path of a number in summary.json; `*` stands for all keys (of the cables, say).
        signal: Instead of a path: a stored signal, e.g. "load.z_m", "cable_1.tension_n".
        stage: The part of the signal; default all of it.
        against: Subtracted from the signal: "setpoint" (the reference), or another body such as
            "anchor_1", both relative to their first values.
        reduce: Function that makes one number of several; "largest" is that of their sizes.
    """

    name: str = ""
    path: str | None = None
    signal: str | None = None
    stage: str | None = None
    against: str | None = None
    reduce: Reduction = "max"

    def __post_init__(self) -> None:
        if self.against is not None and self.signal is None:
            raise ValueError("against belongs to a signal")
        if (self.path is None) == (self.signal is None):
            raise ValueError("give one of path and signal")
        if self.path is not None and self.stage is not None:
            raise ValueError("stage belongs to a signal; in a path the stage is a part of the path")

    @property
    def column(self) -> str:
        """Name of the column."""
        if self.name:
            return self.name
        parts = (self.signal, self.against, self.stage, self.reduce)
        return self.path or ".".join(filter(None, parts))

    @property
    def bodies(self) -> list[str]:
        """Bodies and cables whose series it needs."""
        other = [] if self.against in (None, "setpoint") else [self.against]
        return [*([self.signal.partition(".")[0]] if self.signal else []), *filter(None, other)]


AnySampling = Annotated[Grid | RandomSampling, Field(discriminator="kind")]


@spec
class SweepSpec:
    """A sweep.

    Attributes:
        name: Short name, also of the folder.
        description: One line for people.
        scenario: Shipped scenario, or a YAML file (relative to the sweep file or to where one is).
        set: Keys of the scenario that differ from the file in all runs.
        parameters: Keys that are varied.
        sampling: Rule by which their values are combined.
        repetitions: Runs per point, with successive seeds.
        metrics: Columns of the table besides the usual ones.
        figures: Default: the load's errors and the speed over each parameter.
        keep: "summary": numbers and the signals of `series`; "bag": the whole result folders.
        series: Bodies and cables whose signals are kept besides those in figures and metrics.
        workers: Processes unless the command line says so; 1 for studies of speed.
        timeout_s: Wall time after which a run is ended and counts as failed.
    """

    name: FileName
    description: str = ""
    scenario: str
    set: dict[str, Any] = Field(default_factory=dict)
    parameters: dict[str, Parameter]
    sampling: AnySampling = Field(default_factory=Grid)
    repetitions: Annotated[int, Field(ge=1, le=10_000)] = 1
    metrics: tuple[Metric, ...] = ()
    figures: tuple[AnyFigure, ...] = ()
    keep: Literal["summary", "bag"] = "summary"
    series: tuple[str, ...] = ("load",)
    workers: Annotated[int, Field(ge=1, le=1024)] | None = None
    timeout_s: Annotated[float, Field(gt=0.0, le=LONGEST_RUN_S), Number] | None = None

    def __post_init__(self) -> None:
        grid = isinstance(self.sampling, Grid)
        own_noise = False
        if isinstance(self.sampling, RandomSampling):
            _check_correlations(self.sampling, self.parameters)
            own_noise = self.sampling.own_noise
        if not (self.parameters or own_noise):
            raise ValueError("parameters: name at least one key that varies")
        for key, parameter in self.parameters.items():
            if key in self.set:
                raise ValueError(f"'{key}' is given in both set and parameters")
            if grid and parameter.normal:
                raise ValueError(
                    f"parameters.{key}: mean and std need sampling random or latin_hypercube"
                )
            if grid and parameter.values is None and parameter.count is None:
                raise ValueError(f"parameters.{key}: a range in a grid needs count")
            if not grid and parameter.count is not None:
                raise ValueError(f"parameters.{key}: count is for ranges in a grid")
        if isinstance(self.sampling, Grid):
            points = math.prod(
                len(p.values or ()) or p.count or 1 for p in self.parameters.values()
            )
        else:
            points = self.sampling.runs
        if points * self.repetitions > MAX_RUNS:
            raise ValueError(f"{points * self.repetitions} runs, at most {MAX_RUNS} are possible")
        if "seed" in self.parameters and self.repetitions > 1:
            raise ValueError("give either repetitions or seed as a parameter")
        for figure in self.figures:
            for figure_key in (getattr(figure, name, None) for name in ("by", "x", "y")):
                if figure_key is not None and figure_key not in self.parameters:
                    near = near_names(figure_key, self.parameters)
                    raise ValueError(f"figures: no parameter '{figure_key}': {near}")
            if isinstance(figure, MapFigure) and len(self.parameters) < 2:
                raise ValueError("figures: a map needs two parameters")

    def label(self, key: str) -> str:
        """Name and unit of a parameter, "mass [kg]"; with its parent's where two are alike."""
        own_label = self.parameters[key].label
        if own_label:
            return own_label
        words, unit = _words(key)
        if sum(_words(other)[0] == words for other in self.parameters) > 1:
            *above, _ = [part for part in key.split(".") if not part.isdigit()]
            words = f"{above[-1].replace('_', ' ')} {words}" if above else words
        return f"{words} [{unit}]" if unit else words


def _check_correlations(sampling: RandomSampling, keys: Iterable[str]) -> None:
    for correlation in sampling.correlations:
        for key in correlation.keys:
            if key not in keys:
                raise ValueError(f"correlations: no parameter '{key}': {near_names(key, keys)}")
        if correlation.keys[0] == correlation.keys[1]:
            raise ValueError(f"correlations: '{correlation.keys[0]}' is paired with itself")
    if sampling.correlations and np.linalg.eigvalsh(_matrix(sampling, list(keys)))[0] < 1e-9:
        raise ValueError("correlations: no parameters can have all of these at once")


def _matrix(sampling: RandomSampling, keys: Sequence[str]) -> NDArray[np.float64]:
    """Correlations of all parameters, (k, k)."""
    matrix = np.eye(len(keys))
    for correlation in sampling.correlations:
        i, j = (keys.index(key) for key in correlation.keys)
        matrix[i, j] = matrix[j, i] = correlation.value
    return matrix


def _words(key: str) -> tuple[str, str]:
    """Last name of a key in words, its index behind it, and its unit."""
    *above, last = key.split(".")
    index = ""
    if last.isdigit() and above:
        index = f" {last}"
        last = above[-1]
    elif above and above[-1].isdigit():
        index = f" {above[-1]}"
    words, unit = split_unit(last) if last.islower() else (last, "")
    return words + index, unit


def load_sweep(path: Path) -> SweepSpec:
    """Read a sweep file."""
    data, origin = read_study(path, "SweepSpec")
    data.setdefault("name", path.stem)
    if isinstance(data.get("sampling"), str):
        data["sampling"] = {"kind": data["sampling"]}
    if "correlations" in data:  # as a study of `musls montecarlo` has them
        sampling = data.setdefault("sampling", {"kind": Grid().kind})
        if isinstance(sampling, dict):
            sampling.setdefault("correlations", data.pop("correlations"))
    return build(SweepSpec, data, origin)


def read_study(source: Path | Mapping[str, Any], what: str) -> tuple[dict[str, Any], str]:
    """Read a study, its short forms written out: its data, and its name in messages."""
    origin = what if isinstance(source, Mapping) else str(source)
    data = to_data(source) if isinstance(source, Mapping) else read_yaml(source)
    if not isinstance(data, dict):
        raise ConfigError(f"{origin}: expected a mapping of {what}, not {shown(repr(data))}")
    if isinstance(data.get("parameters"), Mapping):
        data["parameters"] = {
            key: {"values": value} if isinstance(value, list) else value
            for key, value in data["parameters"].items()
        }
    if isinstance(data.get("metrics"), list):
        data["metrics"] = [
            {"path": metric} if isinstance(metric, str) else metric for metric in data["metrics"]
        ]
    return data, origin


# ---------- Signals and numbers of a run that a sweep may name


def signal_names(bodies: Iterable[str]) -> list[str]:
    """All signals of bodies and cables."""
    return [
        f"{body}.{kind}"
        for body in sorted(bodies)
        for kind in ((TENSION,) if body.startswith("cable_") else (*POSE, *ERRORS))
    ]


FLIGHT_COLUMNS = (
    "real_time_factor",
    "step_size_s",
    "steps",
    "refined_periods",
    "sim_time_s",
    "wall_time_s",
    "loop_step_us",
    "plant_step_us",
    "thrust_margin",
    "sag_m",
    "landed",
    "least_thrust_margin",
)
"""Numbers at the top of summary.json that go into the table."""

ERROR_KINDS = tuple(field.name for field in fields(StageError) if field.name[-2:] in ("_m", "eg"))
CABLE_KINDS = ("max_tension_n", "mean_tension_n", "slack_fraction")
PEAK_KINDS = ("max_n", "time_s")
CHARGES = (
    "charge_start",
    "charge_end",
    "energy_wh",
    "mean_power_w",
    "max_power_w",
    "max_current_a",
    "min_voltage_v",
)
APART_KINDS = ("tips_m", "centres_m", "time_s", "planned_tips_m")
"""Names of numbers in summary.json: of a body in a stage, of a cable in a stage, of a largest
tension, of the closest approach of two drones."""

ALWAYS = ("run_wall_s", "run_cpu_s", "repetition", "seed", "max_tension_n")
"""Columns of every table besides those of the flight."""

# ---------- From parameters to points: grid, random draws, Latin hypercube

Point = dict[str, Any]


def points(sweep: SweepSpec) -> list[Point]:
    """Values of all parameters, a mapping per point; random draws depend on the seed alone."""
    keys = list(sweep.parameters)
    parameters = list(sweep.parameters.values())
    sampling = sweep.sampling
    rows: Iterable[tuple[Any, ...]]
    if isinstance(sampling, Grid):
        rows = itertools.product(*map(_grid_values, parameters))
    else:
        rng = np.random.default_rng(sampling.seed)
        if sampling.kind == "latin_hypercube":
            from scipy.stats import qmc

            unit = qmc.LatinHypercube(len(keys), rng=rng).random(sampling.runs)
        else:
            unit = rng.random((sampling.runs, len(keys)))
        if sampling.correlations:
            from scipy.special import ndtr, ndtri

            normal = ndtri(np.clip(unit, 1e-12, 1.0 - 1e-12))
            unit = ndtr(normal @ np.linalg.cholesky(_matrix(sampling, keys)).T)
            unit = np.minimum(unit, 1.0 - 1e-12)
        if not keys:
            return [{} for _ in range(sampling.runs)]
        rows = zip(*map(_drawn, parameters, unit.T), strict=True)
    return [dict(zip(keys, row, strict=True)) for row in rows]


def _grid_values(parameter: Parameter) -> list[Any]:
    if parameter.values is not None:
        return list(parameter.values)
    low, high = parameter.range
    place = np.geomspace if parameter.log else np.linspace
    values = place(low, high, parameter.count or 0)  # a grid's parameter has one
    if parameter.integer:
        return list(dict.fromkeys(int(v) for v in np.rint(values)))
    return values.tolist()


RARE = 1e-6
"""Probability of what a normal distribution is cut to, below which it is drawn from its tail."""


def _drawn(parameter: Parameter, unit: NDArray[np.float64]) -> list[Any]:
    """Values of a parameter for draws in [0, 1), (runs,)."""
    if parameter.values is not None:
        return [parameter.values[int(u * len(parameter.values))] for u in unit]
    if parameter.mean is not None and parameter.std is not None:
        from scipy.special import ndtr, ndtri

        mean = parameter.mean
        std = parameter.std
        cuts = [(limit - mean) / std for limit in parameter.range]
        low, high = (ndtr(cut) for cut in cuts)
        if high - low < RARE:  # probabilities lose their digits so far from the mean
            from scipy.stats import truncnorm

            normal = truncnorm.ppf(unit, *cuts)
        else:
            normal = ndtri(np.clip(low + (high - low) * unit, 1e-12, 1.0 - 1e-12))
        return np.clip(mean + std * normal, *parameter.range).tolist()
    low, high = parameter.range
    if parameter.integer:  # every whole number gets an equal share (of the logarithm, if log)
        low, high = math.ceil(low) - 0.5, math.floor(high) + 0.5
        if parameter.log:
            low = max(low, 0.5)
    values = low * (high / low) ** unit if parameter.log else low + (high - low) * unit
    if parameter.integer:
        return [int(v) for v in np.rint(values)]
    return values.tolist()


_NOT_SETTINGS = ("name", "description")
"""Keys that do not change a run."""


@dataclass(frozen=True)
class Run:
    """One run to be made.

    Attributes:
        id: Hash of the resolved settings; equal settings are the same run.
        point: Value of each parameter.
        repetition: Number of the repetition, from 0.
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


def make_plan(sweep: SweepSpec, scenario: Path | Mapping[str, Any]) -> Plan:
    """Resolve and check every run of a sweep over a scenario, of a file or as plain data."""
    runs: dict[str, Run] = {}
    names = Names()
    every = points(sweep)
    own_noise = isinstance(sweep.sampling, RandomSampling) and sweep.sampling.own_noise
    for k, point in enumerate(every):
        variant = _resolve(sweep, scenario, point)
        settings = to_data(variant)
        names |= Names.of(settings)
        first = variant.seed + (k * sweep.repetitions if own_noise else 0)
        for repetition in range(sweep.repetitions):
            seeded = settings | {"seed": first + repetition}
            run = Run(run_id(seeded), point, repetition, seeded)
            runs.setdefault(run.id, run)
    _check_names(sweep, names)
    return Plan(sweep, tuple(runs.values()), len(every) * sweep.repetitions - len(runs))


def run_id(settings: Mapping[str, Any]) -> str:
    """Hash of resolved settings."""
    content = {key: value for key, value in settings.items() if key not in _NOT_SETTINGS}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def wanted_series(sweep: SweepSpec) -> list[str]:
    """Bodies and cables whose signals are to be kept."""
    fans = (figure.body for figure in sweep.figures if isinstance(figure, FanFigure))
    signal_bodies = (signal.partition(".")[0] for signal in _signals(sweep))
    metric_bodies = (body for metric in sweep.metrics for body in metric.bodies)
    return list(dict.fromkeys([*sweep.series, *fans, *signal_bodies, *metric_bodies]))


def _resolve(
    sweep: SweepSpec, scenario: Path | Mapping[str, Any], point: Mapping[str, Any]
) -> Scenario:
    overrides = [as_override(key, value) for key, value in {**sweep.set, **point}.items()]
    try:
        return load_scenario(scenario, overrides)
    except ConfigError as error:
        where = ", ".join(f"{key} = {_short(value)}" for key, value in point.items())
        which = f"sweep {sweep.name}, run with {where}" if where else f"sweep {sweep.name}"
        raise ConfigError(f"{which}: {error}") from None


def _short(value: Any) -> Any:
    """A value for a message; of a number that was drawn the first digits."""
    return f"{value:.6g}" if isinstance(value, float) else value


def _signals(sweep: SweepSpec) -> Iterator[str]:
    for figure in sweep.figures:
        if isinstance(figure, OverlayFigure):
            yield from figure.signals
    yield from (metric.signal for metric in sweep.metrics if metric.signal)


@dataclass(frozen=True)
class Names:
    """Bodies and stages that runs have.

    Attributes:
        bodies: "load", "drone_1", "cable_1", "anchor_1", ...
        stages: Kinds of the mission's stages, and phases; a run numbers those that it has twice.
    """

    bodies: frozenset[str] = frozenset({"load"})
    stages: frozenset[str] = PHASES

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Names:
        """Names of the run with these settings, a resolved scenario."""
        system = settings["system"]
        mission = settings["mission"]
        counts = {part: len(system.get(f"{part}s") or ()) for part in ("drone", "cable", "anchor")}
        bodies = {f"{part}_{i + 1}" for part, count in counts.items() for i in range(count)}
        own = (mission.get("drones") or {}).values()
        stages = [*(mission.get("stages") or ()), *(stage for each in own for stage in each)]
        return cls(frozenset({"load", *bodies}), PHASES | {stage["kind"] for stage in stages})

    def __or__(self, other: Names) -> Names:
        return Names(self.bodies | other.bodies, self.stages | other.stages)

    @property
    def moving(self) -> list[str]:
        """Bodies that have errors."""
        return sorted(body for body in self.bodies if body.startswith(("load", "drone")))

    @property
    def cables(self) -> list[str]:
        """All cables."""
        return sorted(body for body in self.bodies if body.startswith("cable"))

    def is_stage(self, name: str) -> bool:
        """Whether runs may have a stage, "line" or its second time, "line_2"."""
        return name in self.stages or name.rsplit("_", 1)[0] in self.stages


def wrong_path(path: str, names: Names) -> str:
    """Why no summary.json has a number at a path; empty where one may have it.

    `*` stands for all keys of a level.
    """
    stage = STAGE_NAME
    numbers = dict.fromkeys
    tree: dict[str, Any] = {
        **numbers(FLIGHT_COLUMNS),
        "slack_threshold_n": None,
        "errors": numbers(names.moving, {stage: numbers(ERROR_KINDS)}),
        "cables": numbers(
            names.cables,
            {
                "max_tension_n": None,
                "slack_fraction": None,
                "stages": {stage: numbers(CABLE_KINDS)},
            },
        ),
        "tension": numbers(PEAK_PLACES, numbers(PEAK_KINDS)),
        "separation": numbers(APART_KINDS),
        "batteries": numbers([name for name in names.moving if name != "load"], numbers(CHARGES)),
    }
    node: dict[str, Any] | None = tree
    for name in path.split("."):
        if node is None:
            return f"there is nothing below '{path.rpartition('.')[0]}'"
        if stage in node:
            if name != "*" and not names.is_stage(name):
                return f"no stage '{name}': {near_names(name, sorted(names.stages))}"
            node = node[stage]
        elif name == "*":
            node = next(iter(node.values()))
        elif name not in node:
            return near_names(name, list(node))
        else:
            node = node[name]
    return "" if node is None else f"names no number: {', '.join(node)} are below it"


STAGE_NAME = "STAGE"
"""Stands for the name of any stage."""


def wrong_column(column: str, sweep: SweepSpec, names: Names) -> str:
    """Why no table of a sweep has a column; empty where it may have it."""
    columns = [*FLIGHT_COLUMNS, *ALWAYS, *sweep.parameters, *(m.column for m in sweep.metrics)]
    first, _, rest = column.partition(".")
    if column in columns or (first == "slack_fraction" and names.is_stage(rest)):
        return ""
    if first == "errors":
        return wrong_path(column, names)
    patterns = ["errors.load.STAGE.translational_error_max_m", "slack_fraction.STAGE"]
    return near_names(column, [*columns, *patterns])


def _columns(sweep: SweepSpec) -> Iterator[str]:
    """Columns that figures show."""
    for figure in sweep.figures:
        if isinstance(figure, MetricFigure):
            for panel in figure.panels:
                yield from panel
        elif isinstance(figure, (MapFigure, RunsFigure)):
            yield from figure.metrics


def _check_names(sweep: SweepSpec, names: Names) -> None:
    """Refuse signals, bodies, stages, paths and columns that no run can have."""
    bodies = sorted(names.bodies)

    def check(name: str, choices: Sequence[str], what: str) -> None:
        if name not in choices:
            raise ConfigError(f"sweep {sweep.name}: {what}: {near_names(name, choices)}")

    for signal in _signals(sweep):
        check(signal, signal_names(bodies), f"no signal '{signal}'")
    for body in sweep.series:
        check(body, bodies, f"series: no '{body}'")
    for figure in sweep.figures:
        if isinstance(figure, FanFigure):
            check(figure.body, bodies, f"figures: no '{figure.body}'")
    for other in (metric.against for metric in sweep.metrics if metric.against):
        check(other, ["setpoint", *bodies], f"against: no '{other}'")
    stages = {f.stage for f in sweep.figures if isinstance(f, OverlayFigure)}
    for stage in stages | {m.stage for m in sweep.metrics if m.stage}:
        if not names.is_stage(stage):
            check(stage, sorted(names.stages), f"no stage '{stage}'")
    for path in (metric.path for metric in sweep.metrics if metric.path):
        if wrong := wrong_path(path, names):
            raise ConfigError(f"sweep {sweep.name}: metric '{path}': {wrong}")
    for column in _columns(sweep):
        if wrong := wrong_column(column, sweep, names):
            raise ConfigError(f"sweep {sweep.name}: figures: no column '{column}': {wrong}")
