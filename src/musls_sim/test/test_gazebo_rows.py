"""Gazebo's odometry, body by body, becomes whole rows of state in the world frame."""

from itertools import permutations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_sim.recording.graph_signals import WAITING_TIMES, OdometryRows, odometry_messages
from musls_sim.recording.messages import serialize, types

BODIES = ("load", "drone_1", "drone_2")
PERIOD_NS = 20_000_000


def state(x_m=0.0):
    return np.array([x_m, 0.0, 0.0, 1.0, *np.zeros(9)])


def xyz(message):
    return [message.x, message.y, message.z]


def test_twist_is_the_poses_derivative():
    # A body on a circle that turns about a fixed axis, its twist in its own frame as Gazebo's.
    radius, rate, axis, spin = 1.3, 0.7, np.array([0.6, 0.0, 0.8]), 2.1

    def pose(t):
        place = [radius * np.cos(rate * t), radius * np.sin(rate * t), 0.2 * t]
        return np.array(place), Rotation.from_rotvec(spin * t * axis)

    t, dt = 1.7, 1e-5
    (before, turned), (place, attitude), (after, turns) = pose(t - dt), pose(t), pose(t + dt)
    velocity = (after - before) / (2.0 * dt)
    omega = (turns * turned.inv()).as_rotvec() / (2.0 * dt)
    in_body = attitude.inv().apply([velocity, omega])
    rows = {"load": np.concatenate([place, attitude.as_quat(scalar_first=True), *in_body])}
    sent = dict(odometry_messages(1_000_000_007, rows))
    assert [*sent] == ["/load/pose", "/load/twist", "/tf", "/clock"]
    data = {topic: serialize(message) for topic, message in sent.items()}
    received = {
        topic: types().deserialize_cdr(data[topic], message.__msgtype__)
        for topic, message in sent.items()
    }
    pose, twist = received["/load/pose"].pose, received["/load/twist"].twist
    assert xyz(twist.linear) == pytest.approx(velocity, abs=1e-9)
    assert xyz(twist.angular) == pytest.approx(omega, abs=1e-9)
    assert xyz(twist.angular) == pytest.approx(spin * axis, abs=1e-6)
    (moved,) = received["/tf"].transforms
    assert moved.child_frame_id == "load"
    assert xyz(pose.position) == xyz(moved.transform.translation) == place.tolist()
    assert pose.orientation == moved.transform.rotation
    stamps = [moved.header.stamp, *(received[t].header.stamp for t in sent if "/load" in t)]
    assert {(stamp.sec, stamp.nanosec) for stamp in stamps} == {(1, 7)}
    assert received["/clock"].clock == stamps[0]


@pytest.mark.parametrize("order", [*permutations(BODIES)])
def test_a_row_is_whole_with_the_last_body_whatever_the_order(order):
    collector = OdometryRows(BODIES)
    for k in range(1, 4):
        *first, last = order
        assert [collector.take(body, k * PERIOD_NS, state()) for body in first] == [None, None]
        row = collector.take(last, k * PERIOD_NS, state(k))
        assert tuple(row) == BODIES
        assert row[last][0] == k
    assert collector.lost == 0


def test_rows_of_two_times_may_be_under_way_at_once():
    collector = OdometryRows(BODIES)
    for body in BODIES[:2]:
        assert collector.take(body, 1 * PERIOD_NS, state(1)) is None
        assert collector.take(body, 2 * PERIOD_NS, state(2)) is None
    for k in (1, 2):
        row = collector.take("drone_2", k * PERIOD_NS, state(k))
        assert [s[0] for s in row.values()] == [k, k, k]
    assert collector.lost == 0


def test_time_never_goes_back():
    collector = OdometryRows(BODIES)
    collector.take("load", 1 * PERIOD_NS, state())
    for body in BODIES:
        row = collector.take(body, 2 * PERIOD_NS, state())
    assert row is not None
    assert collector.lost == 1  # of the first time only the load came
    late = [collector.take(body, 1 * PERIOD_NS, state()) for body in BODIES]
    assert late == [None, None, None]
    assert collector.lost == 1


def test_incomplete_rows_are_given_up_and_counted():
    collector, times = OdometryRows(BODIES), 1000
    for k in range(1, times + 1):
        assert collector.take("load", k * PERIOD_NS, state()) is None
    assert collector.lost == times - WAITING_TIMES
    assert collector.take("load", PERIOD_NS, state()) is None
