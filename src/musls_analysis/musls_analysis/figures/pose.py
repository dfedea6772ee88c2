"""Position and attitude of one body over time against its set-point (as Fig. 8 of the paper)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from musls_analysis.figures import stages, style
from musls_analysis.figures.layers import LayeredFigure
from musls_analysis.recordings.recording import Recording
from musls_description.rotations import roll_pitch_yaw, wrapped

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
        top_in = 0.36 + stages.LABEL_HEIGHT_IN  # legend of one row, names
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
            stages.shade_stages(recording, self._axes)
            for top in self._axes[0], self._axes[3]:
                stages.name_stages(recording, top)
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
