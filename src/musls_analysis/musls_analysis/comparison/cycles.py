"""Cuts flights into the cycles of a stage, so that repetitions and runs can be laid on one another.

The load's set-point decides, by the rule that the stage's kind of trajectory declares (its
`CycleRule`): at the angle of a circle, where a harmonic motion passes its middle, at a step up.
Without a rule for it a stage is one cycle. Where there are no set-points, the motion of the drones
decides by the same rules; flights that are compared are cut by the same of both, in the same
windows: where only one of them names its stages, they are looked for in the motion of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from musls_analysis.recordings.recording import (
    LOAD,
    PoseTrack,
    RecordedStage,
    Recording,
    interpolated,
    without_number,
)
from musls_control.trajectories import TRAJECTORIES, CycleRule, trajectory_of_stage
from musls_description.config.errors import ConfigError
from musls_description.numerics import rotations
from musls_description.numerics.arrays import Array

SMALLEST_SHARE = 0.9
"""A cycle counts if at least this share of it was flown in the stage."""
STEP_UP_M = 0.2
"""A set-point that rises by more at once steps up; ramps rise by less between two rows."""
WHOLE_FLIGHT = "flight"
"""Name of the one stage of a recording that names none."""
_PERIODS_DIFFER = 0.02
"""Share by which the periods of two windows of one stage may differ."""
_MISFIT_WARNING = 0.02
"""Share of the period by which set-points may be off the fitted phase."""


@dataclass(frozen=True)
class Cycle:
    """One repetition, from phase 0 to phase 1."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class CutStage:
    """The cycles of one stage in one recording.

    Attributes:
        cycles: Cycles in time order, all of one length.
        periodic: Whether the motion goes on over the end of a cycle as at its start.
        warnings: Doubts about them, one line each.
        by_motion: Whether the motion of the drones decided, not the set-points.
    """

    recording: Recording
    cycles: Sequence[Cycle]
    periodic: bool
    warnings: Sequence[str] = ()
    by_motion: bool = False

    @property
    def period_s(self) -> float:
        """Length of a cycle [s]."""
        return self.cycles[0].end_s - self.cycles[0].start_s


def cut(
    recording: Recording,
    stage: str,
    skip: int = 0,
    *,
    by_motion: bool | None = None,
    windows: Sequence[RecordedStage] = (),
    bodies: Sequence[str] = (),
) -> CutStage:
    """Find the cycles of a stage; its first `skip` are left out, while the motion settles.

    The stage is "circle", "shm", "engage" or the name of another one; in a recording without stages
    it says what the whole of it is. With `by_motion` the motion of the drones decides, not the
    set-points; None: where there are no set-points. Flights that are compared must be cut alike.
    `windows` of the stage are those that the recording names, `bodies` that move its drones, by
    default.
    """
    if by_motion is None:
        by_motion = LOAD not in recording.setpoints
    windows = windows or stage_windows(recording, stage)
    bodies = bodies or _moving([recording])
    parts = [_cut_window(recording, window, stage, by_motion, bodies) for window in windows]
    cycles = [cycle for part in parts for cycle in part.cycles][skip:]
    if not cycles:
        raise ConfigError(f"{recording.source}: no complete cycle of stage '{stage}'")
    warnings = [line for part in parts for line in part.warnings]
    if not parts[0].periodic:
        cycles = _shortened(cycles)
    elif len(parts) > 1:
        regular_cycles = _of_one_period(cycles)
        if len(regular_cycles) < len(cycles):
            warnings.append(
                f"{recording.source}: {len(cycles) - len(regular_cycles)} of {len(cycles)} cycles "
                f"of '{stage}' left out, their period is another"
            )
        cycles = regular_cycles
    return replace(parts[0], cycles=tuple(cycles), warnings=tuple(dict.fromkeys(warnings)))


def cut_last(recording: Recording, stage: str, skip: int) -> CutStage:
    """Find the cycles of a stage as `cut`; where no more than `skip` are there, the last one."""
    every = cut(recording, stage)
    if len(every.cycles) > skip:
        return replace(every, cycles=tuple(every.cycles[skip:]))
    note = (
        f"{recording.source}: only {len(every.cycles)} of '{stage}': the motion may not have "
        "settled before the last, which is taken"
    )
    return replace(every, cycles=tuple(every.cycles[-1:]), warnings=(*every.warnings, note))


def cut_alike(
    recordings: Sequence[Recording],
    stage: str,
    skips: Sequence[int] | None = None,
    spans_s: Sequence[Sequence[tuple[float, float]]] | None = None,
) -> list[CutStage]:
    """Cycles of a stage in flights that are compared, found by the same of all; without `skips`.

    `spans_s` gives start and end of the cycles of each flight where they are known (`cut_at`).
    """
    skips = skips or [0] * len(recordings)
    spans_s = spans_s or [()] * len(recordings)
    every = list(zip(recordings, skips, spans_s, strict=True))
    free = [(recording, skip) for recording, skip, spans in every if not spans]
    if all(LOAD in recording.setpoints for recording, _ in free):
        cuts = iter([cut(recording, stage, skip) for recording, skip in free])
    else:
        cuts = iter(_cut_by_motion(free, stage))
    return [cut_at(recording, spans) if spans else next(cuts) for recording, _, spans in every]


def cut_at(recording: Recording, spans_s: Sequence[tuple[float, float]]) -> CutStage:
    """Take cycles of which start and end are given."""
    for start_s, end_s in spans_s:
        if not recording.start_s - 1e-9 <= start_s < end_s <= recording.end_s + 1e-9:
            raise ConfigError(
                f"{recording.source}: no cycle {start_s:g} to {end_s:g} s; the recording is from "
                f"{recording.start_s:g} to {recording.end_s:g} s"
            )
    cycles = _shortened([Cycle(*span) for span in spans_s])
    return CutStage(recording, tuple(cycles), periodic=False)


def of_one_length(cuts: Sequence[CutStage]) -> list[CutStage]:
    """Cut motions that do not repeat to the shortest cycle of all; others stay as they are."""
    if cuts[0].periodic:
        return list(cuts)
    length_s = min(one.period_s for one in cuts)
    return [replace(one, cycles=tuple(_shortened(one.cycles, length_s))) for one in cuts]


def _shortened(cycles: Sequence[Cycle], length_s: float | None = None) -> list[Cycle]:
    """Cycles of one length, by default that of the shortest."""
    if length_s is None:
        length_s = min(cycle.end_s - cycle.start_s for cycle in cycles)
    return [Cycle(cycle.start_s, cycle.start_s + length_s) for cycle in cycles]


def _of_one_period(cycles: Sequence[Cycle]) -> list[Cycle]:
    """The most cycles of nearly one length, made equally long by their starts."""
    lengths = np.array([cycle.end_s - cycle.start_s for cycle in cycles])
    near = np.abs(np.log(lengths[:, None] / lengths)) < _PERIODS_DIFFER
    neighbours = near[int(np.argmax(near.sum(axis=1)))]
    of_them = [cycle for cycle, mine in zip(cycles, neighbours, strict=True) if mine]
    return _shortened(of_them, float(np.median(lengths[neighbours])))


def stage_windows(recording: Recording, stage: str) -> list[RecordedStage]:
    """Parts of a flight that belong to a stage, "shm_2" to "shm", by any of its recorded names."""
    names = [s.name for s in recording.stages]
    if names in ([], [WHOLE_FLIGHT]):
        return [RecordedStage(WHOLE_FLIGHT, recording.start_s, recording.end_s)]
    kind = TRAJECTORIES.get(stage)
    for candidate in (stage, *(kind.recorded_as if kind else ())):
        matches = [s for s in recording.stages if candidate in (without_number(s.name), s.name)]
        if matches:
            return matches
    raise ConfigError(f"{recording.source}: no stage '{stage}'; it has {', '.join(names)}")


def _cut_window(
    recording: Recording,
    window: RecordedStage,
    stage: str,
    by_motion: bool,
    bodies: Sequence[str],
) -> CutStage:
    kind = trajectory_of_stage(stage) or trajectory_of_stage(without_number(stage))
    rule = kind.cycle_rule if kind else CycleRule.WHOLE
    if rule is CycleRule.WHOLE:
        if window.name == WHOLE_FLIGHT and stage != WHOLE_FLIGHT:
            cyclic_kinds = [
                n for n, k in TRAJECTORIES.items() if k.cycle_rule is not CycleRule.WHOLE
            ]
            raise ConfigError(
                f"{recording.source}: it names no stages, and cycles of '{stage}' cannot be "
                f"found by the motion, only those of {', '.join(cyclic_kinds[:-1])} and "
                f"{cyclic_kinds[-1]}"
            )
        return CutStage(recording, (Cycle(window.start_s, window.end_s),), periodic=False)
    if by_motion and rule is CycleRule.STEP_UP:
        rises = _rises(recording, window, bodies)
        return CutStage(recording, rises, periodic=False, by_motion=True)
    if by_motion:
        phase, part = _motion_phase(recording, window, stage, rule, bodies)
        return CutStage(recording, _whole_periods(phase, part), periodic=True, by_motion=True)
    changes = recording.setpoints[LOAD].changes()
    if rule is CycleRule.STEP_UP:
        return _cut_steps(recording, window, changes)
    inside = (changes.time_s >= window.start_s) & (changes.time_s < window.end_s)
    inside[0] = False  # since when the first one was held is not known
    name = f"{recording.source}: stage '{stage}'"
    rows_s = recording.time_s if recording.sampled_setpoints else None
    phase = _phase(rule, changes.part(inside), name, rows_s)
    warnings = []
    if phase.misfit_s > _MISFIT_WARNING * phase.period_s:
        warnings.append(f"{name}: set-points are {phase.misfit_s:.2f} s (rms) off an even motion")
    cycles = _whole_periods(phase, window)
    return CutStage(recording, cycles, periodic=True, warnings=tuple(warnings))


def _whole_periods(phase: EvenMotion, window: RecordedStage) -> tuple[Cycle, ...]:
    """Periods from phase zero to phase zero, all but a little of them in the window."""
    period_s = phase.period_s
    first = np.floor((window.start_s - phase.origin_s) / period_s)
    count = int(window.duration_s / period_s) + 3
    starts_s = phase.origin_s + period_s * np.arange(first, first + count)
    flown_s = np.minimum(starts_s + period_s, window.end_s) - np.maximum(starts_s, window.start_s)
    full_starts_s = starts_s[flown_s >= SMALLEST_SHARE * period_s]
    return tuple(Cycle(start_s, start_s + period_s) for start_s in full_starts_s.tolist())


def _cut_steps(recording: Recording, window: RecordedStage, changes: PoseTrack) -> CutStage:
    """Cut a recording at each step up of the set-point, to where it next moves vertically."""
    t = changes.time_s
    z = changes.position_enu_m[:, 2]
    inside = (t >= window.start_s - 1e-9) & (t < window.end_s)
    steps = 1 + np.flatnonzero(np.diff(z) > STEP_UP_M)
    starts = [int(k) for k in steps if inside[k]]
    warnings = []
    if not starts and window.name == WHOLE_FLIGHT and inside.any():
        starts = [int(np.flatnonzero(inside)[0])]
        warnings.append(
            f"{recording.source}: the step of the set-point is not in the recording; "
            f"taken at its start, {t[starts[0]]:g} s"
        )
    cycles = []
    for k in starts:
        later = np.flatnonzero((t > t[k]) & (np.abs(z - z[k]) > 1e-3))
        end_s = min(float(t[later[0]]) if len(later) else np.inf, window.end_s)
        if end_s > t[k]:
            cycles.append(Cycle(float(t[k]) - _log_delay_s(recording, t[k]), end_s))
    return CutStage(recording, tuple(cycles), periodic=False, warnings=tuple(warnings))


def _log_delay_s(recording: Recording, time_s: float) -> float:
    """Mean delay between a change and the first row of the log that shows it."""
    before = recording.time_s[recording.time_s < time_s - 1e-9]
    if not recording.sampled_setpoints or not len(before):
        return 0.0
    return 0.5 * float(time_s - before[-1])


# ---------- Phase of a periodic set-point from the values it was held at
#
# A set-point is sent a few times a second and held in between, so only its changes tell the time.
# Where it is logged row by row, a value was sent after the last row that does not show it yet, and
# less than one hold before the last row that shows it. So each value bounds the phase from both
# sides, and the phase that breaks the bounds least is in the middle of what they leave: no later
# than it was, neither at a high rate of logging nor where rows are further apart than the hold.

LARGEST_MISFIT = 0.1
"""Root-mean-square misfit, relative to radius or amplitude, up to which a motion is accepted."""
_MIN_CHANGES = 6
_STEEP = 0.85
"""Share of the amplitude up to which a value of a harmonic motion tells its time."""
_SHORTEST_HOLD_S = 1e-3


@dataclass(frozen=True)
class EvenMotion:
    """A motion that repeats evenly: phase 2 pi (t - origin_s) / period_s.

    Attributes:
        misfit_s: Root-mean-square distance of the set-points from it, as time along the motion.
    """

    origin_s: float
    period_s: float
    misfit_s: float


def _phase(rule: CycleRule, track: PoseTrack, name: str, rows_s: Array | None = None) -> EvenMotion:
    find = circle_phase if rule is CycleRule.ANGLE else oscillation_phase
    return find(track, name, rows_s)


def circle_phase(setpoint: PoseTrack, name: str, rows_s: Array | None = None) -> EvenMotion:
    """Phase of a horizontal circle: zero where the set-point is straight in +x of the centre.

    The name is for messages. `rows_s` are the times of all rows of a log in which set-points are
    sampled (T,); None where the set-points carry the times of their changes.
    """
    track = _changes(setpoint, name)
    x, y = track.position_enu_m[:, 0], track.position_enu_m[:, 1]
    a, b, radius = circle_through(x, y)
    off = np.sqrt(np.mean((np.hypot(x - a, y - b) - radius) ** 2))
    angle = np.unwrap(np.arctan2(y - b, x - a))
    t = track.time_s - track.time_s[0]
    rate, first = np.polyfit(t, angle, 1)
    misfit = np.sqrt(np.mean((angle - first - rate * t) ** 2))
    too_short = abs(angle[-1] - angle[0]) < 0.5 * np.pi
    if too_short or off > LARGEST_MISFIT * radius or misfit > LARGEST_MISFIT * 2.0 * np.pi:
        raise ConfigError(f"{name}: the load's set-points do not follow a circle at constant speed")
    origin_s = float(track.time_s[0] - first / rate)
    if rows_s is not None:
        origin_s, rate = _unbiased(angle, float(rate), origin_s, track.time_s, rows_s)
    return EvenMotion(origin_s, 2.0 * np.pi / abs(rate), misfit / abs(rate))


def oscillation_phase(setpoint: PoseTrack, name: str, rows_s: Array | None = None) -> EvenMotion:
    """Phase of a harmonic motion, as `circle_phase`: zero in the middle, along its `main_axis`."""
    # Half of the time that `import musls` takes otherwise.
    from scipy.signal import lombscargle

    track = _changes(setpoint, name)
    p = track.position_enu_m - track.position_enu_m.mean(axis=0)
    axis = main_axis(p)
    t = track.time_s - track.time_s[0]
    s = p @ axis
    fastest = np.pi / max(float(np.median(np.diff(t))), 1e-6)
    step = 0.2 / t[-1]
    rates = np.arange(0.5 * np.pi / t[-1], fastest, step)
    best = rates[int(np.argmax(lombscargle(t, s, rates, floating_mean=True)))]
    optimum = scipy.optimize.minimize_scalar(
        lambda rate: harmonic(rate, t, s)[1],
        bounds=(best - step, best + step),
        method="bounded",
        options={"xatol": 1e-9},
    )
    rate = float(optimum.x)
    (sine, cosine, middle), misfit = harmonic(rate, t, s)
    amplitude = np.hypot(sine, cosine)
    aside = np.sqrt(np.mean(np.sum((p - np.outer(s, axis)) ** 2, axis=1)))
    if max(misfit, aside) > LARGEST_MISFIT * amplitude or rate * t[-1] < np.pi:
        raise ConfigError(f"{name}: the load's set-points are no harmonic motion")
    origin_s = float(track.time_s[0] - np.arctan2(cosine, sine) / rate)
    if rows_s is not None:
        near = rate * (track.time_s - origin_s)
        angle = _angles((s - middle) / amplitude, near)
        origin_s, rate = _unbiased(angle, rate, origin_s, track.time_s, rows_s)
    return EvenMotion(origin_s, 2.0 * np.pi / rate, np.sqrt(2.0) * misfit / (amplitude * rate))


def circle_through(x: Array, y: Array) -> tuple[float, float, float]:
    """Centre and radius of a circle near points, by Kasa's fit: x^2 + y^2 = 2 a x + 2 b y + c."""
    A = np.column_stack([2.0 * x, 2.0 * y, np.ones_like(x)])
    (a, b, c), *_ = np.linalg.lstsq(A, x**2 + y**2, rcond=None)
    return float(a), float(b), float(np.sqrt(max(c + a**2 + b**2, 0.0)))


def main_axis(centred: Array) -> Array:
    """Line along which points lie (T, 3), towards the side where its largest component is > 0."""
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    return axis * np.sign(axis[np.argmax(np.abs(axis))])


def harmonic(rate: float, t: Array, s: Array) -> tuple[Array, float]:
    """Fit s = A sin(rate t) + B cos(rate t) + C: (A, B, C) and the root-mean-square misfit."""
    A = np.column_stack([np.sin(rate * t), np.cos(rate * t), np.ones_like(t)])
    factors, *_ = np.linalg.lstsq(A, s, rcond=None)
    return factors, float(np.sqrt(np.mean((A @ factors - s) ** 2)))


def _angles(sine: Array, near: Array) -> Array:
    """Angles of sines that lie next to given ones; NaN near the turning points."""
    steep = np.abs(sine) < _STEEP
    rising = np.arcsin(np.where(steep, sine, 0.0))
    angle = np.where(np.cos(near) > 0.0, rising, np.pi - rising)
    return np.where(steep, rotations.near(angle, near), np.nan)


def _unbiased(
    angle: Array, rate: float, origin_s: float, seen_s: Array, rows_s: Array
) -> tuple[float, float]:
    """Origin [s] and rate [rad/s] of an even motion from when its values can have been sent.

    Unwrapped phase of each value, NaN where unknown (k,); the first row that shows it (k,); all
    rows (T,). The given rate and origin are rough.
    """
    after = np.searchsorted(rows_s, seen_s - 1e-9)  # rows before
    # Last row that shows it; how long the last one is shown, in the next stage, says nothing.
    until = np.append(after[1:] - 1, after[-1:])
    keep = np.isfinite(angle) & (after > 0) & (after < len(rows_s)) & (until >= after)
    low, high = rows_s[after[keep] - 1], rows_s[after[keep]]
    angle = angle[keep]
    last = rows_s[until[keep]]
    steps = np.abs(np.diff(angle) / rate)
    steps = steps[steps > _SHORTEST_HOLD_S]
    if len(steps) < _MIN_CHANGES:
        return origin_s, rate
    hold_s = float(np.quantile(steps, 0.05))
    gap = high - low
    low = np.maximum(low, last - hold_s)
    # The middles of the bounds have errors without a bias, early and late alike; those after a
    # drop-out may be large.
    weight = np.median(gap) / np.maximum(gap, np.median(gap))
    rate = float(1.0 / np.polyfit(angle, 0.5 * (low + high), 1, w=weight)[0])
    # The sum of all violations of low < origin + angle / rate < high is least at the median.
    ends = np.concatenate([low, high]) - np.tile(angle / rate, 2)
    return float(np.median(ends)), rate


def _changes(setpoint: PoseTrack, name: str) -> PoseTrack:
    track = setpoint.changes()
    if len(track.time_s) < _MIN_CHANGES:
        raise ConfigError(f"{name}: the load's set-point changes fewer than {_MIN_CHANGES} times")
    return track


# ---------- Cycles from the motion of the drones, for recordings without set-points
#
# A bag of a real flight often holds TF only: no set-points, no stages. Then the motion of the
# drones' centroid tells where a circle or an oscillation was flown, and its phase. The load is not
# used: near the resonance of a swing it moves against the drones, by an angle that the model has to
# predict.

SAMPLE_S = 0.2
"""Positions are looked at so often; motions of a load are slower."""
SMALLEST_EXTENT_M = 0.1
"""Radius or amplitude below which a motion counts as hovering."""
LARGEST_MOTION_MISFIT = 0.02
"""Share of the period by which a motion may be off an even one (rms)."""
RISE_M = 0.2
"""The drones rise by more than this in an engagement..."""
RISE_S = 3.0
"""Longest time of the drones' rise in an engagement."""
_HALVINGS = 5
"""The shortest window that is tried is the recording halved so many times."""
_SHORTEST_S = 4.0
_MOVING = 0.9
"""Share of the samples that must differ from the one before."""
_MIN_PERIODS = {CycleRule.ANGLE: 0.9, CycleRule.OSCILLATION: 1.8}
"""Less may be any slow motion."""
_TRIM_S = 0.6
_TRIM_GAIN = 0.95
"""Step by which the ends are trimmed, and the ratio of misfits below which a trim is kept."""

ROUNDING_S = 1e-6
"""Files hold times to as many digits."""

_Fit = Callable[[int, int], EvenMotion | None]
"""Phase of the motion between two samples, None if it is another motion or a hover."""


class NoSuchMotionError(ConfigError):
    """The bodies move otherwise than a stage does."""


def _moving(recordings: Sequence[Recording]) -> list[str]:
    """Drones of all recordings, or what else they have in common; the load is the last resort."""
    first, *others = recordings
    common = [name for name in first.bodies if all(name in other.bodies for other in others)]
    return [name for name in common if name.startswith("drone_")] or common


def _centroid(
    recording: Recording, bodies: Sequence[str], time_s: Array | None = None, zero_s: float = 0.0
) -> PoseTrack:
    """Mean position of bodies at some times, or every `SAMPLE_S` from `zero_s` either way (T,).

    It is NaN where they are not recorded.
    """
    tracks = [recording.bodies[name] for name in bodies]
    start_s = max(float(track.time_s[0]) for track in tracks)
    end_s = min(float(track.time_s[-1]) for track in tracks)
    if time_s is None:
        first = np.ceil((start_s - zero_s) / SAMPLE_S - 1e-6)
        time_s = zero_s + SAMPLE_S * np.arange(first, (end_s - zero_s) / SAMPLE_S)
    inside_s = np.clip(time_s, start_s, end_s)
    position = np.mean(
        [interpolated(inside_s, track.time_s, track.position_enu_m) for track in tracks], axis=0
    )
    position[(time_s < start_s - ROUNDING_S) | (time_s > end_s + ROUNDING_S)] = np.nan
    return PoseTrack(time_s, position, np.tile([1.0, 0.0, 0.0, 0.0], (len(time_s), 1)))


def _motion_phase(
    recording: Recording,
    window: RecordedStage,
    stage: str,
    rule: CycleRule,
    bodies: Sequence[str],
) -> tuple[EvenMotion, RecordedStage]:
    """Phase of the longest part of a window in which the drones move as the rule says; the part."""
    track = _centroid(recording, bodies, zero_s=window.start_s)
    inside = (track.time_s >= window.start_s - 1e-9) & (track.time_s <= window.end_s + 1e-9)
    track = track.part(inside)
    count = len(track.time_s)

    def fit(first: int, last: int) -> EvenMotion | None:
        part = track.part(slice(first, last))
        spread = part.position_enu_m - part.position_enu_m.mean(axis=0)
        hovers = np.sqrt(2.0 * np.mean(np.sum(spread**2, axis=1))) < SMALLEST_EXTENT_M
        # Phases are fitted to changes, so a part in which nothing moves at all would not count.
        if hovers or len(part.changes().time_s) < _MOVING * len(part.time_s):
            return None
        try:
            phase = _phase(rule, part, "")
        except ConfigError:
            return None
        even = phase.misfit_s < LARGEST_MOTION_MISFIT * phase.period_s
        shortest_s = _MIN_PERIODS[rule] * phase.period_s
        return phase if even and part.time_s[-1] - part.time_s[0] > shortest_s else None

    for first, last in _windows(count):
        if fit(first, last) is not None:
            first, last = _shrunk(fit, *_grown(fit, first, last, count))
            phase = fit(first, last)
            assert phase is not None
            start_s, end_s = (float(track.time_s[k]) for k in (first, last - 1))
            return phase, RecordedStage(window.name, start_s, end_s)
    raise NoSuchMotionError(
        f"{recording.source}: no set-points of the load, and the drones fly nothing like "
        f"'{stage}'; give the times of a cycle with --real-cycle or --sim-cycle START:END"
    )


def _windows(count: int) -> Iterator[tuple[int, int]]:
    """First sample and the one after the last, long windows first."""
    length = count
    for _ in range(_HALVINGS + 1):
        if length < int(_SHORTEST_S / SAMPLE_S):
            return
        step = max(length // 4, 1)
        yield from ((first, first + length) for first in range(0, count - length + 1, step))
        length //= 2


def _grown(fit: _Fit, first: int, last: int, count: int) -> tuple[int, int]:
    """Move both ends outwards while what they add continues the motion."""
    step = max((last - first) // 8, 1)
    while step:
        while first >= step and fit(first - step, last) is not None:
            first -= step
        while last + step <= count and fit(first, last + step) is not None:
            last += step
        step //= 2
    return first, last


def _shrunk(fit: _Fit, first: int, last: int) -> tuple[int, int]:
    """Leave out other motions at both ends: without them the rest fits much better."""
    step = round(_TRIM_S / SAMPLE_S)
    now = fit(first, last)
    while now is not None:
        ends = [(first + step, last), (first, last - step)]
        misfits = [(phase.misfit_s, k) for k, end in enumerate(ends) if (phase := fit(*end))]
        if not misfits or min(misfits)[0] > _TRIM_GAIN * now.misfit_s:
            break
        first, last = ends[min(misfits)[1]]
        now = fit(first, last)
    return first, last


def _rises(recording: Recording, window: RecordedStage, bodies: Sequence[str]) -> tuple[Cycle, ...]:
    """Spans from where the drones rise quickly to where they come down, as in an engagement [s].

    Both ends are taken half-way, in height. Take-offs from the lowest height of the recording do
    not count where there are other rises.
    """
    track = _centroid(recording, bodies, zero_s=window.start_s)
    t = track.time_s
    z = track.position_enu_m[:, 2]
    ahead = int(RISE_S / SAMPLE_S)
    rises: list[tuple[float, float, float]] = []
    k = int(np.searchsorted(t, window.start_s - 1e-9))
    while k + ahead < len(t) and t[k] < window.end_s:
        if z[k + ahead] - z[k] < RISE_M:
            k += 1
            continue
        low = float(z[k])
        top = float(z[k : k + 2 * ahead].max())
        middle = 0.5 * (low + top)
        up = k + int(np.argmax(z[k:] > middle))
        below = np.flatnonzero(z[up:] < middle)
        end_s = _crossing_s(t, z, up + int(below[0]), middle) if len(below) else float(t[-1])
        start_s = _crossing_s(t, z, up, middle)
        if start_s < min(end_s, window.end_s):
            rises.append((start_s, min(end_s, window.end_s), low))
        k = up + 1 + int(np.argmax(z[up:] > top - 0.1 * (top - low)))
    ground = float(z.min())
    above_ground = [rise for rise in rises if rise[2] > ground + RISE_M]
    return tuple(Cycle(start_s, end_s) for start_s, end_s, _ in above_ground or rises)


def _crossing_s(t: Array, z: Array, after: int, height_m: float) -> float:
    """Time at which a height was crossed between a sample and the one before."""
    share = (height_m - z[after - 1]) / (z[after] - z[after - 1])
    return float(t[after - 1] + share * (t[after] - t[after - 1]))


# ---------- Windows of one flight in another that names no stages

LIKE = 0.5
"""Share of a motion's extent by which another one may be off it (rms) to count as the same."""


@dataclass(frozen=True)
class _Place:
    """A window of a flight, and how much later the same is in another."""

    window: RecordedStage
    shift_s: float

    @property
    def there(self) -> RecordedStage:
        """The window in the other flight."""
        window = self.window
        shift_s = self.shift_s
        return replace(window, start_s=window.start_s + shift_s, end_s=window.end_s + shift_s)


def _cut_by_motion(flights: Sequence[tuple[Recording, int]], stage: str) -> list[CutStage]:
    """Cut recordings, without so many first cycles of each, by the motion that all of them have."""
    recordings = [recording for recording, _ in flights]
    bodies = _moving(recordings)
    naming = [one for one in recordings if _names_stages(one)]
    model = next((one for one in naming if LOAD in one.setpoints), (*naming, None)[0])

    def places_in(recording: Recording) -> list[_Place]:
        if model is None:
            return []
        windows = stage_windows(model, stage)
        places = [_placed(model, window, recording, bodies) for window in windows]
        return [place for place in places if place is not None]

    cuts = []
    try:
        for one, skip in flights:
            windows = [] if _names_stages(one) else [place.there for place in places_in(one)]
            cuts.append(cut(one, stage, skip, by_motion=True, windows=windows, bodies=bodies))
    except NoSuchMotionError:
        if model is None or LOAD not in model.setpoints:
            raise
        places = [places_in(one) for one in recordings]
        if not all(places):
            raise
        model_cut = cut(model, stage)
        return [
            _moved(model_cut, *flight, its) for flight, its in zip(flights, places, strict=True)
        ]
    return cuts


def _moved(
    model_cut: CutStage, recording: Recording, skip: int, places: Sequence[_Place]
) -> CutStage:
    """Cycles that are known in another flight."""
    cycles = []
    for cycle in model_cut.cycles:
        middle_s = 0.5 * (cycle.start_s + cycle.end_s)
        for place in places:
            if place.window.start_s <= middle_s < place.window.end_s:
                start_s = cycle.start_s + place.shift_s
                end_s = cycle.end_s + place.shift_s
                cycles.append(Cycle(start_s, end_s))
    if not cycles[skip:]:
        raise ConfigError(f"{recording.source}: only {len(cycles)} cycles found, {skip} left out")
    return replace(model_cut, recording=recording, cycles=tuple(cycles[skip:]), by_motion=True)


def _names_stages(recording: Recording) -> bool:
    return [s.name for s in recording.stages] not in ([], [WHOLE_FLIGHT])


def _placed(
    model: Recording, window: RecordedStage, recording: Recording, bodies: Sequence[str]
) -> _Place | None:
    """Find the part of a recording that moves most like a window of another one, or None."""
    if recording is model:
        return _Place(window, 0.0)
    steps_s = np.arange(window.start_s, window.end_s, SAMPLE_S)
    model_path_m = _centroid(model, bodies, steps_s).position_enu_m
    centroid = _centroid(recording, bodies, zero_s=recording.start_s)
    count = len(model_path_m)
    spare = int((1.0 - SMALLEST_SHARE) * len(model_path_m))
    place = np.pad(centroid.position_enu_m, ((spare, spare), (0, 0)), constant_values=np.nan)
    lags = range(len(place) - count + 1)
    if not (count and lags):
        return None
    off = [_apart_m(place[k : k + count], model_path_m) for k in lags]
    rough_s = float(centroid.time_s[0] + SAMPLE_S * (int(np.argmin(off)) - spare) - window.start_s)
    times_s = model.bodies[bodies[0]].time_s
    times_s = times_s[(times_s >= window.start_s) & (times_s < window.end_s)]
    if not len(times_s):
        return None
    path = _centroid(model, bodies, times_s).position_enu_m

    def off_m(shift_s: float) -> float:
        flown_m = _centroid(recording, bodies, times_s + shift_s).position_enu_m
        return min(_apart_m(flown_m, path), _FAR_M)  # no infinity, which the search warns of

    near_s = rough_s + np.arange(-SAMPLE_S, SAMPLE_S, _FINE_S)
    best_s = float(min(near_s, key=off_m))
    optimum = scipy.optimize.minimize_scalar(
        off_m,
        bounds=(best_s - _FINE_S, best_s + _FINE_S),
        method="bounded",
        options={"xatol": 1e-7},
    )
    # The clocks may be one; where nothing moves, any shift is as good.
    shift_s = next(
        s for s in (0.0, best_s, float(optimum.x)) if off_m(s) <= optimum.fun + ROUNDING_M
    )
    extent_m = np.sqrt(np.nanmean(np.sum((path - np.nanmean(path, axis=0)) ** 2, axis=1)))
    like = off_m(shift_s) <= max(SMALLEST_EXTENT_M, LIKE * extent_m)
    return _Place(window, shift_s) if like else None


_FAR_M = 1e9
ROUNDING_M = 1e-5
"""Files hold places to as many digits."""
_FINE_S = 0.02
"""Shifts are tried so far apart before the best is found between two of them."""


def _apart_m(one: Array, other: Array) -> float:
    """Distance of two paths at the same times (rms); infinite where one of them lacks too much."""
    squares = np.sum((one - other) ** 2, axis=1)
    finite = np.isfinite(squares)
    if finite.mean() < SMALLEST_SHARE:
        return np.inf
    return float(np.sqrt(squares[finite].mean()))
