"""Cuts flights into the cycles of a stage, so that repetitions and runs can be laid on one another.

The load's set-point decides, by the rule that the stage's kind of trajectory declares (its
`CycleRule`): at the angle of a circle, where a harmonic motion passes its middle, at a step up.
Without a rule for it a stage is one cycle. Where there are no set-points, the motion of the drones
decides by the same rules (`motion_phase`); flights that are compared are cut by the same of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from musls_analysis.comparison.motion_phase import motion_phase, rises
from musls_analysis.comparison.setpoint_phase import Phase, circle_phase, oscillation_phase
from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording, Stage
from musls_control.trajectories import TRAJECTORIES, CycleRule, trajectory_of_stage
from musls_description.errors import ConfigError

SMALLEST_SHARE = 0.9
"""A cycle counts if at least this share of it was flown in the stage."""
STEP_UP_M = 0.2
"""A set-point that rises by more at once steps up; ramps rise by less between two rows."""
WHOLE_FLIGHT = "flight"
"""Name of the one stage of a recording that names none."""
_PHASES = {CycleRule.ANGLE: circle_phase, CycleRule.OSCILLATION: oscillation_phase}
_PERIODS_DIFFER = 0.02
"""Share by which the periods of two windows of one stage may differ."""
_MISFIT_WARNING = 0.02
"""Share of the period by which set-points may be off the fitted phase."""


@dataclass(frozen=True)
class Cycle:
    """One repetition.

    Attributes:
        start_s: Time of phase 0.
        end_s: Time of phase 1.
    """

    start_s: float
    end_s: float


@dataclass(frozen=True)
class CutStage:
    """The cycles of one stage in one recording.

    Attributes:
        recording: Where they are.
        cycles: In time order, of one length.
        periodic: Whether the motion goes on over the end of a cycle as at its start.
        warnings: What is doubtful.
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


def without_setpoints(recordings: Sequence[Recording]) -> bool:
    """Whether one of them does not know the set-points of its load."""
    return any(LOAD not in recording.setpoints for recording in recordings)


def cut(
    recording: Recording, stage: str, skip: int = 0, *, by_motion: bool | None = None
) -> CutStage:
    """Find the cycles of a stage.

    Args:
        recording: A flight.
        stage: "circle", "shm", "engage" or the name of another stage; in a recording without
            stages it says what the whole of it is.
        skip: First cycles to leave out, while the motion settles.
        by_motion: Cut by the motion of the drones, not by the set-points; None where there are
            no set-points. Flights that are compared must be cut alike.

    Raises:
        ConfigError: The stage is not in the recording, its set-points do not do what its name
            says, or no cycle is complete.
    """
    windows = stage_windows(recording, stage)
    moved = without_setpoints([recording]) if by_motion is None else by_motion
    parts = [_cut_window(recording, window, stage, moved) for window in windows]
    cycles = [cycle for part in parts for cycle in part.cycles][skip:]
    if not cycles:
        raise ConfigError(f"{recording.source}: no complete cycle of stage '{stage}'")
    warnings = [line for part in parts for line in part.warnings]
    if not parts[0].periodic:
        cycles = _as_short_as_the_shortest(cycles)
    elif len(parts) > 1:
        kept = _of_one_period(cycles)
        if len(kept) < len(cycles):
            warnings.append(
                f"{recording.source}: {len(cycles) - len(kept)} of {len(cycles)} cycles of "
                f"'{stage}' left out, their period is another"
            )
        cycles = kept
    return replace(parts[0], cycles=tuple(cycles), warnings=tuple(dict.fromkeys(warnings)))


def cut_last(recording: Recording, stage: str, skip: int) -> CutStage:
    """Find the cycles of a stage as `cut` does; where no more than `skip` are there, the last one.

    Args:
        recording: A flight.
        stage: See `cut`.
        skip: First cycles to leave out, if others are left.

    Raises:
        ConfigError: See `cut`.
    """
    every = cut(recording, stage)
    if len(every.cycles) > skip:
        return replace(every, cycles=tuple(every.cycles[skip:]))
    note = (
        f"{recording.source}: only {len(every.cycles)} of '{stage}': the motion may not have "
        "settled before the last, which is taken"
    )
    return replace(every, cycles=tuple(every.cycles[-1:]), warnings=(*every.warnings, note))


def cut_alike(
    recordings: Sequence[Recording], stage: str, skips: Sequence[int] | None = None
) -> list[CutStage]:
    """Find the cycles of a stage in flights that are to be compared, by the same of all.

    Args:
        recordings: Flights.
        stage: See `cut`.
        skips: First cycles to leave out of each.

    Raises:
        ConfigError: See `cut`.
    """
    moved = without_setpoints(recordings)
    return [
        cut(recording, stage, skip, by_motion=moved)
        for recording, skip in zip(recordings, skips or [0] * len(recordings), strict=True)
    ]


def cut_at(recording: Recording, spans_s: Sequence[tuple[float, float]]) -> CutStage:
    """Take cycles whose times are given.

    Args:
        recording: A flight.
        spans_s: Start and end of each cycle.

    Raises:
        ConfigError: A cycle ends before it starts or lies outside the recording.
    """
    for start_s, end_s in spans_s:
        if not recording.start_s - 1e-9 <= start_s < end_s <= recording.end_s + 1e-9:
            raise ConfigError(
                f"{recording.source}: no cycle {start_s:g} to {end_s:g} s; the recording is from "
                f"{recording.start_s:g} to {recording.end_s:g} s"
            )
    cycles = _as_short_as_the_shortest([Cycle(*span) for span in spans_s])
    return CutStage(recording, tuple(cycles), periodic=False)


def _of_one_period(cycles: Sequence[Cycle]) -> list[Cycle]:
    """The most cycles of nearly one length, made equally long by their starts."""
    lengths = np.array([cycle.end_s - cycle.start_s for cycle in cycles])
    near = np.abs(np.log(lengths[:, None] / lengths)) < _PERIODS_DIFFER
    chosen = near[int(np.argmax(near.sum(axis=1)))]
    length_s = float(np.median(lengths[chosen]))
    return [
        Cycle(cycle.start_s, cycle.start_s + length_s)
        for cycle, mine in zip(cycles, chosen, strict=True)
        if mine
    ]


def of_one_length(cuts: Sequence[CutStage]) -> list[CutStage]:
    """Cut what does not repeat to the shortest cycle of all; what repeats stays as it is."""
    if cuts[0].periodic:
        return list(cuts)
    length_s = min(one.period_s for one in cuts)
    return [
        replace(one, cycles=tuple(Cycle(c.start_s, c.start_s + length_s) for c in one.cycles))
        for one in cuts
    ]


def _as_short_as_the_shortest(cycles: Sequence[Cycle]) -> list[Cycle]:
    length_s = min(cycle.end_s - cycle.start_s for cycle in cycles)
    return [Cycle(cycle.start_s, cycle.start_s + length_s) for cycle in cycles]


def stage_windows(recording: Recording, stage: str) -> list[Stage]:
    """Parts of a flight that belong to a stage, "shm_2" to "shm", by any of its recorded names.

    Raises:
        ConfigError: There is none; the message lists the stages.
    """
    names = [s.name for s in recording.stages]
    if names in ([], [WHOLE_FLIGHT]):
        return [Stage(WHOLE_FLIGHT, recording.start_s, recording.end_s)]
    kind = TRAJECTORIES.get(stage)
    for wanted in (stage, *(kind.recorded_as if kind else ())):
        found = [s for s in recording.stages if _base(s.name) == wanted or s.name == wanted]
        if found:
            return found
    raise ConfigError(f"{recording.source}: no stage '{stage}'; it has {', '.join(names)}")


def _base(name: str) -> str:
    head, _, tail = name.rpartition("_")
    return head if head and tail.isdigit() else name


def _cycle_rule(stage: str) -> CycleRule:
    """How a stage is cut, "shm" and "shm_2" alike."""
    kind = trajectory_of_stage(stage) or trajectory_of_stage(_base(stage))
    return kind.cycle_rule if kind else CycleRule.WHOLE


def _cut_window(recording: Recording, window: Stage, stage: str, by_motion: bool) -> CutStage:
    rule = _cycle_rule(stage)
    if rule is CycleRule.WHOLE:
        if window.name == WHOLE_FLIGHT and stage != WHOLE_FLIGHT:
            known = [n for n, k in TRAJECTORIES.items() if k.cycle_rule is not CycleRule.WHOLE]
            raise ConfigError(
                f"{recording.source}: it names no stages, and cycles of '{stage}' cannot be "
                f"found by the motion, only those of {', '.join(known[:-1])} and {known[-1]}"
            )
        return CutStage(recording, (Cycle(window.start_s, window.end_s),), periodic=False)
    if by_motion:
        return _cut_by_motion(recording, window, stage, rule)
    setpoint = recording.setpoints[LOAD]
    if rule is CycleRule.STEP_UP:
        return _cut_steps(recording, window, setpoint)
    held = setpoint.changes()
    inside = (held.time_s >= window.start_s) & (held.time_s < window.end_s)
    inside[0] = False  # since when the first one was held is not known
    part = PoseTrack(
        held.time_s[inside], held.position_enu_m[inside], held.orientation_wxyz[inside]
    )
    name = f"{recording.source}: stage '{stage}'"
    rows_s = recording.time_s if recording.sampled_setpoints else None
    phase = _PHASES[rule](part, name, rows_s)
    warnings = []
    if phase.misfit_s > _MISFIT_WARNING * phase.period_s:
        warnings.append(f"{name}: set-points are {phase.misfit_s:.2f} s (rms) off an even motion")
    cycles = _whole_periods(phase, window)
    return CutStage(recording, cycles, periodic=True, warnings=tuple(warnings))


def _cut_by_motion(recording: Recording, window: Stage, stage: str, rule: CycleRule) -> CutStage:
    """The cycles of a window, by the motion of the drones."""
    if rule is CycleRule.STEP_UP:
        cycles = tuple(Cycle(*span) for span in rises(recording, window))
        return CutStage(recording, cycles, periodic=False, by_motion=True)
    phase, flown = motion_phase(recording, window, stage, rule)
    return CutStage(recording, _whole_periods(phase, flown), periodic=True, by_motion=True)


def _whole_periods(phase: Phase, window: Stage) -> tuple[Cycle, ...]:
    """Periods from phase zero to phase zero, all but a little of them in the window."""
    margin = (1.0 - SMALLEST_SHARE) * phase.period_s
    first = int(np.ceil((window.start_s - margin - phase.origin_s) / phase.period_s))
    cycles = []
    for k in range(first, first + 1 + int((window.duration_s + 2 * margin) / phase.period_s)):
        start_s = float(phase.origin_s + k * phase.period_s)
        end_s = start_s + phase.period_s
        flown = min(end_s, window.end_s) - max(start_s, window.start_s)
        if flown >= SMALLEST_SHARE * phase.period_s:
            cycles.append(Cycle(start_s, float(end_s)))
    return tuple(cycles)


def _seen_late_s(recording: Recording, time_s: float) -> float:
    """How much later than it came, on average, a change is seen at a row of the log."""
    before = recording.time_s[recording.time_s < time_s - 1e-9]
    if not recording.sampled_setpoints or not len(before):
        return 0.0
    return 0.5 * float(time_s - before[-1])


def _cut_steps(recording: Recording, window: Stage, setpoint: PoseTrack) -> CutStage:
    """From each step up to where the set-point moves on vertically."""
    held = setpoint.changes()
    t, z = held.time_s, held.position_enu_m[:, 2]
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
            cycles.append(Cycle(float(t[k]) - _seen_late_s(recording, t[k]), end_s))
    return CutStage(recording, tuple(cycles), periodic=False, warnings=tuple(warnings))
