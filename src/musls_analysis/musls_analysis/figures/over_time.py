"""What happened suddenly, marked in a plot over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from numpy.typing import NDArray

from musls_analysis.figures import style
from musls_analysis.figures.style import FAINT, INK, NotebookFigure, label, size_in
from musls_analysis.recordings.recording import Recording
from musls_analysis.report.summary import WHERE, slack_intervals
from musls_description.rotations import roll_pitch_yaw, wrapped

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


# ---------- Mission stages behind a plot over time: alternating bands, names above the top axes.

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


# ---------- A figure that is shown several times with other data: what stays is drawn once.


class LayeredFigure(NotebookFigure):
    """A figure whose changing artists are drawn over a picture of all others.

    That takes less than half the time in a raster picture. In PDF and SVG everything is drawn.

    Attributes:
        changing: Artists that are drawn each time, in this order, before the legends.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.changing: Sequence[Artist] = ()
        self._lasting: tuple[tuple[float, ...], Any] | None = None

    def draw(self, renderer: RendererBase) -> None:
        """Draw it; called by the canvas."""
        if not isinstance(renderer, RendererAgg):
            super().draw(renderer)
            return
        changing = [*self.changing, *self.legends]
        size = (renderer.width, renderer.height, renderer.dpi)
        if self._lasting is None or self._lasting[0] != size:
            for artist in changing:
                artist.set_visible(False)
            super().draw(renderer)
            self._lasting = size, renderer.copy_from_bbox(self.bbox)
            for artist in changing:
                artist.set_visible(True)
        else:
            renderer.restore_region(self._lasting[1])
        for artist in changing:
            artist.draw(renderer)


# ---------- Position and attitude of one body over time against its set-point (as Fig. 8 of the pa

_LABELS = ("x [m]", "y [m]", "z [m]", "roll [deg]", "pitch [deg]", "yaw [deg]")
_SMALLEST_RANGE = (0.4, 0.4, 0.4, 4.0, 4.0, 4.0)
"""An axis shows at least this much, so that noise does not look like motion."""


class PoseFigure:
    """x, y, z on the left and roll, pitch, yaw on the right.

    One figure serves all bodies of a recording: making axes and ticks costs as much as drawing
    them. They can be made before there is a recording.
    """

    def __init__(self) -> None:
        self._figure = style.figure_of(LayeredFigure, 3.95)
        axes = self._figure.subplots(3, 2, sharex=True)
        top_in = 0.36 + LABEL_HEIGHT_IN  # legend of one row, names
        style.margins(self._figure, 0.55, 0.38, 0.4, top_in, wspace=0.24, hspace=0.15)
        style.hide_time(axes[:-1].flat)
        self._axes = list(axes.T.flat)
        self._lines = [
            (ax.plot([], [])[0], ax.plot([], [], **style.SETPOINT_LINE)[0]) for ax in self._axes
        ]
        for ax, name in zip(self._axes, _LABELS, strict=True):
            ax.set_ylabel(name)
            ax.yaxis.set_label_coords(-0.115, 0.5)
            ax.locator_params(axis="y", nbins=4)
        for ax in axes[-1]:
            ax.set_xlabel("time [s]")
        self._figure.changing = [
            artist
            for ax, lines in zip(self._axes, self._lines, strict=True)
            for artist in (ax.yaxis, *lines)
        ]
        self._has_stages = False

    def draw(self, recording: Recording, body: str) -> Figure:
        """Show a body.

        Args:
            recording: The flight, always the same.
            body: "load", "drone_1", ...

        Returns:
            The figure, valid until the next call.
        """
        if not self._has_stages:
            self._has_stages = True
            shade_stages(recording, self._axes)
            for top in self._axes[0], self._axes[3]:
                name_stages(recording, top)
        track = recording.bodies[body]
        angles_deg = np.degrees(np.unwrap(roll_pitch_yaw(track.orientation_wxyz), axis=0))
        measured = np.hstack([track.position_enu_m, angles_deg])
        wanted = _setpoints(recording, body, angles_deg)
        for k, (ax, (line, setpoint)) in enumerate(zip(self._axes, self._lines, strict=True)):
            line.set_data(track.time_s, measured[:, k])
            line.set_color(style.colour(body))
            setpoint.set_data(track.time_s, wanted[:, k])
            ax.set_ylim(_limits(np.concatenate([measured[:, k], wanted[:, k]]), k))
        handles = style.body_handles([body])
        if body in recording.setpoints:
            handles.append(style.setpoint_handle())
        self._figure.legends.clear()
        style.legend_on_top(self._figure, handles)
        return self._figure


def _setpoints(recording: Recording, body: str, angles_deg: np.ndarray) -> np.ndarray:
    """Held set-points (T, 6), angles on the turn of the measured ones; NaN without any."""
    if body not in recording.setpoints:
        return np.full((len(angles_deg), 6), np.nan)
    held = recording.setpoints[body].held_at(recording.bodies[body].time_s)
    difference = wrapped(roll_pitch_yaw(held.orientation_wxyz) - np.radians(angles_deg))
    return np.hstack([held.position_enu_m, angles_deg + np.degrees(difference)])


def _limits(values: np.ndarray, k: int) -> tuple[float, float]:
    low, high = np.nanmin(values), np.nanmax(values)
    half = max(0.54 * (high - low), 0.5 * _SMALLEST_RANGE[k])
    return 0.5 * (low + high) - half, 0.5 * (low + high) + half


# ---------- Tension of each cable over time, with slack marked.

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
        peaks: Largest tensions by name, from `musls_analysis.report.summary`; they are marked.
    """
    cables = {n: c for n, c in recording.cables.items() if len(c.time_s)}
    figure = style.new_figure(0.8 + LABEL_HEIGHT_IN + 0.82 * len(cables))
    axes = figure.subplots(len(cables), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    handles = style.body_handles(cables)
    handles.append(Line2D([], [], color=style.FAINT, lw=1.2, label="at end 2 (the drone)"))
    handles.append(Patch(color=_SLACK, label=f"slack (below {slack_threshold_n:.2g} N)"))
    top_in = style.legend_on_top(figure, handles) + LABEL_HEIGHT_IN
    style.margins(figure, 0.6, 0.38, 0.4, top_in, hspace=0.18)
    shade_stages(recording, axes)
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
    mark_events(recording, axes)
    axes[-1].set_xlabel("time [s]")
    name_stages(recording, axes[0])
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


# ---------- Rotor speeds of each drone over time.


def rotors_figure(recording: Recording) -> Figure:
    """Draw one panel per drone: mean of the rotors, and a band from slowest to fastest."""
    figure = style.new_figure(0.8 + LABEL_HEIGHT_IN + 0.82 * len(recording.rotors))
    axes = figure.subplots(len(recording.rotors), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    handles = [
        *style.body_handles(recording.rotors),
        Line2D([], [], color=style.FAINT, lw=1.8, label="mean of the rotors"),
        Patch(color=style.FAINT, alpha=0.4, label="slowest to fastest"),
    ]
    top_in = style.legend_on_top(figure, handles) + LABEL_HEIGHT_IN
    style.margins(figure, 0.6, 0.38, 0.4, top_in, hspace=0.18)
    shade_stages(recording, axes)
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
    mark_events(recording, axes)
    axes[-1].set_xlabel("time [s]")
    name_stages(recording, axes[0])
    return figure


# ---------- Charge, power and voltage of the drones' batteries over time.


def batteries_figure(recording: Recording) -> Figure:
    """Draw three panels: charge, power, voltage; one line per drone."""
    figure = style.new_figure(0.8 + LABEL_HEIGHT_IN + 0.95 * 3)
    axes = figure.subplots(3, 1, sharex=True)
    top_in = style.legend_on_top(figure, style.body_handles(recording.batteries))
    style.margins(figure, 0.78, 0.38, 0.4, top_in + LABEL_HEIGHT_IN, hspace=0.18)
    shade_stages(recording, axes)
    style.hide_time(axes[:-1])
    for drone, battery in recording.batteries.items():
        values = (100.0 * battery.charge, battery.power_w, battery.voltage_v)
        for ax, value in zip(axes, values, strict=True):
            ax.plot(battery.time_s, value, color=style.colour(drone), lw=1.1)
    for ax, name in zip(axes, ("charge\n[%]", "power\n[W]", "voltage\n[V]"), strict=True):
        ax.set_ylabel(name)
        ax.locator_params(axis="y", nbins=4)
    axes[1].set_ylim(bottom=0.0)
    mark_events(recording, axes)
    axes[-1].set_xlabel("time [s]")
    name_stages(recording, axes[0])
    return figure


# ---------- What rigs have besides: forces at anchors, free lengths of reeled cables.

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
    """Draw the free length of each cable that winches or pulleys change, all in one panel."""
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
    figure = style.new_figure(0.6 + LABEL_HEIGHT_IN + height_in * count)
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    style.margins(figure, 0.6, 0.38, 0.4, 0.12 + LABEL_HEIGHT_IN, hspace=0.18)
    shade_stages(recording, axes)
    style.hide_time(axes[:-1])
    axes[-1].set_xlabel("time [s]")
    name_stages(recording, axes[0])
    return figure, axes


# ---------- Errors per stage and body: mean as a dot, greatest as the end of a thin line.

_PANELS = (
    ("translational_error_m", "translational_error_max_m", 1000.0, "translational error [mm]", 0.1),
    ("geodesic_error_deg", "geodesic_error_max_deg", 1.0, "geodesic error [deg]", 0.01),
)
"""Keys of mean and greatest, scale, axis label, smallest value shown."""


def stage_errors_figure(summary: Mapping[str, Any]) -> Figure:
    """Draw translational errors on the left, geodesic errors on the right.

    Args:
        summary: With "errors" and "stages" of `musls_analysis.report.summary`.
    """
    errors = summary["errors"]
    names = [s["name"] for s in summary["stages"] if any(s["name"] in e for e in errors.values())]
    figure = style.new_figure(0.8 + max(0.2, 0.062 * len(errors) + 0.05) * len(names))
    axes = figure.subplots(1, 2, sharey=True)
    handles = [
        *style.body_handles(errors),
        Line2D([], [], color=style.FAINT, marker="o", ms=4.5, ls="", label="mean"),
        Line2D([], [], color=style.FAINT, marker="|", ms=5, mew=1.2, lw=0.9, label="greatest"),
    ]
    style.margins(figure, 0.75, 0.2, 0.42, style.legend_on_top(figure, handles), wspace=0.12)
    for ax, (mean, greatest, scale, title, floor) in zip(axes, _PANELS, strict=True):
        points = {
            body: np.array([
                (i, scale * stages[name][mean], scale * stages[name][greatest])
                for i, name in enumerate(names) if name in stages
            ])
            for body, stages in errors.items() if stages
        }  # fmt: skip
        for k, (body, rows) in enumerate(points.items()):
            shift = (k - 0.5 * (len(points) - 1)) * 0.78 / len(points)
            _lollipops(ax, rows[:, 0] + shift, np.maximum(rows[:, 1:], floor), style.colour(body))
        everything = np.concatenate([rows[:, 1:] for rows in points.values()])
        _scale(ax, floor, everything.min(), everything.max())
        ax.set_xlabel(title)
        for i in range(1, len(names), 2):
            ax.axhspan(i - 0.5, i + 0.5, color=BAND, linewidth=0, zorder=0)
    axes[1].yaxis.set_visible(False)
    axes[0].tick_params(axis="y", length=0)
    axes[0].grid(False, axis="y")
    axes[0].set_yticks(range(len(names)), [style.label(n) for n in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def _lollipops(ax: Axes, y: np.ndarray, values: np.ndarray, colour: str) -> None:
    """Draw mean (n, 0) and greatest (n, 1) at heights y (n,)."""
    mean, greatest = values.T
    lines = [[(a, h), (b, h)] for a, b, h in zip(mean, greatest, y, strict=True)]
    ax.add_collection(LineCollection(lines, colors=colour, linewidths=1.0, alpha=0.65))
    ax.plot(greatest, y, ls="", marker="|", ms=4.0, mew=1.2, color=colour)
    ax.plot(mean, y, ls="", marker="o", ms=4.0, mec="white", mew=0.4, color=colour, clip_on=False)


def _scale(ax: Axes, floor: float, lowest: float, highest: float) -> None:
    """Logarithmic, because errors on the ground and in flight differ by orders of magnitude."""
    first = np.floor(np.log10(max(lowest, floor)))
    last = max(np.ceil(np.log10(max(highest, floor))), first + 1.0)
    ticks = 10.0 ** np.arange(first, last + 1.0)
    names = [f"{tick:g}" for tick in ticks]
    if lowest < ticks[0]:
        names[0] = f"≤ {names[0]}"
    ax.set_xscale("log")
    ax.set_xlim(ticks[0], ticks[-1])
    ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
    ax.xaxis.set_major_formatter(FixedFormatter(names))
    ax.xaxis.set_minor_locator(NullLocator())
