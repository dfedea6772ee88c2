"""Fly a scenario and write everything that comes of it into one folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from time import monotonic
from typing import Any

from musls_analysis.recordings.bag import recording_from
from musls_analysis.recordings.recording import Recording
from musls_analysis.report.summary import Peaks, summarise
from musls_bringup.results import EndAsked, Ending, result_folder
from musls_bringup.scenarios import SCENARIOS
from musls_control.controllers import Controller
from musls_description.errors import MuslsError
from musls_description.schema import to_yaml
from musls_sim.preflight.feasibility import assess
from musls_sim.preflight.separation import closest_in_plan
from musls_sim.px4.install import Firmware, Px4Error
from musls_sim.recording import BagRecorder, RecordingError
from musls_sim.recording.recorder import MemoryRecorder
from musls_sim.scenario.scenario import Scenario, load_scenario, scenario_path
from musls_sim.session.loop import Loop, Observer
from musls_sim.session.session import FlightResult, Session


def program() -> str:
    """`./musls`, the script of a checkout, or `musls` where only the packages are installed."""
    return "./musls" if (Path(__file__).parents[3] / "musls").is_file() else "musls"


SLACK_SHARE = 0.05
"""A cable counts as slack while its tension at the load is below this share of its static load."""


COMPILES_S = 0.5
"""A control period that takes longer has compiled something."""


@dataclass(frozen=True)
class FlyOptions:
    """How to fly.

    Attributes:
        realtime: Not faster than real time.
        force: Fly in spite of too little thrust.
        report: Write figures and report.
        command: What the user typed, for the report.
    """

    overwrite: bool = False
    realtime: bool = False
    force: bool = False
    report: bool = True
    command: str = ""


def find_scenario(name: str, overrides: list[str]) -> Scenario:
    """Read a shipped scenario, a file or the scenario of a result folder, with overrides.

    Raises:
        ConfigError: Unknown scenario, or something in it is wrong.
    """
    return load_scenario(scenario_path(name, SCENARIOS), overrides)


def fly(
    scenario: Scenario,
    out: Path,
    options: FlyOptions,
    observers: Sequence[Observer] = (),
    say: Callable[[str], None] = lambda text: None,
    controller: Controller | Callable[[], Controller] | None = None,
) -> dict[str, Any]:
    """Fly and write bag, scenario, summary, figures and report; gives the content of summary.json.

    In it "ended_by" is the signal that ended the run, or None. `controller` is flown instead of the
    scenario's; `observers` watch the flight besides the recorder; `say` is told what is being done
    after the flight.

    Raises:
        EndAsked: A signal came before the flight; nothing is left behind.
        MuslsError: The scenario cannot work or the folder cannot be written; nothing is left
            behind. Or physics, controller or a real autopilot failed in flight: what was flown is
            kept in `out` (the consoles of failed PX4s beside it), without a report.
    """
    failure: MuslsError | None = None
    with (
        Ending() as ending,
        result_folder(out, overwrite=options.overwrite) as work,
    ):
        logs = Path(f"{os.path.realpath(out)}.px4-logs")  # outlives a flight that PX4 fails
        session = Session(
            scenario,
            controller=controller,
            observers=observers,
            force=options.force,
            autopilot_logs=logs,
        )
        recorder = _bag(session, work / "bag")
        session.observe_with(recorder)
        start = _Start(ending)
        session.observe_with(start)
        (work / "scenario.yaml").write_text(to_yaml(scenario), encoding="utf-8")
        try:
            failure = _run(session, realtime=options.realtime)
        except Px4Error:
            raise  # its message says where the consoles are
        except BaseException:
            shutil.rmtree(logs, ignore_errors=True)
            raise
        _keep_consoles(logs, work, failure)
        result = session.result()
        if not result.periods:
            raise EndAsked(ending.number)
        recording = recording_from(recorder)
        summary = write_results(
            scenario, work, out, recording,
            lambda: _speed(session, result, start.compile_s, failure),
            result.max_tension_n.tolist(), options.report and failure is None, say, ending,
            peaks=result.tension_peaks,
        )  # fmt: skip
    if failure is not None:
        raise type(failure)(f"{failure}; what was flown is kept in {out}") from failure
    return summary


def fly_in_memory(session: Session, *, realtime: bool = False) -> tuple[Recording, FlightResult]:
    """Fly a session to its end; nothing is written.

    Raises:
        MuslsError: As `Session.run`.
    """
    scenario = session.scenario
    recorder = MemoryRecorder(
        scenario.system,
        step_period_s=session.plant.period_s,
        rate_hz=scenario.recording.rate_hz,
        shape_rate_hz=scenario.recording.shape_rate_hz,
    )
    session.observe_with(recorder)
    result = session.run(realtime=realtime)
    return recording_from(recorder, f"flight {scenario.name}"), result


def _run(session: Session, *, realtime: bool) -> MuslsError | None:
    """Fly; returns what failed in flight."""
    try:
        session.run(realtime=realtime)
    except RecordingError:
        raise
    except MuslsError as error:
        if session.tick == 0:
            raise
        return error
    return None


class _Start(Observer):
    """Tells when there begins to be something to keep; a real autopilot takes long to start.

    `compile_s` is the time of the first control period, where it is so long that it compiled.
    """

    def __init__(self, ending: Ending) -> None:
        self._ending, self._begin_s, self.compile_s = ending, 0.0, 0.0

    def start(self, loop: Loop) -> None:
        self._ending.keep_with(loop.stop)
        self._begin_s = monotonic()

    def observe(self, time_s: float, loop: Loop) -> None:
        if time_s > 0.0 and self._begin_s:
            first_s, self._begin_s = monotonic() - self._begin_s, 0.0
            self.compile_s = first_s if first_s > COMPILES_S else 0.0


def _bag(session: Session, folder: Path) -> BagRecorder:
    """Recorder of a session's bag at the rates of its scenario."""
    spec = session.scenario.recording
    return BagRecorder(
        folder,
        session.scenario.system,
        rate_hz=spec.rate_hz,
        shape_rate_hz=spec.shape_rate_hz,
        step_period_s=session.plant.period_s,
    )


def _keep_consoles(logs: Path, work: Path, failure: MuslsError | None) -> None:
    """What real PX4s printed joins the results, or stays where the error of a failed one says."""
    if logs.is_dir() and not isinstance(failure, Px4Error):
        shutil.move(logs, work / "px4")


def write_results(
    scenario: Scenario,
    work: Path,
    out: Path,
    recording: Recording,
    speed: Callable[[], Mapping[str, Any]],
    max_tension_n: Sequence[float],
    report: bool,
    say: Callable[[str], None],
    ending: Ending,
    command: str = "",
    peaks: Peaks | None = None,
) -> dict[str, Any]:
    """Write summary, figures and report of a flight."""
    found = summarise(
        recording,
        slack_threshold_n=slack_threshold_n(scenario),
        max_tension_n=max_tension_n,
        peaks=peaks,
        controller=getattr(scenario.controller, "kind", ""),
    )
    summary = {"scenario": scenario.name, "ended_by": ending.name, **speed(), **found}
    text = json.dumps(summary, indent=2, allow_nan=False)
    (work / "summary.json").write_text(text + "\n", encoding="utf-8")
    if report:
        from musls_analysis.report.report import Flown, write_report  # imports matplotlib

        say("drawing the report")
        flown = Flown(
            title=f"Flight {scenario.name}",
            description=scenario.description,
            system=scenario.system,
            scenario_text=to_yaml(scenario),
            seed=scenario.seed,
            command=command or f"{program()} fly {out / 'scenario.yaml'}",
            peaks=peaks,
        )
        try:
            with ending.skippable():
                write_report(recording, summary, work, flown)
        except (KeyboardInterrupt, EndAsked):
            shutil.rmtree(work / "figures", ignore_errors=True)
            (work / "report.html").unlink(missing_ok=True)
            summary["ended_by"] = ending.name or "SIGINT"
    return summary


def _check(session: Session) -> dict[str, Any] | None:
    """The worst of what `musls check` says."""
    scenario, parts = session.scenario, session.parts
    if parts.hover is None or scenario.start.kind == "state":
        return None
    separation = closest_in_plan(scenario.system, parts.plan)
    found = assess(scenario, parts.hover, separation, moments=1)
    return {
        "sentence": found.sentence,
        "thrust_margin": found.thrust_margin,
        "drone": found.weakest,
        "can_be_flown": found.can_be_flown,
    }


def _closest(session: Session) -> dict[str, Any] | None:
    """How close two drones came in the flight."""
    watch = session.separation
    return vars(watch.closest) if watch is not None and watch.closest is not None else None


def slack_threshold_n(scenario: Scenario) -> float:
    """Tension below which a cable of a scenario counts as slack."""
    system = scenario.system
    mass = system.carried_mass_kg if system.load is None else system.load.mass_kg
    return SLACK_SHARE * mass * scenario.physics.gravity_m_s2 / system.n_cables


def versions(firmware: Firmware | None) -> dict[str, str]:
    """What flew: version of musls, version and path of a real PX4."""
    try:
        flown = {"musls": metadata.version("musls")}
    except metadata.PackageNotFoundError:  # built by colcon
        flown = {"musls": "unknown"}
    if firmware is not None:
        flown |= {"px4": firmware.version, "px4_binary": str(firmware.binary)}
    return flown


def _speed(
    session: Session, result: FlightResult, compile_s: float, failure: MuslsError | None
) -> dict[str, Any]:
    """The flight's part of summary.json; the pace does not count what is compiled only once."""
    plant, scenario, hover = session.plant, session.scenario, session.parts.hover
    return {
        "sim_time_s": result.sim_time_s,
        "wall_time_s": result.wall_time_s,
        "compile_s": compile_s,
        "real_time_factor": result.sim_time_s / max(result.wall_time_s - compile_s, 1e-9),
        "step_size_s": plant.physics_step_s,
        "steps": result.periods * plant.substeps,
        "refined_periods": plant.refined_periods,
        "spurious_energy_j": plant.spurious_energy_j,
        "loop_step_us": result.wall_time_s / max(result.periods, 1) * 1e6,
        "plant_step_us": result.plant_step_us,
        "controller_step_us": result.controller_step_us,
        "bare_dart_step_us": plant.bare_step_us(),
        "links_per_cable": [cable.links for cable in scenario.system.cables],
        "n_drones": scenario.system.n_drones,
        "thrust_margin": None if hover is None else hover.thrust_margin,
        "sag_m": None if hover is None else hover.sag_m,
        "ends_on_ground": scenario.start.kind == "ground",
        "landed": result.landed,
        "interrupted": result.interrupted,
        "seed": scenario.seed,
        "versions": versions(session.parts.autopilot.firmware),
        "check": _check(session),
        "separation": _closest(session),
        "failure": str(failure) if failure else None,
        "events": [vars(event) for event in session.events.happened],
    }
