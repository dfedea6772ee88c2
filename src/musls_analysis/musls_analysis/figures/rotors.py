"""Rotor speeds of each drone over time."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from musls_analysis.figures import events, stages, style
from musls_analysis.recordings.recording import Recording


def rotors_figure(recording: Recording) -> Figure:
    """Draw one panel per drone: mean of the rotors, and a band from slowest to fastest."""
    figure = style.new_figure(0.8 + stages.LABEL_HEIGHT_IN + 0.82 * len(recording.rotors))
    axes = figure.subplots(len(recording.rotors), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    handles = [
        *style.body_handles(recording.rotors),
        Line2D([], [], color=style.FAINT, lw=1.8, label="mean of the rotors"),
        Patch(color=style.FAINT, alpha=0.4, label="slowest to fastest"),
    ]
    top_in = style.legend_on_top(figure, handles) + stages.LABEL_HEIGHT_IN
    style.margins(figure, 0.6, 0.38, 0.4, top_in, hspace=0.18)
    stages.shade_stages(recording, axes)
    style.hide_time(axes[:-1])
    for ax, (drone, track) in zip(axes, recording.rotors.items(), strict=True):
        speed = track.speed_rad_s
        ax.fill_between(
            track.time_s, speed.min(axis=1), speed.max(axis=1), color=style.colour(drone),
            alpha=0.3, linewidth=0,
        )  # fmt: skip
        ax.plot(track.time_s, speed.mean(axis=1), color=style.colour(drone), lw=1.1)
        ax.set_ylabel(f"{style.label(drone)}\n[rad/s]")
        ax.locator_params(axis="y", nbins=4)
    axes[0].set_ylim(bottom=0.0)
    events.mark_events(recording, axes)
    axes[-1].set_xlabel("time [s]")
    stages.name_stages(recording, axes[0])
    return figure
