"""Autopilots by their kind: the built-in cascade and real PX4s."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from musls_control.autopilot import Autopilot
from musls_description.registry import Registry
from musls_sim.plants.interface import Plant, PlantState

if TYPE_CHECKING:  # a scenario names an autopilot, so it imports this module
    from musls_sim.preflight.checks import Hover
    from musls_sim.scenario import Scenario


@dataclass(frozen=True)
class AutopilotSetup:
    """What an autopilot is built from.

    Attributes:
        scenario: Drones, parameters, sensors, start.
        hover: How the system hangs in formation; None where no formation is flown.
        state: The plant's state at time 0.
        logs: Folder for what real autopilots print.
        generator: Source of the noise of sensors of its own.
        plant: The physics, for an autopilot that has a link of its own with it.
    """

    scenario: Scenario
    hover: Hover | None
    state: PlantState
    logs: Path
    generator: np.random.Generator
    plant: Plant | None = None


AUTOPILOTS: Registry[Callable[[AutopilotSetup], Autopilot]] = Registry(
    "autopilot",
    "musls.autopilots",
    {
        "builtin": "musls_sim.autopilots.builtin:build",
        "px4": "musls_sim.px4.build:build",
    },
)
"""Functions that build an autopilot, by the scenario's `autopilot.kind`."""
