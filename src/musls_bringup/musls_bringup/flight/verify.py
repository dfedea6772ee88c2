"""Convergence of a flight's figures: it is flown again with finer steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from musls_analysis.figures.convergence import Convergence
from musls_bringup.catalogue.scenarios import AnyScenario, load_scenario
from musls_bringup.flight.fly import Flight, fly_in_memory, summary_of
from musls_control.controllers import Controller
from musls_description.config.errors import ConfigError
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session
from musls_sim.specs.physics import CONTROL_PERIOD_S, FINEST_ACCURACY, MIN_STEP_S

LEVELS = 3
MOST_LEVELS = 6
"""Flights that are compared: each halves the step, and with `segments` each segment."""

CABLES_OF_SEGMENTS = ("rigid_links", "elastic")


def check_verifiable(scenario: Scenario, *, segments: bool, levels: int = LEVELS) -> None:
    """Refuse what cannot be flown twice alike, or not with finer steps and segments."""
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
    step = scenario.physics.step_size_s
    smallest_s = CONTROL_PERIOD_S if isinstance(step, str) else step
    finest = 2 ** (levels - 1)
    finer_scenario(scenario, smallest_s, finest, segments=segments)


def verify(
    scenario: AnyScenario,
    first: Flight | None = None,
    *,
    controller: Controller | Callable[[], Controller] | None = None,
    segments: bool = False,
    levels: Annotated[int, Field(ge=LEVELS, le=MOST_LEVELS)] = LEVELS,
    force: bool = False,
    observers: Sequence[Observer] = (),
) -> Convergence:
    """Fly a scenario with its step, half of it and a quarter of it, and compare.

    `physics.accuracy` becomes finer with the step, so that jerks are followed with finer ones, too.

    Args:
        scenario: Scenario with the built-in autopilot, see `load_scenario`.
        first: The flight with the whole step, if it was flown already.
        controller: Your own controller: one that can be flown again, or what makes it.
        segments: Halve the length of the cables' segments together with the step.
        levels: Flights, each with half the step of the one before.
        force: Fly in spite of too little thrust.
        observers: Observers of the flights.

    Raises:
        ConfigError: It cannot be flown twice alike, or has no segments.
        SimulationDiverged: The physics failed.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    check_verifiable(scenario, segments=segments, levels=levels)
    step_s = chosen_step_s(scenario)
    again = partial(fly_once, controller=controller, observers=observers, force=force)
    flights = [first or again(scenario)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the flight itself has warned
        for parts in [2**level for level in range(1, levels)]:
            flights.append(again(finer_scenario(scenario, step_s, parts, segments=segments)))
    recordings, summaries = zip(*flights, strict=True)
    return Convergence.of(recordings, summaries, step_s, segments=segments)


def fly_once(scenario: Scenario, **session_options: Any) -> Flight:
    """Fly in memory, with arguments of `Session`."""
    recording = fly_in_memory(Session(scenario, **session_options))
    return recording, summary_of(scenario, recording, {}, None)


def chosen_step_s(scenario: Scenario) -> float:
    """Step of the physics, also where the plant chooses it."""
    step = scenario.physics.step_size_s
    if not isinstance(step, str):
        return step
    with Session(scenario, force=True) as session:
        return session.plant.physics_step_s


def finer_scenario(
    scenario: Scenario, step_s: float, parts: int, *, segments: bool = False
) -> Scenario:
    """The scenario with smaller steps and more segments.

    Plants are of second order: the accuracy asked for follows the square of the step.
    """
    step_s = CONTROL_PERIOD_S / round(parts * CONTROL_PERIOD_S / step_s)
    if step_s < MIN_STEP_S:
        raise ConfigError(
            f"verify: physics.step_size_s = {scenario.physics.step_size_s}: its finest part is "
            f"below {MIN_STEP_S:g} s"
        )
    system = scenario.system
    if segments:
        try:
            cables = tuple(replace(c, links=parts * c.links) for c in system.cables)
        except ConfigError as error:
            raise ConfigError(f"verify: {parts} times as many links: {error}") from error
        system = replace(system, cables=cables)
    accuracy = max(scenario.physics.accuracy / parts**2, FINEST_ACCURACY)
    physics = replace(scenario.physics, step_size_s=step_s, accuracy=accuracy)
    return replace(scenario, physics=physics, system=system)
