"""Flights of the seed paper's kinds (Merton et al.): its own numbers, recordings, missions.

A recording says itself what was flown: radius and speed of its circle, amplitude and rate of its
swings, heights and times of its engagements, places of its drones. Where that differs from scenario
`paper` the simulated flight takes it from the recording.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.compare import StageComparison
from musls_analysis.comparison.cycles import (
    CutStage,
    Cycle,
    circle_through,
    cut,
    cut_last,
    harmonic,
    main_axis,
)
from musls_analysis.recordings.readers import ReadOptions, read_recording
from musls_analysis.recordings.recording import LOAD, PoseTrack, in_order
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_data
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, rotate, yaw_of
from musls_sim.scenario.scenario import Scenario

SCENARIO = "paper"
"""Shipped scenario that repeats the paper's set-points."""

TABLE_III: dict[str, dict[str, tuple[float, float]]] = {
    "circle": {
        "load": (67.8, 9.7),
        "drone_1": (74.8, 1.7),
        "drone_2": (68.3, 1.8),
        "drone_3": (204.1, 2.1),
    },
    "shm": {
        "load": (118.5, 11.4),
        "drone_1": (95.1, 4.1),
        "drone_2": (118.0, 3.0),
        "drone_3": (110.5, 2.6),
    },
    "engage": {
        "load": (38.7, 17.2),
        "drone_1": (78.0, 1.3),
        "drone_2": (43.5, 1.6),
        "drone_3": (132.4, 1.4),
    },
}
"""Errors of the paper's own simulator: translational [mm], geodesic [deg], by stage and body."""

FIRST_CYCLES_DROPPED = {"circle": 1, "shm": 2, "engage": 0}
"""Cycles at the start of a stage that its authors leave out (their processing scripts)."""

# ---------- The motion that set-points describe: radius, speed, amplitude, heights, times
#
# Every number comes with how well the recording's rows tell it.

LENGTH_M = 0.01
ANGLE_RAD = 0.02
SHARE = 0.01
"""Differences of places, angles and periods (as a share) that set-points of logs do not tell."""
_TURNED_RAD = 0.02


@dataclass(frozen=True)
class FittedField:
    """Field of a trajectory: number or point; differences up to `known_to` count as none."""

    value: float | tuple[float, ...]
    known_to: float

    def differs(self, other: float | tuple[float, ...]) -> bool:
        """Whether another value is surely not this one."""
        return bool(np.max(np.abs(np.subtract(self.value, other))) > self.known_to)


def motion_of(stage: str, cut: CutStage) -> dict[str, FittedField]:
    """Fields of the trajectory "circle", "shm" or "engage" that its set-points tell, by name."""
    if stage not in _READERS or LOAD not in cut.recording.setpoints:
        return {}
    return _READERS[stage](cut)


def update_rate(cut: CutStage) -> FittedField | None:
    """Update rate of the set-points of a periodic stage [Hz], where the rows tell it."""
    changes = _within(cut)
    if not cut.periodic or len(changes.time_s) < 8:
        return None
    holds = np.diff(changes.time_s)
    rows = np.diff(cut.recording.time_s) if cut.recording.sampled_setpoints else np.zeros(1)
    hold = float(np.median(holds))
    if np.median(rows) > 0.6 * hold:
        return None  # changes are missed
    return FittedField(round(1.0 / hold, 2), 0.1 / hold)


def _circle(cut: CutStage) -> dict[str, FittedField]:
    x, y, z = _within(cut).position_enu_m.T
    a, b, radius = circle_through(x, y)
    angle = np.unwrap(np.arctan2(y - b, x - a))
    if angle[-1] < angle[0]:
        raise ConfigError(
            f"{cut.recording.source}: the load flies the circle clockwise, but stage circle is "
            "flown counter-clockwise: turn the axes of the recording"
        )
    speed = 2.0 * np.pi * radius / cut.period_s
    return {
        "radius_m": FittedField(round(radius, 4), LENGTH_M),
        "speed_m_s": FittedField(round(speed, 4), SHARE * speed),
        "height_m": FittedField(round(float(np.median(z)), 4), LENGTH_M),
        "center_m": FittedField((round(a, 4), round(b, 4)), LENGTH_M),
    }


def _shm(cut: CutStage) -> dict[str, FittedField]:
    changes = _within(cut)
    p = changes.position_enu_m
    axis = main_axis(p - p.mean(axis=0))
    along = p @ axis
    omega = 2.0 * np.pi / cut.period_s
    (sine, cosine, middle), _ = harmonic(omega, changes.time_s - cut.cycles[0].start_s, along)
    amplitude = float(np.hypot(sine, cosine))
    place = p.mean(axis=0) + axis * (middle - np.mean(along))
    # Times that are known to a row only blur the amplitude by a few per cent.
    blur = max(LENGTH_M, 0.05 * amplitude)
    yaw = float(np.angle(np.mean(np.exp(1j * yaw_of(changes.orientation_wxyz)))))
    return {
        "amplitude_m": FittedField(round(amplitude, 4), blur),
        "omega_rad_s": FittedField(round(omega, 5), SHARE * omega),
        "axis_yaw_rad": FittedField(round(float(np.arctan2(axis[1], axis[0])), 4), ANGLE_RAD),
        "yaw_rad": FittedField(round(yaw, 4), ANGLE_RAD),
        "height_m": FittedField(round(float(np.median(p[:, 2])), 4), LENGTH_M),
        "center_m": FittedField((round(float(place[0]), 4), round(float(place[1]), 4)), blur),
    }


def _engage(cut: CutStage) -> dict[str, FittedField]:
    setpoint = cut.recording.setpoints[LOAD]
    t = setpoint.time_s
    p = setpoint.position_enu_m
    yaw = yaw_of(setpoint.orientation_wxyz)
    rows: dict[str, list[float]] = {}
    for cycle in cut.cycles:
        inside = (t >= cycle.start_s - 1e-6) & (t < cycle.end_s - 1e-6)
        if not inside.any():
            continue
        first = int(np.flatnonzero(inside)[0])
        cycle_values = {"height_m": float(p[first, 2])}
        if first > 0 and p[first - 1, 2] < p[first, 2]:
            cycle_values["rest_height_m"] = float(p[first - 1, 2])
        cycle_values["yaw_rad"] = float(yaw[first])
        cycle_values |= _turn_back(t[inside], np.unwrap(yaw[inside]), cycle)
        for name, value in cycle_values.items():
            rows.setdefault(name, []).append(value)
    here = {name: float(np.median(values)) for name, values in rows.items()}
    # Two rows: one at each end of a time.
    late = 2.0 * float(np.median(np.diff(cut.recording.time_s)))
    tolerances = {"height_m": LENGTH_M, "rest_height_m": LENGTH_M, "yaw_rad": ANGLE_RAD}
    centre = np.median(p[[int(np.searchsorted(t, c.start_s)) for c in cut.cycles], :2], axis=0)
    result = {
        name: FittedField(round(value, 4), tolerances.get(name, max(late, 0.3)))
        for name, value in here.items()
    }
    result["center_m"] = FittedField(
        (round(float(centre[0]), 4), round(float(centre[1]), 4)), LENGTH_M
    )
    return result


def _turn_back(t: Array, yaw: Array, cycle: Cycle) -> dict[str, float]:
    """Times for which the yaw is held, goes back, and is held again, by the line in between.

    A recording may end while the yaw goes back, to zero as in the stage: then nothing is known of
    the last time.
    """
    steps = np.flatnonzero(np.abs(np.diff(yaw)) > 0.1 * _TURNED_RAD)
    if len(steps) < 3:
        return {}
    whole = cycle.end_s - t[steps[-1] + 1] > 3.0 * float(np.median(np.diff(t[steps])))
    first, last = float(yaw[0]), float(yaw[-1]) if whole else 0.0
    if abs(last - first) < 5.0 * _TURNED_RAD:
        return {}
    share = (yaw - first) / (last - first)
    between = (share > 0.1) & (share < 0.9)
    if between.sum() < 3:
        return {}
    slope, start = np.polyfit(share[between], t[between], 1)
    begins = float(start)
    ends = float(start + slope)
    if slope <= 0.0 or begins < cycle.start_s or (whole and ends > cycle.end_s):
        return {}
    times = {"yaw_hold_s": begins - cycle.start_s, "yaw_return_s": ends - begins}
    return times | ({"hold_s": cycle.end_s - ends} if whole else {})


_READERS: Mapping[str, Callable[[CutStage], dict[str, FittedField]]] = {
    "circle": _circle,
    "shm": _shm,
    "engage": _engage,
}


def _within(cut: CutStage) -> PoseTrack:
    """Changes of the load's set-point from the first to the last cycle."""
    changes = cut.recording.setpoints[LOAD].changes()
    inside = (changes.time_s >= cut.cycles[0].start_s) & (changes.time_s < cut.cycles[-1].end_s)
    return changes.part(inside)


# ---------- Recordings of such flights, and the missions that fly them again

STAGES = "mission.stages="
PLACE_M = 0.05
"""Places of drones in the formation that differ by less are taken for the same."""
UPDATE_LAG_RAD = 0.15
UPDATE_LAG_M = 0.15
"""Largest lag of the drones' set-points behind the load's: 0.2 s at the paper's speeds is less."""
LARGEST_LAG_RAD = 1.0
"""Largest turn of a formation against its set-points, half of what lies between three."""
MAX_ORDERED = 7
"""Drones whose order is looked for; of more there are too many orders."""

Real = Mapping[str, Sequence[CutStage]]
"""Real cycles by stage, of one or more flights."""


@dataclass(frozen=True)
class Mission:
    """Overrides of the scenario that fly recorded cycles again.

    Attributes:
        overrides: `key=value` of the scenario, as far as taken from the recordings.
        real: The cycles by stage.
        notes: Findings about them, for people.
    """

    overrides: tuple[str, ...]
    real: Real
    notes: tuple[str, ...] = ()

    @property
    def taken(self) -> list[str]:
        """Overrides taken from the recordings, without which stages they have."""
        return [text for text in self.overrides if not text.startswith(STAGES)]

    @property
    def source(self) -> str:
        """Name of the first recording."""
        return next(cuts[0].recording.source for cuts in self.real.values())

    @property
    def remarks(self) -> list[str]:
        """Overrides taken from the recordings, and doubts about these, for people."""
        lines = [line for cuts in self.real.values() for one in cuts for line in one.warnings]
        if self.taken:
            lines.append(f"{self.source}: flown with {', '.join(self.taken)}, as it was recorded")
        return [*self.notes, *lines]


def some_cycles(
    places: Sequence[Path], reading: ReadOptions | None = None
) -> dict[str, list[CutStage]]:
    """Real cycles by stage of several flights, of whatever stages they have.

    The places are recordings, or folders with files `*_circle.csv`, `*_shm.csv`, `*_engage.csv`.
    The first cycles of a stage are dropped from a whole flight, where more are left; an excerpt has
    those of the middle only.
    """
    cuts: dict[str, list[CutStage]] = {}
    for place in places:
        why: list[str] = []
        pairs = list(_stages_of(place, reading or ReadOptions(), why))
        if not pairs:
            patterns = ", ".join(f"*_{stage}.csv" for stage in TABLE_III)
            raise ConfigError("; ".join(why) or f"{place}: no {patterns}")
        for stage, its in pairs:
            cuts.setdefault(stage, []).append(its)
    return {stage: cuts[stage] for stage in TABLE_III if stage in cuts}


def _stages_of(place: Path, options: ReadOptions, why: list[str]) -> Iterator[tuple[str, CutStage]]:
    """Stages of one place with their cycles; says why others are none."""
    folder = os.path.isdir(place)  # says no where Path would raise: names too long
    files = [
        (stage, file)
        for stage in TABLE_III
        for file in (sorted(place.glob(f"*_{stage}.csv")) if folder else ())
    ]
    if files:
        yield from ((stage, cut(read_recording(file, options), stage)) for stage, file in files)
    elif not folder or any(os.path.exists(place / mark) for mark in ("metadata.yaml", "bag")):
        flight = read_recording(place, options)
        matches = [stage for stage in TABLE_III if place.stem.endswith(f"_{stage}")]
        if len(flight.stages) == 1 and matches:  # an excerpt
            yield matches[0], cut(flight, matches[0])
            return
        for stage, skip in FIRST_CYCLES_DROPPED.items():
            try:
                yield stage, cut_last(flight, stage, skip)
            except ConfigError as error:  # a flight of other stages
                why.append(str(error))


def missions(
    real: Real, scenario: Scenario, overrides: Sequence[str], *, whole: bool = False
) -> list[Mission]:
    """Sort recorded cycles by the motion that was flown.

    `scenario` has these overrides, in which given stages are kept. `whole`: all stages are flown.
    """
    own_stages = any(text.split("=", 1)[0].strip() == "mission.stages" for text in overrides)
    offsets = scenario.formation.offsets_m(scenario.system.n_drones)
    stages = scenario.mission.stages
    selection = stages if own_stages or whole else tuple(its for its in stages if its.kind in real)
    first = (
        [f"{STAGES}{json.dumps(to_data(selection))}"]
        if selection and len(selection) < len(stages)
        else []
    )
    kinds = [its.kind for its in (selection or stages)]
    by_stage: dict[str, dict[tuple[str, ...], list[CutStage]]] = {}
    notes: list[str] = []
    for stage, cuts in real.items():
        variants = by_stage.setdefault(stage, {})
        for one in cuts:
            numbered, remarks = _numbered(one, offsets)
            notes += remarks
            keys = [] if own_stages else _stage_keys(stage, numbered, scenario, kinds)
            keys += _formation_key(numbered, offsets)
            variants.setdefault(tuple(keys), []).append(numbered)
    # The first variant of each stage makes a mission, the second ones another, and so on.
    groups: dict[tuple[str, ...], dict[str, list[CutStage]]] = {}
    for k in range(max((len(v) for v in by_stage.values()), default=0)):
        some = {stage: list(v.items())[k] for stage, v in by_stage.items() if k < len(v)}
        own = dict.fromkeys([*first, *(text for key, _ in some.values() for text in key)])
        groups[tuple(own)] = {stage: cuts for stage, (_, cuts) in some.items()}
    return [Mission(key, cycles, tuple(dict.fromkeys(notes))) for key, cycles in groups.items()]


def one_mission(real: Real, scenario: Scenario, overrides: Sequence[str]) -> Mission:
    """The mission of flights whose cycles are to be laid on one another, as `missions`."""
    candidates = missions(real, scenario, overrides)
    if len(candidates) > 1:
        which = "; ".join(
            f"{m.source} ({', '.join(m.taken) or 'as in the paper'})" for m in candidates
        )
        raise ConfigError(
            f"the flights differ in what was flown, so their cycles are not pooled: {which}; "
            "reproduce them one by one"
        )
    return candidates[0]


def _stage_keys(stage: str, one: CutStage, scenario: Scenario, kinds: Sequence[str]) -> list[str]:
    """Overrides of the stage's fields and of the rate of the set-points."""
    if stage not in kinds:
        return []
    its = next(its for its in scenario.mission.stages if its.kind == stage)
    keys = [
        f"mission.stages.{kinds.index(stage)}.{name}={json.dumps(fit.value)}"
        for name, fit in motion_of(stage, one).items()
        if fit.differs(getattr(its, name))
    ]
    rate = update_rate(one)
    if rate is not None and rate.differs(scenario.mission.setpoint_rate_hz):
        keys.append(f"mission.setpoint_rate_hz={rate.value}")
    return keys


def drones_of(bodies: Iterable[str]) -> list[str]:
    """Names of the drones in their order."""
    return in_order(body for body in bodies if body.startswith("drone_"))


def _numbered(one: CutStage, offsets: Array) -> tuple[CutStage, list[str]]:
    """Drones numbered from 1 by where they fly, with a note if they were numbered otherwise."""
    recording = one.recording
    n = len(offsets)
    names = drones_of(recording.bodies)
    if len(names) != n:
        raise ConfigError(
            f"{recording.source}: {len(names)} drone{'s' * (len(names) != 1)} in it, the "
            f"system has {n}"
        )
    notes: list[str] = []
    sides = []
    for tracks in (recording.bodies, recording.setpoints):
        number = {name: f"drone_{i + 1}" for i, name in enumerate(names)}
        tracks = {number.get(body, body): track for body, track in tracks.items()}
        places = _places(one, tracks, n)
        order = [] if places is None else _order(places, offsets)
        # Place k is taken by the drone that was recorded as number order[k] + 1.
        place = {f"drone_{k + 1}": f"drone_{i + 1}" for i, k in enumerate(order)}
        renamed = {place.get(body, body): track for body, track in tracks.items()}
        sides.append({body: renamed[body] for body in tracks})
        renamings = [f"recorded {old} as {name}" for old, name in place.items() if old != name]
        if len(sides) == 1 and renamings:
            notes = [
                f"{recording.source}: drones are numbered by their places: {', '.join(renamings)}"
            ]
    bodies, setpoints = sides
    return replace(one, recording=replace(recording, bodies=bodies, setpoints=setpoints)), notes


def _places(one: CutStage, tracks: Mapping[str, PoseTrack], n: int) -> Array | None:
    """Median place of each drone in the frame of the load's set-point, (n, 3)."""
    names = [f"drone_{i + 1}" for i in range(n)]
    setpoints = one.recording.setpoints.get(LOAD)
    if setpoints is None or any(name not in tracks for name in names):
        return None
    time_s = one.recording.time_s
    time_s = time_s[(time_s >= one.cycles[0].start_s) & (time_s <= one.cycles[-1].end_s)]
    targets = setpoints.held_at(time_s)
    off = np.array([tracks[name].held_at(time_s).position_enu_m for name in names])
    with np.errstate(all="ignore"):
        own = rotate(from_yaw(-yaw_of(targets.orientation_wxyz)), off - targets.position_enu_m)
        places: Array = np.nanmedian(own, axis=1)
    return places if np.isfinite(places).all() else None


def _horizontal(places: Array) -> NDArray[np.complex128]:
    """Places about their centre as complex numbers, (n,)."""
    return (places - places.mean(axis=0))[:, :2] @ np.array([1.0, 1.0j])


def _turn(have: NDArray[np.complex128], want: NDArray[np.complex128]) -> float:
    """Angle that turns places onto others, in least squares."""
    return float(np.angle(np.sum(have * np.conj(want))))


def _order(places: Array, offsets: Array) -> list[int]:
    """Drone in each place, for a formation that may be turned and moved a little."""
    n = len(places)
    same = list(range(n))
    if not 2 <= n <= MAX_ORDERED:
        return same
    have = _horizontal(places)
    want = _horizontal(offsets)

    def off(order: Sequence[int]) -> float:
        turn = float(np.clip(_turn(have[list(order)], want), -LARGEST_LAG_RAD, LARGEST_LAG_RAD))
        return float(np.sum(np.abs(have[list(order)] - want * np.exp(1j * turn)) ** 2))

    best = min(permutations(range(n)), key=off)
    # Another order must be clearly better: bodies that are far off are not to be renamed.
    return list(best) if off(best) < 0.25 * off(same) else same


def _formation_key(one: CutStage, offsets: Array) -> list[str]:
    """Override of the places in the formation, from the drones' recorded set-points.

    Their set-points may come an update after the load's, which turns and shifts all places alike.
    """
    places = _places(one, one.recording.setpoints, len(offsets))
    if places is None:
        return []
    turn = _turn(_horizontal(places), _horizontal(offsets))
    shift = np.linalg.norm((places - offsets).mean(axis=0)[:2])
    if abs(turn) <= UPDATE_LAG_RAD and shift <= UPDATE_LAG_M:
        points = _horizontal(places) * np.exp(-1j * turn) + offsets[:, :2].mean(axis=0) @ [1.0, 1j]
        places[:, 0] = points.real
        places[:, 1] = points.imag
    if np.max(np.abs(places - offsets)) <= PLACE_M:
        return []
    return [f"formation.places_m={json.dumps(places.round(2).tolist())}"]


def turning_frame(drones_enu_m: Array, setpoints_enu_m: Array) -> Array:
    """Places (n, M, 3) about the drones' centroid [m]: outward, forward, up by their set-points."""
    own = drones_enu_m - drones_enu_m.mean(axis=0)
    arms_m = setpoints_enu_m - setpoints_enu_m.mean(axis=0)
    return rotate(from_yaw(-np.arctan2(arms_m[..., 1], arms_m[..., 0])), own)


@dataclass(frozen=True)
class TurningPlaces:
    """Places of the drones of one stage in the turning frame: outward, forward, up [m].

    Attributes:
        drones: Names, in the order of the rows.
        phase: (M,).
        real: Recorded mean cycle, (n, M, 3).
        sim: Simulated mean cycle, (n, M, 3).
    """

    stage: str
    drones: tuple[str, ...]
    phase: Array
    real: Array
    sim: Array


def turning(comparison: StageComparison, sim: CutStage) -> TurningPlaces:
    """The drones of a compared stage in the turning frame of one of its simulated flights."""
    drones = drones_of(comparison.sim)
    cycle = sim.cycles[-1]
    time_s = cycle.start_s + comparison.phase * (cycle.end_s - cycle.start_s)
    setpoints = np.array(
        [sim.recording.setpoints[drone].held_at(time_s).position_enu_m for drone in drones]
    )
    real, simulated = (
        turning_frame(np.array([side[drone].position_enu_m for drone in drones]), setpoints)
        for side in (comparison.real, comparison.sim)
    )
    return TurningPlaces(comparison.stage, tuple(drones), comparison.phase, real, simulated)


def turning_rows(places: TurningPlaces) -> list[str]:
    """Rows of a Markdown table: recorded, simulated and their difference [mm]."""
    lines = []
    for i, drone in enumerate(places.drones):
        both = [1e3 * np.nanmean(side[i], axis=0) for side in (places.real, places.sim)]
        cells = [", ".join(f"{v:.0f}" for v in row) for row in (*both, both[1] - both[0])]
        lines.append(f"| {places.stage}, {drone.replace('_', ' ')} | {' | '.join(cells)} |")
    return lines
