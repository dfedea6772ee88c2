"""Nodes of the launch files as data, tested without `launch`, and launch actions made of them."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from musls_bringup.before.verdict import Verdict, as_data, judge
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.flight.results import default_folder
from musls_bringup.ros import processes
from musls_bringup.ros.graph_flight import check_guided, check_px4, offboard_of
from musls_bringup.ros.parameters import node_parameters
from musls_bringup.ros.processes import NodeSpec
from musls_control.child_processes import EXIT_BAD_INPUT, STOP_S, VARIABLE, ending
from musls_control.real_flight.capture import DRIVERS
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.schema import to_yaml
from musls_description.config.strict_yaml import parse_yaml
from musls_description.system.slung_system import slung_system
from musls_description.writers.urdf import urdf_text
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
    "namespace": ("", "ROS namespace of all nodes and topics; none by default."),
    "rviz": ("false", "Show the flight in RViz."),
    "robot_model": ("auto", "The URDF by robot_state_publisher: true, false, or auto: if it can."),
}
"""Arguments of fly.launch.py: default and description."""

REAL_ARGUMENTS = {
    "scenario": ("circle", "Shipped scenario, YAML file or result folder: system and mission."),
    "mocap": ("poses", "poses on /mocap/BODY/pose, or a driver: " + ", ".join(DRIVERS) + "."),
    "rigid_bodies": ("", "Their names of load and drones: [load, cf1, cf2]; default ours."),
    "north_aligned": ("false", "Whether y of the capture system's world points north."),
    "px4_namespaces": ("", "Namespace of each PX4: [uav7, uav9]; default px4_i."),
    "system_ids": ("", "MAV_SYS_ID of each PX4: [7, 9]; default i + 1."),
    "auto_arm": ("false", "Take offboard mode and arm; false leaves both to the pilot."),
    "autostart": ("false", "Start when all drones are ready; false waits for /formation/start."),
    "record": ("true", "Record a bag."),
    "out": ("", "Folder of the bag and the scenario; default runs/SCENARIO_real_DATE_TIME."),
    "params": ("", "Parameter file of the nodes; default the shipped one."),
    "namespace": ("", "ROS namespace of all nodes and topics; none by default."),
    "rviz": ("false", "Show the flight in RViz."),
    "force": ("", "Reason to fly in spite of what speaks against it; it is recorded."),
}
"""Arguments of real.launch.py: default and description."""

AGENT_ARGUMENTS = {
    "scenario": ("", "Shipped scenario, YAML file or result folder, with controller.kind: agents."),
    "drone": ("1", "Number of the drone, from 1."),
    "params": ("", "Parameter file of the nodes; default the shipped one."),
    "namespace": ("", "ROS namespace of all nodes and topics; none by default."),
    "use_sim_time": ("false", "Whether time comes on /clock, from a simulator."),
}
"""Arguments of agent.launch.py: default and description."""

REPLAY_ARGUMENTS = {
    "bag": ("", "Folder of the bag."),
    "rate": ("1.0", "Speed."),
    "as_mocap": ("false", "Only poses, on /mocap/BODY/pose and stamped now."),
}
"""Arguments of replay.launch.py: default and description."""

ROBOT_MODEL = "robot_state_publisher"


def shared_file(folder: str, name: str) -> Path:
    """A file that colcon installs into share, or of the source tree."""
    package = Path(__file__).parents[1]
    shares = [prefix / "share" / "musls_bringup" for prefix in package.parents]
    for place in (*shares, package.parent):
        if (place / folder / name).is_file():
            return place / folder / name
    raise ConfigError(
        f"{folder}/{name} of musls_bringup is not installed: colcon build installs it"
    )


def launched_nodes(values: Mapping[str, str]) -> list[NodeSpec]:
    """Nodes of fly.launch.py."""
    gazebo = values["sim"] == "gazebo"
    if not gazebo and values["sim"] != "embedded":
        raise ConfigError(f"sim:={values['sim']}: must be embedded or gazebo")
    flags = _flags(values, ARGUMENTS)
    rviz = _rviz_of(flags)
    scenario = _scenario_of(values)
    model = robot_model_of(values["robot_model"], scenario, values["sim"])
    if not gazebo:
        check_px4(scenario)
    file = _scenario_file(scenario, f"{scenario.name}_ros", values["out"], keep=flags["record"])
    first = (
        NodeSpec("musls_sim", "gazebo_state")
        if gazebo
        else processes.simulator(file, realtime=flags["realtime"])
    )
    nodes = [first, offboard_of(scenario), *_flown(file, flags)]
    if scenario.controller.kind == "agents" and scenario.autopilot.kind != "px4" and not gazebo:
        formation, *others = _flown(file, flags)
        tells = replace(formation, parameters={**formation.parameters, "agents": True})
        nodes = [first, *_agents(file, scenario.system.n_drones), tells, *others]
    if gazebo:
        parameters_of = {
            name.lstrip("/"): entry["ros__parameters"]
            for name, entry in node_parameters(scenario, file.parent).items()
        }
        nodes = [
            replace(node, parameters={**parameters_of.get(node.executable, {}), **node.parameters})
            for node in nodes
        ]
    return _in_namespace([*nodes, *model, *rviz], values["namespace"])


def real_nodes(values: Mapping[str, str]) -> list[NodeSpec]:
    """Nodes of real.launch.py: real vehicles, motion capture, no simulator, the computer's time."""
    if values["mocap"] not in DRIVERS:
        raise ConfigError(f"mocap:={values['mocap']}: must be one of {', '.join(DRIVERS)}")
    flags = _flags(values, REAL_ARGUMENTS)
    rviz = _rviz_of(flags, use_sim_time=False)
    scenario = _scenario_of(values)
    check_guided(scenario)
    verdict = _allowed(scenario, values["force"])
    file = _scenario_file(scenario, f"{scenario.name}_real", values["out"], keep=flags["record"])
    report = as_data(scenario, verdict) | {"forced": values["force"]}
    text = json.dumps(report, indent=2, allow_nan=False)
    file.with_name(VERDICT_FILE).write_text(text + "\n", encoding="utf-8")
    n = scenario.system.n_drones
    namespaces = _listed(values, "px4_namespaces", str)
    relay = {
        "drones": list(range(1, n + 1)),
        "mission_file": str(file),
        "input": values["mocap"],
        "north_aligned": flags["north_aligned"],
        **_listed(values, "rigid_bodies", str),
        **namespaces,
    }
    offboard = {"auto_arm": flags["auto_arm"], **namespaces, **_listed(values, "system_ids", int)}
    nodes = [
        NodeSpec("musls_control", "mocap_relay", relay),
        processes.offboard(n, use_sim_time=False, **offboard),
        *_flown(file, flags, use_sim_time=False, force=values["force"]),
        *rviz,
    ]
    return _in_namespace(nodes, values["namespace"])


VERDICT_FILE = "check.json"
"""Beside the scenario: what was found before the flight, and the reason why it was forced."""


def _allowed(scenario: Scenario, force: str) -> Verdict:
    """The verdict on a flight of real drones, made now: an older one says nothing of this file.

    Raises:
        ConfigError: The flight is refused, and `force` gives no reason, or cannot.
    """
    verdict = judge(scenario)
    firm = [
        finding.text
        for finding in verdict.findings
        if finding.refuses and not finding.can_be_forced
    ]
    if firm:
        raise ConfigError(firm[0])
    if verdict.problems and not force:
        raise ConfigError(f"{verdict.problems[0]}; force:=REASON flies anyway, and is recorded")
    return verdict


def _listed(texts: Mapping[str, str], name: str, kind: type) -> dict[str, list[Any]]:
    """A parameter that is given as a list, nothing where it is left out."""
    if not texts[name]:
        return {}
    values = parse_yaml(texts[name], f"{name}:=")
    words = "numbers" if kind is int else "names"
    if not isinstance(values, list) or not all(type(value) is kind for value in values):
        raise ConfigError(f"{name}:={texts[name]}: must be a list of {words}: [a, b]")
    return {name: values}


def _in_namespace(nodes: list[NodeSpec], namespace: str) -> list[NodeSpec]:
    """The nodes in a namespace, such as hall1 or /hall1."""
    full = f"/{namespace.strip('/')}" if namespace else ""
    if not re.fullmatch(r"(/[A-Za-z_]\w*)*", full):
        raise ConfigError(f"namespace:={namespace}: must be a namespace of ROS, such as hall1")
    return [replace(node, namespace=full + node.namespace) for node in nodes]


def agent_nodes(values: Mapping[str, str]) -> list[NodeSpec]:
    """Nodes of agent.launch.py: one drone's agent and its offboard node, on its own computer."""
    scenario = _scenario_of(values)
    flags = _flags(values, AGENT_ARGUMENTS)
    if scenario.controller.kind != "agents":
        raise ConfigError(
            f"scenario:={values['scenario']}: controller.kind = {scenario.controller.kind}, must "
            "be agents"
        )
    n = scenario.system.n_drones
    if not (values["drone"].isdigit() and 1 <= int(values["drone"]) <= n):
        raise ConfigError(f"drone:={values['drone']}: must be a number from 1 to {n}")
    file = _scenario_file(scenario, f"{scenario.name}_agent", "", keep=False)
    nodes = processes.agent(file, int(values["drone"]), use_sim_time=flags["use_sim_time"])
    return _in_namespace(list(nodes), values["namespace"])


def _agents(file: Path, n_drones: int) -> list[NodeSpec]:
    """The agents of all drones with their offboard nodes."""
    return [node for k in range(1, n_drones + 1) for node in processes.agent(file, k)]


def replay_nodes(values: Mapping[str, str]) -> list[NodeSpec]:
    """Nodes of replay.launch.py."""
    if not (Path(values["bag"]) / "metadata.yaml").is_file():
        raise ConfigError(f"bag:={values['bag']}: must be the folder of a bag, with metadata.yaml")
    try:
        rate = float(values["rate"])
    except ValueError:
        raise ConfigError(f"rate:={values['rate']}: must be a number") from None
    flags = _flags(values, REPLAY_ARGUMENTS)
    parameters = {"bag": values["bag"], "rate": rate, "as_mocap": flags["as_mocap"]}
    return [NodeSpec("musls_sim", "player", parameters)]


def _flown(
    file: Path, flags: Mapping[str, bool], *, use_sim_time: bool = True, force: str = ""
) -> list[NodeSpec]:
    """The formation, and the recorder if it is wanted."""
    record = flags["record"]
    formation = processes.formation(
        file,
        use_sim_time=use_sim_time,
        autostart=flags["autostart"],
        start_with_listeners=int(record),
        force=force,
    )
    clock = {} if use_sim_time else {"system_time": True}
    fault = str(file.with_name("fault.txt"))
    bag = processes.recorder(
        file, file.with_name("bag"), stop_when_done=True, fault_file=fault, **clock
    )
    return [formation, bag] if record else [formation]


def _flags(texts: Mapping[str, str], arguments: Mapping[str, tuple[str, str]]) -> dict[str, bool]:
    """Values of the arguments that are true or false, as their defaults are."""
    names = [name for name, (default, _) in arguments.items() if default in _FLAGS]
    return {name: _flag(name, texts[name]) for name in names}


_FLAGS = {"true": True, "false": False}


def _flag(name: str, value: str) -> bool:
    if value not in _FLAGS:
        raise ConfigError(f"{name}:={value}: must be true or false")
    return _FLAGS[value]


def _rviz_of(flags: Mapping[str, bool], *, use_sim_time: bool = True) -> list[NodeSpec]:
    if not flags["rviz"]:
        return []
    if not is_installed("rviz2") and shutil.which("rviz2") is None:
        raise ConfigError("rviz:=true: rviz2 is not installed (apt install ros-jazzy-rviz2)")
    layout = shared_file("layouts", "musls.rviz")
    return [NodeSpec("rviz2", "rviz2", {"use_sim_time": use_sim_time}, ("-d", str(layout)))]


def _scenario_of(texts: Mapping[str, str]) -> Scenario:
    """The scenario; a parameter file that is not there is refused, too: launch would only warn."""
    if texts["params"] and not Path(texts["params"]).is_file():
        raise ConfigError(f"params:={texts['params']}: no such file")
    return find_scenario(texts["scenario"], [])


def is_installed(program: str) -> bool:
    """Whether a ROS installation has the program of a package of the same name."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(p) / "lib" / program / program).is_file() for p in prefixes if p)


def robot_model_of(choice: str, scenario: Scenario, sim: str) -> list[NodeSpec]:
    """robot_state_publisher with the system's URDF, fed by the simulator's `/joint_states`."""
    if choice != "auto" and not _flag("robot_model", choice):
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
        if choice == "auto":
            return []
        raise ConfigError(f"robot_model:=true: {error}") from error
    parameters = {"robot_description": text, "frame_prefix": MODEL_PREFIX, "use_sim_time": True}
    return [NodeSpec(ROBOT_MODEL, ROBOT_MODEL, parameters)]


def _own_folder() -> Path:
    """A folder that is removed with this process; those of killed ones are removed now."""
    for old_folder in Path(tempfile.gettempdir()).glob("musls_launch_*"):
        if not Path("/proc", old_folder.name.split("_")[2]).exists():
            shutil.rmtree(old_folder, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"musls_launch_{os.getpid()}_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _scenario_file(scenario: Scenario, name: str, out: str, *, keep: bool) -> Path:
    """Write the scenario into a new folder, which is for the bag, too."""
    if not keep and not out:
        folder = _own_folder()
    else:
        folder = (Path(out) if out else default_folder(name)).absolute()
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise ConfigError(f"out:={folder}: {error.strerror}") from error
    file = folder / "scenario.yaml"
    file.write_text(to_yaml(scenario), encoding="utf-8")
    return file


# ---------- For launch files only: `launch` comes with ROS


def description(
    arguments: Mapping[str, tuple[str, str]],
    nodes_of: Callable[[Mapping[str, str]], list[NodeSpec]],
    *,
    real: bool = False,
) -> Any:
    """Launch description that declares the arguments and makes nodes of their values.

    `real`: see `actions_of`.
    """
    from launch import LaunchDescription
    from launch.actions import DeclareLaunchArgument, OpaqueFunction
    from launch.substitutions import LaunchConfiguration

    def start(context: Any) -> list[Any]:
        texts = {name: LaunchConfiguration(name).perform(context) for name in arguments}
        return actions_of(nodes_of(texts), texts.get("params", ""), real=real)

    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in arguments.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def ends_launch(code: int, *, real: bool) -> bool:
    """Whether a node that ends with a code ends the launch with all other nodes.

    Real drones would lose their guidance with it; those who are left know what to do: drones hold,
    the guard lowers and lands. Bad input is reported before a flight (code 2).
    """
    return not real or code in (0, EXIT_BAD_INPUT)


def actions_of(nodes: Sequence[NodeSpec], params: str, *, real: bool = False) -> list[Any]:
    """Launch actions that start nodes, and end the launch when one of them ends.

    With `real` drones a node that crashes does not end the others.
    Its code is 1 if a node ends with another than 0. Nodes end with it (see `end_with_parent`).
    """
    from launch.actions import EmitEvent, RegisterEventHandler
    from launch.event_handlers import OnProcessExit
    from launch.events import Shutdown
    from launch.logging import get_logger
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    def _over(name: str, event: Any, context: Any) -> list[Any]:
        """End the launch with a node; raising is how launch learns of another code than 0."""
        if event.returncode and not context.is_shutdown:
            for fault in faults:  # the recorder makes an event of it
                fault.write_text(f"node {name} {ending(event.returncode)}", encoding="utf-8")
            if not ends_launch(event.returncode, real=real):
                text = f"{name} {ending(event.returncode)}: the other nodes go on until Ctrl-C"
                get_logger("musls").error(text)
                return []
            raise processes.NodeFailed(f"{name} has ended with code {event.returncode}")
        return [EmitEvent(event=Shutdown(reason=f"{name} has ended"))]

    def _given(value: Any) -> Any:
        """Text stays text: launch would read it as YAML, which a robot's description is not."""
        return ParameterValue(value, value_type=str) if isinstance(value, str) else value

    file = params or str(shared_file("params", "nodes.yaml"))
    faults = [Path(n.parameters["fault_file"]) for n in nodes if "fault_file" in n.parameters]
    actions: list[Any] = []
    for spec in nodes:
        node = Node(
            package=spec.package,
            executable=spec.executable,
            parameters=[file, {name: _given(v) for name, v in spec.parameters.items()}],
            arguments=list(spec.arguments),
            additional_env={VARIABLE: str(os.getpid())},
            namespace=spec.namespace,
            remappings=list(spec.remappings.items()),
            output="screen",
            # A loaded machine takes longer than launch's 5 s to end a node, and a node that is
            # killed leaves an unfinished bag.
            sigterm_timeout=str(STOP_S),
            sigkill_timeout=str(STOP_S),
        )
        at_exit = OnProcessExit(target_action=node, on_exit=partial(_over, spec.executable))
        actions += [node, RegisterEventHandler(at_exit)]
    return actions
