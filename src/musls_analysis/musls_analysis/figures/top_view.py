"""Paths seen from above against their set-points (as Fig. 5 of the paper)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from musls_analysis.figures import paths, style
from musls_analysis.recordings.recording import LOAD, Recording


def top_view_figure(recording: Recording) -> Figure:
    """Draw x and y of the flight, equal scale."""
    figure = style.new_figure(4.6, 5.6)
    ax = figure.add_subplot()
    handles = style.body_handles(recording.bodies)
    if recording.setpoints:
        handles.append(style.setpoint_handle())
    style.margins(figure, 0.55, 0.2, 0.45, style.legend_on_top(figure, handles) + 0.04)
    for track in recording.setpoints.values():
        x, y, _ = track.position_enu_m.T
        ax.plot(x, y, **style.SETPOINT_LINE | {"linewidth": 0.75})
    for body, track in recording.bodies.items():
        x, y, _ = track.position_enu_m.T
        ax.plot(x, y, color=style.colour(body), zorder=2)
    times = paths.snapshot_times_s(recording)
    cables = [
        s[:, :2] for t in times for some in paths.cables_at(recording, t).values() for s in some
    ]
    ax.add_collection(LineCollection(cables, colors="#8b949e", linewidths=0.9, zorder=2.5))
    for body in recording.bodies:
        at = np.array([paths.position_at(recording, body, t) for t in times])
        ax.plot(
            at[:, 0], at[:, 1], ls="", marker="s" if body == LOAD else "o", ms=6, zorder=4,
            mfc=style.colour(body), mec="white", mew=0.7,
        )  # fmt: skip
    _equal_limits(ax, *paths.bounds_enu_m(recording)[:, :2])
    ax.set_xlabel("x, east [m]")
    ax.set_ylabel("y, north [m]")
    return figure


def _equal_limits(ax: Axes, low: np.ndarray, high: np.ndarray) -> None:
    """Widen the range to the shape of the axes, so that they fill their place at equal scale."""
    place = ax.get_position()
    axes_in = np.array([place.width, place.height]) * style.size_in(ax)
    half = 0.5 * np.max((high - low) / axes_in) * axes_in
    center = 0.5 * (low + high)
    (left, bottom), (right, top) = center - half, center + half
    ax.set(xlim=(left, right), ylim=(bottom, top))
    ax.set_aspect("equal")
