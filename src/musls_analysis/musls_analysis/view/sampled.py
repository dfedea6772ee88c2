"""Where everything of a subject is at given times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from musls_analysis.recordings.recording import (
    DEFAULT_GAP_LIMIT_S,
    CableTrack,
    PoseTrack,
    parted_s,
    pieces_of,
    resample,
)
from musls_analysis.view.subject import Subject
from musls_description.rotations import rotate

SLACK_SHARE = 0.97
"""A straight cable whose ends are closer than this share of its length is surely slack."""


@dataclass(frozen=True)
class SampledCable:
    """One cable at each time.

    Attributes:
        points_enu_m: From the load to the drone, K arrays (points, 3); NaN where not known.
        tension_n: At the load (K,); NaN where not known.
        recorded: Whether the shape was recorded; otherwise it is the straight line.
        slack: Whether a straight line is known to be slack by its length (K,).
        may_part: Whether something has happened that leaves cables in pieces (K,).
    """

    points_enu_m: Sequence[np.ndarray]
    tension_n: np.ndarray
    recorded: bool
    slack: np.ndarray
    may_part: np.ndarray

    def pieces(self, k: int) -> list[np.ndarray]:
        """Lines of its pieces at a time, one if it is whole; arrays (points, 3)."""
        points = self.points_enu_m[k]
        return pieces_of(points) if self.recorded and self.may_part[k] else [points]


@dataclass(frozen=True)
class Sampled:
    """A subject at K times.

    Attributes:
        time_s: Times shown (K,).
        bodies: Poses of the centres of mass, K samples each; NaN where not known.
        setpoints: Held set-points, likewise.
        cables: By name.
    """

    time_s: np.ndarray
    bodies: Mapping[str, PoseTrack]
    setpoints: Mapping[str, PoseTrack]
    cables: Mapping[str, SampledCable]


def sample(subject: Subject, time_s: np.ndarray) -> Sampled:
    """Interpolate poses and cables, hold set-points; gaps longer than half a second stay gaps.

    Args:
        subject: What is shown.
        time_s: Times shown, ascending (K,).
    """
    clock_s = np.asarray(time_s, float) - subject.shift_s
    recording = subject.recording
    bodies = {b: _moved(subject, b, resample(t, clock_s, DEFAULT_GAP_LIMIT_S))
              for b, t in recording.bodies.items()}  # fmt: skip
    setpoints = {b: _moved(subject, b, t.held_at(clock_s)) for b, t in recording.setpoints.items()}
    return Sampled(np.asarray(time_s, float), bodies, setpoints, _cables(subject, bodies, clock_s))


def _moved(subject: Subject, body: str, track: PoseTrack) -> PoseTrack:
    """From the recorded point to the centre of mass."""
    position = subject.origin_enu_m(body, track.position_enu_m, track.orientation_wxyz)
    return replace(track, position_enu_m=position)


def _cables(
    subject: Subject, bodies: Mapping[str, PoseTrack], clock_s: np.ndarray
) -> dict[str, SampledCable]:
    system = subject.system
    tracks = subject.named(bodies)
    may_part = clock_s >= parted_s(subject.recording.events)
    cables = {}
    for i in range(system.n_cables):
        name, ends = f"cable_{i + 1}", system.ends(i)
        if any(end.body not in tracks for end in ends):
            continue
        low, high = (_point(tracks[end.body], end.point_m) for end in ends)
        straight = np.stack([low, high], axis=1)  # (K, 2, 3)
        track = subject.recording.cables.get(name)
        nothing = np.full(len(clock_s), np.nan)
        tension = _tension(track, clock_s) if track and len(track.time_s) else nothing
        if track and len(track.shape_time_s):
            shapes = [_shape_at(track, t) for t in clock_s]
            points = [p if p is not None else s for p, s in zip(shapes, straight, strict=True)]
            slack = np.zeros(len(clock_s), bool)
            cables[name] = SampledCable(points, tension, True, slack, may_part)
        else:
            length = np.linalg.norm(high - low, axis=1)
            slack = length < SLACK_SHARE * system.cables[i].length_m
            cables[name] = SampledCable(list(straight), tension, False, slack, may_part)
    return cables


def _point(track: PoseTrack, in_body: Sequence[float]) -> np.ndarray:
    """World positions of a body's point (K, 3)."""
    at = np.broadcast_to(np.asarray(in_body, float), track.position_enu_m.shape)
    return track.position_enu_m + rotate(track.orientation_wxyz, at)


def _tension(track: CableTrack, clock_s: np.ndarray) -> np.ndarray:
    """Tension at the load, linear between samples, NaN outside."""
    return np.interp(clock_s, track.time_s, track.tension_n[:, 0], left=np.nan, right=np.nan)


def _shape_at(track: CableTrack, clock_s: float) -> np.ndarray | None:
    """Shape between two recorded ones; None outside them and in gaps."""
    times = track.shape_time_s
    above = int(np.searchsorted(times, clock_s, side="left"))
    if above == len(times) or (above == 0 and times[0] > clock_s):
        near = min(max(above, 0), len(times) - 1)
        close = abs(times[near] - clock_s) <= DEFAULT_GAP_LIMIT_S
        return track.shape_enu_m[near] if close else None
    if times[above] == clock_s:
        return track.shape_enu_m[above]
    a, b = track.shape_enu_m[above - 1], track.shape_enu_m[above]
    span = times[above] - times[above - 1]
    if span > DEFAULT_GAP_LIMIT_S or len(a) != len(b):
        return None
    return a + (clock_s - times[above - 1]) / span * (b - a)
