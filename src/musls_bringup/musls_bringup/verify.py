"""How well the figures of a flight are converged: it is flown again with finer steps."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from musls_analysis.comparison.convergence import Convergence
from musls_analysis.recordings.readers import read_recording
from musls_analysis.recordings.recording import Recording
from musls_analysis.report.summary import summarise
from musls_bringup.fly import fly_in_memory, slack_threshold_n
from musls_control.controllers import Controller
from musls_description.errors import ConfigError
from musls_sim.scenario.physics import CONTROL_PERIOD_S, MIN_STEP_S
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.session import Session

CABLES_OF_SEGMENTS = ("rigid_links", "elastic")

MakeController = Controller | Callable[[], Controller] | None
Flight = tuple[Recording, Mapping[str, Any]]
"""What was recorded, and what it was condensed to."""


def check_verifiable(scenario: Scenario, *, segments: bool) -> None:
    """Refuse what cannot be flown twice alike, and segments of cables that have none.

    Raises:
        ConfigError: It is flown by a real PX4 or in Gazebo, or its cables have no segments.
    """
    if scenario.autopilot.kind != "builtin":
        raise ConfigError(
            f"verify: autopilot.kind = {scenario.autopilot.kind}: only flights with the built-in "
            "autopilot repeat themselves"
        )
    if scenario.physics.engine.startswith("gazebo"):
        raise ConfigError(
            f"verify: physics.engine = {scenario.physics.engine}: steps of Gazebo are not halved"
        )
    if segments and scenario.cable_model not in CABLES_OF_SEGMENTS:
        raise ConfigError(
            f"verify: cable_model = {scenario.cable_model} has no segments: segments are halved "
            f"with {' and '.join(CABLES_OF_SEGMENTS)}"
        )


def verify(
    scenario: Scenario,
    first: Flight | None = None,
    *,
    controller: MakeController = None,
    segments: bool = False,
    force: bool = False,
) -> Convergence:
    """Fly a scenario with its step, half of it and a quarter of it, and compare.

    Args:
        scenario: With the built-in autopilot.
        first: The flight with the whole step, if it was flown already.
        controller: A controller of one's own: one that can be flown again, or what makes it.
        segments: Halve the length of the cables' segments together with the step.
        force: Fly in spite of too little thrust.

    Raises:
        ConfigError: It cannot be flown twice alike, or has no segments.
        SimulationDiverged: The physics failed.
    """
    check_verifiable(scenario, segments=segments)
    step_s = _step_s(scenario)
    flights = [first or fly_once(scenario, controller, force=force)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the flight itself has warned
        for parts in (2, 4):
            finer = _with_step(scenario, step_s / parts, parts if segments else 1)
            flights.append(fly_once(finer, controller, force=force))
    recordings, summaries = zip(*flights, strict=True)
    return Convergence.of(recordings, summaries, step_s)


def verify_result(
    scenario: Scenario, folder: Path, summary: dict[str, Any], *, segments: bool, force: bool
) -> Convergence:
    """Verify a flight that was flown into a folder; adds what is found to what is in there.

    The summary gets "verification", and `figures/convergence.png` shows distances over time.

    Raises:
        ConfigError: As `verify`.
    """
    first = read_recording(folder), summary
    found = verify(scenario, first, segments=segments, force=force)
    summary["verification"] = found.as_data()
    text = json.dumps(summary, indent=2, allow_nan=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")
    (folder / "figures").mkdir(exist_ok=True)
    found.plot().savefig(folder / "figures" / "convergence.png", dpi=150)
    return found


def fly_once(scenario: Scenario, controller: MakeController, *, force: bool) -> Flight:
    """Fly a scenario; nothing is written."""
    recording, result = fly_in_memory(Session(scenario, controller=controller, force=force))
    summary = summarise(
        recording,
        slack_threshold_n=slack_threshold_n(scenario),
        max_tension_n=result.max_tension_n.tolist(),
        peaks=result.tension_peaks,
    )
    return recording, summary


def _step_s(scenario: Scenario) -> float:
    """The step that a scenario is flown with."""
    step = scenario.physics.step_size_s
    if not isinstance(step, str):
        return step
    with Session(scenario, force=True) as session:
        return session.plant.physics_step_s


def _with_step(scenario: Scenario, step_s: float, finer_segments: int) -> Scenario:
    """The same scenario with another step, and cables of so many times as many segments."""
    step_s = CONTROL_PERIOD_S / round(CONTROL_PERIOD_S / step_s)
    if step_s < MIN_STEP_S:
        raise ConfigError(f"verify: physics.step_size_s: a quarter is below {MIN_STEP_S:g} s")
    system = scenario.system
    if finer_segments > 1:
        cables = tuple(replace(c, links=finer_segments * c.links) for c in system.cables)
        system = replace(system, cables=cables)
    physics = replace(scenario.physics, step_size_s=step_s)
    return replace(scenario, physics=physics, system=system)
