"""Shipped scenarios and sweeps, and their files by name."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from musls_description.config.errors import ConfigError, near_names
from musls_description.config.strict_yaml import shown

if TYPE_CHECKING:
    from musls_sim.scenario.scenario import Scenario

try:
    VERSION = version("musls")
except PackageNotFoundError:  # built by colcon, package by package
    VERSION = version("musls_bringup")

SCENARIOS = Path(__file__).parents[1] / "scenarios"
SWEEPS = Path(__file__).parents[1] / "sweeps"
"""Folders of the files."""


def names_in(folder: Path) -> list[str]:
    """Names of the shipped files in a folder."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def named_file(what: str, name: str, folder: Path) -> Path:
    """Find a "scenario" or "sweep" by shipped name, by file or by the folder of an earlier one."""
    names = names_in(folder)
    if name in names:
        return folder / f"{name}.yaml"
    path = Path(name)
    # os.path says no where Path would raise: names too long, folders that may not be read.
    if path.suffix in (".yaml", ".yml"):
        if not os.path.exists(path):
            raise ConfigError(f"{what} file {shown(name, 200)}: no such file")
        return path
    if os.path.isfile(path / f"{what}.yaml"):
        return path / f"{what}.yaml"
    if name and os.path.isdir(path):
        raise ConfigError(f"{path}: not a result folder of musls, there is no {what}.yaml in it")
    raise ConfigError(f"unknown {what} '{shown(name)}': {near_names(name, names)}")


def find_scenario(name: str, overrides: list[str], origin: str = "--set") -> Scenario:
    """Read a shipped scenario, a file or the scenario of a result folder, with overrides."""
    from musls_sim.scenario.scenario import load_scenario

    path = named_file("scenario", name, SCENARIOS)
    shipped = f"scenario {path.stem}" if path.parent == SCENARIOS else ""
    return load_scenario(path, overrides, origin, shipped)


def sweep_path(name: str | None) -> Path:
    """Find a sweep, see `named_file`."""
    if name is None:
        raise ConfigError(f"which sweep? shipped: {', '.join(names_in(SWEEPS))}; or a YAML file")
    return named_file("sweep", name, SWEEPS)


def sweep_scenario_path(name: str, sweep: Path) -> Path:
    """Find the scenario of a sweep; a relative file is looked for in the sweep's folder first."""
    beside = sweep.parent / name
    return named_file("scenario", str(beside) if os.path.isfile(beside) else name, SCENARIOS)
