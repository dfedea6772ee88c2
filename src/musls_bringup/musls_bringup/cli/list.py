"""`musls list`: what is shipped."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.shipped import SCENARIOS, SWEEPS
from musls_description.errors import ConfigError, near_names
from musls_description.keys import Keys, summary
from musls_description.strict_yaml import shown


def run(
    what: Annotated[
        str | None,
        typer.Argument(
            help="systems, scenarios, sweeps, cable-models, trajectories, controllers, autopilots, "
            "events or readers.",
            show_default="all of them",
        ),
    ] = None,
) -> None:
    """Lists what is shipped."""
    if what is not None and what not in KINDS:
        raise ConfigError(f"nothing to list called '{shown(what)}': {near_names(what, KINDS)}")
    for kind in KINDS if what is None else (what,):
        rows = KINDS[kind]()
        width = max(len(name) for name, _ in rows)
        if what is None:
            typer.echo(f"{kind}:")
        for name, text in rows:
            typer.echo(f"{'' if what else '  '}{name:{width}}  {text}")
            for line in PARAMETERS[kind](name) if what in PARAMETERS else ():
                typer.echo(f"    {line}")


def _systems() -> list[tuple[str, str]]:
    from musls_description.library import load_system, system_names

    return [(name, load_system(name).description) for name in system_names()]


def _described(folder: Path) -> list[tuple[str, str]]:
    """Names and descriptions of the YAML files of a folder."""
    from musls_description.strict_yaml import read_yaml

    return [(p.stem, read_yaml(p).get("description", "")) for p in sorted(folder.glob("*.yaml"))]


def _registered(module: str, registry: str) -> list[tuple[str, str]]:
    """Names and first lines of the docstrings of a registry's content."""
    entries = getattr(import_module(module), registry)
    return [(name, summary(thing)) for name, thing in entries.items()]


def _cable_models() -> list[tuple[str, str]]:
    from musls_analysis.replay.replay import CABLE_MODELS
    from musls_sim.plants import PLANTS

    flown = [(name, summary(build)) for name, build in PLANTS.items()]
    replayed = [(name, f"replay only: {text}") for name, text in CABLE_MODELS.items()]
    return [*flown, *(its for its in replayed if its[0] not in PLANTS)]


def _readers() -> list[tuple[str, str]]:
    from musls_analysis.recordings.readers import READERS

    return [
        ("bag", "rosbag2 folder, or its .mcap or .db3 file"),
        *((name, reader.what) for name, reader in READERS.items()),
    ]


def _trajectory_parameters(name: str) -> list[str]:
    """One line for each key: name, default, meaning."""
    from musls_bringup.cli.describe import schema_of

    keys = Keys(schema_of("scenario"))
    below = keys.below(keys.find(f"mission.stages.{name}")[0])
    found = [key for key in below if key.name != "kind"]
    wide = max((len(key.name) for key in found), default=0)
    widest = max((len(key.default_text) for key in found), default=0)
    return [f"{key.name:{wide}}  {key.default_text:{widest}}  {key.meaning}" for key in found]


KINDS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "systems": _systems,
    "scenarios": partial(_described, SCENARIOS),
    "sweeps": partial(_described, SWEEPS),
    "cable-models": _cable_models,
    "trajectories": partial(_registered, "musls_control.trajectories", "TRAJECTORIES"),
    "controllers": partial(_registered, "musls_control.controllers", "CONTROLLERS"),
    "autopilots": partial(_registered, "musls_sim.scenario.scenario", "AUTOPILOTS"),
    "events": partial(_registered, "musls_sim.scenario.events", "EVENTS"),
    "readers": _readers,
}

PARAMETERS = {"trajectories": _trajectory_parameters}
"""Further lines for each name when only its sort is listed."""
