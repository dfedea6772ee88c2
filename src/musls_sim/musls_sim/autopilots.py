"""Autopilots by their kind: the built-in cascade and real PX4s."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from musls_control.px4_cascade import Px4Cascade
from musls_control.px4_cascade.allocation import rotor_layout
from musls_description.rotations import rotate
from musls_sim.plants.interface import Plant, PlantState
from musls_sim.preflight.airframe import hover_parameters
from musls_sim.preflight.checks import Hover
from musls_sim.preflight.trim import trim_throttle
from musls_sim.scenario.scenario import Scenario


@dataclass(frozen=True)
class AutopilotSetup:
    """What an autopilot is built from.

    Attributes:
        hover: How the system hangs in formation; None where no formation is flown.
        state: The plant's state at time 0.
        plant: The physics, for an autopilot that has a link of its own with it.
    """

    scenario: Scenario
    hover: Hover | None
    state: PlantState
    logs: Path
    generator: np.random.Generator
    plant: Plant | None = None


# ---------- The built-in autopilot: PX4's control chain with the rotor geometry of the drones


def build(setup: AutopilotSetup) -> Px4Cascade:
    """PX4's multicopter control chain in this process, all drones in one compiled call.

    Where the flight starts in the air it is in equilibrium.

    Raises:
        ConfigError: Unknown or impossible PX4 parameters.
    """
    scenario = setup.scenario
    layouts = [rotor_layout(drone) for drone in scenario.system.drones]
    parameters = [own | scenario.autopilot.parameters for own in hover_parameters(scenario)]
    cascade = Px4Cascade(layouts, parameters=parameters, n_drones=len(layouts))
    if scenario.start.kind != "ground":
        # Along the drones' z axes where no formation says more.
        thrust = _up(setup.state.orientation_wxyz[1:])
        if setup.hover is not None:
            thrust = setup.hover.equilibrium.drone_force_n
        cascade.trim(
            trim_throttle(scenario.system, setup.state.rotor_speed_rad_s),
            thrust / np.linalg.norm(thrust, axis=1, keepdims=True),
        )
    return cascade


def _up(orientation_wxyz: np.ndarray) -> np.ndarray:
    """Body z axes in the world, (n, 3)."""
    return rotate(orientation_wxyz, np.tile([0.0, 0.0, 1.0], (len(orientation_wxyz), 1)))
