"""Flights and models in Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from musls_analysis.comparison.summary import close_pass
from musls_analysis.recordings import readers
from musls_bringup.api.recording import Recording
from musls_bringup.catalogue.scenarios import AnyScenario, Overrides, load_scenario
from musls_bringup.flight.fly import FlyOptions, fly_in_memory, separation
from musls_bringup.flight.fly import fly as fly_into_folder
from musls_bringup.flight.progress import PREPARING, ProgressDisplay, is_watched
from musls_control.controllers import Controller
from musls_description.config.errors import (
    MuslsError,
    check_present_folder,
    install_command,
)
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.slung_system import RigSystem, slung_system
from musls_description.system.system_files import load_system
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session

if TYPE_CHECKING:
    from musls_analysis.linear import LinearModel
    from musls_sim.plants.massless.symbolic import SymbolicSystem


def fly(
    scenario: AnyScenario,
    *,
    controller: Controller | Callable[[], Controller] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    observers: Sequence[Observer] = (),
    force: bool = False,
    realtime: bool = False,
    report: bool = True,
    seed: int | None = None,
    set: Overrides = (),
    quiet: bool = False,
) -> Recording:
    """Fly a scenario to its end.

    Terminals and notebooks show how far it is; the logger "musls" is told stages (INFO) and events
    (WARNING). Whatever ends the flight before, Ctrl-C or an error, what was flown by then is the
    attribute `recording` of the exception (and in `out`).

    Args:
        scenario: Scenario to fly, see `load_scenario`.
        controller: Your own controller instead of the scenario's.
        out: Folder for what the command `musls fly` writes; None writes nothing.
        overwrite: Replace an older result in `out`.
        observers: Observers of the flight.
        force: Fly in spite of too little thrust.
        realtime: Whether to fly no faster than real time.
        report: Write report.html, too (with `out`).
        seed: Seed of all noise instead of the scenario's.
        set: Keys to change, see `load_scenario`.
        quiet: Show no progress.

    Returns:
        The recording of the flight; `warnings` says why it is not valid.

    Warns:
        InvalidFlightWarning: The same, and drones that passed each other close by.

    Raises:
        ConfigError: The scenario cannot work.
        SimulationDiverged: The physics failed.
        UserCodeError: The controller or your other code failed.
        KeyboardInterrupt: Ctrl-C ended the flight, or left its report out.
    """
    if set or not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, set)
    if seed is not None:
        scenario = load_scenario(scenario, {"seed": seed})
    parameters = scenario.autopilot.parameters
    try:
        with ExitStack() as stack:
            watching, say = list(observers), lambda text: None
            if not quiet and is_watched():
                display = stack.enter_context(ProgressDisplay(scenario.name, PREPARING))
                watching = [*observers, display.flight()]
                say = display.update
            if out is None:
                session = Session(scenario, controller=controller, observers=watching, force=force)
                recording = fly_in_memory(session, realtime=realtime)
                watch = session.separation
                apart = None if watch is None else separation(session, watch)
            else:
                check_present_folder()
                options = FlyOptions(overwrite, realtime, force, report)
                summary = fly_into_folder(
                    scenario, Path(out), options, watching, say, controller=controller
                )
                recording = readers.read_recording(out)
                apart = summary["separation"]
        recording = Recording.of(recording, parameters)
        _warn(recording, apart)
        return recording
    except BaseException as error:
        if hasattr(error, "recording"):
            error.recording = Recording.of(error.recording, parameters)
        raise


class InvalidFlightWarning(UserWarning):
    """The flight is invalid, or drones passed each other closely."""


def _warn(recording: Recording, apart: Mapping[str, Any] | None) -> None:
    """Say in Python, too, what the command says first."""
    lines = [f"invalid flight: {line}" for line in recording.warnings]
    for text in [*lines, *filter(None, [close_pass(apart)])]:
        warnings.warn(text, InvalidFlightWarning, stacklevel=3)


def linearise(
    scenario: AnyScenario, at: float | None = None, *, inputs: str = "rotor_speeds"
) -> LinearModel:
    """Linear model of a scenario's plant, open loop: A, B, C, D with names, and modes.

    Args:
        scenario: Scenario to linearise, see `load_scenario`.
        at: Time of its flight [s]; None for hanging in formation at rest.
        inputs: "rotor_speeds" (commanded) or "forces" (thrust and moments of each drone, ideal).

    Raises:
        ConfigError: The plant has no linear model there, `inputs` is unknown, or the flight is over
            before `at`.
    """
    from musls_analysis.linear import linearise as linearised

    flight_scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    return linearised(flight_scenario, at, inputs)


def symbolic(
    system: RigSystem | Mapping[str, Any] | str, *, gravity_m_s2: float = STANDARD_GRAVITY_M_S2
) -> SymbolicSystem:
    """The massless model of a system as CasADi functions: dynamics, tensions, lengths.

    Args:
        system: Load, drones and cables, or the name of a shipped system or file.
        gravity_m_s2: Acceleration of gravity.

    Raises:
        ConfigError: The system has no such model: it is a rig.
        MuslsError: CasADi, the extra `mpc`, is not installed.
    """
    try:
        from musls_sim.plants.massless.symbolic import symbolic as functions_of
    except ModuleNotFoundError as error:
        if error.name != "casadi":
            raise
        raise MuslsError(f"musls.symbolic needs CasADi: {install_command('casadi')}") from None

    rig = system if isinstance(system, RigSystem) else load_system(system)
    return functions_of(slung_system(rig, "musls.symbolic"), gravity_m_s2)
