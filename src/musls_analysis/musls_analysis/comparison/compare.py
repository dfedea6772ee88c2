"""Simulated against real: Table III of the seed paper.

Both are cut into cycles by their own set-points and averaged over repetitions and runs; the errors
are those between the two mean trajectories, eq. 12 and 13, averaged over the cycle. As the paper
says, a small mismatch in time makes them large where the motion is fast. So they are also given at
the lag that makes the translational error, averaged over the bodies, smallest.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.comparison.cycles import ROUNDING_M, CutStage, of_one_length
from musls_analysis.comparison.errors import error_track, geodesic_error_rad, translational_error_m
from musls_analysis.recordings.recording import PoseTrack, bridged_s, gaps, resample
from musls_description.config.errors import ConfigError, file_name
from musls_description.numerics import rotations
from musls_description.numerics.arrays import Array
from musls_description.tables import ShownResult, Table

BAND = 0.9
"""Share that bands and intervals are to hold."""

MIDDLE = (5.0, 95.0)
"""Percentiles, ends of its middle."""

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
        angles_ci_rad: Half widths for roll, pitch, yaw (M, 3).
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
    offset_m: Sequence[float] = (0.0, 0.0, 0.0),
) -> Slices:
    """Cycles of a stage in one or more runs on a grid of phases (M,), gaps left open.

    `offset_m` is the point of the body to follow, in its frame, from the recorded origin (3,).
    """
    positions = []
    orientations = []
    open_gaps = 0
    gap_limit_s = bridged_s(cut.recording.bodies[body].time_s for cut in cuts)
    for cut in cuts:
        track = cut.recording.bodies[body]
        if np.any(offset_m):
            shift = rotations.rotate(
                track.orientation_wxyz, np.tile(offset_m, (len(track.time_s), 1))
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
    """Average cycles on common phases, phase by phase; standard deviations with n - 1.

    With `euler_mean` roll, pitch and yaw are averaged one by one, as the seed paper does, instead
    of the rotations. They are first brought within half a turn of the mean rotation's, without
    which a mean across +-180 degrees would be meaningless.
    """
    orientation = rotations.chordal_mean(body.orientation_wxyz)
    about = _unwrapped(rotations.roll_pitch_yaw(orientation))
    angles = rotations.near(rotations.roll_pitch_yaw(body.orientation_wxyz), about)
    mean_angles, angles_ci = _mean_and_half_width(angles)
    if euler_mean:
        orientation = rotations.from_roll_pitch_yaw(mean_angles)
    else:
        mean_angles = about
    position, position_ci = _mean_and_half_width(body.position_enu_m)
    samples = np.isfinite(body.position_enu_m[..., 0]).sum(axis=0)
    return MeanCycle(position, orientation, mean_angles, position_ci, angles_ci, samples)


def mean_of_known(values: Array) -> float:
    """Mean of numbers (T,) that are known; NaN of none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else np.nan


def known_mean(values: Array) -> Array:
    """Mean over the first axis; NaN does not count, and is the mean of nothing."""
    return np.ma.masked_invalid(values).mean(axis=0).filled(np.nan)


def _mean_and_half_width(values: Array) -> tuple[Array, Array]:
    """Mean over the first axis and half width of its confidence interval; NaN does not count."""
    finite = np.ma.masked_invalid(values)
    deviation = finite.std(axis=0, ddof=1).filled(np.nan)
    n = np.maximum(finite.count(axis=0), 1)
    return known_mean(values), CONFIDENCE_FACTOR * deviation / np.sqrt(n)


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
    position = mean.position_enu_m
    orientation = mean.orientation_wxyz
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
BY_MOTION = (
    "cycles found in the motion of the drones, because not all recordings have set-points: "
    "how late the drones follow them does not show"
)
LATE_S = 0.05
"""Least difference between the lag of a body and all others that is reported."""
_PERIODS_DIFFER_WARNING = 0.02
_PERIODS_DIFFER_ERROR = 0.1


@dataclass(frozen=True)
class CompareOptions:
    """Options of a comparison.

    Attributes:
        lag_limit_s: Greatest shift in time looked at, either way.
        euler_mean: Average roll, pitch, yaw as the paper does, not rotations.
        offsets_m: Point of a simulated body that is compared, in its own frame, from its recorded
            origin; by body. The default is the origins as recorded.
        bodies: Bodies to compare; all of the real recording by default.
        grid: Phases of a cycle.
    """

    lag_limit_s: float = 0.5
    euler_mean: bool = False
    offsets_m: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bodies: Sequence[str] = ()
    grid: int = 500


@dataclass(frozen=True)
class BodyErrors:
    """Errors of one body's mean trajectory, over the phases where both are known.

    Attributes:
        translational_error_m: Mean distance (eq. 12).
        geodesic_error_deg: Mean angle (eq. 13).
        lagged_translational_error_m: Mean distance at the stage's lag.
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

    The recorded pose is that of a point chosen on the body, such as the middle of the markers.
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

    Motion capture reports the attitude of a frame defined on the markers. Where it is
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
class AskedErrors:
    """Errors of a body against its set-points, in both flights by the same measure.

    Attributes:
        real_m: Mean distance over the cycles of the real flight.
        sim_m: Mean distance over the cycles of the simulated flights.
        held: Whether errors refer to set-points as held, since recordings have no others; else
            they refer to the reference in continuous time.
    """

    real_m: float
    sim_m: float
    held: bool


@dataclass(frozen=True)
class Band:
    """Band of flights that differ by what is not known, and how much of a recording it holds.

    Columns are x, y, z [m], roll, pitch, yaw [rad]. Between the 5th and 95th percentile of all
    simulated cycles at a phase lies what these flights say. What they all miss is told by other
    recordings: the ends are moved outward by the 90 % quantile of how far their rows are outside
    (conformalised quantiles, Romano, Patterson and Candes, NeurIPS 2019).

    Attributes:
        low: Lower end at each phase, (M, 6).
        high: Upper end, (M, 6).
        margin: Distance by which both ends were moved, negative inward, (6,).
        inside: Share of the recorded rows inside, (6,).
    """

    low: Array
    high: Array
    margin: Array
    inside: Array


@dataclass(frozen=True, repr=False)
class StageComparison(ShownResult):
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
        asked: Distances to what is asked, of bodies of which all recordings know it.
        bands: Middle 90 % of the simulated cycles, of enough flights.
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
    asked: Mapping[str, AskedErrors] = field(default_factory=dict)
    bands: Mapping[str, Band] = field(default_factory=dict)

    def shown(self) -> Iterator[str | Table]:
        """Errors of each body, then the lag and what was averaged."""
        heads = (self.stage, "trans. (mm)", "geo. (deg)", "at lag: trans. (mm)", "geo. (deg)")
        rows = [
            (
                body.replace("_", " "),
                *(
                    f"{number:.1f}" if np.isfinite(number) else ""
                    for number in (
                        1e3 * e.translational_error_m,
                        e.geodesic_error_deg,
                        1e3 * e.lagged_translational_error_m,
                        e.lagged_geodesic_error_deg,
                    )
                ),
            )
            for body, e in self.errors.items()
        ]
        yield Table(heads, rows)
        late = f"sim {abs(self.lag_s):.2f} s {'late' if self.lag_s > 0 else 'early'}"
        yield (
            f"lag: {late if self.lag_s else 'none'}; {self.real_cycles} real and "
            f"{self.sim_cycles} simulated cycles of {self.period_s:.2f} s"
        )
        if self.by_motion:
            yield BY_MOTION
        if self.bands:
            yield "recorded rows inside the 90 % bands (of all bodies, then of each):"
            yield from (f"  {line}" for line in self._coverage())

    def _coverage(self) -> Iterator[str]:
        inside = {body.replace("_", " "): band.inside for body, band in self.bands.items()}
        for kind, columns in (("places", slice(0, 3)), ("angles", slice(3, 6))):
            each = {body: float(np.nanmean(share[columns])) for body, share in inside.items()}
            bodies = ", ".join(f"{body} {100 * share:.0f} %" for body, share in each.items())
            yield f"{kind} {100 * np.mean(list(each.values())):.0f} %: {bodies}"


def compare_stage(
    stage: str,
    real: CutStage | Sequence[CutStage],
    sims: Sequence[CutStage],
    options: CompareOptions | None = None,
    others: Sequence[CutStage] = (),
) -> StageComparison:
    """Compare the mean trajectories of a stage; `others` are recordings that widen the bands."""
    options = options or CompareOptions()
    reals = [real] if isinstance(real, CutStage) else list(real)
    bodies = _bodies([*reals, *sims, *others], options)
    cuts, notes = _one_length(stage, [*reals, *sims, *others])
    ends = len(reals), len(reals) + len(sims)
    reals = cuts[: ends[0]]
    sims = cuts[ends[0] : ends[1]]
    others = cuts[ends[1] :]
    first = reals[0]
    phase = phases(options.grid, first.periodic)
    means = []
    for source, side, offsets in (
        (first.recording.source, reals, {}),
        ("simulation", sims, options.offsets_m),
    ):
        its = {body: slices(side, body, phase, offsets.get(body, (0, 0, 0))) for body in bodies}
        means.append({body: mean_cycle(part, options.euler_mean) for body, part in its.items()})
        gaps = max(part.gaps for part in its.values())
        if gaps:
            notes.append(f"{source}: {gaps} gap{'s' * (gaps > 1)} not bridged")
    of_real, of_sim = means
    errors, lag_s, more = _errors(stage, of_real, of_sim, first, options)
    return StageComparison(
        stage,
        first.period_s,
        first.periodic,
        phase,
        of_real,
        of_sim,
        errors,
        lag_s,
        sum(len(one.cycles) for one in reals),
        sum(len(sim.cycles) for sim in sims),
        tuple(notes + more),
        {
            body: _offset_fit(of_real[body], its, options.offsets_m.get(body, (0, 0, 0)))
            for body, its in of_sim.items()
        },
        first.by_motion,
        {body: frame_fit(of_real[body], its) for body, its in of_sim.items()},
        _asked_errors(bodies, reals, sims),
        {}
        if len(sims) < FEWEST_FLIGHTS
        else {
            body: band(reals, sims, others, body, phase, options.offsets_m.get(body, (0, 0, 0)))
            for body in bodies
        },
    )


# ---------- Bands of simulated flights, and how much of a recording they hold

FEWEST_FLIGHTS = 10
"""Simulated flights of which a band is made."""


def band(
    reals: Sequence[CutStage],
    sims: Sequence[CutStage],
    others: Sequence[CutStage],
    body: str,
    phase: Array,
    offset_m: Sequence[float] = (0.0, 0.0, 0.0),
) -> Band:
    """Band of one body on a grid of phases (M,), widened by other recordings, see `Band`."""
    poses = slices(sims, body, phase, offset_m)
    middle = _unwrapped(rotations.roll_pitch_yaw(rotations.chordal_mean(poses.orientation_wxyz)))
    every = _coordinates(poses.position_enu_m, poses.orientation_wxyz, middle)
    low, high = np.nanpercentile(every, MIDDLE, axis=0)

    def outside(cuts: Sequence[CutStage]) -> Array:
        """Distance of each recorded row outside, less than 0 inside, (k, 6)."""
        excess = []
        for one in cuts:
            track = one.recording.bodies[body]
            for cycle in one.cycles:
                rows = (track.time_s >= cycle.start_s) & (track.time_s < cycle.end_s)
                at = (track.time_s[rows] - cycle.start_s) / (cycle.end_s - cycle.start_s)

                def there(grid: Array, at: Array = at, periodic: bool = one.periodic) -> Array:
                    period = 1.0 if periodic else None
                    columns = [np.interp(at, phase, x, period=period) for x in grid.T]
                    return np.column_stack(columns)

                value = _coordinates(
                    track.position_enu_m[rows], track.orientation_wxyz[rows], there(middle)
                )
                excess.append(np.maximum(there(low) - value, value - there(high)))
        return np.concatenate(excess)

    margin = np.nanquantile(outside(others), BAND, axis=0) if others else np.zeros(6)
    away = outside(reals)
    finite = np.isfinite(away)
    inside = np.sum(finite & (away <= margin), axis=0) / np.maximum(finite.sum(axis=0), 1)
    return Band(low - margin, high + margin, margin, inside)


def _coordinates(position_enu_m: Array, orientation_wxyz: Array, about_rad: Array) -> Array:
    """Position, and roll, pitch, yaw within half a turn of given ones, (..., 6)."""
    angles = rotations.roll_pitch_yaw(orientation_wxyz)
    near = rotations.near(angles, about_rad)
    return np.concatenate([position_enu_m, near], axis=-1)


def _asked_errors(
    bodies: Sequence[str], reals: Sequence[CutStage], sims: Sequence[CutStage]
) -> dict[str, AskedErrors]:
    recordings = [cut.recording for cut in [*reals, *sims]]
    errors = {}
    for body in bodies:
        if all(body in recording.setpoints for recording in recordings):
            is_held = any(body not in recording.references for recording in recordings)
            real_m, sim_m = (_mean_asked_m(body, side, held=is_held) for side in (reals, sims))
            if np.isfinite(real_m + sim_m):
                errors[body] = AskedErrors(real_m, sim_m, is_held)
    return errors


def _mean_asked_m(body: str, cuts: Sequence[CutStage], *, held: bool) -> float:
    """Mean distance of a body to what is asked of it over all cycles, NaN if none is known."""
    distances = []
    for cut in cuts:
        track = error_track(cut.recording, body, held=held)
        for cycle in cut.cycles:
            inside = (track.time_s >= cycle.start_s) & (track.time_s < cycle.end_s)
            distances.append(track.translational_error_m[inside])
    return mean_of_known(np.concatenate(distances))


def _offset_fit(real: MeanCycle, sim: MeanCycle, assumed_m: Sequence[float]) -> OffsetFit:
    apart = real.position_enu_m - sim.position_enu_m
    q = sim.orientation_wxyz
    finite = np.isfinite(apart).all(axis=1) & np.isfinite(q).all(axis=1)
    apart = apart[finite]
    q = q[finite]
    if not len(q):  # a place without attitude was simulated
        x, y, z = assumed_m
        return OffsetFit((x, y, z), np.nan, (np.nan, np.nan, np.nan), np.nan)
    # Rotations keep lengths, so the mean in the body's frame is the least-squares point.
    more = rotations.rotate(q * [1.0, -1.0, -1.0, -1.0], apart).mean(axis=0)
    offset = np.asarray(assumed_m, float)

    def error_m(point: Array) -> float:
        rotated_point = rotations.rotate(q, np.broadcast_to(point, apart.shape))
        return float(np.linalg.norm(apart - rotated_point, axis=1).mean())

    (x, y, z), (u, v, w) = offset.tolist(), (offset + more).tolist()
    return OffsetFit((x, y, z), error_m(-offset), (u, v, w), error_m(more))


def frame_fit(real: MeanCycle, sim: MeanCycle) -> FrameFit:
    """Constant rotation of least mean square (chordal) distance between two mean cycles of a body.

    NaN where the relative attitudes are so spread that none is nearest.
    """
    finite = np.isfinite(real.orientation_wxyz).all(axis=1)
    finite &= np.isfinite(sim.orientation_wxyz).all(axis=1)
    q_real = real.orientation_wxyz[finite]
    q_sim = sim.orientation_wxyz[finite]
    if not len(q_sim):
        return FrameFit((np.nan, np.nan, np.nan), np.nan)
    mean = rotations.chordal_mean(rotations.relative(q_real, q_sim)[:, None])[0]
    q_aligned = rotations.product(q_sim, np.broadcast_to(mean, q_sim.shape))
    x, y, z = np.degrees(rotations.rotation_vector(mean)).tolist()
    return FrameFit((x, y, z), float(np.degrees(np.mean(geodesic_error_rad(q_real, q_aligned)))))


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
                "choose with --only"
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
    notes += _late_bodies(real, sim, cut, options.lag_limit_s)
    if options.lag_limit_s and abs(lag_s) > options.lag_limit_s - 0.5 * LAG_STEP_S:
        notes.append(f"the lag of '{stage}' is at its limit, {options.lag_limit_s:g} s")
    errors = {
        body: BodyErrors(
            mean_of_known(distance),
            float(np.degrees(mean_of_known(angle))),
            mean_of_known(lagged[body][0]),
            float(np.degrees(mean_of_known(lagged[body][1]))),
            overlap[body],
        )
        for body, (distance, angle) in plain.items()
    }
    return errors, lag_s, notes


def _late_bodies(
    real: Mapping[str, MeanCycle], sim: Mapping[str, MeanCycle], cut: CutStage, limit_s: float
) -> list[str]:
    """Bodies whose clock differs from all others; on a circle a displaced body looks the same."""
    lags = {body: _best_lag_s({body: real[body]}, {body: sim[body]}, cut, limit_s) for body in sim}
    notes = []
    for body, lag_s in lags.items():
        others = [lag for other, lag in lags.items() if other != body]
        if len(others) < 2 or min(abs(lag_s - lag) for lag in others) < LATE_S:
            continue
        usual_s = float(np.median(others))
        before, after = (
            float(np.nanmean(_at_lag({body: real[body]}, {body: sim[body]}, at_s, cut)[body][0]))
            for at_s in (usual_s, lag_s)
        )
        if after < 0.5 * before:
            late_s = usual_s - lag_s
            notes.append(
                f"{cut.recording.source}: {body} is {abs(late_s):.2f} s "
                f"{'behind' if late_s > 0.0 else 'ahead of'} the others: flown so, or its stamps "
                f"are wrong; with --clock {body}={-late_s:.2f} its error is {1e3 * after:.0f} "
                f"instead of {1e3 * before:.0f} mm"
            )
    return notes


def _at_lag(
    real: Mapping[str, MeanCycle], sim: Mapping[str, MeanCycle], lag_s: float, cut: CutStage
) -> dict[str, tuple[Array, Array]]:
    """Distances [m] and angles [rad] (M,) by body, the simulation read `lag_s` later."""
    result = {}
    for body, its in sim.items():
        position = its.position_enu_m
        q = its.orientation_wxyz
        if lag_s:
            position, q = shifted(its, lag_s / cut.period_s, cut.periodic)
        distance = translational_error_m(real[body].position_enu_m, position)
        result[body] = distance, geodesic_error_rad(real[body].orientation_wxyz, q)
    return result


def _best_lag_s(
    real: Mapping[str, MeanCycle], sim: Mapping[str, MeanCycle], cut: CutStage, limit_s: float
) -> float:
    """Lag of the smallest translational error over the phases that exist at every lag.

    Of lags that differ by what files round the smallest: nothing moves there.
    """
    limit_s = min(limit_s, 0.45 * cut.period_s)
    steps = int(np.floor(limit_s / LAG_STEP_S + 1e-9))
    lags = sorted(LAG_STEP_S * np.arange(-steps, steps + 1), key=abs)  # the smallest of equals
    errors = np.array(
        [[e[0] for e in _at_lag(real, sim, lag_s, cut).values()] for lag_s in lags]
    )  # (lags, bodies, M)
    common = np.isfinite(errors).all(axis=(0, 1))
    if not common.any():
        return 0.0
    mean_m = errors[:, :, common].mean(axis=(1, 2))
    return float(lags[int(np.argmax(mean_m <= mean_m.min() + ROUNDING_M))])


# ---------- Bootstrap intervals over real cycles and simulated flights

DRAWS = 100
INTERVAL_GRID = 100
"""Phases of a cycle; means over it need fewer than curves do."""
Interval = tuple[tuple[float, float], tuple[float, float]]
"""Lower (translational error [mm], geodesic error [deg]), and upper."""


def error_intervals(
    reals: Sequence[CutStage],
    sims: Sequence[CutStage],
    options: CompareOptions,
    about: Mapping[str, BodyErrors] | None = None,
) -> dict[str, Interval]:
    """Bootstrap the errors of a stage: ends of the middle 90 % by body.

    Cycles of the real recordings and whole simulated flights are drawn anew. `about` holds the
    errors of all cycles on the comparison's own, finer phases: the ends are moved by what the
    phases make.
    """
    cuts = of_one_length([*reals, *sims])
    reals, sims = cuts[: len(reals)], cuts[len(reals) :]
    phase = phases(INTERVAL_GRID, reals[0].periodic)
    generator = np.random.default_rng(0)
    flight = np.repeat(np.arange(len(sims)), [len(sim.cycles) for sim in sims])
    n = sum(len(real.cycles) for real in reals)
    draws = []
    for _ in range(DRAWS):
        cycles = generator.integers(0, n, n)
        flights = generator.integers(0, len(sims), len(sims))
        draws.append((cycles, np.concatenate([np.flatnonzero(flight == k) for k in flights])))
    intervals = {}
    for body in options.bodies or reals[0].recording.bodies:
        real = slices(reals, body, phase)
        offset = options.offsets_m.get(body, (0.0, 0.0, 0.0))
        sim = slices(sims, body, phase, offset)
        errors = np.array([_errors_of_means(real, sim, *which) for which in draws])
        if about is not None:
            whole = _errors_of_means(real, sim, np.arange(n), np.arange(len(flight)))
            its = about[body]
            exact = (1e3 * its.translational_error_m, its.geodesic_error_deg)
            errors = np.maximum(errors + np.subtract(exact, whole), 0.0)
        low, high = np.nanpercentile(errors, MIDDLE, axis=0).tolist()
        intervals[body] = ((low[0], low[1]), (high[0], high[1]))
    return intervals


def _errors_of_means(
    real: Slices, sim: Slices, cycles: np.ndarray, sim_cycles: np.ndarray
) -> tuple[float, float]:
    """Errors of the means over some cycles, mm and degrees."""
    with np.errstate(all="ignore"):
        distance = translational_error_m(
            known_mean(real.position_enu_m[cycles]), known_mean(sim.position_enu_m[sim_cycles])
        )
        angle = geodesic_error_rad(
            rotations.chordal_mean(real.orientation_wxyz[cycles]),
            rotations.chordal_mean(sim.orientation_wxyz[sim_cycles]),
        )
        return 1e3 * mean_of_known(distance), float(np.degrees(mean_of_known(angle)))


# ---------- Files: table and mean trajectories as CSV, numbers as JSON

TABLE = "table.csv"
SUMMARY = "comparison.json"

TABLE_COLUMNS = (
    "stage",
    "body",
    "translational_error_mm",
    "geodesic_error_deg",
    "lag_s",
    "lagged_translational_error_mm",
    "lagged_geodesic_error_deg",
    "overlap",
    "real_cycles",
    "sim_cycles",
    "offset_x_m",
    "offset_y_m",
    "offset_z_m",
    "origin_translational_error_mm",
    "best_offset_x_m",
    "best_offset_y_m",
    "best_offset_z_m",
    "best_offset_translational_error_mm",
)
_PARTS = ("x_m", "y_m", "z_m", "roll_rad", "pitch_rad", "yaw_rad")
MEAN_COLUMNS = (
    "time_s",
    "body",
    "source",
    "samples",
    *_PARTS,
    "qw",
    "qx",
    "qy",
    "qz",
    *(f"{part}_ci95" for part in _PARTS),
)


def write_comparison(
    comparisons: Sequence[StageComparison], about: Mapping[str, Any], folder: Path
) -> None:
    """Write tables and numbers into a folder; `about`, sources and options, into the JSON file."""
    with (folder / TABLE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(TABLE_COLUMNS)
        for row in table_rows(comparisons):
            writer.writerow(f"{v:.6g}" if isinstance(v, float) else v for v in row)
    for comparison in comparisons:
        _write_means(comparison, folder / f"mean_{file_name(comparison.stage)}.csv")
    summary = {**about, "stages": {c.stage: _summary(c) for c in comparisons}}
    text = json.dumps(summary, indent=2, allow_nan=False)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8")


def table_rows(comparisons: Sequence[StageComparison]) -> list[tuple[Any, ...]]:
    """Rows of the table, in the order of `TABLE_COLUMNS`: one per stage and body."""
    return [
        (
            c.stage,
            body,
            1e3 * e.translational_error_m,
            e.geodesic_error_deg,
            c.lag_s,
            1e3 * e.lagged_translational_error_m,
            e.lagged_geodesic_error_deg,
            e.overlap,
            c.real_cycles,
            c.sim_cycles,
            *c.offsets[body].assumed_m,
            1e3 * c.offsets[body].origin_error_m,
            *c.offsets[body].best_m,
            1e3 * c.offsets[body].best_error_m,
        )
        for c in comparisons
        for body, e in c.errors.items()
    ]


def _summary(comparison: StageComparison) -> dict[str, Any]:
    frames = {body: asdict(its) for body, its in comparison.frames.items()}
    return {
        "period_s": comparison.period_s,
        "lag_s": comparison.lag_s,
        "real_cycles": comparison.real_cycles,
        "sim_cycles": comparison.sim_cycles,
        "cycles_found_in": "motion of the drones" if comparison.by_motion else "set-points",
        "errors": {body: _known(asdict(errors)) for body, errors in comparison.errors.items()},
        "offsets": {body: _known(asdict(its)) for body, its in comparison.offsets.items()},
        "asked": {body: asdict(its) for body, its in comparison.asked.items()},
        "bands": {
            body: {"inside": its.inside.tolist(), "margin": its.margin.tolist()}
            for body, its in comparison.bands.items()
        },
        "frames": {body: _known(its) for body, its in frames.items()},
        "warnings": list(comparison.warnings),
    }


def _known(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers for JSON, which has no NaN: what is not known is null."""
    return {key: v if np.all(np.isfinite(v)) else None for key, v in numbers.items()}


def moved_points(offsets_m: Mapping[str, Sequence[float]]) -> str:
    """Compared points that are not the origins of the simulated bodies, in words; or ""."""
    points = "; ".join(
        f"{body} at ({x:g}, {y:g}, {z:g}) m in its frame" for body, (x, y, z) in offsets_m.items()
    )
    return f", but in the simulation {points}" if points else ""


def _write_means(comparison: StageComparison, path: Path) -> None:
    times_s = comparison.phase * comparison.period_s
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(MEAN_COLUMNS)
        for source, means in (("real", comparison.real), ("sim", comparison.sim)):
            for body, mean in means.items():
                columns = np.hstack(
                    [
                        mean.position_enu_m,
                        mean.angles_rad,
                        mean.orientation_wxyz,
                        mean.position_ci_m,
                        mean.angles_ci_rad,
                    ]
                )
                for time_s, n, row in zip(times_s, mean.samples, columns, strict=True):
                    cells = ["" if np.isnan(v) else f"{v:.7g}" for v in row]
                    writer.writerow([f"{time_s:.6g}", body, source, n, *cells])
