"""Where the largest tensions of a flight were: in flight, at snaps, at take-up and touch-down.

One flight has several largest tensions, and each has its name: a cable that snaps taut, or the
load that is set down, pulls many times harder than the flight itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from musls_analysis.recordings.recording import LOAD, Array, Recording
from musls_analysis.report.tension import slack_intervals

SNAP_S = 0.3
"""A tension so soon after a cable was slack belongs to its snap."""

LOW_M = 0.02
"""A load that is not higher above where it stood counts as standing."""

TAKE_UP = frozenset({"spool_up", "take_off", "form_up", "tension", "lift"})
TOUCH_DOWN = frozenset({"lower", "slacken", "spread", "land", "disarmed"})

WHERE = {
    "in_flight": "in flight",
    "snap": "at snaps",
    "take_up": "at take-up",
    "touch_down": "at touch-down",
}
"""Names for people, in the order in which they are shown."""

Peaks = tuple[Array, Array]
"""Times (k,) [s] and largest tensions of all cables around them (k, n_cables)."""


@dataclass(frozen=True)
class Peak:
    """The largest tension of one sort.

    Attributes:
        max_n: Tension.
        cable: Name of the cable.
        time_s: When.
        stage: In which stage.
    """

    max_n: float
    cable: str
    time_s: float
    stage: str


def cable_peaks(recording: Recording, peaks: Peaks | None) -> dict[str, tuple[Array, Array]]:
    """Times and tensions of each cable, over all steps where they are known.

    Args:
        recording: The flight.
        peaks: Of all steps, cables in the recording's order; None takes the recorded samples.
    """
    cables = {name: track for name, track in recording.cables.items() if len(track.time_s)}
    if peaks is None or peaks[1].shape[1] != len(cables):
        return {name: (t.time_s, t.tension_n.max(axis=1)) for name, t in cables.items()}
    return {name: (peaks[0], peaks[1][:, k]) for k, name in enumerate(cables)}


def named_peaks(
    recording: Recording, slack_threshold_n: float, peaks: Peaks | None = None
) -> dict[str, dict[str, Any]]:
    """The largest tension of each sort that the flight had, by the keys of `WHERE`.

    Args:
        recording: The flight.
        slack_threshold_n: A cable is slack while its tension at the load is below it.
        peaks: Largest tensions over all steps, see `cable_peaks`.
    """
    best: dict[str, Peak] = {}
    for name, (time_s, tension) in cable_peaks(recording, peaks).items():
        ends = [end for _, end in slack_intervals(recording.cables[name], slack_threshold_n)]
        snaps = _soon_after(time_s, np.array(ends))
        landed = _touching_down(recording, time_s)
        for stage in recording.stages:
            inside = recording.stage_mask(stage, time_s)
            for where, mask in _sorts(stage.name, inside, snaps, landed):
                if not mask.any():
                    continue
                row = int(np.argmax(np.where(mask, tension, -np.inf)))
                if where not in best or tension[row] > best[where].max_n:
                    best[where] = Peak(float(tension[row]), name, float(time_s[row]), stage.name)
    return {where: asdict(best[where]) for where in WHERE if where in best}


def _sorts(
    stage: str, inside: np.ndarray, snaps: np.ndarray, landed: np.ndarray
) -> list[tuple[str, np.ndarray]]:
    phase = stage.rstrip("0123456789").rstrip("_") if stage[-1:].isdigit() else stage
    for where, phases in (("take_up", TAKE_UP), ("touch_down", TOUCH_DOWN)):
        if phase in phases:
            return [(where, inside)]
    return [
        ("in_flight", inside & ~snaps & ~landed),
        ("snap", inside & snaps & ~landed),
        ("touch_down", inside & landed),
    ]


def _soon_after(time_s: Array, ends_s: Array) -> np.ndarray:
    """Whether a cable was slack shortly before each time, (T,)."""
    if not len(ends_s):
        return np.zeros(len(time_s), bool)
    last = np.searchsorted(ends_s, time_s + SNAP_S / 3.0, side="right") - 1
    since = time_s - ends_s[np.maximum(last, 0)]
    return np.asarray((last >= 0) & (since < SNAP_S))


def _touching_down(recording: Recording, time_s: Array) -> np.ndarray:
    """Whether the load comes down to where it stood before the flight, (T,)."""
    first = next((s for s in recording.stages if s.name == "spool_up"), None)
    load = recording.bodies.get(LOAD)
    if first is None or load is None:
        return np.zeros(len(time_s), bool)
    height = load.position_enu_m[:, 2]
    standing = float(np.median(height[recording.stage_mask(first, load.time_s)]))
    low = (height < standing + LOW_M).astype(np.int8)
    found = np.zeros(len(time_s), bool)
    for down_s in load.time_s[1:][np.diff(low) == 1]:
        found |= (time_s > down_s - SNAP_S) & (time_s < down_s + 2.0 * SNAP_S)
    return found


def sentence(tension: dict[str, dict[str, Any]]) -> str:
    """The peaks in words: "6.3 N in flight (circle), 61.2 N at touch-down"."""
    parts = []
    for where, peak in tension.items():
        stage = f" ({peak['stage'].replace('_', ' ')})" if where in ("in_flight", "snap") else ""
        parts.append(f"{peak['max_n']:.1f} N {WHERE[where]}{stage}")
    return ", ".join(parts)
