"""`musls describe`: what the keys of scenarios, systems and sweeps mean."""

from __future__ import annotations

import copy
import functools
import json
import shutil
import sys
from typing import Annotated, Any

import typer

from musls_description.errors import ConfigError, near_names
from musls_description.keys import Key, Keys, json_schema
from musls_description.library import SYSTEMS
from musls_description.strict_yaml import shown

EXAMPLE = "musls describe mission.stages.circle"


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


MOST_FOUND = 40
"""Keys that an ambiguous name shows."""

FILES = ("scenario", "system", "sweep")
"""Files that have a schema of their own."""


@functools.cache
def _scenario_schema() -> dict[str, Any]:
    from musls_sim.scenario.scenario import Scenario

    return json_schema(Scenario)


@functools.cache
def _sweep_schema() -> dict[str, Any]:
    from musls_analysis.sweep.plan import SweepSpec

    return json_schema(SweepSpec)


@functools.cache
def scenario_keys() -> Keys:
    """Keys of a scenario, those of its system included."""
    return Keys(_scenario_schema())


@functools.cache
def sweep_keys() -> Keys:
    """Keys of a sweep file."""
    return Keys(_sweep_schema())


# For the terminal -------------------------------------------------------------------------------


def tell(text: str) -> None:
    """Print what a key means, or the keys that a part of a name means.

    Raises:
        ConfigError: There is no such key; names the near ones.
    """
    from rich.console import Console

    width = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 140
    console = Console(highlight=False, markup=False, emoji=False, width=max(width, 60))
    keys, prefix, found = _found(text)
    if len(found) > 1:
        for key in found[:MOST_FOUND]:
            _print_one(console, key, prefix)
        if len(found) > MOST_FOUND:
            console.print(f"... and {len(found) - MOST_FOUND} more: give more of the name")
        return
    key = found[0]
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
    name = text.strip().removeprefix("scenario").lstrip(".") if _is(text, "scenario") else text
    if _is(text, "sweep"):
        inner = text.strip().removeprefix("sweep").lstrip(".")
        return sweep_keys(), "sweep.", sweep_keys().find(inner)
    return scenario_keys(), "", scenario_keys().find(name)


def _is(text: str, root: str) -> bool:
    return text.strip() == root or text.strip().startswith(root + ".")


def _print_one(console: Any, key: Key, prefix: str) -> None:
    console.print(prefix + key.path, style="bold")
    default = key.default_text
    known = {"needed": "has to be given", "follows": "follows from others if left out", "": ""}
    facts = [key.unit, key.allowed, known.get(default, f"default {default}")]
    console.print(f"    {key.meaning}")
    console.print("    " + "; ".join(filter(None, facts)))


def _table(keys: list[Key], full: bool) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("key", no_wrap=True)
    if full:
        table.add_column("default", max_width=22)
        table.add_column("unit", no_wrap=True)
        table.add_column("allowed", max_width=34)
    table.add_column("meaning")
    for key in keys:
        cells = [key.default_text, key.unit, key.allowed] if full else []
        table.add_row(key.name, *cells, key.meaning)
    return table


# As a page --------------------------------------------------------------------------------------


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
        'in the path (`mission.stages.circle.radius_m`). "needed": has to be given. '
        '"follows": follows from other keys if left out.',
    ]
    lines += ["", "## Scenario", *_section(scenario_keys(), scenario_keys().root, "")]
    lines += ["", "## Sweep", *_section(sweep_keys(), sweep_keys().root, "sweep.")]
    return "\n".join(lines)


def _section(keys: Keys, key: Key, prefix: str) -> list[str]:
    """The table of one mapping and the sections of those below it."""
    below = keys.below(key)
    lines = ["", "| key | default | unit | allowed | meaning |", "|---|---|---|---|---|"]
    for child in below:
        cells = (
            f"`{child.name}`",
            _code(child.default_text),
            child.unit,
            child.allowed,
            child.meaning,
        )
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    for child in below:
        if keys.below(child):
            lines += ["", f"### {prefix}{child.path}", "", child.meaning]
            lines += _section(keys, child, prefix)
    return lines


def _code(text: str) -> str:
    return text if text in ("", "needed", "follows", "none") else f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# For editors ------------------------------------------------------------------------------------


def file_schema(file: str) -> dict[str, Any]:
    """JSON schema of a file as users write it, short forms included.

    Raises:
        ConfigError: Another one.
    """
    if file not in FILES:
        raise ConfigError(f"no schema for '{shown(file)}': {near_names(file, FILES)}")
    if file == "sweep":
        return _with_sweep_forms(copy.deepcopy(_sweep_schema()))
    schema = copy.deepcopy(_scenario_schema())
    definitions = schema["$defs"]
    _allow_parts(definitions)
    waypoint = definitions["Waypoint"]
    numbers = {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 4}
    definitions["Waypoint"] = {"anyOf": [numbers, waypoint]}
    if file == "system":
        system = definitions["RigSystem"]
        return {"$schema": schema["$schema"], **system, "$defs": definitions}
    properties = schema["properties"]
    schema["required"].remove("name")  # the file's own
    for key in ("system", "start"):
        properties[key] = _or_text(properties[key])
    return schema


def _or_text(node: dict[str, Any]) -> dict[str, Any]:
    reference = {"$ref": node["$ref"]}
    kept = {key: value for key, value in node.items() if key != "$ref"}
    return {**kept, "anyOf": [{"type": "string"}, reference]}


def _allow_parts(definitions: dict[str, Any]) -> None:
    """One drone or cable for all, and `from: PART`, as `library.expand_system` reads them."""
    parts = sorted(path.stem for path in (SYSTEMS / "parts").glob("*.yaml"))
    for name in ("Drone", "Cable"):
        part = definitions[name]
        needed = part.pop("required", [])
        part["properties"]["from"] = {
            "enum": parts,
            "description": "A shipped part whose keys hold where they are not given here.",
        }
        part["if"], part["then"], part["else"] = {"required": ["from"]}, {}, {"required": needed}
    system = definitions["RigSystem"]["properties"]
    for key, name in (("drones", "Drone"), ("cables", "Cable")):
        node = system[key]
        kept = {k: node.pop(k) for k in ("type", "items", "minItems", "maxItems") if k in node}
        node["anyOf"] = [kept, {"$ref": f"#/$defs/{name}"}]


def _with_sweep_forms(schema: dict[str, Any]) -> dict[str, Any]:
    schema["required"].remove("name")
    properties = schema["properties"]
    for node, short in (
        (properties["parameters"]["additionalProperties"], {"type": "array"}),
        (properties["metrics"]["items"], {"type": "string"}),
    ):
        reference = dict(node)
        node.clear()
        node["anyOf"] = [short, reference]
    sampling = properties["sampling"]
    kinds = {key: sampling.pop(key) for key in ("oneOf", "discriminator") if key in sampling}
    sampling["anyOf"] = [{"enum": list(kinds["discriminator"]["mapping"])}, kinds]
    return schema
