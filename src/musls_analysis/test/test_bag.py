import shutil
import time
from contextlib import closing

import numpy as np
import pytest
from made_up_flight import (
    STAGES,
    marker_message,
    pose_message,
    rotors_message,
    string_message,
    wrench_message,
    write_bag,
)
from standing_plant import session_of

from musls_analysis.recordings.bag import read_bag
from musls_analysis.recordings.recording import RecordedStage
from musls_description.config.errors import ConfigError
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import Plant, PlantState
from musls_sim.recording import BagRecorder

Q = np.array([0.5, 0.5, -0.5, 0.5])


def small_bag(folder, extra=(), drones=("drone_1",)):
    poses = [
        (f"/{body}/pose", k * 10**8, pose_message(k * 10**8, (k, 2, 3), Q))
        for k in range(4)
        for body in ("load", *drones)
    ]
    return write_bag(folder, [*poses, *extra])


def test_everything_comes_back(made_up_flight, flight_bag):
    f, recording = made_up_flight, read_bag(flight_bag)
    assert list(recording.bodies) == ["load", "drone_1", "drone_2", "drone_3"]
    for body, (position, q) in f.actual.items():
        track = recording.bodies[body]
        np.testing.assert_allclose(track.time_s, f.time_s, atol=1e-9)
        np.testing.assert_array_equal(track.position_enu_m, position)
        np.testing.assert_array_equal(track.orientation_wxyz, q)
        np.testing.assert_array_equal(
            recording.setpoints[body].position_enu_m, f.wanted[body][0][::10]
        )
    for i, (name, cable) in enumerate(recording.cables.items()):
        assert name == f"cable_{i + 1}"
        np.testing.assert_array_equal(cable.tension_n, f.tension[i])
        assert len(cable.shape_enu_m) == len(f.time_s[::5])
        assert cable.shape_enu_m[0].shape == (f.links + 1, 3)
        np.testing.assert_allclose(cable.shape_enu_m[3][0], f.actual["load"][0][15])
        speeds = recording.rotors[f"drone_{i + 1}"].speed_rad_s
        np.testing.assert_array_equal(speeds, f.rotors[i])
    assert [s.name for s in recording.stages] == [name for name, _ in STAGES]
    assert [s.start_s for s in recording.stages] == pytest.approx(f.edges[:-1])


def test_messages_of_unequal_layout_are_read_right(tmp_path):
    """Lengths of strings and sequences vary inside one topic."""
    shapes = [np.arange(3.0 * n).reshape(n, 3) for n in (2, 4, 2)]
    extra = [("/cable_1/shape", k, marker_message(k, 0, s)) for k, s in enumerate(shapes)]
    extra += [
        ("/drone_1/rotors", k, rotors_message(k, name, [1.0 + k, 2.0, 3.0, 4.0]))
        for k, name in enumerate(("a", "bcdefgh", "ij"))
    ]
    extra += [("/mission/stage", k * 10**8, string_message(n)) for k, n in enumerate("ab")]
    recording = read_bag(small_bag(tmp_path / "bag", extra))
    for shape, read in zip(shapes, recording.cables["cable_1"].shape_enu_m, strict=True):
        np.testing.assert_array_equal(read, shape)
    np.testing.assert_array_equal(recording.rotors["drone_1"].speed_rad_s[:, 0], [1, 2, 3])
    np.testing.assert_array_equal(recording.bodies["load"].orientation_wxyz[0], Q)


def test_tension_needs_both_ends_of_a_time(tmp_path):
    extra = [
        ("/cable_1/tension", 0, wrench_message(0, "cable_1/load_end", 5.0)),
        ("/cable_1/tension", 0, wrench_message(0, "cable_1/drone_end", 6.0)),
        ("/cable_1/tension", 9, wrench_message(9, "cable_1/load_end", 7.0)),
    ]
    recording = read_bag(small_bag(tmp_path / "bag", extra))
    np.testing.assert_array_equal(recording.cables["cable_1"].tension_n, [[5.0, 6.0]])


def test_log_time_on_another_clock_places_stages_on_the_stamps(tmp_path):
    wall = 10**18
    messages = [
        (f"/{body}/pose", wall + k * 10**8, pose_message(k * 10**8, (0, 0, 0), Q))
        for k in range(11)
        for body in ("load", "drone_1")
    ]
    messages.append(("/mission/stage", wall + 5 * 10**8, string_message("circle")))
    (stage,) = read_bag(write_bag(tmp_path / "bag", messages)).stages
    assert (stage.start_s, stage.end_s) == pytest.approx((0.5, 1.0), abs=1e-6)


def test_without_set_points_and_cables_a_bag_still_reads(tmp_path):
    recording = read_bag(small_bag(tmp_path / "bag"))
    assert recording.setpoints == {} and recording.cables == {}
    assert [s.name for s in recording.stages] == ["flight"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: shutil.rmtree(p), "not a rosbag2 bag .no such folder"),
        (lambda p: _only(p, "notes.txt"), "not a rosbag2 bag .no metadata"),
        (lambda p: (p / "metadata.yaml").write_text("nonsense: ["), "damaged"),
        (lambda p: (p / f"{p.name}.mcap").unlink(), "damaged"),
        (lambda p: _cut(p / f"{p.name}.mcap", 0.2), "damaged"),
        (lambda p: (p / f"{p.name}.mcap").write_bytes(b""), "damaged"),
    ],
)
def test_what_is_no_bag_ends_with_one_line(tmp_path, damage, message):
    path = small_bag(tmp_path / "bag")
    damage(path)
    with pytest.raises(ConfigError, match=message) as error:
        read_bag(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def _only(folder, name):
    for file in folder.iterdir():
        file.unlink()
    (folder / name).write_text("")


def _cut(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def test_an_empty_bag_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="is empty"):
        read_bag(write_bag(tmp_path / "bag", []))


def test_missing_poses_are_named(tmp_path):
    with pytest.raises(ConfigError, match="no messages on /drone_1/pose"):
        read_bag(small_bag(tmp_path / "one", drones=()))
    message = ("/drone_1/pose", 0, pose_message(0, (0, 0, 0), Q))
    with pytest.raises(ConfigError, match="no messages on /load/pose"):
        read_bag(write_bag(tmp_path / "two", [message]))
    extra = [("/drone_2/rotors", 0, rotors_message(0, "d", [1.0]))]
    with pytest.raises(ConfigError, match="no messages on /drone_2/pose"):
        read_bag(small_bag(tmp_path / "three", extra))


def test_a_topic_of_another_type_is_named(tmp_path):
    extra = [("/cable_1/tension", 0, string_message("x"))]
    with pytest.raises(ConfigError, match="/cable_1/tension has type std_msgs/msg/String"):
        read_bag(small_bag(tmp_path / "bag", extra))


def test_reading_is_fast(flight_bag):
    """15 000 messages; a reader that decodes them one by one takes ten times as long."""
    read_bag(flight_bag)
    start = time.process_time()
    read_bag(flight_bag)
    assert time.process_time() - start < 1.0


def test_a_bag_of_our_recorder_is_read(tmp_path):
    system = load_system("x500_trio")
    state = PlantState.zeros(system)
    nodes = [np.full((c.links + 1, 3), float(i)) for i, c in enumerate(system.cables)]
    plant = Plant(system, 0.004, 9.81)
    plant.state, plant.cable_nodes_enu_m = state, nodes.__getitem__
    with closing(BagRecorder(tmp_path / "bag", system, step_period_s=0.02)) as recorder:
        for k in range(10):
            recorder.on_stage(0.02 * k, "lift" if k < 6 else "circle")
            at, level = np.tile([k // 5, 0.0, 1.0], (4, 1)), np.tile([1.0, 0.0, 0.0, 0.0], (4, 1))
            recorder.on_setpoint(0.02 * k, at, level)
            state.position_enu_m[:] = np.arange(12.0).reshape(4, 3) + k
            state.cable_force_n[:, :, 0] = [[k, k + 10], [k, k + 20], [k, k + 30]]
            state.rotor_speed_rad_s[:] = 100.0 * k
            recorder.observe(0.02 * k, session_of(plant))
    recording = read_bag(tmp_path / "bag")
    assert recording.stages == (
        RecordedStage("lift", 0.0, 0.12),
        RecordedStage("circle", 0.12, 0.18),
    )
    np.testing.assert_array_equal(recording.bodies["drone_2"].position_enu_m[4], [10, 11, 12])
    np.testing.assert_array_equal(recording.setpoints["load"].time_s, [0.0, 0.1])
    np.testing.assert_array_equal(recording.cables["cable_3"].tension_n[7], [7, 37])
    np.testing.assert_array_equal(recording.cables["cable_2"].shape_enu_m[1], nodes[1])
    np.testing.assert_array_equal(recording.rotors["drone_1"].speed_rad_s[3], [300.0] * 4)
