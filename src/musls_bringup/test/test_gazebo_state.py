"""Gazebo's messages through the bridge become a bag; the nodes are started as in compose.yaml."""

import subprocess
import sys
from itertools import count

import numpy as np
import pytest
import yaml
from ros_probe import Probe, needs_ros, own_domain
from scipy.spatial.transform import Rotation

from musls_analysis.recordings.readers import read_recording
from musls_bringup.gazebo.__main__ import main as write_files

pytestmark = [needs_ros(), pytest.mark.timeout(1200)]

PERIOD_S, TIMES = 0.02, 200
RADIUS_M, RATE_RAD_S, TILT_RAD = 1.5, 0.8, 0.3
STAGE_AT, BY_NOW, LEFT_OUT = 60, 120, 140
"""Times: the stage begins, discovery is over for sure, one body's message is missing."""


@pytest.fixture
def flight(tmp_path):
    out = tmp_path / "flight"
    assert write_files(["circle", "--out", str(out)]) == 0
    return out


@pytest.fixture
def probe():
    with own_domain():
        listener = Probe()
        yield listener
        listener.close()


@pytest.fixture
def start(flight, probe, tmp_path):
    """Starts a node with the flight's parameters; ends it with the test."""
    started = []

    def start_node(package, node):
        command = [sys.executable, "-m", f"{package}.nodes.{node}"]
        command += ["--ros-args", "--params-file", str(flight / "nodes.yaml")]
        with (tmp_path / f"{node}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        started.append(process)
        return process

    yield start_node
    for process in started:
        process.terminate()
        process.wait(60)


def motion(body, t):
    """Position, attitude, velocity and angular velocity in the world: round a circle, leaning."""
    phase = body + RATE_RAD_S * t
    around, ahead = np.array([np.cos(phase), np.sin(phase)]), [-np.sin(phase), np.cos(phase)]
    attitude = Rotation.from_euler("zx", [phase, TILT_RAD])
    velocity = RADIUS_M * RATE_RAD_S * np.array([*ahead, 0.0])
    return np.array([*(RADIUS_M * around), 1.0 + body]), attitude, velocity, [0, 0, RATE_RAD_S]


def odometry(body, t):
    """Gazebo's message: the twist is seen in the body's frame."""
    from nav_msgs.msg import Odometry

    position, attitude, velocity, omega = motion(body, t)
    message = Odometry()
    message.header.frame_id = "world"
    nanoseconds = round(t * 1e9)
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 10**9)
    pose, twist = message.pose.pose, message.twist.twist
    for xyz, values in [
        (pose.position, position),
        (twist.linear, attitude.inv().apply(velocity)),
        (twist.angular, attitude.inv().apply(omega)),
    ]:
        xyz.x, xyz.y, xyz.z = map(float, values)
    q = pose.orientation
    q.x, q.y, q.z, q.w = attitude.as_quat().tolist()
    return message


def seconds(stamp):
    return stamp.sec + stamp.nanosec * 1e-9


@pytest.mark.slow
def test_gazebos_odometry_becomes_a_bag_that_can_be_analysed(flight, start, probe, tmp_path):
    from nav_msgs.msg import Odometry
    from rosgraph_msgs.msg import Clock
    from std_msgs.msg import String

    from musls_control.nodes.stepped_node import LATCHED

    start("musls_sim", "gazebo_state")
    recorder = start("musls_sim", "recorder")
    bridge = yaml.safe_load((flight / "bridge.yaml").read_text())
    bodies = [
        probe.node.create_publisher(Odometry, entry["ros_topic_name"], 10) for entry in bridge
    ]
    stage = probe.node.create_publisher(String, "/mission/stage", LATCHED)
    state = probe.node.create_publisher(String, "/formation/state", LATCHED)
    probe.listen(Clock, "/clock", 200)
    assert probe.until(
        lambda: (
            all(p.get_subscription_count() for p in [*bodies, stage, state])
            and probe.node.count_subscribers("/load/pose")
        )
    )
    log = tmp_path / "recorder.log"
    before = 0  # times until the recorder hears the clock
    while "recording" not in log.read_text():
        before += 1
        assert before < 2000
        for body, publisher in enumerate(bodies):
            publisher.publish(odometry(body, before * PERIOD_S))
        probe.spin(PERIOD_S)

    def clock():
        return probe.last["/clock"].clock if "/clock" in probe.last else None

    for k in range(1, TIMES + 1):
        if k == STAGE_AT:
            stage.publish(String(data="circle"))
        for body, publisher in enumerate(bodies):
            if (k, body) != (LEFT_OUT, 2):
                publisher.publish(odometry(body, (before + k) * PERIOD_S))
        if k > BY_NOW and k != LEFT_OUT:  # no faster than the node is
            at_s = (before + k) * PERIOD_S
            assert probe.until(lambda at_s=at_s: clock() and seconds(clock()) > at_s - 1e-6)
        else:
            probe.spin(PERIOD_S)
    state.publish(String(data="done"))
    assert recorder.wait(100) == 0

    recording = read_recording(flight)
    assert [s.name for s in recording.stages] == ["circle"]
    assert set(recording.bodies) == {"load", "drone_1", "drone_2", "drone_3"}
    for body, track in enumerate(recording.bodies.values()):
        first = round(track.time_s[0] / PERIOD_S) - before
        assert first <= BY_NOW
        sent = [(before + k) * PERIOD_S for k in range(first, TIMES + 1) if k != LEFT_OUT]
        assert track.time_s == pytest.approx(sent, abs=1e-9)
        places = np.array([motion(body, t)[0] for t in sent])
        assert track.position_enu_m == pytest.approx(places, abs=1e-12)


def test_twists_are_seen_in_the_world(start, probe):
    from geometry_msgs.msg import PoseStamped, TwistStamped
    from nav_msgs.msg import Odometry

    start("musls_sim", "gazebo_state")
    names = ["load", "drone_1", "drone_2", "drone_3"]
    bodies = [probe.node.create_publisher(Odometry, f"/{name}/odometry", 10) for name in names]
    for name in names:
        probe.listen(PoseStamped, f"/{name}/pose")
        probe.listen(TwistStamped, f"/{name}/twist")
    assert probe.until(lambda: all(p.get_subscription_count() for p in bodies))
    times = count(100)

    def all_heard():
        time_s = next(times) * PERIOD_S  # again, until the node has found us
        for body, publisher in enumerate(bodies):
            publisher.publish(odometry(body, time_s))
        return len(probe.last) == 2 * len(names)

    assert probe.until(all_heard)
    for body, name in enumerate(names):
        pose, twist = probe.last[f"/{name}/pose"], probe.last[f"/{name}/twist"]
        position, attitude, *_ = motion(body, seconds(pose.header.stamp))
        *_, velocity, omega = motion(body, seconds(twist.header.stamp))
        pose, twist = pose.pose, twist.twist
        p, q, v, w = pose.position, pose.orientation, twist.linear, twist.angular
        assert [p.x, p.y, p.z] == pytest.approx(position, abs=1e-12)
        assert [q.x, q.y, q.z, q.w] == pytest.approx(attitude.as_quat(), abs=1e-12)
        assert [v.x, v.y, v.z] == pytest.approx(velocity, abs=1e-12)
        assert [w.x, w.y, w.z] == pytest.approx(omega, abs=1e-12)


def test_a_second_clock_is_refused(start, probe, tmp_path):
    from rosgraph_msgs.msg import Clock

    probe.node.create_publisher(Clock, "/clock", 1)
    node = start("musls_sim", "gazebo_state")
    assert probe.until(lambda: node.poll() is not None)
    assert node.returncode == 2
    assert "another node publishes /clock" in (tmp_path / "gazebo_state.log").read_text()
