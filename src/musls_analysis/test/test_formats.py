"""One motion in the notations of laboratories: each comes back as the same recording."""

import numpy as np
import pytest
from lab_files import (
    RATE_HZ,
    assert_same,
    columns_of,
    motive_lines,
    scipy_rotation,
    table_text,
    ulog,
    vicon_lines,
)
from made_up_flight import header, make
from made_up_recordings import flight, write_bag, write_lines
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from scipy.spatial.transform import Rotation

from musls_analysis.comparison.errors import geodesic_error_rad
from musls_analysis.recordings.contents import contents, write
from musls_analysis.recordings.options import keep_options
from musls_analysis.recordings.readers import ReadOptions, read_recording
from musls_analysis.recordings.recording import PoseTrack, Recording
from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import product


@pytest.fixture(scope="module")
def flown():
    """Bodies that tilt, turn through half a turn and share their times, which count from zero."""
    made = flight("circle", repetitions=1, rate_hz=RATE_HZ, shift_m=(0.1, -0.2, 0.3))
    bodies = {}
    for k, (body, track) in enumerate(made.bodies.items()):
        t = track.time_s - track.time_s[0]
        tilt = np.column_stack([0.05 * np.sin(t + k), 0.08 * np.cos(0.7 * t), 0.0 * t])
        turn = Rotation.from_euler("xyz", tilt).as_quat()[:, [3, 0, 1, 2]]
        bodies[body] = PoseTrack(t, track.position_enu_m, product(track.orientation_wxyz, turn))
    return Recording({b: track.part(slice(100, 400)) for b, track in bodies.items()})


# ---------- Tables


def test_tables_as_programs_write_them(tmp_path, flown):
    header, rows = columns_of(flown)
    quoted = [f'"{name}"' for name in header]
    texts = {
        "bom": ("utf-8-sig", table_text(header, rows)),
        "quoted": ("utf-8", table_text(quoted, rows)),
        "tabs": ("utf-8", table_text(header, rows, "\t")),
        "semicolons": ("utf-8", table_text(header, rows, ";")),
        "decimal_commas": ("utf-8", table_text(header, rows, ";", ",")),
        "excel": ("cp1252", "sep=;\n" + table_text(["t", *header[1:-1], "d3_yaw"], rows, ";", ",")),
        "utf_16": ("utf-16", table_text(header, rows, "\t", ",")),
        "crlf": ("utf-8", table_text(header, rows).replace("\n", "\r\n")),
        "hash": ("utf-8", "# " + table_text(header, rows)),
    }
    for name, (encoding, text) in texts.items():
        path = tmp_path / f"{name}.csv"
        path.write_bytes(text.encode(encoding))
        read = read_recording(path)
        assert_same(read, flown, from_start=False)
        assert "drone_2 = d2" in read.notation and read.warnings == ()


@pytest.mark.parametrize(
    ("scale", "message", "options"),
    [
        ({"length": 1e3}, "--units mm", {"units": ["mm"]}),
        ({"length": 1e2}, "--units cm", {"units": ["cm"]}),
        ({"time": 1e3}, "--units ms", {"units": ["ms"]}),
        ({"time": 1e6}, "--units us", {"units": ["us"]}),
        ({"time": 1e-6}, "is the time in seconds", None),
        ({"angle": 180.0 / np.pi}, "--units deg", {"units": ["deg"]}),
        ({"length": 1e3, "time": 1e3}, "--units ms", {"units": ["mm", "ms"]}),
    ],
)
def test_unlikely_units_are_questioned(tmp_path, flown, scale, message, options):
    header, rows = columns_of(flown, **scale)
    path = tmp_path / "a.csv"
    path.write_text(table_text(header, rows))
    with pytest.raises(ConfigError, match=message):
        read_recording(path)
    if options is not None:
        assert_same(read_recording(path, ReadOptions(**options)), flown)


def test_units_in_the_names_of_columns(tmp_path, flown):
    header, rows = columns_of(flown, length=1e3, time=1e3, angle=180.0 / np.pi)
    units = {"t": " [ms]", "roll": "_deg", "pitch": "_deg", "yaw": "_deg"}
    header = [name + units.get(name.split("_")[-1], "_mm") for name in header]
    path = tmp_path / "a.csv"
    path.write_text(table_text(header, rows))
    assert_same(read_recording(path), flown)
    with pytest.raises(ConfigError, match="column load_x_mm says its unit"):
        read_recording(path, ReadOptions(units=["m"]))


def test_an_axis_that_points_up_is_asked_for(tmp_path, flown):
    header, rows = columns_of(flown)
    for k in range(1, rows.shape[1], 6):
        rows[:, k : k + 3] = np.column_stack([rows[:, k], rows[:, k + 2], -rows[:, k + 1]])
    path = tmp_path / "a.csv"
    path.write_text(table_text(header, rows))
    with pytest.raises(ConfigError, match="--axes y-up"):
        read_recording(path)
    assert_same(read_recording(path, ReadOptions(axes="y-up")), flown)


def test_names_origins_and_clocks(tmp_path, flown):
    header, rows = columns_of(flown, names=("box", "cf5", "cf7", "falcon"))
    path = tmp_path / "a.csv"
    path.write_text(table_text(header, rows))
    with pytest.raises(ConfigError, match="name it with --bodies load=NAME: it has box, cf5"):
        read_recording(path)
    bodies = {"load": "box", "drone_1": "cf5", "drone_2": "cf7", "drone_3": "falcon"}
    assert_same(read_recording(path, ReadOptions(bodies=bodies)), flown)
    options = ReadOptions(
        bodies=bodies, origins_m={"drone_2": (1.0, 0.0, -2.0)}, clocks_s={"drone_2": -3600.25}
    )
    moved = read_recording(path, options).bodies["drone_2"]
    expected = flown.bodies["drone_2"]
    np.testing.assert_allclose(moved.position_enu_m - expected.position_enu_m, [[1, 0, -2]] * 300,
                               atol=1e-6)  # fmt: skip
    np.testing.assert_allclose(moved.time_s, expected.time_s - 3600.25, atol=1e-5)


def test_rows_of_one_topic_each(tmp_path, flown):
    """PlotJuggler's table: topics as names, each row a message of one topic."""
    parts = [f"pose/position/{a}" for a in "xyz"] + [f"pose/orientation/{a}" for a in "xyzw"]
    topics = {body: f"/vrpn/{body}/pose" for body in flown.bodies}
    names = ["__time", *(f"{topic}/{part}" for topic in topics.values() for part in parts)]
    lines = [",".join(names)]
    for k, time_s in enumerate(flown.time_s):
        for b, track in enumerate(flown.bodies.values()):
            pose = [*track.position_enu_m[k], *track.orientation_wxyz[k, [1, 2, 3, 0]]]
            cells = [""] * (7 * b) + [f"{v:.9g}" for v in pose] + [""] * (7 * (3 - b))
            lines.append(",".join([f"{time_s:.6f}", *cells]))
    assert_same(read_recording(write_lines(tmp_path / "a.csv", lines)), flown)


# ---------- Motion capture


def test_vicon_helical_and_euler(tmp_path, flown):
    def helical(q):
        return scipy_rotation(q).as_rotvec()

    def euler_deg(q):
        return scipy_rotation(q).as_euler("XYZ", degrees=True)

    helical_lines = vicon_lines(flown, helical, sub_frames=2)
    euler_lines = vicon_lines(flown, euler_deg, "deg")
    for name, lines in (("helical", helical_lines), ("euler", euler_lines)):
        read = read_recording(write_lines(tmp_path / f"{name}.csv", lines))
        assert_same(read, flown)
        assert "Vicon: mm" in read.notation
    wrong = read_recording(tmp_path / "euler.csv", ReadOptions(angles="helical"))
    error = geodesic_error_rad(
        wrong.bodies["load"].orientation_wxyz, flown.bodies["load"].orientation_wxyz
    )
    assert error.max() > 0.03


def test_a_body_that_vicon_lost_has_a_gap(tmp_path, flown):
    lines = vicon_lines(flown, lambda q: scipy_rotation(q).as_rotvec())
    for k, cells in ((50, ["0"] * 6), (51, [""] * 6)):
        fields = lines[k].split(",")
        lines[k] = ",".join([*fields[:2], *cells, *fields[8:]])
    read = read_recording(write_lines(tmp_path / "a.csv", lines))
    assert len(read.bodies["load"].time_s) == len(flown.time_s) - 2
    assert read.warnings == ("2 samples of load without a finite pose dropped",)
    (row,) = [row for row in contents(read) if row.body == "load"]
    assert row.longest_gap_s == pytest.approx(3.0 / RATE_HZ)


@pytest.mark.parametrize(("unit", "quaternions"), [(1.0, True), (1e3, True), (1.0, False)])
def test_motive(tmp_path, flown, unit, quaternions):
    lines = motive_lines(flown, unit, quaternions)
    path = tmp_path / "take.csv"
    path.write_bytes("\r\n".join([*lines, ""]).encode("utf-8-sig"))
    read = read_recording(path)
    assert_same(read, flown)
    assert "OptiTrack Motive" in read.notation and "y-up" in read.notation
    bare = [line.replace(",Type,", ",,").replace(",Name,", ",,") for line in lines]
    assert_same(read_recording(write_lines(tmp_path / "old.csv", bare)), flown)


@pytest.mark.parametrize(
    ("names", "others"),
    [("t,p_x,p_y,p_z,q_w,q_x,q_y,q_z", "v_x,v_y,v_z,w_x"),
     ("time,pos x,pos y,pos z,quat w,quat x,quat y,quat z", "ang vel x,acc x,mot 1,vbat")],
)  # fmt: skip
def test_a_table_of_one_body_without_its_name(tmp_path, flown, names, others):
    """As single drones are logged: velocities and motors beside the pose are left out."""
    track = flown.bodies["load"]
    poses = np.column_stack([track.time_s, track.position_enu_m, track.orientation_wxyz])
    rows = [",".join(f"{v:.9g}" for v in (*row, 1.0, 2.0, 3.0, 4.0)) for row in poses]
    path = write_lines(tmp_path / "fast.csv", [f"{names},{others}", *rows])
    with pytest.raises(ConfigError, match="--bodies load=NAME: it has fast"):
        read_recording(path)
    assert_same(read_recording(path, ReadOptions(bodies={"load": "fast"})), flown, ["load"])


def test_files_of_one_body_each(tmp_path, flown):
    """TUM and EuRoC, alone and as a folder; the name of the file tells the body."""
    folder = tmp_path / "flight"
    write(flown, "tum", folder)
    assert_same(read_recording(folder), flown)
    load = read_recording(folder / "load.tum")
    assert_same(load, flown, ["load"])
    track = flown.bodies["load"]
    head = "#timestamp [ns]," + ",".join(
        [*(f"p_RS_R_{a} [m]" for a in "xyz"), *(f"q_RS_{a} []" for a in "wxyz")]
    )
    rows = [
        f"{1_400_000_000_000_000_000 + round(1e9 * t)}," + ",".join(f"{v:.9g}" for v in (*p, *q))
        for t, p, q in zip(track.time_s, track.position_enu_m, track.orientation_wxyz, strict=True)
    ]
    path = write_lines(tmp_path / "take_4_load_gt.csv", [head, *rows])
    assert_same(read_recording(path), flown, ["load"])
    path = write_lines(tmp_path / "box.csv", [head, *rows])
    with pytest.raises(ConfigError, match=r"no body looks like load.*it has box"):
        read_recording(path)
    assert_same(read_recording(path, ReadOptions(bodies={"load": "box"})), flown, ["load"])


# ---------- Bags of others

NAMED_POSES = """std_msgs/Header header
motion_capture_tracking_interfaces/NamedPose[] poses
================================================================================
MSG: motion_capture_tracking_interfaces/NamedPose
string name
geometry_msgs/Pose pose
"""
PX4_ODOMETRY = """uint64 timestamp
uint64 timestamp_sample
uint8 pose_frame
float32[3] position
float32[4] q
"""


@pytest.fixture(scope="module")
def store():
    found = get_typestore(Stores.ROS2_JAZZY)
    found.register(get_types_from_msg(
        NAMED_POSES, "motion_capture_tracking_interfaces/msg/NamedPoseArray"
    ))  # fmt: skip
    found.register(get_types_from_msg(PX4_ODOMETRY, "px4_msgs/msg/VehicleOdometry"))
    return found


def pose_of(track, k):
    x, y, z = map(float, track.position_enu_m[k])
    w, a, b, c = map(float, track.orientation_wxyz[k])
    point = make("geometry_msgs/msg/Point", x, y, z)
    return make("geometry_msgs/msg/Pose", point, make("geometry_msgs/msg/Quaternion", a, b, c, w))


def write_with(store, folder, messages):
    """A bag of (topic, log time [ns], message), with types that ROS does not have."""
    from rosbags.rosbag2 import StoragePlugin, Writer

    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {}
        for topic, ns, message in messages:
            kind = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            writer.write(connections[topic], ns, bytes(store.serialize_cdr(message, kind)))
    return folder


EPOCH_NS = 1_777_000_000_000_000_000


def test_named_pose_arrays(tmp_path, flown, store):
    names = {"payload": "load", "cf1": "drone_1", "cf2": "drone_2", "cf3": "drone_3"}
    package = "motion_capture_tracking_interfaces/msg/"

    def messages():
        for k, time_s in enumerate(flown.time_s):
            ns = EPOCH_NS + round(1e9 * time_s)
            poses = [
                store.types[f"{package}NamedPose"](name, pose_of(flown.bodies[body], k))
                for name, body in names.items()
            ]
            yield "/poses", ns, store.types[f"{package}NamedPoseArray"](header(ns, "world"), poses)

    read = read_recording(write_with(store, tmp_path / "bag", messages()))
    assert_same(read, flown)
    assert "load = payload, drone_1 = cf1" in read.notation


def test_px4_odometry_beside_motion_capture(tmp_path, flown, store):
    """Drones by their PX4s: NED, and microseconds since the start of each."""
    odometry = store.types["px4_msgs/msg/VehicleOdometry"]

    def messages():
        for k, time_s in enumerate(flown.time_s):
            ns = EPOCH_NS + round(1e9 * time_s)
            load = make("geometry_msgs/msg/PoseStamped", header(ns, "map"),
                        pose_of(flown.bodies["load"], k))  # fmt: skip
            yield "/vrpn/load/pose", ns, load
            for number in (1, 2, 3):
                track = flown.bodies[f"drone_{number}"]
                us = round(1e6 * (time_s + 100.0 * number))
                place = world_enu_ned(track.position_enu_m[k]).astype(np.float32)
                turn = orientation_enu_ned(track.orientation_wxyz[k]).astype(np.float32)
                message = odometry(us, us, 1, place, turn)
                yield f"/px4_{number}/fmu/out/vehicle_odometry", ns, message

    read = read_recording(write_with(store, tmp_path / "bag", messages()))
    assert_same(read, flown)
    assert sum("another clock" in line for line in read.warnings) == 3
    np.testing.assert_allclose(read.bodies["drone_3"].time_s, read.bodies["load"].time_s, atol=1e-5)


@pytest.mark.parametrize("seconds", [0, 7])
def test_stamps_that_tell_nothing(tmp_path, flown, seconds):
    def messages():
        for k, time_s in enumerate(flown.time_s):
            for body, track in flown.bodies.items():
                stamp = header(10**9 * seconds, "world")
                pose = make("geometry_msgs/msg/PoseStamped", stamp, pose_of(track, k))
                yield f"/vrpn_mocap/{body}/pose", EPOCH_NS + round(1e9 * time_s), pose

    read = read_recording(write_bag(tmp_path / "bag", messages()))
    assert_same(read, flown)
    assert f"/vrpn_mocap/load/pose are all {seconds}: its times of logging" in str(read.warnings)


def test_bags_of_ros_1(tmp_path, flown):
    from rosbags.rosbag1 import Writer

    former = get_typestore(Stores.ROS1_NOETIC)
    kind = "geometry_msgs/msg/PoseStamped"
    path = tmp_path / "flight.bag"
    with Writer(path) as writer:
        connections = {
            body: writer.add_connection(f"/vicon/{body}/{body}", kind, typestore=former)
            for body in flown.bodies
        }
        for k, time_s in enumerate(flown.time_s):
            ns = EPOCH_NS + round(1e9 * time_s)
            stamp = former.types["builtin_interfaces/msg/Time"](*divmod(ns, 10**9))
            for body, track in flown.bodies.items():
                head = former.types["std_msgs/msg/Header"](k, stamp, "world")
                message = former.types[kind](head, pose_of(track, k))
                writer.write(connections[body], ns, bytes(former.serialize_ros1(message, kind)))
    assert_same(read_recording(path), flown)


# ---------- Logs of PX4


def test_logs_of_px4(tmp_path, flown):
    pytest.importorskip("pyulog")
    path = ulog(flown.bodies["drone_2"], tmp_path / "drone_2.ulg")
    read = read_recording(path, ReadOptions(clocks_s={"drone_2": -30.0}))
    assert_same(read, flown, ["drone_2"], from_start=False)
    assert "relative to the place where its PX4 was started" in str(read.warnings)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ConfigError, match=r"drone_2\.ulg: no"):
        read_recording(path)


# ---------- What was said once, and other formats


def test_what_was_said_of_a_file_is_kept_beside_it(tmp_path, flown):
    header, rows = columns_of(flown, length=1e3, names=("box", "d1", "d2", "d3"))
    path = tmp_path / "take.csv"
    path.write_text(table_text(header, rows))
    options = ReadOptions(units=["mm"], bodies={"load": "box"})
    kept = keep_options(path, options)
    assert kept is not None and kept.name == "take.csv.recording.yaml"
    assert keep_options(path, options) is None and keep_options(path, ReadOptions()) is None
    assert_same(read_recording(path), flown)
    shifted = read_recording(path, ReadOptions(clocks_s={"load": 5.0}))  # the rest as kept
    np.testing.assert_allclose(shifted.bodies["load"].time_s, flown.time_s + 5.0)
    kept.write_text("units: [furlong]\n")
    with pytest.raises(ConfigError, match=r"take.csv.recording.yaml.*'furlong'"):
        read_recording(path)


@pytest.mark.parametrize("kind", ["mcap", "csv", "tum"])
def test_other_formats_read_as_the_same(tmp_path, flown, kind):
    made = flight("circle", repetitions=1, rate_hz=RATE_HZ, shift_m=(0.1, -0.2, 0.3))
    made = Recording(
        {b: t.part(slice(101, 400)) for b, t in made.bodies.items()}, made.setpoints,
        stages=made.stages,
    )  # fmt: skip
    out = tmp_path / f"out.{kind}"
    write(made, kind, out)
    read = read_recording(out, ReadOptions(drop_stale=False))
    assert_same(read, made)
    if kind == "mcap":
        assert [s.name for s in read.stages] == [s.name for s in made.stages]
    assert bool(read.setpoints) == (kind != "tum")
    with pytest.raises(ConfigError, match="exists"):
        write(made, kind, out)
