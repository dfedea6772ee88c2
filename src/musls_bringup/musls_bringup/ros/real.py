"""What real.launch.py starts: real vehicles, a motion-capture system, no simulator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from musls_bringup.fly import find_scenario
from musls_bringup.ros import graph
from musls_bringup.ros.launching import bag_folder, check_params, check_rviz, rviz_of, truth
from musls_description.errors import ConfigError
from musls_description.schema import to_yaml

INPUTS = ("poses", "mocap4r2")

REAL_ARGUMENTS = {
    "scenario": ("circle", "Shipped scenario, YAML file or result folder: system and mission."),
    "mocap": ("poses", "poses on /mocap/BODY/pose, or mocap4r2 on /rigid_bodies."),
    "auto_arm": ("false", "Take offboard mode and arm; false leaves both to the pilot."),
    "autostart": ("false", "Start when all drones are ready; false waits for /formation/start."),
    "record": ("true", "Record a bag."),
    "out": ("", "Folder of the bag and the scenario; default runs/SCENARIO_real_DATE_TIME."),
    "params": ("", "Parameter file of the nodes; default the shipped one."),
    "rviz": ("false", "Show the flight in RViz."),
}
"""Arguments of real.launch.py: default and description."""


def real_nodes(given: Mapping[str, str]) -> list[graph.NodeSpec]:
    """Nodes of real.launch.py; all go by the computer's time.

    Args:
        given: Value of every argument.

    Raises:
        ConfigError: An argument is wrong.
    """
    if given["mocap"] not in INPUTS:
        raise ConfigError(f"mocap:={given['mocap']}: must be {' or '.join(INPUTS)}")
    arm, autostart, record, rviz = (
        truth(name, given[name]) for name in ("auto_arm", "autostart", "record", "rviz")
    )
    check_rviz(rviz)
    check_params(given["params"])
    scenario = find_scenario(given["scenario"], [])
    out = Path(given["out"]) if given["out"] else None
    folder = bag_folder(f"{scenario.name}_real", out, keep=record)
    file = folder / "scenario.yaml"
    file.write_text(to_yaml(scenario), encoding="utf-8")
    n = scenario.system.n_drones
    return [
        graph.NodeSpec(
            "musls_control",
            "mocap_relay",
            {"drones": list(range(1, n + 1)), "input": given["mocap"]},
        ),
        graph.offboard(n, use_sim_time=False, auto_arm=arm),
        graph.formation(
            file, use_sim_time=False, autostart=autostart, start_with_listeners=int(record)
        ),
        *(
            [graph.recorder(file, folder / "bag", stop_when_done=True, system_time=True)]
            if record
            else []
        ),
        *rviz_of(rviz, use_sim_time=False),
    ]
