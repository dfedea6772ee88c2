"""Nodes of the launch files as data, tested without `launch`, and launch actions made of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from musls_bringup.fly import find_scenario
from musls_bringup.results import default_folder
from musls_bringup.ros import graph
from musls_bringup.ros.fly import check_px4, offboard_of
from musls_description.errors import ConfigError, MuslsError
from musls_description.models.urdf import urdf_text
from musls_description.schema import to_yaml
from musls_description.system import slung_system
from musls_sim.recording.signals import MODEL_PREFIX
from musls_sim.scenario.scenario import Scenario

ARGUMENTS = {
    "sim": ("embedded", "embedded, or gazebo if Gazebo, PX4, agent and bridge run already."),
    "scenario": ("circle", "Shipped scenario, YAML file or result folder."),
    "record": ("false", "Record a bag."),
    "out": ("", "Folder of the bag and the scenario; default runs/SCENARIO_ros_DATE_TIME."),
    "realtime": ("true", "Real time, or false: in lockstep as fast as possible."),
    "autostart": ("true", "Start when all drones are ready; false waits for /formation/start."),
    "params": ("", "Parameter file of the nodes; default the shipped one."),
    "rviz": ("false", "Show the flight in RViz."),
    "robot_model": ("auto", "The URDF by robot_state_publisher: true, false, or auto: if it can."),
}
"""Arguments of fly.launch.py: default and description."""

ROBOT_MODEL = "robot_state_publisher"

REPLAY_ARGUMENTS = {
    "bag": ("", "Folder of the bag."),
    "rate": ("1.0", "Speed."),
    "as_mocap": ("false", "Only poses, on /mocap/BODY/pose and stamped now."),
}
"""Arguments of replay.launch.py: default and description."""


def shared_file(folder: str, name: str) -> Path:
    """A file that colcon installs into share, or of the source tree.

    Raises:
        ConfigError: It is not there.
    """
    package = Path(__file__).parents[1]
    shares = [prefix / "share" / "musls_bringup" for prefix in package.parents]
    for place in (*shares, package.parent):
        if (place / folder / name).is_file():
            return place / folder / name
    raise ConfigError(
        f"{folder}/{name} of musls_bringup is not installed: colcon build installs it"
    )


def launched_nodes(given: Mapping[str, str]) -> list[graph.NodeSpec]:
    """Nodes of fly.launch.py.

    Raises:
        ConfigError: An argument is wrong.
    """
    if given["sim"] not in ("embedded", "gazebo"):
        raise ConfigError(f"sim:={given['sim']}: must be embedded or gazebo")
    record, realtime, autostart, rviz = (
        truth(name, given[name]) for name in ("record", "realtime", "autostart", "rviz")
    )
    check_rviz(rviz)
    check_params(given["params"])
    scenario = find_scenario(given["scenario"], [])
    model = robot_model_of(given["robot_model"], scenario, given["sim"])
    if given["sim"] == "embedded":
        check_px4(scenario)
    out = Path(given["out"]) if given["out"] else None
    folder = bag_folder(f"{scenario.name}_ros", out, keep=record)
    file = folder / "scenario.yaml"
    file.write_text(to_yaml(scenario), encoding="utf-8")
    bag = graph.recorder(file, folder / "bag", stop_when_done=True)
    nodes = [
        graph.simulator(file, realtime=realtime),
        offboard_of(scenario),
        graph.formation(file, autostart=autostart, start_with_listeners=int(record)),
        *([bag] if record else []),
    ]
    if given["sim"] == "gazebo":
        nodes = _for_gazebo(nodes, scenario, folder)
    return [*nodes, *model, *rviz_of(rviz)]


def replay_nodes(given: Mapping[str, str]) -> list[graph.NodeSpec]:
    """Nodes of replay.launch.py.

    Raises:
        ConfigError: An argument is wrong.
    """
    if not (Path(given["bag"]) / "metadata.yaml").is_file():
        raise ConfigError(f"bag:={given['bag']}: must be the folder of a bag, with metadata.yaml")
    try:
        rate = float(given["rate"])
    except ValueError:
        raise ConfigError(f"rate:={given['rate']}: must be a number") from None
    as_mocap = truth("as_mocap", given["as_mocap"])
    parameters = {"bag": given["bag"], "rate": rate, "as_mocap": as_mocap}
    return [graph.NodeSpec("musls_sim", "player", parameters)]


def check_rviz(wanted: bool) -> None:
    """See that RViz is there, before anything starts.

    Raises:
        ConfigError: It is wanted and missing.
    """
    if wanted and not is_installed("rviz2") and shutil.which("rviz2") is None:
        raise ConfigError("rviz:=true: rviz2 is not installed (apt install ros-jazzy-rviz2)")


def check_params(file: str) -> None:
    """See that a parameter file that is named is there: launch would only warn.

    Raises:
        ConfigError: It is not.
    """
    if file and not Path(file).is_file():
        raise ConfigError(f"params:={file}: no such file")


def is_installed(program: str) -> bool:
    """Whether a ROS installation has the program of a package of the same name."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(p) / "lib" / program / program).is_file() for p in prefixes if p)


def robot_model_of(wanted: str, scenario: Scenario, sim: str) -> list[graph.NodeSpec]:
    """robot_state_publisher with the system's URDF, fed by the simulator's `/joint_states`.

    Raises:
        ConfigError: It is wanted and cannot be had.
    """
    if wanted != "auto" and not truth("robot_model", wanted):
        return []
    try:
        if not is_installed(ROBOT_MODEL):
            raise ConfigError(
                f"{ROBOT_MODEL} is not installed (apt install ros-jazzy-robot-state-publisher)"
            )
        if sim != "embedded" or scenario.cable_model != "rigid_links":
            raise ConfigError("only the embedded simulator with cable_model rigid_links has joints")
        text = urdf_text(slung_system(scenario.system, "a URDF"))
    except MuslsError as error:
        if wanted == "auto":
            return []
        raise ConfigError(f"robot_model:=true: {error}") from error
    return [
        graph.NodeSpec(
            ROBOT_MODEL,
            ROBOT_MODEL,
            {"robot_description": text, "frame_prefix": MODEL_PREFIX, "use_sim_time": True},
        )
    ]


def rviz_of(wanted: bool, **parameters: bool) -> list[graph.NodeSpec]:
    """RViz with the shipped layout, if it is wanted."""
    return [graph.rviz(shared_file("layouts", "musls.rviz"), **parameters)] if wanted else []


def bag_folder(name: str, out: Path | None, *, keep: bool) -> Path:
    """Make a folder for scenario and bag.

    Raises:
        ConfigError: It exists or cannot be made.
    """
    if not keep and out is None:
        return Path(tempfile.mkdtemp(prefix="musls_launch_"))
    folder = (out or default_folder(name)).absolute()
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise ConfigError(f"out:={folder}: {error.strerror}") from error
    return folder


def _for_gazebo(
    nodes: list[graph.NodeSpec], scenario: Scenario, folder: Path
) -> list[graph.NodeSpec]:
    """The same nodes with Gazebo's state in place of the simulator."""
    from musls_bringup.gazebo import node_parameters

    gazebo = {
        name.lstrip("/"): entry["ros__parameters"]
        for name, entry in node_parameters(scenario, folder).items()
    }
    state = graph.NodeSpec("musls_sim", "gazebo_state")
    return [
        replace(node, parameters={**gazebo.get(node.executable, {}), **node.parameters})
        for node in [state, *nodes[1:]]
    ]


def truth(name: str, value: str) -> bool:
    """Value of an argument that is true or false.

    Raises:
        ConfigError: It is neither.
    """
    if value not in ("true", "false"):
        raise ConfigError(f"{name}:={value}: must be true or false")
    return value == "true"


# ---------- Launch actions, for launch files only: `launch` comes with ROS


def actions_of(nodes: Sequence[graph.NodeSpec], params: str) -> list[Any]:
    """Launch actions that start nodes, and end the launch when one of them ends.

    Raises:
        ConfigError: The shipped file is not installed.
    """
    from launch.actions import EmitEvent, RegisterEventHandler
    from launch.event_handlers import OnProcessExit
    from launch.events import Shutdown
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    def _given(value: Any) -> Any:
        """Text stays text: launch would read it as YAML, which a robot's description is not."""
        return ParameterValue(value, value_type=str) if isinstance(value, str) else value

    file = params or str(shared_file("params", "nodes.yaml"))
    actions: list[Any] = []
    for spec in nodes:
        node = Node(
            package=spec.package,
            executable=spec.executable,
            parameters=[file, {name: _given(v) for name, v in spec.parameters.items()}],
            arguments=list(spec.arguments),
            output="screen",
            # A loaded machine takes longer than launch's 5 s to end a node, and a node that is
            # killed leaves an unfinished bag.
            sigterm_timeout=str(graph.STOP_S),
            sigkill_timeout=str(graph.STOP_S),
        )
        reason = f"{spec.executable} has ended"
        ended = OnProcessExit(
            target_action=node, on_exit=[EmitEvent(event=Shutdown(reason=reason))]
        )
        actions += [node, RegisterEventHandler(ended)]
    return actions


# ---------- Real.launch.py: real vehicles, a motion-capture system, no simulator

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
