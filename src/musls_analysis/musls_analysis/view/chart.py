"""Curves and scales of pictures and viewer: errors, tensions and their colours, the strip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from musls_analysis.comparison.errors import error_track, translational_error_m
from musls_analysis.figures.style import (
    BAND,
    EVENT,
    FAINT,
    GRID,
    INK,
    SLACK_CABLE,
    UNKNOWN_TENSION,
    colour,
    label,
    shown_events,
)
from musls_analysis.recordings.recording import Stage
from musls_analysis.report.summary import DEFAULT_SLACK_THRESHOLD_N
from musls_analysis.view.canvas import Canvas
from musls_analysis.view.scene import Subject, bodies_of

_SHARE = 99.5
"""Percentile of the values that an axis or a scale holds; shorter peaks are cut off."""
_LIMITS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_TIME_PX = 60.0
"""For the words below the right end of the time axis."""


def round_up(value: float, steps: Sequence[float] = _LIMITS) -> float:
    """The next greater of some steps, from 1 to 10, times a power of ten."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(s * power for s in steps if s * power >= value * (1.0 - 1e-9)))


def ticks(low: float, high: float, count: int) -> np.ndarray:
    """About as many round values between two."""
    step = round_up((high - low) / count, (1, 2, 5, 10))
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return step * np.arange(first, last + 1.0) + 0.0  # no negative zero


# ---------- Colours of cable tension


@dataclass(frozen=True)
class TensionScale:
    """Colours from slack to a greatest tension.

    Attributes:
        limit_n: Tension of the last colour; higher ones look the same.
        slack_n: Tension below which a cable is slack.
    """

    limit_n: float
    slack_n: float = DEFAULT_SLACK_THRESHOLD_N

    def colours(self, tension_n: np.ndarray) -> np.ndarray:
        """Red, green, blue from 0 to 1 (..., 3) of tensions [N] (...); NaN is grey."""
        tension = np.asarray(tension_n, float)
        share = np.clip(np.nan_to_num(tension) / self.limit_n, 0.0, 1.0)
        rgb = np.asarray(colormaps["plasma"](0.86 * share))[..., :3]  # its end is lost on white
        rgb = np.where((tension < self.slack_n)[..., None], to_rgb(SLACK_CABLE), rgb)
        return np.where(np.isnan(tension)[..., None], to_rgb(UNKNOWN_TENSION), rgb)

    def ticks_n(self) -> np.ndarray:
        """Round tensions from 0 to the limit."""
        step = round_up(self.limit_n / 4.0, (1, 2, 2.5, 5, 10))
        return np.arange(0.0, self.limit_n * 1.0001, step)

    def draw(self, canvas: Canvas, x: float, y: float, width: float) -> None:
        """Draw a bar of the colours with round tensions below, from its upper left corner."""
        canvas.text(x, y - 7.0, "cable tension at the load [N]", 11.0, INK)
        steps, height = 60, 9.0
        shades = self.colours((np.arange(steps) + 0.5) / steps * self.limit_n)
        for k, shade in enumerate(shades):
            canvas.rectangle(x + k / steps * width, y, width / steps + 0.5, height, shade)
        for tension in self.ticks_n():
            at = x + tension / self.limit_n * width
            canvas.line(np.array([[at, y + height], [at, y + height + 3.0]]), INK, 0.8)
            canvas.text(at, y + height + 15.0, f"{tension:g}", 11.0, INK, align="center")
        canvas.rectangle(x - 52.0, y, 14.0, height, SLACK_CABLE)
        canvas.text(x - 45.0, y + height + 15.0, "slack", 11.0, INK, align="center")


def tension_scale(subject: Subject, window_s: tuple[float, float]) -> TensionScale:
    """Scale that holds all but the shortest peaks of a recording with tensions, in times shown."""
    start_s, end_s = (t - subject.shift_s for t in window_s)
    cables = subject.recording.cables.values()
    inside = [c.tension_n[(c.time_s >= start_s) & (c.time_s <= end_s), 0] for c in cables]
    values = np.concatenate(inside)
    greatest = float(np.percentile(values, _SHARE)) if values.size else 1.0
    return TensionScale(round_up(max(greatest, 1.0)))


# ---------- Curves


@dataclass(frozen=True)
class Series:
    """A quantity (T,) of one body or cable over the times shown (T,); NaN where not known."""

    name: str
    time_s: np.ndarray
    value: np.ndarray


def differences(subjects: Sequence[Subject]) -> list[Series]:
    """Distance of the same body in two subjects, at the samples of the first [m]."""
    first, second = subjects
    series = []
    for body in bodies_of(subjects):
        track = first.recording.bodies[body]
        time_s = track.time_s + first.shift_s
        places = first.centre_enu_m(body, track), second.centre_at(body, time_s)
        series.append(Series(body, time_s, translational_error_m(*places)))
    return series


def setpoint_errors(subject: Subject) -> tuple[list[Series], list[Series]]:
    """Distance (eq. 12) [m] and angle (eq. 13) [deg] to the held set-point, by body."""
    distances, angles = [], []
    for body, setpoint in subject.recording.setpoints.items():
        error = error_track(subject.recording.bodies[body], setpoint)
        time_s = error.time_s + subject.shift_s
        distances.append(Series(body, time_s, error.translational_error_m))
        angles.append(Series(body, time_s, np.degrees(error.geodesic_error_rad)))
    return distances, angles


def tensions(subject: Subject) -> list[Series]:
    """Tension at the load by cable [N]."""
    return [
        Series(name, cable.time_s + subject.shift_s, cable.tension_n[:, 0])
        for name, cable in subject.recording.cables.items()
        if len(cable.time_s)
    ]


class Strip:
    """The strip below a scene: curves over time, with a mark at the present moment.

    Of two recordings it shows how far apart they are; of one its tensions, else the errors to its
    set-points. Without any `series` there is nothing to show.
    """

    def __init__(
        self,
        subjects: Sequence[Subject],
        stages: Sequence[Stage],
        window_s: tuple[float, float],
        box: tuple[float, float, float, float],
    ) -> None:
        """Choose the curves of one or two subjects and lay them out.

        The stages become bands behind them, in the times shown. The box is left, top, right, bottom
        [px].
        """
        if len(subjects) == 2:
            series, self._title = differences(subjects), "distance between the two [m]"
        elif subjects[0].has_tension:
            series, self._title = tensions(subjects[0]), "tension at the load [N]"
        else:
            series, self._title = setpoint_errors(subjects[0])[0], "distance to the set-point [m]"
        self.series, self._stages, self._window_s, self._box = series, stages, window_s, box
        self._events = [
            (event.time_s + subjects[0].shift_s, event.kind)
            for event in shown_events(subjects[0].recording)
            if event.what != "over"
        ]
        self._inside = [(s.time_s >= window_s[0]) & (s.time_s <= window_s[1]) for s in series]
        values = [s.value[m] for s, m in zip(series, self._inside, strict=True)]
        known = np.concatenate([np.empty(0), *values])
        known = known[np.isfinite(known)]
        high = float(np.percentile(known, _SHARE)) if known.size else 1.0
        self._high = round_up(1.08 * max(high, 1e-3))

    def _at(self, time_s: np.ndarray | float, value: np.ndarray | float) -> np.ndarray:
        """Picture points (..., 2) of values at times, held within the strip."""
        left, top, right, bottom = self._box
        start_s, end_s = self._window_s
        x = left + (np.asarray(time_s) - start_s) / max(end_s - start_s, 1e-9) * (right - left)
        y = bottom - np.clip(np.asarray(value) / self._high, 0.0, 1.0) * (bottom - top)
        return np.stack(np.broadcast_arrays(x, y), axis=-1)

    def _vertical(self, canvas: Canvas, time_s: float, shade: str, width: float) -> float:
        """Draw a line through the strip; returns where."""
        _, top, _, bottom = self._box
        x = float(self._at(time_s, 0.0)[0])
        canvas.line(np.array([[x, top], [x, bottom]]), shade, width)
        return x

    def draw(self, canvas: Canvas) -> None:
        """Draw all that stays the same."""
        left, top, right, bottom = self._box
        for k, stage in enumerate(self._stages):  # a band for every second one, names if they fit
            span = np.clip([stage.start_s, stage.end_s], *self._window_s)
            x0, x1 = self._at(span, 0.0)[:, 0]
            if k % 2 and x1 > x0:
                canvas.rectangle(x0, top, x1 - x0, bottom - top, BAND)
            if x1 - x0 > 6.2 * len(label(stage.name)):
                middle = 0.5 * (x0 + x1)
                canvas.text(middle, top - 4.0, label(stage.name), 10.5, FAINT, align="center")
        for value in ticks(0.0, self._high, 3):
            y = self._at(self._window_s[0], value)[1]
            canvas.line(np.array([[left, y], [right, y]]), GRID, 0.8)
            canvas.text(left - 6.0, y + 4.0, f"{value:g}", 11.0, INK, align="right")
        for time_s in ticks(*self._window_s, 10 if right - left > 600.0 else 6):
            x = self._at(time_s, 0.0)[0]
            canvas.line(np.array([[x, bottom], [x, bottom + 3.0]]), INK, 0.8)
            canvas.text(x, bottom + 15.0, f"{time_s:g}", 11.0, INK, align="center")
        canvas.text(right, bottom + 29.0, "time [s]", 11.0, INK, align="right")
        self._mark_events(canvas)
        x = left + canvas.text(left, bottom + 29.0, self._title, 11.0, INK, bold=True) + 16.0
        for series, mask in zip(self.series, self._inside, strict=True):
            name, shade = label(series.name), colour(series.name)
            canvas.line(self._at(series.time_s[mask], series.value[mask]), shade, 1.4)
            if x + 18.0 + canvas.width_of(name, 11.0) > right - _TIME_PX:
                continue  # no room for more names
            canvas.line(np.array([[x, bottom + 25.0], [x + 14.0, bottom + 25.0]]), shade, 2.4)
            x += 18.0 + canvas.text(x + 18.0, bottom + 29.0, name, 11.0, INK) + 12.0

    def draw_moment(self, canvas: Canvas, time_s: float) -> None:
        """Mark the present moment."""
        self._vertical(canvas, time_s, INK, 1.2)
        angle = np.linspace(0.0, 2.0 * np.pi, 14, endpoint=False)
        ring = 3.2 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        for series in self.series:
            value = np.interp(time_s, series.time_s, series.value, left=np.nan, right=np.nan)
            if np.isfinite(value):
                canvas.polygon(self._at(time_s, value) + ring, colour(series.name), "white", 1.0)

    def _mark_events(self, canvas: Canvas) -> None:
        """A line at each event, its kind beside it where there is room."""
        _, top, right, _ = self._box
        free = -np.inf
        for time_s, kind in self._events:
            if self._window_s[0] <= time_s <= self._window_s[1]:
                x = self._vertical(canvas, time_s, EVENT, 1.0)
                if free < x < right - 6.0 * len(label(kind)):
                    free = x + 6.0 + canvas.text(x + 3.0, top + 10.0, label(kind), 10.5, EVENT)
