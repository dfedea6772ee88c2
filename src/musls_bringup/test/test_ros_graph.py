"""Failures of a ROS graph: real DDS, nodes as processes, each test in its own domain."""

import json
import signal

import numpy as np
import pytest
from ros_probe import needs_ros

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.ros import processes
from musls_description.config.schema import to_yaml
from musls_sim.scenario.scenario import load_scenario

pytestmark = [needs_ros(), pytest.mark.timeout(1200)]

DUPLICATE_CHECK_S = 3.0
LOITER, OFFBOARD, LAND = 4, 14, 18


def start(nodes, file, *, with_formation=True, **parameters):
    nodes.start(processes.simulator(file, realtime=True, **parameters))
    nodes.start(processes.offboard(3))
    if with_formation:
        nodes.start(processes.formation(file, autostart=True))


@pytest.mark.slow
def test_drones_hover_when_the_formation_dies_and_can_be_landed(nodes, probe, air):
    from std_srvs.srv import Trigger

    start(nodes, air)
    probe.wait_for_flight()
    nodes.stop("formation", signal.SIGKILL)
    assert probe.until(lambda: probe.phases == {"holding"})
    before = probe.positions()
    probe.spin(4.0)
    assert np.abs(probe.positions() - before).max() < 0.1
    assert all(not s.failsafe and s.nav_state == OFFBOARD for s in probe.statuses)
    assert probe.call(Trigger, "/offboard/land", Trigger.Request(), again=True).success
    assert probe.until(lambda: probe.phases == {"released"})
    assert probe.until(lambda: all(s.nav_state == LAND for s in probe.statuses))
    assert probe.until(lambda: probe.positions()[1:, 2].max() < before[1:, 2].min() - 0.3)


@pytest.mark.slow
def test_px4s_failsafe_holds_when_the_offboard_node_dies(nodes, probe, air):
    start(nodes, air, offboard_loss_action="hold")
    probe.wait_for_flight()
    before = probe.positions()
    nodes.stop("offboard", signal.SIGKILL)
    assert probe.until(lambda: all(s.failsafe for s in probe.statuses))
    probe.spin(3.0)
    assert all(s.nav_state == LOITER and s.arming_state == 2 for s in probe.statuses)
    assert np.abs(probe.positions() - before).max() < 0.1
    nodes.start(processes.offboard(3))  # a new one takes over
    assert probe.until(lambda: not any(s.failsafe for s in probe.statuses))


@pytest.mark.slow
def test_a_drone_that_leaves_offboard_mode_stops_the_others(nodes, probe, air):
    from px4_msgs.msg import VehicleCommand

    start(nodes, air)
    publisher = probe.node.create_publisher(VehicleCommand, "/px4_2/fmu/in/vehicle_command", 10)
    probe.wait_for_flight()
    assert probe.until(lambda: probe.text("/formation/state") == "flying")
    assert probe.until(publisher.get_subscription_count)
    hold = {"param1": 1.0, "param2": 4.0, "param3": 3.0}
    command = VehicleCommand(command=176, target_system=3, from_external=True, **hold)

    def paused():
        publisher.publish(command)  # again, until the simulator has found us
        return probe.text("/formation/state") == "paused"

    assert probe.until(paused)
    assert probe.until(lambda: probe.phases == {"flying", "released"})
    wanted = [OFFBOARD, LOITER, OFFBOARD]
    assert probe.until(lambda: [s.nav_state for s in probe.statuses] == wanted)


@pytest.mark.slow
def test_nodes_come_up_in_any_order_survive_a_new_simulator_and_end_clean(nodes, probe, air):
    nodes.start(processes.formation(air, autostart=True))
    probe.spin(2.0)
    nodes.start(processes.offboard(3))
    probe.spin(2.0)
    nodes.start(processes.simulator(air, realtime=False))
    probe.wait_for_flight()
    assert probe.until(lambda: "stage hold" in nodes.log("formation"))
    assert probe.until(lambda: probe.time_s > 3.0)  # or zero would be no way back
    codes = [nodes.stop("embedded_sim", signal.SIGTERM)]
    nodes.start(processes.simulator(air, realtime=False))
    assert probe.until(lambda: nodes.log("formation").count("stage hold") == 2)
    for name in ("formation", "offboard"):
        assert probe.until(lambda name=name: "time went back" in nodes.log(name))
    names = ("formation", "offboard", "embedded_sim")
    codes += [nodes.stop(name) for name in names]
    assert codes == [0, 0, 0, 0]
    assert "Traceback" not in "".join(nodes.log(name) for name in names)


@pytest.mark.slow
def test_nodes_in_flight_pass_over_somebody_elses_clock_and_a_second_simulator_is_silent(
    nodes, probe, air, tmp_path
):
    """A refused simulator says nothing; a clock without poses of its time starts nobody over."""
    from rosgraph_msgs.msg import Clock

    start(nodes, air)
    probe.wait_for_flight()
    assert probe.until(lambda: probe.text("/formation/state") == "flying")
    assert probe.until(lambda: probe.time_s > 4.0)
    times_s, publishers = [], set()

    def note(message):
        times_s.append(message.clock.sec + 1e-9 * message.clock.nanosec)
        publishers.add(probe.node.count_publishers("/clock"))

    probe.node.create_subscription(Clock, "/clock", note, 100)
    nodes.start(processes.simulator(air, realtime=True), name="second")
    assert probe.until(lambda: not nodes.running("second"))
    assert "another node publishes /clock" in nodes.log("second")
    assert 2 in publishers and np.all(np.diff(times_s) > 0.0)
    out = probe.node.create_publisher(Clock, "/clock", 10)
    assert probe.until(lambda: out.get_subscription_count() >= 3)
    for step in range(100):  # from zero, as of a new simulation, and of one that is far ahead
        message = Clock()
        message.clock.nanosec = 20_000_000 * (step % 50)
        message.clock.sec = 500 if step >= 50 else 0
        out.publish(message)
        probe.spin(0.02)
    for name in ("formation", "offboard"):
        assert probe.until(lambda name=name: "somebody else's clock" in nodes.log(name))
        assert "time went back" not in nodes.log(name)
    assert probe.text("/formation/state") == "flying" and probe.phases == {"flying"}
    assert probe.told["/formation/state"].count("flying") == 1


@pytest.mark.slow
def test_who_comes_late_is_told_what_was_said_before(nodes, probe, air):
    from geometry_msgs.msg import PoseStamped
    from ros_probe import Probe
    from std_msgs.msg import String

    from musls_control.nodes.stepped_node import LATCHED

    start(nodes, air)
    probe.wait_for_flight()
    assert probe.until(lambda: probe.stage == "hold")
    late = Probe()
    try:
        late.listen(String, "/mission/stage", LATCHED)
        for body in ("load", "drone_1", "drone_2", "drone_3"):
            late.listen(PoseStamped, f"/{body}/setpoint", LATCHED)
        assert late.until(lambda: len(late.last) == 5), late.last.keys()
        place = late.last["/load/setpoint"].pose.position
    finally:
        late.close()
    assert np.linalg.norm(probe.positions()[0] - [place.x, place.y, place.z]) < 0.1


def test_what_px4_says_is_where_the_drones_are(nodes, probe, air):
    from px4_msgs.msg import VehicleOdometry

    from musls_control.nodes.stepped_node import FROM_PX4
    from musls_control.px4.frames import orientation_enu_ned, world_enu_ned

    nodes.start(processes.simulator(air, realtime=True))
    topics = [f"/px4_{i}/fmu/out/vehicle_odometry" for i in (1, 2, 3)]
    for topic in topics:
        probe.listen(VehicleOdometry, topic, FROM_PX4)
    places = probe.positions()[1:]
    assert probe.until(lambda: all(topic in probe.last for topic in topics))
    for i, topic in enumerate(topics):
        odometry = probe.last[topic]
        assert world_enu_ned(odometry.position) == pytest.approx(places[i], abs=0.02)
        q = probe.last[f"/drone_{i + 1}/pose"].pose.orientation
        turned = np.dot(orientation_enu_ned(odometry.q), [q.w, q.x, q.y, q.z])
        assert abs(turned) == pytest.approx(1.0, abs=1e-3)
        assert odometry.pose_frame == VehicleOdometry.POSE_FRAME_NED


@pytest.mark.slow
def test_an_instance_that_is_not_there_is_named(nodes, probe, air):
    nodes.start(processes.simulator(air, realtime=True))
    nodes.start(
        processes.NodeSpec("musls_control", "offboard", {"use_sim_time": True, "drones": [7]})
    )
    nodes.start(
        processes.NodeSpec("musls_control", "offboard", {"drones": [0]}), name="instance_zero"
    )
    assert probe.until(lambda: not nodes.running("instance_zero"))
    assert "PX4 instance 0: must be 1 to 253" in nodes.last_line("instance_zero")
    assert probe.until(lambda: "px4 -i 7" in nodes.log("offboard"))


def test_a_command_for_another_system_is_ignored(nodes, probe, ground):
    from px4_msgs.msg import VehicleCommand, VehicleCommandAck

    from musls_control.nodes.stepped_node import FROM_PX4

    nodes.start(processes.simulator(ground, realtime=True))
    probe.listen(VehicleCommandAck, "/px4_1/fmu/out/vehicle_command_ack", FROM_PX4)
    publisher = probe.node.create_publisher(VehicleCommand, "/px4_1/fmu/in/vehicle_command", 10)
    heard = lambda: len(probe.statuses) == 3 and publisher.get_subscription_count()  # noqa: E731
    assert probe.until(heard)
    arm = VehicleCommand(command=400, param1=1.0, target_system=3, from_external=True)
    said = "for system 3, this is 2: ignored"

    def ignored():
        publisher.publish(arm)  # again, until the simulator has found us
        return said in nodes.log("embedded_sim")

    assert probe.until(ignored)
    assert probe.statuses[0].arming_state == 1
    arm.target_system = 2
    ack = "/px4_1/fmu/out/vehicle_command_ack"

    def acknowledged():
        publisher.publish(arm)  # again, until the acknowledgements have found us
        return ack in probe.last

    assert probe.until(acknowledged)
    assert probe.last[ack].result == 0
    assert probe.until(lambda: probe.statuses[0].arming_state == 2)
    assert probe.statuses[1].arming_state == 1


@pytest.mark.slow
def test_a_second_node_of_a_kind_ends_with_one_line(nodes, probe, air):
    made = {
        "embedded_sim": processes.simulator(air, realtime=True),
        "offboard": processes.offboard(3),
        "formation": processes.formation(air),
    }
    topics = ["/clock", "/px4_1/fmu/in/trajectory_setpoint", "/formation/setpoints"]
    for spec in made.values():
        nodes.start(spec)
    assert probe.until(lambda: all(probe.node.count_publishers(t) == 1 for t in topics))
    probe.spin(2.0 * DUPLICATE_CHECK_S)  # the first ones feel at home
    assert probe.until(
        lambda: "/load/pose" in probe.last and probe.time_s > 2.0 * DUPLICATE_CHECK_S
    )
    for name, spec in made.items():
        nodes.start(spec, name=f"second_{name}")
    for name in made:
        second = f"second_{name}"
        assert probe.until(lambda second=second: not nodes.running(second)), second
        assert "already" in nodes.last_line(second)
        assert nodes.running(name)


def test_events_are_published_also_for_late_subscribers(nodes, probe, tmp_path):
    from std_msgs.msg import String

    from musls_control.nodes.stepped_node import LATCHED

    poke = "{kind: poke, when: {time_s: 0.1}, body: load, force_enu_n: [1, 0, 0], duration_s: 0.1}"
    file = tmp_path / "poked.yaml"
    file.write_text(
        to_yaml(find_scenario("hold", ["system.cables.links=3", "start=air", f"events=[{poke}]"]))
    )
    nodes.start(processes.simulator(file, realtime=True))
    assert probe.until(lambda: "/load/pose" in probe.last and probe.time_s > 0.3)
    probe.listen(String, "/events", LATCHED)
    assert probe.until(lambda: probe.text("/events") == "poke: over")


def test_events_are_triggered_and_applied_by_ros(nodes, probe, tmp_path):
    from std_msgs.msg import String
    from std_srvs.srv import Trigger

    from musls_control.nodes.stepped_node import LATCHED

    wait = "{kind: poke, name: push, when: {time_s: 9999}, body: drone_1, duration_s: 0.1}"
    file = tmp_path / "waits.yaml"
    file.write_text(
        to_yaml(find_scenario("hold", ["system.cables.links=3", "start=air", f"events=[{wait}]"]))
    )
    nodes.start(processes.simulator(file, realtime=True))
    assert probe.until(lambda: "/load/pose" in probe.last and probe.time_s > 0.1)
    probe.listen(String, "/events", LATCHED)
    answer = probe.call(Trigger, "/musls/trigger_event/push", Trigger.Request())
    assert answer.success and answer.message == "push: now"
    assert probe.until(lambda: probe.text("/events") == "poke: over")
    again = probe.call(Trigger, "/musls/trigger_event/push", Trigger.Request())
    assert not again.success and "no event 'push' is waiting" in again.message
    out = probe.node.create_publisher(String, "/musls/apply_event", 10)
    assert probe.until(lambda: out.get_subscription_count() > 0)
    out.publish(String(data='{"kind": "drone_lost", "drone": 2}'))
    assert probe.until(lambda: probe.text("/events") == "drone_lost: drone_2: all motors stopped")
    out.publish(String(data='{"kind": "nonsense"}'))
    assert probe.until(lambda: "nonsense" in nodes.last_line("embedded_sim"))


def test_a_publisher_of_another_type_is_reported(nodes, probe, air):
    from std_msgs.msg import String

    probe.node.create_publisher(String, "/px4_2/fmu/in/trajectory_setpoint", 10)
    nodes.start(processes.simulator(air, realtime=True))
    said = "probe publishes std_msgs/msg/String, not px4_msgs/msg/TrajectorySetpoint"
    assert probe.until(lambda: said in nodes.log("embedded_sim"))


def test_parameters_have_descriptions_and_ranges_that_are_kept(nodes, probe, air):
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import DescribeParameters, ListParameters, SetParameters

    def change(node, **values):
        parameters = [
            Parameter(
                name=name,
                value=ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value),
            )
            for name, value in values.items()
        ]
        request = SetParameters.Request(parameters=parameters)
        answer = probe.call(SetParameters, f"/{node}/set_parameters", request, again=True)
        return answer.results[0].successful

    # It has to be gone first: it offers services of the same name until it ends.
    nodes.start(processes.offboard(3, heartbeat_s=2.5), name="bad")
    assert probe.until(lambda: not nodes.running("bad"))
    assert "heartbeat_s" in nodes.last_line("bad") and "Traceback" not in nodes.log("bad")
    nodes.start(processes.offboard(3))
    nodes.start(processes.formation(air))
    own = ("use_sim_time", "qos_overrides", "start_type_description_service")
    for node in ("offboard", "formation"):
        request = ListParameters.Request()
        listed = probe.call(ListParameters, f"/{node}/list_parameters", request, again=True)
        names = [name for name in listed.result.names if not name.startswith(own)]
        request = DescribeParameters.Request(names=names)
        name = f"/{node}/describe_parameters"
        answer = probe.call(DescribeParameters, name, request, again=True)
        for described in answer.descriptors:
            assert described.description, described.name
            number = described.type == ParameterType.PARAMETER_DOUBLE
            assert bool(described.floating_point_range) == number, described.name
    assert change("offboard", heartbeat_s=0.2)
    assert not change("offboard", heartbeat_s=2.5)
    assert change("formation", goal_speed_m_s=0.1)
    assert not change("formation", goal_speed_m_s=5.0)


@pytest.mark.slow
def test_pause_goal_and_abort_by_ros(nodes, probe, ground):
    from geometry_msgs.msg import PoseStamped
    from std_srvs.srv import SetBool, Trigger

    nodes.start(processes.simulator(ground, realtime=False))
    nodes.start(processes.offboard(3))
    nodes.start(processes.formation(ground))
    refused = probe.call(Trigger, "/formation/abort", Trigger.Request())
    assert not refused.success and "not flying" in refused.message
    assert probe.call(Trigger, "/formation/start", Trigger.Request()).success
    told = probe.told
    assert probe.until(lambda: "transit" in told.get("/mission/stage", []), 150.0), probe.stage
    assert probe.call(SetBool, "/formation/pause", SetBool.Request(data=True), again=True).success
    publisher = probe.node.create_publisher(PoseStamped, "/load/goal", 10)
    assert probe.until(publisher.get_subscription_count)
    goal = PoseStamped()
    goal.header.frame_id = "world"
    goal.pose.position.x, goal.pose.position.z = 0.5, 1.2
    publisher.publish(goal)
    assert probe.until(lambda: probe.stage == "goal")
    place = [0.5, 0.0, 1.2]
    assert probe.until(lambda: np.linalg.norm(probe.positions()[0] - place) < 0.05)
    assert probe.call(Trigger, "/formation/abort", Trigger.Request()).success
    assert probe.until(lambda: probe.stage == "disarmed", 200.0), probe.stage
    assert probe.until(lambda: probe.phases <= {"landed", "idle"})
    assert probe.positions()[:, 2].max() < 0.5


def test_a_missing_scenario_ends_with_one_line(nodes, probe, tmp_path):
    nodes.start(processes.simulator(tmp_path / "none.yaml"))
    assert probe.until(lambda: not nodes.running("embedded_sim"))
    assert "none.yaml" in nodes.last_line("embedded_sim")


@pytest.mark.parametrize(
    ("driver", "came"),
    [("poses", "/mocap/drone_2/pose"), ("vrpn_mocap", "/vrpn_mocap/drone_2/pose")],
)
def test_the_relay_of_motion_capture_states_frame_time_and_latency(nodes, probe, driver, came):
    from geometry_msgs.msg import PoseStamped
    from px4_msgs.msg import VehicleOdometry

    relay = {"drones": [2], "camera_latency_s": 0.01, "north_aligned": True, "input": driver}
    nodes.start(processes.NodeSpec("musls_control", "mocap_relay", relay))
    topic = "/px4_2/fmu/in/vehicle_visual_odometry"
    probe.listen(VehicleOdometry, topic)
    publisher = probe.node.create_publisher(PoseStamped, came, 10)
    assert probe.until(publisher.get_subscription_count)

    def heard():
        pose = PoseStamped()
        pose.header.stamp = probe.node.get_clock().now().to_msg()
        p, q = pose.pose.position, pose.pose.orientation
        p.x, p.y, p.z, q.w = 1.0, 2.0, 3.0, 1.0
        publisher.publish(pose)
        return topic in probe.last and "latency mean" in nodes.log("mocap_relay")

    assert probe.until(heard)
    found = probe.last[topic]
    assert found.position.tolist() == [2.0, 1.0, -3.0]
    assert 10_000 <= found.timestamp - found.timestamp_sample < 210_000
    assert found.pose_frame == VehicleOdometry.POSE_FRAME_NED


POST = {
    "name": "post",
    "system": "x500_trio_swivel",
    "start": "air",
    "controller": {"kind": "nmpc", "output": "autopilot", "clearance_m": 0.1, "rate_hz": 5,
                   "steps": 8},
    "mission": {
        "settle_s": 0.5,
        "stages": [
            {"kind": "min_derivative", "segment_s": [4.0], "points": [[0, 0, 1.5], [2.5, 0, 1.5]]}
        ],
    },
    "world": {"obstacles": [{"kind": "cylinder", "name": "post", "radius_m": 0.1, "height_m": 5.0,
                             "position_enu_m": [1.0, 1.15, 2.5]}]},
}  # fmt: skip
"""Whoever does not know of the post flies drone_2 into it at 0.9 m/s."""


@pytest.mark.slow
def test_planned_control_knows_the_obstacles_and_tells_how_long_plans_take(nodes, probe, tmp_path):
    pytest.importorskip("casadi", reason="the extra mpc is not installed")
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String

    file, told = tmp_path / "post.yaml", tmp_path / "controller.json"
    file.write_text(to_yaml(load_scenario(POST, ["system.cables.links=3"])))
    probe.listen(String, "/events", QoSProfile(depth=50, durability=DurabilityPolicy.VOLATILE))
    probe.listen(DiagnosticArray, "/diagnostics")
    nodes.start(processes.simulator(file, realtime=False))
    nodes.start(processes.offboard(3))
    nodes.start(processes.formation(file, autostart=True, statistics_file=str(told)))
    assert probe.until(lambda: probe.stage == "min_derivative")
    assert probe.until(lambda: probe.positions()[0, 0] > 2.3)
    assert not [what for what in probe.told.get("/events", []) if what.startswith("collision")]
    named = {status.name: status for status in probe.last["/diagnostics"].status}
    flying = named["formation: controller"]
    numbers = {pair.key: float(pair.value) for pair in flying.values}
    assert flying.message == "flies" and numbers["plans"] >= 3
    assert 0.0 < numbers["solve_median_ms"] <= numbers["solve_max_ms"]
    assert nodes.stop("formation") == 0
    written = json.loads(told.read_text())
    assert written.keys() == numbers.keys() and written["plans"] >= numbers["plans"]
