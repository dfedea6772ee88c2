"""Gazebo's odometry, body by body, becomes whole rows of state in the world frame."""

from itertools import permutations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_sim.gazebo_rows import WAITING_ROWS, BodyState, RowCollector, state_from_odometry

BODIES = ("load", "drone_1", "drone_2")
PERIOD_NS = 20_000_000


def state(x_m=0.0):
    return BodyState(
        np.array([x_m, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3), np.zeros(3)
    )


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
    found = state_from_odometry(
        place,
        np.roll(attitude.as_quat(), 1),
        attitude.inv().apply(velocity),
        attitude.inv().apply(omega),
    )
    assert found.velocity_enu_m_s == pytest.approx(velocity, abs=1e-9)
    assert found.omega_enu_rad_s == pytest.approx(omega, abs=1e-9)
    assert found.omega_enu_rad_s == pytest.approx(spin * axis, abs=1e-6)
    assert found.position_enu_m is place


@pytest.mark.parametrize("order", [*permutations(BODIES)])
def test_a_row_is_whole_with_the_last_body_whatever_the_order(order):
    collector = RowCollector(BODIES)
    for k in range(1, 4):
        *first, last = order
        assert [collector.take(body, k * PERIOD_NS, state()) for body in first] == [None, None]
        row = collector.take(last, k * PERIOD_NS, state(k))
        assert tuple(row) == BODIES
        assert row[last].position_enu_m[0] == k
    assert collector.lost == 0


def test_rows_of_two_times_may_be_under_way_at_once():
    collector = RowCollector(BODIES)
    for body in BODIES[:2]:
        assert collector.take(body, 1 * PERIOD_NS, state(1)) is None
        assert collector.take(body, 2 * PERIOD_NS, state(2)) is None
    for k in (1, 2):
        row = collector.take("drone_2", k * PERIOD_NS, state(k))
        assert [s.position_enu_m[0] for s in row.values()] == [k, k, k]
    assert collector.lost == 0


def test_time_never_goes_back():
    collector = RowCollector(BODIES)
    collector.take("load", 1 * PERIOD_NS, state())
    for body in BODIES:
        row = collector.take(body, 2 * PERIOD_NS, state())
    assert row is not None
    assert collector.lost == 1  # of the first time only the load came
    late = [collector.take(body, 1 * PERIOD_NS, state()) for body in BODIES]
    assert late == [None, None, None]
    assert collector.lost == 1


def test_incomplete_rows_are_given_up_and_counted():
    collector, times = RowCollector(BODIES), 1000
    for k in range(1, times + 1):
        assert collector.take("load", k * PERIOD_NS, state()) is None
    assert collector.lost == times - WAITING_ROWS
    assert collector.take("load", PERIOD_NS, state()) is None
