"""The chain of a real flight with a recorded flight in the place of motion capture and drones."""

from dataclasses import replace

import numpy as np
import pytest
from ros_probe import Probe, needs_ros

from musls_analysis.recordings.readers import read_recording
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import main
from musls_bringup.ros import processes
from musls_bringup.ros.launching import REAL_ARGUMENTS, real_nodes

pytestmark = [needs_ros(), pytest.mark.timeout(1200), pytest.mark.slow]

SHORT = """\
description: a test
system: x500_solo
formation: {radius_m: 0.0, height_m: 2.05}
mission:
  take_off_s: 3
  form_up_s: 2
  settle_s: 0.3
  vertical_speed_m_s: 1.0
  landing_speed_m_s: 0.8
  stages:
    - {kind: hold, duration_s: 0.5, position_m: [0, 0, 0.3]}
"""

OFFBOARD, LOITER, ARM, MODE, LAND = 14, 4, 400, 176, 21


class Vehicle:
    """PX4's answers to offboard's commands; who carries it is the recorded flight.

    Its estimator believes motion capture.
    """

    def __init__(self, node, instance):
        from px4_msgs.msg import VehicleCommand, VehicleOdometry, VehicleStatus

        from musls_control.nodes.stepped_node import FROM_PX4
        from musls_control.px4.offboard import px4_topic

        self.armed, self.mode, self.odometry = False, LOITER, []
        self._kind = VehicleStatus
        topic = px4_topic(instance, "out", VehicleStatus)
        self._status = node.create_publisher(VehicleStatus, topic, FROM_PX4)
        topic = px4_topic(instance, "out", VehicleOdometry)
        self._estimate = node.create_publisher(VehicleOdometry, topic, FROM_PX4)
        for name, kind, take in (
            ("vehicle_command", VehicleCommand, self._on_command),
            ("vehicle_visual_odometry", VehicleOdometry, self._on_odometry),
        ):
            topic = px4_topic(instance, "in", kind, name)
            node.create_subscription(kind, topic, take, FROM_PX4)
        node.create_timer(0.1, self._publish)

    def _publish(self):
        self._status.publish(self._kind(arming_state=2 if self.armed else 1, nav_state=self.mode))

    def _on_odometry(self, message):
        self.odometry.append(message)
        self._estimate.publish(message)

    def _on_command(self, message):
        if message.command == MODE:
            self.mode = OFFBOARD
        elif message.command == ARM:
            self.armed = True
        elif message.command == LAND:
            self.mode, self.armed = 18, False


@pytest.fixture
def listener(domain):
    probe = Probe()
    yield probe
    probe.close()


def arguments(tmp_path, **changed):
    given = {name: default for name, (default, _) in REAL_ARGUMENTS.items()}
    return given | {"out": str(tmp_path / "real")} | changed


def test_a_recorded_flight_drives_relay_formation_offboard_and_recorder(
    nodes, listener, tmp_path, monkeypatch
):
    from std_msgs.msg import String
    from std_srvs.srv import Trigger

    from musls_control.nodes.stepped_node import LATCHED

    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.yaml").write_text(SHORT)
    assert main(["fly", "short.yaml", "--no-report", "--out", "flown"]) == 0
    flown = read_recording(tmp_path / "flown")
    listener.listen(String, "/mission/stage", LATCHED)
    listener.listen(String, "/drone_1/offboard/phase", LATCHED)
    relay, offboard, formation, recorder = real_nodes(
        arguments(tmp_path, scenario=str(tmp_path / "flown"), auto_arm="true", autostart="true")
    )
    for node in (relay, offboard, formation):
        nodes.start(node)
    assert listener.until(lambda: "/drone_1/offboard/phase" in listener.last)
    answer = listener.call(Trigger, "/offboard/land", Trigger.Request(), again=True)
    assert not answer.success and "not heard: drone_1" in answer.message
    vehicle = Vehicle(listener.node, 1)
    assert listener.until(lambda: "no pose of load" in nodes.log("formation"))
    assert listener.until(lambda: "drone_1: no usable pose" in nodes.log("mocap_relay"))
    nodes.start(recorder)
    bag = {"bag": str(tmp_path / "flown" / "bag"), "as_mocap": True}
    nodes.start(processes.NodeSpec("musls_sim", "player", bag))
    assert listener.until(lambda: not nodes.running("player"), 150.0)
    assert vehicle.armed and listener.last["/mission/stage"].data != ""
    assert listener.call(Trigger, "/offboard/land", Trigger.Request(), again=True).success
    assert listener.until(lambda: vehicle.mode == 18)
    for name in ("recorder", "formation", "offboard", "mocap_relay"):
        assert nodes.stop(name) == 0

    recorded = read_recording(tmp_path / "real" / "bag")
    check_same_path(recorded.bodies["drone_1"], flown.bodies["drone_1"])
    delays = [(m.timestamp - m.timestamp_sample) * 1e-3 for m in vehicle.odometry]
    assert len(delays) >= 0.8 * len(flown.bodies["drone_1"].time_s)
    assert np.median(delays) < 50.0


def check_same_path(found, wanted):
    """What was recorded is what was flown, in its order and without longer gaps.

    A starved relay may miss a sample, as with cameras.
    """
    apart = np.abs(found.position_enu_m[:, None] - wanted.position_enu_m).max(axis=2)
    places = apart.argmin(axis=1)
    assert apart.min(axis=1).max() < 1e-9
    moves = np.linalg.norm(np.diff(wanted.position_enu_m, axis=0), axis=1) > 1e-6
    moving = np.append(moves, False)[places]
    assert np.all(np.diff(places[moving]) > 0)
    assert moving.sum() > 0.8 * moves[places[0] : places[-1]].sum() > 100


def test_mocap4r2_without_its_messages_is_one_line(nodes, tmp_path):
    scenario = find_scenario("solo", [])
    pytest.importorskip("rclpy")
    try:
        import mocap4r2_msgs  # noqa: F401
    except ImportError:
        relay, *_ = real_nodes(arguments(tmp_path, scenario=scenario.name, mocap="mocap4r2"))
        nodes.start(relay)
        with pytest.raises(processes.NodeFailed, match=r"mocap4r2_msgs is not installed; build it"):
            while True:
                nodes.check()


def test_rigid_bodies_of_mocap4r2_become_poses(nodes, listener, tmp_path):
    """One message has all bodies, under the names that the capture system gives them."""
    messages = pytest.importorskip("mocap4r2_msgs.msg", reason="mocap4r2_msgs is not installed")
    from geometry_msgs.msg import PoseStamped
    from px4_msgs.msg import VehicleOdometry
    from rclpy.qos import qos_profile_sensor_data

    relay, *_ = real_nodes(arguments(tmp_path, scenario="solo", mocap="mocap4r2"))
    named = {"rigid_bodies": ["payload", "cf1"], "north_aligned": True}
    nodes.start(replace(relay, parameters={**relay.parameters, **named}))
    out = listener.node.create_publisher(
        messages.RigidBodies, "/rigid_bodies", qos_profile_sensor_data
    )
    odometry = "/px4_1/fmu/in/vehicle_visual_odometry"
    wanted = {"/load/pose": 1.0, "/drone_1/pose": 2.0}
    for topic in wanted:
        listener.listen(PoseStamped, topic)
    listener.listen(VehicleOdometry, odometry)

    def heard():
        message = messages.RigidBodies()
        message.header.stamp = listener.node.get_clock().now().to_msg()
        for name, x in (("cf1", 2.0), ("wand", 9.0), ("payload", 1.0)):
            body = messages.RigidBody(rigid_body_name=name)
            body.pose.position.x, body.pose.position.z = x, 0.5
            message.rigidbodies.append(body)
        out.publish(message)
        return len(listener.last) == 3

    assert listener.until(heard), nodes.log("mocap_relay")
    for topic, x in wanted.items():
        position = listener.last[topic].pose.position
        assert (position.x, position.y, position.z) == (x, 0.0, 0.5)
    assert listener.last[odometry].position.tolist() == [0.0, 2.0, -0.5]
