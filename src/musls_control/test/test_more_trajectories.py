"""Quintic, smooth circle, figure eight, helix, step, recorded set-points; the load's attitude."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectory_examples import EXAMPLES, SETPOINTS

from musls_control.reference import LoadReference, Piece, Reference
from musls_control.trajectories import FigureEight, Helix, Quintic, SmoothCircle, Step
from musls_control.trajectories.curves import along, ramped_phase, wave
from musls_control.trajectories.recorded import RecordedTrajectory
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import from_roll_pitch_yaw


def at(trajectory, *times_s):
    return trajectory.derivatives(np.array(times_s, float))


# ---------- Ramps, phases


@pytest.mark.parametrize("turn_s", [6.0, 10.0])
def test_the_ramps_of_the_papers_circle(turn_s):
    """Ramp time w / alpha with alpha = pi / 40: 13.333 s and 8 s; half of w t_r is covered."""
    rate = 2.0 * np.pi / turn_s
    ramp_s = rate / (np.pi / 40.0)
    assert ramp_s == pytest.approx({6.0: 40.0 / 3.0, 10.0: 8.0}[turn_s])
    phase = ramped_phase(np.array([0.0, ramp_s, ramp_s + 5.0, 2 * ramp_s + 5.0]), rate, ramp_s, 5.0)
    assert phase[:, 0] == pytest.approx(
        [0.0, rate * ramp_s / 2.0, rate * (ramp_s / 2.0 + 5.0), rate * (ramp_s + 5.0)]
    )
    assert np.allclose(phase[:, 1], [0.0, rate, rate, 0.0], atol=1e-12)
    assert np.allclose(phase[:, 2:4], 0.0, atol=1e-12)
    # Three derivatives are continuous where ramp and even motion meet.
    for edge in (ramp_s, ramp_s + 5.0):
        before, after = ramped_phase(edge + np.array([-1e-7, 1e-7]), rate, ramp_s, 5.0)
        assert np.allclose(before[:4], after[:4], atol=1e-6)
    s = 0.3
    early = ramped_phase(np.array([s * ramp_s]), rate, ramp_s, 5.0)[0]
    assert early[0] == pytest.approx(ramp_s * rate * (2.5 * s**4 - 3 * s**5 + s**6))
    assert early[1] == pytest.approx(rate * (10 * s**3 - 15 * s**4 + 6 * s**5))


def test_chain_rule_against_a_polynomial():
    """sin(2 p + 0.3) for p = t^3 - t, by the derivatives of its Taylor series."""
    t = np.array([0.4])
    phase = np.array([[t[0] ** 3 - t[0], 3 * t[0] ** 2 - 1.0, 6.0 * t[0], 6.0, 0.0]])
    found = along(wave(phase[:, 0], 1.5, 2, 0.3), phase)[0]
    nodes = 0.05 * np.cos(np.pi * (np.arange(15) + 0.5) / 15)
    u = t[0] + nodes
    fit = np.polynomial.Polynomial.fit(u, 1.5 * np.sin(2 * (u**3 - u) + 0.3), 14)
    wanted = [fit.deriv(j)(t[0]) if j else fit(t[0]) for j in range(5)]
    assert np.allclose(found, wanted, rtol=1e-7)


def test_smooth_circle_at_full_speed_is_the_circle():
    circle = SmoothCircle(radius_m=0.7, turn_s=6.0, ramp_s=5.0, cruise_s=7.0, center_m=(1.0, 2.0))
    rate = 2.0 * np.pi / 6.0
    middle = np.linspace(5.0, 12.0, 50)
    d = circle.derivatives(middle)
    spoke = d[:, 0, :2] - [1.0, 2.0]
    assert np.allclose(np.linalg.norm(spoke, axis=1), 0.7)
    assert np.allclose(d[:, 2, :2], -(rate**2) * spoke)
    assert np.allclose(d[:, 4, :2], rate**4 * spoke)
    for t in (0.0, circle.duration_s):
        (end,) = at(circle, t)
        assert np.allclose(end[1:4], 0.0, atol=1e-12)
    assert np.allclose(at(circle, 0.0)[0, 0], [1.7, 2.0, 1.0, 0.0])
    # 12 s at 6 s a turn: it ends where it began.
    assert np.allclose(at(circle, circle.duration_s)[0, 0], [1.7, 2.0, 1.0, 0.0], atol=1e-9)


def test_figure_eight_and_helix():
    eight = FigureEight(length_m=4.0, width_m=1.0, axis_yaw_rad=np.pi / 2.0)
    poses = eight.pose(np.linspace(0.0, eight.duration_s, 4001))
    assert np.ptp(poses[:, 1]) == pytest.approx(4.0, rel=1e-4)
    assert np.ptp(poses[:, 0]) == pytest.approx(1.0, rel=1e-4)
    assert np.allclose(poses[[0, -1], :3], [0.0, 0.0, 1.0], atol=1e-9)
    helix = Helix(rise_m=0.5, turn_s=10.0, ramp_s=5.0, cruise_s=15.0)
    assert helix.pose(np.array([helix.duration_s]))[0, 2] == pytest.approx(1.0 + 2 * 0.5)
    (d,) = at(helix, 12.0)
    assert d[1, 2] == pytest.approx(0.5 / 10.0)


@settings(max_examples=30)
@given(distance=st.floats(0.1, 20.0), speed=st.floats(0.1, 5.0), limit=st.floats(0.1, 10.0))
def test_quintic_keeps_both_limits_and_reaches_one(distance, speed, limit):
    line = Quintic(points=[[0, 0, 1], [0, distance, 1]], speed_m_s=speed, acceleration_m_s2=limit)
    d = line.derivatives(np.linspace(0.0, line.duration_s, 4001))
    top, greatest = np.abs(d[:, 1:3, 1]).max(axis=0)
    assert top <= speed * (1 + 1e-9) and greatest <= limit * (1 + 1e-9)
    assert top > speed * (1 - 1e-5) or greatest > limit * (1 - 1e-5)
    # The reference's closed form: peak speed 1.875 d / T.
    assert top == pytest.approx(1.875 * distance / line.duration_s, rel=1e-6)
    assert np.allclose(d[[0, -1], 1:3], 0.0, atol=1e-9)


def test_quintic_stops_at_each_point_and_holds():
    line = Quintic(points=[[0, 0, 1], {"position_m": [1, 0, 1], "hold_s": 2.0}, [1, 1, 1]])
    reached = line.line_s[0]
    d = at(line, reached, reached + 1.0, reached + 2.0)
    assert np.allclose(d[:, 0, :3], [1, 0, 1]) and np.allclose(d[:, 1:3], 0.0, atol=1e-9)


def test_step_jumps():
    step = EXAMPLES["step"]
    before, after = step.pose(np.array([3.0 - 1e-6, 3.0]))
    assert np.allclose(before, [0, 0, 1, 0]) and np.allclose(after, [0.5, 0, 1, 0.3])
    assert np.allclose(step.tilt(np.array([3.0]))[0, 0], [0.1, 0.2])
    assert (step.derivatives(np.linspace(0, 10, 50))[:, 1:] == 0.0).all()


# ---------- Attitude


@pytest.mark.parametrize("kind", ["smooth_circle", "figure_eight", "step", "recorded", "circle"])
def test_attitude_and_body_rates_of_the_reference(kind):
    """Rates by complex-free difference quotients of the rotation matrix: R^T dR/dt."""
    trajectory = EXAMPLES[kind]
    reference = Reference([Piece(0.0, 0.0, trajectory)])
    step = 1e-5
    for t in np.linspace(0.31, trajectory.duration_s - 0.37, 7):
        now, before, after = (reference.at(t + k * step) for k in (0.0, -1.0, 1.0))
        rate = now.rotation.T @ (after.rotation - before.rotation) / (2.0 * step)
        skew = [rate[2, 1], rate[0, 2], rate[1, 0]]
        assert np.allclose(now.rotation.T @ now.rotation, np.eye(3), atol=1e-12)
        assert np.linalg.det(now.rotation) == pytest.approx(1.0)
        assert np.allclose(now.omega_body_rad_s, skew, atol=1e-8)
        slope = (after.omega_body_rad_s - before.omega_body_rad_s) / (2.0 * step)
        assert np.allclose(now.alpha_body_rad_s2, slope, atol=1e-6)


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_rates_of_any_motion(seed):
    """Angles that are random polynomials of time, large ones too."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(-1.2, 1.2, (5, 3))

    def reference(t):
        powers = np.array([[t**k / np.prod(range(1, k + 1)) for k in range(5)]])
        now = [powers[0, : 5 - j] @ angles[j:] for j in range(3)]
        tilt, rest = np.zeros((5, 2)), np.zeros((5, 4))
        for j in range(3):
            tilt[j], rest[j, 3] = now[j][:2], now[j][2]
        return LoadReference(rest, tilt)

    before, now, after = (reference(t) for t in (-1e-5, 0.0, 1e-5))
    rate = now.rotation.T @ (after.rotation - before.rotation) / 2e-5
    assert np.allclose(now.omega_body_rad_s, [rate[2, 1], rate[0, 2], rate[1, 0]], atol=1e-7)
    slope = (after.omega_body_rad_s - before.omega_body_rad_s) / 2e-5
    assert np.allclose(now.alpha_body_rad_s2, slope, atol=1e-6)
    # The matrix is that of the project's quaternions.
    w, x, y, z = from_roll_pitch_yaw(np.array([*now.tilt[0], now.yaw_rad]))
    first_column = [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)]
    assert np.allclose(now.rotation[:, 0], first_column)


def test_tilt_of_one_axis_follows_the_sine_of_the_angle():
    circle = SmoothCircle(rotation_rad=(0.2, 0.0, 0.0), turn_s=8.0, ramp_s=4.0, cruise_s=8.0)
    t = np.linspace(0.0, circle.duration_s, 100)
    angle = np.arctan2(*circle.pose(t)[:, [1, 0]].T)
    tilt = circle.tilt(t)
    assert np.allclose(tilt[:, 0, 0], 0.2 * np.sin(angle)) and (tilt[:, :, 1] == 0.0).all()


# ---------- Recorded


def test_recorded_goes_through_all_samples():
    flight = RecordedTrajectory(path=str(SETPOINTS))
    table = np.genfromtxt(SETPOINTS, delimiter=",", names=True, skip_header=1)
    times = table["time_s"] - table["time_s"][0]
    poses = flight.pose(times)
    for column, name in enumerate(("x_m", "y_m", "z_m")):
        assert np.allclose(poses[:, column], table[name], rtol=0, atol=1e-9)
    assert np.allclose(np.exp(1j * poses[:, 3]), np.exp(1j * table["yaw_rad"]))
    assert np.abs(np.diff(poses[:, 3])).max() < 0.5  # no jump by a turn
    fine = np.linspace(0.0, flight.duration_s, 5000)
    d = flight.derivatives(fine)
    assert np.abs(np.diff(d[:, 4], axis=0)).max() < 0.05 * np.abs(d[:, 4]).max() + 0.05
    linear = RecordedTrajectory(path=str(SETPOINTS), interpolation="linear")
    assert np.allclose(linear.pose(times), poses, rtol=0, atol=1e-9)
    assert (linear.derivatives(fine)[:, 2:] == 0.0).all()


def test_recorded_set_points_of_a_bag(tmp_path):
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    from musls_control.trajectories.recorded import POSE_STAMPED

    store = get_typestore(Stores.ROS2_JAZZY)
    kind = store.types
    time_s, place = np.arange(5) * 0.5 + 100.0, np.random.default_rng(0).normal(size=(5, 3))
    angles = 0.1 * np.arange(15).reshape(5, 3)
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection("/load/setpoint", POSE_STAMPED, typestore=store)
        for t, p, q in zip(time_s, place, from_roll_pitch_yaw(angles), strict=True):
            stamp = kind["builtin_interfaces/msg/Time"](int(t), round(t % 1 * 1e9))
            pose = kind["geometry_msgs/msg/Pose"](
                kind["geometry_msgs/msg/Point"](*p),
                kind["geometry_msgs/msg/Quaternion"](q[1], q[2], q[3], q[0]),
            )
            message = kind[POSE_STAMPED](kind["std_msgs/msg/Header"](stamp, "world"), pose)
            writer.write(topic, int(t * 1e9), store.serialize_cdr(message, POSE_STAMPED))
    flight = RecordedTrajectory(path=str(tmp_path / "bag"), from_s=100.5)
    assert flight.duration_s == pytest.approx(1.5)
    assert np.allclose(flight.pose(time_s[1:] - 100.5)[:, :3], place[1:], atol=1e-9)
    assert np.allclose(flight.pose(time_s[1:] - 100.5)[:, 3], angles[1:, 2], atol=1e-9)
    assert np.allclose(flight.tilt(time_s[1:] - 100.5)[:, 0], angles[1:, :2], atol=1e-9)
    with pytest.raises(ConfigError, match="/load/setpoint"):
        RecordedTrajectory(path=str(tmp_path / "bag"), topic="/load/setpont")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("time_s,x_m,y_m,yaw_rad\n0,0,0,0\n", "no column 'z_m'"),
        ("time_s,x_m,y_m,z_m,yaw_rad\n0,0,0,1,0\n", "at least two are needed"),
        ("time_s,x_m,y_m,z_m,yaw_rad\n0,0,0,1,0\n0,1,0,1,0\n", "line 3: time 0 s is not after 0 s"),
        ("time_s,x_m,y_m,z_m,yaw_rad\n0,0,0,1,0\n1,0,0,1,0\n0.5,1,0,1,0\n", "line 4"),
        ("time_s,x_m,y_m,z_m,yaw_rad\n0,0,0,1,0\n1,0,x,1,0\n", "line 3: numbers"),
        ("time_s,x_m,y_m,z_m,yaw_rad\n0,0,0,1,0\n1,0,0\n", "line 3: numbers"),
        ("time_s,x_m,y_m,z_m,yaw_rad\n0,0,0,1,0\n1,0,nan,1,0\n", "line 3: a number is not finite"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tmp_path, text, part):
    file = tmp_path / "table.csv"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        RecordedTrajectory(path=str(file))
    assert part in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: RecordedTrajectory(path="absent.csv"), "no such file"),
        (lambda: RecordedTrajectory(path="absent"), "bag"),
        (lambda: RecordedTrajectory(path=str(SETPOINTS), columns=["time_s"] * 6), "columns"),
        (lambda: RecordedTrajectory(path=str(SETPOINTS), interpolation="cubic"), "interpolation"),
        (lambda: SmoothCircle(rotation_rad=(0.0, 1.6, 0.0)), "rotation_rad"),
        (lambda: Helix(turn_s=0.0), "turn_s"),
        (lambda: FigureEight(ramp_s=0.0), "ramp_s"),
        (lambda: Quintic(points=[[0, 0, 1], [0, 0, 1]]), "coincide"),
        (lambda: Quintic(points=[[0, 0, 1], [0, 0]]), "points"),
        (lambda: Quintic(points=[[0, 0, 1], [0, 1, 1]], segment_s=[1.0, 2.0]), "segment_s has 2"),
        (lambda: Step(end_rotation_rad=(4.0, 0.0, 0.0)), "rotation_rad"),
    ],
)
def test_bad_values_are_refused_in_one_line(make, part):
    with pytest.raises(ConfigError) as error:
        make()
    assert part in str(error.value) and "\n" not in str(error.value)
