"""Metrics over a parameter: repetitions as dots, their mean as a line, their range as a bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, ScalarFormatter

from musls_analysis.figures import style
from musls_analysis.sweep import labels
from musls_analysis.sweep.spec import Grid, MetricFigure, SweepSpec
from musls_analysis.sweep.store import FAILED

Rows = Sequence[Mapping[str, Any]]

_FAILED: style.Look = {"color": "#cf222e", "marker": "x", "ls": "", "ms": 5.0, "mew": 1.4}
_LOG_FROM = 8.0
"""Ratio of largest to smallest value from which an axis is logarithmic."""
_MARKERS = "osD^vP"
_MOST_TICKS = 25


class _Axis:
    """Places of a parameter's values along an axis."""

    def __init__(self, sweep: SweepSpec, key: str, rows: Rows) -> None:
        self.values = labels.distinct([row[key] for row in rows])
        self.numeric = all(type(v) in (int, float) for v in self.values)
        ends = (min(self.values), max(self.values)) if self.numeric else (0, 0)
        self.log = ends[0] > 0 and (sweep.parameters[key].log or ends[1] / ends[0] >= _LOG_FROM)
        self._key, self._text = key, labels.ParameterText(sweep, key)

    def place(self, row: Mapping[str, Any]) -> float:
        value = row[self._key]
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
        width_in = 0.9 * ax.get_position().width * style.size_in(ax)[0]
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
    """Draw metrics over a parameter.

    Args:
        sweep: The sweep.
        figure: What to show.
        rows: The table.
    """
    key = figure.x or next(iter(sweep.parameters))
    axis = _Axis(sweep, key, rows)
    grid = isinstance(sweep.sampling, Grid)
    groups = labels.groups(sweep, rows, key) if grid else [{}]
    count = len(figure.panels)
    columns = min(count, 2)
    lines = -(-count // columns)
    drawn = style.new_figure(0.85 + 2.4 * lines, style.WIDTH_IN if columns > 1 else 4.6)
    axes = np.atleast_1d(drawn.subplots(lines, columns)).ravel()
    handles: dict[str, Line2D] = {}
    for ax, panel in zip(axes, figure.panels, strict=False):
        curves = [(metric, group) for metric in panel for group in groups]
        for k, (metric, group) in enumerate(curves):
            text = labels.metric_text(metric)
            names = [text.series] if len(panel) > 1 else []
            names += [labels.group_text(sweep, group)] if len(groups) > 1 else []
            look: style.Look = {
                "color": style.colour(f"drone_{k + 1}"),
                "marker": _MARKERS[k % len(_MARKERS)],
            }
            chosen = [row for row in rows if labels.belongs(row, group)]
            _curve(ax, axis, chosen, metric, text.scale, look, grid)
            name = ", ".join(names)
            if name:
                handles.setdefault(name, Line2D([], [], lw=1.3, ms=3.5, label=name, **look))
        text = labels.metric_text(panel[0])
        ax.set_ylabel(text.axis)
        ax.set_title(text.series if len(panel) == 1 else text.axis.partition(" [")[0])
        ax.set_yscale("log" if figure.log else "linear")
    top = _legend(drawn, handles, rows)
    style.margins(drawn, 0.62, 0.15, 0.48, top + 0.15, wspace=0.27, hspace=0.25)
    for k, ax in enumerate(axes[:count]):
        _finish(ax, axis, rows, named=k + columns >= count)
    for ax in axes[count:]:
        ax.set_visible(False)
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
