"""Monte Carlo: worlds drawn from distributions, and what can be said of them all.

A study is a sweep of random draws in which every world has noise of its own. Of each figure of a
flight it gives mean and percentiles, with 95 % intervals: of the mean by Student's distribution, of
percentiles by order statistics (they hold for any distribution), of shares by Clopper and Pearson.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from scipy import stats

from musls_analysis.sweep.plan import (
    LONGEST_RUN_S,
    Correlation,
    Metric,
    Names,
    Parameter,
    Plan,
    SweepSpec,
    read_study,
    wrong_column,
)
from musls_analysis.sweep.store import FAILED, FINISHED
from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import Number, build, spec, to_data
from musls_description.tables import Rows, ShownResult, Table, number
from musls_sim.scenario.scenario import Scenario

PERCENTS = (5.0, 50.0, 95.0)
CONFIDENCE = 0.95
"""Confidence level of all intervals."""

FEWEST = 2
"""Worlds of which something can be said."""

_OF_THE_COMPUTER = {
    "repetition",
    "seed",
    "run_wall_s",
    "run_cpu_s",
    "real_time_factor",
    "wall_time_s",
    "loop_step_us",
    "plant_step_us",
    "step_size_s",
    "steps",
}
"""Columns of a sweep's table that say nothing of the flights."""


@spec
class Variation:
    """Differences between the worlds of a study.

    Attributes:
        parameters: Distributions by the scenario's keys; without any, worlds differ by their noise.
        correlations: Parameters that are drawn together.
        set: Keys of the scenario that differ from the file in all worlds.
        metrics: Figures besides the usual ones.
        keep: "summary": figures of the flights and the load's path; "bag": also result folders.
        timeout_s: Wall time after which a world is ended and counts as failed.
    """

    parameters: dict[str, Parameter] = Field(default_factory=dict)
    correlations: tuple[Correlation, ...] = ()
    set: dict[str, Any] = Field(default_factory=dict)
    metrics: tuple[Metric, ...] = ()
    keep: Literal["summary", "bag"] = "summary"
    timeout_s: Annotated[float, Field(gt=0.0, le=LONGEST_RUN_S), Number] | None = None


OF_A_SWEEP = (
    "name",
    "description",
    "scenario",
    "sampling",
    "repetitions",
    "figures",
    "series",
    "workers",
)
"""Keys of a sweep's file that say nothing of what varies."""


def what_varies(data: Mapping[str, Any]) -> dict[str, Any]:
    """What varies in a sweep's file, or in one that says nothing else."""
    variation = {key: value for key, value in data.items() if key not in OF_A_SWEEP}
    sampling = data.get("sampling")
    if isinstance(sampling, Mapping) and "correlations" in sampling:
        variation.setdefault("correlations", sampling["correlations"])
    if isinstance(variation.get("parameters"), Mapping):
        variation["parameters"] = {
            key: {name: part for name, part in value.items() if name != "count"}
            if isinstance(value, Mapping)
            else value
            for key, value in variation["parameters"].items()
        }
    return variation


def study_of(
    name: str, scenario: str, vary: Path | Mapping[str, Any] | None, worlds: int, seed: int
) -> SweepSpec:
    """The sweep of a study; `vary` is a `Variation` or its file, `seed` that of the draws."""
    if worlds < FEWEST:
        raise ConfigError(f"worlds = {worlds}: must be at least {FEWEST}")
    if seed < 0:
        raise ConfigError(f"seed = {seed}: must be 0 or above")
    data, origin = read_study(vary or {}, "Variation")
    variation = build(Variation, what_varies(data), origin)
    fields = to_data(variation)
    draws = {"kind": "random", "runs": worlds, "seed": seed, "own_noise": True}
    draws["correlations"] = fields.pop("correlations")
    return build(
        SweepSpec, {"name": name, "scenario": scenario, "sampling": draws, **fields}, origin
    )


def statistics(rows: Sequence[Mapping[str, Any]], sweep: SweepSpec) -> list[dict[str, Any]]:
    """Mean and percentiles of each figure with intervals; first the shares of failed worlds."""
    finished_rows = [row for row in rows if row["status"] == FINISHED]
    table = [share("failed", sum(row["status"] == FAILED for row in rows), len(rows))]
    if finished_rows:
        table.append(
            share(
                "warnings", sum(bool(row["warnings"]) for row in finished_rows), len(finished_rows)
            )
        )
    for column in figures(finished_rows, sweep):
        values = np.array(
            [row[column] for row in finished_rows if row.get(column) is not None], float
        )
        if len(values) < FEWEST:
            continue
        mean = values.mean()
        error = values.std(ddof=1) / np.sqrt(len(values))
        away = stats.t.ppf(0.5 + 0.5 * CONFIDENCE, len(values) - 1) * error
        row = {"figure": column, "worlds": len(values)}
        row |= _with_interval("mean", mean, mean - away, mean + away)
        row["std"] = float(values.std(ddof=1))
        for percent in PERCENTS:
            interval = stats.quantile_test(values, p=percent / 100.0).confidence_interval(
                CONFIDENCE
            )
            value = np.percentile(values, percent)
            row |= _with_interval(f"p{percent:g}", value, interval.low, interval.high)
        table.append(row | {"least": float(values.min()), "largest": float(values.max())})
    return table


def figures(rows: Sequence[Mapping[str, Any]], sweep: SweepSpec) -> list[str]:
    """Columns of a table that are numbers of the flights and not the parameters drawn."""
    left_out = {*_OF_THE_COMPUTER, *sweep.parameters}
    columns = dict.fromkeys(key for row in rows for key in row if key not in left_out)
    return [
        column
        for column in columns
        if all(type(row.get(column)) in (int, float, type(None)) for row in rows)
        and any(row.get(column) is not None for row in rows)
    ]


def check_figure(by: str, plan: Plan) -> None:
    """Refuse, before anything is flown, a figure that no flight has (raises ConfigError)."""
    names = Names.of(plan.runs[0].settings)
    if wrong := wrong_column(by, plan.sweep, names):
        raise ConfigError(f"--by {by}: no flight has this figure: {wrong}")


def worst(
    rows: Sequence[Mapping[str, Any]], sweep: SweepSpec, count: int, by: str | None = None
) -> list[Mapping[str, Any]]:
    """Worlds of the largest value of a figure, by default the load's error; failed ones first."""
    finished_rows = [row for row in rows if row["status"] == FINISHED]
    columns = figures(finished_rows, sweep)
    if by is not None and finished_rows and by not in columns:
        raise ConfigError(f"no figure '{by}' of these flights: {near_names(by, columns)}")
    usual = [c for c in columns if c.startswith("errors.load.") and c.endswith("error_max_m")]
    by = by or next(iter([*usual, *columns]), "status")
    failed = [row for row in rows if row["status"] == FAILED]
    ranking = sorted(
        (row for row in finished_rows if row.get(by) is not None),
        key=lambda row: row[by],
        reverse=True,
    )
    return [*failed, *ranking][:count]


@dataclass(frozen=True, repr=False)
class MonteCarlo(ShownResult):
    """Flights of worlds drawn from distributions.

    Attributes:
        plan: Plan of the runs.
        rows: A row (a dictionary) a world: seed, what was drawn, its figures.
    """

    plan: Plan
    rows: Rows[dict[str, Any]]

    @property
    def statistics(self) -> Rows[dict[str, Any]]:
        """Mean and percentiles of every figure with their 95 % intervals, see `statistics`."""
        return Rows(statistics(self.rows, self.plan.sweep))

    def worst(self, count: int = 1, by: str | None = None) -> list[Scenario]:
        """The worst worlds as scenarios, to be flown again (raises ConfigError).

        Args:
            count: Number of runs.
            by: Column of `rows` that says it; default the load's largest error.
        """
        runs = {run.id: run for run in self.plan.runs}
        worst_rows = worst(self.rows, self.plan.sweep, count, by)
        return [build(Scenario, runs[row["id"]].settings, row["id"]) for row in worst_rows]

    def shown(self) -> Iterator[str | Table]:
        """Shares, and figures of the load, of tension and those asked for, with intervals."""
        from musls_analysis.sweep.figures import metric_text  # imports matplotlib

        yield f"{len(self.rows)} worlds of {self.plan.sweep.name}; in brackets 95 % intervals"
        extra_columns = {"max_tension_n", *(metric.column for metric in self.plan.sweep.metrics)}
        rows = []
        for row in self.statistics:
            name = row["figure"]
            text = metric_text(row["figure"])
            if name.startswith(("share.", "errors.load.")) or name in extra_columns:
                unit = text.axis.removeprefix(text.axis.partition(" [")[0])
                label = name.replace(".", " ") if name.startswith("share.") else text.title + unit
                cells = [_in_words(row, key, text.scale) for key in ("mean", "p5", "p50", "p95")]
                last = text.scale * row["largest"] if "largest" in row else None
                rows.append((label, str(row["worlds"]), *cells, number(last)))
        yield Table(("figure", "worlds", "mean", "5 %", "50 %", "95 %", "largest"), rows)


def _in_words(row: Mapping[str, Any], key: str, scale: float) -> str:
    """A number with its interval, of which an end may be open."""
    if key not in row:
        return ""
    ends = (row[f"{key}_low"], row[f"{key}_high"])
    low, high = ("-" if end is None else f"{scale * end:.3g}" for end in ends)
    return f"{scale * row[key]:.4g} [{low}, {high}]"


def share(name: str, count: int, of: int) -> dict[str, Any]:
    """Share of worlds with its interval, as a row of `statistics`."""
    interval = stats.binomtest(count, of).proportion_ci(CONFIDENCE)
    return {
        "figure": f"share.{name}",
        "worlds": of,
        **_with_interval("mean", count / of, interval.low, interval.high),
    }


def _with_interval(name: str, value: float, low: float, high: float) -> dict[str, float | None]:
    """A number with its interval; an end that so few worlds do not have is None."""
    ends = [float(end) if np.isfinite(end) else None for end in (low, high)]
    return {name: float(value), f"{name}_low": ends[0], f"{name}_high": ends[1]}
