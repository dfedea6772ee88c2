"""Mission stages behind a plot over time: alternating bands, names above the top axes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes

from musls_analysis.figures.style import FAINT, INK, label, size_in
from musls_analysis.recordings.recording import Recording

LABEL_HEIGHT_IN = 0.52
"""Room that the names need above the axes."""

BAND = "#f2f4f7"
"""Colour of every second stage."""
_ANGLE_DEG = 52
_PITCH_IN = 0.155
"""Smallest distance of two slanted names along the axis."""


def shade_stages(recording: Recording, axes: Iterable[Axes]) -> None:
    """Draw a band behind every second stage and fix the time axis to the recording."""
    bands = [(s.start_s, s.duration_s) for s in recording.stages[1::2]]
    for ax in axes:
        ax.set_xlim(recording.start_s, recording.end_s)
        ax.grid(False, axis="x")
        if bands:
            ax.broken_barh(
                bands, (0, 1), transform=ax.get_xaxis_transform(), color=BAND, linewidth=0,
                zorder=0,
            )  # fmt: skip


def name_stages(recording: Recording, ax: Axes) -> None:
    """Write the stages' names above an axis, slanted, moved apart where stages are short."""
    figure_width_in, figure_height_in = size_in(ax)
    width_in = ax.get_position().width * figure_width_in
    start, length = recording.start_s, max(recording.end_s - recording.start_s, 1e-9)
    centers = np.array([0.5 * (s.start_s + s.end_s) for s in recording.stages])
    places = spread((centers - start) / length * width_in, _PITCH_IN, width_in)
    height_in = ax.get_position().height * figure_height_in
    low, high = 1.0 + 0.02 / height_in, 1.0 + 0.10 / height_in
    for stage, center, place in zip(recording.stages, centers, places, strict=True):
        foot = (center - start) / length
        head = place / width_in
        ax.plot(
            [foot, head], [low, high], transform=ax.transAxes, color=FAINT, linewidth=0.6,
            clip_on=False,
        )  # fmt: skip
        ax.text(
            head, high, label(stage.name), transform=ax.transAxes, rotation=_ANGLE_DEG,
            rotation_mode="anchor", ha="left", va="bottom", fontsize=6.8, color=INK,
        )  # fmt: skip


def spread(places: np.ndarray, pitch: float, width: float) -> np.ndarray:
    """Move ordered places apart to at least a pitch, each as little as possible.

    Args:
        places: Wanted places, ascending (n,).
        pitch: Smallest distance; reduced if not all fit.
        width: Range 0 to width that is to be kept.

    Returns:
        Places (n,).
    """
    n = len(places)
    if n < 2:
        return places
    pitch = min(pitch, width / (n - 1))
    offsets = pitch * np.arange(n)
    # Isotonic regression of what is left after subtracting the pitch: pool neighbours that cross.
    blocks: list[list[float]] = []
    for value in places - offsets:
        blocks.append([value, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            b, a = blocks.pop(), blocks.pop()
            weight = a[1] + b[1]
            blocks.append([(a[0] * a[1] + b[0] * b[1]) / weight, weight])
    fitted = np.concatenate([np.full(int(w), v) for v, w in blocks])
    return np.clip(fitted, 0.0, width - offsets[-1]) + offsets
