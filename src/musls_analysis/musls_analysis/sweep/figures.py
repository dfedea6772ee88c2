"""Draws the figures of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from musls_analysis.comparison.quantities import find_values, text_of
from musls_analysis.figures import style
from musls_analysis.figures.style import save, styled
from musls_analysis.recordings.recording import Recording
from musls_analysis.sweep import plan
from musls_analysis.sweep.store import FAILED, FINISHED, Store, stage_window
from musls_description.config.errors import file_name

# ---------- Names, units and colours

_UNITS = {"_m": "m", "_deg": "°", "_n": "N", "_s": "s", "_us": "µs"}
_MILLIMETRES = "translational_error", "held_translational_error"
_SPECIAL = {
    "real_time_factor": "speed [times real time]",
    "refined_periods": "refined control periods",
    "step_size_s": "time step [s]",
}
_COLOURS = matplotlib.colormaps["viridis"]
_LIGHTEST = 0.87
"""Place on the colour map of the lightest line; beyond it is too faint on white."""


Rows = Sequence[Mapping[str, Any]]


class Text(NamedTuple):
    """Labels of a metric.

    Attributes:
        axis: Text of the axis, with unit.
        series: Distinction from others with the same axis.
        scale: Factor for the unit.
    """

    axis: str
    series: str
    scale: float = 1.0

    @property
    def title(self) -> str:
        """Title of the panel: metric or signal, and of what."""
        name = self.axis.partition(" [")[0]
        return name if self.series in ("", name) else f"{name}: {self.series}"


def metric_text(column: str) -> Text:
    """Texts for a column of the table, e.g. "errors.load.engage.translational_error_m"."""
    *where, what = column.split(".")
    if what in _SPECIAL:
        return Text(_SPECIAL[what], style.label(what))
    if where[:1] == ["slack_fraction"]:
        return Text("slack fraction", style.label(what))
    places = [style.label(p) for p in where if p not in ("errors", "cables", "stages", "*")]
    suffix = next((s for s in _UNITS if what.endswith(s)), "")
    unit = _UNITS.get(suffix, "")
    what = what.removesuffix(suffix)
    scale = 1.0
    if what.startswith(_MILLIMETRES):
        unit = "mm"
        scale = 1000.0
    name = what.replace("_error_max", " error, greatest").replace("_", " ")
    series = ", ".join(places) if places else name
    return Text(f"{name} [{unit}]" if unit else name, series, scale)


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def value_text(value: Any) -> str:
    """A parameter's value, short."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        if value and not 1e-3 <= abs(value) < 1e5:
            mantissa, _, exponent = f"{value:.3e}".partition("e")
            return f"{float(mantissa):g}×10{str(int(exponent)).translate(_RAISED)}"
        return f"{value:.4g}"
    return str(value)


def group_text(sweep: plan.SweepSpec, group: Mapping[str, Any]) -> str:
    """Values of some parameters, with their units."""
    parts = []
    for key, value in group.items():
        name, _, unit = sweep.label(key).partition(" [")
        parts.append(f"{name} {value_text(value)} {unit.removesuffix(']')}".strip())
    return ", ".join(parts)


def _number(value: Any) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))
    )


def distinct(values: Sequence[Any]) -> list[Any]:
    """Distinct values, numbers in their order, others as they come."""
    result: list[Any] = []
    for value in values:
        if value not in result:
            result.append(value)
    return sorted(result) if all(map(_number, result)) else result


def combinations(sweep: plan.SweepSpec, rows: Rows, without: str) -> list[dict[str, Any]]:
    """Combinations of all parameters of a grid but one that occur; of random draws one, empty."""
    if not isinstance(sweep.sampling, plan.Grid):
        return [{}]
    others = [key for key in sweep.parameters if key != without]
    return distinct([{key: row[key] for key in others} for row in rows])


def belongs(row: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Whether a row has these values."""
    return all(row[key] == value for key, value in group.items())


def _panels(count: int, height_in: float) -> tuple[Figure, list[Axes]]:
    """Figure of panels in at most two columns; places that are left over stay empty."""
    columns = min(count, 2)
    lines = -(-count // columns)
    fig = style.new_figure(0.4 + height_in * lines, style.WIDTH_IN if columns > 1 else 4.6)
    fig.set_layout_engine("constrained")
    axes = [fig.add_subplot(lines, columns, k + 1) for k in range(count)]
    return fig, axes


def _legend(fig: Figure, handles: Sequence[Artist], title: str | None = None) -> None:
    """Put a legend above everything, in rows of as many entries as have room."""
    if handles:
        longest = max(len(str(handle.get_label())) for handle in handles)
        columns = max(1, int(fig.get_figwidth() / (0.5 + 0.055 * longest)))
        fig.legend(
            handles=handles,
            loc="outside upper center",
            ncol=min(columns, len(handles)),
            title=title,
            title_fontsize=7.5,
        )


# ---------- Metrics over a parameter

_FAILED: style.LineStyle = {"color": style.EVENT, "marker": "x", "ls": "", "ms": 5.0, "mew": 1.4}
_LOG_FROM = 8.0
"""Ratio of largest to smallest value from which an axis is logarithmic."""
_MARKERS = "osD^vP"
_MAX_TICKS = 9
"""Values that are all named on their axis."""


class _Axis:
    """Places of a parameter's values along the horizontal axis."""

    def __init__(self, sweep: plan.SweepSpec, key: str, rows: Rows) -> None:
        self.key = key
        self.label = sweep.label(key)
        self.values = distinct([row[key] for row in rows])
        self.numeric = all(map(_number, self.values))
        ends = (self.values[0], self.values[-1]) if self.numeric else (0, 0)
        self.log = ends[0] > 0 and (sweep.parameters[key].log or ends[1] / ends[0] >= _LOG_FROM)

    def place(self, row: Mapping[str, Any]) -> float:
        value = row[self.key]
        return float(value) if self.numeric else float(self.values.index(value))

    def set_up(self, ax: Axes) -> None:
        ax.set_xlabel(self.label)
        if self.log:
            style.logarithmic(ax, "x")
        if not self.numeric or len(self.values) <= _MAX_TICKS:
            places = self.values if self.numeric else range(len(self.values))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.set_xticks(places, map(value_text, self.values))
        if not self.numeric:
            ax.set_xlim(-0.5, len(self.values) - 0.5)


def metric_figure(sweep: plan.SweepSpec, figure: plan.MetricFigure, rows: Rows) -> Figure:
    """Draw metrics over a parameter."""
    axis = _Axis(sweep, figure.x or next(iter(sweep.parameters)), rows)
    groups = combinations(sweep, rows, axis.key)
    fig, axes = _panels(len(figure.panels), 2.4)
    handles: dict[str, Line2D] = {}
    for ax, panel in zip(axes, figure.panels, strict=True):
        curves = [(metric, group) for metric in panel for group in groups]
        for k, (metric, group) in enumerate(curves):
            text = metric_text(metric)
            names = [text.series] if len(panel) > 1 else []
            names += [group_text(sweep, group)] if len(groups) > 1 else []
            look: style.LineStyle = {
                "color": style.colour(f"drone_{k + 1}"),
                "marker": _MARKERS[k % len(_MARKERS)],
            }
            group_rows = [row for row in rows if belongs(row, group)]
            _curve(ax, axis, group_rows, metric, look, isinstance(sweep.sampling, plan.Grid))
            name = ", ".join(names)
            if name:
                handles.setdefault(name, Line2D([], [], lw=1.3, ms=3.5, label=name, **look))
        text = metric_text(panel[0])
        ax.set_ylabel(text.axis)
        ax.set_title(text.series if len(panel) == 1 else text.axis.partition(" [")[0])
        _finish(ax, axis, rows, figure.log)
    failed = any(row["status"] == FAILED for row in rows)
    crosses = [Line2D([], [], **_FAILED, label="failed runs, of all there")] if failed else []
    _legend(fig, [*handles.values(), *crosses])
    return fig


def _curve(
    ax: Axes, axis: _Axis, rows: Rows, metric: str, look: style.LineStyle, grid: bool
) -> None:
    """One metric of one group."""
    scale = metric_text(metric).scale
    points = [(axis.place(r), scale * r[metric]) for r in rows if r.get(metric) is not None]
    if not points:
        return
    x, y = np.array(points, float).T
    if not grid:
        ax.plot(x, y, ls="", ms=3.2, alpha=0.75, mec="white", mew=0.3, **look)
        return
    places = np.unique(x)
    samples = [y[x == place] for place in places]
    mean = np.array([s.mean() for s in samples])
    ax.plot(places, mean, lw=1.3, ms=3.8, mec="white", mew=0.4, zorder=4, **look)
    if max(map(len, samples)) > 1:
        ends = [mean - [s.min() for s in samples], [s.max() for s in samples] - mean]
        bars: style.LineStyle = {"ls": "", "elinewidth": 0.9, "capsize": 2.0, "alpha": 0.8}
        ax.errorbar(places, mean, ends, color=look["color"], **bars)
        ax.plot(x, y, ls="", marker=".", ms=3.0, color=look["color"], alpha=0.4)


def _finish(ax: Axes, axis: _Axis, rows: Rows, log: bool) -> None:
    """Scales, limits, and failed runs with their number above the curves."""
    axis.set_up(ax)
    failed = [axis.place(row) for row in rows if row["status"] == FAILED]
    if log:
        style.logarithmic(ax, "y")
    else:
        low, high = min(0.0, ax.get_ylim()[0]), ax.get_ylim()[1]
        ax.set_ylim(low, high + (0.17 if failed else 0.03) * (high - low))
    everywhere = [axis.place(row) for row in rows]
    for place in sorted(set(failed)):
        above = ax.get_xaxis_transform()
        ax.plot(place, 0.91, transform=above, zorder=5, **_FAILED)
        ax.annotate(
            f"{failed.count(place)}/{everywhere.count(place)}",
            (place, 0.94),
            xycoords=above,
            ha="center",
            va="bottom",
            fontsize=6.0,
            color=_FAILED["color"],
        )


# ---------- Signals of many runs over the time since a stage began (as Fig. 6 of the paper)

_MAX_NAMED = 8
"""Values in the legend; of more, some spread evenly over them."""
_MAX_LINES = 5
_STEP_S = 0.02
_SETPOINT = "setpoint"
"""Marks the set-point's line, which is drawn once per panel."""


_Cut = tuple[NDArray, NDArray, NDArray]
"""A signal within a stage: time since its beginning, values, set-point, (T,) each."""


def overlay_figure(
    sweep: plan.SweepSpec, figure: plan.OverlayFigure, rows: Rows, store: Store
) -> Figure | None:
    """Draw signals of all runs; None if no run has them."""
    key = figure.by or next(iter(sweep.parameters))
    values = distinct([row[key] for row in rows])
    groups = combinations(sweep, rows, key)
    fig = style.new_figure(
        0.85 + 1.75 * len(figure.signals), style.WIDTH_IN if len(groups) < 3 else 10.0
    )
    fig.set_layout_engine("constrained")
    axes = fig.subplots(len(figure.signals), len(groups), sharex=True, sharey="row", squeeze=False)
    has_curves = False
    shades = _COLOURS(np.linspace(0.0, _LIGHTEST, len(values)))
    for column, group in enumerate(groups):
        for value, shade in zip(values, shades, strict=True):
            matches = [r for r in rows if belongs(r, {**group, key: value, "status": FINISHED})]
            records = filter(None, (store.record(row["id"]) for row in matches))
            runs = [(record["summary"], store.series(record["id"])) for record in records]
            for ax, name in zip(axes[:, column], figure.signals, strict=True):
                cuts = [cut for run in runs if (cut := _cut(figure, name, *run)) is not None]
                has_curves |= bool(cuts)
                _draw(ax, cuts, shade)
        if len(groups) > 1:
            axes[0, column].set_title(group_text(sweep, group))
    for ax, name in zip(axes[:, 0], figure.signals, strict=True):
        ax.set_ylabel(text_of(name))
    for ax in axes[-1]:
        ax.set_xlabel(f"time in stage {style.label(figure.stage)} [s]")
        ax.margins(x=0.0)
    indices = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MAX_NAMED)).round())
    handles = [
        Line2D([], [], color=shades[k], lw=1.8, label=_with_failed(key, values[k], rows))
        for k in indices.astype(int)
    ]
    _legend(fig, [*handles, style.setpoint_handle()], sweep.label(key))
    return fig if has_curves else None


def _with_failed(key: str, value: Any, rows: Rows) -> str:
    """A value of the parameter that colours the lines, with the number of failed runs."""
    here = [row for row in rows if row[key] == value]
    failed = sum(row["status"] != FINISHED for row in here)
    which = "failed" if failed == len(here) else f"{failed} of {len(here)} failed"
    return value_text(value) + (f" ({which})" if failed else "")


def _cut(
    figure: plan.OverlayFigure, name: str, summary: Mapping[str, Any], series: Recording | None
) -> _Cut | None:
    window = stage_window(summary, figure.stage)
    signal = find_values(series, name) if series else None
    if window is None or signal is None:
        return None
    time, values, setpoint = signal
    end = min(window[1], window[0] + (figure.until_s or np.inf))
    inside = (time >= window[0] + figure.from_s) & (time <= end)
    if inside.sum() < 2:
        return None
    if name.endswith(("roll_deg", "pitch_deg", "yaw_deg")):  # the turn at which the stage begins
        turns = 360.0 * np.round(values[inside][0] / 360.0)
        values = values - turns
        setpoint = setpoint - turns
    return time[inside] - window[0], values[inside], setpoint[inside]


def _draw(ax: Axes, cuts: Sequence[_Cut], shade: Any) -> None:
    """Each repetition, or for many their median and the band between their extremes."""
    if not cuts:
        return
    if len(cuts) <= _MAX_LINES:
        for time, value, _ in cuts:
            ax.plot(time, value, color=shade, lw=1.1 if len(cuts) == 1 else 0.85)
    else:
        grid = np.arange(cuts[0][0][0], min(time[-1] for time, _, _ in cuts), _STEP_S)
        values = np.array([np.interp(grid, time, value) for time, value, _ in cuts])
        ax.fill_between(grid, values.min(axis=0), values.max(axis=0), color=shade, alpha=0.18, lw=0)
        ax.plot(grid, np.median(values, axis=0), color=shade, lw=1.1)
    if not any(line.get_gid() == _SETPOINT for line in ax.lines):
        time, _, setpoint = cuts[0]
        ax.plot(time, setpoint, gid=_SETPOINT, **style.SETPOINT_LINE)


# ---------- Whole studies: maps, parallel coordinates, distributions

PERCENTILES = (5, 25, 50, 75, 95)
"""Marked and named in the figure of a distribution."""

_MAX_WRITTEN = 80
"""Cells of a map whose values are written into them."""
_MAX_CELLS_NAMED = 7


def map_figure(sweep: plan.SweepSpec, figure: plan.MapFigure, rows: Rows) -> Figure:
    """Draw metrics over two parameters as coloured cells, means over everything else."""
    x = figure.x or next(iter(sweep.parameters))
    y = figure.y or next(key for key in sweep.parameters if key != x)
    fig, axes = _panels(len(figure.metrics), 2.7)
    columns, lines = (distinct([row[key] for row in rows]) for key in (x, y))
    for ax, metric in zip(axes, figure.metrics, strict=True):
        text = metric_text(metric)
        values = np.full((len(lines), len(columns)), np.nan)
        for j, i in np.ndindex(values.shape):
            cell = [row for row in rows if belongs(row, {x: columns[i], y: lines[j]})]
            numbers = [text.scale * row[metric] for row in cell if _number(row.get(metric))]
            values[j, i] = np.mean(numbers) if numbers else np.nan
        _cells(fig, ax, values, text)
        for key, axis, marks in ((x, ax.xaxis, columns), (y, ax.yaxis, lines)):
            step = -(-len(marks) // _MAX_CELLS_NAMED)
            axis.set_ticks(range(0, len(marks), step), list(map(value_text, marks[::step])))
            axis.set_label_text(sweep.label(key))
    return fig


def _cells(fig: Figure, ax: Axes, values: np.ndarray, text: Text) -> None:
    mesh = ax.pcolormesh(values, cmap=_COLOURS, shading="nearest", edgecolors="white", lw=0.4)
    ax.grid(False)
    ax.set_title(text.title)
    bar = fig.colorbar(mesh, ax=ax, label=text.axis)
    bar.outline.set_visible(False)
    if values.size > _MAX_WRITTEN:
        return
    middle = 0.5 * (np.nanmin(values) + np.nanmax(values))
    for (j, i), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = style.INK if value > middle else "white"
            ax.text(i, j, f"{value:.3g}", ha="center", va="center", fontsize=6.2, color=colour)


def parallel_figure(sweep: plan.SweepSpec, figure: plan.RunsFigure, rows: Rows) -> Figure:
    """Draw each run as a line through its parameters and metrics, coloured by the last metric."""
    metrics = figure.metrics
    whole = [row for row in rows if all(_number(row.get(m)) for m in metrics)]
    fig, (ax,) = _panels(1, 3.2)
    fig.set_figwidth(style.WIDTH_IN)
    heights = []
    labels = []
    for k, name in enumerate([*sweep.parameters, *metrics]):
        text = metric_text(name) if name in metrics else Text(sweep.label(name), "")
        column = [text.scale * row[name] if name in metrics else row[name] for row in whole]
        kinds = distinct(column)
        numeric = all(map(_number, kinds))
        numbers = np.array(column if numeric else [kinds.index(v) for v in column], float)
        low, high = float(numbers.min()), float(numbers.max())
        heights.append((numbers - low) / (high - low) if high > low else 0.5 + 0.0 * numbers)
        labels.append(fill(text.axis, 12, break_long_words=False))
        for place, end in ((-0.05, kinds[0]), (1.05, kinds[-1])):
            ax.text(k, place, value_text(end), ha="center", va="center", fontsize=6.8)
    last = metric_text(metrics[-1])
    of_last = np.array([last.scale * row[metrics[-1]] for row in whole])
    paint = ScalarMappable(Normalize(of_last.min(), of_last.max()), _COLOURS)
    alpha = max(0.25, min(0.9, 60 / len(whole)))
    for line, colour in zip(np.transpose(heights), paint.to_rgba(of_last), strict=True):
        ax.plot(line, color=colour, lw=0.9, alpha=alpha)
    ax.vlines(range(len(labels)), 0.0, 1.0, color=style.INK, lw=0.8)
    ax.set_xticks(range(len(labels)), labels)
    ax.set(yticks=[], ylim=(-0.12, 1.12), title=f"{len(whole)} runs, each a line")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.grid(False)
    fig.colorbar(paint, ax=ax, label=last.axis)
    return fig


def distribution_figure(sweep: plan.SweepSpec, figure: plan.RunsFigure, rows: Rows) -> Figure:
    """Draw how often each value of a metric came, with its percentiles."""
    fig, axes = _panels(len(figure.metrics), 2.3)
    for ax, metric in zip(axes, figure.metrics, strict=True):
        text = metric_text(metric)
        values = np.array([text.scale * r[metric] for r in rows if _number(r.get(metric))])
        ax.hist(values, bins=min(40, max(5, round(len(values) ** 0.5))), color="#9ec9e2", lw=0)
        for percent, value in zip(PERCENTILES, np.percentile(values, PERCENTILES), strict=True):
            look: style.LineStyle
            look = {"lw": 1.3, "ls": "-"} if percent == 50 else {"lw": 0.8, "ls": "--"}
            ax.axvline(value, color=style.INK, **look)
            if percent in (5, 50, 95):
                ax.text(
                    value,
                    1.01,
                    f"{percent} %\n{value:.4g}",
                    transform=ax.get_xaxis_transform(),
                    ha="center",
                    va="bottom",
                    fontsize=6.2,
                )
        ax.set_title(f"{text.title}, {len(values)} runs", pad=20)
        ax.set(xlabel=text.axis, ylabel="runs")
    return fig


# ---------- The fan of all paths

BANDS = ((5.0, 95.0), (25.0, 75.0))
"""Percentiles of the bands."""

_FEW = 0.2
"""Share of the runs that must still fly where a band is drawn."""


def fan_figure(figure: plan.FanFigure, rows: Rows, store: Store) -> Figure | None:
    """Draw where a body is over time, in bands, and each path from above; None without paths."""
    run_ids = [row["id"] for row in rows if row["status"] == FINISHED]
    runs = [s for run in run_ids if (s := store.series(run)) and figure.body in s.bodies]
    if not runs:
        return None
    whole = max(runs, key=lambda run: len(run.bodies[figure.body].time_s))
    longest = whole.bodies[figure.body].time_s
    paths = np.full((len(runs), len(longest), 3), np.nan)
    setpoint_m = np.full((len(longest), 3), np.nan)
    for path, run in zip(paths, runs, strict=True):
        track = run.bodies[figure.body]
        for k in range(3):
            path[:, k] = np.interp(longest, track.time_s, track.position_enu_m[:, k], right=np.nan)
    if figure.body in whole.setpoints:
        setpoint_m = whole.setpoints[figure.body].position_enu_m
    many = np.isfinite(paths[:, :, 0]).mean(axis=0) >= _FEW
    fig = style.new_figure(5.4)
    fig.set_layout_engine("constrained")
    axes = fig.subplot_mosaic("ax;ay;az", width_ratios=(1.0, 1.25))
    ax = axes.pop("a")
    colour = style.colour(figure.body)
    alpha = min(0.7, max(0.04, 12.0 / len(paths)))
    for path in paths:
        ax.plot(path[:, 0], path[:, 1], color=colour, lw=0.6, alpha=alpha)
    ax.plot(setpoint_m[:, 0], setpoint_m[:, 1], **style.SETPOINT_LINE)
    ax.set(
        xlabel="x, east [m]", ylabel="y, north [m]", title=f"{style.label(figure.body)}, from above"
    )
    ax.set_aspect("equal", adjustable="datalim")
    ax.locator_params(nbins=5)
    time = longest[many]
    for k, (name, axis) in enumerate(axes.items()):
        for (low, high), alpha in zip(BANDS, (0.22, 0.38), strict=True):
            ends = np.nanpercentile(paths[:, many, k], (low, high), axis=0)
            axis.fill_between(time, *ends, color=colour, alpha=alpha, lw=0)
        axis.plot(time, np.nanmedian(paths[:, many, k], axis=0), color=colour, lw=1.0)
        axis.plot(longest, setpoint_m[:, k], **style.SETPOINT_LINE)
        axis.set_ylabel(f"{name} [m]")
        axis.margins(x=0.0)
        axis.sharex(axes["z"])
        axis.tick_params(labelbottom=name == "z")
    axes["z"].set_xlabel("time [s]")
    handles = [
        Patch(color=colour, alpha=alpha, label=f"{low:g} to {high:g} %", lw=0)
        for (low, high), alpha in zip(BANDS, (0.22, 0.5), strict=True)
    ]
    median = Line2D([], [], color=colour, lw=1.0, label="median")
    _legend(fig, [*handles, median, style.setpoint_handle()])
    return fig


def write_figures(sweep: plan.SweepSpec, rows: Rows, store: Store) -> list[Path]:
    """Draw the figures asked for, or the usual ones, of which there are data; the files."""
    if not any(row["status"] == FINISHED for row in rows):
        return []
    folder = store.folder / "figures"
    folder.mkdir(exist_ok=True)
    paths: list[Path] = []
    with styled():
        for name, figure in _named(sweep.figures or _usual(sweep, rows)):
            fig = _drawn(sweep, figure, rows, store)
            if fig is not None:
                paths.append(folder / f"{name}.png")
                save(fig, paths[-1])
    return paths


def _drawn(sweep: plan.SweepSpec, figure: Any, rows: Rows, store: Store) -> Figure | None:
    if isinstance(figure, plan.OverlayFigure):
        return overlay_figure(sweep, figure, rows, store)
    if isinstance(figure, plan.FanFigure):
        return fan_figure(figure, rows, store)
    if isinstance(figure, plan.MetricFigure):
        return metric_figure(sweep, figure, rows)
    metrics = tuple(m for m in figure.metrics if any(_number(row.get(m)) for row in rows))
    if not metrics:
        return None
    draw: dict[str, Callable[..., Figure]]
    draw = {"map": map_figure, "parallel": parallel_figure, "distribution": distribution_figure}
    return draw[figure.kind](sweep, replace(figure, metrics=metrics), rows)


def _named(figures: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Figures with file names of their own."""
    earlier_names: set[str] = set()
    for figure in figures:
        usual = {"overlay": "overlay_{stage}", "metric": "metrics"}.get(figure.kind, figure.kind)
        base = figure.name or file_name(usual.format(stage=getattr(figure, "stage", "")))
        name = next(
            n for n in (base, *(f"{base}_{k}" for k in range(2, 1000))) if n not in earlier_names
        )
        earlier_names.add(name)
        yield name, figure


def _usual(sweep: plan.SweepSpec, rows: Rows) -> Iterator[Any]:
    """The metrics asked for, the load's mean errors and the speed.

    Over each parameter; besides, over two parameters as a map, over more as parallel coordinates,
    and of random draws their distribution and the fan of the load's paths.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    extra_columns = [metric.column for metric in sweep.metrics if metric.column in columns]
    errors = [
        tuple(c for c in columns if c.startswith("errors.load.") and c.endswith(kind))
        for kind in (".translational_error_m", ".geodesic_error_deg")
    ]
    panels = [(c,) for c in extra_columns] + [panel for panel in errors if panel]
    panels += [(c,) for c in ("max_tension_n", "real_time_factor") if c in columns]
    is_random = not isinstance(sweep.sampling, plan.Grid)
    whole = tuple(dict.fromkeys([*(c for panel in errors for c in panel[:1]), *extra_columns]))
    if len(sweep.parameters) == 2 and not is_random and whole:
        yield plan.MapFigure(name="map", metrics=whole)
    if len(sweep.parameters) > 2 and whole:
        yield plan.RunsFigure(kind="parallel", name="parallel", metrics=whole)
    if is_random and whole:
        more = ["max_tension_n"] if "max_tension_n" in columns else []
        metrics = tuple(dict.fromkeys([*whole, *more]))
        yield plan.RunsFigure(kind="distribution", name="distribution", metrics=metrics)
    if is_random:
        yield plan.FanFigure()
    for key in sweep.parameters:
        name = f"over_{key.rsplit('.', 1)[-1]}"
        yield plan.MetricFigure(name=name, x=key, panels=tuple(panels))
