"""Figures of a flight in space and from above, with the cables at a few moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from musls_analysis.comparison.errors import shown_setpoints
from musls_analysis.figures import style
from musls_analysis.recordings.recording import LOAD, Recording, main_stages, parted_s, pieces_of
from musls_description.system.obstacles import shown_faces, widened

if TYPE_CHECKING:
    from musls_analysis.scene import Subject

SNAPSHOTS = 5
"""Odd and prime: after whole turns of a periodic flight the moments do not coincide."""


def bounds_enu_m(recording: Recording) -> np.ndarray:
    """Lowest and highest corner that hold all bodies and set-points, with a margin (2, 3)."""
    tracks = [*recording.bodies.values(), *shown_setpoints(recording).values()]
    low = np.min([np.nanmin(t.position_enu_m, axis=0) for t in tracks], axis=0)
    high = np.max([np.nanmax(t.position_enu_m, axis=0) for t in tracks], axis=0)
    margin = 0.04 * np.max(high - low) + 0.05
    return np.stack(widened(recording.obstacles, low - margin, high + margin))


def _draw_obstacles(
    ax: Any, recording: Recording, low: np.ndarray, high: np.ndarray, dimensions: int
) -> None:
    """Draw the faces of all obstacles between two corners (3,)."""
    collection = PolyCollection if dimensions == 2 else Poly3DCollection
    for _, faces in shown_faces(recording.obstacles, low, high):
        polygons = [face[:, :dimensions] for face in faces]
        shade = to_rgba(style.OBSTACLE, 0.3)
        artist = collection(
            polygons, facecolors=shade, edgecolors=style.OBSTACLE, linewidths=0.5, zorder=1
        )
        ax.add_collection(artist, autolim=False)


def cables_at(recording: Recording, time_s: float) -> dict[str, list[np.ndarray]]:
    """Lines of each cable at the sample next to a time, one if it is whole, (points, 3) each."""
    shapes = {}
    parts = time_s >= parted_s(recording.events)
    for name, cable in recording.cables.items():
        if len(cable.shape_time_s):
            shape = cable.shape_enu_m[int(np.argmin(np.abs(cable.shape_time_s - time_s)))]
            shapes[name] = pieces_of(shape) if parts else [shape]
    return shapes


def _draw_paths(
    ax: Any, recording: Recording, other: Subject | None, dimensions: int, cable_colour: str
) -> None:
    """Draw set-points, paths, and cables at moments of the longest stage, in 2 or 3 dimensions."""
    for track in [] if other is None else other.recording.bodies.values():
        ax.plot(*track.position_enu_m.T[:dimensions], color=style.SECOND, lw=0.9, zorder=1.9)
    for track in shown_setpoints(recording).values():
        look = style.SETPOINT_LINE | {"linewidth": 0.75}
        ax.plot(*track.position_enu_m.T[:dimensions], **look)
    for body, track in recording.bodies.items():
        ax.plot(*track.position_enu_m.T[:dimensions], color=style.colour(body), zorder=2)
    stage = max(main_stages(recording.stages), key=lambda s: s.duration_s)
    times = np.linspace(stage.start_s, stage.end_s, SNAPSHOTS, endpoint=False)
    cables = [
        line[:, :dimensions]
        for time_s in times
        for lines in cables_at(recording, time_s).values()
        for line in lines
    ]
    if cables:
        collection = LineCollection if dimensions == 2 else Line3DCollection
        lines = collection(cables, colors=cable_colour, linewidths=0.9, zorder=2.5)
        ax.add_collection(lines, autolim=False)
    for body, track in recording.bodies.items():
        moments = [int(np.argmin(np.abs(track.time_s - time_s))) for time_s in times]
        ax.plot(
            *track.position_enu_m[moments].T[:dimensions],
            ls="",
            ms=6,
            zorder=4,
            mec="white",
            marker="s" if body == LOAD else "o",
            mfc=style.colour(body),
            mew=0.7,
        )


def _handles(recording: Recording, other: Subject | None) -> list[Artist]:
    handles = style.body_handles(recording.bodies) + style.second_handles(other)
    return [*handles, style.setpoint_handle()] if recording.setpoints else handles


def top_view_figure(recording: Recording, other: Subject | None = None) -> Figure:
    """Draw x and y of the flight, equal scale (as Fig. 5 of the paper)."""
    figure = style.new_figure(4.6, 5.6, keeps_shape=True)
    ax = figure.add_subplot()
    top_in = style.legend_on_top(figure, _handles(recording, other)) + 0.04
    style.margins(figure, 0.55, 0.2, 0.45, top_in)
    _draw_paths(ax, recording, other, 2, style.CABLE)
    # The range is widened to the shape of the axes, so that they fill their place at equal scale.
    low, high = bounds_enu_m(recording)
    low[2] = min(low[2], 0.0)
    axes_in = style.size_in(ax)
    half = 0.5 * np.max((high - low)[:2] / axes_in) * axes_in
    center = 0.5 * (low + high)[:2]
    low[:2] = center - half
    high[:2] = center + half
    _draw_obstacles(ax, recording, low, high, 2)
    ax.set(xlabel="x, east [m]", ylabel="y, north [m]")
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_aspect("equal")
    return figure


def paths_3d_figure(recording: Recording, other: Subject | None = None) -> Figure:
    """Draw the flight in space, equal scale on all axes."""
    low, high = bounds_enu_m(recording)
    low[2] = min(low[2], 0.0)
    figure = style.new_figure(4.6, 5.6, keeps_shape=True)
    ax = spatial_axes(figure, _handles(recording, other), low, high)
    _draw_obstacles(ax, recording, low, high, 3)
    _draw_paths(ax, recording, other, 3, style.UNKNOWN_TENSION)
    return figure


ELEVATION_DEG = 24.0
AZIMUTH_DEG = -56.0
"""Direction of view."""
_NEARER = 1.06
"""The perspective makes what is near so much larger."""
_LEFT_IN = 0.14
_RIGHT_IN = 0.52
_BOTTOM_IN = 0.36
_TOP_IN = 0.06
"""Room for ticks and labels."""
_TICK_IN = 0.45
"""Least distance of two ticks."""
_LEGEND_GAP_IN = 0.1
"""The upper corners of the box leave room, which the legend may use."""


def spatial_axes(
    figure: Figure, handles: Sequence[Artist], low: np.ndarray, high: np.ndarray
) -> Any:
    """Add a legend and axes in space (an Axes3D, which has no types) that fill an empty figure.

    It becomes lower if the box that is seen, from `low` to `high` (3,), does not need its height.
    """
    size = high - low
    lowered_in = style.legend_height_in(figure, handles) - _LEGEND_GAP_IN
    width_in, most_in = figure.get_size_inches()
    x, y, z = size / np.linalg.norm(size)
    elevation, azimuth = np.radians([ELEVATION_DEG, -AZIMUTH_DEG])
    depth = x * np.cos(azimuth) + y * np.sin(azimuth)
    width = _NEARER * (x * np.sin(azimuth) + y * np.cos(azimuth))  # of a box of diagonal 1
    height = _NEARER * (z * np.cos(elevation) + depth * np.sin(elevation))
    across = width_in - _LEFT_IN - _RIGHT_IN
    up = most_in - lowered_in - _BOTTOM_IN - _TOP_IN
    scale = min(across / width, up / height)  # length of the box's diagonal [in]
    height_in = lowered_in + scale * height + _BOTTOM_IN + _TOP_IN
    figure.set_figheight(height_in)
    style.legend_on_top(figure, handles)
    # Matplotlib draws into a square; this one reaches beyond the figure, so that nothing is cut.
    side_in = 1.3 * max(width_in, height_in)
    left_in = _LEFT_IN + 0.5 * across - 0.5 * side_in
    bottom_in = _BOTTOM_IN + 0.5 * scale * height - 0.5 * side_in
    ax: Any = figure.add_axes(
        (left_in / width_in, bottom_in / height_in, side_in / width_in, side_in / height_in),
        projection="3d",
        computed_zorder=False,
    )
    ax.patch.set_visible(False)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set_box_aspect(size, zoom=scale / side_in)
    ax.view_init(elev=ELEVATION_DEG, azim=AZIMUTH_DEG)
    in_per_m = scale / float(np.linalg.norm(size))
    for axis, name, extent in zip((ax.xaxis, ax.yaxis, ax.zaxis), "xyz", size, strict=True):
        axis.pane.set(facecolor="#fafbfc", edgecolor=style.GRID)
        axis.set_label_text(f"{name} [m]")
        count = max(2, min(7, round(extent * in_per_m / _TICK_IN)))
        axis.get_major_locator().set_params(nbins=count)
        axis.labelpad = -4 if extent > 0.4 * size.max() else -6
        if name == "z" or np.any(axis.get_majorticklocs() % 1.0 > 1e-9):  # longer texts
            axis.labelpad += 5
        axis.set_tick_params(pad=-2)
    return ax


def contents_figure(recording: Recording) -> Figure:
    """Draw the paths in x and y at equal scale, and z over time with the gaps left open."""
    figure = style.new_figure(3.6)
    above, heights = figure.subplots(1, 2)
    for body, track in recording.bodies.items():
        steps_s = np.diff(track.time_s)
        usual_s = float(np.median(steps_s)) if len(steps_s) else 0.0
        after_gaps = 1 + np.flatnonzero(steps_s > 5.0 * usual_s)
        time_s = np.insert(track.time_s, after_gaps, np.nan)
        x, y, z = np.insert(track.position_enu_m, after_gaps, np.nan, axis=0).T
        above.plot(x, y, color=style.colour(body))
        heights.plot(time_s - recording.start_s, z, color=style.colour(body))
    above.set(xlabel="x, east (m)", ylabel="y, north (m)", aspect="equal", adjustable="datalim")
    heights.set(xlabel=f"time from {recording.start_s:.6g} s (s)", ylabel="z, up (m)")
    handles = style.body_handles(recording.bodies)
    top = style.legend_on_top(figure, handles)
    style.margins(figure, 0.6, 0.15, 0.5, top + 0.15, wspace=0.25)
    return figure
