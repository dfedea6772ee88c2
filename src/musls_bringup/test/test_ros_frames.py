"""Frames on the graph: what RViz and robot_state_publisher need, without either."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from ros_probe import needs_ros
from transforms3d.axangles import axangle2mat
from transforms3d.euler import euler2mat
from transforms3d.quaternions import quat2mat

from musls_bringup.ros import processes
from musls_bringup.ros.launching import ARGUMENTS, launched_nodes
from musls_description.config.errors import ConfigError
from musls_sim.scenario.scenario import load_scenario

pytestmark = pytest.mark.timeout(1200)


def given(tmp_path, **changed):
    defaults = {name: default for name, (default, _) in ARGUMENTS.items()}
    return defaults | {"out": str(tmp_path / "flight")} | changed


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A ROS installation that has robot_state_publisher."""
    program = tmp_path / "ros" / "lib" / "robot_state_publisher" / "robot_state_publisher"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "ros"))


def test_the_robot_model_is_started_where_it_can_be(tmp_path, installed, air, monkeypatch):
    *_, model = launched_nodes(given(tmp_path, scenario=str(air)))
    assert model.executable == "robot_state_publisher"
    assert model.parameters["robot_description"].count("<link") > 10
    for changed, text in (
        ({"sim": "gazebo"}, "robot_model:=true: only the embedded simulator"),
        ({"scenario": "circle_elastic"}, "with cable_model rigid_links"),
    ):
        wish = given(tmp_path, **({"scenario": str(air)} | changed))
        with pytest.raises(ConfigError, match=text):
            launched_nodes(wish | {"robot_model": "true"})
        names = [node.executable for node in launched_nodes(wish | {"out": ""})]
        assert "robot_state_publisher" not in names
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    with pytest.raises(ConfigError, match="robot_state_publisher is not installed"):
        launched_nodes(given(tmp_path, scenario=str(air), robot_model="true"))


def numbers(element, name, default="0 0 0"):
    return np.array([float(v) for v in element.get(name, default).split()])


def links_of(urdf, angles):
    """Poses of a URDF's links, seen from its root, as robot_state_publisher makes them."""
    root = ElementTree.fromstring(urdf)
    poses = {"base_link": np.eye(4)}
    waiting = root.findall("joint")
    while waiting:
        joint = next(j for j in waiting if j.find("parent").get("link") in poses)
        waiting.remove(joint)
        origin, step = joint.find("origin"), np.eye(4)
        step[:3, :3] = euler2mat(*numbers(origin, "rpy"), "sxyz")
        step[:3, 3] = numbers(origin, "xyz")
        if joint.get("type") == "continuous":
            turn = np.eye(4)
            turn[:3, :3] = axangle2mat(
                numbers(joint.find("axis"), "xyz"), angles[joint.get("name")]
            )
            step = step @ turn
        poses[joint.find("child").get("link")] = poses[joint.find("parent").get("link")] @ step
    return poses


def matrix(transform):
    t, q = transform.translation, transform.rotation
    made = np.eye(4)
    made[:3, :3], made[:3, 3] = quat2mat([q.w, q.x, q.y, q.z]), [t.x, t.y, t.z]
    return made


@needs_ros()
def test_frames_of_wrenches_and_joints_are_where_the_bodies_are(
    nodes, probe, ground, installed, tmp_path
):
    from geometry_msgs.msg import WrenchStamped
    from sensor_msgs.msg import JointState
    from tf2_msgs.msg import TFMessage

    from musls_control.nodes.stepped_node import LATCHED

    *_, model = launched_nodes(given(tmp_path, scenario=str(ground)))
    rows, joints = {}, {}

    def note(message):
        for t in message.transforms:
            stamp = t.header.stamp
            rows.setdefault((stamp.sec, stamp.nanosec), {})[t.child_frame_id] = t

    def note_joints(message):
        joints[message.header.stamp.sec, message.header.stamp.nanosec] = message

    probe.node.create_subscription(TFMessage, "/tf", note, 100)
    probe.node.create_subscription(JointState, "/joint_states", note_joints, 100)
    probe.listen(TFMessage, "/tf_static", LATCHED)
    probe.listen(WrenchStamped, "/cable_2/tension")
    nodes.start(processes.simulator(ground, realtime=True))
    wanted = {"load", "drone_3", "cable_2/load_end", "cable_2/drone_end"}

    def whole():
        return [at for at, row in rows.items() if wanted <= set(row) and at in joints]

    heard = {"/tf_static", "/cable_2/tension"}
    assert probe.until(lambda: whole() and heard <= set(probe.last)), (len(rows), len(joints))
    row = rows[whole()[-1]]
    assert {t.header.frame_id for t in row.values()} == {"world"}
    assert probe.last["/cable_2/tension"].header.frame_id in row
    (same,) = probe.last["/tf_static"].transforms
    assert (same.header.frame_id, same.child_frame_id) == ("load", "model/base_link")
    assert np.array_equal(matrix(same.transform), np.eye(4))

    told = joints[whole()[-1]]
    links = links_of(
        model.parameters["robot_description"], dict(zip(told.name, told.position, strict=True))
    )
    load = matrix(row["load"].transform)
    for drone in ("drone_1", "drone_2", "drone_3"):
        assert load @ links[drone] == pytest.approx(matrix(row[drone].transform), abs=1e-9)
    last = load_scenario(ground).system.cables[1].links
    for end, link in (("load_end", "link_01"), ("drone_end", f"link_{last:02d}")):
        # About itself a link of a cable that is free to twist may be turned in any way.
        there = matrix(row[f"cable_2/{end}"].transform)
        assert (load @ links[f"cable_2/{link}"])[:3, 0] == pytest.approx(there[:3, 0], abs=1e-9)


@needs_ros()
@pytest.mark.parametrize("starts", ["simulator", "relay"])
def test_base_links_are_frames_by_option(nodes, probe, air, starts):
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from tf2_msgs.msg import TFMessage

    found = {}

    def note(message):
        found.update({t.child_frame_id: t.header.frame_id for t in message.transforms})

    every = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    probe.node.create_subscription(TFMessage, "/tf_static", note, every)
    relay = processes.NodeSpec("musls_control", "mocap_relay", {"drones": [1, 2, 3]})
    node = relay if starts == "relay" else processes.simulator(air)
    nodes.start(replace(node, parameters={**node.parameters, "base_links": True}))
    wanted = {f"{body}/base_link": body for body in ("load", "drone_1", "drone_2", "drone_3")}
    if starts == "simulator":
        wanted["model/base_link"] = "load"
    assert probe.until(lambda: wanted.keys() <= found.keys()), found
    assert found == wanted
