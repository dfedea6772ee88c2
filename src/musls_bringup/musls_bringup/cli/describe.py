"""`musls describe`, `musls list`: what keys of scenarios and sweeps mean, what is shipped."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musls_bringup.catalogue.keys import schema_of
from musls_bringup.catalogue.shipped import SCENARIOS, SWEEPS, names_in
from musls_bringup.cli import options
from musls_bringup.cli.terminal import new_console, new_table
from musls_description.config.documented_keys import Key, Keys, summary
from musls_description.config.errors import ConfigError, near_names
from musls_description.config.strict_yaml import read_yaml, shown
from musls_description.system.system_files import SYSTEMS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def run(
    key: Annotated[
        str | None,
        typer.Argument(
            help="A key, or a part of its name; keys of sweeps begin with `sweep.`.",
            show_default="all top keys",
        ),
    ] = None,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print a JSON schema for editors, of a scenario or of the file named as KEY: "
            "scenario, system, sweep.",
        ),
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference of all keys as Markdown.")
    ] = False,
) -> None:
    """Explains a key of a scenario, a system or a sweep: meaning, unit, default, range."""
    if schema and markdown:
        raise ConfigError("--schema and --markdown exclude each other")
    if schema:
        typer.echo(json.dumps(file_schema(key or "scenario"), indent=1))
    elif markdown:
        if key is not None:
            raise ConfigError("--markdown prints all keys: leave KEY out")
        typer.echo(reference_page())
    else:
        tell(key or "")


MAX_FOUND = 40
"""Keys that an ambiguous name shows."""

FILES = ("scenario", "system", "sweep")
"""Files that have a schema of their own."""


# ---------- For the terminal


def tell(text: str) -> None:
    """Print what a key means, or the keys that a part of a name means."""
    console = new_console(markup=False, soft_wrap=False)
    keys, prefix, matches = _found(text)
    if len(matches) > 1:
        for key in matches[:MAX_FOUND]:
            _print_one(console, key, prefix)
        if len(matches) > MAX_FOUND:
            console.print(f"... and {len(matches) - MAX_FOUND} more: give more of the name")
        return
    key = matches[0]
    if key.path:
        _print_one(console, key, prefix)
    else:
        console.print("Keys of a sweep file:" if prefix else "Keys of a scenario:", style="bold")
    below = keys.below(key)
    if below:
        console.print(_table(below, bool(key.path)))
    if not key.path and not prefix:
        console.print(
            "`musls describe KEY` says more, `musls describe sweep` shows the keys of a sweep; "
            "`musls new` writes templates."
        )


def _found(text: str) -> tuple[Keys, str, list[Key]]:
    """Keys that a text means, where they are, and the prefix of their paths."""
    file, _, inner = text.strip().partition(".")
    if file not in ("scenario", "sweep"):
        file = "scenario"
        inner = text
    keys = Keys(schema_of(file))
    return keys, "sweep." if file == "sweep" else "", keys.find(inner)


def _print_one(console: Console, key: Key, prefix: str) -> None:
    console.print(prefix + key.path, style="bold")
    default = key.default_text
    texts = {"needed": "has to be given", "follows": "follows from others if left out", "": ""}
    facts = [key.unit, key.allowed, texts.get(default, f"default {default}")]
    console.print(f"    {key.meaning}")
    console.print("    " + "; ".join(filter(None, facts)))


def _table(keys: list[Key], full: bool) -> Table:
    table = new_table("key")
    if full:
        table.add_column("default", max_width=22)
        table.add_column("unit", no_wrap=True)
        table.add_column("allowed", max_width=34)
    table.add_column("meaning")
    for key in keys:
        cells = [key.default_text, key.unit, key.allowed] if full else []
        table.add_row(key.name, *cells, key.meaning)
    return table


# ---------- As a page


def reference_page() -> str:
    """All keys as a Markdown page, a table for each mapping."""
    lines = [
        "# Keys of scenarios, systems and sweeps",
        "",
        "Made by `musls describe --markdown` from the docstrings of the classes. `musls describe "
        "KEY` says the same in the terminal, `musls describe --schema` gives editors what they "
        "need to complete and check a file while it is written.",
        "",
        "A list has the keys of its elements; where several kinds are possible, the kind stands "
        "in the path (`mission.stages.circle.radius_m`; `--set` takes it, too, and without the "
        'kind). "needed": has to be given. '
        '"follows": follows from other keys if left out.',
    ]
    for title, file, prefix in (("Scenario", "scenario", ""), ("Sweep", "sweep", "sweep.")):
        keys = Keys(schema_of(file))
        lines += ["", f"## {title}", *_section(keys, keys.root, prefix)]
    return "\n".join(lines)


def _section(keys: Keys, key: Key, prefix: str) -> list[str]:
    """The table of one mapping and the sections of those below it."""
    below = keys.below(key)
    lines = ["", "| key | default | unit | allowed | meaning |", "|---|---|---|---|---|"]
    for child in below:
        default = child.default_text
        if default not in ("", "needed", "follows", "none"):
            default = f"`{default}`"
        cells = f"`{child.name}`", default, child.unit, child.allowed, child.meaning
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for child in below:
        if keys.below(child):
            lines += ["", f"### {prefix}{child.path}", "", child.meaning]
            lines += _section(keys, child, prefix)
    return lines


# ---------- For editors


def file_schema(file: str) -> dict[str, Any]:
    """JSON schema of a file as users write it, short forms included."""
    if file not in FILES:
        raise ConfigError(f"no schema for '{shown(file)}': {near_names(file, FILES)}")
    schema = copy.deepcopy(schema_of("sweep" if file == "sweep" else "scenario"))
    properties = schema["properties"]
    definitions = schema["$defs"]
    schema["required"].remove("name")  # the file's own
    if file == "sweep":
        _allow(properties["parameters"], "additionalProperties", {"type": "array"})
        _allow(properties["metrics"], "items", {"type": "string"})
        kinds = properties["sampling"]["discriminator"]["mapping"]
        _allow(properties, "sampling", {"enum": list(kinds)})
        return schema
    place = {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 4}
    _allow(definitions, "Waypoint", place)
    # One drone or cable for all, and `from: PART`, as `library.expand_system` reads them.
    parts = {
        "enum": names_in(SYSTEMS / "parts"),
        "description": "A shipped part whose keys hold where they are not given here.",
    }
    for key, name in (("drones", "Drone"), ("cables", "Cable")):
        part = definitions[name]
        part["else"] = {"required": part.pop("required", [])}
        part["properties"]["from"] = parts
        part["if"] = {"required": ["from"]}
        part["then"] = {}
        _allow(definitions["RigSystem"]["properties"], key, {"$ref": f"#/$defs/{name}"})
    if file == "system":
        return {"$schema": schema["$schema"], **definitions["RigSystem"], "$defs": definitions}
    for key in ("system", "start"):
        _allow(properties, key, {"type": "string"})
    return schema


def _allow(nodes: dict[str, Any], key: str, short: dict[str, Any]) -> None:
    """Allow a short form in the place of a node."""
    node = nodes[key]
    notes = {k: node.pop(k) for k in ("description", "default") if k in node}
    nodes[key] = {**notes, "anyOf": [short, node]}


# ---------- `musls list`


FIRST = ("circle", "circle_payload", "solo")
"""Scenarios for a beginner."""


def list_shipped(
    what: Annotated[
        str | None,
        typer.Argument(
            help="systems, scenarios, sweeps, cable-models, rope-materials, trajectories, "
            "controllers, load-estimators, autopilots, events, aerodynamics, sensors, cable-laws "
            "or readers.",
            show_default="all of them",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Lists what is shipped."""
    if what is not None and what not in KINDS:
        raise ConfigError(f"nothing to list called '{shown(what)}': {near_names(what, KINDS)}")
    kinds = KINDS if what is None else (what,)
    if as_json:
        typer.echo(json.dumps({kind: dict(KINDS[kind]()) for kind in kinds}, indent=1))
        return
    for kind in kinds:
        rows = KINDS[kind]()
        width = max((len(name) for name, _ in rows), default=0)
        if what is None and rows:
            typer.echo(f"{kind}:")
        for name, text in rows:
            first = "; begin here" if kind == "scenarios" and name in FIRST else ""
            typer.echo(f"{'' if what else '  '}{name:{width}}  {text}{first}")
            for line in PARAMETERS[kind](name) if what in PARAMETERS else ():
                typer.echo(f"    {line}")


def _systems() -> list[tuple[str, str]]:
    from musls_description.system.system_files import load_system, system_names

    return [(name, load_system(name).description) for name in system_names()]


def _described(folder: Path) -> list[tuple[str, str]]:
    """Names and descriptions of the YAML files of a folder."""
    return [(p.stem, read_yaml(p).get("description", "")) for p in sorted(folder.glob("*.yaml"))]


def _registered(module: str, registry: str) -> list[tuple[str, str]]:
    """Names and first lines of the docstrings of a registry's content."""
    entries = getattr(import_module(module), registry)
    return [(name, summary(thing)) for name, thing in entries.items()]


def _cable_models() -> list[tuple[str, str]]:
    from musls_analysis.cable_models import CABLE_MODELS
    from musls_sim.plants import PLANTS

    plants = [(name, summary(build)) for name, build in PLANTS.items()]
    replayed = [(name, f"replay only: {text}") for name, text in CABLE_MODELS.items()]
    return [*plants, *(its for its in replayed if its[0] not in PLANTS)]


def _rope_materials() -> list[tuple[str, str]]:
    """Materials, and what a rope of 3 mm of each weighs, stretches and holds."""
    from musls_description.system.rope_materials import MATERIALS

    return [
        (
            name,
            f"{rope.what}; 3 mm: {1e3 * rope.mass_kg_m(0.003):.2g} g/m, "
            f"EA {rope.ea_n(0.003) / 1e3:.3g} kN, "
            f"breaks at {rope.break_force_n(0.003) / 1e3:.2g} kN",
        )
        for name, rope in MATERIALS.items()
    ]


def _readers() -> list[tuple[str, str]]:
    from musls_analysis.recordings.readers import READERS

    return [
        ("bag", "rosbag2 folder, its .mcap or .db3 file, or a .bag of ROS 1"),
        *((name, reader.what) for name, reader in READERS.items()),
    ]


def _trajectory_parameters(name: str) -> list[str]:
    """One line for each key: name, default, meaning."""
    keys = Keys(schema_of("scenario"))
    below = keys.below(keys.find(f"mission.stages.{name}")[0])
    parameters = [key for key in below if key.name != "kind"]
    wide = max((len(key.name) for key in parameters), default=0)
    widest = max((len(key.default_text) for key in parameters), default=0)
    return [f"{key.name:{wide}}  {key.default_text:{widest}}  {key.meaning}" for key in parameters]


KINDS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "systems": _systems,
    "scenarios": partial(_described, SCENARIOS),
    "sweeps": partial(_described, SWEEPS),
    "cable-models": _cable_models,
    "rope-materials": _rope_materials,
    "trajectories": partial(_registered, "musls_control.trajectories", "TRAJECTORIES"),
    "controllers": partial(_registered, "musls_control.controllers", "CONTROLLERS"),
    "load-estimators": partial(_registered, "musls_control.estimators", "LOAD_ESTIMATORS"),
    "autopilots": partial(_registered, "musls_sim.scenario.scenario", "AUTOPILOTS"),
    "events": partial(_registered, "musls_sim.scenario.events", "EVENTS"),
    "aerodynamics": partial(_registered, "musls_sim.scenario.aerodynamics", "AERODYNAMICS"),
    "sensors": partial(_registered, "musls_sim.sensors.custom", "SENSORS"),
    "cable-laws": partial(_registered, "musls_description.system.cable_law", "CABLE_LAWS"),
    "readers": _readers,
}

PARAMETERS = {"trajectories": _trajectory_parameters}
"""Further lines for each name when only its sort is listed."""
