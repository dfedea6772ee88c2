"""Errors per stage and body: mean as a dot, greatest as the end of a thin line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from musls_analysis.figures import style
from musls_analysis.figures.stages import BAND

_PANELS = (
    ("translational_error_m", "translational_error_max_m", 1000.0, "translational error [mm]", 0.1),
    ("geodesic_error_deg", "geodesic_error_max_deg", 1.0, "geodesic error [deg]", 0.01),
)
"""Keys of mean and greatest, scale, axis label, smallest value shown."""


def stage_errors_figure(summary: Mapping[str, Any]) -> Figure:
    """Draw translational errors on the left, geodesic errors on the right.

    Args:
        summary: With "errors" and "stages" of `musls_analysis.report.summary`.
    """
    errors = summary["errors"]
    names = [s["name"] for s in summary["stages"] if any(s["name"] in e for e in errors.values())]
    figure = style.new_figure(0.8 + max(0.2, 0.062 * len(errors) + 0.05) * len(names))
    axes = figure.subplots(1, 2, sharey=True)
    handles = [
        *style.body_handles(errors),
        Line2D([], [], color=style.FAINT, marker="o", ms=4.5, ls="", label="mean"),
        Line2D([], [], color=style.FAINT, marker="|", ms=5, mew=1.2, lw=0.9, label="greatest"),
    ]
    style.margins(figure, 0.75, 0.2, 0.42, style.legend_on_top(figure, handles), wspace=0.12)
    for ax, (mean, greatest, scale, title, floor) in zip(axes, _PANELS, strict=True):
        points = {
            body: np.array([
                (i, scale * stages[name][mean], scale * stages[name][greatest])
                for i, name in enumerate(names) if name in stages
            ])
            for body, stages in errors.items() if stages
        }  # fmt: skip
        for k, (body, rows) in enumerate(points.items()):
            shift = (k - 0.5 * (len(points) - 1)) * 0.78 / len(points)
            _lollipops(ax, rows[:, 0] + shift, np.maximum(rows[:, 1:], floor), style.colour(body))
        everything = np.concatenate([rows[:, 1:] for rows in points.values()])
        _scale(ax, floor, everything.min(), everything.max())
        ax.set_xlabel(title)
        for i in range(1, len(names), 2):
            ax.axhspan(i - 0.5, i + 0.5, color=BAND, linewidth=0, zorder=0)
    axes[1].yaxis.set_visible(False)
    axes[0].tick_params(axis="y", length=0)
    axes[0].grid(False, axis="y")
    axes[0].set_yticks(range(len(names)), [style.label(n) for n in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def _lollipops(ax: Axes, y: np.ndarray, values: np.ndarray, colour: str) -> None:
    """Draw mean (n, 0) and greatest (n, 1) at heights y (n,)."""
    mean, greatest = values.T
    lines = [[(a, h), (b, h)] for a, b, h in zip(mean, greatest, y, strict=True)]
    ax.add_collection(LineCollection(lines, colors=colour, linewidths=1.0, alpha=0.65))
    ax.plot(greatest, y, ls="", marker="|", ms=4.0, mew=1.2, color=colour)
    ax.plot(mean, y, ls="", marker="o", ms=4.0, mec="white", mew=0.4, color=colour, clip_on=False)


def _scale(ax: Axes, floor: float, lowest: float, highest: float) -> None:
    """Logarithmic, because errors on the ground and in flight differ by orders of magnitude."""
    first = np.floor(np.log10(max(lowest, floor)))
    last = max(np.ceil(np.log10(max(highest, floor))), first + 1.0)
    ticks = 10.0 ** np.arange(first, last + 1.0)
    names = [f"{tick:g}" for tick in ticks]
    if lowest < ticks[0]:
        names[0] = f"≤ {names[0]}"
    ax.set_xscale("log")
    ax.set_xlim(ticks[0], ticks[-1])
    ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
    ax.xaxis.set_major_formatter(FixedFormatter(names))
    ax.xaxis.set_minor_locator(NullLocator())
