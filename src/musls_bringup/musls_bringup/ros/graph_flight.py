"""Flies a scenario through the ROS graph, with the same results as `musls fly`."""

from __future__ import annotations

import json
import os
import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from musls_analysis.recordings.bag import read_bag
from musls_analysis.recordings.recording import RecordedEvent
from musls_bringup.flight.fly import FlyOptions, program, versions, write_results
from musls_bringup.flight.results import Ending, result_folder
from musls_bringup.ros import processes
from musls_bringup.ros.parameters import drone_places_enu_m
from musls_bringup.ros.workspace import (
    OTHER_SOURCE,
    check_ros,
    fits_installed,
    installed_px4,
    px4_interface,
    px4_msgs,
)
from musls_control.agents.single import SingleAgent
from musls_control.agents.team import AgentsSpec
from musls_control.brief.brief import Brief, read_brief
from musls_control.brief.flown_by import setup_of
from musls_control.controllers import FormationSpec
from musls_control.px4.offboard import px4_namespace
from musls_control.real_flight.graph import STEP_S, control_of
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.schema import to_yaml
from musls_sim.px4.install import Firmware, Px4Error, find_px4
from musls_sim.px4.process import find_agent
from musls_sim.recording.signals import FAULT
from musls_sim.scenario.scenario import Scenario

# ---------- Real PX4s that fly the embedded simulator's drones


def offboard_of(scenario: Scenario) -> processes.NodeSpec:
    """The offboard node of a flight in the embedded simulator.

    A real PX4's local frame begins where the drone starts, the built-in autopilot's at the origin.
    """
    n = scenario.system.n_drones
    if scenario.autopilot.kind != "px4":
        return processes.offboard(n)
    places = (drone_places_enu_m(scenario).round(4) + 0.0).ravel().tolist()  # no -0.0
    namespaces = [f"/{px4_namespace(i)}" for i in range(1, n + 1)]  # of PX4's own client
    return processes.offboard(n, local_origin_enu_m=places, px4_namespaces=namespaces)


def guides_of(scenario: Scenario, file: Path) -> dict[str, processes.NodeSpec]:
    """Nodes that command the autopilots, by names: one, or the two of each drone with its agent."""
    if scenario.controller.kind != "agents" or scenario.autopilot.kind == "px4":
        return {"offboard": offboard_of(scenario)}
    drones = range(1, scenario.system.n_drones + 1)
    return {f"{node.executable}_{k}": node for k in drones for node in processes.agent(file, k)}


def check_control(brief: Brief) -> None:
    """Refuse, before anything starts, a controller that cannot fly through the graph."""
    if isinstance(brief.controller, AgentsSpec):
        SingleAgent(brief.controller, setup_of(brief, STEP_S), 1)
    else:
        control_of(brief, STEP_S)


def check_guided(scenario: Scenario) -> None:
    """Refuse controllers with real PX4s on the graph: set-points of the formation only.

    Through DDS the motion reached the formation node 0.14 to 0.4 s late, and a load was lost.
    """
    kind = scenario.controller.kind
    if kind != FormationSpec.kind:
        raise ConfigError(
            f"controller.kind = {kind}: motion reaches the formation node too late for it over "
            "DDS; with real PX4s on the graph choose controller.kind: formation, or fly it in "
            "process (musls fly --autopilot px4)"
        )


def check_px4(scenario: Scenario) -> None:
    """See that PX4 and its agent are here and can fly it, before anything starts."""
    if scenario.autopilot.kind == "px4":
        check_guided(scenario)
        import_module("musls_sim.px4.links")  # says that pymavlink is missing
        firmware = find_px4()
        find_agent()
        check_messages(firmware)


def check_messages(firmware: Firmware, prefix: Path = Path(sys.prefix)) -> None:
    """Refuse messages that are surely not those of the PX4 that is to fly.

    `prefix`: Python environment. The PX4's own messages are those of the sources in which it was
    built, else of its release; a build between two releases may have others than both.
    """
    installed = installed_px4(prefix)
    if installed is None:  # of a ROS installation, not ours to know
        return
    releases = px4_interface().releases
    release = "v{}.{}".format(*firmware.release) if firmware.release else ""
    if firmware.sources is not None:
        which = str(firmware.sources)
    elif release in releases and (firmware.is_released or installed in releases):
        which = release
    else:
        return
    if not fits_installed(px4_msgs(which), prefix):
        of = "another PX4" if installed == OTHER_SOURCE else installed
        raise Px4Error(
            f"{firmware.text} does not speak the messages of {of} that px4_msgs has here: "
            f"run ./musls ros setup --px4 {which}"
        )


@contextmanager
def px4_consoles(out: Path, work: Path, failures: Sequence[MuslsError]) -> Iterator[Path]:
    """Folder of PX4's consoles: joins the results; stays beside them where a flight failed.

    Messages name it there.
    """
    logs = Path(f"{os.path.realpath(out)}.px4-logs")
    shutil.rmtree(logs, ignore_errors=True)  # of an earlier failure
    try:
        yield logs
    except MuslsError:
        raise
    except BaseException:
        shutil.rmtree(logs, ignore_errors=True)
        raise
    if logs.is_dir() and not failures:
        shutil.move(logs, work / "px4")


@contextmanager
def bag_of(flights: Sequence[_Flight], bag: Path) -> Iterator[None]:
    """Remove a bag when an error comes before its flight begins."""
    try:
        yield
    except BaseException:
        if not any(flight.begun for flight in flights):
            shutil.rmtree(bag, ignore_errors=True)
        raise


START_S = 600.0
"""Real time in which the first stage must begin. The first run compiles, which takes minutes on a
machine with ten times as much work as it can do; nodes that end are noticed at once."""

LOOK_EVERY_S = 0.2
"""Time between two looks at the nodes."""

Progress = Callable[[float, float, str], None]
"""Told simulated time, real time since the first stage, stage."""


def fly_through_graph(
    scenario: Scenario,
    out: Path,
    options: FlyOptions,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda text: None,
    alert: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Fly with one process per node and write what `musls fly` writes.

    `alert` hears at once when the formation is late or its guard acts. Where a node, PX4 or agent
    ends in flight, what was flown is written without a report, with an event `fault`, and the
    error is raised.
    """
    check_ros()
    check_px4(scenario)
    failures: list[MuslsError] = []
    with (
        Ending() as ending,
        result_folder(out, overwrite=options.overwrite) as work,
        px4_consoles(out, work, failures) as consoles,
    ):
        file = work / "scenario.yaml"
        file.write_text(to_yaml(scenario), encoding="utf-8")
        check_control(read_brief(file))
        guides = guides_of(scenario, file)
        statistics = work / "simulator.json"
        controller = work / "controller.json"
        fault = work / "fault.txt"
        flights: list[_Flight] = []
        with bag_of(flights, work / "bag"), processes.Graph(work / "logs") as nodes:
            nodes.start(
                processes.simulator(
                    file,
                    realtime=options.realtime,
                    force=options.force,
                    statistics_file=str(statistics),
                    px4_logs=str(consoles),
                )
            )
            for name, node in guides.items():
                nodes.start(node, name=name)
            tells = {"stop_when_done": True, "progress": True, "fault_file": str(fault)}
            lines = _lines(nodes.start(processes.recorder(file, work / "bag", **tells), read=True))
            flight = _Flight(nodes, lines, progress, alert, ending, fault, list(guides))
            flights.append(flight)
            formation = processes.formation(
                file,
                autostart=True,
                start_with_listeners=1,
                agents="offboard" not in guides,
                statistics_file=str(controller),
                force="--force" if options.force else "",
            )
            interrupted = flight.run(formation)
            if flight.failure is not None:
                failures.append(flight.failure)
            nodes.end("formation")
            if (nodes.end("embedded_sim") or not statistics.is_file()) and not failures:
                failures.append(nodes.failure("embedded_sim"))
        numbers: dict[str, Any] = {"firmware": None}
        if statistics.is_file():  # a simulator that was killed left none
            numbers = json.loads(statistics.read_text(encoding="utf-8"))
            statistics.unlink()
        if controller.is_file():  # a formation that was killed left none
            numbers["controller"] = json.loads(controller.read_text(encoding="utf-8"))
            controller.unlink()
        firmware = numbers.pop("firmware")
        # Times are relative to the begin of the mission's first stage.
        speed: dict[str, Any] = {
            "through": "ros",
            "sim_time_s": flight.sim_s,
            "wall_time_s": flight.wall_s,
            "real_time_factor": flight.sim_s / max(flight.wall_s, 1e-9),
            **numbers,
            "lost_messages": flight.lost_messages,
            "failure": str(failures[0]) if failures else None,
            "versions": versions(Firmware(Path(firmware[0]), firmware[1]) if firmware else None),
            "interrupted": interrupted,
        }
        say("reading the bag")
        try:
            recording = read_bag(work / "bag")
        except ConfigError as error:  # the recorder was killed before it wrote anything
            raise failures[0] if failures else error from None
        if failures and not any(event.kind == FAULT for event in recording.events):
            last = RecordedEvent(
                flight.sim_s, FAULT, str(failures[0])
            )  # the recorder itself is gone
            recording = replace(recording, events=(*recording.events, last))
        fault.unlink(missing_ok=True)
        speed["events"] = [vars(event) for event in recording.events]
        summary = write_results(
            scenario,
            work,
            recording,
            speed,
            ending,
            say,
            report=options.report and not failures,
            command=f"{program()} ros fly {out / 'scenario.yaml'}",
        )
    for failure in failures:
        raise processes.NodeFailed(f"{failure}; what was flown is kept in {out}")
    return summary


class _Flight:
    """Follows the recorder's lines from start to end.

    Attributes:
        failure: Why it ended before its time; None if it did not.
        sim_s: Simulated time flown.
        wall_s: Real time that took.
        lost_messages: Number of messages that the bag lacks, by topic.
    """

    def __init__(
        self,
        nodes: processes.Graph,
        lines: queue.SimpleQueue[str | None],
        progress: Progress,
        alert: Callable[[str], None],
        ending: Ending,
        fault: Path,
        guides: Sequence[str],
    ) -> None:
        """`fault`: file for the recorder, with the reason; `guides`: names of `guides_of`."""
        self._guides = guides
        self._nodes = nodes
        self._lines = lines
        self._progress = progress
        self._alert = alert
        self._ending = ending
        self._fault = fault
        self.failure: MuslsError | None = None
        self._begin: tuple[float, float] | None = None
        self.sim_s = self.wall_s = 0.0
        self.lost_messages: dict[str, int] = {}

    @property
    def begun(self) -> bool:
        """Whether the mission's first stage has begun."""
        return self._begin is not None

    def run(self, formation: processes.NodeSpec) -> bool:
        """Start the formation when all is recorded, wait for the end; whether interrupted."""
        interrupted = False
        try:
            self._wait(formation)
        except KeyboardInterrupt:
            if self._begin is None:
                raise
            interrupted = True
        except MuslsError as error:
            if self._begin is None:
                raise
            self.failure = error
            self._fault.write_text(str(error), encoding="utf-8")
        self._ending.hold()
        if interrupted or self.failure is not None:
            self._nodes.end("recorder")
            for line in iter(self._lines.get, None):
                if line.startswith("lost "):
                    self.lost_messages = json.loads(line.partition(" ")[2])
        return interrupted

    def _wait(self, formation: processes.NodeSpec) -> None:
        give_up = time.monotonic() + START_S
        look_at = 0.0
        others = ["embedded_sim", *self._guides]
        while True:
            if time.monotonic() >= look_at:  # lines may come without a pause
                look_at = time.monotonic() + LOOK_EVERY_S
                self._nodes.check(others)
            try:
                line = self._lines.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                if self._begin is None and time.monotonic() > give_up:
                    line = self._nodes.last_line(self._guides[-1])
                    raise processes.NodeFailed(f"no stage within {START_S:.0f} s: {line}") from None
                continue
            if line is None:
                self._lines.put(None)  # whoever reads on finds the end, too
                self._nodes.check(others)
                raise self._nodes.failure("recorder")
            word, *rest = line.split()
            if word == "recording":
                self._nodes.start(formation)
                others.append("formation")
            elif word == "progress":
                self._note(float(rest[0]), rest[1])
            elif word == "alert":
                self._alert(line.partition(" ")[2])
            elif word == "lost":
                self.lost_messages = json.loads(line.partition(" ")[2])
            elif word == "done":
                return

    def _note(self, time_s: float, stage: str) -> None:
        now = time.monotonic()
        self._begin = self._begin or (time_s, now)
        self.sim_s = time_s - self._begin[0]
        self.wall_s = now - self._begin[1]
        self._progress(self.sim_s, self.wall_s, stage)


def _lines(stream: Any) -> queue.SimpleQueue[str | None]:
    """Lines of a stream as they come, None at its end."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line.strip())
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines
