"""Mean trajectories over repetitions and runs, with confidence intervals, as in the seed paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from musls_analysis.comparison.cycles import CutStage
from musls_analysis.recordings.recording import Array, PoseTrack, gaps, resample
from musls_description.rotations import (
    chordal_mean,
    from_roll_pitch_yaw,
    roll_pitch_yaw,
    rotate,
    wrapped,
)

CONFIDENCE_FACTOR = 1.959963984540054
"""Two-sided 95 % of the normal distribution: mean +- 1.96 s / sqrt(n)."""


@dataclass(frozen=True)
class MeanCycle:
    """One body over the mean cycle, on M phases; NaN where nothing was recorded.

    Attributes:
        position_enu_m: Mean positions (M, 3).
        orientation_wxyz: Mean orientations (M, 4).
        angles_rad: Roll, pitch, yaw of the mean orientations, unwrapped (M, 3).
        position_ci_m: Half widths of the 95 % confidence intervals (M, 3); NaN for one sample.
        angles_ci_rad: The same of roll, pitch, yaw (M, 3).
        samples: Cycles that count at each phase (M,).
    """

    position_enu_m: Array
    orientation_wxyz: Array
    angles_rad: Array
    position_ci_m: Array
    angles_ci_rad: Array
    samples: Array


@dataclass(frozen=True)
class Slices:
    """One body's cycles on a common grid of phases.

    Attributes:
        position_enu_m: (cycles, M, 3).
        orientation_wxyz: (cycles, M, 4).
        gaps: Gaps in the recordings that were not bridged.
    """

    position_enu_m: Array
    orientation_wxyz: Array
    gaps: int


def phases(count: int, periodic: bool) -> Array:
    """Evenly spaced phases from 0 (count,); up to 1, which a periodic motion leaves out."""
    return np.linspace(0.0, 1.0, count, endpoint=not periodic)


def slices(
    cuts: Sequence[CutStage],
    body: str,
    phase: Array,
    gap_limit_s: float,
    offset_m: Sequence[float] = (0.0, 0.0, 0.0),
) -> Slices:
    """Lay all cycles of all runs on one grid of phases.

    Args:
        cuts: The same stage of one or more runs.
        body: Body.
        phase: Phases (M,).
        gap_limit_s: Longer gaps stay open.
        offset_m: Point to follow, in the body's frame, from the recorded origin (3,).
    """
    positions, orientations, open_gaps = [], [], 0
    for cut in cuts:
        track = cut.recording.bodies[body]
        if np.any(offset_m):
            shift = rotate(
                track.orientation_wxyz, np.broadcast_to(offset_m, (len(track.time_s), 3))
            )
            track = replace(track, position_enu_m=track.position_enu_m + shift)
        for cycle in cut.cycles:
            time_s = cycle.start_s + phase * (cycle.end_s - cycle.start_s)
            pose = resample(track, time_s, gap_limit_s)
            positions.append(pose.position_enu_m)
            orientations.append(pose.orientation_wxyz)
            open_gaps += gaps(track, cycle.start_s, cycle.end_s, gap_limit_s)
    return Slices(np.stack(positions), np.stack(orientations), open_gaps)


def mean_cycle(body: Slices, euler_mean: bool = False) -> MeanCycle:
    """Average cycles phase by phase.

    Args:
        body: Cycles on common phases.
        euler_mean: Average roll, pitch and yaw one by one, as the seed paper does, instead of the
            rotations. Angles are first brought within half a turn of the first cycle's, without
            which a mean across +-180 degrees would be meaningless.

    Returns:
        Mean and confidence intervals; standard deviations with n - 1.
    """
    if euler_mean:
        angles = _together(roll_pitch_yaw(body.orientation_wxyz))
        mean_angles, angles_ci = _mean_and_half_width(angles)
        orientation = from_roll_pitch_yaw(mean_angles)
    else:
        orientation = chordal_mean(body.orientation_wxyz)
        mean_angles = _unwrapped(roll_pitch_yaw(orientation))
        _, angles_ci = _mean_and_half_width(
            wrapped(roll_pitch_yaw(body.orientation_wxyz) - mean_angles)
        )
    position, position_ci = _mean_and_half_width(body.position_enu_m)
    samples = np.isfinite(body.position_enu_m[..., 0]).sum(axis=0)
    return MeanCycle(position, orientation, mean_angles, position_ci, angles_ci, samples)


def known_mean(values: Array) -> Array:
    """Mean over the first axis; NaN does not count, and is the mean of nothing."""
    n = np.isfinite(values).sum(axis=0)
    return np.where(n > 0, np.nansum(values, axis=0) / np.maximum(n, 1), np.nan)


def _mean_and_half_width(values: Array) -> tuple[Array, Array]:
    """Mean over the first axis and half width of its confidence interval; NaN does not count."""
    n = np.isfinite(values).sum(axis=0)
    mean = known_mean(values)
    variance = np.nansum((values - mean) ** 2, axis=0) / np.maximum(n - 1, 1)
    half_width = CONFIDENCE_FACTOR * np.sqrt(variance / np.maximum(n, 1))
    return mean, np.where(n > 1, half_width, np.nan)


def _together(angles: Array) -> Array:
    """Angles (n, M, 3): each cycle unwrapped along its phases, then within half a turn of others.

    The reference at each phase is the first cycle that has one there.
    """
    unwrapped = np.stack([_unwrapped(cycle) for cycle in angles])
    reference = unwrapped[0].copy()
    for cycle in unwrapped[1:]:
        hole = np.isnan(reference)
        reference[hole] = cycle[hole]
    return reference + wrapped(unwrapped - reference)


def _unwrapped(angles: Array) -> Array:
    """Unwrap (M, 3) along its phases, across missing ones."""
    result = angles.copy()
    for column in result.T:
        finite = np.isfinite(column)
        column[finite] = np.unwrap(column[finite])
    return result


def shifted(mean: MeanCycle, shift: float, periodic: bool) -> tuple[Array, Array]:
    """Positions (M, 3) and orientations (M, 4) of a mean cycle seen a share of the cycle later.

    At phase p the result is the pose at p + shift. A periodic cycle goes over its end into its
    start; another one is NaN beyond the end.
    """
    m = len(mean.samples)
    index = np.arange(m) + shift * (m if periodic else m - 1)
    position, orientation = mean.position_enu_m, mean.orientation_wxyz
    if periodic:
        position, orientation = (np.concatenate([a, a[:1]]) for a in (position, orientation))
        index = np.mod(index, m)
    track = PoseTrack(np.arange(len(position), dtype=float), position, orientation)
    pose = resample(track, index, gap_limit_s=1.0)  # holes in the poses are NaN already
    return pose.position_enu_m, pose.orientation_wxyz
