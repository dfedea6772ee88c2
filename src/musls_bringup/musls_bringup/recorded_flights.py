"""Recorded flights of the paper's kinds of stages, and the missions that fly them again.

A recording says itself what was flown: radius and speed of its circle, amplitude and rate of its
swings, heights and times of its engagements, places of its drones. Where that differs from scenario
`paper` the simulated flight takes it from the recording.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.cycles import CutStage, cut, cut_last
from musls_analysis.paper.flights import FIRST_CYCLES_DROPPED, TABLE_III, motion_of, update_rate
from musls_analysis.paper.turning_frame import drones_of
from musls_analysis.recordings.readers import read_recording
from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording
from musls_bringup.fly import find_scenario
from musls_description.errors import ConfigError
from musls_description.rotations import yaw_of
from musls_description.schema import to_data
from musls_sim.scenario.scenario import Scenario

Array = NDArray[np.float64]

SCENARIO = "paper"
STAGES = "mission.stages="
PLACE_M = 0.05
"""Places of drones in the formation that differ by less are taken for the same."""
UPDATE_LAG_RAD, UPDATE_LAG_M = 0.15, 0.15
"""By which the drones' set-points may be behind the load's: 0.2 s at the paper's speeds is less."""
LARGEST_LAG_RAD = 1.0
"""By which a formation may be turned against its set-points, half of what lies between three."""
MOST_ORDERED = 7
"""Drones whose order is looked for; of more there are too many orders."""

Real = dict[str, list[CutStage]]
_Track = TypeVar("_Track")


@dataclass(frozen=True)
class Mission:
    """What flies recorded cycles again.

    Attributes:
        overrides: `key=value` of the scenario, what is taken from the recordings.
        real: The cycles by stage.
        notes: What was found about them, for people.
    """

    overrides: tuple[str, ...]
    real: Mapping[str, Sequence[CutStage]]
    notes: tuple[str, ...] = ()

    @property
    def taken(self) -> list[str]:
        """What was taken from the recordings, without which stages they have."""
        return [text for text in self.overrides if not text.startswith(STAGES)]


def some_cycles(places: Sequence[Path]) -> Real:
    """Real cycles by stage of several flights, of whatever stages they have.

    The first cycles of a stage are dropped from a whole flight, where more are left; an excerpt
    has those of the middle only.

    Args:
        places: Recordings, or folders with files `*_circle.csv`, `*_shm.csv`, `*_engage.csv`.

    Raises:
        ConfigError: None of the stages is in one of the places.
    """
    found: Real = {}
    for place in places:
        cuts: list[CutStage] = []
        why: list[str] = []
        for stage, its in _stages_of(place, why):
            cuts.append(its)
            found.setdefault(stage, []).append(its)
        if not cuts:
            wanted = ", ".join(f"*_{stage}.csv" for stage in TABLE_III)
            raise ConfigError("; ".join(why) or f"{place}: no {wanted}")
    return {stage: found[stage] for stage in TABLE_III if stage in found}


def _stages_of(place: Path, why: list[str]) -> Iterator[tuple[str, CutStage]]:
    """Stages of one place with their cycles; says why others are none."""
    folder = os.path.isdir(place)  # says no where Path would raise: names too long
    files = [
        (stage, file)
        for stage in TABLE_III
        for file in (sorted(place.glob(f"*_{stage}.csv")) if folder else ())
    ]
    if files:
        yield from ((stage, cut(read_recording(file), stage)) for stage, file in files)
    elif not folder or any(os.path.exists(place / mark) for mark in ("metadata.yaml", "bag")):
        flight = read_recording(place)
        named = [stage for stage in TABLE_III if place.stem.endswith(f"_{stage}")]
        if len(flight.stages) == 1 and named:  # an excerpt
            yield named[0], cut(flight, named[0])
            return
        for stage, skip in FIRST_CYCLES_DROPPED.items():
            try:
                yield stage, cut_last(flight, stage, skip)
            except ConfigError as error:  # a flight of other stages
                why.append(str(error))


def missions(
    real: Mapping[str, Sequence[CutStage]], overrides: Sequence[str], *, whole: bool = False
) -> list[Mission]:
    """Sort recorded cycles by what was flown.

    Args:
        real: Cycles by stage, of one or more flights.
        overrides: `key=value` for the scenario; stages given here are not changed.
        whole: Fly all stages of the scenario, recorded or not.

    Returns:
        One mission, or several where flights differ. What agrees with the scenario as well as
        the rows can tell is left as it is there.

    Raises:
        ConfigError: A recording has other drones than the system, or cannot be flown.
    """
    scenario = find_scenario(SCENARIO, list(overrides))
    given = any(text.split("=", 1)[0].strip() == "mission.stages" for text in overrides)
    n = len(scenario.system.drones)
    offsets = scenario.formation.offsets_m(n)
    groups: dict[tuple[str, ...], dict[str, list[CutStage]]] = {}
    stages = scenario.mission.stages
    kept = stages if given or whole else tuple(its for its in stages if its.kind in real)
    first = [f"{STAGES}{json.dumps(to_data(kept))}"] if kept and len(kept) < len(stages) else []
    kinds = [its.kind for its in (kept or stages)]
    by_stage: dict[str, dict[tuple[str, ...], list[CutStage]]] = {}
    notes: list[str] = []
    for stage, cuts in real.items():
        for one in cuts:
            numbered, found = _in_places(_numbered(one, n), offsets)
            notes += found
            keys = [] if given else _stage_keys(stage, numbered, scenario, kinds)
            keys += _formation_key(numbered, offsets)
            by_stage.setdefault(stage, {}).setdefault(tuple(keys), []).append(numbered)
    for k in range(max((len(v) for v in by_stage.values()), default=0)):
        own = list(first)
        cycles: dict[str, list[CutStage]] = {}
        for stage, variants in by_stage.items():
            if k < len(variants):
                key, cycles[stage] = list(variants.items())[k]
                own += [text for text in key if text not in own]
        groups[tuple(own)] = cycles
    return [Mission(key, cycles, tuple(dict.fromkeys(notes))) for key, cycles in groups.items()]


def one_mission(real: Mapping[str, Sequence[CutStage]], overrides: Sequence[str]) -> Mission:
    """The mission of flights whose cycles are to be laid on one another.

    Raises:
        ConfigError: They differ in what was flown.
    """
    found = missions(real, overrides)
    if len(found) > 1:
        which = "; ".join(
            f"{_source(mission)} ({', '.join(mission.taken) or 'as in the paper'})"
            for mission in found
        )
        raise ConfigError(
            f"the flights differ in what was flown, so their cycles are not pooled: {which}; "
            "reproduce them one by one"
        )
    return found[0]


def _source(mission: Mission) -> str:
    return next(cuts[0].recording.source for cuts in mission.real.values())


def _stage_keys(stage: str, one: CutStage, scenario: Scenario, kinds: Sequence[str]) -> list[str]:
    """Overrides of the stage's fields and of the rate of the set-points."""
    if stage not in kinds:
        return []
    its = next(its for its in scenario.mission.stages if its.kind == stage)
    keys = [
        f"mission.stages.{kinds.index(stage)}.{name}={json.dumps(found.value)}"
        for name, found in motion_of(stage, one).items()
        if found.differs(getattr(its, name))
    ]
    rate = update_rate(one)
    if rate is not None and rate.differs(scenario.mission.setpoint_rate_hz):
        keys.append(f"mission.setpoint_rate_hz={rate.value}")
    return keys


def _numbered(one: CutStage, n: int) -> CutStage:
    """Drones numbered from 1, as many as the system has."""
    names = drones_of(one.recording.bodies)
    if len(names) != n:
        raise ConfigError(
            f"{one.recording.source}: {len(names)} drone{'s' * (len(names) != 1)} in it, the "
            f"system has {n}"
        )
    wanted = [f"drone_{i + 1}" for i in range(n)]
    if names == wanted:
        return one
    return replace(one, recording=_renamed(one.recording, dict(zip(names, wanted, strict=True))))


def _in_places(one: CutStage, offsets: Array) -> tuple[CutStage, list[str]]:
    """Drones numbered by where they fly, with a note if they were numbered otherwise."""
    n = len(offsets)
    recording = one.recording
    wanted = [f"drone_{i + 1}" for i in range(n)]
    renamed: dict[str, dict[str, PoseTrack]] = {}
    notes: list[str] = []
    for what, tracks in (("bodies", recording.bodies), ("setpoints", recording.setpoints)):
        places = _places(one, tracks, n)
        order = None if places is None else _order(places, offsets)
        if order is None or order == list(range(n)):
            continue
        # Place k is taken by the drone that was recorded as number order[k] + 1.
        names = {f"drone_{k + 1}": wanted[slot] for slot, k in enumerate(order)}
        renamed[what] = {names.get(body, body): track for body, track in tracks.items()}
        renamed[what] = {body: renamed[what][body] for body in tracks}
        if what == "bodies":
            pairs = ", ".join(
                f"recorded {old} as {new}" for old, new in names.items() if old != new
            )
            notes.append(f"{recording.source}: drones are numbered by their places: {pairs}")
    recording = replace(
        recording,
        bodies=renamed.get("bodies", recording.bodies),
        setpoints=renamed.get("setpoints", recording.setpoints),
    )
    return replace(one, recording=recording), notes


def _places(one: CutStage, tracks: Mapping[str, PoseTrack], n: int) -> Array | None:
    """Median place of each drone in the frame of the load's set-point, (n, 3)."""
    names = [f"drone_{i + 1}" for i in range(n)]
    wanted = one.recording.setpoints.get(LOAD)
    if wanted is None or any(name not in tracks for name in names):
        return None
    time_s = one.recording.time_s
    inside = (time_s >= one.cycles[0].start_s) & (time_s <= one.cycles[-1].end_s)
    time_s = time_s[inside]
    held = wanted.held_at(time_s)
    yaw = yaw_of(held.orientation_wxyz)
    c, s = np.cos(yaw), np.sin(yaw)
    found = []
    for name in names:
        off = tracks[name].held_at(time_s).position_enu_m - held.position_enu_m
        own = [c * off[:, 0] + s * off[:, 1], c * off[:, 1] - s * off[:, 0], off[:, 2]]
        with np.errstate(all="ignore"):
            found.append(np.nanmedian(np.column_stack(own), axis=0))
    places = np.array(found)
    return places if np.isfinite(places).all() else None


def _order(places: Array, offsets: Array) -> list[int]:
    """Which drone is in each place, for a formation that may be turned and moved a little."""
    n = len(places)
    same = list(range(n))
    if not 2 <= n <= MOST_ORDERED:
        return same
    have = (places - places.mean(axis=0))[:, :2] @ np.array([1.0, 1.0j])
    want = (offsets - offsets.mean(axis=0))[:, :2] @ np.array([1.0, 1.0j])

    def off(order: Sequence[int]) -> float:
        turn = float(np.angle(np.sum(have[list(order)] * np.conj(want))))
        turn = float(np.clip(turn, -LARGEST_LAG_RAD, LARGEST_LAG_RAD))
        return float(np.sum(np.abs(have[list(order)] - want * np.exp(1j * turn)) ** 2))

    best = min(permutations(range(n)), key=off)
    # Another order must be clearly better: bodies that are far off are not to be renamed.
    return list(best) if off(best) < 0.25 * off(same) else same


def _formation_key(one: CutStage, offsets: Array) -> list[str]:
    """Override of the places in the formation, from the drones' recorded set-points."""
    places = _places(one, one.recording.setpoints, len(offsets))
    if places is None:
        return []
    places = _caught_up(places, offsets)
    if np.max(np.abs(places - offsets)) <= PLACE_M:
        return []
    return [f"formation.places_m={json.dumps(places.round(2).tolist())}"]


def _caught_up(places: Array, offsets: Array) -> Array:
    """Places without the turn and the shift of set-points that come an update after the load's."""
    middle, wanted = places[:, :2].mean(axis=0), offsets[:, :2].mean(axis=0)
    have = (places[:, :2] - middle) @ np.array([1.0, 1.0j])
    want = (offsets[:, :2] - wanted) @ np.array([1.0, 1.0j])
    turn = float(np.angle(np.sum(have * np.conj(want))))
    if abs(turn) > UPDATE_LAG_RAD or np.hypot(*(middle - wanted)) > UPDATE_LAG_M:
        return places
    turned = have * np.exp(-1j * turn)
    found = places.copy()
    found[:, 0], found[:, 1] = turned.real + wanted[0], turned.imag + wanted[1]
    return found


def _renamed(recording: Recording, names: Mapping[str, str]) -> Recording:
    """A recording with other names of its drones, poses and set-points."""

    def under(tracks: Mapping[str, _Track]) -> dict[str, _Track]:
        return {names.get(body, body): track for body, track in tracks.items()}

    return replace(recording, bodies=under(recording.bodies), setpoints=under(recording.setpoints))
