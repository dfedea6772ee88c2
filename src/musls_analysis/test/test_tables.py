"""One motion in tables of any kind: recognised, or read as `--columns` says, or refused."""

import numpy as np
import pytest
from lab_files import RATE_HZ, assert_same, circling
from made_up_recordings import write_lines

from musls_analysis.recordings.capture import body_of
from musls_analysis.recordings.formats.columns import MATRIX
from musls_analysis.recordings.options import keep_options
from musls_analysis.recordings.readers import ReadOptions, read_recording
from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import matrix, roll_pitch_yaw

EPOCH_S = 1_700_000_000


@pytest.fixture(scope="module")
def flown():
    return circling()


def poses(track, order="wxyz", length=1.0):
    """Places and quaternions (T, 7)."""
    q = track.orientation_wxyz[:, ["wxyz".index(axis) for axis in order]]
    return np.hstack([length * track.position_enu_m, q])


def lines_of(rows, separator=","):
    return [separator.join(c if isinstance(c, str) else f"{c:.9f}" for c in row) for row in rows]


def stamps_ns(track):
    return [f"{EPOCH_S * 10**9 + round(1e9 * t)}" for t in track.time_s]


def rows_a_body(recording):
    return [
        [f"{t:.3f}", body, *poses(track)[k]]
        for k, t in enumerate(recording.time_s)
        for body, track in recording.bodies.items()
    ]


# ---------- Said by --columns

LOAD = ["load"]


def load_ns(its):
    """As programs of visual odometry write: no header, more columns behind."""
    rows = zip(stamps_ns(its), poses(its), strict=True)
    return [",".join([*lines_of([[t, *row, 0.0, 0.0]]), ""]) for t, row in rows]


def load_xyzw_mm(its):
    rows = zip(its.time_s, poses(its, "xyzw", 1e3), strict=True)
    return lines_of([[1e3 * t, *row] for t, row in rows], ";")


def load_blanks(its):
    rows = zip(its.time_s, poses(its), strict=True)
    return ["# a remark", *lines_of([["7", *row, t] for t, row in rows], "   ")]


def load_degrees(its):
    angles = np.degrees(roll_pitch_yaw(its.orientation_wxyz))
    rows = zip(its.time_s, its.position_enu_m, angles[:, ::-1], strict=True)
    return ["a\tb\tc\td\te\tf\tg", *lines_of([[t, *p, *a] for t, p, a in rows], "\t")]


def load_matrix(its):
    m = matrix(its.orientation_wxyz).reshape(-1, 9)
    return lines_of(np.column_stack([its.time_s, its.position_enu_m, m]).tolist())


def load_seconds(its):
    rows = zip(its.time_s, poses(its), strict=True)
    return lines_of([[f"{EPOCH_S + int(t)}", f"{round(1e9 * (t % 1.0))}", *p] for t, p in rows])


def load_ned(its):
    place = world_enu_ned(its.position_enu_m)
    rows = np.column_stack([its.time_s, place, orientation_enu_ned(its.orientation_wxyz)])
    return lines_of(rows.tolist())


@pytest.mark.parametrize(
    ("lines", "columns", "others"),
    [
        (load_ns, "t_ns x y z qw qx qy qz", {}),
        (load_xyzw_mm, "t_ms x_mm y_mm z_mm qx qy qz qw", {}),
        (load_xyzw_mm, "t x y z qx qy qz qw", {"units": ["mm", "ms"]}),
        (load_blanks, "- x y z qw qx qy qz t", {}),
        (load_degrees, "t x y z yaw_deg pitch_deg roll_deg", {}),
        (load_matrix, f"t x y z {' '.join(MATRIX)}", {}),
        (load_seconds, "sec nanosec x y z qw qx qy qz", {}),
        (load_ned, "t x y z qw qx qy qz", {"axes": "ned"}),
    ],
)
def test_columns_that_were_said(tmp_path, flown, lines, columns, others):
    path = write_lines(tmp_path / "load_result.csv", lines(flown.bodies["load"]))
    options = ReadOptions(columns=columns.split(), **others)
    assert_same(read_recording(path, options), flown, LOAD)
    kept = keep_options(path, options)
    assert kept is not None
    assert_same(read_recording(path), flown, LOAD)  # said once


def test_several_bodies_by_columns(tmp_path, flown):
    rows = [[row[1], *row[2:], row[0]] for row in rows_a_body(flown)]
    path = write_lines(tmp_path / "a.csv", lines_of(rows))
    columns = ["body", "x", "y", "z", "qw", "qx", "qy", "qz", "t"]
    assert_same(read_recording(path, ReadOptions(columns=columns)), flown)
    numbered = {"load": "17", "drone_1": "3", "drone_2": "4", "drone_3": "5"}
    rows = [[numbered[row[0]], *row[1:]] for row in rows]
    path = write_lines(tmp_path / "b.csv", lines_of(rows))
    with pytest.raises(ConfigError, match="--bodies load=NAME: it has 17, 3, 4, 5"):
        read_recording(path, ReadOptions(columns=columns))
    assert_same(read_recording(path, ReadOptions(columns=columns, bodies=numbered)), flown)


def test_a_quaternion_in_the_other_order_is_doubted(tmp_path, flown):
    path = write_lines(tmp_path / "load.csv", load_ns(flown.bodies["load"]))
    read = read_recording(
        path, ReadOptions(columns=["t_ns", "x", "y", "z", "qx", "qy", "qz", "qw"])
    )
    assert "with qw at the other end of its quaternion" in read.warnings[0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("", "a table of numbers that nothing names: .*--columns 't x y z"),
        ("t x y z qw qx qy", "column qz is missing"),
        ("t x y z qw qx qy w", "w is no column"),
        ("x y z qw qx qy qz", "column t is missing"),
        ("t_ns qw qx qy qz x y z", "quaternions of load have the length"),
        ("t x x y z", "column x comes twice"),
        ("t_ns x y z qw qx qy qz - - - - - - -", "rows of 11 columns, --columns says 15"),
        ("t_ns body load_x load_y load_z", "with body the other columns must not name bodies"),
    ],
)
def test_columns_that_cannot_be(tmp_path, flown, columns, message):
    path = write_lines(tmp_path / "load.csv", load_ns(flown.bodies["load"]))
    with pytest.raises(ConfigError, match=message) as error:
        read_recording(path, ReadOptions(columns=columns.split()))
    assert "\n" not in str(error.value)


# ---------- Recognised


@pytest.mark.parametrize("name", ["id", "body", "rigid_body_name", "thing"])
@pytest.mark.parametrize("by_body", [False, True])
def test_a_row_for_each_body(tmp_path, flown, name, by_body):
    rows = rows_a_body(flown)
    rows = sorted(rows, key=lambda row: row[1]) if by_body else rows
    path = write_lines(tmp_path / "a.csv", [f"t,{name},x,y,z,qw,qx,qy,qz", *lines_of(rows)])
    read = read_recording(path)
    assert_same(read, flown, from_start=False)
    assert read.warnings == ()


def test_rows_of_bodies_that_nothing_tells_apart_are_refused(tmp_path, flown):
    rows = [[row[0], str(k % 4), *row[2:]] for k, row in enumerate(rows_a_body(flown))]
    path = write_lines(tmp_path / "load.csv", ["t,k,x,y,z,qw,qx,qy,qz", *lines_of(rows)])
    said = "t body x y z qw qx qy qz"
    with pytest.raises(ConfigError, match=f"column k divides the rows.*--columns '{said}'"):
        read_recording(path)
    apart = [[f"{float(row[0]) + 1e-3 * (k % 4):.3f}", *row[1:]] for k, row in enumerate(rows)]
    path = write_lines(tmp_path / "load.csv", ["t,k,x,y,z,qw,qx,qy,qz", *lines_of(apart)])
    with pytest.raises(ConfigError, match="column k divides the rows"):
        read_recording(path)
    nameless = write_lines(
        tmp_path / "load.csv",
        ["t,x,y,z,qw,qx,qy,qz", *lines_of([[row[0], *row[2:]] for row in rows])],
    )
    with pytest.raises(ConfigError, match="no column tells which: write a file for each"):
        read_recording(nameless)
    path = write_lines(tmp_path / "load.csv", ["t,k,x,y,z,qw,qx,qy,qz", *lines_of(rows)])
    bodies = {"load": "0", "drone_1": "1", "drone_2": "2", "drone_3": "3"}
    assert_same(read_recording(path, ReadOptions(columns=said.split(), bodies=bodies)), flown)


def test_a_number_of_the_row_is_no_body(tmp_path, flown):
    its = flown.bodies["load"]
    rows = [[f"{t:.3f}", str(k), *poses(its)[k]] for k, t in enumerate(its.time_s)]
    path = write_lines(tmp_path / "load.csv", ["t,id,x,y,z,qw,qx,qy,qz", *lines_of(rows)])
    assert_same(read_recording(path), flown, LOAD)


def write_echo(folder, flown, ros):
    folder.mkdir()
    for body, track in flown.bodies.items():
        if ros == 1:
            parts = [f"position.{a}" for a in "xyz"] + [f"orientation.{a}" for a in "xyzw"]
            names = ["%time", *(f"field.header.{n}" for n in ("seq", "stamp", "frame_id"))]
            lines = [",".join([*names, *(f"field.pose.{part}" for part in parts)])]
            late = [f"{int(t) + 30_000_000}" for t in stamps_ns(track)]
            heads = [[t, "7", s, "world"] for t, s in zip(late, stamps_ns(track), strict=True)]
        else:
            lines = []
            heads = [[t[:-9], t[-9:].lstrip("0") or "0", "world"] for t in stamps_ns(track)]
        rows = zip(heads, poses(track, "xyzw"), strict=True)
        write_lines(folder / f"{body}.csv", lines + lines_of([[*h, *p] for h, p in rows]))


@pytest.mark.parametrize("ros", [1, 2])
def test_a_topic_a_file(tmp_path, flown, ros):
    folder = tmp_path / "topics"
    write_echo(folder, flown, ros)
    read = read_recording(folder)
    assert_same(read, flown)
    start_s = read.bodies["load"].time_s[0]
    assert start_s == pytest.approx(EPOCH_S, abs=1e-6)  # the stamp, not the time of logging
    assert_same(read_recording(folder / "drone_2.csv"), flown, ["drone_2"])


def qualisys_lines(recording):
    bodies = recording.bodies
    parts = ["X", "Y", "Z", "Roll", "Pitch", "Yaw", "Residual", *(f"Rot[{k}]" for k in range(9))]
    lines = [
        f"NO_OF_FRAMES\t{len(recording.time_s)}", "NO_OF_CAMERAS\t8", "DESCRIPTION\t--",
        f"FREQUENCY\t{RATE_HZ:g}", "DATA_INCLUDED\t6D", "\t".join(["BODY_NAMES", *bodies]),
        "\t".join(f"{b} {p}" if p == "X" else p for b in bodies for p in parts),
    ]  # fmt: skip
    for k in range(len(recording.time_s)):
        cells = []
        for track in bodies.values():
            by_columns = matrix(track.orientation_wxyz[k]).T.ravel()
            cells += [*(1e3 * track.position_enu_m[k]), 9.0, 9.0, 9.0, 0.5, *by_columns]
        lines.append("\t".join(f"{c:.9f}" for c in cells))
    return lines


def test_qualisys(tmp_path, flown):
    lines = qualisys_lines(flown)
    path = write_lines(tmp_path / "take.tsv", lines)
    assert_same(read_recording(path), flown, from_start=False)
    lost = lines[20].split("\t")
    lines[20] = "\t".join(["0.000"] * 16 + lost[16:])
    read = read_recording(write_lines(tmp_path / "lost.tsv", lines))
    assert len(read.bodies["load"].time_s) == len(flown.time_s) - 1
    assert len(read.bodies["drone_1"].time_s) == len(flown.time_s)
    path = write_lines(tmp_path / "3d.tsv", [line.replace("\t6D", "\t3D") for line in lines])
    with pytest.raises(ConfigError, match="export of 3D; export 6D"):
        read_recording(path)


def test_kitti_has_its_times_beside(tmp_path, flown):
    for body, track in flown.bodies.items():
        rows = np.concatenate(
            [matrix(track.orientation_wxyz), track.position_enu_m[:, :, None]], axis=2
        )
        write_lines(tmp_path / f"{body}.txt", lines_of(rows.reshape(-1, 12).tolist(), " "))
    with pytest.raises(ConfigError, match=r"no times: put times\.txt beside"):
        read_recording(tmp_path / "load.txt")
    write_lines(tmp_path / "times.txt", [f"{t:.6e}" for t in flown.time_s])
    read = read_recording(tmp_path)
    assert_same(read, flown, from_start=False)
    assert "axes of KITTI" in str(read.warnings)
    write_lines(tmp_path / "times.txt", ["0.0", "1.0"])
    with pytest.raises(ConfigError, match=r"200 poses, and 2 times"):
        read_recording(tmp_path / "load.txt")


def test_airsim(tmp_path, flown):
    names = {"drone_1": "Drone1", "drone_2": "Drone2"}
    lines = ["VehicleName\tTimeStamp\tPOS_X\tPOS_Y\tPOS_Z\tQ_W\tQ_X\tQ_Y\tQ_Z\tImageFile"]
    for k, time_s in enumerate(flown.time_s):
        for body, name in names.items():
            track = flown.bodies[body]
            place = world_enu_ned(track.position_enu_m[k])
            turn = orientation_enu_ned(track.orientation_wxyz[k])
            stamp = f"{EPOCH_S * 1000 + round(1e3 * time_s)}"
            lines += lines_of([[name, stamp, *place, *turn, f"img_{k}.png"]], "\t")
    path = write_lines(tmp_path / "airsim_rec.txt", lines)
    assert_same(read_recording(path), flown, list(names))


def test_tables_of_ulog2csv(tmp_path, flown):
    track = flown.bodies["drone_2"]
    us = [f"{30_000_000 + round(1e6 * t)}" for t in track.time_s]
    place = world_enu_ned(track.position_enu_m)
    turn = orientation_enu_ned(track.orientation_wxyz)
    head = "timestamp,timestamp_sample,x,y,z,vx,xy_valid"
    rows = [[t, t, *p, 0.5, "1"] for t, p in zip(us, place, strict=True)]
    stem = "drone_2_vehicle"
    path = write_lines(tmp_path / f"{stem}_local_position_0.csv", [head, *lines_of(rows)])
    with pytest.raises(ConfigError, match=r"drone_2_vehicle_attitude_0\.csv; or read the \.ulg"):
        read_recording(path)
    head = "timestamp,timestamp_sample,q[0],q[1],q[2],q[3]"
    rows = [[t, t, *q] for t, q in zip(us, turn, strict=True)]
    write_lines(tmp_path / f"{stem}_attitude_0.csv", [head, *lines_of(rows)])
    head, rows = "timestamp,x,y,z,yaw", [[t, 9.0, 9.0, 9.0, 0.0] for t in us]
    setpoints = tmp_path / f"{stem}_local_position_setpoint_0.csv"
    write_lines(setpoints, [head, *lines_of(rows)])  # of another topic: not a body
    for place in (path, tmp_path):
        assert_same(read_recording(place), flown, ["drone_2"])


def test_a_file_of_a_folder_that_cannot_be_read_is_told(tmp_path, flown):
    folder = tmp_path / "topics"
    write_echo(folder, flown, 1)
    lines = (folder / "drone_3.csv").read_text().splitlines()
    write_lines(folder / "drone_3.csv", [line.rpartition(",")[0] for line in lines])
    (folder / "README").write_text("a note\n")
    read = read_recording(folder)
    assert set(read.bodies) == {"load", "drone_1", "drone_2"}
    assert "drone_3.csv left out: column qw is missing" in read.warnings[-1]


def test_columns_are_for_tables(tmp_path, flown):
    (tmp_path / "a.ulg").write_bytes(b"ULog")
    for name, options in (("a.ulg", {}), ("load.csv", {"format": "vicon"})):
        write_lines(tmp_path / "load.csv", load_ns(flown.bodies["load"]))
        with pytest.raises(ConfigError, match="--columns is for tables"):
            read_recording(tmp_path / name, ReadOptions(columns=["t", "x", "y", "z"], **options))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("/uav1/mavros/local_position/pose", ("drone", 1, False)),
        ("/mavros/uav2/global_position/local", ("drone", 2, False)),
        ("/uav1/odometry/odom_main", ("drone", 1, False)),
        ("/uav12/estimation_manager/odom_main", ("drone", 12, False)),
        ("/uav2/odometry/odom_gps", ("drone", 2, False)),
        ("/load/ground_truth/pose", ("load", None, False)),
        ("/drone_3/ground_truth/odometry", ("drone", 3, False)),
        ("/uav1/mavros/setpoint_position/local", ("drone", 1, True)),
        ("/uav1/mavros/imu/data", None),
        ("/load_cell/pose", None),
    ],
)
def test_topics_of_bodies(name, body):
    assert body_of(name) == body


def test_a_body_that_stands_in_noise_is_one(tmp_path):
    """Its steps are as long as its extent, whichever column is looked at."""
    random = np.random.default_rng(0)
    rows = [[0.02 * k, str(k % 3), *random.normal(0.0, 1e-3, 3)] for k in range(200)]
    path = write_lines(tmp_path / "load.csv", ["t,mode,x,y,z", *lines_of(rows)])
    assert len(read_recording(path).bodies["load"].time_s) == 200
