"""Shipped and user-written systems: find by name, expand the short forms, build, save.

A system file may shorten what repeats: `drones` and `cables` may be one mapping that holds for
all, and a mapping may start `from: NAME`, a file in `systems/parts/` or a file
of your own (`from: frame.yaml`, beside the system's file), whose keys it then overrides.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import build, to_data
from musls_description.config.strict_yaml import (
    LocatedMapping,
    Place,
    located,
    parse_yaml,
    place_of,
    read_text,
    read_yaml,
    shown,
)
from musls_description.system.slung_system import (
    MAX_CABLES,
    RigSystem,
    SlungLoadSystem,
    system_class,
)

SYSTEMS = Path(__file__).parents[1] / "systems"


def system_names(*, slung: bool = False) -> list[str]:
    """Names of the shipped systems; with `slung` only of slung loads, no other rigs."""
    names = sorted(path.stem for path in SYSTEMS.glob("*.yaml"))
    return [n for n in names if not slung or isinstance(load_system(n), SlungLoadSystem)]


def system_path(name: str, relative_to: Path | None = None) -> Path:
    """Find a system by shipped name, or by file (a name that ends in .yaml).

    Raises:
        ConfigError: There is no such system or file; the message names similar systems.
    """
    if name.endswith((".yaml", ".yml")):
        path = (relative_to or Path()) / name
        if not os.path.exists(path):
            raise ConfigError(f"system file {shown(str(path), 200)}: no such file")
        return path
    if name not in system_names():
        raise ConfigError(f"unknown system '{shown(name)}': {near_names(name, system_names())}")
    return SYSTEMS / f"{name}.yaml"


def load_system(name: str | Mapping[str, Any]) -> RigSystem:
    """Read a system by shipped name, from a file, or from what a file would hold.

    Raises:
        ConfigError: Unknown name, bad YAML, or a field that is wrong.
    """
    if isinstance(name, Mapping):
        return build_system(to_data(name), "system")
    path = system_path(str(name))
    data = read_system(path)
    if isinstance(data, Mapping) and {"system", "mission"} & set(data):
        raise ConfigError(f"{path}: a scenario, no system; its key `system` names one")
    return build_system(data, str(path))


def read_system(path: Path) -> Any:
    """Data of a system's file; messages call a shipped one by its name."""
    return parse_yaml(
        read_text(path), f"system {path.stem}" if path.parent == SYSTEMS else str(path)
    )


def build_system(data: Any, where: str) -> RigSystem:
    """Build a system from data, short forms allowed; `where`: name of data that do not know it."""
    data = expand_system(data if isinstance(data, LocatedMapping) else located(data, Place(where)))
    return build(system_class(data), data, where)


def expand_system(data: Any) -> Any:
    """Write out the short forms of a system's data (see the module's text), in their place."""
    if not isinstance(data, LocatedMapping):
        return data
    load = data.get("load")
    attachments = load.get("cable_attachments_m") if isinstance(load, Mapping) else None
    count = len(attachments) if isinstance(attachments, (list, tuple)) else 1
    if count > MAX_CABLES:
        return data  # which the validation refuses
    for part in ("drones", "cables"):
        if isinstance(data.get(part), Mapping):
            data[part] = [data[part]] * count
        if isinstance(data.get(part), list):
            whole = {id(item): _with_base(item) for item in data[part]}
            # Copies, so that a change to one element is not a change to all.
            data[part] = [copy.deepcopy(whole[id(item)]) for item in data[part]]
    return data


def _with_base(item: Any) -> Any:
    if not isinstance(item, LocatedMapping) or "from" not in item:
        return item
    where, _ = place_of(item, ("from",), "")
    part = copy.deepcopy(_part(item["from"], where, Path(item.place.file).parent))
    if "shape" in item:  # which takes the place of the part's inertia
        part.pop("inertia_kg_m2", None)
    if "material" in item:  # from which mass and radius follow, unless they are given beside it
        part.pop("mass_kg", None)
        part.pop("radius_m", None)
    part.take(item)
    part.place = item.place
    part.is_file = False
    del part["from"]
    return part


def _part(name: Any, where: str, folder: Path) -> LocatedMapping:
    """Content of a shipped part, or of your own file, seen from a folder."""
    parts = _shipped_parts()
    if name in parts:
        return _shipped_part(name)
    if not isinstance(name, str) or not name.endswith((".yaml", ".yml")):
        text = repr(name) if not isinstance(name, str) else f"'{name}'"
        near = near_names(name, parts)
        raise ConfigError(f"{where}: unknown part {shown(text)}: {near}, or a file, NAME.yaml")
    try:
        data = read_yaml(folder / name)
    except ConfigError as error:
        raise ConfigError(f"{where}: from: {error}") from None
    if not isinstance(data, LocatedMapping) or "from" in data:
        raise ConfigError(
            f"{where}: from: {shown(str(folder / name), 200)}: must be a mapping of the part's "
            "keys, without from"
        )
    return data


@functools.cache
def _shipped_parts() -> list[str]:
    return sorted(path.stem for path in (SYSTEMS / "parts").glob("*.yaml"))


@functools.cache
def _shipped_part(name: str) -> LocatedMapping:
    """Content of a shipped part; to be copied before it is changed."""
    part: LocatedMapping = read_yaml(SYSTEMS / "parts" / f"{name}.yaml")
    return part
