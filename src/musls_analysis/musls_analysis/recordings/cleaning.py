"""How recordings of others are read: options, and poses made fit to compute with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from musls_analysis.recordings.recording import PoseTrack
from musls_control.formation import Cone
from musls_description.errors import ConfigError


@dataclass(frozen=True)
class ReadOptions:
    """How to read a recording.

    Attributes:
        frames: TF frame of a body, e.g. {"load": "payload_mocap"}; others are guessed.
        formation: Where the drones' set-points lie if only the load's were recorded; the default
            is the virtual cone of the paper's flights (radius 1.0 m, height 2.2962 m).
        drop_stale: Leave out samples that repeat the one before: the logger wrote an old value
            again, so its time is wrong. Applies to measurements, never to set-points.
    """

    frames: Mapping[str, str] = field(default_factory=dict)
    formation: Cone = field(default_factory=Cone)
    drop_stale: bool = True


FARTHEST_M = 1e8
"""Of a recorded position; a larger number is none, squares and sums of it would overflow. Frames
with the origin in the centre of the Earth stay."""


class Notes:
    """Collects what a reader dropped, as one line per kind."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def count(self, number: int, what: str) -> None:
        """Note a number of things, with {s} for the plural; nothing if there is none."""
        if number:
            self.lines.append(f"{number} {what.format(s='' if number == 1 else 's')}")


def cleaned(
    track: PoseTrack, name: str, source: str, notes: Notes, drop_stale: bool = False
) -> PoseTrack:
    """Poses at strictly increasing times, without samples that are no poses.

    Times may come in any order, and quaternions need not be units. With `drop_stale` samples that
    repeat the one before in every value are dropped too. The notes take the counts.

    Raises:
        ConfigError: Nothing is left.
    """
    n = len(track.time_s)
    values = np.column_stack([track.time_s, track.position_enu_m, track.orientation_wxyz])
    norm = np.linalg.norm(values[:, 4:], axis=1)
    good = np.isfinite(values).all(axis=1) & (norm > 1e-6)
    good &= (np.abs(np.nan_to_num(values[:, 1:4])) <= FARTHEST_M).all(axis=1)
    notes.count(n - int(good.sum()), f"sample{{s}} of {name} without a finite pose dropped")
    values = values[good]
    values[:, 4:] /= norm[good, None]
    backward = int(np.count_nonzero(np.diff(values[:, 0]) < 0.0))
    if backward:
        notes.count(backward, f"step{{s}} back in time in {name}: sorted")
        values = values[np.argsort(values[:, 0], kind="stable")]
    again = np.concatenate([np.diff(values[:, 0]) == 0.0, [False]])[: len(values)]  # last counts
    notes.count(int(again.sum()), f"sample{{s}} of {name} at the time of another dropped")
    values = values[~again]
    if drop_stale:
        stale = repeats(values[:, 1:])
        notes.count(int(stale.sum()), f"stale sample{{s}} of {name} (repeats the last) dropped")
        values = values[~stale]
    if len(values) == 0:
        raise ConfigError(f"{source}: no usable pose of {name}")
    return PoseTrack(values[:, 0], values[:, 1:4], values[:, 4:])


def repeats(values: np.ndarray) -> np.ndarray:
    """Which rows (T, k) equal the row before them in every value (T,); the first is False.

    Measurements carry noise in their last digits, so that an equal row is an old one.
    """
    same = np.zeros(len(values), bool)
    same[1:] = np.all(values[1:] == values[:-1], axis=1)
    return same
