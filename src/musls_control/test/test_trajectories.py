"""The load's set-point over time: shape, speed, timing, and the set-points of a real flight."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectory_examples import EXAMPLES

from musls_control.trajectories import (
    TRAJECTORIES,
    Circle,
    Engage,
    Hold,
    Line,
    Shm,
    Waypoint,
    Waypoints,
)
from musls_description.config.errors import ConfigError

TURN = 2.0 * np.pi


def recorded_flight(name):
    """Columns of an excerpt of the real flight, or a skip where it is not at hand."""
    for parent in Path(__file__).resolve().parents:
        path = parent.parent / "shared" / "flights" / f"flight_2136_{name}.csv"
        if path.is_file():
            return np.genfromtxt(path, delimiter=",", names=True)
    return pytest.skip("no shared/flights beside the checkout")


def pose(trajectory, *times_s):
    return trajectory.pose(np.array(times_s, float))


def over(trajectory, step_s=1e-3):
    """Times from start to end, and the poses there."""
    count = int(np.ceil(trajectory.duration_s / step_s))
    times = np.linspace(0.0, trajectory.duration_s, count + 1)
    return times, trajectory.pose(times)


def greatest_rates(trajectory, step_s=1e-3):
    """Greatest speed [m/s] and yaw rate [rad/s] between samples."""
    times, poses = over(trajectory, step_s)
    rate = np.diff(poses, axis=0) / np.diff(times)[:, None]
    return np.linalg.norm(rate[:, :3], axis=1).max(), np.abs(rate[:, 3]).max()


# ---------- All of them


def test_an_example_of_every_kind_is_tested():
    assert set(EXAMPLES) == set(TRAJECTORIES)
    assert all(EXAMPLES[kind].kind == kind for kind in EXAMPLES)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_poses_are_finite_arrays_of_x_y_z_yaw(kind):
    times, poses = over(EXAMPLES[kind], 0.01)
    assert poses.shape == (len(times), 4)
    assert poses.dtype == float
    assert np.isfinite(poses).all()


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_pose_depends_on_its_time_alone(kind):
    times, poses = over(EXAMPLES[kind], 0.1)
    shuffled = np.random.default_rng(1).permutation(len(times))
    assert np.array_equal(EXAMPLES[kind].pose(times[shuffled]), poses[shuffled])


@pytest.mark.parametrize("kind", ["shm", "engage", "line"])
def test_every_repetition_is_the_first(kind):
    trajectory = EXAMPLES[kind]
    period = trajectory.period_s
    assert trajectory.duration_s == pytest.approx(trajectory.repetitions * period)
    # A little beside round times, where steps of the set-point lie.
    first = np.arange(0.0007, period, 0.0531)
    for k in range(1, trajectory.repetitions):
        later = trajectory.pose(first + k * period)
        assert np.allclose(later, trajectory.pose(first), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: Circle(radius_m=0.0), "radius_m"),
        (lambda: Circle(speed_m_s=-1.0), "speed_m_s"),
        (lambda: Circle(repetitions=0), "repetitions"),
        (lambda: Circle(repetitions=1.5), "repetitions"),
        (lambda: Circle(height_m=float("nan")), "height_m"),
        (lambda: Shm(omega_rad_s=0.0), "omega_rad_s"),
        (lambda: Shm(amplitude_m=float("inf")), "amplitude_m"),
        (lambda: Engage(lower_s=0.0), "lower_s"),
        (lambda: Engage(rest_s=-1.0), "rest_s"),
        (lambda: Hold(duration_s=0.0), "duration_s"),
        (lambda: Line(start_m=(0, 0, 1), end_m=(0, 0, 1)), "must differ"),
        (lambda: Waypoints(points=[]), "points"),
        (lambda: Waypoint(position_m=(0, 0)), "position_m"),
    ],
)
def test_bad_values_are_refused_in_one_line(make, key):
    with pytest.raises(ConfigError) as error:
        make()
    assert key in str(error.value)
    assert "\n" not in str(error.value)


# ---------- Circle


@settings(max_examples=50)
@given(
    radius=st.floats(0.1, 20.0),
    speed=st.floats(0.05, 5.0),
    x=st.floats(-10.0, 10.0),
    y=st.floats(-10.0, 10.0),
    repetitions=st.integers(1, 5),
)
def test_circle_keeps_radius_and_speed_and_closes(radius, speed, x, y, repetitions):
    circle = Circle(
        radius_m=radius, speed_m_s=speed, center_m=(x, y), height_m=1.3, repetitions=repetitions
    )
    assert circle.duration_s == pytest.approx(repetitions * TURN * radius / speed)
    times = np.linspace(0.0, circle.duration_s, 101 * repetitions)
    poses = circle.pose(times)
    spoke = poses[:, :2] - [x, y]
    assert np.allclose(np.linalg.norm(spoke, axis=1), radius, rtol=1e-9)
    assert (poses[:, 2] == 1.3).all()
    assert np.allclose(poses[-1, :3], poses[0, :3], rtol=0, atol=1e-9 * (radius + abs(x) + abs(y)))
    # The chord of a step gives its arc: speed without a difference quotient's error.
    chord = np.linalg.norm(np.diff(spoke, axis=0), axis=1)
    arc = 2.0 * radius * np.arcsin(chord / (2.0 * radius))
    assert np.allclose(arc / np.diff(times), speed, rtol=1e-6)


def test_circle_runs_counter_clockwise_with_the_loads_x_axis_outwards():
    circle = EXAMPLES["circle"]
    quarter = circle.period_s / 4.0
    east, north, west = pose(circle, 0.0, quarter, 2.0 * quarter)
    assert east[:2] == pytest.approx([1.5, -0.4])
    assert north[:2] == pytest.approx([0.3, 0.8])
    assert west[:2] == pytest.approx([-0.9, -0.4])
    _, poses = over(circle, 0.01)
    outwards = np.column_stack([np.cos(poses[:, 3]), np.sin(poses[:, 3])])
    assert np.allclose(poses[:, :2], [0.3, -0.4] + 1.2 * outwards)


def test_circles_yaw_is_continuous_over_repetitions():
    times, poses = over(EXAMPLES["circle"], 0.01)
    assert poses[0, 3] == 0.0
    assert poses[-1, 3] == pytest.approx(2 * TURN)
    assert np.allclose(np.diff(poses[:, 3]), 0.5 / 1.2 * np.diff(times))


def test_the_real_flights_circle():
    """Radius 1.5 m, 0.2 rad/s, height 1.0 m, x axis outwards, as default."""
    log = recorded_flight("circle")
    angle = np.unwrap(log["load_des_yaw"])
    wanted = Circle().pose(angle / 0.2)
    logged = np.column_stack([log[f"load_des_{name}"] for name in "xyz"])
    # Updated at 5 Hz: a multiple of 0.04 rad between any two rows, 0.2 rad/s on the whole. In two
    # rows the yaw is up to 7 mrad off that of position and of all other rows.
    updates = (angle - angle[0]) / 0.04
    regular = np.abs(updates - np.round(updates)) < 1e-3
    assert np.sum(~regular) <= 2
    assert np.allclose(logged[regular], wanted[regular, :3], rtol=0, atol=1e-5)
    assert np.polyfit(log["t"], angle, 1)[0] == pytest.approx(0.2, abs=1e-3)


# ---------- Shm


@settings(max_examples=50)
@given(
    amplitude=st.floats(0.01, 5.0),
    omega=st.floats(0.1, 10.0),
    axis=st.floats(-4.0, 4.0),
    repetitions=st.integers(1, 7),
)
def test_shm_is_the_sine_law_along_its_axis(amplitude, omega, axis, repetitions):
    shm = Shm(
        amplitude_m=amplitude,
        omega_rad_s=omega,
        axis_yaw_rad=axis,
        yaw_rad=0.7,
        height_m=1.4,
        center_m=(2.0, -3.0),
        repetitions=repetitions,
    )
    assert shm.duration_s == pytest.approx(repetitions * TURN / omega)
    times, poses = over(shm, shm.duration_s / 400)
    along = (poses[:, 0] - 2.0) * np.cos(axis) + (poses[:, 1] + 3.0) * np.sin(axis)
    across = (poses[:, 1] + 3.0) * np.cos(axis) - (poses[:, 0] - 2.0) * np.sin(axis)
    assert np.allclose(along, amplitude * np.sin(omega * times), rtol=0, atol=1e-9)
    assert np.abs(across).max() < 1e-9
    assert (poses[:, 2] == 1.4).all() and (poses[:, 3] == 0.7).all()


def test_shm_starts_and_ends_in_the_middle_and_turns_at_the_amplitude():
    shm = EXAMPLES["shm"]
    middle = [0.3, -0.4, 1.0]
    quarter = shm.period_s / 4.0
    start, out, back, end = pose(shm, 0.0, quarter, 3.0 * quarter, shm.duration_s)
    assert start[:3] == pytest.approx(middle)
    assert end[:3] == pytest.approx(middle)
    assert out[:3] == pytest.approx([0.3, 0.4, 1.0])
    assert back[:3] == pytest.approx([0.3, -1.2, 1.0])


def test_the_real_flights_shm():
    """The logged set-point is y = sin(2 (t - 304.838)), sampled at 5 Hz, by our default."""
    log = recorded_flight("shm")
    shm = Shm(repetitions=7)
    sample = np.floor((log["t"] - 304.838 + 0.01) / 0.2)  # the logger's time jitters by 2 ms
    wanted = shm.pose(0.2 * sample)
    for k, name in enumerate(("x", "y", "z", "yaw")):
        # Printed with six digits.
        assert np.allclose(log[f"load_des_{name}"], wanted[:, k], rtol=0, atol=5e-6)
    assert len(log) == 126 and sample[0] == 37


# ---------- Engage


def test_engage_turns_with_slack_cables_and_then_steps_up():
    engage = Engage()
    step = engage.turn_s + engage.rest_s
    start, turning, turned, before, after = pose(
        engage, 0.0, 0.5 * engage.turn_s, engage.turn_s, step - 1e-6, step
    )
    assert start == pytest.approx([0.0, 0.0, -0.5, 0.0])
    assert turning == pytest.approx([0.0, 0.0, -0.5, 0.85])
    assert turned == pytest.approx([0.0, 0.0, -0.5, 1.7])
    assert before == pytest.approx([0.0, 0.0, -0.5, 1.7])
    assert after == pytest.approx([0.0, 0.0, 0.5, 1.7])


def test_engage_without_time_to_turn_steps_up_and_round_at_once():
    engage = Engage(turn_s=0.0)
    before, after = pose(engage, engage.rest_s - 1e-6, engage.rest_s)
    assert before == pytest.approx([0.0, 0.0, -0.5, 0.0])
    assert after == pytest.approx([0.0, 0.0, 0.5, 1.7])


def test_engages_time_line():
    engage = Engage(
        rest_height_m=-0.4,
        height_m=0.6,
        yaw_rad=-1.0,
        turn_s=2.0,
        rest_s=1.0,
        yaw_hold_s=2.0,
        yaw_return_s=4.0,
        hold_s=3.0,
        lower_s=5.0,
        center_m=(1.0, 2.0),
    )
    assert engage.period_s == engage.duration_s == 17.0
    heights_and_yaws = {
        0.0: (-0.4, 0.0),
        1.0: (-0.4, -0.5),
        2.0: (-0.4, -1.0),
        2.999: (-0.4, -1.0),
        3.0: (0.6, -1.0),
        5.0: (0.6, -1.0),  # held until here, then turned back at a constant rate
        6.0: (0.6, -0.75),
        7.0: (0.6, -0.5),
        9.0: (0.6, 0.0),
        12.0: (0.6, 0.0),  # held until here, then down at a constant speed
        13.0: (0.4, 0.0),
        17.0: (-0.4, 0.0),
    }
    poses = pose(engage, *heights_and_yaws)
    assert np.allclose(poses[:, :2], [1.0, 2.0])
    assert np.allclose(poses[:, 2:], list(heights_and_yaws.values()), rtol=0, atol=1e-9)


def test_engage_steps_once_per_repetition_and_nowhere_else():
    engage = EXAMPLES["engage"]
    times, poses = over(engage, 1e-3)
    jumps = np.abs(np.diff(poses, axis=0)).max(axis=1) > 0.01
    starts = times[1:][jumps]
    assert starts == pytest.approx([9.0, engage.period_s + 9.0], abs=2e-3)
    assert poses[0] == pytest.approx([0.3, -0.4, -0.5, 0.0])
    assert poses[-1] == pytest.approx([0.3, -0.4, -0.5, 0.0])


@settings(max_examples=50)
@given(
    there=st.floats(0.0, 5.0),
    rest=st.floats(0.01, 5.0),
    hold=st.floats(0.0, 5.0),
    turn=st.floats(0.0, 5.0),
    stay=st.floats(0.0, 5.0),
    lower=st.floats(0.1, 5.0),
    repetitions=st.integers(1, 4),
)
def test_engages_parts_add_up_whatever_their_length(
    there, rest, hold, turn, stay, lower, repetitions
):
    engage = Engage(
        turn_s=there,
        rest_s=rest,
        yaw_hold_s=hold,
        yaw_return_s=turn,
        hold_s=stay,
        lower_s=lower,
        repetitions=repetitions,
    )
    period = there + rest + hold + turn + stay + lower
    assert engage.duration_s == pytest.approx(repetitions * period)
    poses = engage.pose(np.linspace(0.0, engage.duration_s, 1000))
    assert np.isfinite(poses).all()
    assert poses[:, 2].min() >= -0.5 - 1e-9 and poses[:, 2].max() <= 0.5 + 1e-9
    # A turn of a few ulp of the time is as steep as rounding lets it be.
    assert poses[:, 3].min() >= -1e-6 and poses[:, 3].max() <= 1.7 + 1e-6
    # The end is where the next cycle could start.
    assert poses[-1, 2:] == pytest.approx([-0.5, 0.0], abs=1e-6)


def test_the_real_flights_engagement():
    """Logged set-points from the step on, 5 Hz: at once 0.5 m, at 1.7 rad, hold, turn back."""
    log = recorded_flight("engage")
    engage = Engage()
    since_step = 0.2 * np.floor((log["t"] - 152.858 + 0.02) / 0.2)
    assert since_step[-1] < engage.yaw_hold_s + engage.yaw_return_s + engage.hold_s
    wanted = engage.pose(engage.turn_s + engage.rest_s + since_step)
    for k, name in enumerate(("x", "y", "z")):
        assert np.allclose(log[f"load_des_{name}"], wanted[:, k], rtol=0, atol=1e-9)
    # One row of the log, 162.457, is 1.7 mrad off the line through all others.
    off = np.abs(log["load_des_yaw"] - wanted[:, 3])
    assert off.max() < 2e-3
    assert np.sum(off > 1e-5) <= 1


# ---------- Hold, line and waypoints


def test_hold_stays():
    hold = EXAMPLES["hold"]
    assert hold.duration_s == hold.period_s == 4.0
    _, poses = over(hold, 0.1)
    assert (poses == [1.0, 2.0, 3.0, 0.4]).all()


@settings(max_examples=50)
@given(
    start=st.tuples(*[st.floats(-5.0, 5.0)] * 3),
    end=st.tuples(*[st.floats(-5.0, 5.0)] * 3),
    speed=st.floats(0.1, 3.0),
    repetitions=st.integers(1, 4),
)
def test_line_goes_there_and_back_at_constant_speed(start, end, speed, repetitions):
    length = np.linalg.norm(np.subtract(end, start))
    if length < 0.01:
        return
    line = Line(start_m=start, end_m=end, speed_m_s=speed, yaw_rad=0.3, repetitions=repetitions)
    assert line.duration_s == pytest.approx(2.0 * repetitions * length / speed)
    half = line.period_s / 2.0
    turns = line.pose(half * np.arange(2 * repetitions + 1))
    assert np.allclose(turns[0::2, :3], start, rtol=0, atol=1e-6)
    assert np.allclose(turns[1::2, :3], end, rtol=0, atol=1e-6)
    times = np.linspace(0.0, half, 50)
    poses = line.pose(times)
    steps = np.linalg.norm(np.diff(poses[:, :3], axis=0), axis=1)
    assert np.allclose(steps / np.diff(times), speed, rtol=1e-6)
    assert (poses[:, 3] == 0.3).all()


def test_waypoints_are_reached_held_and_left_at_the_right_times():
    waypoints = EXAMPLES["waypoints"]  # 1 s, then 3 m at 0.5 m/s, 0.5 s, back, and again
    assert waypoints.duration_s == pytest.approx(1.0 + 6.0 + 0.5 + 6.0 + 1.0 + 6.0 + 0.5, abs=1e-4)
    x_and_yaw = {
        0.0: (0.0, 0.0),
        1.0: (0.0, 0.0),
        4.0: (1.5, 0.3),  # half way, half turned
        7.0: (3.0, 0.6),
        7.5: (3.0, 0.6),
        10.5: (1.5, 0.3),
        13.5: (0.0, 0.0),
        14.5: (0.0, 0.0),
        20.5: (3.0, 0.6),
        21.0: (3.0, 0.6),
    }
    poses = pose(waypoints, *x_and_yaw)
    assert np.allclose(poses[:, [0, 3]], list(x_and_yaw.values()), rtol=0, atol=1e-3)
    assert (poses[:, 1] == 0.0).all() and (poses[:, 2] == 1.0).all()


def test_a_single_waypoint_is_a_hold():
    point = Waypoint(position_m=(1.0, 2.0, 3.0), yaw_rad=0.5, hold_s=3.0)
    alone = Waypoints(points=[point])
    assert alone.duration_s == pytest.approx(3.0)
    _, poses = over(alone, 0.1)
    assert (poses == [1.0, 2.0, 3.0, 0.5]).all()


@settings(max_examples=50)
@given(
    points=st.lists(
        st.tuples(*[st.floats(-5.0, 5.0)] * 3, st.floats(-3.0, 3.0), st.floats(0.0, 3.0)),
        min_size=1,
        max_size=5,
    ),
    speed=st.floats(0.1, 3.0),
    repetitions=st.integers(1, 3),
)
def test_waypoints_start_and_end_at_the_first_and_last(points, speed, repetitions):
    listed = [Waypoint(position_m=p[:3], yaw_rad=p[3], hold_s=p[4]) for p in points]
    flight = Waypoints(points=listed, speed_m_s=speed, yaw_rate_rad_s=0.7, repetitions=repetitions)
    first, last = pose(flight, 0.0, flight.duration_s)
    assert np.allclose(first, points[0][:4])
    assert np.allclose(last, points[-1][:4])
    tour = [np.array(p[:4]) for p in points] * repetitions
    way_s = sum(
        max(np.linalg.norm(b[:3] - a[:3]) / speed, abs(b[3] - a[3]) / 0.7)
        for a, b in pairwise(tour)
    )
    holds = repetitions * sum(p[4] for p in points)
    # A knot takes at least a moment, that of pauses and of turns on the spot.
    slack = 2e-3 * len(tour)
    assert way_s + holds <= flight.duration_s + 1e-9 <= way_s + holds + slack
    assert flight.period_s == pytest.approx(flight.duration_s / repetitions)


@pytest.mark.parametrize(
    ("kind", "speed_m_s"),
    [("circle", 0.5), ("shm", 0.8 * 1.5), ("hold", 0.0), ("line", 0.5), ("waypoints", 0.5)],
)
def test_all_but_engage_are_continuous(kind, speed_m_s):
    speed, yaw_rate = greatest_rates(EXAMPLES[kind])
    assert speed == pytest.approx(speed_m_s, rel=1e-3, abs=1e-9)
    assert yaw_rate < 1.0
