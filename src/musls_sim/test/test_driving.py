"""Paths and inputs of anchors and winches over time."""

import numpy as np
import pytest
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore

from musls_description.config.errors import ConfigError
from musls_sim.plants.driving import path_motion, straight
from musls_sim.specs.rig import AnchorPath, AnchorRecording, WinchDrive


def test_a_cubic_path_is_the_polynomial_with_its_accelerations():
    knots = {"time_s": (1.0, 3.0), "position_enu_m": ((0, 0, 0), (2.0, 0, 0))}
    motion = path_motion(AnchorPath(**knots, relative=True), (0.0, 5.0, 0.0))
    row = motion.ends(np.array([1.0, 2.0]))[0]
    assert row[0] == pytest.approx([0, 5, 0, 0, 0, 0, 3.0, 0, 0])  # 6 d / T^2 at the begin
    assert row[1] == pytest.approx([1.0, 5, 0, 1.5, 0, 0, 0, 0, 0])  # 3 d / 2 T in the middle


def test_each_side_of_a_knot_has_its_own_acceleration_and_rest_follows():
    knots = {"time_s": (0.0, 1.0, 2.0), "position_enu_m": ((0, 0, 0), (1, 0, 0), (0, 0, 0))}
    motion = path_motion(AnchorPath(**knots), (0.0, 0.0, 0.0))
    before, after, rest = motion.ends(np.array([0.5, 1.0, 2.0, 3.0]))
    assert before[1, 6] == pytest.approx(-6.0) and after[0, 6] == pytest.approx(-6.0)
    assert after[1, 6] == pytest.approx(6.0)
    assert rest[0] == pytest.approx(np.zeros(9)) and rest[1] == pytest.approx(np.zeros(9))


def test_a_linear_path_has_constant_velocities_between_its_knots():
    knots = {"time_s": (0.0, 1.0, 3.0), "position_enu_m": ((0, 0, 0), (1, 0, 0), (0, 0, 2.0))}
    motion = path_motion(AnchorPath(**knots, linear=True, relative=True), (0.0, 0.0, 5.0))
    first, second, rest = motion.ends(np.array([0.5, 1.0, 3.0, 4.0]))
    assert first[0] == pytest.approx([0.5, 0, 5, 1, 0, 0, 0, 0, 0])
    assert second[0] == pytest.approx([1, 0, 5, -0.5, 0, 1, 0, 0, 0])
    assert rest[1] == pytest.approx([0, 0, 7, 0, 0, 0, 0, 0, 0])


def test_accelerations_make_a_path_quintic():
    times = np.array([0.0, 0.7, 2.0])
    x, v, a = times**5, 5 * times**4, 20 * times**3
    rows = [tuple((float(k), 0.0, 0.0) for k in part) for part in (x, v, a)]
    path = AnchorPath(
        time_s=tuple(times), position_enu_m=rows[0], velocity_enu_m_s=rows[1],
        acceleration_enu_m_s2=rows[2],
    )  # fmt: skip
    (row,) = path_motion(path, (0, 0, 0)).ends(np.array([0.3, 1.1]))
    for k, t in enumerate((0.3, 1.1)):
        assert row[k, [0, 3, 6]] == pytest.approx([t**5, 5 * t**4, 20 * t**3])


def test_a_recording_is_a_spline_with_exact_accelerations(tmp_path):
    time = np.linspace(0.0, 2.0, 201)
    table = np.column_stack([time, np.sin(time), np.cos(time), time])
    file = tmp_path / "way.csv"
    np.savetxt(file, table, delimiter=",", header="time_s,x_enu_m,y_enu_m,z_enu_m", comments="")
    (row,) = path_motion(AnchorRecording(file=str(file)), (0, 0, 0)).ends(np.array([0.703, 1.0]))
    assert row[0, :3] == pytest.approx([np.sin(0.703), np.cos(0.703), 0.703], abs=1e-9)
    assert row[0, 6:] == pytest.approx([-np.sin(0.703), -np.cos(0.703), 0.0], abs=1e-4)
    with pytest.raises(ConfigError, match=r"nothing\.csv"):
        path_motion(AnchorRecording(file=str(tmp_path / "nothing.csv")), (0, 0, 0))
    file.write_text("t,x\n1,2\n")
    with pytest.raises(ConfigError, match=r"way\.csv: no column 'time_s'"):
        path_motion(AnchorRecording(file=str(file)), (0, 0, 0))


def test_a_recording_may_be_a_bag(tmp_path):
    """The first pose is at time 0, whatever the clock of the bag."""
    store = get_typestore(Stores.ROS2_JAZZY)
    make = {name.split("/")[-1]: kind for name, kind in store.types.items() if "/msg/" in name}
    kind = "geometry_msgs/msg/PoseStamped"
    with Writer(tmp_path / "bag", version=9) as writer:
        there = writer.add_connection("/drone_2/pose", kind, typestore=store)
        for k in range(101):
            stamp = make["Time"](sec=1_700_000_000 + k // 50, nanosec=k % 50 * 20_000_000)
            point = make["Point"](x=np.sin(0.02 * k), y=2.0, z=0.02 * k)
            pose = make["Pose"](position=point, orientation=make["Quaternion"](0.0, 0.0, 0.0, 1.0))
            message = make["PoseStamped"](make["Header"](stamp=stamp, frame_id="world"), pose)
            writer.write(there, k * 20_000_000, store.serialize_cdr(message, kind))
    drive = AnchorRecording(file=str(tmp_path), body="drone_2")  # the result folder round the bag
    (row,) = path_motion(drive, (0, 0, 0)).ends(np.array([0.703, 1.0]))
    assert row[0, :3] == pytest.approx([np.sin(0.703), 2.0, 0.703], abs=1e-7)
    with pytest.raises(ConfigError, match="no poses on '/load/pose': did you mean '/drone_2/pose'"):
        path_motion(AnchorRecording(file=str(tmp_path), body="load"), (0, 0, 0))


def test_a_signal_is_averaged_exactly_over_ramps_jumps_and_holds():
    knots = (1.0, 2.0, 2.0, 3.0), (0.0, 1.0, 5.0, 5.0)
    signal = straight(*knots)
    means = signal.means(np.array([0.0, 0.5, 1.5, 2.0, 2.5, 4.0]))[:, 0]
    assert means == pytest.approx([0.0, 0.125, 0.75, 5.0, 5.0])
    across = signal.means(np.array([1.5, 2.5]))[0, 0]
    assert across == pytest.approx((0.5 * 0.75 + 0.5 * 5.0) / 1.0)
    steps = straight(*knots, steps=True).ends(np.array([0.5, 1.0, 1.9, 2.0, 4.0]))[:, 0, 0]
    assert steps.tolist() == [0.0, 0.0, 0.0, 5.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: AnchorPath(time_s=(0, 1), position_enu_m=((0, 0, 0),)),
            "1 rows, but time_s has 2",
        ),
        (
            lambda: AnchorPath(time_s=(0, 0), position_enu_m=((0, 0, 0), (1, 0, 0))),
            "time_s must increase, but 0 follows 0",
        ),
        (
            lambda: AnchorPath(
                time_s=(0,), position_enu_m=((0, 0, 0),), velocity_enu_m_s=((0, 0, 0),), linear=True
            ),
            "linear: true follows from the places alone",
        ),
        (lambda: WinchDrive(time_s=(0,)), "one of feed_m_s, torque_n_m"),
        (lambda: WinchDrive(time_s=(0,), feed_m_s=(1,), torque_n_m=(1,)), "one of feed_m_s"),
    ],
)
def test_bad_drives_are_refused(make, words):
    with pytest.raises(ConfigError, match=words):
        make()
