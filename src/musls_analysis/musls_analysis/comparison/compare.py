"""Simulated against real: Table III of the seed paper.

Both are cut into cycles by their own set-points and averaged over repetitions and runs; the errors
are those between the two mean trajectories, eq. 12 and 13, averaged over the cycle. As the paper
says, a small mismatch in time makes them large where the motion is fast. So they are also given at
the lag that makes the translational error, averaged over the bodies, smallest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from musls_analysis.comparison.cycles import CutStage, of_one_length
from musls_analysis.comparison.errors import geodesic_error_rad, translational_error_m
from musls_analysis.recordings.recording import (
    DEFAULT_GAP_LIMIT_S,
    Array,
    PoseTrack,
    gaps,
    resample,
)
from musls_description.errors import ConfigError
from musls_description.rotations import (
    chordal_mean,
    from_roll_pitch_yaw,
    product,
    relative,
    roll_pitch_yaw,
    rotate,
    rotation_vector,
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


SMALLEST_OVERLAP = 0.5
"""Share of the cycle for which there must be poses of both."""
FULL_OVERLAP = 0.99
LAG_STEP_S = 0.01
_PERIODS_DIFFER_WARNING, _PERIODS_DIFFER_ERROR = 0.02, 0.1


@dataclass(frozen=True)
class CompareOptions:
    """Options of a comparison.

    Attributes:
        lag_limit_s: Greatest shift in time looked at, either way.
        euler_mean: Average roll, pitch, yaw as the paper does, not rotations.
        offsets_m: Point of a simulated body that is compared, in its own frame, from its recorded
            origin; by body. The default is the origins as recorded.
        bodies: Bodies to compare; all of the real recording by default.
        gap_limit_s: Longer gaps between samples are not bridged.
        grid: Phases of a cycle.
    """

    lag_limit_s: float = 0.5
    euler_mean: bool = False
    offsets_m: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bodies: Sequence[str] = ()
    gap_limit_s: float = DEFAULT_GAP_LIMIT_S
    grid: int = 500


@dataclass(frozen=True)
class BodyErrors:
    """Errors of one body's mean trajectory, over the phases where both are known.

    Attributes:
        translational_error_m: Mean distance (eq. 12).
        geodesic_error_deg: Mean angle (eq. 13).
        lagged_translational_error_m: At the stage's lag, as the next.
        overlap: Share of the cycle where both are known.
    """

    translational_error_m: float
    geodesic_error_deg: float
    lagged_translational_error_m: float
    lagged_geodesic_error_deg: float
    overlap: float


@dataclass(frozen=True)
class OffsetFit:
    """Share of the point of a simulated body that is compared in its translational error.

    The recorded pose is that of a point which somebody chose, such as the middle of the markers.
    Compared with another point of the simulated body it gives an error that no model can remove.

    Attributes:
        assumed_m: Compared point in the body's frame, from its recorded origin (3,).
        origin_error_m: Translational error with the body's recorded origin instead.
        best_m: Point that fits best, in mean square over the cycle (3,).
        best_error_m: Translational error with it.
    """

    assumed_m: tuple[float, float, float]
    origin_error_m: float
    best_m: tuple[float, float, float]
    best_error_m: float


@dataclass(frozen=True)
class FrameFit:
    """Constant rotation between the recorded and the simulated frame of a body that fits best.

    Motion capture reports the attitude of a frame that somebody laid into the markers. Where it is
    not the simulated body's, the geodesic error (eq. 13) has a constant part that no model of the
    motion can remove; the paper's own errors contain it. But a load that hangs askew because its
    cables differ gives the same: a record of it standing on level ground tells them apart.

    Attributes:
        rotation_deg: Rotation vector from the simulated body's frame to the recorded one, in the
            body's frame (3,).
        error_deg: Mean angle (eq. 13) with the simulated body turned by it.
    """

    rotation_deg: tuple[float, float, float]
    error_deg: float


@dataclass(frozen=True)
class StageComparison:
    """One stage of a real and a simulated system; mean cycles, errors and fits are by body.

    Attributes:
        period_s: Length of the real cycle, up to where both were recorded.
        periodic: Whether the cycle goes on over its end.
        phase: Grid (M,), of both mean cycles.
        lag_s: Positive where the simulation is late.
        real_cycles: Number of cycles averaged.
        sim_cycles: Number of cycles averaged, over all runs.
        warnings: Doubts, one line each.
        offsets: The point that is compared and the one that fits best.
        by_motion: Whether the cycles were found in the motion of the drones, not in set-points.
        frames: The rotation of the body's recorded frame that fits best.
    """

    stage: str
    period_s: float
    periodic: bool
    phase: Array
    real: Mapping[str, MeanCycle]
    sim: Mapping[str, MeanCycle]
    errors: Mapping[str, BodyErrors]
    lag_s: float
    real_cycles: int
    sim_cycles: int
    warnings: Sequence[str]
    offsets: Mapping[str, OffsetFit] = field(default_factory=dict)
    by_motion: bool = False
    frames: Mapping[str, FrameFit] = field(default_factory=dict)


def compare_stage(
    stage: str,
    real: CutStage | Sequence[CutStage],
    sims: Sequence[CutStage],
    options: CompareOptions | None = None,
) -> StageComparison:
    """Compare the mean trajectories of a stage.

    Raises:
        ConfigError: A body is missing, the cycles differ in length, or too little of them overlaps.
    """
    options = options or CompareOptions()
    reals = [real] if isinstance(real, CutStage) else list(real)
    bodies = _bodies([*reals, *sims], options)
    cuts, notes = _one_length(stage, [*reals, *sims])
    reals, sims = cuts[: len(reals)], cuts[len(reals) :]
    first = reals[0]
    phase = phases(options.grid, first.periodic)
    means = []
    for source, side, offsets in (
        (first.recording.source, reals, {}), ("simulation", sims, options.offsets_m),
    ):  # fmt: skip
        its = {
            body: slices(side, body, phase, options.gap_limit_s, offsets.get(body, (0, 0, 0)))
            for body in bodies
        }
        means.append({body: mean_cycle(part, options.euler_mean) for body, part in its.items()})
        gaps = max(part.gaps for part in its.values())
        if gaps:
            notes.append(f"{source}: {gaps} gap{'s' * (gaps > 1)} not bridged")
    of_real, of_sim = means
    errors, lag_s, more = _errors(stage, of_real, of_sim, first, options)
    return StageComparison(
        stage, first.period_s, first.periodic, phase, of_real, of_sim, errors, lag_s,
        sum(len(one.cycles) for one in reals), sum(len(sim.cycles) for sim in sims),
        tuple(notes + more),
        {body: _offset_fit(of_real[body], its, options.offsets_m.get(body, (0, 0, 0)))
         for body, its in of_sim.items()},
        first.by_motion,
        {body: frame_fit(of_real[body], its) for body, its in of_sim.items()},
    )  # fmt: skip


def _offset_fit(real: MeanCycle, sim: MeanCycle, assumed_m: Sequence[float]) -> OffsetFit:
    apart = real.position_enu_m - sim.position_enu_m
    q = sim.orientation_wxyz
    known = np.isfinite(apart).all(axis=1) & np.isfinite(q).all(axis=1)
    apart, q = apart[known], q[known]
    # Rotations keep lengths, so the mean in the body's frame is the least-squares point.
    more = rotate(q * np.array([1.0, -1.0, -1.0, -1.0]), apart).mean(axis=0)
    assumed = np.asarray(assumed_m, float)

    def error_m(point: Array) -> float:
        moved = rotate(q, np.broadcast_to(point, apart.shape))
        return float(np.linalg.norm(apart - moved, axis=1).mean())

    (x, y, z), (u, v, w) = assumed.tolist(), (assumed + more).tolist()
    return OffsetFit((x, y, z), error_m(-assumed), (u, v, w), error_m(more))


def frame_fit(real: MeanCycle, sim: MeanCycle) -> FrameFit:
    """Fit a constant rotation to two mean cycles of a body, on the same phases.

    It has the least mean square (chordal) distance; NaN where the relative attitudes are so spread
    that none is nearest.
    """
    known = np.isfinite(real.orientation_wxyz).all(axis=1)
    known &= np.isfinite(sim.orientation_wxyz).all(axis=1)
    q_real, q_sim = real.orientation_wxyz[known], sim.orientation_wxyz[known]
    mean = chordal_mean(relative(q_real, q_sim)[:, None])[0]
    turned = product(q_sim, np.broadcast_to(mean, q_sim.shape))
    x, y, z = np.degrees(rotation_vector(mean)).tolist()
    return FrameFit((x, y, z), float(np.degrees(np.mean(geodesic_error_rad(q_real, turned)))))


def _bodies(cuts: Sequence[CutStage], options: CompareOptions) -> list[str]:
    real = cuts[0].recording
    bodies = list(options.bodies or real.bodies)
    for recording in (one.recording for one in cuts):
        for body in [*bodies, *options.offsets_m]:
            if body not in recording.bodies:
                has = ", ".join(recording.bodies)
                raise ConfigError(f"{recording.source}: no body '{body}' in it; it has {has}")
        if not options.bodies and len(recording.bodies) > len(bodies):
            extra = next(body for body in recording.bodies if body not in bodies)
            raise ConfigError(
                f"{real.source}: no body '{extra}' in it, which {recording.source} has; "
                "choose with --bodies"
            )
    return bodies


def _one_length(stage: str, cuts: Sequence[CutStage]) -> tuple[list[CutStage], list[str]]:
    """Cycles of one length, motions that do not repeat cut to the shortest; warnings."""
    real = cuts[0]
    notes = [line for one in cuts for line in one.warnings]
    if not real.periodic:
        length_s = min(one.period_s for one in cuts)
        for one in cuts:
            if length_s < (1.0 - _PERIODS_DIFFER_ERROR) * one.period_s:
                notes.append(
                    f"{one.recording.source}: stage '{stage}' lasts {one.period_s:.1f} s, of which "
                    f"the first {length_s:.1f} s are compared"
                )
    else:
        for sim in cuts[1:]:
            off = abs(np.log(sim.period_s / real.period_s))
            if off > _PERIODS_DIFFER_WARNING:
                notes.append(
                    f"{sim.recording.source}: the set-point's period in '{stage}' is "
                    f"{sim.period_s:.3f} s, the real one's {real.period_s:.3f} s"
                )
            if off > _PERIODS_DIFFER_ERROR:
                raise ConfigError(notes[-1])
    return of_one_length(cuts), notes


def _errors(
    stage: str,
    real: Mapping[str, MeanCycle],
    sim: Mapping[str, MeanCycle],
    cut: CutStage,
    options: CompareOptions,
) -> tuple[dict[str, BodyErrors], float, list[str]]:
    """Errors by body, the lag [s], warnings."""
    plain = _at_lag(real, sim, 0.0, cut)
    overlap = {body: float(np.isfinite(e[0]).mean()) for body, e in plain.items()}
    for body, share in overlap.items():
        if share < SMALLEST_OVERLAP:
            raise ConfigError(
                f"{cut.recording.source}: only {100 * share:.0f} % of a cycle of '{stage}' has "
                f"poses of {body} in both recordings, must be {100 * SMALLEST_OVERLAP:.0f} %"
            )
    notes = [
        f"{body}: {100 * share:.0f} % of the cycle of '{stage}' compared, the rest is not recorded"
        for body, share in overlap.items()
        if share < FULL_OVERLAP
    ]
    lag_s = _best_lag_s(real, sim, cut, options.lag_limit_s)
    lagged = _at_lag(real, sim, lag_s, cut)
    if options.lag_limit_s and abs(lag_s) > options.lag_limit_s - 0.5 * LAG_STEP_S:
        notes.append(f"the lag of '{stage}' is at its limit, {options.lag_limit_s:g} s")
    errors = {
        body: BodyErrors(
            float(np.nanmean(distance)), float(np.degrees(np.nanmean(angle))),
            float(np.nanmean(lagged[body][0])), float(np.degrees(np.nanmean(lagged[body][1]))),
            overlap[body],
        )
        for body, (distance, angle) in plain.items()
    }  # fmt: skip
    return errors, lag_s, notes


def _at_lag(
    real: Mapping[str, MeanCycle], sim: Mapping[str, MeanCycle], lag_s: float, cut: CutStage
) -> dict[str, tuple[Array, Array]]:
    """Distances [m] and angles [rad] (M,) by body, the simulation read `lag_s` later."""
    result = {}
    for body, its in sim.items():
        position, q = its.position_enu_m, its.orientation_wxyz
        if lag_s:
            position, q = shifted(its, lag_s / cut.period_s, cut.periodic)
        distance = translational_error_m(real[body].position_enu_m, position)
        result[body] = distance, geodesic_error_rad(real[body].orientation_wxyz, q)
    return result


def _best_lag_s(
    real: Mapping[str, MeanCycle], sim: Mapping[str, MeanCycle], cut: CutStage, limit_s: float
) -> float:
    """Lag of the smallest translational error over the phases that exist at every lag."""
    limit_s = min(limit_s, 0.45 * cut.period_s)
    steps = int(np.floor(limit_s / LAG_STEP_S + 1e-9))
    lags = sorted(LAG_STEP_S * np.arange(-steps, steps + 1), key=abs)  # the smallest of equals
    errors = np.array(
        [[e[0] for e in _at_lag(real, sim, lag_s, cut).values()] for lag_s in lags]
    )  # (lags, bodies, M)
    common = np.isfinite(errors).all(axis=(0, 1))
    if not common.any():
        return 0.0
    return float(lags[int(np.argmin(errors[:, :, common].mean(axis=(1, 2))))])


# ---------- Bootstrap intervals over real cycles and simulated flights

DRAWS = 100
INTERVAL_GRID = 100
"""Phases of a cycle; means over it need fewer than curves do."""
MIDDLE = (5.0, 95.0)
"""Percentiles."""

Interval = tuple[tuple[float, float], tuple[float, float]]
"""Lower (translational error [mm], geodesic error [deg]), and upper."""


def error_intervals(
    reals: Sequence[CutStage],
    sims: Sequence[CutStage],
    options: CompareOptions,
    about: Mapping[str, BodyErrors] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Interval]:
    """Bootstrap the errors of a stage: ends of the middle 90 % by body.

    Cycles of the real recordings and whole simulated flights are drawn anew. `about` holds the
    errors of all cycles on the comparison's own, finer phases: the ends are moved by what the
    phases make.
    """
    cuts = of_one_length([*reals, *sims])
    reals, sims = cuts[: len(reals)], cuts[len(reals) :]
    phase = phases(INTERVAL_GRID, reals[0].periodic)
    generator = np.random.default_rng(seed)
    flight = np.repeat(np.arange(len(sims)), [len(sim.cycles) for sim in sims])
    n = sum(len(real.cycles) for real in reals)
    drawn = []
    for _ in range(draws):
        cycles = generator.integers(0, n, n)
        flown = generator.integers(0, len(sims), len(sims))
        drawn.append((cycles, np.concatenate([np.flatnonzero(flight == k) for k in flown])))
    found = {}
    for body in options.bodies or reals[0].recording.bodies:
        real = slices(reals, body, phase, options.gap_limit_s)
        offset = options.offsets_m.get(body, (0.0, 0.0, 0.0))
        sim = slices(sims, body, phase, options.gap_limit_s, offset)
        errors = np.array([_errors_of_means(real, sim, *which) for which in drawn])
        if about is not None:
            whole = _errors_of_means(real, sim, np.arange(n), np.arange(len(flight)))
            its = about[body]
            exact = (1e3 * its.translational_error_m, its.geodesic_error_deg)
            errors = np.maximum(errors + np.subtract(exact, whole), 0.0)
        low, high = np.nanpercentile(errors, MIDDLE, axis=0).tolist()
        found[body] = ((low[0], low[1]), (high[0], high[1]))
    return found


def _errors_of_means(
    real: Slices, sim: Slices, cycles: np.ndarray, flown: np.ndarray
) -> tuple[float, float]:
    """Errors of the means over some cycles, mm and degrees."""
    with np.errstate(all="ignore"):
        distance = translational_error_m(
            known_mean(real.position_enu_m[cycles]), known_mean(sim.position_enu_m[flown])
        )
        angle = geodesic_error_rad(
            chordal_mean(real.orientation_wxyz[cycles]), chordal_mean(sim.orientation_wxyz[flown])
        )
        return 1e3 * float(np.nanmean(distance)), float(np.degrees(np.nanmean(angle)))
