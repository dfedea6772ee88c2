"""The built-in autopilot, and the parameters that fit an airframe, for real PX4s, too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from musls_control.px4 import Px4Cascade
from musls_control.px4.allocation import gains, rotor_layout
from musls_control.px4.parameters import PX4_PARAMETERS
from musls_description.config.errors import ConfigError
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import rotate
from musls_description.system.drone import hover_throttle
from musls_sim.plants.interface import Plant, PlantState
from musls_sim.plants.trim import trim_throttle
from musls_sim.scenario.scenario import Scenario


@dataclass(frozen=True)
class AutopilotSetup:
    """Inputs of an autopilot's factory.

    Attributes:
        state: The plant's state at time 0.
        plant: The physics, for an autopilot that has a link of its own with it.
    """

    scenario: Scenario
    state: PlantState
    logs: Path
    generator: np.random.Generator
    plant: Plant | None = None


# ---------- Parameters of the flight stack for a drone's airframe

HOVER_RANGE = 0.2
HOVER_MARGIN = 0.05
MAX_HOVER_RANGE = 0.4
"""HTE_THR_RANGE: PX4's default, what is to be left beyond the loaded hover, PX4's maximum."""

SAME_GAINS = {name: PX4_PARAMETERS[name].default for name in ("MC_ROLL_P", "MC_PITCH_P")}
"""Told to every real PX4: by default those are 6.5 1/s in v1.15 and 4 in March 2026 (v1.17), which
follows a wanted tilt 100 ms later. Controllers derive their gains from this one."""


def hover_parameters(scenario: Scenario) -> list[dict[str, float]]:
    """PX4 parameters that fit each airframe: gains and hover thrust, one mapping per drone.

    MPC_THR_HOVER carries the drone alone, as a pilot sets it: it takes off with slack cables.
    """
    parameters = []
    for i, drone in enumerate(scenario.system.drones):
        weight = drone.mass_kg * scenario.physics.gravity_m_s2
        throttle = hover_throttle(drone, weight)
        _check_least_thrust(scenario, i, throttle)
        hover = round(float(np.clip(throttle, 0.1, 0.8)), 3)
        own = gains(drone, scenario.physics.gravity_m_s2)
        parameters.append(own | {"MPC_THR_HOVER": hover})
    return parameters


def _check_least_thrust(scenario: Scenario, i: int, hover: float) -> None:
    """Refuse drones that are too light for MPC_THR_MIN, in words that do not presume PX4."""
    parameters = scenario.autopilot.parameters
    least = parameters.get("MPC_THR_MIN", PX4_PARAMETERS["MPC_THR_MIN"].default)
    if "MPC_THR_HOVER" in parameters or hover >= least:
        return
    drone = scenario.system.drones[i]
    gravity = scenario.physics.gravity_m_s2
    light = (
        f"system.drones.{i}.mass_kg = {drone.mass_kg:g}"
        if gravity == STANDARD_GRAVITY_M_S2
        else f"physics.gravity_m_s2 = {gravity:g}"
    )
    percent = 100.0 * max(hover, 0.0)
    raise ConfigError(
        f"{light}: drone_{i + 1} alone hovers at {percent:.3g} % of its throttle, below "
        f"{100.0 * least:.3g} %, PX4's least thrust: more weight is needed, weaker rotors or lower "
        "autopilot.parameters.MPC_THR_MIN and MPC_THR_HOVER"
    )


def loaded_hover_parameters(scenario: Scenario) -> list[dict[str, float]]:
    """Hover parameters of a real PX4, gains included, since its defaults differ between releases.

    It looks for its hover thrust around MPC_THR_HOVER only; HTE_THR_RANGE lets it look as far as
    the drone's share of the load asks.
    """
    rest = scenario.hanging_for("autopilot.kind = px4").rest
    carried_n = np.linalg.norm(rest.drone_force_n, axis=1)
    parameters = []
    for drone, own, thrust_n in zip(
        scenario.system.drones, hover_parameters(scenario), carried_n.tolist(), strict=True
    ):
        reach = hover_throttle(drone, thrust_n) + HOVER_MARGIN - own["MPC_THR_HOVER"]
        reach = round(min(max(HOVER_RANGE, reach), MAX_HOVER_RANGE), 3)
        parameters.append(SAME_GAINS | own | {"HTE_THR_RANGE": reach})
    return parameters


def parameter_text(value: float) -> str:
    """PX4's shell reads whole numbers for either type of parameter, fractions for floats only."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


# ---------- The built-in autopilot: PX4's control chain with the rotor geometry of the drones


def build(setup: AutopilotSetup) -> Px4Cascade:
    """PX4's multicopter control chain in this process, all drones in one compiled call.

    Where the flight starts in the air it is in equilibrium.
    """
    scenario = setup.scenario
    layouts = [rotor_layout(drone) for drone in scenario.system.drones]
    parameters = [own | scenario.autopilot.parameters for own in hover_parameters(scenario)]
    cascade = Px4Cascade(layouts, parameters=parameters, n_drones=len(layouts))
    if scenario.start.kind != "ground":
        # Along the drones' z axes where no formation says more.
        turns = setup.state.orientation_wxyz[1:]
        thrust = rotate(turns, np.tile([0.0, 0.0, 1.0], (len(turns), 1)))
        if scenario.hanging is not None:
            thrust = scenario.hanging.rest.drone_force_n
        cascade.trim(
            trim_throttle(scenario.system, setup.state.rotor_speed_rad_s),
            thrust / np.linalg.norm(thrust, axis=1, keepdims=True),
        )
    elif scenario.hanging is not None and (ground := scenario.hanging.ground) is not None:
        places = setup.state.position_enu_m[1:]
        cascade.stand_on(np.array([ground.height_m(x, y) for x, y, _ in places]))
    return cascade
