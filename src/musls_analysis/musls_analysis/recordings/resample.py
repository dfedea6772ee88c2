"""Poses at any times between the samples of a track."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from musls_analysis.recordings.recording import PoseTrack
from musls_description.rotations import slerp

DEFAULT_GAP_LIMIT_S = 0.5
"""Longer gaps are not bridged: the seed paper's flights were logged every 0.1 to 0.4 s."""

_ROWS_BRIDGED = 1.6
"""Share of the usual distance of rows that is no gap yet; a lost row is one."""


def bridged_s(times_s: Iterable[np.ndarray]) -> float:
    """Gap up to which rows of several logs are bridged: of sparse ones more than usual.

    Args:
        times_s: Times of the rows of each log.
    """
    usual = [float(np.median(np.diff(t))) for t in times_s if len(t) > 1]
    return max(DEFAULT_GAP_LIMIT_S, _ROWS_BRIDGED * max(usual, default=0.0))


def resample(track: PoseTrack, time_s: np.ndarray, gap_limit_s: float) -> PoseTrack:
    """Interpolate positions linearly and turn between orientations at constant rate.

    Args:
        track: Poses at strictly increasing times.
        time_s: Times asked for (K,).
        gap_limit_s: Between samples further apart nothing is interpolated.

    Returns:
        Poses at these times; NaN before the first sample, after the last and inside gaps.
    """
    t = track.time_s
    if len(t) > 1 and np.any(np.diff(t) <= 0.0):
        raise ValueError("times must increase strictly")
    below = np.clip(np.searchsorted(t, time_s, side="right") - 1, 0, len(t) - 1)
    above = np.minimum(below + 1, len(t) - 1)
    span = t[above] - t[below]
    share = (time_s - t[below]) / np.where(span > 0.0, span, 1.0)
    p = track.position_enu_m
    position = p[below] + share[:, None] * (p[above] - p[below])
    orientation = slerp(track.orientation_wxyz[below], track.orientation_wxyz[above], share)
    outside = (time_s < t[0]) | (time_s > t[-1])
    nothing = outside | ((span > gap_limit_s) & (share != 0.0))
    position[nothing] = np.nan
    orientation[nothing] = np.nan
    return PoseTrack(np.asarray(time_s, float), position, orientation)


def gaps(track: PoseTrack, start_s: float, end_s: float, gap_limit_s: float) -> int:
    """Number of gaps longer than a limit that reach into a span of time."""
    t = track.time_s
    long = np.diff(t) > gap_limit_s
    return int(np.count_nonzero(long & (t[1:] > start_s) & (t[:-1] < end_s)))
