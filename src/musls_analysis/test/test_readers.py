"""Every format comes back as it was, and damage is an error or a counted warning."""

import numpy as np
import pytest
from made_up_flight import make, pose_message, string_message
from made_up_recordings import (
    excerpt_lines,
    flight,
    log_lines,
    log_rows,
    table,
    tf_message,
    tf_messages,
    write_bag,
    write_lines,
)
from rosbags.rosbag2 import StoragePlugin

from musls_analysis.comparison.errors import geodesic_error_rad
from musls_analysis.recordings.formats.flight_log import SEGMENT_GAP_S
from musls_analysis.recordings.readers import ReadOptions, read_recording
from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import Cone

FRAMES = {"load": "load", "drone_1": "drone1", "drone_2": "drone2", "drone_3": "drone3"}


@pytest.fixture(scope="module")
def flown():
    """All measurements differ, as real ones do; 10 Hz."""
    return flight("circle", repetitions=1, rate_hz=10.0, start_s=2.0, shift_m=(0.1, 0.0, 0.2))


def assert_same(read, expected, atol=1e-7):
    assert list(read.bodies) == list(expected.bodies)
    for body, track in expected.bodies.items():
        its = read.bodies[body]
        keep = np.isin(np.round(track.time_s, 6), np.round(its.time_s, 6))
        np.testing.assert_allclose(its.time_s, track.time_s[keep], atol=1e-6)
        np.testing.assert_allclose(its.position_enu_m, track.position_enu_m[keep], atol=atol)
        angle = geodesic_error_rad(its.orientation_wxyz, track.orientation_wxyz[keep])
        assert angle.max() < 1e-7


def assert_setpoints(read, expected):
    time_s, _, held = table(expected)
    for body, rows in held.items():
        its = read.setpoints[body].held_at(time_s)
        np.testing.assert_allclose(its.position_enu_m, rows[:, :3], atol=1e-7)


def fails(path, message, options=None):
    with pytest.raises(ConfigError, match=message) as error:
        read_recording(path, options)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


# CSV excerpts


@pytest.fixture
def excerpt(tmp_path, flown):
    """Flying only: the first two seconds stand still and repeat themselves."""
    lines = excerpt_lines(flown)
    return [lines[0], *(line for line in lines[1:] if 2.05 < float(line.split(",")[0]) < 30.0)]


def test_an_excerpt_comes_back(tmp_path, flown, excerpt):
    read = read_recording(write_lines(tmp_path / "a.csv", excerpt))
    assert_same(read, flown)
    assert read.warnings == () and [s.name for s in read.stages] == ["flight"]
    time_s, _, held = table(flown)
    inside = (time_s > 2.051) & (time_s < 29.9)
    for body, rows in held.items():  # the drones' follow from the cone
        its = read.setpoints[body].held_at(time_s[inside])
        np.testing.assert_allclose(its.position_enu_m, rows[inside, :3], atol=1e-7)


def test_another_cone_moves_the_drones_set_points(tmp_path, excerpt):
    path = write_lines(tmp_path / "a.csv", excerpt)
    read = read_recording(path, ReadOptions(formation=Cone(radius_m=0.5, height_m=2.0)))
    offset = read.setpoints["drone_2"].position_enu_m - read.setpoints["load"].position_enu_m
    np.testing.assert_allclose(np.linalg.norm(offset[:, :2], axis=1), 0.5)
    np.testing.assert_allclose(offset[:, 2], 2.0)


def in_degrees(lines, names):
    """The rows with roll, pitch and yaw of all bodies in degrees; `names` the header says so."""
    header = lines[0].split(",")
    turned = [name.endswith(("roll", "pitch", "yaw")) for name in header]
    suffix = "_deg" if names else ""
    yield ",".join(name + suffix * t for name, t in zip(header, turned, strict=True))
    for line in lines[1:]:
        fields = zip(line.split(","), turned, strict=True)
        yield ",".join(repr(float(f) * (180.0 / np.pi if t else 1.0)) for f, t in fields)


def test_degrees_are_told_from_radians(tmp_path, excerpt):
    pitch = excerpt[0].split(",").index("d1_pitch")
    rows = [row.split(",") for row in excerpt]
    excerpt = [",".join([*row[:pitch], "0.05", *row[pitch + 1 :]]) for row in rows[1:]]
    excerpt.insert(0, ",".join(rows[0]))
    read = read_recording(write_lines(tmp_path / "a.csv", excerpt))
    degrees = read_recording(write_lines(tmp_path / "b.csv", [*in_degrees(excerpt, names=True)]))
    for body, track in read.bodies.items():
        same = degrees.bodies[body].orientation_wxyz
        np.testing.assert_allclose(same, track.orientation_wxyz, atol=1e-12)
    fails(write_lines(tmp_path / "c.csv", [*in_degrees(excerpt, names=False)]), "pitch_deg")


def test_set_points_of_drones_may_be_columns(tmp_path, excerpt):
    drones = sum(name.endswith("_pitch") for name in excerpt[0].split(",")) - 1
    header = [f"d{i + 1}_des_{part}" for i in range(drones) for part in ("x", "y", "z", "yaw")]
    own = [1.0, 2.0, 3.0, np.pi / 2]
    lines = [",".join([excerpt[0], *header])]
    lines += [",".join([row, *map(repr, own * drones)]) for row in excerpt[1:]]
    track = read_recording(write_lines(tmp_path / "a.csv", lines)).setpoints["drone_1"]
    np.testing.assert_array_equal(track.position_enu_m, [own[:3]])
    np.testing.assert_allclose(track.orientation_wxyz, [[0.5**0.5, 0.0, 0.0, 0.5**0.5]])
    lines = [line.rpartition(",")[0] for line in lines]
    fails(write_lines(tmp_path / "b.csv", lines), f"column d{drones}_des_yaw is missing")


def test_stale_rows_are_dropped_and_counted(tmp_path, excerpt):
    lines = list(excerpt)
    for k in (20, 21):
        lines[k] = ",".join([lines[k].split(",")[0], *lines[19].split(",")[1:]])
    path = write_lines(tmp_path / "a.csv", lines)
    read = read_recording(path)
    assert len(read.bodies["load"].time_s) == len(lines) - 3
    (warning,) = read.warnings
    assert warning.startswith("2 stale rows (repeats the last in all bodies) at ")
    kept = read_recording(path, ReadOptions(drop_stale=False))
    assert len(kept.bodies["load"].time_s) == len(lines) - 1 and kept.warnings == ()


def test_one_body_that_stands_still_is_not_stale(tmp_path, excerpt):
    lines, still = list(excerpt), excerpt[19].split(",")[5:11]
    for k in (20, 21):
        fields = lines[k].split(",")
        lines[k] = ",".join([*fields[:5], *still, *fields[11:]])
    assert read_recording(write_lines(tmp_path / "a.csv", lines)).warnings == ()


@pytest.mark.parametrize(
    ("change", "warning", "lost"),
    [
        (lambda lines: lines.insert(9, lines.pop(5)), "step back in time", 0),
        (lambda lines: lines.insert(9, lines[5]), "sample of drone_3 at the time of another", 0),
        (lambda lines: lines.__setitem__(9, "nan," + lines[9].split(",", 1)[1]), "finite", 1),
        (lambda lines: lines.__setitem__(9, lines[9][:40]), "1 row without 29 columns", 1),
        (lambda lines: lines.__setitem__(9, lines[9].replace(".", "x")), "without numbers", 1),
    ],
    ids=["unordered", "twice", "nan", "cut", "text"],
)
def test_bad_rows_are_counted(tmp_path, flown, excerpt, change, warning, lost):
    lines = list(excerpt)
    change(lines)
    read = read_recording(write_lines(tmp_path / "a.csv", lines))
    assert any(warning in line for line in read.warnings), read.warnings
    assert_same(read, flown)
    assert len(read.bodies["load"].time_s) == len(excerpt) - 1 - lost


def test_nan_in_one_body_leaves_the_others(tmp_path, excerpt):
    fields = excerpt[9].split(",")
    lines = [*excerpt[:9], ",".join([*fields[:11], "nan", *fields[12:]]), *excerpt[10:]]
    read = read_recording(write_lines(tmp_path / "a.csv", lines))
    assert read.warnings == ("1 sample of drone_1 without a finite pose dropped",)
    assert len(read.bodies["drone_1"].time_s) == len(read.bodies["load"].time_s) - 1


def test_a_position_that_is_none_is_dropped(tmp_path, excerpt):
    fields = excerpt[9].split(",")
    lines = [*excerpt[:9], ",".join([*fields[:11], "inf", *fields[12:]]), *excerpt[10:]]
    read = read_recording(write_lines(tmp_path / "a.csv", lines))
    assert read.warnings == ("1 sample of drone_1 without a finite pose dropped",)


def test_a_number_cut_at_the_end_is_not_read(tmp_path, excerpt):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(excerpt)[:-3])
    read = read_recording(path)
    assert read.warnings == ("1 unended last line dropped",)
    assert len(read.bodies["load"].time_s) == len(excerpt) - 2


@pytest.mark.parametrize(
    ("time", "message"),
    [(lambda k: "3.5", "one time, 3.5 s"), (lambda k: str(10**k), "is the time in seconds?")],
)
def test_times_that_are_none_are_refused(tmp_path, excerpt, time, message):
    lines = [f"{time(k)},{line.split(',', 1)[1]}" for k, line in enumerate(excerpt[1:20])]
    fails(write_lines(tmp_path / "a.csv", [excerpt[0], *lines]), message)


@pytest.mark.parametrize("name", ["n" * 400, "n" * 400 + ".csv", "n" * 400 + ".mcap", "a\0b"])
def test_names_that_no_file_can_have(tmp_path, name):
    with pytest.raises(ConfigError, match="no such file") as error:
        read_recording(tmp_path / name)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("t,load_x\n", "no rows below"),
        ("t,load_x\n1,2\n", "column load_y is missing"),
        ("a,b\n1,2\n", "not a recording"),
        ("1 2 3\n4 5 6\n", "not a recording"),
        ("# Notes\n", "not a recording"),
        ("d²_x,load_x\n1,2\n", "column t is missing"),
        ("d" + "1" * 5000 + "_x,t,load_x\n1,2\n", r"column d1+\.\.\._y is missing"),
        ("MISSION_STAGE " + "1" * 5000 + "\n", "no rows in the log"),
        ("\0\0\0", "binary"),
    ],
)
def test_foreign_text_ends_with_one_line(tmp_path, text, message):
    path = tmp_path / "a.txt"
    path.write_text(text)
    fails(path, message)


def test_what_is_missing_or_no_recording_ends_with_one_line(tmp_path):
    fails(tmp_path / "none", "no such file or folder")
    fails(tmp_path, "not a recording .no metadata.yaml and no bag/ in it")


# Flight logs


def log(rows, markers):
    """Lines of a log with markers {row: line} before rows."""
    lines = log_lines(rows)
    for row in sorted(markers, reverse=True):
        lines[row:row] = markers[row]
    return lines


@pytest.fixture
def rows(flown):
    rows = log_rows(flown)
    return rows[(rows[:, 0] > 2.05) & (rows[:, 0] < 29.95)]


def test_a_flight_log_comes_back(tmp_path, flown, rows):
    """The clock restarts at stage 1; what was before lies at negative times."""
    before = rows[:50].copy()
    before[:, 0] += 400.0
    before[:, 7] += 1e-3 * np.arange(50)
    markers = {
        50: ["PHASE_MISSION", "MISSION_STAGE 1 CIRCLE"], 150: ["MISSION_STAGE 9 HOLD"],
        250: ["MISSION_STAGE 4 YAW_ENGAGE"],
    }  # fmt: skip
    path = write_lines(tmp_path / "log.txt", log(np.vstack([before, rows]), markers))
    read = read_recording(path)
    names = [s.name for s in read.stages]
    assert names == ["before", "circle", "hold", "yaw_engage"] and read.warnings == ()
    assert [s.start_s for s in read.stages[1:]] == pytest.approx(rows[[0, 100, 200], 0])
    time_s = read.bodies["load"].time_s
    assert time_s[49] == pytest.approx(rows[0, 0] - SEGMENT_GAP_S)
    np.testing.assert_allclose(np.diff(time_s[:50]), 0.1, atol=1e-6)
    np.testing.assert_allclose(time_s[50:], rows[:, 0], atol=1e-6)
    for k, body in enumerate(flown.bodies):
        base = (1, 35, 55, 75)[k]
        position = read.bodies[body].position_enu_m[50:]
        np.testing.assert_allclose(position, rows[:, base + 6 : base + 9], atol=1e-7)
        held = read.setpoints[body].held_at(rows[:, 0])
        np.testing.assert_allclose(held.position_enu_m, rows[:, base : base + 3], atol=1e-7)


def test_a_second_clock_after_the_first_goes_on_later(tmp_path, rows):
    lines = log(np.vstack([rows, rows]), {0: ["MISSION_STAGE 1 C"], len(rows): ["PHASE_LAND"]})
    read = read_recording(write_lines(tmp_path / "log.txt", lines))
    assert [s.name for s in read.stages] == ["circle", "land"]
    assert read.stages[1].start_s == pytest.approx(rows[-1, 0] + SEGMENT_GAP_S)


def test_a_clock_that_goes_back_within_a_stage_is_an_error(tmp_path, rows):
    fails(write_lines(tmp_path / "log.txt", log_lines(np.vstack([rows, rows]))), "clock goes back")


def test_rows_of_a_log_that_are_cut_are_counted(tmp_path, rows):
    lines = log(rows, {0: ["MISSION_STAGE 1 CIRCLE"]})
    lines[1] = lines[1][50:]
    lines.insert(9, "lost the connection")
    lines[30] = lines[30][:200]
    path = tmp_path / "log.txt"
    path.write_text("\n".join(lines)[:-20])
    read = read_recording(path)
    assert read.warnings == (
        "1 unended last line dropped",
        "1 line of other text left out",
        "2 rows without 95 columns dropped",
    )
    assert len(read.bodies["load"].time_s) == len(rows) - 3


def test_logs_of_other_widths(tmp_path, rows):
    read = read_recording(write_lines(tmp_path / "two.txt", log_lines(rows[:, :75])))
    assert list(read.bodies) == ["load", "drone_1", "drone_2"]
    lines = ["MISSION_STAGE 1 CIRCLE", *log_lines(rows[:, :80])]
    fails(write_lines(tmp_path / "odd.txt", lines), "rows of 80 columns")
    fails(write_lines(tmp_path / "none.txt", ["MISSION_STAGE 1 CIRCLE"]), "no rows")


# TF bags


@pytest.mark.parametrize("storage", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
@pytest.mark.parametrize("one_each", [False, True])
def test_a_tf_bag_comes_back(tmp_path, flown, storage, one_each):
    bag = write_bag(tmp_path / "bag", tf_messages(flown, FRAMES, one_each), storage)
    (file,) = [*bag.glob("*.mcap"), *bag.glob("*.db3")]
    for path in (bag, file):
        read = read_recording(path)
        assert_same(read, flown)
        assert read.warnings == () and read.setpoints == {}


def test_stale_poses_of_one_body_in_tf_are_dropped(tmp_path):
    messages = [
        ("/tf", ns, tf_message(ns, [
            level("world", "load", 1e-9 * ns),
            level("world", "drone_1", 1e-9 * ns),
        ]))
        for ns in range(0, 10**9, 10**8)
    ]  # fmt: skip
    messages[5] = ("/tf", 5 * 10**8, tf_message(5 * 10**8, [
        level("world", "load", 1e-9 * 4 * 10**8), level("world", "drone_1", 0.5),
    ]))  # fmt: skip
    read = read_recording(write_bag(tmp_path / "bag", messages))
    assert read.warnings == ("1 stale sample of load (repeats the last) dropped",)
    np.testing.assert_allclose(read.bodies["load"].time_s, np.delete(np.arange(10) / 10, 5))
    assert len(read.bodies["drone_1"].time_s) == 10


@pytest.mark.parametrize(
    "frames",
    [
        {"load": "load_marker", "drone_1": "px4_1/base_link", "drone_2": "px4_2/base_link"},
        {"load": "/payload", "drone_1": "UAV0", "drone_2": "UAV1"},
        {"load": "slung_load/base_link", "drone_1": "drone_1_marker", "drone_2": "drone_2_marker"},
    ],
)
def test_frames_are_guessed(tmp_path, flown, frames):
    read = read_recording(write_bag(tmp_path / "bag", tf_messages(flown, frames)))
    assert list(read.bodies) == ["load", "drone_1", "drone_2"]
    first = read.bodies["drone_2"].position_enu_m[0]
    np.testing.assert_allclose(first, flown.bodies["drone_2"].position_enu_m[0])


def test_frames_can_be_named(tmp_path, flown):
    bag = write_bag(tmp_path / "bag", tf_messages(flown, {"load": "box", "drone_1": "anna"}))
    fails(bag, "no body looks like load; name it with --bodies load=NAME: it has anna, box")
    options = ReadOptions(bodies={"load": "box", "drone_1": "anna"})
    assert list(read_recording(bag, options).bodies) == ["load", "drone_1"]
    fails(bag, "no body 'bob' .for load.", ReadOptions(bodies={"load": "bob"}))
    with pytest.raises(ConfigError, match="'lode' is no body"):
        read_recording(bag, ReadOptions(bodies={"lode": "box"}))


def test_ambiguous_frames_are_named(tmp_path, flown):
    messages = [
        *tf_messages(flown, FRAMES | {"load": "load"}),
        *tf_messages(flown, {"drone_2": "drone_1"}),
    ]
    fails(write_bag(tmp_path / "bag", messages), "drone1, drone_1 all look like drone_1")


def pose_messages(recording, topics):
    """Poses of bodies on a topic each; {body: (topic, type)}."""
    for body, (topic, kind) in topics.items():
        track = recording.bodies[body]
        for time_s, p, q in zip(
            track.time_s, track.position_enu_m, track.orientation_wxyz, strict=True
        ):
            ns = round(time_s * 1e9)
            pose = pose_message(ns, p, q)
            if kind == "TransformStamped":
                pose = tf_message(ns, [("world", "any", p, q)]).transforms[0]
            elif kind == "Odometry":
                with_covariance = make(
                    "geometry_msgs/msg/PoseWithCovariance", pose.pose, np.zeros(36)
                )
                zero = make("geometry_msgs/msg/Vector3", 0.0, 0.0, 0.0)
                twist = make("geometry_msgs/msg/Twist", zero, zero)
                still = make("geometry_msgs/msg/TwistWithCovariance", twist, np.zeros(36))
                pose = make("nav_msgs/msg/Odometry", pose.header, "any", with_covariance, still)
            yield topic, ns, pose


def test_poses_on_topics_of_any_name(tmp_path, flown):
    kinds = {
        "load": ("/vrpn/box/pose", "PoseStamped"),
        "drone_1": ("/vrpn/px4_1/pose", "TransformStamped"),
        "drone_2": ("/px4_2/odom", "Odometry"),
    }
    bag = write_bag(tmp_path / "bag", pose_messages(flown, kinds))
    topics = "/px4_2/odom, /vrpn/box/pose, /vrpn/px4_1/pose"
    fails(
        bag, f"no topic of poses looks like load; name it with --bodies load=NAME: it has {topics}"
    )
    read = read_recording(bag, ReadOptions(bodies={"load": "/vrpn/box/pose"}))
    assert list(read.bodies) == list(kinds)
    for body, track in read.bodies.items():
        np.testing.assert_allclose(track.position_enu_m, flown.bodies[body].position_enu_m)
        np.testing.assert_allclose(track.orientation_wxyz, flown.bodies[body].orientation_wxyz)
    fails(bag, "no topic of poses '/box' .for load.", ReadOptions(bodies={"load": "/box"}))


def level(parent, child, x=0.0):
    return parent, child, (x, 0, 0), (1, 0, 0, 0)


def test_parts_of_a_body_and_desired_frames_are_told_apart(tmp_path):
    messages = [
        ("/tf", ns, tf_message(ns, [
            level("world", "load", 1e-9 * ns), level("world", "load_des", 2.0),
            level("world", "drone1", 1e-9 * ns), level("drone1", "drone1/base_link", 1e-9 * ns),
        ]))
        for ns in range(0, 10**9, 10**8)
    ]  # fmt: skip
    read = read_recording(write_bag(tmp_path / "bag", messages))
    assert list(read.bodies) == ["load", "drone_1"] and list(read.setpoints) == ["load"]
    np.testing.assert_array_equal(read.setpoints["load"].position_enu_m, [[2, 0, 0]])
    np.testing.assert_allclose(read.bodies["drone_1"].position_enu_m[3], [0.3, 0, 0])


def test_static_parents_are_applied(tmp_path):
    half_turn = ("world", "mocap", (10, 0, 0), (0, 0, 0, 1))
    messages = [("/tf_static", 0, tf_message(0, [half_turn]))]
    for ns in range(0, 10**9, 10**8):
        x = 1e-9 * ns
        rows = [level("mocap", "load", x), level("world", "drone_1", x)]
        messages.append(("/tf", ns, tf_message(ns, rows)))
    read = read_recording(write_bag(tmp_path / "bag", messages))
    np.testing.assert_allclose(read.bodies["load"].position_enu_m[:, 0], 10 - 0.1 * np.arange(10))
    np.testing.assert_allclose(np.abs(read.bodies["load"].orientation_wxyz[0]), [0, 0, 0, 1])
    fails(write_bag(tmp_path / "without", messages[1:]), "poses in different frames: load in mocap")


def test_bags_without_what_is_needed_or_damaged(tmp_path, flown):
    text = make_string_bag(tmp_path / "text")
    fails(text, "nor topics of poses in the bag; it has /chatter")
    for storage, suffix in ((StoragePlugin.MCAP, "mcap"), (StoragePlugin.SQLITE3, "db3")):
        bag = write_bag(tmp_path / suffix, tf_messages(flown, FRAMES), storage)
        file = bag / f"{suffix}.{suffix}"
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2])
        fails(bag, "damaged")
        fails(file, "damaged")
        file.write_bytes(b"")
        fails(bag, "damaged|empty")


def make_string_bag(folder):
    return write_bag(folder, [("/chatter", 0, string_message("hello"))])


def test_our_own_bags_and_result_folders(flight_bag, made_up_flight, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "bag").symlink_to(flight_bag)
    for path in (flight_bag, tmp_path / "run"):
        read = read_recording(path)
        assert read.source == str(path) and read.warnings == ()
        np.testing.assert_array_equal(
            read.bodies["load"].position_enu_m, made_up_flight.actual["load"][0]
        )
        assert len(read.cables) == 3 and len(read.stages) == 10


def test_late_stamps_are_put_right(tmp_path, flown, excerpt):
    path = write_lines(tmp_path / "a.csv", excerpt)
    right = read_recording(path, ReadOptions(clocks_s={"drone_1": -0.25}))
    as_it_is = read_recording(path)
    for body, track in right.bodies.items():
        shift = 0.25 if body == "drone_1" else 0.0
        np.testing.assert_allclose(track.time_s, as_it_is.bodies[body].time_s - shift)
    fails(path, "'drone_9' is not in it", ReadOptions(clocks_s={"drone_9": 0.1}))
