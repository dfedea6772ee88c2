"""Figures of whole studies: maps over two parameters, parallel coordinates, distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from musls_analysis.figures import style
from musls_analysis.sweep import labels
from musls_analysis.sweep.spec import DistributionFigure, MapFigure, ParallelFigure, SweepSpec

Rows = Sequence[Mapping[str, Any]]

PERCENTILES = (5, 25, 50, 75, 95)
"""That a distribution's figure marks and names."""

_COLOURS = "viridis"
_MOST_WRITTEN = 80
"""Cells of a map whose values are written into them."""
_MOST_TICKS = 7


def map_figure(sweep: SweepSpec, figure: MapFigure, rows: Rows) -> Figure | None:
    """Draw metrics over two parameters as coloured cells, means over everything else.

    Args:
        sweep: The sweep.
        figure: What to show.
        rows: The table.
    """
    x, y = figure.x, figure.y
    keys = list(sweep.parameters)
    x = x or keys[0]
    y = y or next(key for key in keys if key != x)
    metrics = [m for m in figure.metrics if any(_number(row.get(m)) for row in rows)]
    if not metrics:
        return None
    columns = min(len(metrics), 2)
    lines = -(-len(metrics) // columns)
    drawn = style.new_figure(0.5 + 2.7 * lines, style.WIDTH_IN if columns > 1 else 4.6)
    axes = np.atleast_1d(drawn.subplots(lines, columns)).ravel()
    places = [labels.distinct([row[key] for row in rows]) for key in (x, y)]
    for ax, metric in zip(axes, metrics, strict=False):
        text = labels.metric_text(metric)
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
            named = labels.ParameterText(sweep, key)
            step = -(-len(marks) // _MOST_TICKS)
            axis.set_ticks(range(0, len(marks), step), [named.value(v) for v in marks[::step]])
            axis.set_label_text(named.axis)
    for ax in axes[len(metrics) :]:
        ax.set_visible(False)
    style.margins(drawn, 0.6, 0.6, 0.45, 0.35, wspace=0.5, hspace=0.5)
    return drawn


def _cells(drawn: Figure, ax: Axes, values: np.ndarray, text: labels.Text) -> None:
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
    """Draw each run as a line through its parameters and metrics, coloured by the last metric.

    Args:
        sweep: The sweep.
        figure: What to show.
        rows: The table.
    """
    metrics = [m for m in figure.metrics if any(_number(row.get(m)) for row in rows)]
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
        kinds = labels.distinct(column)
        numeric = all(_number(v) for v in column)
        numbers = np.array(column if numeric else [kinds.index(v) for v in column], float)
        low, high = float(numbers.min()), float(numbers.max())
        heights[:, k] = (numbers - low) / (high - low) if high > low else 0.5
        scale = labels.metric_text(name).scale if name in metrics else 1.0
        ends = [f"{scale * v:.4g}" for v in (low, high)] if numeric else [kinds[0], kinds[-1]]
        for place, text in zip((-0.05, 1.05), map(str, ends), strict=True):
            ax.text(k, place, text, ha="center", va="center", fontsize=6.8)
    of_last = np.array([labels.metric_text(metrics[-1]).scale * r[metrics[-1]] for r in whole])
    norm = Normalize(float(of_last.min()), float(of_last.max()))
    paint = matplotlib.colormaps[_COLOURS]
    for line, value in zip(heights, of_last, strict=True):
        ax.plot(line, color=paint(norm(value)), lw=0.9, alpha=max(0.25, min(0.9, 60 / len(whole))))
    ax.vlines(range(len(names)), 0.0, 1.0, color=style.INK, lw=0.8)
    texts = [
        labels.metric_text(n).axis if n in metrics else labels.ParameterText(sweep, n).name
        for n in names
    ]
    ax.set_xticks(range(len(names)), [_folded(text) for text in texts])
    ax.set(yticks=[], ylim=(-0.12, 1.12), title=f"{len(whole)} runs, each a line")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.grid(False)
    bar = drawn.colorbar(ScalarMappable(norm, paint), ax=ax, fraction=0.03, pad=0.03)
    bar.set_label(labels.metric_text(metrics[-1]).axis)
    return drawn


def distribution_figure(sweep: SweepSpec, figure: DistributionFigure, rows: Rows) -> Figure | None:
    """Draw how often each value of a metric came, with its percentiles.

    Args:
        sweep: The sweep.
        figure: What to show.
        rows: The table.
    """
    metrics = [m for m in figure.metrics if any(_number(row.get(m)) for row in rows)]
    if not metrics:
        return None
    columns = min(len(metrics), 2)
    lines = -(-len(metrics) // columns)
    drawn = style.new_figure(0.4 + 2.3 * lines, style.WIDTH_IN if columns > 1 else 4.6)
    axes = np.atleast_1d(drawn.subplots(lines, columns)).ravel()
    style.margins(drawn, 0.62, 0.2, 0.48, 0.45, wspace=0.27, hspace=0.75)
    for ax, metric in zip(axes, metrics, strict=False):
        text = labels.metric_text(metric)
        values = np.array([text.scale * r[metric] for r in rows if _number(r.get(metric))])
        ax.hist(values, bins=min(40, max(5, round(len(values) ** 0.5))), color="#9ec9e2", lw=0)
        found = np.percentile(values, PERCENTILES)
        for percent, value in zip(PERCENTILES, found, strict=True):
            middle = percent == 50
            ax.axvline(
                value, color=style.INK, lw=1.3 if middle else 0.8, ls="-" if middle else "--"
            )
        above = ax.get_xaxis_transform()
        for percent, value in zip((5, 50, 95), found[[0, 2, 4]], strict=True):
            ax.text(
                value, 1.01, f"{percent} %\n{value:.4g}", transform=above, ha="center", va="bottom",
                fontsize=6.2,
            )  # fmt: skip
        ax.set_title(f"{_title(text)}, {len(values)} runs", pad=20)
        ax.set(xlabel=text.axis, ylabel="runs")
    for ax in axes[len(metrics) :]:
        ax.set_visible(False)
    return drawn


def _title(text: labels.Text) -> str:
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


def _number(value: Any) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))
    )
