"""Curves and scales of pictures and viewer: errors, tensions and their colours, the strip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from musls_analysis.comparison.errors import translational_error_m
from musls_analysis.comparison.quantities import TENSION, owners
from musls_analysis.comparison.summary import DEFAULT_SLACK_THRESHOLD_N
from musls_analysis.figures import style
from musls_analysis.recordings.recording import RecordedStage
from musls_analysis.scene import Subject

_SHARE = 99.5
"""Percentile of the values that an axis or a scale holds; shorter peaks are cut off."""
_LIMITS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
SMALL = 8.0
TINY = 7.6
"""Sizes of letters [pt]."""


def round_up(value: float) -> float:
    """The next greater of some steps, from 1 to 10, times a power of ten."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(s * power for s in _LIMITS if s * power >= value * (1.0 - 1e-9)))


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
        rgb = np.where((tension < self.slack_n)[..., None], to_rgb(style.SLACK_CABLE), rgb)
        return np.where(np.isnan(tension)[..., None], to_rgb(style.UNKNOWN_TENSION), rgb)

    def draw(self, ax: Axes) -> None:
        """Make axes a bar of the colours, with the sign for slack cables on its left."""
        shades = self.colours(np.linspace(0.0, self.limit_n, 240))
        ax.imshow(shades[None], extent=(0.0, self.limit_n, 0.0, 1.0), aspect="auto")
        ax.set_title("cable tension at the load [N]", loc="right", size=SMALL, weight="normal")
        ax.set(frame_on=False, yticks=[], autoscale_on=False)
        ax.grid(False)
        ax.locator_params(axis="x", nbins=5, steps=[1, 2, 2.5, 5, 10])
        ax.tick_params(labelsize=SMALL)
        place = ax.get_xaxis_transform()
        left = -0.23 * self.limit_n
        mark = Rectangle((left, 0.0), 0.06 * self.limit_n, 1.0, transform=place, clip_on=False)
        mark.set(facecolor=style.SLACK_CABLE, edgecolor="none")
        ax.add_patch(mark)
        ax.annotate(
            "slack",
            (left + 0.03 * self.limit_n, 0.0),
            (0.0, -6.0),
            xycoords=place,
            textcoords="offset points",
            ha="center",
            va="top",
            size=SMALL,
        )


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
    for body, track in first.recording.bodies.items():
        if body not in second.recording.bodies:
            continue
        time_s = track.time_s + first.shift_s
        places = first.centre_enu_m(body, track), second.centre_at(body, time_s)
        series.append(Series(body, time_s, translational_error_m(*places)))
    return series


def curves(subject: Subject, quantity: str) -> list[Series]:
    """A quantity of all bodies or cables that have it, see `QUANTITIES`."""
    return [
        Series(owner, values.time_s + subject.shift_s, values.values)
        for owner, values in owners(subject.recording, quantity)
    ]


def strip_series(subjects: Sequence[Subject]) -> tuple[list[Series], str]:
    """Curves below a scene: distances of two; of one tensions, else errors, else heights."""
    if len(subjects) == 2:
        return differences(subjects), "distance between the two [m]"
    if subjects[0].has_tension:
        return curves(subjects[0], TENSION), "tension at the load [N]"
    errors = curves(subjects[0], "translational_error_m")
    if not errors or any(np.nanmax(series.value, initial=0.0) > 1e-9 for series in errors):
        return errors, "distance to the reference [m]"
    return curves(subjects[0], "z_m"), "height [m]"


def draw_strip(
    ax: Axes,
    subject: Subject,
    series: Sequence[Series],
    title: str,
    stages: Sequence[RecordedStage],
    window_s: tuple[float, float],
) -> None:
    """Draw curves over the times shown, with stages as bands, events, and a legend below."""
    parts = [(s, (s.time_s >= window_s[0]) & (s.time_s <= window_s[1])) for s in series]
    for its, inside in parts:
        shade = style.colour(its.name)
        ax.plot(
            its.time_s[inside], its.value[inside], color=shade, lw=1.0, label=style.label(its.name)
        )
    values = np.concatenate([its.value[inside] for its, inside in parts])
    values = values[np.isfinite(values)]
    high = float(np.percentile(values, _SHARE)) if values.size else 1.0
    top = round_up(1.08 * max(high, 1e-3))
    ax.set(xlim=(window_s[0], max(window_s[1], window_s[0] + 1e-9)), ylim=(-0.008 * top, top))
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(labelsize=SMALL, left=False)
    ax.locator_params(axis="y", nbins=3)
    ax.grid(False, axis="x")
    width_px = 100.0 * ax.bbox.width / ax.figure.dpi
    px_s = width_px / (window_s[1] - window_s[0] + 1e-9)
    place = ax.get_xaxis_transform()
    for k, stage in enumerate(stages):  # a band for every second one, names if they fit
        start_s, end_s = np.clip([stage.start_s, stage.end_s], *window_s)
        if k % 2 and end_s > start_s:
            ax.axvspan(start_s, end_s, color=style.BAND, lw=0, zorder=0)
        name = style.label(stage.name)
        middle_s = 0.5 * (start_s + end_s)
        if (end_s - start_s) * px_s > 6.2 * len(name):
            ax.text(
                middle_s, 1.04, name, transform=place, size=TINY, color=style.FAINT, ha="center"
            )
    free_s = -np.inf
    for event in style.shown_events(subject.recording):
        time_s = event.time_s + subject.shift_s
        name = style.label(event.kind)
        if event.what == "over" or not window_s[0] <= time_s <= window_s[1]:
            continue
        ax.axvline(time_s, color=style.EVENT, lw=0.7)
        width_s = 6.4 * len(name) / px_s
        if free_s < time_s < window_s[1] - width_s:
            ax.text(time_s + 3.0 / px_s, 0.87, name, transform=place, size=TINY, color=style.EVENT)
            free_s = time_s + width_s
    ax.set_xlabel("time [s]", loc="right", size=SMALL, labelpad=1.0)
    room = int((width_px - 6.4 * len(title) - 50.0) / 54.0)  # for the names of curves
    entries = [
        Line2D([], [], color=style.INK, label=title),
        *ax.get_lines()[: min(len(series), room)],
    ]
    legend = ax.legend(
        handles=entries,
        ncols=len(entries),
        loc="lower left",
        bbox_to_anchor=(0.0, -0.4),
        labelcolor="linecolor",
        handlelength=0.0,
        handletextpad=0.0,
        columnspacing=1.0,
        fontsize=SMALL,
        borderpad=0.0,
        borderaxespad=0.0,
    )
    legend.get_texts()[0].set_fontweight("bold")
