"""Places without attitude: one marker on a load, a total station, PointStamped."""

from dataclasses import replace

import numpy as np
import pytest
from lab_files import circling, columns_of, table_text
from made_up_flight import header, make
from made_up_recordings import flight, write_bag

from musls_analysis.comparison.compare import compare_stage
from musls_analysis.comparison.cycles import cut
from musls_analysis.comparison.errors import error_table
from musls_analysis.estimation.replays import RecordedLoad, fit_replays
from musls_analysis.estimation.system_parameters import Setup
from musls_analysis.estimation.taut_rows import geometry
from musls_analysis.recordings.contents import contents, write
from musls_analysis.recordings.readers import read_recording
from musls_analysis.recordings.recording import PoseTrack, Recording
from musls_analysis.replay import Replay, ReplaySpec
from musls_analysis.replay.replay import summary, with_links
from musls_analysis.scene import Subject, sample
from musls_description.config.errors import ConfigError
from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import yaw_of
from musls_description.system.system_files import load_system


def without_attitude(recording, body="load"):
    track = recording.bodies[body]
    unknown = np.full_like(track.orientation_wxyz, np.nan)
    place = replace(track, orientation_wxyz=unknown)
    return replace(recording, bodies={**recording.bodies, body: place})


def assert_place(track, expected):
    assert not track.has_attitude and np.isnan(track.orientation_wxyz).all()
    np.testing.assert_allclose(track.position_enu_m, expected.position_enu_m, atol=2e-6)


def test_a_table_with_the_place_of_the_load(tmp_path):
    flown = circling()
    names, rows = columns_of(flown)
    kept = [
        k for k, name in enumerate(names) if name not in ("load_roll", "load_pitch", "load_yaw")
    ]
    path = tmp_path / "a.csv"
    path.write_text(table_text([names[k] for k in kept], rows[:, kept]))
    read = read_recording(path)
    assert read.warnings == ("load is a place without attitude, which stays unknown",)
    assert_place(read.bodies["load"], flown.bodies["load"])
    assert read.bodies["drone_2"].has_attitude
    assert np.isnan(contents(read)[0].tilt_deg)
    for kind in ("csv", "mcap"):
        write(read, kind, tmp_path / f"b.{kind}")
        assert_place(read_recording(tmp_path / f"b.{kind}").bodies["load"], flown.bodies["load"])
    with pytest.raises(ConfigError, match="tum needs attitudes, that of load is unknown"):
        write(read, "tum", tmp_path / "b")


@pytest.mark.parametrize("kind", ["PointStamped", "PoseStamped"])
def test_a_topic_of_places(tmp_path, kind):
    """A total station writes points, or poses whose quaternion is left at zero."""
    flown = circling()

    def messages():
        for body, track in flown.bodies.items():
            for k, time_s in enumerate(track.time_s):
                ns = 10**9 + round(1e9 * time_s)
                point = make("geometry_msgs/msg/Point", *map(float, track.position_enu_m[k]))
                w, x, y, z = map(float, track.orientation_wxyz[k])
                turn = (x, y, z, w) if body != "load" else (0.0, 0.0, 0.0, 0.0)
                turned = make("geometry_msgs/msg/Quaternion", *turn)
                pose = make("geometry_msgs/msg/Pose", point, turned)
                name = kind if body == "load" else "PoseStamped"
                what = point if name == "PointStamped" else pose
                message = make(f"geometry_msgs/msg/{name}", header(ns, "map"), what)
                yield f"/station/{body}", ns, message

    read = read_recording(write_bag(tmp_path / "bag", messages()))
    assert_place(read.bodies["load"], flown.bodies["load"])
    assert read.bodies["drone_1"].has_attitude


def test_errors_of_places_and_what_is_drawn():
    flown = flight("circle", repetitions=1)
    places = without_attitude(flown)
    whole, alone = error_table(flown), error_table(places)
    rows = zip(whole, alone, strict=True)
    for row, its in rows:
        assert its.translational_error_m == row.translational_error_m > 0.0 or row.body != "load"
        assert np.isnan(its.geodesic_error_deg) == (its.body == "load")
    assert "nan" not in str(alone)
    system = load_system("x500_trio")
    middle = np.array([flown.time_s[len(flown.time_s) // 2]])
    drawn = sample(Subject(places, system, "a", {"load": (0.0, 0.0, 0.1)}), middle).bodies["load"]
    np.testing.assert_allclose(drawn.orientation_wxyz, [[1.0, 0.0, 0.0, 0.0]])
    lower = places.bodies["load"].at(middle).position_enu_m - [[0.0, 0.0, 0.1]]
    np.testing.assert_allclose(drawn.position_enu_m, lower, atol=1e-9)


def test_places_are_compared():
    flown = flight("shm", repetitions=2, rate_hz=10.0)
    up = replace(
        flown.bodies["load"],
        position_enu_m=flown.bodies["load"].position_enu_m + [0.0, 0.0, 0.05],
    )
    real = without_attitude(replace(flown, bodies={**flown.bodies, "load": up}))
    found = compare_stage("shm", cut(real, "shm"), [cut(flown, "shm")])
    assert found.errors["load"].translational_error_m == pytest.approx(0.05, abs=1e-3)
    assert np.isnan(found.errors["load"].geodesic_error_deg) and "nan" not in str(found)
    assert found.errors["drone_1"].geodesic_error_deg == pytest.approx(0.0, abs=1e-3)
    # The simulated attitude tells which point of the load the marker is.
    assert found.offsets["load"].best_m == pytest.approx((0.0, 0.0, 0.05), abs=1e-3)


YAW_RAD = 0.7


@pytest.fixture(scope="module")
def system():
    return with_links(load_system("x500_trio_swivel"), "rigid_links:2")


@pytest.fixture(scope="module")
def hanging(system):
    """Drones that stand in the air, turned by a yaw, and a marker on top of the load below."""
    time_s = np.arange(0.0, 3.0, 0.05)
    ones = np.ones((len(time_s), 1))
    angles = YAW_RAD + np.arange(3) * 2.0 * np.pi / 3.0
    places = np.column_stack([np.cos(angles), np.sin(angles), np.full(3, 3.2)])
    rest = hanging_equilibrium(system, places, STANDARD_GRAVITY_M_S2, YAW_RAD, angles + np.pi)
    position, turn = rest.bodies
    marker = position[0] + [0.0, 0.0, 0.1]
    bodies = {
        f"drone_{i}": PoseTrack(time_s, ones * position[i], ones * turn[i]) for i in range(1, 4)
    }
    load = PoseTrack(time_s, ones * marker, np.full((len(time_s), 4), np.nan))
    spec = ReplaySpec(lead_in_s=1.0, physics_step_s=0.004, offsets_m={"load": (0.0, 0.0, 0.1)})
    return Replay(Recording({"load": load, **bodies}, source="a.csv"), spec)


def test_a_marker_is_predicted_without_the_loads_attitude(hanging, system):
    """The load hangs where statics have it, with the yaw in which its cables do not cross."""
    result = hanging.run(system)
    assert result.translational_error_m < 1e-3
    assert yaw_of(result.load.orientation_wxyz) == pytest.approx(YAW_RAD, abs=1e-3)
    assert result.errors()["geodesic_error_deg"] is None
    assert "an attitude that was not recorded" in str(result)
    assert summary(hanging, result)["path_residual_deg"]["load"] is None


def test_a_fit_takes_places_alone(hanging, system):
    recorded = RecordedLoad(hanging, Setup(system, hanging.spec), ["length"], "rigid_links:2")
    length_m = system.cables[0].length_m
    off_m = recorded.residual(np.array([length_m + 0.05]))
    assert off_m.shape == (len(recorded.samples), 3)
    slope = 2.2 / length_m  # of a cable: about its height over its length
    assert off_m[:, 2].mean() == pytest.approx(-0.05 / slope, rel=0.1)
    with pytest.raises(ConfigError, match="load_tilt_x needs the load's attitude"):
        fit_replays([hanging], system, ["load_tilt"])
    with pytest.raises(ConfigError, match="a geometry needs the load's attitude"):
        geometry([hanging, hanging], system)


def test_a_replay_needs_the_attitudes_of_the_drones():
    swaying = without_attitude(circling(), "drone_2")
    with pytest.raises(ConfigError, match="attitudes of the drones; that of drone_2 is unknown"):
        Replay(swaying, ReplaySpec(lead_in_s=1.0))


def test_a_track_has_all_attitudes_or_none():
    t = np.arange(3.0)
    track = PoseTrack(t, np.zeros((3, 3)), np.full((3, 4), np.nan))
    assert not track.has_attitude and track.or_level().has_attitude
    assert track.or_level().or_level() is not track
