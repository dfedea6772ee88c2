"""Tension of each cable over time, with slack marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from musls_analysis.figures import events, stages, style
from musls_analysis.recordings.recording import Recording
from musls_analysis.report.peaks import WHERE
from musls_analysis.report.tension import slack_intervals

_SLACK = "#cf222e"
WORTH_MARKING = 0.2
"""Share of the largest tension of all from which a named one is marked."""


def tensions_figure(
    recording: Recording,
    slack_threshold_n: float,
    peaks: Mapping[str, Mapping[str, Any]] | None = None,
) -> Figure:
    """Draw one panel per cable, same scale.

    Args:
        recording: The flight; cables without tension are left out.
        slack_threshold_n: Slack is a tension at the load below it.
        peaks: Largest tensions by name, from `musls_analysis.report.peaks`; they are marked.
    """
    cables = {n: c for n, c in recording.cables.items() if len(c.time_s)}
    figure = style.new_figure(0.8 + stages.LABEL_HEIGHT_IN + 0.82 * len(cables))
    axes = figure.subplots(len(cables), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    handles = style.body_handles(cables)
    handles.append(Line2D([], [], color=style.FAINT, lw=1.2, label="at end 2 (the drone)"))
    handles.append(Patch(color=_SLACK, label=f"slack (below {slack_threshold_n:.2g} N)"))
    top_in = style.legend_on_top(figure, handles) + stages.LABEL_HEIGHT_IN
    style.margins(figure, 0.6, 0.38, 0.4, top_in, hspace=0.18)
    stages.shade_stages(recording, axes)
    style.hide_time(axes[:-1])
    highest = max(float(c.tension_n.max()) for c in cables.values())
    for ax, (name, cable) in zip(axes, cables.items(), strict=True):
        ax.plot(cable.time_s, cable.tension_n[:, 1], color=style.FAINT, lw=0.8)
        ax.plot(cable.time_s, cable.tension_n[:, 0], color=style.colour(name), lw=1.1)
        slack = [(a, b - a) for a, b in slack_intervals(cable, slack_threshold_n)]
        ax.broken_barh(
            slack, (0.0, 0.055), transform=ax.get_xaxis_transform(), color=_SLACK, linewidth=0,
            zorder=3,
        )  # fmt: skip
        ax.set_ylabel(f"{style.label(name)} [N]")
        ax.locator_params(axis="y", nbins=4)
    axes[0].set_ylim(-0.09 * highest, 1.06 * highest)
    least = max((peak["max_n"] for peak in (peaks or {}).values()), default=0.0) * WORTH_MARKING
    for where, peak in (peaks or {}).items():
        if peak["cable"] in cables and peak["max_n"] >= least:
            _mark(axes[list(cables).index(peak["cable"])], WHERE[where], peak, recording)
    events.mark_events(recording, axes)
    axes[-1].set_xlabel("time [s]")
    stages.name_stages(recording, axes[0])
    return figure


def _mark(ax: Axes, name: str, peak: Mapping[str, Any], recording: Recording) -> None:
    """A triangle and the number at a named peak; one beyond the axis is marked at its end."""
    top = ax.get_ylim()[1]
    beyond = peak["max_n"] > top
    ax.plot(
        [peak["time_s"]], [min(peak["max_n"], top)], marker="^" if beyond else "v", ms=4,
        color=style.INK, mec="white", mew=0.4, clip_on=False, zorder=6,
    )  # fmt: skip
    late = peak["time_s"] - recording.start_s > 0.6 * (recording.end_s - recording.start_s)
    ax.annotate(
        f"{peak['max_n']:.1f} N {name}", (peak["time_s"], min(peak["max_n"], top)),
        xytext=(-6 if late else 6, -12 if beyond else 0), textcoords="offset points", fontsize=6.5,
        color=style.INK, ha="right" if late else "left", va="center", zorder=6,
        bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6},
    )  # fmt: skip
