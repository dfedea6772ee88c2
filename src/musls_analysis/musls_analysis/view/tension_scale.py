"""Colours of cable tension, one scale for pictures and viewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from musls_analysis.report.tension import DEFAULT_SLACK_THRESHOLD_N
from musls_analysis.view.subject import Subject

UNKNOWN = to_rgb("#57606a")
"""Cables whose tension was not recorded."""
SLACK = to_rgb("#a3adb8")
_MAP, _FROM, _TO = "plasma", 0.0, 0.86  # its bright end is lost on white
_TICKS = (1, 2, 2.5, 5, 10)
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
        return np.arange(0.0, self.limit_n * 1.0001, round_up(self.limit_n / 4.0, _TICKS))


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
