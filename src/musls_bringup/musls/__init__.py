"""Simulates several quadrotors that carry one slung load by flexible cables.

    import musls

    scenario = musls.load_scenario("circle", {"system.cables.links": 29})
    run = musls.fly(scenario)
    run.body("load").position_enu_m, run.cable(1).tension_n, run.errors()

Nothing is written unless a folder is named. Importing this module is quick: each name brings in
what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from musls_bringup.api import (
        Recording,
        compare,
        fly,
        load_scenario,
        read_recording,
        replay,
        sweep,
    )
    from musls_bringup.verify import verify
    from musls_control.controllers import CONTROLLERS as controllers
    from musls_control.controllers import Controller, ControlLevel, ControlSetup
    from musls_control.estimate import Estimate
    from musls_control.reference import LoadReference
    from musls_control.trajectories import TRAJECTORIES as trajectories
    from musls_control.trajectories import StageTraits as Trajectory
    from musls_description.errors import ConfigError, MuslsError
    from musls_description.library import load_system
    from musls_description.schema import spec
    from musls_sim.plants import PLANTS as plants
    from musls_sim.plants.interface import SimulationDiverged
    from musls_sim.scenario.events import EVENTS as events
    from musls_sim.scenario.events import Event
    from musls_sim.scenario.scenario import Scenario
    from musls_sim.session.loop import Observer
    from musls_sim.session.session import Session

_WHERE = {
    "load_scenario": "musls_bringup.api:load_scenario",
    "load_system": "musls_description.library:load_system",
    "fly": "musls_bringup.api:fly",
    "replay": "musls_bringup.api:replay",
    "compare": "musls_bringup.api:compare",
    "sweep": "musls_bringup.api:sweep",
    "verify": "musls_bringup.verify:verify",
    "read_recording": "musls_bringup.api:read_recording",
    "Session": "musls_sim.session.session:Session",
    "Observer": "musls_sim.session.loop:Observer",
    "Scenario": "musls_sim.scenario.scenario:Scenario",
    "Recording": "musls_bringup.api:Recording",
    "Controller": "musls_control.controllers:Controller",
    "ControlLevel": "musls_control.controllers:ControlLevel",
    "ControlSetup": "musls_control.controllers:ControlSetup",
    "Estimate": "musls_control.estimate:Estimate",
    "LoadReference": "musls_control.reference:LoadReference",
    "Trajectory": "musls_control.trajectories:StageTraits",
    "spec": "musls_description.schema:spec",
    "controllers": "musls_control.controllers:CONTROLLERS",
    "trajectories": "musls_control.trajectories:TRAJECTORIES",
    "events": "musls_sim.scenario.events:EVENTS",
    "Event": "musls_sim.scenario.events:Event",
    "plants": "musls_sim.plants:PLANTS",
    "MuslsError": "musls_description.errors:MuslsError",
    "ConfigError": "musls_description.errors:ConfigError",
    "SimulationDiverged": "musls_sim.plants.interface:SimulationDiverged",
}

__all__ = [
    "ConfigError",
    "ControlLevel",
    "ControlSetup",
    "Controller",
    "Estimate",
    "Event",
    "LoadReference",
    "MuslsError",
    "Observer",
    "Recording",
    "Scenario",
    "Session",
    "SimulationDiverged",
    "Trajectory",
    "compare",
    "controllers",
    "events",
    "fly",
    "load_scenario",
    "load_system",
    "plants",
    "read_recording",
    "replay",
    "spec",
    "sweep",
    "trajectories",
    "verify",
]

try:
    __version__ = version("musls")
except PackageNotFoundError:  # built by colcon, package by package
    __version__ = version("musls_bringup")


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _WHERE:
        raise AttributeError(f"module 'musls' has no attribute '{name}'")
    module, _, attribute = _WHERE[name].partition(":")
    found = getattr(import_module(module), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """All public names."""
    return [*__all__, "__version__"]
