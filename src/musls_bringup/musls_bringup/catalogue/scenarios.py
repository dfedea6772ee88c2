"""Scenarios from all that users name them by, with overrides from Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from musls_bringup.catalogue.shipped import find_scenario
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_data
from musls_description.config.strict_yaml import shown
from musls_sim.scenario.scenario import Scenario, as_override
from musls_sim.scenario.scenario import load_scenario as read_scenario

Overrides = Mapping[str, Any] | Sequence[str]
"""Values by key ({"system.cables.links": 29}), or texts as for `--set` ("seed=3")."""

AnyScenario = Scenario | Mapping[str, Any] | str | Path
"""A scenario, what its file would hold, or its name or file."""


def load_scenario(name: AnyScenario, overrides: Overrides = ()) -> Scenario:
    """Read a scenario.

    Args:
        name: A shipped scenario ("circle"), a YAML file, a result folder, what a file would hold
            ({"system": "x500_trio", "mission": {...}}), or a scenario to change.
        overrides: Keys to change; below a key goes a dot or a mapping, which leaves the keys that
            it does not name. A mapping with a `kind`, a whole system (with `cables` and `load` or
            `anchors`), a list and an object such as `RigSystem` replace what was there. Numbers
            and arrays may be NumPy's.

    Raises:
        ConfigError: Unknown scenario or key, or a value that is not allowed.
    """
    if isinstance(overrides, Mapping):
        try:
            overrides = list(_as_texts(overrides))
        except TypeError as error:
            raise ConfigError(f"overrides: {error}: numbers, texts, lists and mappings") from None
    elif not isinstance(overrides, (list, tuple)) or not all(isinstance(o, str) for o in overrides):
        raise ConfigError(
            f"overrides = {shown(repr(overrides))}: must be a mapping of keys to values, or a list "
            'of texts such as "seed=3"'
        )
    if isinstance(name, (Mapping, Scenario)):
        return read_scenario(to_data(name), list(overrides), "override")
    return find_scenario(str(name), list(overrides), "override")


def _as_texts(overrides: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Texts as for `--set` of nested overrides."""
    for name, value in overrides.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping) and value and not _is_whole(key, value):
            yield from _as_texts(value, f"{key}.")
        else:
            yield as_override(key, value)


def _is_whole(key: str, value: Mapping[str, Any]) -> bool:
    """Whether a mapping is a complete value, and not a set of changes."""
    return "kind" in value or (
        key == "system" and "cables" in value and ("load" in value or "anchors" in value)
    )
