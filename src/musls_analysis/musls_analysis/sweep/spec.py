"""Specification of a sweep, the content of its file.

::

    name: damping
    scenario: engage                       # shipped scenario or file
    set: {system.cables.links: 29}         # for all runs
    parameters:
      system.cables.joint.damping_n_m_s_rad: [1.5e-3, 2e-3, 3e-3, 5e-3]
      system.load.mass_kg: {min: 1.0, max: 2.0, count: 5}     # grid; log: true, integer: true
    sampling: grid                         # or {kind: random | latin_hypercube, runs: 50, seed: 0}
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

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from musls_description.errors import ConfigError, near_names
from musls_description.keys import split_unit
from musls_description.schema import (
    Finite,
    NonNegative,
    Number,
    Positive,
    build,
    spec,
)
from musls_description.strict_yaml import parse_yaml, read_text, shown

# ---------- Figures that a sweep can have


@spec
class OverlayFigure:
    """Signals of all runs over the time since a stage began, a panel each.

    Attributes:
        kind: Tag.
        name: Of the file.
        stage: Stage, e.g. "engage".
        signals: E.g. "load.z_m", "load.yaw_deg".
        by: Parameter that colours the lines; default the first. Others go into columns.
        from_s: Start of the time axis after the beginning of the stage.
        until_s: End of the time axis after the beginning of the stage.
    """

    kind: Literal["overlay"] = "overlay"
    name: str = ""
    stage: str
    signals: Annotated[tuple[str, ...], Field(min_length=1)]
    by: str | None = None
    from_s: NonNegative = 0.0
    until_s: Positive | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if self.until_s is not None and self.until_s <= self.from_s:
            raise ValueError(f"from_s {self.from_s:g} must be below until_s {self.until_s:g}")


@spec
class MetricFigure:
    """Metrics over a parameter, with the spread of the repetitions.

    Attributes:
        kind: Tag.
        name: Of the file.
        x: Parameter of the horizontal axis; default the first. Others make a line each.
        panels: Columns of the table, a list per panel.
        log: Logarithmic vertical axis.
    """

    kind: Literal["metric"] = "metric"
    name: str = ""
    x: str | None = None
    panels: Annotated[tuple[tuple[str, ...], ...], Field(min_length=1)]
    log: bool = False


Columns = Annotated[tuple[str, ...], Field(min_length=1)]


@spec
class MapFigure:
    """Metrics over two parameters as coloured cells; means over all others and the repetitions.

    Attributes:
        kind: Tag.
        name: Of the file.
        x: Parameter of the horizontal axis; default the first.
        y: Parameter of the vertical axis; default the next.
        metrics: Columns of the table, a panel each.
    """

    kind: Literal["map"] = "map"
    name: str = ""
    x: str | None = None
    y: str | None = None
    metrics: Columns


@spec
class ParallelFigure:
    """Each run as a line through the values of all parameters and metrics.

    Attributes:
        kind: Tag.
        name: Of the file.
        metrics: Columns of the table; the last one colours the lines.
    """

    kind: Literal["parallel"] = "parallel"
    name: str = ""
    metrics: Columns


@spec
class DistributionFigure:
    """How often each value of a metric came, with percentiles.

    Attributes:
        kind: Tag.
        name: Of the file.
        metrics: Columns of the table, a panel each.
    """

    kind: Literal["distribution"] = "distribution"
    name: str = ""
    metrics: Columns


AnyFigure = Annotated[
    OverlayFigure | MetricFigure | MapFigure | ParallelFigure | DistributionFigure,
    Field(discriminator="kind"),
]


MOST_RUNS = 100_000
"""Of one sweep, repetitions included; each is checked before the first one starts."""

LONGEST_RUN_S = 30 * 86400.0
"""Wall time of a run: 30 days."""

Reduction = Literal["max", "min", "mean", "rms", "range", "last"]


@spec
class Parameter:
    """Values of one scenario key: a list, or a range.

    Attributes:
        values: Listed values.
        min: Lower end of a range.
        max: Upper end.
        mean: Of a normal distribution, instead of a range; min and max then cut it off.
        std: Its standard deviation.
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
        """Check what concerns more than one field."""
        if self.values is not None:
            given = (self.min, self.max, self.count, self.mean, self.std)
            if given != (None,) * 5 or self.integer:
                raise ValueError("give either values, or min and max, or mean and std")
            return
        if (self.mean is None) != (self.std is None):
            raise ValueError("give both mean and std")
        if self.normal:
            self._check_normal()
            return
        if self.min is None or self.max is None:
            raise ValueError("give values, or both min and max")
        if not self.min < self.max:
            raise ValueError(f"min {self.min:g} must be below max {self.max:g}")
        if self.log and self.min <= 0.0:
            raise ValueError(f"a range with log: true must be above 0, not begin at {self.min:g}")

    def _check_normal(self) -> None:
        if self.count is not None or self.log or self.integer:
            raise ValueError("count, log and integer belong to a range, not to mean and std")
        low, high = self.cut
        if not low < high:
            raise ValueError(f"min {low:g} must be below max {high:g}")

    @property
    def normal(self) -> bool:
        """Whether it has a normal distribution."""
        return self.mean is not None and self.std is not None

    @property
    def cut(self) -> tuple[float, float]:
        """Ends at which a normal distribution is cut off."""
        low = -math.inf if self.min is None else self.min
        return low, math.inf if self.max is None else self.max

    @property
    def range(self) -> tuple[float, float]:
        """Lower and upper end, of a parameter without values."""
        if self.min is None or self.max is None:
            raise LookupError("a parameter with values has no range")
        return self.min, self.max


@spec
class Grid:
    """All combinations.

    Attributes:
        kind: Tag.
    """

    kind: Literal["grid"] = "grid"


@spec
class RandomSampling:
    """Independent uniform draws.

    Attributes:
        kind: Tag.
        runs: Number of points.
        seed: Of the draws.
    """

    kind: Literal["random"] = "random"
    runs: Annotated[int, Field(ge=1, le=100_000)]
    seed: Annotated[int, Field(ge=0)] = 0


@spec
class LatinHypercube:
    """One draw in each of `runs` equal strata of every parameter (scipy.stats.qmc).

    Attributes:
        kind: Tag.
        runs: Number of points.
        seed: Of the draws.
    """

    kind: Literal["latin_hypercube"] = "latin_hypercube"
    runs: Annotated[int, Field(ge=1, le=100_000)]
    seed: Annotated[int, Field(ge=0)] = 0


@spec
class Metric:
    """One number per run, besides the usual ones.

    Attributes:
        name: Column of the table; default the path or signal.
        path: Of a number in summary.json; `*` stands for all keys (of the cables, say).
        signal: Instead of a path: a stored signal, e.g. "load.z_m", "cable_1.tension_n".
        stage: The part of the signal; default all of it.
        reduce: How several numbers become one.
    """

    name: str = ""
    path: str | None = None
    signal: str | None = None
    stage: str | None = None
    reduce: Reduction = "max"

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if (self.path is None) == (self.signal is None):
            raise ValueError("give one of path and signal")
        if self.path is not None and self.stage is not None:
            raise ValueError("stage belongs to a signal; in a path the stage is a part of the path")

    @property
    def column(self) -> str:
        """Name of the column."""
        if self.name:
            return self.name
        return self.path or ".".join(filter(None, (self.signal, self.stage, self.reduce)))


AnySampling = Annotated[Grid | RandomSampling | LatinHypercube, Field(discriminator="kind")]


@spec
class SweepSpec:
    """A sweep.

    Attributes:
        name: Short name, also of the folder.
        description: One line for people.
        scenario: Shipped scenario, or a YAML file (relative to the sweep file or to where one is).
        set: Keys of the scenario that differ from the file in all runs.
        parameters: Keys that are varied.
        sampling: How their values are combined.
        repetitions: Runs per point, with successive seeds.
        metrics: Columns of the table besides the usual ones.
        figures: Default: the load's errors and the speed over each parameter.
        keep: "summary": numbers and the signals of `series`; "bag": the whole result folders.
        series: Bodies and cables whose signals are kept besides those in figures and metrics.
        workers: Processes unless the command line says so; 1 for studies of speed.
        timeout_s: Wall time after which a run is ended and counts as failed.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=100)]
    description: str = ""
    scenario: str
    set: dict[str, Any] = Field(default_factory=dict)
    parameters: Annotated[dict[str, Parameter], Field(min_length=1)]
    sampling: AnySampling = Field(default_factory=Grid)
    repetitions: Annotated[int, Field(ge=1, le=10_000)] = 1
    metrics: tuple[Metric, ...] = ()
    figures: tuple[AnyFigure, ...] = ()
    keep: Literal["summary", "bag"] = "summary"
    series: tuple[str, ...] = ("load",)
    workers: Annotated[int, Field(ge=1, le=1024)] | None = None
    timeout_s: Annotated[float, Field(gt=0.0, le=LONGEST_RUN_S), Number] | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        for key, parameter in self.parameters.items():
            if key in self.set:
                raise ValueError(f"'{key}' is given in both set and parameters")
            if isinstance(self.sampling, Grid) and parameter.values is None:
                if parameter.normal:
                    raise ValueError(
                        f"parameters.{key}: mean and std need sampling random or latin_hypercube"
                    )
                if parameter.count is None:
                    raise ValueError(f"parameters.{key}: a range in a grid needs count")
            elif parameter.count is not None:
                raise ValueError(f"parameters.{key}: count is for ranges in a grid")
        self._check_size()
        if "seed" in self.parameters and self.repetitions > 1:
            raise ValueError("give either repetitions or seed as a parameter")
        for figure in self.figures:
            for chosen in (getattr(figure, name, None) for name in ("by", "x", "y")):
                if chosen is not None and chosen not in self.parameters:
                    near = near_names(chosen, self.parameters)
                    raise ValueError(f"figures: no parameter '{chosen}': {near}")
            if isinstance(figure, MapFigure) and len(self.parameters) < 2:
                raise ValueError("figures: a map needs two parameters")

    def _check_size(self) -> None:
        """Refuse more runs than could ever be made, before their points are."""
        runs = self.repetitions
        if isinstance(self.sampling, Grid):
            for parameter in self.parameters.values():
                runs *= len(parameter.values) if parameter.values else parameter.count or 1
        else:
            runs *= self.sampling.runs
        if runs > MOST_RUNS:
            raise ValueError(f"{runs} runs, at most {MOST_RUNS} are possible")

    def label(self, key: str) -> str:
        """Name of a parameter for people, with its unit: "mass [kg]".

        An index stands behind the name; of equal names each has its parent's before it.
        """
        given = self.parameters[key].label
        if given:
            return given
        words, unit = _words(key)
        if sum(_words(other)[0] == words for other in self.parameters) > 1:
            *above, _ = [part for part in key.split(".") if not part.isdigit()]
            words = f"{above[-1].replace('_', ' ')} {words}" if above else words
        return f"{words} [{unit}]" if unit else words


def _words(key: str) -> tuple[str, str]:
    """Last name of a key in words, its index behind it, and its unit."""
    *above, last = key.split(".")
    index = ""
    if last.isdigit() and above:
        index, last = f" {last}", above[-1]
    elif above and above[-1].isdigit():
        index = f" {above[-1]}"
    words, unit = split_unit(last) if last.islower() else (last, "")
    return words + index, unit


def load_sweep(path: Path) -> SweepSpec:
    """Read a sweep file.

    Raises:
        ConfigError: Anything wrong with it, in one line. The scenarios are checked later.
    """
    text = read_text(path)
    data = parse_yaml(text, str(path))
    if not isinstance(data, Mapping):
        raise ConfigError(f"{path}: expected a mapping of SweepSpec, not {shown(repr(data))}")
    data = {"name": path.stem, **data}
    if isinstance(data.get("sampling"), str):
        data["sampling"] = {"kind": data["sampling"]}
    if isinstance(data.get("parameters"), Mapping):
        data["parameters"] = {
            key: {"values": value} if isinstance(value, list) else value
            for key, value in data["parameters"].items()
        }
    if isinstance(data.get("metrics"), list):
        data["metrics"] = [
            {"path": metric} if isinstance(metric, str) else metric for metric in data["metrics"]
        ]
    return build(SweepSpec, data, str(path), text)
