"""The shipped sweeps, one YAML file each, and how a sweep finds and flies things."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from musls_description.errors import ConfigError, near_names
from musls_description.strict_yaml import shown

SWEEPS = Path(__file__).parent
"""Folder of the files."""

FLYER = f"{__name__}:fly_run"
"""Name by which a worker process finds `fly_run`."""


def sweep_names() -> list[str]:
    """Names of the shipped sweeps."""
    return sorted(path.stem for path in SWEEPS.glob("*.yaml"))


def sweep_path(name: str | None) -> Path:
    """Find a sweep by shipped name, by file or by the folder of an earlier one.

    Raises:
        ConfigError: Neither, or no name; names the shipped ones.
    """
    if name is None:
        raise ConfigError(f"which sweep? shipped: {', '.join(sweep_names())}; or a YAML file")
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not os.path.isfile(path):
            raise ConfigError(f"sweep file {shown(str(path), 200)}: no such file")
        return path
    if os.path.isfile(path / "sweep.yaml"):
        return path / "sweep.yaml"
    if name not in sweep_names():
        raise ConfigError(f"unknown sweep '{shown(name)}': {near_names(name, sweep_names())}")
    return SWEEPS / f"{name}.yaml"


def sweep_scenario_path(name: str, sweep: Path) -> Path:
    """Find the scenario of a sweep; a relative file counts from the sweep's folder first.

    Raises:
        ConfigError: There is none.
    """
    from musls_bringup.scenarios import SCENARIOS
    from musls_sim.scenario.scenario import scenario_path

    beside = sweep.parent / name
    return scenario_path(str(beside) if os.path.isfile(beside) else name, SCENARIOS)


def fly_run(scenario: Any, folder: Path) -> dict[str, Any]:
    """Fly a run of a sweep as `musls fly` does, without a report."""
    from musls_bringup.fly import FlyOptions, fly

    return fly(scenario, folder, FlyOptions(report=False))
