"""The files of a flight in Gazebo: they fit the scenario, the world, the nodes and each other."""

import ast
from pathlib import Path

import numpy as np
import pytest
import yaml
from sdf_reader import SdfScene

from musls_bringup.catalogue.shipped import SCENARIOS, find_scenario
from musls_bringup.gazebo import files as gazebo
from musls_bringup.gazebo.__main__ import main as write_files
from musls_description.config.errors import ConfigError
from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.scenario.scenario import load_scenario

SOURCE = Path(__file__).resolve().parents[2]
PACKAGES = {
    "/gazebo_state": "musls_sim",
    "/offboard": "musls_control",
    "/formation": "musls_control",
    "/recorder": "musls_sim",
}

# The pairs of ros_gz_bridge (its README, release jazzy) that are used here.
BRIDGED = {"nav_msgs/msg/Odometry": {"gz.msgs.Odometry", "gz.msgs.OdometryWithCovariance"}}
BRIDGE_FIELDS = {"ros_topic_name", "gz_topic_name", "ros_type_name", "gz_type_name", "direction"}

# PX4's airframe 4001 turns throttle u into 150 + 850 u rad/s.
SPEED_MIN_RAD_S, SPEED_RANGE_RAD_S = 150.0, 850.0


@pytest.fixture(scope="module", params=["circle", "quad", "solo"])
def flight(request, tmp_path_factory):
    """Folder of a flight, and its scenario."""
    out = tmp_path_factory.mktemp("runs") / "flight"
    assert write_files([request.param, "--out", str(out)]) == 0
    return out, find_scenario(request.param, [])


def parameters_of_nodes(flight):
    written = yaml.safe_load((flight[0] / "nodes.yaml").read_text())
    return {name: entry["ros__parameters"] for name, entry in written.items()}


def px4_list(flight):
    """Instance, model and parameters of each line."""
    lines = [line.split() for line in (flight[0] / "px4.list").read_text().splitlines()]
    return [(int(i), model, dict(p.split("=") for p in pairs)) for i, model, *pairs in lines]


def throttle(drone, thrust_n):
    """Motor command at which a drone's rotors give a thrust, from the motors' equations."""
    speed = np.sqrt(thrust_n / sum(r.thrust_coefficient_n_s2 for r in drone.rotors))
    return (speed - SPEED_MIN_RAD_S) / SPEED_RANGE_RAD_S


def words_of_source(node):
    """The string constants of a node's module, among which are its parameters' names."""
    path = SOURCE / PACKAGES[node] / PACKAGES[node] / "nodes" / f"{node[1:]}.py"
    found = [n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)]
    return {value for value in found if isinstance(value, str)}


def test_the_scenario_comes_back(flight):
    assert load_scenario(flight[0] / "scenario.yaml") == flight[1]


def test_parameters_are_the_nodes_own(flight):
    parameters = parameters_of_nodes(flight)
    assert set(parameters) == set(PACKAGES)
    for node, values in parameters.items():
        assert set(values) - {"use_sim_time"} <= words_of_source(node), node


def test_nodes_read_and_write_in_the_flights_folder(flight):
    parameters = parameters_of_nodes(flight)
    file, bag = flight[0] / "scenario.yaml", flight[0] / "bag"
    assert parameters["/formation"]["mission_file"] == str(file)
    assert parameters["/recorder"]["scenario_file"] == str(file)
    assert parameters["/recorder"]["bag"] == str(bag)
    assert not bag.exists()


def test_bridge_passes_on_what_the_world_publishes(flight):
    out, scenario = flight
    publishing = [
        f"/model/{model.get('name')}/odometry"
        for model in SdfScene((out / "world.sdf").read_text()).world.iter("model")
        for plugin in model.findall("plugin")
        if plugin.get("name") == "gz::sim::systems::OdometryPublisher"
    ]
    bridge = yaml.safe_load((out / "bridge.yaml").read_text())
    assert sorted(entry["gz_topic_name"] for entry in bridge) == sorted(publishing)
    bodies = ["load", *(f"drone_{i + 1}" for i in range(scenario.system.n_drones))]
    assert [entry["ros_topic_name"] for entry in bridge] == [f"/{b}/odometry" for b in bodies]
    for entry in bridge:
        assert set(entry) == BRIDGE_FIELDS
        assert entry["gz_type_name"] in BRIDGED[entry["ros_type_name"]]
        assert entry["direction"] == "GZ_TO_ROS"


def test_every_px4_finds_its_model(flight):
    out, scenario = flight
    world = SdfScene((out / "world.sdf").read_text()).world
    assert world.get("name") == gazebo.WORLD
    models = {model.get("name") for model in world.findall("model")}
    numbers = range(1, scenario.system.n_drones + 1)
    assert [line[:2] for line in px4_list(flight)] == [(i, f"x500_{i}") for i in numbers]
    assert {model for _, model, _ in px4_list(flight)} <= models


def test_local_frames_begin_where_the_drones_stand(flight):
    scene = SdfScene((flight[0] / "world.sdf").read_text())
    offboard = parameters_of_nodes(flight)["/offboard"]
    places = np.reshape(offboard["local_origin_enu_m"], (-1, 3))
    assert len(places) == len(offboard["drones"]) == flight[1].system.n_drones
    for i, place in zip(offboard["drones"], places, strict=True):
        assert place == pytest.approx(scene.frame(f"x500_{i}")[1], abs=1e-4)


def test_px4_knows_no_truth_and_needs_no_ground_station(flight):
    for _, _, parameters in px4_list(flight):
        assert parameters["EKF2_EV_CTRL"] == "0"
        assert parameters["NAV_DLL_ACT"] == "0"
        assert (parameters["COM_OF_LOSS_T"], parameters["COM_OBL_RC_ACT"]) == ("1", "4")
        assert parameters["UXRCE_DDS_SYNCT"] == "0"


def test_hover_thrust_is_the_drones(flight):
    scenario = flight[1]
    for (_, _, parameters), drone in zip(px4_list(flight), scenario.system.drones, strict=True):
        weight_n = drone.mass_kg * scenario.physics.gravity_m_s2
        own = float(parameters["MPC_THR_HOVER"])
        assert own == pytest.approx(throttle(drone, weight_n), abs=1e-3)


def test_px4_looks_for_the_loaded_hover_thrust():
    heavy = find_scenario("circle", ["system.load.mass_kg=2.2"])
    for drone, own in zip(heavy.system.drones, gazebo.px4_parameters(heavy), strict=True):
        # A lower bound: the cables pull inwards and weigh something themselves.
        weight_n = (drone.mass_kg + 2.2 / 3) * heavy.physics.gravity_m_s2
        assert 0.2 < own["HTE_THR_RANGE"] <= 0.4
        assert own["MC_ROLL_P"] == own["MC_PITCH_P"] == 6.5  # as built in; v1.17's default is 4
        assert own["MPC_THR_HOVER"] + own["HTE_THR_RANGE"] > throttle(drone, weight_n)


def test_parameters_of_the_scenario_win():
    chosen = {"MPC_XY_P": 0.8, "MPC_THR_HOVER": 0.7}
    overrides = [f"autopilot.parameters.{name}={value}" for name, value in chosen.items()]
    for own in gazebo.px4_parameters(find_scenario("circle", overrides)):
        assert chosen.items() <= own.items()


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.yaml")))
def test_shipped_scenarios_have_files_or_one_clear_reason(name):
    scenario = find_scenario(name, [])
    if not isinstance(scenario.system, SlungLoadSystem):
        with pytest.raises(ConfigError, match="only a load with one cable to each drone"):
            gazebo.gazebo_files(scenario, Path("/runs/x"))
    elif scenario.start.kind != "ground":
        with pytest.raises(ConfigError, match="choose start: ground"):
            gazebo.gazebo_files(scenario, Path("/runs/x"))
    elif any(drone.model != gazebo.AIRFRAME for drone in scenario.system.drones):
        with pytest.raises(ConfigError, match="PX4 has a Gazebo airframe for x500 only"):
            gazebo.gazebo_files(scenario, Path("/runs/x"))
    else:
        files = gazebo.gazebo_files(scenario, Path("/runs/x"))
        assert len(files["px4.list"].splitlines()) == scenario.system.n_drones


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "unknown scenario 'nonsense'"),
        (["circle", "--set", "start=air"], "choose start: ground"),
        (["circle", "--set", "system.drones.model=iris"], "drones.0.model = iris"),
        (["circle", "--set", "system.load.mass_kg=9"], "cannot lift the load"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(arguments, words, tmp_path, capsys):
    assert write_files([*arguments, "--out", str(tmp_path / "f")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not list(tmp_path.iterdir())


def test_force_flies_with_too_little_thrust(tmp_path):
    heavy = ["circle", "--set", "system.load.mass_kg=4", "--out", str(tmp_path / "f")]
    assert write_files(heavy) == 2
    assert write_files([*heavy, "--force"]) == 0


def test_a_flight_is_never_overwritten(tmp_path, capsys):
    (tmp_path / "bag").mkdir()
    assert write_files(["circle", "--out", str(tmp_path)]) == 2
    assert "exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["bag"]
