"""Figures of a flight over time, with its stages as bands and its events as marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from musls_analysis.comparison.errors import setpoint_pose
from musls_analysis.comparison.summary import PEAK_PLACES, slack_intervals
from musls_analysis.figures import style
from musls_analysis.figures.style import BAND, EVENT, FAINT, INK, label
from musls_analysis.recordings.recording import PoseTrack, Recording
from musls_description.numerics.rotations import roll_pitch_yaw, wrapped

if TYPE_CHECKING:
    from musls_analysis.scene import Subject

# ---------- Stages and events

STAGE_NAMES_IN = 0.52
"""Room that the names of the stages need above the axes."""
_NAME_PITCH_IN = 0.155
"""Smallest distance of two slanted names along the axis."""


def shade_stages(recording: Recording, axes: Iterable[Axes]) -> None:
    """Draw a band behind every second stage and fix the time axis to the recording."""
    bands = [(s.start_s, s.duration_s) for s in recording.stages[1::2]]
    for ax in axes:
        ax.set_xlim(recording.start_s, recording.end_s)
        ax.grid(False, axis="x")
        if bands:
            place = ax.get_xaxis_transform()
            ax.broken_barh(bands, (0, 1), transform=place, color=BAND, linewidth=0, zorder=0)


def name_stages(recording: Recording, ax: Axes) -> None:
    """Write the stages' names above an axis, slanted, moved apart where stages are short.

    Where there is no room for all, the longest stages have theirs.
    """
    width_in, height_in = style.size_in(ax)
    start = recording.start_s
    length = max(recording.end_s - recording.start_s, 1e-9)
    longest = sorted(recording.stages, key=lambda s: -s.duration_s)
    selection = longest[: int(width_in / _NAME_PITCH_IN) + 1]
    stages = [stage for stage in recording.stages if stage in selection]
    feet = np.array([(0.5 * (s.start_s + s.end_s) - start) / length for s in stages])
    heads = spread(feet * width_in, _NAME_PITCH_IN, width_in) / width_in
    low, high = 1.0 + 0.02 / height_in, 1.0 + 0.10 / height_in
    lines = [[(foot, low), (head, high)] for foot, head in zip(feet, heads, strict=True)]
    ax.add_collection(
        LineCollection(lines, transform=ax.transAxes, colors=FAINT, linewidths=0.6, clip_on=False),
        autolim=False,
    )
    for stage, head in zip(stages, heads, strict=True):
        ax.text(
            head,
            high,
            label(stage.name),
            transform=ax.transAxes,
            rotation=52,
            rotation_mode="anchor",
            fontsize=6.8,
        )


def spread(places: np.ndarray, pitch: float, width: float) -> np.ndarray:
    """Move ordered places (n,) apart to a pitch (less if not all fit), within 0 to a width."""
    n = len(places)
    if n < 2:
        return places
    offsets = min(pitch, width / (n - 1)) * np.arange(n)
    positions = scipy.optimize.isotonic_regression(places - offsets).x
    return np.clip(positions, 0.0, width - offsets[-1]) + offsets


def mark_events(recording: Recording, axes: Sequence[Axes]) -> None:
    """Draw a dashed line at each event through all panels; the lowest one names those with room."""
    notes: list[Annotation] = []
    span_s = max(recording.end_s - recording.start_s, 1e-9)
    for event in style.shown_events(recording):
        over = event.what == "over"
        for ax in axes:
            ax.axvline(event.time_s, color=EVENT, lw=0.8, ls=":" if over else "--", zorder=1)
        if over:
            continue
        late = event.time_s - recording.start_s > 0.8 * span_s
        note = axes[-1].annotate(
            label(event.kind),
            (event.time_s, 0.04),
            xycoords=axes[-1].get_xaxis_transform(),
            xytext=(-2 if late else 2, 0),
            textcoords="offset points",
            fontsize=6.5,
            color=EVENT,
            ha="right" if late else "left",
        )
        if notes and note.get_window_extent().overlaps(notes[-1].get_window_extent()):
            note.remove()
        else:
            notes.append(note)


def _panels(
    recording: Recording,
    labels: Sequence[str],
    handles: Sequence[Artist] = (),
    panel_in: float = 0.82,
    left_in: float = 0.6,
    same_scale: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Figure of panels over time, one below the other, each with a text at its axis."""
    figure = style.new_figure((0.8 if handles else 0.6) + STAGE_NAMES_IN + panel_in * len(labels))
    axes = list(
        figure.subplots(len(labels), 1, sharex=True, sharey=same_scale, squeeze=False)[:, 0]
    )
    top_in = style.legend_on_top(figure, handles) if handles else 0.12
    style.margins(figure, left_in, 0.38, 0.4, top_in + STAGE_NAMES_IN, hspace=0.18)
    shade_stages(recording, axes)
    style.hide_time(axes[:-1])
    for ax, text in zip(axes, labels, strict=True):
        ax.set_ylabel(text)
        if handles:
            ax.locator_params(axis="y", nbins=4)
    if handles:
        mark_events(recording, axes)
    axes[-1].set_xlabel("time [s]")
    name_stages(recording, axes[0])
    return figure, axes


# ---------- Figures


POSE_LABELS = ("x [m]", "y [m]", "z [m]", "roll [deg]", "pitch [deg]", "yaw [deg]")
_LEFT_IN = 0.58
_BETWEEN_IN = 0.72
_LABEL_IN = 0.44
"""Room for ticks and labels, and how far left of the axes the labels stand."""


def pose_axes(
    height_in: float, handles: Sequence[Artist], above_in: float
) -> tuple[Figure, np.ndarray]:
    """Figure with axes (3, 2) below a legend: positions on the left, angles on the right."""
    figure = style.new_figure(height_in)
    axes = figure.subplots(3, 2, sharex=True)
    top_in = style.legend_on_top(figure, handles) + above_in
    right_in = 0.38
    width_in = 0.5 * (figure.get_figwidth() - _LEFT_IN - _BETWEEN_IN - right_in)
    style.margins(
        figure, _LEFT_IN, right_in, 0.4, top_in, wspace=_BETWEEN_IN / width_in, hspace=0.15
    )
    style.hide_time(axes[:-1].flat)
    for ax, text in zip(axes.T.flat, POSE_LABELS, strict=True):
        ax.set_ylabel(text)
        ax.yaxis.set_label_coords(-_LABEL_IN / width_in, 0.5)
        ax.locator_params(axis="y", nbins=4)
        ax.grid(False, axis="x")
    return figure, axes


def pose_figure(recording: Recording, body: str, other: Subject | None = None) -> Figure:
    """Draw x, y, z on the left and roll, pitch, yaw on the right (as Fig. 8 of the paper)."""
    handles = style.body_handles([body]) + style.second_handles(other)
    if body in recording.setpoints:
        handles.append(style.setpoint_handle())
    figure, axes = pose_axes(3.95, handles, STAGE_NAMES_IN)
    shade_stages(recording, axes.flat)
    track = recording.bodies[body]
    values = _pose_columns(track)
    setpoint = _asked(recording, body, values[:, 3:])
    second = None if other is None else other.recording.bodies.get(body)
    laid = np.zeros((0, 6)) if second is None else _pose_columns(second)
    if len(laid):
        laid[:, 3:] += 360.0 * np.round((values[:, 3:].mean(0) - laid[:, 3:].mean(0)) / 360.0)
    for k, ax in enumerate(axes.T.flat):
        ax.plot(track.time_s, values[:, k], color=style.colour(body))
        if other is not None and second is not None:
            ax.plot(second.time_s + other.shift_s, laid[:, k], color=style.SECOND, lw=0.9)
        ax.plot(track.time_s, setpoint[:, k], **style.SETPOINT_LINE)
        curves = [values[:, k], setpoint[:, k], laid[:, k]]
        ax.set_ylim(value_limits(curves, 0.4 if k < 3 else 4.0))
    for top, bottom in zip(axes[0], axes[-1], strict=True):
        name_stages(recording, top)
        bottom.set_xlabel("time [s]")
    return figure


def _pose_columns(track: PoseTrack) -> np.ndarray:
    """Positions [m] and unwrapped angles [deg], (T, 6)."""
    angles_rad = np.unwrap(roll_pitch_yaw(track.orientation_wxyz), axis=0)
    return np.hstack([track.position_enu_m, np.degrees(angles_rad)])


def _asked(recording: Recording, body: str, angles_deg: np.ndarray) -> np.ndarray:
    """Set-point of a body (T, 6), angles on the turn of the measured; NaN where none."""
    if body not in recording.setpoints:
        return np.full((len(angles_deg), 6), np.nan)
    setpoint = setpoint_pose(recording, body)
    difference = wrapped(roll_pitch_yaw(setpoint.orientation_wxyz) - np.radians(angles_deg))
    return np.hstack([setpoint.position_enu_m, angles_deg + np.degrees(difference)])


def value_limits(values: Sequence[np.ndarray], least: float) -> tuple[float, float]:
    """Limits of an axis that shows at least so much, so that noise does not look like motion."""
    everything = np.concatenate(values)
    low, high = np.nanmin(everything), np.nanmax(everything)
    half = max(0.54 * (high - low), 0.5 * least)
    return 0.5 * (low + high) - half, 0.5 * (low + high) + half


WORTH_MARKING = 0.2
"""Share of the largest tension of all from which a named one is marked."""


def tensions_figure(
    recording: Recording,
    slack_threshold_n: float,
    peaks: Mapping[str, Mapping[str, Any]] | None = None,
    other: Subject | None = None,
) -> Figure:
    """Draw the tension of each cable that has one, same scale; slack is below the threshold.

    The largest tensions by name, from `musls_analysis.comparison.summary`, are marked.
    """
    cables = {n: c for n, c in recording.cables.items() if len(c.time_s)}
    handles = [
        *style.body_handles(cables),
        *style.second_handles(other),
        Line2D([], [], color=FAINT, lw=1.2, label="at end 2 (the drone)"),
        Patch(color=EVENT, label=f"slack (below {slack_threshold_n:.2g} N)"),
    ]
    texts = [f"{label(name)} [N]" for name in cables]
    figure, axes = _panels(recording, texts, handles, same_scale=True)
    for ax, (name, cable) in zip(axes, cables.items(), strict=True):
        ax.plot(cable.time_s, cable.tension_n[:, 1], color=FAINT, lw=0.8)
        if other is not None and name in other.recording.cables:
            second = other.recording.cables[name]
            ax.plot(
                second.time_s + other.shift_s, second.tension_n[:, 0], color=style.SECOND, lw=0.9
            )
        ax.plot(cable.time_s, cable.tension_n[:, 0], color=style.colour(name), lw=1.1)
        slack = [(a, b - a) for a, b in slack_intervals(cable, slack_threshold_n)]
        place = ax.get_xaxis_transform()
        ax.broken_barh(slack, (0.0, 0.055), transform=place, color=EVENT, linewidth=0, zorder=3)
    highest = max(float(c.tension_n.max()) for c in cables.values())
    axes[0].set_ylim(-0.09 * highest, 1.06 * highest)
    least = max((peak["max_n"] for peak in (peaks or {}).values()), default=0.0) * WORTH_MARKING
    for ax, name in zip(axes, cables, strict=True):
        notes = [
            _mark_peak(ax, PEAK_PLACES[where], peak, recording)
            for where, peak in sorted((peaks or {}).items(), key=lambda item: -item[1]["max_n"])
            if peak["cable"] == name and peak["max_n"] >= least
        ]
        style.keep_apart(notes)
    return figure


def _mark_peak(ax: Axes, name: str, peak: Mapping[str, Any], recording: Recording) -> Annotation:
    """A triangle and the number at a named peak; one beyond the axis is marked at its end."""
    top = ax.get_ylim()[1]
    beyond = peak["max_n"] > top
    height = min(peak["max_n"], top)
    ax.plot(
        [peak["time_s"]],
        [height],
        marker="^" if beyond else "v",
        ms=4,
        color=INK,
        mec="white",
        mew=0.4,
        clip_on=False,
        zorder=6,
    )
    late = peak["time_s"] - recording.start_s > 0.6 * (recording.end_s - recording.start_s)
    higher_pt = -12 if beyond else 5 if height < 0.8 * top else 0
    return ax.annotate(
        f"{peak['max_n']:.1f} N {name}",
        (peak["time_s"], height),
        xytext=(-6 if late else 6, higher_pt),
        textcoords="offset points",
        fontsize=6.5,
        color=INK,
        ha="right" if late else "left",
        va="center",
        zorder=6,
        bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6},
    )


def rotors_figure(recording: Recording) -> Figure:
    """Draw one panel per drone: mean of the rotors, and a band from slowest to fastest."""
    handles = [
        *style.body_handles(recording.rotors),
        Line2D([], [], color=FAINT, lw=1.8, label="mean of the rotors"),
        Patch(color=FAINT, alpha=0.4, label="slowest to fastest"),
    ]
    texts = [f"{label(drone)}\n[rad/s]" for drone in recording.rotors]
    figure, axes = _panels(recording, texts, handles, left_in=0.75, same_scale=True)
    for ax, (drone, track) in zip(axes, recording.rotors.items(), strict=True):
        speed = track.speed_rad_s
        shade = style.colour(drone)
        slowest = speed.min(axis=1)
        fastest = speed.max(axis=1)
        ax.fill_between(track.time_s, slowest, fastest, color=shade, alpha=0.3, linewidth=0)
        ax.plot(track.time_s, speed.mean(axis=1), color=shade, lw=1.1)
    axes[0].set_ylim(bottom=0.0)
    return figure


def batteries_figure(recording: Recording) -> Figure:
    """Draw three panels: charge, power, voltage; one line per drone."""
    handles = style.body_handles(recording.batteries)
    texts = ("charge\n[%]", "power\n[W]", "voltage\n[V]")
    figure, axes = _panels(recording, texts, handles, 0.95, 0.78)
    for drone, battery in recording.batteries.items():
        values = (100.0 * battery.charge, battery.power_w, battery.voltage_v)
        for ax, value in zip(axes, values, strict=True):
            ax.plot(battery.time_s, value, color=style.colour(drone), lw=1.1)
    axes[1].set_ylim(bottom=0.0)
    return figure


def anchor_forces_figure(recording: Recording) -> Figure:
    """Draw the force that holds, moves or pushes each anchor, one panel per anchor."""
    shades = {"east": "#0072b2", "north": "#009e73", "up": "#d55e00"}
    texts = [f"{label(name)} [N]" for name in recording.wrenches]
    figure, axes = _panels(recording, texts, panel_in=0.95)
    for ax, track in zip(axes, recording.wrenches.values(), strict=True):
        for force, (axis, shade) in zip(track.force_enu_n.T, shades.items(), strict=True):
            ax.plot(track.time_s, force, color=shade, lw=1.0, label=axis)
    axes[0].legend(loc="upper right", ncol=3)
    return figure


def free_lengths_figure(recording: Recording) -> Figure:
    """Draw the free length of each cable that winches or pulleys change, all in one panel."""
    figure, (ax,) = _panels(recording, ["free length [m]"], panel_in=2.2)
    for name, cable in recording.cables.items():
        if len(cable.free_length_m):
            time_s = cable.free_length_time_s
            shade = style.colour(name)
            ax.plot(time_s, cable.free_length_m, color=shade, lw=1.2, label=label(name))
    ax.legend(loc="upper right", ncol=4)
    return figure


# ---------- Errors per stage and body


def stage_errors_figure(summary: Mapping[str, Any]) -> Figure:
    """Draw a summary's errors by stage: the mean as a dot, the greatest as the end of a line."""
    errors = summary["errors"]
    names = [s["name"] for s in summary["stages"] if any(s["name"] in e for e in errors.values())]
    figure = style.new_figure(0.8 + max(0.2, 0.062 * len(errors) + 0.05) * len(names))
    axes = figure.subplots(1, 2, sharey=True)
    handles = [
        *style.body_handles(errors),
        Line2D([], [], color=FAINT, marker="o", ms=4.5, ls="", label="mean"),
        Line2D([], [], color=FAINT, marker="|", ms=5, mew=1.2, lw=0.9, label="greatest"),
    ]
    top_in = style.legend_on_top(figure, handles)
    gap_in = 0.35
    panel_in = 0.5 * (figure.get_figwidth() - 0.95 - gap_in)
    narrow = panel_in < 1.6  # than the titles
    style.margins(figure, 0.75, 0.2, 0.55 if narrow else 0.42, top_in, wspace=gap_in / panel_in)
    for ax, quantity, unit, scale, title, floor in (
        (axes[0], "translational_error", "m", 1000.0, "translational error [mm]", 0.1),
        (axes[1], "geodesic_error", "deg", 1.0, "geodesic error [deg]", 0.01),
    ):
        mean = f"{quantity}_{unit}"
        greatest = f"{quantity}_max_{unit}"
        points = {
            body: np.array(
                [
                    (i, scale * stages[name][mean], scale * stages[name][greatest])
                    for i, name in enumerate(names)
                    if name in stages
                ]
            )
            for body, stages in errors.items()
            if stages
        }
        for k, (body, rows) in enumerate(points.items()):
            shift = (k - 0.5 * (len(points) - 1)) * 0.78 / len(points)
            _lollipops(ax, rows[:, 0] + shift, np.maximum(rows[:, 1:], floor), style.colour(body))
        everything = np.concatenate([rows[:, 1:] for rows in points.values()])
        _logarithmic(ax, floor, everything.min(), everything.max())
        ax.set_xlabel(title.replace(" error", "\nerror") if narrow else title)
        for i in range(1, len(names), 2):
            ax.axhspan(i - 0.5, i + 0.5, color=BAND, linewidth=0, zorder=0)
    axes[1].yaxis.set_visible(False)
    axes[0].tick_params(axis="y", length=0)
    axes[0].grid(False, axis="y")
    axes[0].set_yticks(range(len(names)), [label(n) for n in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def _lollipops(ax: Axes, y: np.ndarray, values: np.ndarray, shade: str) -> None:
    """Draw mean (n, 0) and greatest (n, 1) at heights y (n,)."""
    mean, greatest = values.T
    ax.hlines(y, mean, greatest, colors=shade, linewidths=1.0, alpha=0.65)
    ax.plot(greatest, y, ls="", marker="|", ms=4.0, mew=1.2, color=shade)
    ax.plot(mean, y, ls="", marker="o", ms=4.0, mec="white", mew=0.4, color=shade, clip_on=False)


def _logarithmic(ax: Axes, floor: float, lowest: float, highest: float) -> None:
    """Errors on the ground and in flight differ by orders of magnitude."""
    first = np.floor(np.log10(max(lowest, floor)))
    last = max(np.ceil(np.log10(max(highest, floor))), first + 1.0)
    step = np.ceil(0.36 * (last - first) / style.size_in(ax)[0])
    ticks = 10.0 ** np.arange(first, last + 1.0, step)
    names = [f"{tick:g}" for tick in ticks]
    if lowest < ticks[0]:
        names[0] = f"≤ {names[0]}"
    ax.set_xscale("log")
    ax.set_xlim(ticks[0], 10.0**last)
    ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
    ax.xaxis.set_major_formatter(FixedFormatter(names))
    ax.xaxis.set_minor_locator(NullLocator())
