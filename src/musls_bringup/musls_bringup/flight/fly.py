"""Fly a scenario and write everything that comes of it into one folder."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from musls_analysis.comparison.rotor_margins import least_margin
from musls_analysis.comparison.summary import summarise
from musls_analysis.figures.convergence import Convergence
from musls_analysis.recordings.bag import read_bag, recording_from
from musls_analysis.recordings.recording import Recording, main_stages
from musls_bringup.catalogue.shipped import VERSION
from musls_bringup.flight.results import Ending, StopRequested, result_folder
from musls_control.brief.findings import findings
from musls_control.brief.margins import margins_of
from musls_control.child_processes import worker_count, worker_processes
from musls_control.controllers import Controller
from musls_control.mission.plan import closest_in_plan
from musls_description.config.errors import MuslsError
from musls_description.config.schema import to_yaml
from musls_description.numerics.compiled import CompiledStage
from musls_sim.px4.install import Firmware, Px4Error
from musls_sim.recording import BagRecorder
from musls_sim.recording.recorder import MemoryRecorder
from musls_sim.recording.signals import Asked
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.collisions import SeparationWatch
from musls_sim.session.compiled_stages.control import fly_autopilots
from musls_sim.session.compiled_stages.world import capture_motion
from musls_sim.session.guidance import MissionGuidance
from musls_sim.session.loop import Loop, Observer, Parts
from musls_sim.session.session import FlightResult, Session

SLACK_SHARE = 0.05
"""A cable counts as slack while its tension at the load is below this share of its static load."""

COMPILES_S = 0.5
"""A control period that takes longer has compiled something."""

OFTEN_NEEDED: Parts = (capture_motion, fly_autopilots)
"""Compiled stages that nearly all flights need in addition to those of their plant, which take as
long to compile."""

Flight = tuple[Recording, Mapping[str, Any]]
"""A recording and its summary."""

Verifier = Callable[[Flight], Convergence]
"""Flies again to find how well a flight is converged."""


@dataclass(frozen=True)
class FlyOptions:
    """Options of a flight.

    Attributes:
        realtime: Whether to fly no faster than real time.
        force: Fly in spite of too little thrust.
        report: Write report.html.
    """

    overwrite: bool = False
    realtime: bool = False
    force: bool = False
    report: bool = True


class FlightEnded(StopRequested):
    """A signal ended a flight, or its report: no number of it counts as one of a whole flight.

    Attributes:
        summary: Content of its summary.json.
        recording: Recording of the flight so far.
    """

    def __init__(self, summary: dict[str, Any], recording: Recording, out: Path) -> None:
        what = "what was flown" if summary["interrupted"] else "the flight"
        super().__init__(signal.Signals[summary["ended_by"]], f"{what} is kept in {out}")
        self.summary = summary
        self.recording = recording


def program() -> str:
    """`./musls`, the script of a checkout, or `musls` where only the packages are installed."""
    return "./musls" if (Path(__file__).parents[4] / "musls").is_file() else "musls"


def fly(
    scenario: Scenario,
    out: Path,
    options: FlyOptions,
    observers: Sequence[Observer] = (),
    say: Callable[[str], None] = lambda text: None,
    controller: Controller | Callable[[], Controller] | None = None,
    verifier: Verifier | None = None,
    live: Callable[[Session], Observer] | None = None,
) -> dict[str, Any]:
    """Fly and write bag, scenario, summary and report; gives the content of summary.json.

    `say` is called with each task after the flight; `live` makes the viewer of the flight. Errors
    before the flight leave nothing behind. After its begin what was flown is kept in `out`
    (consoles of failed PX4s beside it), without a report, and is the error's `recording`.

    Raises:
        FlightEnded: A signal ended it; "ended_by" in the summary is its name.
    """
    failure: BaseException | None = None
    with (
        Ending() as ending,
        result_folder(out, overwrite=options.overwrite) as work,
        second_compiler(OFTEN_NEEDED) if options.report else nullcontext(),  # a flight by itself
    ):
        logs = Path(f"{os.path.realpath(out)}.px4-logs")  # outlives a flight that PX4 fails
        session = Session(
            scenario,
            controller=controller,
            observers=observers,
            force=options.force,
            autopilot_logs=logs,
        )
        start = _Start(ending)
        try:
            recorder = BagRecorder(work / "bag", scenario.system, **_rates(session))
            session.observe_with(recorder)
            session.observe_with(_Narrator())
            if live is not None:
                session.observe_with(live(session))
            session.observe_with(start)
            (work / "scenario.yaml").write_text(to_yaml(scenario), encoding="utf-8")
            with keeping(session, recorder):
                session.run(realtime=options.realtime)
        except BaseException as error:
            if not (session.tick and recorder.messages):
                shutil.rmtree(work / "bag", ignore_errors=True)
                if not isinstance(error, Px4Error):  # its message says where the consoles are
                    shutil.rmtree(logs, ignore_errors=True)
                raise
            failure = error
        if interrupted := isinstance(failure, KeyboardInterrupt):
            ending.number = ending.number or signal.SIGINT  # raised by somebody else
        with keeping(session, recorder):
            recorder.close()  # goes on where a signal broke that off
            if logs.is_dir() and not isinstance(failure, Px4Error):
                shutil.move(logs, work / "px4")
            result = session.result()
            facts = _facts(session, result, start.compile_s, failure)
            write_messages(session, work)
            if interrupted:
                say(f"ended by {ending.name}: writing the report; Ctrl-C leaves it out")
            try:
                summary = write_results(
                    scenario,
                    work,
                    recording_from(recorder),
                    facts,
                    ending,
                    say,
                    command=f"{program()} fly {out / 'scenario.yaml'}",
                    report=options.report and (failure is None or interrupted),
                    verifier=None if failure else verifier,
                )
            except MuslsError as error:  # of a flight that was to verify this one
                failure = error
    if failure is None or interrupted:
        if summary["ended_by"]:
            raise FlightEnded(summary, _flown(session, recorder), out)
        return summary
    if isinstance(failure, MuslsError):
        failure.args = (f"{failure}; what was flown is kept in {out}",)
    raise failure


@contextmanager
def second_compiler(first: Parts) -> Iterator[None]:
    """Within it stages are compiled in another process, too, where there is a core for it.

    Numba's cache on disk hands them over. A stage that is needed before its turn comes is not
    compiled there, but where it is needed.

    Args:
        first: Stages to begin with; those that others call by name follow.
    """
    if os.name != "posix" or worker_count(None, 2) == 1:
        yield
        return
    compilations: dict[CompiledStage, Future[None]] = {}
    with ExitStack() as closing:
        pool: Executor | None = None

        def compile_beside(stages: Sequence[CompiledStage]) -> None:
            nonlocal pool
            for stage in stages:
                if stage in compilations or stage.is_kept:
                    continue
                pool = pool or closing.enter_context(worker_processes(1))
                compilations[stage] = pool.submit(stage.compile)
                stage.wait = partial(_wait, compilations[stage])

        CompiledStage.compile_beside = compile_beside
        closing.callback(setattr, CompiledStage, "compile_beside", None)
        compile_beside(first)
        yield


def _wait(compilation: Future[None]) -> None:
    """Wait for a compilation if it has begun; what it fails to do is done where it is needed."""
    if not compilation.cancel():
        compilation.exception()


@contextmanager
def keeping(session: Session, recorder: MemoryRecorder) -> Iterator[None]:
    """Give what ends a flight, or the writing of its results, the attribute `recording`."""
    try:
        yield
    except BaseException as error:
        if session.tick:
            error.recording = _flown(session, recorder)  # type: ignore[attr-defined]
        raise


def _flown(session: Session, recorder: MemoryRecorder) -> Recording:
    recording = recording_from(recorder, f"flight {session.scenario.name}")
    return replace(recording, obstacles=session.scenario.world.surfaces)


def fly_run(scenario: Scenario, folder: Path | None = None) -> Flight:
    """Fly without a report: a run of a sweep; without a folder nothing is written.

    Then the summary does not say what `musls check` would.
    """
    if folder is not None:
        summary = fly(scenario, folder, FlyOptions(report=False))
        return read_bag(folder / "bag"), summary
    session = Session(scenario)
    start = _Start()
    recording = fly_fast(session, start)
    facts = _facts(session, session.result(), start.compile_s, None, checked=False)
    return recording, summary_of(scenario, recording, facts, None)


def fly_fast(session: Session, *observers: Observer) -> Recording:
    """Fly a session to its end; shapes of cables are not recorded."""
    recorder = _recorder(session, shapes=False)
    for observer in observers:
        session.observe_with(observer)
    session.run()
    return _flown(session, recorder)


def fly_in_memory(session: Session, *, realtime: bool = False, shapes: bool = True) -> Recording:
    """Fly a session to its end; nothing is written. `shapes`: record those of the cables, too."""
    recorder = _recorder(session, shapes=shapes)
    session.observe_with(_Narrator())
    with keeping(session, recorder):
        session.run(realtime=realtime)
    return _flown(session, recorder)


def _recorder(session: Session, *, shapes: bool) -> MemoryRecorder:
    """A recorder in memory, which observes the session."""
    rates = _rates(session) | ({} if shapes else {"shape_rate_hz": None})
    recorder = MemoryRecorder(session.scenario.system, **rates)
    session.observe_with(recorder)
    return recorder


def _rates(session: Session) -> dict[str, Any]:
    """Rates of recording and what else is asked for, for a recorder."""
    spec = session.scenario.recording
    flying = session.flying
    has_network = flying is not None and flying.network is not None
    readings = [sensor.readings for sensor in session.scenario.sensors]
    return {
        "rate_hz": spec.rate_hz,
        "shape_rate_hz": spec.shape_rate_hz,
        "step_period_s": session.plant.period_s,
        "asked": Asked(readings, spec.tensions, has_network),
    }


LOG = logging.getLogger("musls")
LOG.addHandler(logging.NullHandler())  # silent until a program sets up its logging


class _Narrator(Observer):
    """Logs stages and events through Python's logging."""

    every = 1 << 60

    def on_stage(self, time_s: float, name: str) -> None:
        LOG.info("%.2f s: stage %s", time_s, name)

    def on_event(self, time_s: float, kind: str, what: str) -> None:
        LOG.warning("%.2f s: %s: %s", time_s, kind, what)


class _Start(Observer):
    """Sees when the flight begins and ends; a real autopilot takes long to start.

    `compile_s` is the time of the first control period, where it is so long that it compiled.
    """

    every = 1

    def __init__(self, ending: Ending | None = None) -> None:
        self._ending = ending
        self._begin_s = 0.0
        self.compile_s = 0.0

    def start(self, loop: Loop) -> None:
        self._begin_s = monotonic()

    def observe(self, time_s: float, loop: Loop) -> None:
        if time_s > 0.0 and self._begin_s:
            first_s = monotonic() - self._begin_s
            self._begin_s = 0.0
            self.compile_s = first_s if first_s > COMPILES_S else 0.0
            self.every = 1 << 60  # has seen what it was to see

    def close(self) -> None:
        if self._ending is not None:
            self._ending.hold()


def write_results(
    scenario: Scenario,
    work: Path,
    recording: Recording,
    facts: Mapping[str, Any],
    ending: Ending,
    say: Callable[[str], None],
    *,
    command: str,
    report: bool = True,
    verifier: Verifier | None = None,
) -> dict[str, Any]:
    """Write summary and report of a flight; `facts` is what no recording says of it."""
    recording = replace(recording, obstacles=scenario.world.surfaces)
    summary = summary_of(scenario, recording, facts, ending.name)
    write_summary(summary, work)
    if not (report or verifier):
        return summary
    from musls_analysis.report import report as page

    try:
        with ending.skippable():
            more = []
            if verifier:
                from musls_analysis.figures.flight import draw_convergence  # imports matplotlib

                verified = verifier((recording, summary))
                names = dict.fromkeys(stage.name for stage in main_stages(recording.stages))
                verdict = {"sentence": verified.sentence(list(names))}
                summary["verification"] = verdict | verified.as_data()
                write_summary(summary, work)
                more = [draw_convergence(verified, work / "figures")]
            if report:
                say("writing the report")
                page.write_report(recording, summary, work, scenario, command, more)
    except KeyboardInterrupt:
        shutil.rmtree(work / "figures", ignore_errors=True)
        (work / "report.html").unlink(missing_ok=True)
        summary["ended_by"] = ending.name or "SIGINT"
    return summary


def summary_of(
    scenario: Scenario, recording: Recording, facts: Mapping[str, Any], ended_by: str | None
) -> dict[str, Any]:
    """The content of summary.json; `facts` is what no recording says of the flight."""
    figures = summarise(
        recording,
        slack_threshold_n=slack_threshold_n(scenario),
        controller=scenario.controller.kind,
        parameters=scenario.autopilot.parameters,
    )
    hardest = least_margin(recording, scenario.system)
    extras = {
        "ended_by": ended_by,
        "inextensible": scenario.inextensible,
        "least_thrust_margin": None if hardest is None else hardest[0],
    }
    if figures["warnings"] and facts.get("check"):  # the flight has shown better
        facts = {**facts, "check": {**facts["check"], "can_be_flown": False}}
    return {"scenario": scenario.name, **extras, **facts, **figures}


def write_summary(summary: Mapping[str, Any], folder: Path) -> None:
    """Write summary.json."""
    text = json.dumps(summary, indent=2, allow_nan=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def write_messages(session: Session, folder: Path) -> None:
    """Write messages.csv: what drones that decide for themselves sent each other, and when."""
    network = None if session.flying is None else session.flying.network
    if network is None:
        return
    lines = ["from,to,sent_s,arrived_s"]
    for (source, to), link in network.links.items():
        for sent_s, arrived_s in link.messages.tolist():
            came = "" if arrived_s != arrived_s else f"{arrived_s:.6f}"
            lines.append(f"{source},{to},{sent_s:.6f},{came}")
    (folder / "messages.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _check(session: Session) -> dict[str, Any] | None:
    """Findings and margins before the flight; None if no drone carries anything."""
    brief = session.scenario.brief
    plan = session.components.plan
    margins = margins_of(brief, plan, moments=1)
    if margins is None:
        return None
    results = [*findings(brief), *findings(brief, plan)]
    refusing = [finding.text for finding in results if finding.refuses]
    return {
        "sentence": "; ".join([*refusing, margins.sentence]),
        "thrust_margin": margins.thrust_margin,
        "drone": margins.weakest,
        "can_be_flown": not refusing,
    }


def separation(session: Session, watch: SeparationWatch) -> dict[str, Any] | None:
    """Smallest distance of rotor tips [m] in the flight, its place, and that in the plan.

    None where there is one drone only.
    """
    closest = watch.closest
    plan_separation = None
    if isinstance(session.guidance, MissionGuidance):
        plan_separation = closest_in_plan(session.scenario.system, session.components.plan)
    if closest is None:
        return None
    return vars(closest) | {"planned_tips_m": plan_separation and plan_separation.tips_m}


def slack_threshold_n(scenario: Scenario) -> float:
    """Tension below which a cable of a scenario counts as slack."""
    system = scenario.system
    mass = system.carried_mass_kg if system.load is None else system.load.mass_kg
    return SLACK_SHARE * mass * scenario.physics.gravity_m_s2 / system.n_cables


def versions(firmware: Firmware | None) -> dict[str, str]:
    """Version of musls, version and path of a real PX4."""
    px4 = {"px4": firmware.version, "px4_binary": str(firmware.binary)} if firmware else {}
    return {"musls": VERSION, **px4}


def _facts(
    session: Session,
    result: FlightResult,
    compile_s: float,
    failure: BaseException | None,
    *,
    checked: bool = True,
) -> dict[str, Any]:
    """The flight's part of summary.json; the pace does not count what is compiled only once."""
    physics = session.scenario.physics
    watch = session.separation
    interrupted = isinstance(failure, KeyboardInterrupt)
    return {
        "sim_time_s": result.sim_time_s,
        "wall_time_s": result.wall_time_s,
        "compile_s": compile_s,
        "real_time_factor": result.sim_time_s / max(result.wall_time_s - compile_s, 1e-9),
        **session.numbers(),
        "accuracy": physics.accuracy if physics.step_size_s == "auto" else None,
        "spurious_energy_j": session.plant.spurious_energy_j,
        "loop_step_us": result.wall_time_s / max(result.periods, 1) * 1e6,
        "controller_step_us": result.controller_step_us,
        "landed": result.landed,
        "interrupted": interrupted or result.interrupted,
        "versions": versions(session.components.autopilot.firmware),
        "check": _check(session) if checked else None,
        "separation": watch and separation(session, watch),
        "obstacles": session.collisions.distances() if session.collisions else [],
        "failure": None if failure is None or interrupted else str(failure),
        "events": [vars(event) for event in session.events.happened],
    }
