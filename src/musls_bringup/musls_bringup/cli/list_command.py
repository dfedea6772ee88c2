"""`musls list`: what is shipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from musls_description.errors import ConfigError, near_names
from musls_description.keys import meanings, summary
from musls_description.strict_yaml import shown

EXAMPLE = "musls list systems"

PACKAGE = Path(__file__).parents[1]


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
    from musls_description.schema import read_yaml

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
    """One line for each key: name, default, meaning as the class documents it."""
    from musls_control.trajectories import TRAJECTORIES
    from musls_description.schema import to_data

    kind = TRAJECTORIES[name]
    if not is_dataclass(kind):  # a class of one's own need not be a specification
        return []
    told = meanings(kind)
    keys = []
    for key in (key for key in fields(kind) if key.name != "kind"):
        default = key.default
        if key.default_factory is not MISSING:
            default = key.default_factory()
        if isinstance(default, FieldInfo):  # pydantic keeps what `Field(...)` said
            default = default.get_default(call_default_factory=True, validated_data={})
        known = default is not MISSING and default is not PydanticUndefined
        value = _short(to_data(default)) if known else "(needed)"
        keys.append((key.name, value, told.get(key.name, "")))
    wide = max((len(key) for key, _, _ in keys), default=0)
    widest = max((len(value) for _, value, _ in keys), default=0)
    return [f"{key:{wide}}  {value:{widest}}  {text}".rstrip() for key, value, text in keys]


def _short(value: Any) -> str:
    """A default as it is written in YAML; mappings are left to the documentation."""
    if isinstance(value, dict):
        return "{...}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_short, value)) + "]"
    return "null" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


KINDS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "systems": _systems,
    "scenarios": partial(_described, PACKAGE / "scenarios"),
    "sweeps": partial(_described, PACKAGE / "sweeps"),
    "cable-models": _cable_models,
    "trajectories": partial(_registered, "musls_control.trajectories", "TRAJECTORIES"),
    "controllers": partial(_registered, "musls_control.controllers", "CONTROLLERS"),
    "autopilots": partial(_registered, "musls_sim.scenario.scenario", "AUTOPILOTS"),
    "events": partial(_registered, "musls_sim.scenario.events", "EVENTS"),
    "readers": _readers,
}

PARAMETERS = {"trajectories": _trajectory_parameters}
"""Further lines for each name when only its sort is listed."""
