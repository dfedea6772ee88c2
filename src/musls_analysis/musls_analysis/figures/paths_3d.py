"""Paths in space of load and drones against their set-points, with the cables at moments."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from musls_analysis.figures import paths, style
from musls_analysis.recordings.recording import LOAD, Recording

ELEVATION_DEG, AZIMUTH_DEG = 24.0, -56.0
"""From where one looks."""


def paths_3d_figure(recording: Recording) -> Figure:
    """Draw the flight in space, equal scale on all axes."""
    figure = style.new_figure(4.6, 5.6)
    handles = style.body_handles(recording.bodies)
    if recording.setpoints:
        handles.append(style.setpoint_handle())
    lowered = (style.legend_on_top(figure, handles) - 0.36) / figure.get_figheight()
    low, high = paths.bounds_enu_m(recording)
    low[2] = min(low[2], 0.0)
    ax = spatial_axes(figure, lowered, low, high)
    for track in recording.setpoints.values():
        ax.plot(*track.position_enu_m.T, **style.SETPOINT_LINE | {"linewidth": 0.75})
    for body, track in recording.bodies.items():
        ax.plot(*track.position_enu_m[::2].T, color=style.colour(body), lw=1.3, zorder=2)
    _snapshots(recording, ax)
    return figure


def spatial_axes(figure: Figure, lowered: float, low: np.ndarray, high: np.ndarray) -> Any:
    """Add axes in space, equal scale on all of them (an Axes3D, which has no types).

    Args:
        figure: Where they go, as large as it is.
        lowered: Share of the figure's height to keep free on top.
        low: Lower corner of the box that is seen, (3,).
        high: Upper corner, (3,).
    """
    ax: Any = figure.add_axes(
        (-0.05, -0.03, 1.06, 1.0 - lowered), projection="3d", computed_zorder=False
    )
    size = high - low
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set_box_aspect(size, zoom=_zoom(size))
    ax.view_init(elev=ELEVATION_DEG, azim=AZIMUTH_DEG)
    _dress(ax, size)
    return ax


def _zoom(size: np.ndarray) -> float:
    """Fill the figure with the box (3,), whose diagonal matplotlib keeps at one length."""
    x, y, z = size / np.linalg.norm(size)
    elevation, azimuth = np.radians([ELEVATION_DEG, -AZIMUTH_DEG])
    width = x * np.sin(azimuth) + y * np.cos(azimuth)
    depth = x * np.cos(azimuth) + y * np.sin(azimuth)
    height = z * np.cos(elevation) + depth * np.sin(elevation)
    return min(0.78 / height, 0.9 / width)  # found by eye; room for ticks and labels


def _dress(ax: Any, size: np.ndarray) -> None:
    """Colours, labels and ticks of spatial axes whose box has a size (3,)."""
    for axis, name, extent in zip((ax.xaxis, ax.yaxis, ax.zaxis), "xyz", size, strict=True):
        axis.pane.set(facecolor="#fafbfc", edgecolor=style.GRID)
        axis._axinfo["grid"].update(color=style.GRID, linewidth=0.6)
        axis.set_label_text(f"{name} [m]")
        axis.labelpad = -4 if extent > 0.4 * size.max() else -6
        axis.get_major_locator().set_params(nbins=max(3, round(7 * extent / size.max())))
        axis.set_tick_params(pad=-2)


def _snapshots(recording: Recording, ax: Any) -> None:
    """Cables as lines, bodies as dots (the load as a square)."""
    lines: list[np.ndarray] = []
    places: dict[str, list[np.ndarray]] = {body: [] for body in recording.bodies}
    for time_s in paths.snapshot_times_s(recording):
        lines += [s for some in paths.cables_at(recording, time_s).values() for s in some]
        for body, at in places.items():
            at.append(paths.position_at(recording, body, time_s))
    if lines:
        ax.add_collection3d(
            Line3DCollection(lines, colors="#57606a", linewidths=0.9, zorder=4), autolim=False
        )
    for body, at in places.items():
        ax.plot(
            *np.array(at).T, ls="", marker="s" if body == LOAD else "o", ms=5.5, zorder=5,
            mfc=style.colour(body), mec="white", mew=0.6,
        )  # fmt: skip
