"""The strip below the scene: what goes on over time, with a mark at the present moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from musls_analysis.comparison.errors import error_track, translational_error_m
from musls_analysis.figures.over_time import BAND, EVENT, MOST
from musls_analysis.figures.style import FAINT, GRID, INK, colour, label
from musls_analysis.recordings.recording import DEFAULT_GAP_LIMIT_S, Stage, resample
from musls_analysis.report.summary import DEFAULT_SLACK_THRESHOLD_N
from musls_analysis.view.canvas import Canvas
from musls_analysis.view.scene import Subject, bodies_of

# ---------- Colours of cable tension, one scale for pictures and viewer.

UNKNOWN = to_rgb("#57606a")
"""Cables whose tension was not recorded."""
SLACK = to_rgb("#a3adb8")
_MAP, _FROM, _TO = "plasma", 0.0, 0.86  # its bright end is lost on white
_TICKS_tension_scale = (1, 2, 2.5, 5, 10)
_LIMITS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_SHARE = 99.5


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
        rgb = np.asarray(colormaps[_MAP](_FROM + (_TO - _FROM) * share))[..., :3]
        rgb = np.where((tension < self.slack_n)[..., None], SLACK, rgb)
        return np.where(np.isnan(tension)[..., None], UNKNOWN, rgb)

    def ticks_n(self) -> np.ndarray:
        """Round tensions from 0 to the limit."""
        return np.arange(
            0.0, self.limit_n * 1.0001, round_up(self.limit_n / 4.0, _TICKS_tension_scale)
        )


def round_up(value: float, steps: Sequence[float] = _LIMITS) -> float:
    """The next greater of some steps, from 1 to 10, times a power of ten."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(s * power for s in steps if s * power >= value * (1.0 - 1e-9)))


def has_tension(subject: Subject) -> bool:
    """Whether cable tensions were recorded."""
    return any(len(cable.time_s) for cable in subject.recording.cables.values())


def tension_scale(subject: Subject, window_s: tuple[float, float]) -> TensionScale:
    """Scale that holds all but the shortest peaks.

    Args:
        subject: A recording with tensions.
        window_s: Times shown.
    """
    start_s, end_s = (t - subject.shift_s for t in window_s)
    cables = subject.recording.cables.values()
    inside = [c.tension_n[(c.time_s >= start_s) & (c.time_s <= end_s), 0] for c in cables]
    values = np.concatenate(inside)
    greatest = float(np.percentile(values, _SHARE)) if values.size else 1.0
    return TensionScale(round_up(max(greatest, 1.0)))


_RANGE_SHARE = 99.5
"""Percentile of the values that the axis holds; shorter peaks are cut off."""
_TICKS = (1, 2, 5, 10)
_TIME_PX = 60.0
"""For the words below the right end of the time axis."""


@dataclass(frozen=True)
class Series:
    """One line of the strip.

    Attributes:
        name: Body or cable.
        time_s: Times shown (T,).
        value: Values (T,), NaN where not known.
    """

    name: str
    time_s: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class Strip:
    """What the strip shows.

    Attributes:
        title: Quantity and unit.
        series: Lines.
        stages: Bands behind them, in the times shown.
        events: Times and kinds of what happened, marked.
    """

    title: str
    series: Sequence[Series]
    stages: Sequence[Stage] = field(default=())
    events: Sequence[tuple[float, str]] = field(default=())


def differences(subjects: Sequence[Subject]) -> list[Series]:
    """Distance of the same body in two subjects, at the samples of the first [m]."""
    first, second = subjects
    series = []
    for body in bodies_of(subjects):
        track = first.recording.bodies[body]
        time_s = track.time_s + first.shift_s
        there = resample(
            second.recording.bodies[body], time_s - second.shift_s, DEFAULT_GAP_LIMIT_S
        )
        places = [
            subject.origin_enu_m(body, its.position_enu_m, its.orientation_wxyz)
            for subject, its in ((first, track), (second, there))
        ]
        series.append(Series(body, time_s, translational_error_m(*places)))
    return series


def setpoint_errors(subject: Subject) -> list[Series]:
    """Distance to the held set-point by body [m] (eq. 12)."""
    recording = subject.recording
    series = []
    for body, setpoint in recording.setpoints.items():
        track = error_track(recording.bodies[body], setpoint)
        series.append(Series(body, track.time_s + subject.shift_s, track.translational_error_m))
    return series


def tensions(subject: Subject) -> list[Series]:
    """Tension at the load by cable [N]."""
    return [
        Series(name, cable.time_s + subject.shift_s, cable.tension_n[:, 0])
        for name, cable in subject.recording.cables.items()
        if len(cable.time_s)
    ]


def events_of(subject: Subject) -> list[tuple[float, str]]:
    """Times, in those shown, and kinds of what happened; the first `MOST` of each kind."""
    counts: dict[str, int] = {}
    events = []
    for event in subject.recording.events:
        counts[event.kind] = counts.get(event.kind, 0) + 1
        if event.what != "over" and counts[event.kind] <= MOST:
            events.append((event.time_s + subject.shift_s, event.kind))
    return events


def strip_of(subjects: Sequence[Subject], stages: Sequence[Stage]) -> Strip | None:
    """Choose what the strip shows.

    Two recordings: how far apart they are. One: its tensions, else the errors to its set-points,
    else nothing.
    """
    if len(subjects) == 2:
        series, title = differences(subjects), "distance between the two [m]"
    elif has_tension(subjects[0]):
        series, title = tensions(subjects[0]), "tension at the load [N]"
    else:
        series, title = setpoint_errors(subjects[0]), "distance to the set-point [m]"
    return Strip(title, series, stages, events_of(subjects[0])) if series else None


class StripPlot:
    """Draws a strip into a part of the canvas."""

    def __init__(
        self, strip: Strip, window_s: tuple[float, float], box: tuple[float, float, float, float]
    ) -> None:
        """Lay out.

        Args:
            strip: What to show.
            window_s: Times shown.
            box: Left, top, right, bottom [px].
        """
        self.strip, self.window_s, self.box = strip, window_s, box
        self._inside = [(s.time_s >= window_s[0]) & (s.time_s <= window_s[1]) for s in strip.series]
        values = np.concatenate(
            [s.value[m] for s, m in zip(strip.series, self._inside, strict=True)]
        )
        values = values[np.isfinite(values)]
        high = float(np.percentile(values, _RANGE_SHARE)) if values.size else 1.0
        self.high = round_up(1.08 * max(high, 1e-3))

    def place(self, time_s: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Picture points (T, 2) of values at times, held within the strip."""
        left, top, right, bottom = self.box
        start_s, end_s = self.window_s
        x = left + (time_s - start_s) / max(end_s - start_s, 1e-9) * (right - left)
        y = bottom - np.clip(value / self.high, 0.0, 1.0) * (bottom - top)
        return np.stack([x, y], axis=-1)

    def draw(self, canvas: Canvas) -> None:
        """Draw all that stays the same."""
        left, _, right, bottom = self.box
        self._bands(canvas)
        for value in _ticks(0.0, self.high, 3):
            (_, y) = self.place(np.array(self.window_s[0]), np.array(value))
            canvas.line(np.array([[left, y], [right, y]]), GRID, 0.8)
            canvas.text(left - 6.0, y + 4.0, f"{value:g}", 11.0, INK, align="right")
        for time_s in _ticks(*self.window_s, 10 if right - left > 600.0 else 6):
            x, _ = self.place(np.array(time_s), np.array(0.0))
            canvas.line(np.array([[x, bottom], [x, bottom + 3.0]]), INK, 0.8)
            canvas.text(x, bottom + 15.0, f"{time_s:g}", 11.0, INK, align="center")
        canvas.text(right, bottom + 29.0, "time [s]", 11.0, INK, align="right")
        self._marks(canvas)
        x = left + canvas.text(left, bottom + 29.0, self.strip.title, 11.0, INK, bold=True) + 16.0
        for series, mask in zip(self.strip.series, self._inside, strict=True):
            canvas.line(
                self.place(series.time_s[mask], series.value[mask]), colour(series.name), 1.4
            )
            if x + 18.0 + canvas.width_of(label(series.name), 11.0) > right - _TIME_PX:
                continue  # no room for more names
            canvas.line(np.array([[x, bottom + 25.0], [x + 14.0, bottom + 25.0]]),
                        colour(series.name), 2.4)  # fmt: skip
            x += 18.0 + canvas.text(x + 18.0, bottom + 29.0, label(series.name), 11.0, INK) + 12.0

    def draw_moment(self, canvas: Canvas, time_s: float) -> None:
        """Mark the present moment."""
        _, top, _, bottom = self.box
        x, _ = self.place(np.array(time_s), np.array(0.0))
        canvas.line(np.array([[x, top], [x, bottom]]), INK, 1.2)
        for series in self.strip.series:
            value = np.interp(time_s, series.time_s, series.value, left=np.nan, right=np.nan)
            if np.isfinite(value):
                ring = 3.2 * np.stack([np.cos(_RING), np.sin(_RING)], axis=-1)
                at = self.place(np.array(time_s), np.array(value))
                canvas.polygon(at + ring, colour(series.name), "white", 1.0)

    def _marks(self, canvas: Canvas) -> None:
        """A line at each event, its kind beside it where there is room."""
        _, top, right, bottom = self.box
        free = -np.inf
        for time_s, kind in self.strip.events:
            if not self.window_s[0] <= time_s <= self.window_s[1]:
                continue
            x = float(self.place(np.array(time_s), np.array(0.0))[0])
            canvas.line(np.array([[x, top], [x, bottom]]), EVENT, 1.0)
            name = kind.replace("_", " ")
            if free < x < right - 6.0 * len(name):
                free = x + 6.0 + canvas.text(x + 3.0, top + 10.0, name, 10.5, EVENT)

    def _bands(self, canvas: Canvas) -> None:
        """A band for every second stage, names where they fit."""
        _, top, _, bottom = self.box
        for k, stage in enumerate(self.strip.stages):
            span = np.clip([stage.start_s, stage.end_s], *self.window_s)
            x0, x1 = self.place(span, np.zeros(2))[:, 0]
            if k % 2 and x1 > x0:
                canvas.rectangle(x0, top, x1 - x0, bottom - top, BAND)
            name = label(stage.name)
            if x1 - x0 > 6.2 * len(name):
                canvas.text(0.5 * (x0 + x1), top - 4.0, name, 10.5, FAINT, align="center")


_RING = np.linspace(0.0, 2.0 * np.pi, 14, endpoint=False)


def _ticks(low: float, high: float, count: int) -> np.ndarray:
    """Round values between two."""
    step = round_up((high - low) / count, _TICKS)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return step * np.arange(first, last + 1.0) + 0.0  # no negative zero


# ---------- What colours mean: the bar of tensions, the names of two recordings.

_BAR_PX, _STEPS = 9.0, 60


def draw_tension_bar(canvas: Canvas, scale: TensionScale, x: float, y: float, width: float) -> None:
    """Draw the colours of the cables with round tensions below.

    Args:
        canvas: Where to.
        scale: The colours.
        x: Left end.
        y: Upper edge of the bar; the title is above it.
        width: Length of the bar.
    """
    canvas.text(x, y - 7.0, "cable tension at the load [N]", 11.0, INK)
    tensions = (np.arange(_STEPS) + 0.5) / _STEPS * scale.limit_n
    for k, shade in enumerate(scale.colours(tensions)):
        left = x + k / _STEPS * width
        canvas.rectangle(left, y, width / _STEPS + 0.5, _BAR_PX, shade)
    for tension in scale.ticks_n():
        at = x + tension / scale.limit_n * width
        canvas.line(np.array([[at, y + _BAR_PX], [at, y + _BAR_PX + 3.0]]), INK, 0.8)
        canvas.text(at, y + _BAR_PX + 15.0, f"{tension:g}", 11.0, INK, align="center")
    canvas.rectangle(x - 52.0, y, 14.0, _BAR_PX, SLACK)
    canvas.text(x - 45.0, y + _BAR_PX + 15.0, "slack", 11.0, INK, align="center")
