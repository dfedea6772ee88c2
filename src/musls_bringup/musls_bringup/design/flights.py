"""Flights of designs: what each of them shows, and what it lacks of what is required.

Flights are runs of a sweep (`sweep/run.py`): in worker processes or on a Dask cluster, each kept in
a file by the hash of its settings, so that a search that was broken off goes on where it stood.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.recordings.recording import LOAD
from musls_analysis.sweep.montecarlo import study_of
from musls_analysis.sweep.plan import Plan, Run, run_id
from musls_analysis.sweep.run import SweepProgress, run_sweep
from musls_analysis.sweep.store import FINISHED, Store, usual_metrics
from musls_bringup.catalogue.shipped import SCENARIOS
from musls_bringup.design.question import Question, Requirements
from musls_bringup.design.search import Design
from musls_bringup.flight.fly import Flight, fly_run
from musls_bringup.flight.verify import chosen_step_s, finer_scenario
from musls_control.mission.contingency import MIN_DRONES
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_data
from musls_description.config.strict_yaml import read_yaml
from musls_description.hanging.hang import shown_beside
from musls_sim.scenario.scenario import Scenario, load_scenario

FLYER = "musls_bringup.design.flights:fly_and_watch_load"
"""Name by which a worker process finds what flies."""

OVER_GROUND_M = 1.0
"""Height of the load's lowest point in flight; long loads fly higher, see `height_m`."""

QUICK_S = 8.0
"""Time for which a load hangs in the wind in a short flight."""

HOLD_S = 6.0
WAY_M = 2.0
SPEED_M_S = 0.5
"""The flight of a design: hold, then to a place so far away and back."""

LOST_AFTER_S = 2.0
"""A drone is lost so long after the hold begins."""

TOLD = ("drone_lost", "drone_given_up", "reallocated", "collision", "overlap", "break")
"""Kinds of events that are told of a flight."""

CONTINGENCY = {"slack_s": 5.0}
"""Reaction to a loss: a drone that falls is noticed within half a second; cables that are slack for
a moment in wind are no loss."""

LOSS_GAP = 0.5
"""Share of the required distance of rotor tips that is kept where a drone was lost, at least."""

LOSS_FACTOR = 2.0
"""Breaking force of a cable over its largest tension where a drone was lost, at least."""


LOOK_S = 0.1
"""Time over which the load's speed is taken."""

HARDEST_M_S = 1.0
"""Fastest at which a load may come down after a loss, on the ground or on the drone that lies
there: it falls so fast from 5 cm."""

ROLLS_S = 3.0
"""Time after which a drone that fell to the ground lies still."""

OVER_DEG = 120.0
"""Angle from upright at which a load turns over after a loss. Without one of four hooks it hangs by
the others, on edge, and swings there."""


def fly_and_watch_load(scenario: Scenario, folder: Path | None = None) -> Flight:
    """Fly a run of a sweep, and find how fast the load came down, and how far it leaned."""
    recording, summary = fly_run(scenario, folder)
    load = recording.bodies[LOAD]
    grid_s = np.arange(load.time_s[0], load.time_s[-1], LOOK_S)
    height_m = np.interp(grid_s, load.time_s, load.position_enu_m[:, 2])
    sink = float(max(0.0, -np.diff(height_m).min(initial=0.0) / LOOK_S))
    _, x, y, _ = load.orientation_wxyz.T
    upright = np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0)  # the load's z axis, upwards
    lean_deg = float(np.degrees(np.arccos(upright)).max())
    return recording, {**summary, "sink_m_s": sink, "lean_deg": lean_deg}


@dataclass(frozen=True)
class Trial:
    """One flight of a design.

    Attributes:
        design: The design.
        wind_deg: Direction of the wind, from the load's x axis; None in still air.
        lost: Number of the drone that is lost; None for none.
        quick: Whether it only hangs in the air, on massless cables.
        noise: Number that is added to the question's seed of noise.
        parts: Steps of the physics into which each is cut, to see how well peaks are converged.
    """

    design: Design
    wind_deg: float | None = None
    lost: int | None = None
    quick: bool = False
    noise: int = 0
    parts: int = 1

    @property
    def name(self) -> str:
        """Short name for messages."""
        where = "" if self.wind_deg is None else f"wind towards {self.wind_deg:g} deg"
        lost = "" if self.lost is None else f"drone {self.lost} lost"
        noise = "other noise" if self.noise else ""
        return ", ".join(filter(None, [where, lost, noise])) or "still air"

    def data(self, question: Question) -> dict[str, Any]:
        """Scenario as plain data."""
        design = self.design
        load = self.design.system.load
        up_m = height_m(question)
        place = [0.0, 0.0, up_m]
        hold_s = QUICK_S if self.quick else HOLD_S
        hold = {"kind": "hold", "position_m": place, "duration_s": hold_s}
        there = [WAY_M, 0.0, up_m]
        line = {"kind": "line", "start_m": place, "end_m": there, "speed_m_s": SPEED_M_S}
        stages = [hold] if self.quick else [hold, line]
        model = question.cable_model
        survives = question.requirements.survives_one and design.number >= MIN_DRONES
        data: dict[str, Any] = {
            "name": load_name(question),
            "description": f"{question.cargo.what} of {load.mass_kg:g} kg below {design.name}",
            "system": to_data(design.system),
            "formation": {"places_m": design.hanging.formation.offsets_m(design.number).tolist()},
            "mission": {"feed_forward": "flight", "stages": stages},
            "controller": design.controller,
            "autopilot": {"parameters": parameters_of(design.airframe)},
            "cable_model": "massless" if self.quick else model,
            "wind": question.wind_keys(self.wind_deg or 0.0),
            "start": "air" if self.quick else "ground",
            "seed": question.seed + self.noise,
        }
        if survives and not self.quick:
            data["contingency"] = CONTINGENCY
        if self.lost is not None:
            data["events"] = [loss_event(self.lost)]
        return data

    def run(self, question: Question) -> Run:
        """The run of a sweep that flies it (raises ConfigError: it cannot be composed)."""
        scenario = load_scenario(self.data(question), question.settings, "--set")
        if self.parts > 1:
            scenario = finer_scenario(scenario, chosen_step_s(scenario), self.parts)
        settings = to_data(scenario)
        return Run(run_id(settings), {}, 0, settings)


FORCED = "; --force flies anyway"
"""Advice of a refusal that nobody can follow here."""

TUNED = {"crazyflie": "crazyflie", "typhoon_h480": "typhoon"}
"""Shipped scenarios with the PX4 parameters of an airframe's own file."""


def parameters_of(airframe: str) -> dict[str, float]:
    """Parameters of PX4 that an airframe flies with in its shipped scenario."""
    if airframe not in TUNED:
        return {}
    given = read_yaml(SCENARIOS / f"{TUNED[airframe]}.yaml")
    return dict(given["autopilot"]["parameters"])


def loss_event(number: int) -> dict[str, Any]:
    """The event by which a drone is lost in the hold."""
    when = {"stage": "hold", "after_s": LOST_AFTER_S}
    return {"kind": "drone_lost", "when": when, "drone": number}


def load_name(question: Question) -> str:
    """Name of the scenario: that of the load."""
    return f"{question.cargo.name}_lift"


def height_m(question: Question) -> float:
    """Height of the load's set-point: it may lean, after the loss of a drone, by 30 degrees."""
    x, y, z = question.cargo.edges_m
    lean_m = 0.25 * math.hypot(x, y) if question.requirements.survives_one else 0.0
    return round(OVER_GROUND_M + lean_m + 0.5 * z, 2)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a trial.

    Attributes:
        trial: The flight.
        run: Hash of its settings: name of its file among the runs.
        failure: Why it was not flown to its end; empty where it was.
        warnings: Why it is no valid flight.
        margin: Least thrust margin of its worst second; None where it is not known.
        peak_n: Largest tension of any cable.
        tips_m: Least distance of rotor tips; None for one drone.
        error_m: Largest distance of the load from its place while it is to stay there.
        sink_m_s: Largest speed at which the load came down.
        lean_deg: Largest angle of the load from upright.
        given_up: Numbers of drones that were given up, in words, the lost one included.
        waited: Why stages waited in vain, in words.
        way: Whether it came to the way after the hold.
        landed: Whether the drones stood on the ground at its end.
        events: Events of the flight, in words.
        touches: Time and words of its collisions.
    """

    trial: Trial
    run: str
    failure: str
    warnings: Sequence[str] = ()
    margin: float | None = None
    peak_n: float = math.nan
    tips_m: float | None = None
    error_m: float | None = None
    sink_m_s: float = 0.0
    lean_deg: float = 0.0
    given_up: Sequence[str] = ()
    waited: Sequence[str] = ()
    way: bool = False
    landed: bool = False
    events: Sequence[str] = ()
    touches: Sequence[tuple[float, str]] = ()

    @property
    def carried_on(self) -> bool:
        """Whether the mission went on after a loss, and the load was not set down later."""
        decided = [line for line in self.events if "goes on" in line or "set down" in line]
        return bool(decided) and "goes on" in decided[-1]

    @property
    def faults(self) -> list[str]:
        """Why it is no valid flight, but for what comes to lie on the drone that was lost."""
        others = [text for text in self.warnings if not text.startswith("collision")]
        hits = list(_hits(self.touches, self.trial.lost))
        more = f" (and {len(hits) - 1} more)" if len(hits) > 1 else ""
        return [*(f"{hit}{more}" for hit in hits[:1]), *others]

    def lacks(self, required: Requirements) -> list[str]:
        """Requirements that this flight does not keep, one line each."""
        if self.failure:
            return [self.failure]
        design = self.trial.design
        lost = self.trial.lost is not None
        found = self.faults
        if not (self.landed or self.trial.quick):
            found.append("the drones have not landed at its end")
        if not lost and self.given_up:
            found.append(f"a drone that flies is given up: {self.given_up[0]}")
        if not lost and (adrift := re.findall(r"the load is .*?(?= after)", " ".join(self.waited))):
            found.append(f"{adrift[0]} before a stage that waits for it")
        if not lost and self.error_m is not None and self.error_m > design.length_m:
            found.append(
                f"the load is {self.error_m:.2f} m from its place, its cables are "
                f"{design.length_m:g} m long"
            )
        if lost and not any("all motors stopped" in line for line in self.events):
            found.append("its hold does not come, in which the drone was to be lost")
        if not (lost or self.way):
            found.append("it is broken off before its way")
        if lost and self.sink_m_s > HARDEST_M_S:
            found.append(
                f"the load comes down at {self.sink_m_s:.1f} m/s, {HARDEST_M_S:g} m/s are allowed"
            )
        if lost and self.lean_deg > OVER_DEG:
            found.append(f"the load turns over: it leans by {self.lean_deg:.0f} degrees")
        if not lost and self.margin is not None and self.margin < required.margin:
            shown = shown_beside(self.margin, required.margin)
            found.append(f"thrust margin {shown}, {required.margin:g} is required")
        factor = LOSS_FACTOR if lost else required.factor
        if design.break_force_n < factor * self.peak_n:
            found.append(
                f"a cable is pulled with {self.peak_n:.3g} N and breaks at "
                f"{design.break_force_n:.3g} N, {factor:g} times as much is required"
            )
        gap_m = (LOSS_GAP if lost else 1.0) * required.gap_m(design.system.drones[0])
        if self.tips_m is not None and self.tips_m < gap_m:
            shown = shown_beside(self.tips_m, gap_m)
            found.append(f"rotor tips within {shown} m, {gap_m:.3g} m are required")
        if (
            not lost
            and required.error is not None
            and self.error_m is not None
            and self.error_m > required.error
        ):
            found.append(
                f"the load is {self.error_m:.2f} m from its place, {required.error:g} m are allowed"
            )
        return found


def touches_of(summary: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Time and words of each collision of a flight."""
    events = summary.get("events", ())
    return [(e["time_s"], e["what"]) for e in events if e["kind"] == "collision"]


def _hits(touches: Sequence[tuple[float, str]], lost: int | None) -> Iterator[str]:
    """Collisions, but for a fall to the ground of the drone that was lost, and what lies on it.

    A load that is set down slowly may lie there, and a slack cable.
    """
    falls = [time_s for time_s, what in touches if what.startswith(f"drone_{lost} and ground")]
    lies_s = min(falls, default=math.inf) + ROLLS_S
    laid = re.compile(rf"load and drone_{lost} at ([\d.]+) m/s")
    for time_s, what in touches:
        match = laid.fullmatch(what)
        if (
            what.startswith(f"drone_{lost} and ground")
            or (match and float(match[1]) <= HARDEST_M_S)
            or (what.startswith(f"drone_{lost} and cable") and time_s > lies_s)
        ):
            continue
        yield f"collision at {time_s:.1f} s: {what}"


class Hangar:
    """Flies trials; what was flown is kept in a folder."""

    def __init__(
        self,
        question: Question,
        store: Store,
        progress: Callable[[str, float], None] | None = None,
        executor: Executor | None = None,
        scheduler: str | None = None,
    ) -> None:
        """`progress` is told what is done and the share of it; see `run_sweep` for the others."""
        self.question = question
        self.store = store
        self.progress = progress
        self.executor = executor
        self.scheduler = scheduler
        self.flights = 0
        self.cpu_s = 0.0

    def fly(self, trials: Sequence[Trial], what: str) -> list[Outcome]:
        """Fly trials, or take what was flown before; an outcome for each."""
        planned = [self.planned(trial) for trial in trials]
        runs = {run.id: run for run in planned if isinstance(run, Run)}
        sweep = study_of("design", "design", None, max(2, len(runs)), 0)

        if runs:
            self.make(Plan(sweep, tuple(runs.values()), 0), what)
        return [
            Outcome(trial, "", run)
            if isinstance(run, str)
            else outcome_of(trial, run.id, self.store.record(run.id))
            for trial, run in zip(trials, planned, strict=True)
        ]

    def make(self, plan: Plan, what: str) -> None:
        """Make the runs of a plan that the folder does not hold yet."""

        def watch(state: SweepProgress) -> None:
            if self.progress is not None:
                done = state.total - state.left
                self.progress(f"{what}: {done} of {state.total} flights", done / state.total)

        state = run_sweep(
            plan, self.store, FLYER, watch, scheduler=self.scheduler, executor=self.executor
        )
        self.flights += state.total
        self.cpu_s += state.cpu_s

    def planned(self, trial: Trial) -> Run | str:
        """The run of a trial, or why it cannot be composed."""
        try:
            return trial.run(self.question)
        except ConfigError as error:
            return str(error)


def outcome_of(trial: Trial, run: str, record: Mapping[str, Any] | None) -> Outcome:
    """Outcome of a flight from its record in the folder."""
    if record is None:
        return Outcome(trial, run, "its file is damaged: fly it again")
    if record["status"] != FINISHED:
        return Outcome(trial, run, str(record["reason"]).replace(FORCED, ""))
    summary = record["summary"]
    row = usual_metrics(summary)
    apart = summary.get("separation")
    events = summary.get("events", ())
    return Outcome(
        trial,
        run,
        "",
        list(summary["warnings"]),
        summary["least_thrust_margin"],
        row.get("max_tension_n", math.nan),
        None if apart is None else apart["tips_m"],
        row.get("errors.load.hold.translational_error_max_m"),
        summary["sink_m_s"],
        summary["lean_deg"],
        [e["what"] for e in events if e["kind"] == "drone_given_up"],
        [e["what"] for e in events if e["kind"] == "not_in_place"],
        trial.quick or any(stage["name"] == "line" for stage in summary["stages"]),
        bool(summary["landed"]),
        [f"{event['time_s']:.1f} s: {event['what']}" for event in events if event["kind"] in TOLD],
    )
