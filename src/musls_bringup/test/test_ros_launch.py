"""Launch files, parameters, layouts and entry points name what exists; nothing here needs ROS."""

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from px4_helpers import install_agent, install_peer

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.ros import processes
from musls_bringup.ros.launching import (
    ARGUMENTS,
    REAL_ARGUMENTS,
    REPLAY_ARGUMENTS,
    actions_of,
    ends_launch,
    launched_nodes,
    real_nodes,
    replay_nodes,
    shared_file,
)
from musls_control.guard import GuardSettings
from musls_control.mission.player import GoalSettings
from musls_control.px4.offboard import OffboardSettings
from musls_control.real_flight.before_arming import ArmingLimits
from musls_control.real_flight.mocap import MocapLimits
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.schema import to_yaml
from musls_sim.recording.graph_signals import recorded_topics
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.compose import build_plant

SOURCE = Path(__file__).parents[2]
BRINGUP = SOURCE / "musls_bringup"
DEFAULTS = {name: default for name, (default, _) in ARGUMENTS.items()}
NODES = sorted(SOURCE.glob("*/*/nodes/*.py"))


def module_of(executable):
    (path,) = [path for path in NODES if path.stem == executable]
    return path


SETTINGS = (OffboardSettings, MocapLimits, GuardSettings, GoalSettings, ArmingLimits)


def parameters_of(executable):
    """Names that a node's module mentions as text, and fields of the settings that it takes."""
    text = module_of(executable).read_text()
    words = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    taken = [kind for kind in SETTINGS if f"settings({kind.__name__}," in text]
    return words | {f.name for kind in taken for f in fields(kind)} | {"use_sim_time"}


def given(tmp_path, **changed):
    return DEFAULTS | {"out": str(tmp_path / "flight")} | changed


@pytest.mark.parametrize("sim", ["embedded", "gazebo"])
def test_launched_nodes_exist_with_their_parameters(tmp_path, sim):
    specs = launched_nodes(given(tmp_path, sim=sim, record="true"))
    names = [spec.executable for spec in specs]
    first = {"embedded": "embedded_sim", "gazebo": "gazebo_state"}[sim]
    assert names == [first, "offboard", "formation", "recorder"]
    for spec in specs:
        assert module_of(spec.executable).parts[-4] == spec.package
        assert set(spec.parameters) <= parameters_of(spec.executable)
    assert (tmp_path / "flight" / "scenario.yaml").is_file()


def test_gazebos_drones_begin_where_they_stand(tmp_path):
    _, offboard, *_ = launched_nodes(given(tmp_path, sim="gazebo"))
    assert len(offboard.parameters["local_origin_enu_m"]) == 9
    assert any(offboard.parameters["local_origin_enu_m"])


def test_with_px4_in_the_embedded_simulator_the_offboard_node_knows_where_drones_stand(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PX4_BIN", str(install_peer(tmp_path / "px4")))
    monkeypatch.setenv("MICRO_XRCE_AGENT", str(install_agent(tmp_path)))
    scenario = tmp_path / "px4.yaml"
    scenario.write_text(to_yaml(find_scenario("circle", ["autopilot.kind=px4"])))
    simulator, offboard, *_ = launched_nodes(given(tmp_path, scenario=str(scenario)))
    assert simulator.executable == "embedded_sim"
    places = np.reshape(offboard.parameters["local_origin_enu_m"], (3, 3))
    flown = load_scenario(Path(simulator.parameters["scenario_file"]))
    stand = build_plant(flown).state.position_enu_m[1:]
    assert np.abs(places - stand).max() < 1e-3
    monkeypatch.setenv("MICRO_XRCE_AGENT", str(tmp_path / "none"))
    with pytest.raises(MuslsError, match=r"MICRO_XRCE_AGENT = .*none: no such program"):
        launched_nodes(given(tmp_path, scenario=str(scenario)))


def test_rviz_is_started_with_a_layout_or_refused_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "ros"))
    with pytest.raises(ConfigError, match="rviz:=true: rviz2 is not installed"):
        launched_nodes(given(tmp_path, rviz="true", record="true"))
    assert not (tmp_path / "flight").exists()
    (tmp_path / "ros" / "lib" / "rviz2").mkdir(parents=True)
    (tmp_path / "ros" / "lib" / "rviz2" / "rviz2").touch()
    *_, rviz = launched_nodes(given(tmp_path, rviz="true"))
    assert rviz.executable == "rviz2" and Path(rviz.arguments[1]).is_file()


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"sim": "real"}, "sim:=real: must be embedded or gazebo"),
        ({"record": "yes"}, "record:=yes: must be true or false"),
        ({"scenario": "circel"}, "circle"),
        ({"out": str(SOURCE)}, "exists"),
        ({"params": "none.yaml"}, r"params:=none\.yaml: no such file"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, changed, text):
    with pytest.raises(ConfigError, match=text):
        launched_nodes(given(tmp_path, record="true") | changed)


def test_a_real_flight_has_motion_capture_and_no_simulated_time(tmp_path):
    arguments = {name: default for name, (default, _) in REAL_ARGUMENTS.items()}
    arguments["out"] = str(tmp_path / "flight")
    relay, offboard, formation, recorder = real_nodes(arguments)
    assert relay.executable == "mocap_relay" and relay.parameters["drones"] == [1, 2, 3]
    for spec in (relay, offboard, formation, recorder):
        assert set(spec.parameters) <= parameters_of(spec.executable)
        assert not spec.parameters.get("use_sim_time", False)
    assert recorder.parameters["system_time"] and not offboard.parameters["auto_arm"]
    with pytest.raises(ConfigError, match="mocap:=vicon: must be one of poses, mocap4r2, "):
        real_nodes(arguments | {"mocap": "vicon"})


def test_a_fleet_has_names_and_numbers_of_its_own(tmp_path):
    arguments = {name: default for name, (default, _) in REAL_ARGUMENTS.items()}
    arguments |= {
        "out": str(tmp_path / "flight"), "namespace": "hall1", "north_aligned": "true",
        "rigid_bodies": "[payload, cf1, cf2, cf3]", "px4_namespaces": "[/a, b, uav/c]",
        "system_ids": "[7, 9, 12]",
    }  # fmt: skip
    relay, offboard, *others = nodes = real_nodes(arguments)
    assert {node.namespace for node in nodes} == {"/hall1"} and len(others) == 2
    assert relay.parameters["rigid_bodies"] == ["payload", "cf1", "cf2", "cf3"]
    assert relay.parameters["north_aligned"] and offboard.parameters["system_ids"] == [7, 9, 12]
    for node in (relay, offboard):
        assert node.parameters["px4_namespaces"] == ["/a", "b", "uav/c"]
        assert set(node.parameters) <= parameters_of(node.executable)
        assert node.command[-2:] == ["-r", "__ns:=/hall1"]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"system_ids": "seven"}, r"system_ids:=seven: must be a list of numbers"),
        ({"rigid_bodies": "[1, 2]"}, r"rigid_bodies:=\[1, 2\]: must be a list of names"),
        ({"namespace": "hall 1"}, r"namespace:=hall 1: must be a namespace"),
        ({"scenario": "circle_payload"}, r"controller\.kind = payload: .* too late"),
    ],
)
def test_wrong_arguments_of_a_real_flight_are_named(tmp_path, changed, text):
    arguments = {name: default for name, (default, _) in REAL_ARGUMENTS.items()}
    with pytest.raises(ConfigError, match=text):
        real_nodes(arguments | {"out": str(tmp_path / "flight")} | changed)


def test_temporary_folders_are_removed_also_those_of_killed_launches(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / f"musls_launch_{ended.pid}_x").mkdir()
    code = (
        "from musls_bringup.ros.launching import ARGUMENTS, launched_nodes\n"
        "launched_nodes({name: default for name, (default, _) in ARGUMENTS.items()})\n"
        "import glob; print(len(glob.glob('musls_launch_*')))"
    )
    own = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    run = [sys.executable, "-c", code]
    assert subprocess.check_output(run, env=own, cwd=tmp_path, text=True) == "1\n"
    assert list(tmp_path.iterdir()) == []


def test_payload_with_real_px4s_on_the_graph_is_refused(tmp_path):
    file = tmp_path / "payload.yaml"
    file.write_text(to_yaml(find_scenario("circle_payload", ["autopilot.kind=px4"])))
    with pytest.raises(ConfigError, match=r"controller\.kind = payload: .* choose .*formation"):
        launched_nodes(given(tmp_path, scenario=str(file)))


@pytest.mark.parametrize(
    ("changed", "text"),
    [({}, "bag:=: must be the folder of a bag"), ({"rate": "x"}, "rate:=x: must be a number")],
)
def test_a_replay_needs_a_bag_and_a_number(tmp_path, changed, text):
    arguments = {name: default for name, (default, _) in REPLAY_ARGUMENTS.items()} | changed
    if changed:
        (tmp_path / "metadata.yaml").touch()
        arguments["bag"] = str(tmp_path)
    with pytest.raises(ConfigError, match=text):
        replay_nodes(arguments)


def test_parameter_files_name_nodes_and_their_parameters():
    for node, entry in yaml.safe_load(shared_file("params", "nodes.yaml").read_text()).items():
        assert set(entry["ros__parameters"]) <= parameters_of(node.rpartition("/")[2]), node


@pytest.mark.parametrize("package", ["musls_control", "musls_sim"])
def test_every_node_is_an_entry_point(package):
    """A node's module has a `main`; the others beside it are parts of nodes."""
    text = (SOURCE / package / "setup.py").read_text()
    (names,) = re.findall(r"for name in \(([^)]*)\)", text)
    own = [path for path in NODES if path.parts[-4] == package]
    nodes = [path.stem for path in own if "\ndef main(" in path.read_text()]
    assert re.findall(r'"(\w+)"', names) == nodes and len(nodes) > 2


@pytest.mark.parametrize("path", sorted((BRINGUP / "launch").glob("*.py")), ids=lambda p: p.name)
def test_launch_files_compile_and_describe(path):
    code = compile(path.read_text(), str(path), "exec")
    pytest.importorskip("launch_ros", reason="launch is not on the Python package index")
    scope = {}
    exec(code, scope)
    assert scope["generate_launch_description"]().entities


def test_a_launch_tells_the_recorder_which_node_has_ended(tmp_path):
    pytest.importorskip("launch_ros", reason="launch is not on the Python package index")
    fault = tmp_path / "fault.txt"
    recorder = processes.recorder(tmp_path / "s.yaml", tmp_path / "bag", fault_file=str(fault))
    params = str(shared_file("params", "nodes.yaml"))
    _, handler, *_ = actions_of([processes.offboard(3), recorder], params)
    ended, running = SimpleNamespace(returncode=-9), SimpleNamespace(is_shutdown=False)
    with pytest.raises(processes.NodeFailed, match="offboard has ended with code -9"):
        handler.event_handler._OnActionEventBase__on_event(ended, running)
    assert fault.read_text() == "node offboard was ended by SIGKILL"
    _, handler, *_ = actions_of([processes.offboard(3), recorder], params, real=True)
    assert handler.event_handler._OnActionEventBase__on_event(ended, running) == []


def test_a_node_that_crashes_does_not_end_the_nodes_that_guide_real_drones():
    assert all(ends_launch(code, real=False) for code in (0, 1, 2, -9))
    assert [ends_launch(code, real=True) for code in (0, 1, 2, -9)] == [True, False, True, False]


def topics_of_hexa():
    return recorded_topics(find_scenario("hexa", []).system) | {
        "/load/goal": "geometry_msgs/msg/PoseStamped"
    }


def test_layouts_show_topics_that_exist():
    rviz = yaml.safe_load(shared_file("layouts", "musls.rviz").read_text())
    shown = rviz["Visualization Manager"]["Displays"]
    topics = {entry["Topic"]["Value"] for entry in shown if "Topic" in entry}
    assert topics and topics <= set(topics_of_hexa())
    foxglove = json.loads(shared_file("layouts", "musls.foxglove.json").read_text())
    panels = foxglove["configById"]
    for panel in panels.values():
        paths = [path["value"] for path in panel.get("paths", [])] + list(panel.get("topics", []))
        assert {re.split(r"[.{]", path)[0] for path in paths} <= set(topics_of_hexa())

    def leaves(tree):
        if isinstance(tree, str):
            return {tree}
        return leaves(tree["first"]) | leaves(tree["second"])

    assert leaves(foxglove["layout"]) == set(panels)


def test_commands_of_nodes_need_no_installation():
    spec = processes.simulator(Path("s.yaml"), realtime=False)
    assert spec.command[1:3] == ["-m", "musls_sim.nodes.embedded_sim"]
    assert spec.command[-2:] == ["-p", "realtime:=false"]
