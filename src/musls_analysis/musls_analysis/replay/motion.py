"""The recorded motion of all bodies as a replay needs it: smooth, of the right points, eased in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator, make_smoothing_spline
from scipy.ndimage import median_filter
from scipy.spatial.transform import Rotation

from musls_analysis.comparison.cycles import stage_windows
from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording
from musls_control.trajectories.base import smoothstep
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_sim.plants.interface import Pose

# ---------- Smooth paths through recorded poses, without lag

GRID_S = 0.001
"""Spacing of the sampled path; a cubic with the right velocities runs in between."""

JUMP_M = 0.15
JUMP_RAD = 0.35
"""A sample this far from the middle of its two neighbours on either side is a jump."""

MIN_SAMPLES = 8


@dataclass(frozen=True)
class SmoothPath:
    """A path sampled evenly in time from `start_s` on.

    Attributes:
        position_enu_m: (k, 3).
        orientation_wxyz: (k, 4), unit, continuous in sign.
        jumps: Samples left out as jumps.
        residual_m: Root mean square distance between samples and path.
        residual_rad: Root mean square angle between samples and path; NaN without attitude.
        has_attitude: Whether the attitude was recorded; else it is taken for level.
    """

    start_s: float
    position_enu_m: Array
    orientation_wxyz: Array
    jumps: int
    residual_m: float
    residual_rad: float
    has_attitude: bool = True

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
        near = slice(k - 1, k + 3)
        return weights @ self.position_enu_m[near], weights @ self.orientation_wxyz[near]

    def of_body(self, offset_m: Array, tilt: Rotation, delay_s: float) -> SmoothPath:
        """Path of a body's centre of mass, given that of a point at an offset in its frame, (3,).

        `tilt` leads from its frame to the recorded one; the poses are stamped late by the delay.
        """
        turn = Rotation.from_quat(self.orientation_wxyz, scalar_first=True) * tilt.inv()
        position = self.position_enu_m - turn.apply(offset_m)
        orientation = _continuous(turn.as_quat(scalar_first=True))
        start_s = self.start_s - delay_s
        return replace(self, start_s=start_s, position_enu_m=position, orientation_wxyz=orientation)


def smooth_path(track: PoseTrack, name: str, *, exact: bool = False) -> SmoothPath:
    """Smooth path through recorded poses without jumps or, if `exact`, through every sample."""
    if not track.has_attitude:
        path = smooth_path(track.or_level(), name, exact=exact)
        return replace(path, residual_rad=np.nan, has_attitude=False)
    times, first = np.unique(track.time_s, return_index=True)
    values = np.hstack([track.position_enu_m, _continuous(track.orientation_wxyz)])[first]
    good = np.isfinite(values).all(axis=1)
    times = times[good]
    values = values[good]
    keep = np.ones(len(values), bool) if exact else ~_jumps(values)
    if keep.sum() < MIN_SAMPLES:
        raise ConfigError(f"{name}: {keep.sum()} usable samples, at least {MIN_SAMPLES} are needed")
    times_kept = times[keep]
    samples = values[keep]
    grid = np.arange(times_kept[0], times_kept[-1], GRID_S)
    grid_values = np.empty((len(grid), 7))
    at_samples = np.empty_like(samples)
    for column in range(7):
        fit = PchipInterpolator if exact else make_smoothing_spline
        spline = fit(times_kept, samples[:, column])
        grid_values[:, column] = spline(grid)
        at_samples[:, column] = spline(times_kept)
    grid_values[:, 3:] /= np.linalg.norm(grid_values[:, 3:], axis=1, keepdims=True)
    miss = np.linalg.norm(at_samples[:, :3] - samples[:, :3], axis=1)
    turn = 2.0 * np.linalg.norm(at_samples[:, 3:] - samples[:, 3:], axis=1)
    return SmoothPath(
        float(grid[0]), grid_values[:, :3].copy(), grid_values[:, 3:].copy(), int((~keep).sum()),
        float(np.sqrt(np.mean(miss**2))), float(np.sqrt(np.mean(turn**2))),
    )  # fmt: skip


def _continuous(quaternions: Array) -> Array:
    """Quaternions with signs that do not jump from sample to sample."""
    dots = np.sum(quaternions[1:] * quaternions[:-1], axis=1)
    signs = np.cumprod(np.concatenate([[1.0], np.where(dots < 0.0, -1.0, 1.0)]))
    return quaternions * signs[:, None]


def _jumps(values: Array) -> NDArray[np.bool_]:
    """Samples far off the median of five (themselves in the middle), (k,)."""
    miss = np.abs(values - median_filter(values, (5, 1), mode="nearest"))
    return (miss[:, :3].max(axis=1) > JUMP_M) | (2.0 * miss[:, 3:].max(axis=1) > JUMP_RAD)


Vector = tuple[float, float, float]

DRONES = "drones"
"""Name that stands for all drones among the offsets."""

START_UP_S = 1.0
"""Time over which the recorded motion starts from rest, by running its clock slowly at first."""


@dataclass(frozen=True)
class ReplaySpec:
    """Options of a replay, and what the recorded poses are poses of.

    Attributes:
        lead_in_s: Time during which the load is drawn along.
        physics_step_s: Time step of the calm motion; the plant refines it where the energy balance
            asks for it.
        gravity_m_s2: Gravity.
        offsets_m: Recorded reference point of each body in the body's own frame (FLU,
            from the centre of mass), by name of the body; "drones" holds for all of them.
        load_tilt_rad: Rotation vector from the load's frame to the recorded one, in the load's
            frame.
        load_delay_s: Delay of the stamps of the load's poses relative to the drones'.
    """

    lead_in_s: float = 2.0
    physics_step_s: float = 0.001
    gravity_m_s2: float = STANDARD_GRAVITY_M_S2
    offsets_m: Mapping[str, Vector] = field(default_factory=dict)
    load_tilt_rad: Vector = (0.0, 0.0, 0.0)
    load_delay_s: float = 0.0

    def offset_m(self, body: str) -> Array:
        """Recorded reference point of a body in its frame, (3,)."""
        nothing = (0.0, 0.0, 0.0)
        common = nothing if body == LOAD else self.offsets_m.get(DRONES, nothing)
        return np.array(self.offsets_m.get(body, common))


def _recorded_s(time_s: float) -> float:
    """Recorded time that a replay has passed after some time of its own."""
    share = min(time_s / START_UP_S, 1.0)
    # The integral of share^2 (3 - 2 share), the smooth step of the clock's rate.
    eased = share**3 - share**4 / 2.0
    return START_UP_S * eased + max(time_s - START_UP_S, 0.0)


def part_of_stage(recording: Recording, stage: str, lead_in_s: float) -> Recording:
    """The first part of a flight that belongs to a stage, with the lead-in of a replay before it.

    So the prediction begins with the stage, or later where the recording begins with it.
    """
    window = stage_windows(recording, stage)[0]
    first_s = max(window.start_s - _recorded_s(lead_in_s), recording.start_s)
    return recording.between(first_s, window.end_s)


class RecordedPaths:
    """Smooth paths of the recorded reference points, wherever they lie in the bodies.

    Attributes:
        paths: Path of every body as recorded.
        load_time_s: Times of the load's poses, (k,).
    """

    def __init__(self, recording: Recording) -> None:
        """Smooth a recording."""
        if LOAD not in recording.bodies or not recording.drones:
            have = ", ".join(recording.bodies)
            raise ConfigError(f"{recording.source}: replay needs load and drones, it has {have}")
        for drone in recording.drones:
            if not recording.bodies[drone].has_attitude:
                raise ConfigError(
                    f"{recording.source}: replay needs the attitudes of the drones; that of "
                    f"{drone} is unknown"
                )
        self.source = recording.source
        self.drones = recording.drones
        self.paths: dict[str, SmoothPath] = {
            # The load is compared with, and it may turn fast: its path meets every sample.
            name: smooth_path(track, f"{recording.source}: {name}", exact=name == LOAD)
            for name, track in recording.bodies.items()
        }
        self.load_time_s = np.unique(recording.bodies[LOAD].time_s)


class ReplayMotion:
    """Centres of mass and attitudes over the time of a replay, which starts at rest.

    `start_s` and `end_s` are recorded times.
    """

    def __init__(self, recorded: RecordedPaths, spec: ReplaySpec) -> None:
        """Move the recorded points to the centres of mass."""
        for body in spec.offsets_m:
            if body != DRONES and body not in recorded.paths:
                have = ", ".join([*recorded.paths, DRONES])
                raise ConfigError(f"offset of '{body}': {recorded.source} has {have}")
        self._drones = recorded.drones
        tilt = Rotation.from_rotvec(spec.load_tilt_rad)
        self.paths = {
            name: path.of_body(
                spec.offset_m(name),
                tilt if name == LOAD else Rotation.identity(),
                spec.load_delay_s if name == LOAD else 0.0,
            )
            for name, path in recorded.paths.items()
        }
        self.start_s = max(path.start_s for path in self.paths.values())
        self.end_s = min(path.end_s for path in self.paths.values())
        if self.end_s - self.start_s < spec.lead_in_s + 1.0:
            raise ConfigError(
                f"{recorded.source}: {self.end_s - self.start_s:.1f} s in which all bodies are "
                f"recorded, a replay needs the lead-in of {spec.lead_in_s:g} s and a second more"
            )

    def clock_s(self, time_s: float) -> float:
        """Recorded time at a time of the replay: starts slowly, then runs along."""
        return self.start_s + _recorded_s(time_s)

    @property
    def duration_s(self) -> float:
        """Time of the replay that the recording gives."""
        return self.end_s - self.start_s + START_UP_S / 2.0

    def load_at(self, time_s: float) -> tuple[Array, Array]:
        """Recorded pose of the load at a time of the replay, (3,) and (4,)."""
        return self.paths[LOAD].at(self.clock_s(time_s))

    @property
    def load_has_attitude(self) -> bool:
        """Whether the load's attitude was recorded; else `load_at` has it level."""
        return self.paths[LOAD].has_attitude

    def load_velocity_at(self, time_s: float) -> Array:
        """Velocity of the load at a time of the replay, (3,) [m/s]."""
        half_s = 5 * GRID_S
        there, back = (self.load_at(max(time_s + by, 0.0))[0] for by in (half_s, -half_s))
        return (there - back) / (2.0 * half_s)

    def drones_at(self, time_s: float) -> Pose:
        """Recorded poses of the drones at a time of the replay, (n, 3) and (n, 4), unit."""
        poses = [self.paths[name].at(self.clock_s(time_s)) for name in self._drones]
        attitudes = np.array([q for _, q in poses])
        return np.array([p for p, _ in poses]), _unit(attitudes)

    def eased_in(self, attitudes: Array) -> Callable[[float], Pose]:
        """The drones' path, from given attitudes at the start into the recorded ones, (n, 4)."""

        def path(time_s: float) -> Pose:
            positions, recorded_attitudes = self.drones_at(time_s)
            if time_s >= START_UP_S:
                return positions, recorded_attitudes
            share = smoothstep(time_s / START_UP_S)
            same_side = np.where(np.sum(attitudes * recorded_attitudes, axis=1) < 0.0, -1.0, 1.0)
            return positions, _unit(
                (1.0 - share) * attitudes + share * same_side[:, None] * recorded_attitudes
            )

        return path


def _unit(quaternions: Array) -> Array:
    return quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
