"""A recording from memory is, field by field, the one that its bag gives; and its interface."""

from contextlib import closing
from dataclasses import fields

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from standing_plant import session_of, standing_plant

from musls_analysis.comparison.errors import error_table, error_track
from musls_analysis.figures.flight import plot
from musls_analysis.recordings.bag import read_bag, recording_from
from musls_analysis.recordings.recording import RecordedEvent, Recording
from musls_control.reference import Piece, Reference, StraightMove
from musls_description.config.errors import ConfigError
from musls_description.system.system_files import load_system
from musls_sim.recording import BagRecorder, MemoryRecorder

SYSTEM = load_system("x500_trio_unequal")
ROWS = 120
PATHS = {  # by the row from which they are asked for; they began earlier
    10: Reference(
        [Piece(0.0, 0.0, StraightMove(np.zeros(4), np.array([2.0, 0.0, 1.0, 0.5]), 1.0))]
    ),
    60: Reference.rest([1.0, 2.0, 3.0, -2.0]),
}
N = SYSTEM.n_drones


def fly(recorder):
    """Record random but smooth numbers; what the bodies do is returned as arrays over time."""
    rng = np.random.default_rng(5)
    plant, state = standing_plant(SYSTEM), None
    turns = rng.normal(size=(1 + N, 3))
    truth = {"position": [], "orientation": [], "velocity": [], "omega": []}
    with closing(recorder):
        for k in range(ROWS):
            time_s, state = 0.02 * k, plant.state
            state.position_enu_m[:] = rng.normal(size=(1 + N, 3))
            state.velocity_enu_m_s[:] = rng.normal(size=(1 + N, 3))
            turned = Rotation.from_rotvec(turns * time_s).as_quat()
            state.motion[:, 6:10] = turned[:, [3, 0, 1, 2]]
            state.omega_body_rad_s[:] = turns
            state.rotor_speed_rad_s[:] = rng.uniform(0, 900, state.rotor_speed_rad_s.shape)
            state.cable_force_n[:] = rng.normal(size=(N, 2, 3))
            for i in range(N):
                plant.cable_nodes_enu_m(i)[:] = rng.normal(size=plant.cable_nodes_enu_m(i).shape)
            if k % 40 == 0:
                recorder.on_stage(time_s, ("lift", "engage", "lift")[k // 40])
            if k in PATHS:
                recorder.on_reference(time_s, PATHS[k], begin_s=time_s - 0.1)
            goal = np.full((1 + N, 3), float(k // 7))
            goal[1] = 1.0
            level = np.tile([1.0, 0.0, 0.0, 0.0], (1 + N, 1))
            recorder.on_setpoint(time_s, goal, level)
            if 40 <= k < 100:  # nothing is asked of drone 1, and of drone 2 not always
                asked = rng.normal(size=(N, 3))
                asked[0], asked[1, 2] = np.nan, np.nan if k % 3 else 1.0
                recorder.on_acceleration(time_s, asked)
            if k in (30, 31, 90):
                recorder.on_event(time_s, "motor_failed", f"drone_1: rotor {k}")
            recorder.observe(time_s, session_of(plant))
            for name, values in zip(
                truth, (state.position_enu_m, state.motion[:, 6:10], state.velocity_enu_m_s,
                        state.omega_body_rad_s), strict=True
            ):  # fmt: skip
                truth[name].append(values.copy())
    return {name: np.array(values) for name, values in truth.items()}


def memory_recorder():
    return MemoryRecorder(SYSTEM, step_period_s=0.02)


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    recorder = BagRecorder(tmp_path_factory.mktemp("run") / "bag", SYSTEM, step_period_s=0.02)
    truth = fly(recorder)
    return recorder, truth


def assert_same(a, b, where=""):
    """Equal in every field; body rates, which a bag holds in the world frame, to rounding."""
    assert type(a) is type(b), where
    if hasattr(a, "__dataclass_fields__"):
        for field in fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key, value in a.items():
            assert_same(value, b[key], f"{where}[{key}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{k}]")
    elif isinstance(a, np.ndarray):
        atol = 1e-14 if where.endswith("omega_body_rad_s") else 0.0
        np.testing.assert_allclose(a, b, rtol=0.0, atol=atol, err_msg=where)
    else:
        assert a == b, where


def test_a_bag_recorder_hands_over_what_its_bag_holds(flown):
    recorder, _ = flown
    assert_same(recording_from(recorder), read_bag(recorder.folder))


def test_accelerations_are_recorded_of_those_who_are_asked_for_them(flown):
    recorder, _ = flown
    recording = read_bag(recorder.folder)
    assert recording.setpoint_acceleration(2).time_s == pytest.approx(np.arange(42, 100, 3) * 0.02)
    assert recording.setpoint_acceleration(2).acceleration_enu_m_s2[:, 2] == pytest.approx(1.0)
    assert recording.setpoint_acceleration(3).time_s == pytest.approx(np.arange(40, 100) * 0.02)
    with pytest.raises(ConfigError, match=r"no acceleration set-points of drone_1 .*has drone_2"):
        recording.setpoint_acceleration(1)


def test_what_is_asked_of_the_load_is_evaluated_at_the_times_of_the_poses(flown):
    recorder, _ = flown
    track = recording_from(recorder).references["load"]
    np.testing.assert_allclose(track.time_s, 0.02 * np.arange(10, ROWS), atol=1e-12)
    for k, first in ((10, 10), (35, 10), (59, 10), (60, 60), (119, 60)):
        asked = PATHS[first].at(0.02 * (k - first) + 0.1)
        np.testing.assert_allclose(track.position_enu_m[k - 10], asked.position_enu_m, atol=1e-9)
        np.testing.assert_allclose(
            track.orientation_wxyz[k - 10], asked.orientation_wxyz, atol=1e-9
        )


def test_a_recorder_without_a_bag_gives_the_same(flown):
    recorder, _ = flown
    memory = memory_recorder()
    fly(memory)
    assert_same(recording_from(memory, str(recorder.folder)), read_bag(recorder.folder))
    assert recording_from(memory).source == "memory"


def test_a_recording_does_not_follow_its_recorder():
    recorder = memory_recorder()
    fly(recorder)
    recording = recording_from(recorder)
    before = recording.cable(1).shape_enu_m[0].copy()
    fly(recorder)
    assert len(recording.time_s) == ROWS
    np.testing.assert_array_equal(recording.cable(1).shape_enu_m[0], before)


def test_nothing_recorded_is_an_error():
    with pytest.raises(ConfigError, match="memory: a body without poses"):
        recording_from(memory_recorder())


@pytest.mark.parametrize("kind", ["", "a: b"])
def test_a_kind_of_event_that_a_bag_could_not_hold(kind):
    with pytest.raises(ValueError, match="must be a word without a colon"):
        memory_recorder().on_event(0.0, kind, "x")


@pytest.fixture(params=["memory", "bag"])
def run(request, flown):
    recorder, _ = flown
    return recording_from(recorder) if request.param == "memory" else read_bag(recorder.folder)


def test_bodies_cables_and_events_by_name(run, flown):
    _, truth = flown
    np.testing.assert_allclose(run.time_s, 0.02 * np.arange(ROWS), atol=1e-12)
    for k, body in enumerate([run.body("load"), *(run.drone(i + 1) for i in range(N))]):
        np.testing.assert_array_equal(body.position_enu_m, truth["position"][:, k])
        np.testing.assert_array_equal(body.orientation_wxyz, truth["orientation"][:, k])
        np.testing.assert_array_equal(body.velocity_enu_m_s, truth["velocity"][:, k])
        np.testing.assert_allclose(body.omega_body_rad_s, truth["omega"][:, k], atol=1e-14)
    assert run.drone(2).name == "drone_2"
    assert run.drone(2).rotor_speed_rad_s.shape == (ROWS, len(SYSTEM.drones[0].rotors))
    assert run.drone(1).setpoint is run.setpoints["drone_1"]
    assert run.cable(N).tension_n.shape == (ROWS, 2)
    assert run.events == tuple(
        RecordedEvent(round(0.02 * k, 9), "motor_failed", f"drone_1: rotor {k}")
        for k in (30, 31, 90)
    )
    assert [stage.name for stage in run.stages] == ["lift", "engage", "lift_2"]


def test_what_is_not_there_is_named(run):
    with pytest.raises(ConfigError, match="no body drone_9 in this recording; it has load, drone"):
        run.drone(9)
    with pytest.raises(ConfigError, match="no cable cable_0 in this recording; it has cable_1"):
        run.cable(0)
    with pytest.raises(ConfigError, match="no rotor speed of load"):
        _ = run.body("load").rotor_speed_rad_s
    poses_only = Recording(run.bodies)
    with pytest.raises(ConfigError, match="no velocity of load"):
        _ = poses_only.body("load").velocity_enu_m_s
    with pytest.raises(ConfigError, match="no figure 'tensions' of this recording; it has paths"):
        plot(poses_only, "tensions")


def test_velocities_at_other_times_are_interpolated(run):
    pose, twist = run.bodies["load"], run.twists["load"]
    late = type(twist)(twist.time_s + 0.01, twist.velocity_enu_m_s, twist.omega_body_rad_s)
    body = Recording({"load": pose}, twists={"load": late}).body("load")
    between = 0.5 * (twist.velocity_enu_m_s[:-1] + twist.velocity_enu_m_s[1:])
    assert np.isnan(body.velocity_enu_m_s[0]).all()
    np.testing.assert_allclose(body.velocity_enu_m_s[1:], between, atol=1e-12)


def test_error_table_is_that_of_the_error_functions(run):
    table = error_table(run)
    assert len(table) == (1 + N) * 3
    for row in table:
        track = error_track(run, row.body)
        stage = next(stage for stage in run.stages if stage.name == row.stage)
        inside = run.stage_mask(stage, track.time_s)
        mean_m = np.nanmean(track.translational_error_m[inside])
        assert row.translational_error_m == pytest.approx(mean_m)
        angle = np.nanmax(track.geodesic_error_rad[inside])
        assert row.geodesic_error_max_deg == pytest.approx(np.degrees(angle))
    assert table[0].body == "load" and table.by_body()["load"]["lift"]["translational_error_m"] == (
        table[0].translational_error_m
    )


def test_it_says_what_it_holds(run):
    assert repr(run).startswith("<Recording ") and "2.38 s, 3 drones, 3 cables" in repr(run)


def test_figures(run):
    assert plot(run, "paths_3d").axes
    assert plot(run, "tensions")._repr_png_().startswith(b"\x89PNG")
    assert len(plot(run, "pose_drone_2").axes) == 6
