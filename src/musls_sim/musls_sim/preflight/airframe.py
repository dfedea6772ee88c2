"""What the flight stack is told about a drone's airframe."""

from __future__ import annotations

import numpy as np

from musls_control.px4_cascade import RotorLayout
from musls_description.system import Drone
from musls_sim.preflight.checks import Hover
from musls_sim.preflight.trim import hover_throttle
from musls_sim.scenario import Scenario

HOVER_RANGE, HOVER_MARGIN, MAX_HOVER_RANGE = 0.2, 0.05, 0.4
"""HTE_THR_RANGE: PX4's default, what is to be left beyond the loaded hover, PX4's maximum."""


def rotor_layout(drone: Drone) -> RotorLayout:
    """Rotor geometry for the control allocation.

    PX4's own x500 airframe (4001) holds other arm lengths than its Gazebo model; a drone of that
    model is flown with PX4's numbers, any other with its true geometry.
    """
    if drone.model == "x500":
        return RotorLayout.x500()
    spin = [1.0 if rotor.spin == "ccw" else -1.0 for rotor in drone.rotors]
    first = drone.rotors[0]
    return RotorLayout(
        px_m=tuple(rotor.position_m[0] for rotor in drone.rotors),
        py_m=tuple(-rotor.position_m[1] for rotor in drone.rotors),
        km=tuple(s * r.moment_ratio_m for s, r in zip(spin, drone.rotors, strict=True)),
        ct=tuple(r.thrust_coefficient_n_s2 / first.thrust_coefficient_n_s2 for r in drone.rotors),
        omega_min_rad_s=first.speed_min_rad_s,
        omega_max_rad_s=first.speed_max_rad_s,
    )


def hover_parameters(scenario: Scenario) -> list[dict[str, float]]:
    """PX4 parameters of hover thrust, one mapping per drone.

    MPC_THR_HOVER carries the drone alone, as a pilot sets it: it takes off with slack cables.
    """
    parameters = []
    for drone in scenario.system.drones:
        weight = drone.mass_kg * scenario.physics.gravity_m_s2
        hover = round(float(np.clip(hover_throttle(drone, weight), 0.1, 0.8)), 3)
        parameters.append({"MPC_THR_HOVER": hover})
    return parameters


def loaded_hover_parameters(scenario: Scenario, hover: Hover) -> list[dict[str, float]]:
    """The same for a real PX4, which looks for its hover thrust around MPC_THR_HOVER only.

    HTE_THR_RANGE lets it look as far as the drone's share of the load asks.

    Args:
        scenario: The drones.
        hover: How the system hangs in formation.
    """
    carried_n = np.linalg.norm(hover.equilibrium.drone_force_n, axis=1)
    parameters = []
    for drone, own, thrust_n in zip(
        scenario.system.drones, hover_parameters(scenario), carried_n.tolist(), strict=True
    ):
        reach = hover_throttle(drone, thrust_n) + HOVER_MARGIN - own["MPC_THR_HOVER"]
        reach = round(min(max(HOVER_RANGE, reach), MAX_HOVER_RANGE), 3)
        parameters.append(own | {"HTE_THR_RANGE": reach})
    return parameters
