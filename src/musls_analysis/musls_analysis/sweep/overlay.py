"""Signals of many runs over the time since a stage began (as Fig. 6 of the seed paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from musls_analysis.figures import style
from musls_analysis.sweep import labels
from musls_analysis.sweep.signals import signal, stage_window
from musls_analysis.sweep.spec import Grid, OverlayFigure, SweepSpec
from musls_analysis.sweep.store import FINISHED, Store, SweepError

Rows = Sequence[Mapping[str, Any]]

_MOST_IN_LEGEND = 8
_MOST_LINES = 5
_STEP_S = 0.02
_SETPOINT = "setpoint"
"""Marks the set-point's line, which is drawn once per panel."""


class _Cut(NamedTuple):
    """A signal within a stage: time since its beginning, values, set-point, (T,) each."""

    time_s: NDArray
    value: NDArray
    setpoint: NDArray


class _Values(NamedTuple):
    """Values of the parameter that colours the lines.

    Attributes:
        key: The parameter.
        values: In their order.
        rows: All runs.
    """

    key: str
    values: list[Any]
    rows: Rows

    def texts(self, text: labels.ParameterText) -> list[str]:
        """A text per value, with the number of failed runs."""
        found = []
        for value in self.values:
            here = [row for row in self.rows if row[self.key] == value]
            failed = len(here) - len(_ended(here))
            which = "failed" if failed == len(here) else f"{failed} of {len(here)} failed"
            found.append(text.value(value) + (f" ({which})" if failed else ""))
        return found


def overlay_figure(
    sweep: SweepSpec, figure: OverlayFigure, rows: Rows, store: Store
) -> Figure | None:
    """Draw signals of all runs; None if no run has them.

    Args:
        sweep: The sweep.
        figure: What to show.
        rows: The table.
        store: Gives the time series.
    """
    key = figure.by or next(iter(sweep.parameters))
    values = labels.distinct([row[key] for row in rows])
    groups = labels.groups(sweep, rows, key) if isinstance(sweep.sampling, Grid) else [{}]
    drawn = style.new_figure(
        0.85 + 1.75 * len(figure.signals), style.WIDTH_IN if len(groups) < 3 else 10.0
    )
    axes = drawn.subplots(
        len(figure.signals), len(groups), sharex=True, sharey="row", squeeze=False
    )
    found = False
    for column, group in enumerate(groups):
        for value, shade in zip(values, labels.shades(len(values)), strict=True):
            chosen = [r for r in _ended(rows) if labels.belongs(r, {**group, key: value})]
            runs = [(_summary(store, row), store.series(row["id"])) for row in chosen]
            for ax, name in zip(axes[:, column], figure.signals, strict=True):
                cuts = [cut for run in runs if (cut := _cut(figure, name, *run)) is not None]
                found |= bool(cuts)
                _draw(ax, cuts, shade)
        if len(groups) > 1:
            axes[0, column].set_title(labels.group_text(sweep, group))
    _finish(drawn, axes, sweep, figure, _Values(key, values, rows), len(groups) > 1)
    return drawn if found else None


def _summary(store: Store, row: Mapping[str, Any]) -> Mapping[str, Any]:
    record = store.record(row["id"])
    if record is None:
        raise SweepError(f"{store.folder}: the record of run {row['id']} is gone")
    summary: Mapping[str, Any] = record["summary"]
    return summary


def _ended(rows: Rows) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["status"] == FINISHED]


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
    return _Cut(time[inside] - window[0], values[inside], setpoint[inside])


def _draw(ax: Axes, cuts: Sequence[_Cut], shade: Any) -> None:
    """Each repetition, or for many their median and the band between their extremes."""
    if not cuts:
        return
    if len(cuts) <= _MOST_LINES:
        for cut in cuts:
            ax.plot(cut.time_s, cut.value, color=shade, lw=1.1 if len(cuts) == 1 else 0.85)
    else:
        time = np.arange(cuts[0].time_s[0], min(cut.time_s[-1] for cut in cuts), _STEP_S)
        values = np.array([np.interp(time, cut.time_s, cut.value) for cut in cuts])
        ax.fill_between(time, values.min(axis=0), values.max(axis=0), color=shade, alpha=0.18, lw=0)
        ax.plot(time, np.median(values, axis=0), color=shade, lw=1.1)
    if not any(line.get_gid() == _SETPOINT for line in ax.lines):
        ax.plot(cuts[0].time_s, cuts[0].setpoint, gid=_SETPOINT, **style.SETPOINT_LINE)


def _finish(
    drawn: Figure,
    axes: NDArray,
    sweep: SweepSpec,
    figure: OverlayFigure,
    by: _Values,
    titled: bool,
) -> None:
    """Axes' texts, and a legend or a colour bar."""
    for ax, name in zip(axes[:, 0], figure.signals, strict=True):
        ax.set_ylabel(labels.signal_text(name))
    drawn.align_ylabels(axes[:, 0])
    for ax in axes[-1]:
        ax.set_xlabel(f"time in stage {figure.stage.replace('_', ' ')} [s]")
        ax.margins(x=0.0)
    text = labels.ParameterText(sweep, by.key)
    few = len(by.values) <= _MOST_IN_LEGEND
    shades = labels.shades(len(by.values))
    handles = [style.setpoint_handle()]
    if few:
        lines = zip(shades, by.texts(text), strict=True)
        handles = [Line2D([], [], color=c, lw=1.8, label=t) for c, t in lines] + handles
    top = style.legend_on_top(drawn, handles) + (0.2 if titled else 0.02)
    if few:
        drawn.legends[-1].set_title(text.axis, prop=FontProperties(size=7.5))
        top += 0.17
    style.margins(drawn, 0.62, 0.15, 0.45, top, wspace=0.08, hspace=0.12)
    if not few:
        _colour_bar(drawn, axes, shades, by.texts(text), text.axis)


def _colour_bar(
    drawn: Figure, axes: NDArray, shades: list[Any], texts: list[str], label: str
) -> None:
    norm = BoundaryNorm(np.arange(len(shades) + 1) - 0.5, len(shades))
    bar = drawn.colorbar(
        ScalarMappable(norm, ListedColormap(shades)), ax=list(axes.flat), pad=0.02, aspect=35
    )
    shown = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), 10)).round().astype(int))
    bar.set_ticks(shown.tolist(), labels=[texts[i] for i in shown])
    bar.set_label(label)
    bar.ax.minorticks_off()
