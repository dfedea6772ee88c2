import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_analysis.comparison.errors import (
    error_table,
    error_track,
    geodesic_error_rad,
    shown_setpoints,
    translational_error_m,
)
from musls_analysis.recordings.recording import PoseTrack, RecordedStage, Recording
from musls_description.numerics.rotations import roll_pitch_yaw, wrapped

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])


def about(axis, angle):
    axis = np.asarray(axis) / np.linalg.norm(axis)
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])


def test_translational_error_is_the_distance():
    a = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    b = np.array([[3.0, 0.0, 4.0], [1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(translational_error_m(a, b), [5.0, 0.0])


@pytest.mark.parametrize(
    "angle", [0.0, 1e-12, 1e-8, 1e-3, 0.5, np.pi / 2, 3.0, np.pi - 1e-8, np.pi]
)
def test_geodesic_error_keeps_its_digits_from_zero_to_pi(angle):
    q = about([1.0, 2.0, -3.0], angle)
    base = about([0.3, -1.0, 0.2], 2.2)
    turned = (Rotation.from_quat(base, scalar_first=True) * Rotation.from_quat(
        q, scalar_first=True)).as_quat(scalar_first=True)  # fmt: skip
    assert geodesic_error_rad(IDENTITY, q) == pytest.approx(angle, rel=1e-9, abs=1e-15)
    assert geodesic_error_rad(base, turned) == pytest.approx(angle, rel=1e-6, abs=1e-15)


def test_geodesic_error_agrees_with_the_trace_formula_of_the_paper():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 50, 4))
    a, b = (q / np.linalg.norm(q, axis=1, keepdims=True) for q in (a, b))
    A, B = (Rotation.from_quat(q, scalar_first=True).as_matrix() for q in (a, b))
    trace = np.einsum("nji,nji->n", B, A)  # trace of B^T A
    expected = np.arccos(np.clip((trace - 1) / 2, -1, 1))
    np.testing.assert_allclose(geodesic_error_rad(a, b), expected, atol=1e-7)


def test_opposite_quaternions_are_the_same_orientation():
    q = about([0, 1, 1], 1.0)
    assert geodesic_error_rad(q, -q) == 0.0


def test_statistics_by_hand_ignore_what_is_not_a_number():
    """Distances 1, 2, 4 m in the stage, and two samples without a pose, without a set-point."""
    t, q = np.arange(5.0), np.tile(IDENTITY, (5, 1))
    position = np.column_stack([[9.0, np.nan, 1.0, 2.0, 4.0], np.zeros((5, 2))])
    setpoint = PoseTrack(t[1:2], np.zeros((1, 3)), q[:1])
    stages = (RecordedStage("before", -2.0, 0.0), RecordedStage("flown", 0.0, 4.0))
    bodies = {"load": PoseTrack(t, position, q)}
    (row,) = error_table(Recording(bodies, {"load": setpoint}, stages=stages))
    found = row.translational_error_m, row.translational_error_max_m, row.translational_error_rms_m
    assert found == pytest.approx((7 / 3, 4.0, np.sqrt(7.0)))


def test_setpoints_are_held_from_their_own_time_on():
    setpoint = PoseTrack(
        np.array([1.0, 2.0]), np.array([[0.0, 0, 0], [10.0, 0, 0]]), np.tile(IDENTITY, (2, 1))
    )
    t = np.array([0.5, 1.0, 1.999, 2.0, 9.0])
    held = setpoint.held_at(t)
    np.testing.assert_array_equal(held.position_enu_m[:, 0], [np.nan, 0, 0, 10, 10])
    measured = PoseTrack(t, np.zeros((5, 3)), np.tile(IDENTITY, (5, 1)))
    track = error_track(Recording({"drone_1": measured}, {"drone_1": setpoint}), "drone_1")
    np.testing.assert_array_equal(track.translational_error_m, [np.nan, 0, 0, 10, 10])


def test_load_counts_against_its_reference_and_besides_against_held_setpoints():
    t, speed_m_s, offset_m = np.arange(0, 501) / 100.0, 0.5, 0.003

    def line(time_s, aside_m=0.0):
        turn = np.tile(IDENTITY, (len(time_s), 1))
        at = np.column_stack([speed_m_s * time_s, aside_m + 0.0 * time_s, 1.0 + 0.0 * time_s])
        return PoseTrack(time_s, at, turn)

    recording = Recording(
        {"load": line(t, offset_m)},
        {"load": line(np.arange(0, 26) / 5.0)},
        references={"load": line(t[::2])},
        stages=(RecordedStage("line", 0.0, 5.0),),
    )
    (row,) = error_table(recording)
    assert row.translational_error_m == pytest.approx(offset_m)
    # Held for 0.2 s: the load is 0 to 0.19 s ahead, 0.095 s on average.
    assert row.held_translational_error_m == pytest.approx(0.095 * speed_m_s, rel=0.01)


def test_constant_offset_and_rotation_come_back_in_every_stage():
    t = np.arange(0, 301) / 50.0
    path = np.column_stack([np.cos(t), np.sin(t), 0.1 * t])
    yaw = Rotation.from_euler("z", t[:, None])
    q = yaw.as_quat(scalar_first=True)
    off = (yaw * Rotation.from_rotvec([0.0, np.radians(3.0), np.radians(4.0)])).as_quat(
        scalar_first=True
    )
    recording = Recording(
        {"load": PoseTrack(t, path + np.array([0.02, -0.03, 0.06]), off)},
        {"load": PoseTrack(t, path, q)},
        stages=(RecordedStage("rise", 0.0, 2.0), RecordedStage("circle", 2.0, 6.0)),
    )
    assert [row.stage for row in error_table(recording)] == ["rise", "circle"]
    for numbers in error_table(recording).by_body()["load"].values():
        for name, value in numbers.items():
            assert value == pytest.approx(0.07 if "translational" in name else 5.0)


def test_printed_errors_have_headings_and_units_in_straight_columns():
    track = PoseTrack(np.array([0.0, 1.0]), np.zeros((2, 3)), np.tile(IDENTITY, (2, 1)))
    stages = (RecordedStage("take_off", 0.0, 1.0),)
    table = error_table(Recording({"load": track}, {"load": track}, stages=stages))
    heading, line = str(table).splitlines()
    assert repr(table) == str(table) and len(heading) == len(line)
    assert heading.split()[:5] == ["body", "stage", "mean", "[m]", "max"]
    assert line.split()[:3] == ["load", "take_off", "0.0000"]


def test_a_load_that_stands_has_no_error_to_references_below_the_ground():
    t = np.array([0.0, 1.0, 2.0, 3.0])
    q = np.tile(IDENTITY, (4, 1))
    standing = np.tile([0.0, 0.0, 0.05], (4, 1))
    below = standing - [0.0, 0.0, 0.5]
    stages = (RecordedStage("spool_up", 0.0, 1.5), RecordedStage("disarmed", 1.5, 3.0))
    recording = Recording(
        {"load": PoseTrack(t, standing, q)}, {"load": PoseTrack(t, below, q)}, stages=stages
    )
    assert [row.translational_error_max_m for row in error_table(recording)] == [0.0, 0.0]
    drawn = shown_setpoints(recording)["load"].position_enu_m
    assert drawn[:, 2].min() == pytest.approx(0.05)


def test_an_error_counts_only_for_its_stage():
    t = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    position = np.zeros((5, 3))
    position[2:, 0] = [1.0, 3.0, 5.0]
    q = np.tile(IDENTITY, (5, 1))
    recording = Recording(
        {"load": PoseTrack(t, position, q)},
        {"load": PoseTrack(t[:1], np.zeros((1, 3)), q[:1])},
        stages=(RecordedStage("a", 0.0, 2.0), RecordedStage("b", 2.0, 4.0)),
    )
    first, second = error_table(recording)
    assert first.translational_error_max_m == 0.0
    assert second.translational_error_m == pytest.approx(
        3.0
    )  # 4.0 s, the end, belongs to the last stage


def test_angles_against_scipy():
    q = Rotation.from_euler("ZYX", [[0.4, -0.3, 1.1], [-3.0, 1.2, -2.0]])
    expected = q.as_euler("ZYX")[:, ::-1]
    np.testing.assert_allclose(roll_pitch_yaw(q.as_quat(scalar_first=True)), expected, atol=1e-12)
    np.testing.assert_allclose(wrapped(np.array([3.5, -3.5])), [3.5 - 2 * np.pi, 2 * np.pi - 3.5])
