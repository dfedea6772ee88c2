"""What rigs have besides: forces at anchors, free lengths of reeled cables."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from musls_analysis.figures import stages, style
from musls_analysis.recordings.recording import Recording

_AXES = ("east", "north", "up")
_COLOURS = ("#0072b2", "#009e73", "#d55e00")


def anchor_forces_figure(recording: Recording) -> Figure:
    """Draw the force that holds, moves or pushes each anchor, one panel per anchor."""
    tracks = recording.wrenches
    figure, axes = _panels(recording, len(tracks))
    for ax, (name, track) in zip(axes, tracks.items(), strict=True):
        for column, (axis, shade) in enumerate(zip(_AXES, _COLOURS, strict=True)):
            ax.plot(track.time_s, track.force_enu_n[:, column], color=shade, lw=1.0, label=axis)
        ax.set_ylabel(f"{style.label(name)} [N]")
    axes[0].legend(loc="upper right", ncol=3)
    return figure


def free_lengths_figure(recording: Recording) -> Figure:
    """Draw the free length of each cable that winches or wheels change, all in one panel."""
    figure, (ax,) = _panels(recording, 1, 2.2)
    for name, cable in recording.cables.items():
        if len(cable.free_length_m):
            ax.plot(
                cable.free_length_time_s, cable.free_length_m,
                color=style.colour(name), lw=1.2, label=style.label(name),
            )  # fmt: skip
    ax.set_ylabel("free length [m]")
    ax.legend(loc="upper right", ncol=4)
    return figure


def _panels(recording: Recording, count: int, height_in: float = 0.95) -> tuple[Figure, np.ndarray]:
    figure = style.new_figure(0.6 + stages.LABEL_HEIGHT_IN + height_in * count)
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    style.margins(figure, 0.6, 0.38, 0.4, 0.12 + stages.LABEL_HEIGHT_IN, hspace=0.18)
    stages.shade_stages(recording, axes)
    style.hide_time(axes[:-1])
    axes[-1].set_xlabel("time [s]")
    stages.name_stages(recording, axes[0])
    return figure, axes
