"""Charge, power and voltage of the drones' batteries over time."""

from __future__ import annotations

from matplotlib.figure import Figure

from musls_analysis.figures import events, stages, style
from musls_analysis.recordings.recording import Recording


def batteries_figure(recording: Recording) -> Figure:
    """Draw three panels: charge, power, voltage; one line per drone."""
    figure = style.new_figure(0.8 + stages.LABEL_HEIGHT_IN + 0.95 * 3)
    axes = figure.subplots(3, 1, sharex=True)
    top_in = style.legend_on_top(figure, style.body_handles(recording.batteries))
    style.margins(figure, 0.78, 0.38, 0.4, top_in + stages.LABEL_HEIGHT_IN, hspace=0.18)
    stages.shade_stages(recording, axes)
    style.hide_time(axes[:-1])
    for drone, battery in recording.batteries.items():
        values = (100.0 * battery.charge, battery.power_w, battery.voltage_v)
        for ax, value in zip(axes, values, strict=True):
            ax.plot(battery.time_s, value, color=style.colour(drone), lw=1.1)
    for ax, name in zip(axes, ("charge\n[%]", "power\n[W]", "voltage\n[V]"), strict=True):
        ax.set_ylabel(name)
        ax.locator_params(axis="y", nbins=4)
    axes[1].set_ylim(bottom=0.0)
    events.mark_events(recording, axes)
    axes[-1].set_xlabel("time [s]")
    stages.name_stages(recording, axes[0])
    return figure
