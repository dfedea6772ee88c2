"""ROS parameters of the nodes of a flight in Gazebo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_bringup.ros import processes
from musls_description.hanging.tree import Configuration
from musls_description.system.slung_system import slung_system
from musls_sim.scenario.scenario import Scenario


def node_parameters(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """ROS parameters of every node; PX4's local frame begins where the vehicle starts."""
    n = scenario.system.n_drones
    file = folder / "scenario.yaml"
    origins = (drone_places_enu_m(scenario).round(4) + 0.0).ravel().tolist()  # no -0.0
    nodes = [
        processes.NodeSpec("musls_sim", "gazebo_state", {"n_drones": n}),
        processes.offboard(n, local_origin_enu_m=origins),
        processes.formation(file, autostart=True, start_with_listeners=1),  # the recorder
        processes.recorder(file, folder / "bag", stop_when_done=True),
    ]
    return {f"/{node.executable}": {"ros__parameters": dict(node.parameters)} for node in nodes}


def drone_places_enu_m(scenario: Scenario) -> NDArray[np.float64]:
    """Positions of the drones in the world file, (n_drones, 3)."""
    return standing(scenario).bodies(slung_system(scenario.system, "Gazebo"))[0][1:]


def standing(scenario: Scenario) -> Configuration:
    """Load and drones on the ground, where a flight begins."""
    return scenario.hanging_for("Gazebo").on_ground
