"""Velocity, acceleration, jerk and snap of set-points: closed forms and difference quotients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev
from trajectory_examples import EXAMPLES

from musls_control.trajectories import (
    TRAJECTORIES,
    Circle,
    CycleRule,
    Engage,
    Line,
    Quintic,
    Shm,
    Step,
    Waypoint,
    Waypoints,
    trajectory_of_stage,
)
from musls_control.trajectories.curves import RampedCurve
from musls_control.trajectories.min_derivative import MinDerivative
from musls_control.trajectories.recorded import RecordedTrajectory


def derivatives(trajectory, *times_s):
    return trajectory.derivatives(np.array(times_s, float))


def corners(trajectory):
    """Times at which the velocity jumps."""
    if isinstance(trajectory, Engage):
        parts = ("turn_s", "rest_s", "yaw_hold_s", "yaw_return_s", "hold_s", "lower_s")
        once = np.cumsum([0.0, *(getattr(trajectory, name) for name in parts)])
        return np.concatenate(
            [once + k * trajectory.period_s for k in range(trajectory.repetitions)]
        )
    if isinstance(trajectory, Line):
        return 0.5 * trajectory.period_s * np.arange(2 * trajectory.repetitions + 1)
    if isinstance(trajectory, Waypoints):
        return trajectory._knots()[0]
    if isinstance(trajectory, MinDerivative):
        holds = [point.hold_s for point in trajectory.points]
        return np.concatenate([trajectory.point_s, trajectory.point_s + holds])
    if isinstance(trajectory, Quintic):
        return np.concatenate([trajectory.start_s, trajectory.start_s + trajectory.line_s])
    if isinstance(trajectory, RecordedTrajectory):
        return trajectory.samples[0]
    if isinstance(trajectory, RampedCurve):
        ends = [0.0, trajectory.ramp_s, trajectory.ramp_s + trajectory.cruise_s]
        return np.array([*ends, trajectory.duration_s])
    if isinstance(trajectory, Step):
        return np.array([0.0, trajectory.wait_s, trajectory.duration_s])
    return np.array([0.0, trajectory.duration_s])


@pytest.mark.parametrize("kind", EXAMPLES)
def test_order_zero_is_the_pose_bit_for_bit(kind):
    trajectory = EXAMPLES[kind]
    times = np.linspace(0.0, trajectory.duration_s, 3001)
    found = trajectory.derivatives(times)
    assert found.shape == (3001, 5, 4)
    assert np.isfinite(found).all()
    assert np.array_equal(found[:, 0], trajectory.pose(times))


@pytest.mark.parametrize("kind", EXAMPLES)
def test_derivatives_are_those_of_the_poses_between_corners(kind):
    """Against the derivatives of the polynomial through the poses of a short piece of time."""
    trajectory = EXAMPLES[kind]
    half = 0.2  # s; a polynomial of degree 12 follows these waves over it to rounding
    nodes = np.cos(np.pi * (np.arange(13) + 0.5) / 13)
    middles = np.linspace(0.0, trajectory.duration_s, 41)
    away = [np.abs(corners(trajectory) - t).min() > half + 0.01 for t in middles]
    middles = middles[away]
    assert len(middles) > 10
    for t in middles:
        fit = chebyshev.chebfit(nodes, trajectory.pose(t + half * nodes), 12)
        found = derivatives(trajectory, t)[0]
        for order in range(1, 5):
            expected = chebyshev.chebval(0.0, chebyshev.chebder(fit, order)) / half**order
            # Rounding of the poses, 1e-15, is divided by half**order and grows with the degree.
            assert np.allclose(found[order], expected, rtol=1e-6, atol=1e-8), (t, order)


@settings(max_examples=30)
@given(radius=st.floats(0.1, 20.0), speed=st.floats(0.05, 5.0), share=st.floats(0.0, 1.0))
def test_circle_in_closed_form(radius, speed, share):
    circle = Circle(radius_m=radius, speed_m_s=speed)
    w = speed / radius
    (d,) = derivatives(circle, share * circle.duration_s)
    outwards = np.array([np.cos(d[0, 3]), np.sin(d[0, 3]), 0.0])
    onwards = np.array([-outwards[1], outwards[0], 0.0])
    tolerance = dict(rtol=0, atol=1e-9 * max(1.0, radius * w**4, speed))
    assert np.allclose(d[1, :3], speed * onwards, **tolerance)
    assert np.allclose(d[2, :3], -speed * w * outwards, **tolerance)
    assert np.allclose(d[3, :3], -speed * w**2 * onwards, **tolerance)
    assert np.allclose(d[4, :3], speed * w**3 * outwards, **tolerance)
    assert d[1:, 3] == pytest.approx([w, 0.0, 0.0, 0.0])


def test_shm_obeys_its_differential_equation_and_starts_at_full_speed():
    shm = Shm(amplitude_m=0.7, omega_rad_s=3.0, axis_yaw_rad=0.4, center_m=(1.0, -2.0))
    axis = np.array([np.cos(0.4), np.sin(0.4), 0.0])
    d = shm.derivatives(np.linspace(0.0, shm.duration_s, 100))
    displacement = d[:, 0, :3] - [1.0, -2.0, 1.0]
    assert np.allclose(d[:, 2, :3], -9.0 * displacement, atol=1e-12)
    assert np.allclose(d[:, 3, :3], -9.0 * d[:, 1, :3], atol=1e-12)
    assert np.allclose(d[:, 4, :3], 81.0 * displacement, atol=1e-11)
    assert np.allclose(d[0, 1, :3], 0.7 * 3.0 * axis)
    assert (d[:, 1:, 3] == 0.0).all()


def test_engage_has_the_rate_of_the_part_that_begins():
    engage = Engage(repetitions=2)
    turn, back, down = 1.7 / 6.0, -1.7 / 9.0, -1.0 / 4.0
    starts = np.cumsum([0.0, 6.0, 3.0, 6.6, 9.0, 6.9])  # turn, rest, step, return, hold, lower
    wanted = [(0.0, turn), (0.0, 0.0), (0.0, 0.0), (0.0, back), (0.0, 0.0), (down, 0.0)]
    for cycle in (0.0, engage.period_s):
        found = engage.derivatives(cycle + starts)
        assert np.allclose(found[:, 1, 2:], wanted)
    before = engage.derivatives(starts[1:] - 1e-4)
    assert np.allclose(before[:, 1, 2:], wanted[:-1])
    (end,) = derivatives(engage, engage.duration_s)
    assert end[1, 2:] == pytest.approx([down, 0.0])
    assert (found[:, 2:] == 0.0).all() and (found[:, 1, :2] == 0.0).all()


def test_steps_of_the_pose_have_no_derivative():
    engage = Engage(turn_s=0.0, yaw_return_s=0.0)
    times = np.array([0.0, 2.9999, 3.0, 3.0001, 9.5999, 9.6])
    assert (engage.derivatives(times)[:, 1:] == 0.0).all()


def test_line_turns_round_at_its_ends():
    line = Line(start_m=(0, 0, 1), end_m=(3, 4, 1), speed_m_s=0.5, repetitions=2)
    velocity = np.array([0.3, 0.4, 0.0])
    found = derivatives(line, 0.0, 9.999, 10.0, 19.999, 20.0, 30.0, 40.0)[:, 1, :3]
    assert np.allclose(found / velocity[0], np.outer([1, 1, -1, -1, 1, -1, -1], velocity / 0.3))


def test_waypoints_hold_and_move():
    flight = Waypoints(
        points=[
            Waypoint(position_m=(0.0, 0.0, 1.0), hold_s=1.0),
            Waypoint(position_m=(3.0, 0.0, 1.0), yaw_rad=0.6, hold_s=0.5),
        ]
    )
    found = derivatives(flight, 0.0, 1.0, 6.9, 7.0, flight.duration_s)[:, 1]
    moving = [0.5, 0.0, 0.0, 0.1]
    still = [0.0, 0.0, 0.0, 0.0]
    assert np.allclose(found, [still, moving, moving, still, still])


def test_what_the_kinds_declare():
    """An engagement alone asks for special care; recordings name it in several ways."""
    special = [name for name, kind in TRAJECTORIES.items() if kind.snaps_taut]
    assert special == [name for name, kind in TRAJECTORIES.items() if kind.sets_load_down]
    assert special == ["engage"]
    rules = {name: kind.cycle_rule for name, kind in TRAJECTORIES.items()}
    cyclic = {"circle", "shm", "engage"}
    assert {name for name, rule in rules.items() if rule is not CycleRule.WHOLE} == cyclic
    assert trajectory_of_stage("engage") is trajectory_of_stage("yaw_engage") is Engage
    assert trajectory_of_stage("shm") is Shm
    assert trajectory_of_stage("transit") is None
