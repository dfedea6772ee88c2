"""What happened suddenly, marked in a plot over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from numpy.typing import NDArray

from musls_analysis.recordings.recording import Recording

EVENT = "#cf222e"
"""Colour of the marks."""
MOST = 40
"""Marks of one kind that are drawn; more would hide the curves."""


def mark_events(recording: Recording, axes: Sequence[Axes] | NDArray[Any]) -> None:
    """Draw a dashed line at each event through all panels; the lowest one names them.

    Args:
        recording: The flight.
        axes: Panels over time, from the top.
    """
    counts: dict[str, int] = {}
    named_s = -1e9
    span_s = max(recording.end_s - recording.start_s, 1e-9)
    for event in recording.events:
        counts[event.kind] = counts.get(event.kind, 0) + 1
        if counts[event.kind] > MOST:
            continue
        over = event.what == "over"
        for ax in axes:
            ax.axvline(event.time_s, color=EVENT, lw=0.8, ls=":" if over else "--", zorder=1)
        if over or event.time_s - named_s < 0.03 * span_s:
            continue
        named_s = event.time_s
        late = event.time_s - recording.start_s > 0.8 * span_s
        axes[-1].annotate(
            event.kind.replace("_", " "), (event.time_s, 0.04),
            xycoords=axes[-1].get_xaxis_transform(), xytext=(-2 if late else 2, 0),
            textcoords="offset points", fontsize=6.5, color=EVENT, ha="right" if late else "left",
        )  # fmt: skip
