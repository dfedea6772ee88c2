"""Smooth paths through recorded poses, without lag.

Motion capture as logged is coarse in time (3 to 100 Hz), jitters by some 0.05 s and jumps now and
then. A smoothing spline fits each coordinate over the whole recording at once, so it has no lag;
how stiff it is follows from the data (generalised cross-validation). Samples that lie far off
their neighbours are left out first and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator, make_smoothing_spline
from scipy.spatial.transform import Rotation

from musls_analysis.recordings.recording import PoseTrack
from musls_description.errors import ConfigError

Array = NDArray[np.float64]

GRID_S = 0.001
"""Spacing of the sampled path; a cubic with the right velocities runs in between."""

JUMP_M = 0.15
JUMP_RAD = 0.35
"""A sample this far from the middle of its two neighbours on either side is a jump."""

FEWEST_SAMPLES = 8


@dataclass(frozen=True)
class SmoothPath:
    """A path sampled evenly in time.

    Attributes:
        start_s: Time of the first row.
        position_enu_m: (k, 3).
        orientation_wxyz: (k, 4), unit, continuous in sign.
        jumps: Samples left out as jumps.
        residual_m: Root mean square distance between samples and path.
        residual_rad: The same for the attitude.
    """

    start_s: float
    position_enu_m: Array
    orientation_wxyz: Array
    jumps: int
    residual_m: float
    residual_rad: float

    @property
    def end_s(self) -> float:
        """Time of the last row."""
        return self.start_s + (len(self.position_enu_m) - 1) * GRID_S

    def at(self, time_s: float) -> tuple[Array, Array]:
        """Position (3,) and quaternion (4,) at a time, clamped to the ends."""
        place = (time_s - self.start_s) / GRID_S
        place = min(max(place, 1.0), len(self.position_enu_m) - 2.000001)
        k = int(place)
        t = place - k
        # Cubic convolution (Catmull-Rom): velocities without steps, also for physics steps much
        # shorter than the grid.
        weights = np.array([
            t * (-0.5 + t * (1.0 - 0.5 * t)), 1.0 + t * t * (1.5 * t - 2.5),
            t * (0.5 + t * (2.0 - 1.5 * t)), t * t * (0.5 * t - 0.5),
        ])  # fmt: skip
        return weights @ self.position_enu_m[k - 1 : k + 3], weights @ self.orientation_wxyz[
            k - 1 : k + 3
        ]

    def of_body(self, offset_m: Array, tilt: Rotation, delay_s: float) -> SmoothPath:
        """Path of a body's centre of mass, given what this is the path of.

        Args:
            offset_m: The recorded point from the centre of mass, in the body's frame, (3,).
            tilt: From the body's frame to the recorded one.
            delay_s: How much too late the poses are stamped.
        """
        turn = Rotation.from_quat(self.orientation_wxyz, scalar_first=True) * tilt.inv()
        position = self.position_enu_m - turn.apply(offset_m)
        orientation = _continuous(turn.as_quat(scalar_first=True))
        return replace(
            self,
            start_s=self.start_s - delay_s,
            position_enu_m=position,
            orientation_wxyz=orientation,
        )

    def velocity_at(self, time_s: float) -> Array:
        """Velocity (3,) at a time [m/s]."""
        half = 5 * GRID_S
        return (self.at(time_s + half)[0] - self.at(time_s - half)[0]) / (2.0 * half)


def smooth_path(track: PoseTrack, name: str, *, exact: bool = False) -> SmoothPath:
    """Fit a smooth path to recorded poses.

    Args:
        track: Poses with increasing times.
        name: Name of the body, for the error.
        exact: Pass through every sample instead: no smoothing, no search for jumps.

    Raises:
        ConfigError: Too few samples.
    """
    times, first = np.unique(track.time_s, return_index=True)
    values = np.hstack([track.position_enu_m, _continuous(track.orientation_wxyz)])[first]
    good = np.isfinite(values).all(axis=1)
    times, values = times[good], values[good]
    keep = np.ones(len(values), bool) if exact else ~_jumps(values)
    if keep.sum() < FEWEST_SAMPLES:
        raise ConfigError(
            f"{name}: {keep.sum()} usable samples, at least {FEWEST_SAMPLES} are needed"
        )
    times_kept, kept = times[keep], values[keep]
    grid = np.arange(times_kept[0], times_kept[-1], GRID_S)
    fitted, at_samples = np.empty((len(grid), 7)), np.empty_like(kept)
    for column in range(7):
        fit = PchipInterpolator if exact else make_smoothing_spline
        spline = fit(times_kept, kept[:, column])
        fitted[:, column] = spline(grid)
        at_samples[:, column] = spline(times_kept)
    fitted[:, 3:] /= np.linalg.norm(fitted[:, 3:], axis=1, keepdims=True)
    miss = np.linalg.norm(at_samples[:, :3] - kept[:, :3], axis=1)
    turn = 2.0 * np.linalg.norm(at_samples[:, 3:] - kept[:, 3:], axis=1)
    return SmoothPath(
        float(grid[0]), fitted[:, :3].copy(), fitted[:, 3:].copy(), int((~keep).sum()),
        float(np.sqrt(np.mean(miss**2))), float(np.sqrt(np.mean(turn**2))),
    )  # fmt: skip


def _continuous(quaternions: Array) -> Array:
    """The same rotations with signs that do not jump from sample to sample."""
    dots = np.sum(quaternions[1:] * quaternions[:-1], axis=1)
    signs = np.cumprod(np.concatenate([[1.0], np.where(dots < 0.0, -1.0, 1.0)]))
    return quaternions * signs[:, None]


def _jumps(values: Array) -> NDArray[np.bool_]:
    """Samples far off the median of five (themselves in the middle), (k,)."""
    padded = np.pad(values, ((2, 2), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 5, axis=0)
    miss = np.abs(values - np.median(windows, axis=2))
    return (miss[:, :3].max(axis=1) > JUMP_M) | (2.0 * miss[:, 3:].max(axis=1) > JUMP_RAD)
