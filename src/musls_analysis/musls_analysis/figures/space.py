"""What the spatial figures share: the range to show and a few moments to draw the cables at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from musls_analysis.figures import style
from musls_analysis.recordings.recording import LOAD, Recording, main_stages, parted_s, pieces_of

SNAPSHOTS = 5
"""Odd and prime: after whole turns of a periodic flight the moments do not coincide."""


def bounds_enu_m(recording: Recording) -> np.ndarray:
    """Lowest and highest corner that hold all bodies and set-points, with a margin (2, 3)."""
    tracks = [*recording.bodies.values(), *recording.setpoints.values()]
    low = np.min([np.nanmin(t.position_enu_m, axis=0) for t in tracks], axis=0)
    high = np.max([np.nanmax(t.position_enu_m, axis=0) for t in tracks], axis=0)
    margin = 0.04 * np.max(high - low) + 0.05
    return np.stack([low - margin, high + margin])


def snapshot_times_s(recording: Recording) -> np.ndarray:
    """Moments spread over the longest main stage; the last one is not its end (K,)."""
    stage = max(main_stages(recording.stages), key=lambda s: s.duration_s)
    return np.linspace(stage.start_s, stage.end_s, SNAPSHOTS, endpoint=False)


def cables_at(recording: Recording, time_s: float) -> dict[str, list[np.ndarray]]:
    """Lines of each cable at the sample next to a time, one if it is whole, (points, 3) each."""
    shapes = {}
    parts = time_s >= parted_s(recording.events)
    for name, cable in recording.cables.items():
        if len(cable.shape_time_s):
            index = int(np.argmin(np.abs(cable.shape_time_s - time_s)))
            shape = cable.shape_enu_m[index]
            shapes[name] = pieces_of(shape) if parts else [shape]
    return shapes


def position_at(recording: Recording, body: str, time_s: float) -> np.ndarray:
    """Position of a body at the sample next to a time (3,)."""
    track = recording.bodies[body]
    return track.position_enu_m[int(np.argmin(np.abs(track.time_s - time_s)))]


# ---------- Paths in space of load and drones against their set-points, with the cables at moments.

ELEVATION_DEG, AZIMUTH_DEG = 24.0, -56.0
"""From where one looks."""
_NEARER = 1.06
"""The perspective makes what is near so much larger."""
_LEFT_IN, _RIGHT_IN, _BOTTOM_IN, _TOP_IN = 0.14, 0.52, 0.36, 0.06
"""Room for ticks and labels."""
_TICK_IN = 0.45
"""Least distance of two ticks."""
_LEGEND_GAP_IN = 0.1
"""The upper corners of the box leave room, which the legend may use."""


def paths_3d_figure(recording: Recording) -> Figure:
    """Draw the flight in space, equal scale on all axes."""
    handles = style.body_handles(recording.bodies)
    if recording.setpoints:
        handles.append(style.setpoint_handle())
    low, high = bounds_enu_m(recording)
    low[2] = min(low[2], 0.0)
    figure = style.new_figure(4.6, 5.6)
    ax = spatial_axes(figure, handles, low, high)
    for track in recording.setpoints.values():
        ax.plot(*track.position_enu_m.T, **style.SETPOINT_LINE | {"linewidth": 0.75})
    for body, track in recording.bodies.items():
        ax.plot(*track.position_enu_m[::2].T, color=style.colour(body), lw=1.3, zorder=2)
    _snapshots(recording, ax)
    return figure


def spatial_axes(
    figure: Figure, handles: Sequence[Artist], low: np.ndarray, high: np.ndarray
) -> Any:
    """Add a legend and axes in space that fill a figure (an Axes3D, which has no types).

    Args:
        figure: Empty; it becomes lower if the box does not need its height.
        handles: Entries of the legend.
        low: Lower corner of the box that is seen, (3,).
        high: Upper corner, (3,).
    """
    size = high - low
    lowered_in = style.legend_height_in(figure, handles) - _LEGEND_GAP_IN
    width_in, most_in = figure.get_size_inches()
    width, height = _drawn_in(size, 1.0)
    across, up = width_in - _LEFT_IN - _RIGHT_IN, most_in - lowered_in - _BOTTOM_IN - _TOP_IN
    scale = min(across / width, up / height)  # length of the box's diagonal [in]
    height_in = lowered_in + scale * height + _BOTTOM_IN + _TOP_IN
    figure.set_figheight(height_in)
    style.legend_on_top(figure, handles)
    # Matplotlib draws into a square; this one reaches beyond the figure, so that nothing is cut.
    side_in = 1.3 * max(width_in, height_in)
    left_in = _LEFT_IN + 0.5 * (width_in - _LEFT_IN - _RIGHT_IN) - 0.5 * side_in
    bottom_in = _BOTTOM_IN + 0.5 * scale * height - 0.5 * side_in
    ax: Any = figure.add_axes(
        (left_in / width_in, bottom_in / height_in, side_in / width_in, side_in / height_in),
        projection="3d", computed_zorder=False,
    )  # fmt: skip
    ax.patch.set_visible(False)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set_box_aspect(size, zoom=scale / side_in)
    ax.view_init(elev=ELEVATION_DEG, azim=AZIMUTH_DEG)
    _dress(ax, size, scale / float(np.linalg.norm(size)))
    return ax


def _drawn_in(size: np.ndarray, scale: float) -> tuple[float, float]:
    """Width and height of the picture of a box (3,) whose diagonal is drawn at a scale."""
    x, y, z = size / np.linalg.norm(size) * scale
    elevation, azimuth = np.radians([ELEVATION_DEG, -AZIMUTH_DEG])
    width = x * np.sin(azimuth) + y * np.cos(azimuth)
    depth = x * np.cos(azimuth) + y * np.sin(azimuth)
    height = z * np.cos(elevation) + depth * np.sin(elevation)
    return _NEARER * width, _NEARER * height


def _dress(ax: Any, size: np.ndarray, in_per_m: float) -> None:
    """Colours, labels and ticks of spatial axes whose box has a size (3,) [m]."""
    for axis, name, extent in zip((ax.xaxis, ax.yaxis, ax.zaxis), "xyz", size, strict=True):
        axis.pane.set(facecolor="#fafbfc", edgecolor=style.GRID)
        axis._axinfo["grid"].update(color=style.GRID, linewidth=0.6)
        axis.set_label_text(f"{name} [m]")
        axis.labelpad = -4 if extent > 0.4 * size.max() else -6
        axis.get_major_locator().set_params(
            nbins=max(2, min(7, round(extent * in_per_m / _TICK_IN)))
        )
        axis.set_tick_params(pad=-2)


def _snapshots(recording: Recording, ax: Any) -> None:
    """Cables as lines, bodies as dots (the load as a square)."""
    lines: list[np.ndarray] = []
    places: dict[str, list[np.ndarray]] = {body: [] for body in recording.bodies}
    for time_s in snapshot_times_s(recording):
        lines += [s for some in cables_at(recording, time_s).values() for s in some]
        for body, at in places.items():
            at.append(position_at(recording, body, time_s))
    if lines:
        ax.add_collection3d(
            Line3DCollection(lines, colors="#57606a", linewidths=0.9, zorder=4), autolim=False
        )
    for body, at in places.items():
        ax.plot(
            *np.array(at).T, ls="", marker="s" if body == LOAD else "o", ms=5.5, zorder=5,
            mfc=style.colour(body), mec="white", mew=0.6,
        )  # fmt: skip


# ---------- Paths seen from above against their set-points (as Fig. 5 of the paper).


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
    times = snapshot_times_s(recording)
    cables = [s[:, :2] for t in times for some in cables_at(recording, t).values() for s in some]
    ax.add_collection(LineCollection(cables, colors="#8b949e", linewidths=0.9, zorder=2.5))
    for body in recording.bodies:
        at = np.array([position_at(recording, body, t) for t in times])
        ax.plot(
            at[:, 0], at[:, 1], ls="", marker="s" if body == LOAD else "o", ms=6, zorder=4,
            mfc=style.colour(body), mec="white", mew=0.7,
        )  # fmt: skip
    _equal_limits(ax, *bounds_enu_m(recording)[:, :2])
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
