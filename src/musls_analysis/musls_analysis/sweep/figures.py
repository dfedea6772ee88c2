"""Draws the figures of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, ScalarFormatter
from numpy.typing import NDArray

from musls_analysis.figures import style
from musls_analysis.figures.style import save, styled
from musls_analysis.sweep.plan import (
    DistributionFigure,
    Grid,
    MapFigure,
    MetricFigure,
    OverlayFigure,
    ParallelFigure,
    SweepSpec,
)
from musls_analysis.sweep.store import FAILED, FINISHED, Store, signal, stage_window

# ---------- Names, units and colours

_UNITS = {"_m": "m", "_deg": "°", "_n": "N", "_s": "s", "_us": "µs"}
_MILLIMETRES = "translational_error"
_SPECIAL = {
    "real_time_factor": "speed [times real time]",
    "refined_periods": "refined control periods",
    "step_size_s": "time step [s]",
}
_SMALL = 0.05
"""Parameters whose values are all smaller are shown with a power of ten."""
_PAPER_GAP = 0.13  # of the colour map at its light end, too faint on white


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
    what, scale = what.removesuffix(suffix), 1.0
    if what.startswith(_MILLIMETRES):
        unit, scale = "mm", 1000.0
    name = what.replace("_error_max", " error, greatest").replace("_", " ")
    series = ", ".join(places) if places else name
    return Text(f"{name} [{unit}]" if unit else name, series, scale)


def signal_text(name: str) -> str:
    """Axis of a signal, e.g. "load yaw [°]" for "load.yaw_deg"."""
    body, _, kind = name.partition(".")
    text = metric_text(kind)
    return f"{style.label(body)} {text.axis.replace('[mm]', '[m]')}"


def _number(value: Any) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))
    )


def _known(metrics: Sequence[str], rows: Rows) -> list[str]:
    """Those metrics that some run has."""
    return [m for m in metrics if any(_number(row.get(m)) for row in rows)]


def _panels(count: int, first_in: float, panel_in: float) -> tuple[Figure, np.ndarray]:
    """Figure of panels in at most two columns; places that are left over stay empty."""
    columns = min(count, 2)
    lines = -(-count // columns)
    width_in = style.WIDTH_IN if columns > 1 else 4.6
    drawn = style.new_figure(first_in + panel_in * lines, width_in)
    axes = np.atleast_1d(drawn.subplots(lines, columns)).ravel()
    for ax in axes[count:]:
        ax.set_visible(False)
    return drawn, axes[:count]


def value_text(value: Any) -> str:
    """A parameter's value, short."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        if value and not 1e-3 <= abs(value) < 1e5:
            mantissa, _, exponent = f"{value:.3e}".partition("e")
            return rf"${float(mantissa):g}\times10^{{{int(exponent)}}}$"
        return f"{value:.4g}"
    return str(value)


class ParameterText:
    """How a parameter is shown: small numbers with a common power of ten in the unit."""

    def __init__(self, sweep: SweepSpec, key: str) -> None:
        parameter, self.key = sweep.parameters[key], key
        name, bracket, unit = sweep.label(key).partition(" [")
        self.name = name
        self.exponent = 0
        values = parameter.values if parameter.values is not None else (parameter.max,)
        if all(_number(v) for v in values):
            largest = max(abs(v) for v in values)
            if 0.0 < largest < _SMALL:
                self.exponent = 3 * round(float(np.log10(largest)) / 3.0)
        power = rf"$10^{{{self.exponent}}}$" if self.exponent else ""
        self.axis = name
        if power or bracket:
            self.axis += f" [{' '.join(filter(None, (power, unit.removesuffix(']'))))}]"

    def value(self, value: Any) -> str:
        """A value in the unit of `axis`."""
        return value_text(value * 10.0**-self.exponent if self.exponent else value)


def group_text(sweep: SweepSpec, group: Mapping[str, Any]) -> str:
    """Values of some parameters, with their units."""
    parts = []
    for key, value in group.items():
        text = ParameterText(sweep, key)
        unit = text.axis.removeprefix(text.name).strip(" []")
        shown = text.value(value)
        if text.exponent and value:
            shown += f"\N{MULTIPLICATION SIGN}{unit}"
        elif _number(value) and unit and not text.exponent:
            shown += f" {unit}"
        parts.append(f"{text.name} {shown}")
    return ", ".join(parts)


def line_shades(count: int) -> list[Any]:
    """Colours from dark to light for ordered values."""
    places = np.linspace(0.0, 1.0 - _PAPER_GAP, count) if count > 1 else [0.3]
    return [matplotlib.colormaps["viridis"](place) for place in places]


def distinct(values: Sequence[Any]) -> list[Any]:
    """Distinct values, numbers in their order, others as they come."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    if all(_number(v) for v in found):
        found.sort()
    return found


def combinations(sweep: SweepSpec, rows: Rows, without: str) -> list[dict[str, Any]]:
    """Combinations of all parameters but one that occur; one empty if there is no other."""
    others = [key for key in sweep.parameters if key != without]
    return distinct([{key: row[key] for key in others} for row in rows])


def belongs(row: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Whether a row has these values."""
    return all(row[key] == value for key, value in group.items())


# ---------- Metrics over a parameter

_FAILED: style.Look = {"color": style.EVENT, "marker": "x", "ls": "", "ms": 5.0, "mew": 1.4}
_LOG_FROM = 8.0
"""Ratio of largest to smallest value from which an axis is logarithmic."""
_MARKERS = "osD^vP"
_MOST_TICKS = 25


class _Axis:
    """Places of a parameter's values along an axis."""

    def __init__(self, sweep: SweepSpec, key: str, rows: Rows) -> None:
        self.values = distinct([row[key] for row in rows])
        self.numeric = all(type(v) in (int, float) for v in self.values)
        ends = (min(self.values), max(self.values)) if self.numeric else (0, 0)
        self.log = ends[0] > 0 and (sweep.parameters[key].log or ends[1] / ends[0] >= _LOG_FROM)
        self._text = ParameterText(sweep, key)

    def place(self, row: Mapping[str, Any]) -> float:
        value = row[self._text.key]
        return float(value) if self.numeric else float(self.values.index(value))

    def set_up(self, ax: Axes, *, named: bool) -> None:
        if named:
            ax.set_xlabel(self._text.axis)
        if self.log:
            ax.set_xscale("log")
        if not self.numeric:
            ax.set_xticks(range(len(self.values)), [self._text.value(v) for v in self.values])
            ax.set_xlim(-0.5, len(self.values) - 0.5)
        else:
            self._tick_at_values(ax)

    def _tick_at_values(self, ax: Axes) -> None:
        """Ticks at all values if few, texts at those that have room."""
        if len(self.values) > _MOST_TICKS:
            return
        places = np.log(self.values) if self.log else np.array(self.values, float)
        width_in = 0.9 * style.size_in(ax)[0]
        inches = (places - places[0]) / max(np.ptp(places), 1e-12) * width_in
        texts, last = [], -np.inf
        for value, place in zip(self.values, inches, strict=True):
            text = self._text.value(value)
            fits = place - last >= 0.1 + 0.06 * len(text)
            texts.append(text if fits else "")
            last = place if fits else last
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticks(self.values, texts)


def metric_figure(sweep: SweepSpec, figure: MetricFigure, rows: Rows) -> Figure:
    """Draw metrics over a parameter."""
    key = figure.x or next(iter(sweep.parameters))
    axis = _Axis(sweep, key, rows)
    grid = isinstance(sweep.sampling, Grid)
    groups = combinations(sweep, rows, key) if grid else [{}]
    drawn, axes = _panels(len(figure.panels), 0.85, 2.4)
    handles: dict[str, Line2D] = {}
    for ax, panel in zip(axes, figure.panels, strict=True):
        curves = [(metric, group) for metric in panel for group in groups]
        for k, (metric, group) in enumerate(curves):
            text = metric_text(metric)
            names = [text.series] if len(panel) > 1 else []
            names += [group_text(sweep, group)] if len(groups) > 1 else []
            look: style.Look = {
                "color": style.colour(f"drone_{k + 1}"),
                "marker": _MARKERS[k % len(_MARKERS)],
            }
            chosen = [row for row in rows if belongs(row, group)]
            _curve(ax, axis, chosen, metric, text.scale, look, grid)
            name = ", ".join(names)
            if name:
                handles.setdefault(name, Line2D([], [], lw=1.3, ms=3.5, label=name, **look))
        text = metric_text(panel[0])
        ax.set_ylabel(text.axis)
        ax.set_title(text.series if len(panel) == 1 else text.axis.partition(" [")[0])
        ax.set_yscale("log" if figure.log else "linear")
    top = _legend(drawn, handles, rows)
    style.margins(drawn, 0.62, 0.15, 0.48, top + 0.15, wspace=0.27, hspace=0.25)
    for k, ax in enumerate(axes):
        _finish(ax, axis, rows, named=k + min(len(axes), 2) >= len(axes))
    return drawn


def _curve(
    ax: Axes, axis: _Axis, rows: Rows, metric: str, scale: float, look: style.Look, grid: bool
) -> None:
    """One metric of one group."""
    found = [(axis.place(r), scale * r[metric]) for r in rows if r.get(metric) is not None]
    if not found:
        return
    x, y = np.array(found, float).T
    if not grid:
        ax.plot(x, y, ls="", ms=3.2, alpha=0.75, mec="white", mew=0.3, **look)
        return
    places = np.unique(x)
    samples = [y[x == place] for place in places]
    mean = np.array([s.mean() for s in samples])
    ax.plot(places, mean, lw=1.3, ms=3.8, mec="white", mew=0.4, zorder=4, **look)
    if max(map(len, samples)) > 1:
        low = mean - [s.min() for s in samples]
        high = [s.max() for s in samples] - mean
        ax.errorbar(
            places, mean, [low, high], ls="", color=look["color"], elinewidth=0.9, capsize=2.0,
            alpha=0.8,
        )  # fmt: skip
        ax.plot(x, y, ls="", marker=".", ms=3.0, color=look["color"], alpha=0.4)


def _legend(drawn: Figure, handles: dict[str, Line2D], rows: Rows) -> float:
    """Put the legend on top; gives the height it takes [in]."""
    shown = list(handles.values())
    if any(row["status"] == FAILED for row in rows):
        shown.append(Line2D([], [], **_FAILED, label="failed runs, of all there"))
    return style.legend_on_top(drawn, shown) if shown else 0.15


def _finish(ax: Axes, axis: _Axis, rows: Rows, *, named: bool) -> None:
    """Scales, limits, and failed runs with their number above the curves."""
    axis.set_up(ax, named=named)
    failed = [axis.place(row) for row in rows if row["status"] == FAILED]
    if ax.get_yscale() == "log":
        ax.yaxis.set_major_formatter(ScalarFormatter())
    else:
        low, high = min(0.0, ax.get_ylim()[0]), ax.get_ylim()[1]
        ax.set_ylim(low, high + (0.17 if failed else 0.03) * (high - low))
    everywhere = [axis.place(row) for row in rows]
    for place in sorted(set(failed)):
        above = ax.get_xaxis_transform()
        ax.plot(place, 0.91, transform=above, zorder=5, **_FAILED)
        ax.annotate(
            f"{failed.count(place)}/{everywhere.count(place)}", (place, 0.94), xycoords=above,
            ha="center", va="bottom", fontsize=6.0, color=_FAILED["color"],
        )  # fmt: skip


# ---------- Signals of many runs over the time since a stage began (as Fig. 6 of the paper)

_MOST_IN_LEGEND = 8
_MOST_LINES = 5
_STEP_S = 0.02
_SETPOINT = "setpoint"
"""Marks the set-point's line, which is drawn once per panel."""


_Cut = tuple[NDArray, NDArray, NDArray]
"""A signal within a stage: time since its beginning, values, set-point, (T,) each."""


def overlay_figure(
    sweep: SweepSpec, figure: OverlayFigure, rows: Rows, store: Store
) -> Figure | None:
    """Draw signals of all runs; None if no run has them."""
    key = figure.by or next(iter(sweep.parameters))
    values = distinct([row[key] for row in rows])
    groups = combinations(sweep, rows, key) if isinstance(sweep.sampling, Grid) else [{}]
    drawn = style.new_figure(
        0.85 + 1.75 * len(figure.signals), style.WIDTH_IN if len(groups) < 3 else 10.0
    )
    axes = drawn.subplots(
        len(figure.signals), len(groups), sharex=True, sharey="row", squeeze=False
    )
    found, shades = False, line_shades(len(values))
    for column, group in enumerate(groups):
        for value, shade in zip(values, shades, strict=True):
            chosen = [r for r in rows if belongs(r, {**group, key: value, "status": FINISHED})]
            records = filter(None, (store.record(row["id"]) for row in chosen))
            runs = [(record["summary"], store.series(record["id"])) for record in records]
            for ax, name in zip(axes[:, column], figure.signals, strict=True):
                cuts = [cut for run in runs if (cut := _cut(figure, name, *run)) is not None]
                found |= bool(cuts)
                _draw(ax, cuts, shade)
        if len(groups) > 1:
            axes[0, column].set_title(group_text(sweep, group))
    for ax, name in zip(axes[:, 0], figure.signals, strict=True):
        ax.set_ylabel(signal_text(name))
    drawn.align_ylabels(axes[:, 0])
    for ax in axes[-1]:
        ax.set_xlabel(f"time in stage {style.label(figure.stage)} [s]")
        ax.margins(x=0.0)
    text = ParameterText(sweep, key)
    named = list(zip(shades, [_with_failed(text, value, rows) for value in values], strict=True))
    few = len(named) <= _MOST_IN_LEGEND
    handles = [Line2D([], [], color=c, lw=1.8, label=name) for c, name in named] if few else []
    top = style.legend_on_top(drawn, [*handles, style.setpoint_handle()])
    top += 0.2 if len(groups) > 1 else 0.02
    if few:
        drawn.legends[-1].set_title(text.axis, prop=FontProperties(size=7.5))
        top += 0.17
    style.margins(drawn, 0.62, 0.15, 0.45, top, wspace=0.08, hspace=0.12)
    if not few:
        norm = BoundaryNorm(np.arange(len(shades) + 1) - 0.5, len(shades))
        coloured = ScalarMappable(norm, ListedColormap(shades))
        bar = drawn.colorbar(coloured, ax=list(axes.flat), pad=0.02, aspect=35)
        shown = np.unique(np.linspace(0, len(named) - 1, min(len(named), 10)).round().astype(int))
        bar.set_ticks(shown.tolist(), labels=[named[i][1] for i in shown])
        bar.set_label(text.axis)
        bar.ax.minorticks_off()
    return drawn if found else None


def _with_failed(text: ParameterText, value: Any, rows: Rows) -> str:
    """A value of the parameter that colours the lines, with the number of failed runs."""
    here = [row for row in rows if row[text.key] == value]
    failed = sum(row["status"] != FINISHED for row in here)
    which = "failed" if failed == len(here) else f"{failed} of {len(here)} failed"
    return text.value(value) + (f" ({which})" if failed else "")


def _cut(
    figure: OverlayFigure, name: str, summary: Mapping[str, Any], series: Mapping[str, NDArray]
) -> _Cut | None:
    window, found = stage_window(summary, figure.stage), signal(series, name)
    if window is None or found is None:
        return None
    time, values, setpoint = found
    end = min(window[1], window[0] + (figure.until_s or np.inf))
    inside = (time >= window[0] + figure.from_s) & (time <= end)
    if inside.sum() < 2:
        return None
    if name.endswith(("roll_deg", "pitch_deg", "yaw_deg")):  # the turn at which the stage begins
        turns = 360.0 * np.round(values[inside][0] / 360.0)
        values, setpoint = values - turns, setpoint - turns
    return time[inside] - window[0], values[inside], setpoint[inside]


def _draw(ax: Axes, cuts: Sequence[_Cut], shade: Any) -> None:
    """Each repetition, or for many their median and the band between their extremes."""
    if not cuts:
        return
    if len(cuts) <= _MOST_LINES:
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
"""That a distribution's figure marks and names."""

_COLOURS = "viridis"
_MOST_WRITTEN = 80
"""Cells of a map whose values are written into them."""
_MOST_CELLS_NAMED = 7


def map_figure(sweep: SweepSpec, figure: MapFigure, rows: Rows) -> Figure | None:
    """Draw metrics over two parameters as coloured cells, means over everything else."""
    keys = list(sweep.parameters)
    x = figure.x or keys[0]
    y = figure.y or next(key for key in keys if key != x)
    metrics = _known(figure.metrics, rows)
    if not metrics:
        return None
    drawn, axes = _panels(len(metrics), 0.5, 2.7)
    places = [distinct([row[key] for row in rows]) for key in (x, y)]
    for ax, metric in zip(axes, metrics, strict=True):
        text = metric_text(metric)
        values = np.full((len(places[1]), len(places[0])), np.nan)
        for j, i in np.ndindex(values.shape):
            found = [
                text.scale * row[metric]
                for row in rows
                if row[x] == places[0][i] and row[y] == places[1][j] and _number(row.get(metric))
            ]
            values[j, i] = np.mean(found) if found else np.nan
        _cells(drawn, ax, values, text)
        for key, axis, marks in ((x, ax.xaxis, places[0]), (y, ax.yaxis, places[1])):
            named = ParameterText(sweep, key)
            step = -(-len(marks) // _MOST_CELLS_NAMED)
            axis.set_ticks(range(0, len(marks), step), [named.value(v) for v in marks[::step]])
            axis.set_label_text(named.axis)
    style.margins(drawn, 0.6, 0.6, 0.45, 0.35, wspace=0.5, hspace=0.5)
    return drawn


def _cells(drawn: Figure, ax: Axes, values: np.ndarray, text: Text) -> None:
    mesh = ax.pcolormesh(values, cmap=_COLOURS, shading="nearest", edgecolors="white", lw=0.4)
    ax.grid(False)
    ax.set_title(_title(text))
    bar = drawn.colorbar(mesh, ax=ax, fraction=0.05, pad=0.03)
    bar.outline.set_visible(False)
    bar.set_label(text.axis)
    if values.size > _MOST_WRITTEN:
        return
    middle = 0.5 * (np.nanmin(values) + np.nanmax(values))
    for (j, i), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = style.INK if value > middle else "white"
            ax.text(i, j, f"{value:.3g}", ha="center", va="center", fontsize=6.2, color=colour)


def parallel_figure(sweep: SweepSpec, figure: ParallelFigure, rows: Rows) -> Figure | None:
    """Draw each run as a line through its parameters and metrics, coloured by the last metric."""
    metrics = _known(figure.metrics, rows)
    if not metrics:
        return None
    whole = [row for row in rows if all(_number(row.get(m)) for m in metrics)]
    names = [*sweep.parameters, *metrics]
    drawn = style.new_figure(3.6)
    ax = drawn.subplots()
    style.margins(drawn, 0.4, 0.75, 0.75, 0.5)
    heights = np.empty((len(whole), len(names)))
    for k, name in enumerate(names):
        column = [row[name] for row in whole]
        kinds = distinct(column)
        numeric = all(_number(v) for v in column)
        numbers = np.array(column if numeric else [kinds.index(v) for v in column], float)
        low, high = float(numbers.min()), float(numbers.max())
        heights[:, k] = (numbers - low) / (high - low) if high > low else 0.5
        scale = metric_text(name).scale if name in metrics else 1.0
        ends = [f"{scale * v:.4g}" for v in (low, high)] if numeric else [kinds[0], kinds[-1]]
        for place, text in zip((-0.05, 1.05), map(str, ends), strict=True):
            ax.text(k, place, text, ha="center", va="center", fontsize=6.8)
    of_last = np.array([metric_text(metrics[-1]).scale * r[metrics[-1]] for r in whole])
    norm = Normalize(float(of_last.min()), float(of_last.max()))
    paint = matplotlib.colormaps[_COLOURS]
    for line, value in zip(heights, of_last, strict=True):
        ax.plot(line, color=paint(norm(value)), lw=0.9, alpha=max(0.25, min(0.9, 60 / len(whole))))
    ax.vlines(range(len(names)), 0.0, 1.0, color=style.INK, lw=0.8)
    texts = [metric_text(n).axis if n in metrics else ParameterText(sweep, n).axis for n in names]
    ax.set_xticks(range(len(names)), [_folded(text) for text in texts])
    ax.set(yticks=[], ylim=(-0.12, 1.12), title=f"{len(whole)} runs, each a line")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.grid(False)
    bar = drawn.colorbar(ScalarMappable(norm, paint), ax=ax, fraction=0.03, pad=0.03)
    bar.set_label(metric_text(metrics[-1]).axis)
    return drawn


def distribution_figure(sweep: SweepSpec, figure: DistributionFigure, rows: Rows) -> Figure | None:
    """Draw how often each value of a metric came, with its percentiles."""
    metrics = _known(figure.metrics, rows)
    if not metrics:
        return None
    drawn, axes = _panels(len(metrics), 0.4, 2.3)
    style.margins(drawn, 0.62, 0.2, 0.48, 0.45, wspace=0.27, hspace=0.75)
    for ax, metric in zip(axes, metrics, strict=True):
        text = metric_text(metric)
        values = np.array([text.scale * r[metric] for r in rows if _number(r.get(metric))])
        ax.hist(values, bins=min(40, max(5, round(len(values) ** 0.5))), color="#9ec9e2", lw=0)
        for percent, value in zip(PERCENTILES, np.percentile(values, PERCENTILES), strict=True):
            look = {"lw": 1.3, "ls": "-"} if percent == 50 else {"lw": 0.8, "ls": "--"}
            ax.axvline(value, color=style.INK, **look)
            if percent in (5, 50, 95):
                ax.text(
                    value, 1.01, f"{percent} %\n{value:.4g}", transform=ax.get_xaxis_transform(),
                    ha="center", va="bottom", fontsize=6.2,
                )  # fmt: skip
        ax.set_title(f"{_title(text)}, {len(values)} runs", pad=20)
        ax.set(xlabel=text.axis, ylabel="runs")
    return drawn


def _title(text: Text) -> str:
    name = text.axis.partition(" [")[0]
    return name if text.series in ("", name) else f"{name}: {text.series}"


def _folded(text: str) -> str:
    """A text on short lines."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) > 12:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def write_figures(sweep: SweepSpec, rows: Rows, store: Store) -> list[Path]:
    """Draw the figures that were asked for, or the usual ones; give the files written.

    A figure without any data is left out.
    """
    if not any(row["status"] == FINISHED for row in rows):
        return []
    folder = store.folder / "figures"
    folder.mkdir(exist_ok=True)
    written: list[Path] = []
    with styled():
        for name, figure in _named(sweep.figures or _usual(sweep, rows)):
            drawn = _drawn(sweep, figure, rows, store)
            if drawn is not None:
                written.append(folder / f"{name}.png")
                save(drawn, written[-1])
    return written


def _drawn(sweep: SweepSpec, figure: Any, rows: Rows, store: Store) -> Figure | None:
    if isinstance(figure, OverlayFigure):
        return overlay_figure(sweep, figure, rows, store)
    draw: dict[str, Callable[..., Figure | None]]
    draw = {"map": map_figure, "parallel": parallel_figure, "distribution": distribution_figure}
    return draw.get(figure.kind, metric_figure)(sweep, figure, rows)


def _named(figures: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Figures with file names of their own."""
    used: set[str] = set()
    for figure in figures:
        usual = {"overlay": "overlay_{stage}", "metric": "metrics"}.get(figure.kind, figure.kind)
        base = figure.name or usual.format(stage=getattr(figure, "stage", ""))
        name = next(n for n in (base, *(f"{base}_{k}" for k in range(2, 1000))) if n not in used)
        used.add(name)
        yield name, figure


def _usual(sweep: SweepSpec, rows: Rows) -> Iterator[Any]:
    """The metrics asked for, the load's mean errors and the speed.

    Over each parameter; besides, over two parameters as a map, over more as parallel coordinates,
    and of random draws their distribution.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    asked = [metric.column for metric in sweep.metrics if metric.column in columns]
    errors = [
        tuple(c for c in columns if c.startswith("errors.load.") and c.endswith(kind))
        for kind in (".translational_error_m", ".geodesic_error_deg")
    ]
    panels = [(c,) for c in asked] + [panel for panel in errors if panel]
    panels += [(c,) for c in ("max_tension_n", "real_time_factor") if c in columns]
    drawn = not isinstance(sweep.sampling, Grid)
    whole = tuple(dict.fromkeys([*(c for panel in errors for c in panel[:1]), *asked]))
    if len(sweep.parameters) == 2 and not drawn and whole:
        yield MapFigure(name="map", metrics=whole)
    if len(sweep.parameters) > 2 and whole:
        yield ParallelFigure(name="parallel", metrics=whole)
    if drawn and whole:
        more = ("max_tension_n",) if "max_tension_n" in columns else ()
        yield DistributionFigure(name="distribution", metrics=tuple(dict.fromkeys(whole + more)))
    for key in sweep.parameters:
        name = f"over_{key.rsplit('.', 1)[-1]}"
        yield MetricFigure(name=name, x=key, panels=tuple(panels))
