"""Finds the cycles of a stage in what was flown, for recordings that hold no set-points.

A bag of a real flight often holds TF only: no set-points, no stages. Then the motion of the drones'
centroid tells where a circle or an oscillation was flown, and its phase. The load is not used: near
the resonance of a swing it moves against the drones, by an angle that the model has to predict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from musls_analysis.comparison.setpoint_phase import Phase, circle_phase, oscillation_phase
from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording, Stage
from musls_control.trajectories import CycleRule
from musls_description.errors import ConfigError

SAMPLE_S = 0.2
"""Positions are looked at so often; motions of a load are slower."""
SMALLEST_EXTENT_M = 0.1
"""Radius or amplitude below which a motion counts as hovering."""
LARGEST_MOTION_MISFIT = 0.02
"""Share of the period by which a motion may be off an even one (rms)."""
RISE_M = 0.2
"""The drones rise by more than this in an engagement..."""
RISE_S = 3.0
"""... within this time."""
_HALVINGS = 5
"""The shortest window that is tried is the recording halved so many times."""
_SHORTEST_S = 4.0
_MOVING = 0.9
"""Share of the samples that must differ from the one before."""
_TRIM_S, _MUCH_BETTER = 0.6, 0.95
"""Of the ends, so much is left out at once if the misfit falls below this share."""
_FINDERS: dict[CycleRule, tuple[Callable[[PoseTrack, str], Phase], float]] = {
    CycleRule.ANGLE: (circle_phase, 0.9),
    CycleRule.OSCILLATION: (oscillation_phase, 1.8),
}
"""How to find the phase, and least number of periods: less may be any slow motion."""


def centroid(recording: Recording) -> PoseTrack:
    """Mean position of the drones, or the load's without drones, every `SAMPLE_S` (T,)."""
    names = [name for name in recording.bodies if name.startswith("drone_")] or [LOAD]
    tracks = [recording.bodies[name] for name in names]
    start_s = max(float(track.time_s[0]) for track in tracks)
    end_s = min(float(track.time_s[-1]) for track in tracks)
    time_s = np.arange(start_s, end_s, SAMPLE_S)
    position = np.mean([_positions(track, time_s) for track in tracks], axis=0)
    return PoseTrack(time_s, position, np.tile([1.0, 0.0, 0.0, 0.0], (len(time_s), 1)))


def _positions(track: PoseTrack, time_s: np.ndarray) -> np.ndarray:
    columns = [np.interp(time_s, track.time_s, column) for column in track.position_enu_m.T]
    return np.column_stack(columns)


def motion_phase(
    recording: Recording, window: Stage, stage: str, rule: CycleRule
) -> tuple[Phase, Stage]:
    """Find the longest part of a window in which the drones move as the rule says, and its phase.

    Args:
        recording: A flight.
        window: Where to look.
        stage: Name of the stage, for messages.
        rule: A circle or an oscillation.

    Returns:
        Phase of the motion, and the part of the window in which it was flown.

    Raises:
        ConfigError: There is no such part.
    """
    track = centroid(recording)
    inside = (track.time_s >= window.start_s - 1e-9) & (track.time_s <= window.end_s + 1e-9)
    track = _part(track, inside)
    fit = partial(_fit, *_FINDERS[rule], track)
    for first, last in _windows(len(track.time_s)):
        if fit(first, last) is not None:
            first, last = _shrunk(fit, *_grown(fit, first, last, len(track.time_s)))
            phase = fit(first, last)
            assert phase is not None
            return phase, Stage(window.name, *(float(track.time_s[k]) for k in (first, last - 1)))
    raise ConfigError(
        f"{recording.source}: no set-points of the load, and the drones fly nothing like "
        f"'{stage}'; give the times of a cycle with --real-cycle or --sim-cycle START:END"
    )


def _windows(count: int) -> Iterator[tuple[int, int]]:
    """First sample and the one after the last, long windows first."""
    shortest = int(_SHORTEST_S / SAMPLE_S)
    length = count
    for _ in range(_HALVINGS + 1):
        if length < shortest:
            return
        step = max(length // 4, 1)
        yield from ((first, first + length) for first in range(0, count - length + 1, step))
        length //= 2


def _fit(
    find: Callable[[PoseTrack, str], Phase],
    periods: float,
    track: PoseTrack,
    first: int,
    last: int,
) -> Phase | None:
    """Phase of the motion between two samples, None if it is another motion or a hover."""
    part = _part(track, slice(first, last))
    spread = part.position_enu_m - part.position_enu_m.mean(axis=0)
    hovers = np.sqrt(2.0 * np.mean(np.sum(spread**2, axis=1))) < SMALLEST_EXTENT_M
    # Phases are fitted to changes, so a part in which nothing moves at all would not count.
    if hovers or len(part.changes().time_s) < _MOVING * len(part.time_s):
        return None
    try:
        phase = find(part, "")
    except ConfigError:
        return None
    even = phase.misfit_s < LARGEST_MOTION_MISFIT * phase.period_s
    long_enough = part.time_s[-1] - part.time_s[0] > periods * phase.period_s
    return phase if even and long_enough else None


def _grown(
    fit: Callable[[int, int], Phase | None], first: int, last: int, count: int
) -> tuple[int, int]:
    """Move both ends outwards while what they add continues the motion."""
    step = max((last - first) // 8, 1)
    while step:
        while first >= step and fit(first - step, last) is not None:
            first -= step
        while last + step <= count and fit(first, last + step) is not None:
            last += step
        step //= 2
    return first, last


def _shrunk(fit: Callable[[int, int], Phase | None], first: int, last: int) -> tuple[int, int]:
    """Leave out other motions at both ends: without them the rest fits much better."""
    step = round(_TRIM_S / SAMPLE_S)
    now = fit(first, last)
    while now is not None:
        ends = [(first + step, last), (first, last - step)]
        found = [(phase.misfit_s, k) for k, end in enumerate(ends) if (phase := fit(*end))]
        if not found or min(found)[0] > _MUCH_BETTER * now.misfit_s:
            break
        first, last = ends[min(found)[1]]
        now = fit(first, last)
    return first, last


def rises(recording: Recording, window: Stage) -> list[tuple[float, float]]:
    """Find where the drones rise quickly and until when they stay up, as in an engagement [s].

    Both ends are taken half-way, in height. Take-offs from the lowest height of the recording do
    not count where there are other rises.

    Args:
        recording: A flight.
        window: Where to look.
    """
    track = centroid(recording)
    t, z = track.time_s, track.position_enu_m[:, 2]
    ahead = int(RISE_S / SAMPLE_S)
    found: list[tuple[float, float, float]] = []
    k = int(np.searchsorted(t, window.start_s - 1e-9))
    while k + ahead < len(t) and t[k] < window.end_s:
        if z[k + ahead] - z[k] < RISE_M:
            k += 1
            continue
        part = slice(k, k + 2 * ahead)
        low, top = float(z[k]), float(z[part].max())
        middle = 0.5 * (low + top)
        up = k + int(np.argmax(z[k:] > middle))
        below = np.flatnonzero(z[up:] < middle)
        down = up + int(below[0]) if len(below) else len(t)
        end_s = float(_crossing(t, z, down, middle)) if down < len(t) else float(t[-1])
        found.append((float(_crossing(t, z, up, middle)), min(end_s, window.end_s), low))
        k = up + 1 + int(np.argmax(z[up:] > top - 0.1 * (top - low)))
    ground = float(z.min())
    flown = [(a, b) for a, b, low in found if low > ground + RISE_M]
    return flown or [(a, b) for a, b, _ in found]


def _crossing(t: np.ndarray, z: np.ndarray, after: int, height_m: float) -> float:
    """Time at which a height was crossed between a sample and the one before."""
    share = (height_m - z[after - 1]) / (z[after] - z[after - 1])
    return float(t[after - 1] + share * (t[after] - t[after - 1]))


def _part(track: PoseTrack, which: np.ndarray | slice) -> PoseTrack:
    return PoseTrack(
        track.time_s[which], track.position_enu_m[which], track.orientation_wxyz[which]
    )
