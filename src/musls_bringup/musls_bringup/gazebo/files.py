"""Files of a flight in Gazebo with real PX4s: `python -m musls_bringup.gazebo circle --out F`.

One scenario becomes everything that the processes of such a flight read (see docs/docker.md):

- `scenario.yaml`: the resolved scenario, for the formation and the recorder;
- `world.sdf`: the world for Gazebo;
- `bridge.yaml`: for ros_gz_bridge, Gazebo's odometry as ROS topics;
- `nodes.yaml`: ROS parameters of the nodes;
- `px4.list`: a line for each PX4: instance, Gazebo model, its parameters as NAME=VALUE.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from musls_bringup.ros.parameters import node_parameters, standing
from musls_control.brief.findings import refuse_standing
from musls_control.px4.offboard import LOSS_PARAMETERS
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml
from musls_description.system.slung_system import slung_system
from musls_description.writers.sdf import drone_name, world_sdf
from musls_sim.autopilots import loaded_hover_parameters, parameter_text
from musls_sim.plants.rigid_links.step_control import fixed_step_s
from musls_sim.scenario.scenario import Scenario

WORLD = "musls"
AIRFRAME = "x500"
"""The only model that a Gazebo airframe of PX4 (4001) describes."""

PX4_PARAMETERS = {
    **LOSS_PARAMETERS,
    "NAV_DLL_ACT": 0,  # airframe 4001 asks for a ground station before it arms
    "UXRCE_DDS_SYNCT": 0,  # PX4 and ROS both follow Gazebo's clock: nothing to synchronise
    # PX4's bridge takes the world's odometry, the truth, for visual odometry. With it the local
    # frame would begin at the world's origin instead of where the drone stands.
    "EKF2_EV_CTRL": 0,
    # How long a mission stands armed before it takes off is the mission's affair.
    "COM_DISARM_PRFLT": -1,
}


def gazebo_files(scenario: Scenario, folder: Path, *, force: bool = False) -> dict[str, str]:
    """Text of all files by file name."""
    system = slung_system(scenario.system, "Gazebo")
    if scenario.start.kind != "ground":
        raise ConfigError(
            f"start = {scenario.start.kind}: a real PX4 finds its attitude standing on the ground; "
            "choose start: ground"
        )
    for i, drone in enumerate(system.drones):
        if drone.model != AIRFRAME:
            raise ConfigError(
                f"system.drones.{i}.model = {drone.model}: PX4 has a Gazebo airframe for "
                f"{AIRFRAME} only"
            )
    gravity = scenario.physics.gravity_m_s2
    return {
        "scenario.yaml": to_yaml(scenario),
        "world.sdf": world_sdf(
            system,
            standing(scenario),
            name=WORLD,
            gravity_m_s2=gravity,
            step_s=fixed_step_s(system, gravity),
            obstacles=scenario.world.surfaces,
        ),
        "bridge.yaml": yaml.safe_dump(bridge(scenario), sort_keys=False),
        "nodes.yaml": yaml.safe_dump(node_parameters(scenario, folder), sort_keys=False),
        "px4.list": _px4_list(scenario, force=force),
    }


def bridge(scenario: Scenario) -> list[dict[str, Any]]:
    """Configuration of ros_gz_bridge: the odometry of load and drones."""
    system = slung_system(scenario.system, "Gazebo")
    models = {"load": "load"}
    models |= {f"drone_{i + 1}": drone_name(system, i) for i in range(system.n_drones)}
    return [
        {
            "ros_topic_name": f"/{body}/odometry",
            "gz_topic_name": f"/model/{model}/odometry",
            "ros_type_name": "nav_msgs/msg/Odometry",
            "gz_type_name": "gz.msgs.Odometry",
            "direction": "GZ_TO_ROS",
        }
        for body, model in models.items()
    ]


def px4_parameters(scenario: Scenario, *, force: bool = False) -> list[dict[str, float]]:
    """PX4 parameters that differ from the airframe's, one mapping per drone."""
    refuse_standing(scenario.brief, force=force)
    return [
        PX4_PARAMETERS | own | dict(scenario.autopilot.parameters)
        for own in loaded_hover_parameters(scenario)
    ]


def _px4_list(scenario: Scenario, *, force: bool) -> str:
    lines = []
    system = slung_system(scenario.system, "Gazebo")
    for i, parameters in enumerate(px4_parameters(scenario, force=force)):
        pairs = [f"{name}={parameter_text(value)}" for name, value in parameters.items()]
        lines.append(" ".join([str(i + 1), drone_name(system, i), *pairs]))
    return "\n".join(lines) + "\n"
