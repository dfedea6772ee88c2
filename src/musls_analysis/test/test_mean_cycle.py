"""Resampling and averaging, mostly as properties that hold for any input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from musls_analysis.comparison.compare import CONFIDENCE_FACTOR, Slices, mean_cycle, phases, shifted
from musls_analysis.comparison.errors import geodesic_error_rad
from musls_analysis.recordings.recording import PoseTrack, gaps, resample
from musls_description.numerics.rotations import (
    chordal_mean,
    from_roll_pitch_yaw,
    product,
    roll_pitch_yaw,
    rotate,
    slerp,
)

unit = st.floats(0.0, 1.0)
angle = st.floats(-3.0, 3.0)
vectors = arrays(float, 3, elements=st.floats(-2.0, 2.0))


@st.composite
def quaternions(draw, count=1):
    q = draw(arrays(float, (count, 4), elements=st.floats(-1.0, 1.0)))
    norm = np.linalg.norm(q, axis=1, keepdims=True)
    return np.where(norm > 0.1, q / np.maximum(norm, 0.1), [1.0, 0.0, 0.0, 0.0])


def axis_angle(axis, angle_rad):
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    half = 0.5 * np.atleast_1d(angle_rad)
    return np.column_stack([np.cos(half), np.sin(half)[:, None] * axis])


times = st.lists(st.floats(0.01, 0.5), min_size=1, max_size=30).map(
    lambda steps: np.concatenate([[0.0], np.cumsum(steps)])
)


@given(times, vectors, vectors, st.lists(unit, min_size=1, max_size=9))
def test_linear_motion_is_resampled_exactly(time_s, start, velocity, shares):
    position = start + time_s[:, None] * velocity
    track = PoseTrack(time_s, position, np.tile([1.0, 0, 0, 0], (len(time_s), 1)))
    at = np.array(shares) * time_s[-1]
    found = resample(track, at, gap_limit_s=1.0)
    np.testing.assert_allclose(found.position_enu_m, start + at[:, None] * velocity, atol=1e-9)


def test_a_quarter_of_a_span_is_a_quarter_of_its_way_and_turn():
    ends = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 8.0]])
    track = PoseTrack(np.array([1.0, 3.0]), ends, axis_angle([0.0, 0.0, 1.0], [0.0, 1.2]))
    found = resample(track, np.array([1.5]), gap_limit_s=5.0)
    assert found.position_enu_m[0] == pytest.approx([1.0, 0.0, 2.0])
    assert found.orientation_wxyz[0] == pytest.approx([np.cos(0.15), 0.0, 0.0, np.sin(0.15)])
    beside = resample(track, np.array([1.0, 1.5, 3.0]), gap_limit_s=1.0).position_enu_m
    assert np.isnan(beside).all(axis=1).tolist() == [False, True, False]


@given(times, st.floats(-3.0, 3.0), quaternions(), st.lists(unit, min_size=1, max_size=9))
def test_turning_at_constant_rate_is_resampled_exactly(time_s, rate, first, shares):
    """Samples are at most 0.5 s and so 1.5 rad apart."""
    q = product(np.repeat(first, len(time_s), 0), axis_angle([1, 2, 2], rate * time_s))
    signs = np.where(np.arange(len(time_s)) % 2, -1.0, 1.0)[:, None]  # q and -q are one rotation
    track = PoseTrack(time_s, np.zeros((len(time_s), 3)), q * signs)
    at = np.array(shares) * time_s[-1]
    found = resample(track, at, gap_limit_s=1.0).orientation_wxyz
    expected = product(np.repeat(first, len(at), 0), axis_angle([1, 2, 2], rate * at))
    assert geodesic_error_rad(found, expected).max() < 1e-7
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)


@given(times, st.floats(1e-6, 10.0))
def test_nothing_is_extrapolated(time_s, beyond):
    track = PoseTrack(time_s, np.ones((len(time_s), 3)), np.tile([1.0, 0, 0, 0], (len(time_s), 1)))
    found = resample(track, np.array([-beyond, 0.0, time_s[-1], time_s[-1] + beyond]), 1.0)
    nan = np.isnan(found.position_enu_m[:, 0])
    assert list(nan) == [True, False, False, True]
    np.testing.assert_array_equal(nan, np.isnan(found.orientation_wxyz[:, 0]))


def test_gaps_stay_open_and_are_counted():
    time_s = np.array([0.0, 0.1, 0.2, 1.0, 1.1])
    track = PoseTrack(time_s, np.ones((5, 3)), np.tile([1.0, 0, 0, 0], (5, 1)))
    at = np.array([0.15, 0.2, 0.21, 0.6, 1.0, 1.05])
    nan = np.isnan(resample(track, at, gap_limit_s=0.5).position_enu_m[:, 0])
    assert list(nan) == [False, False, True, True, False, False]
    assert gaps(track, 0.0, 2.0, 0.5) == 1 and gaps(track, 1.0, 2.0, 0.5) == 0
    assert not np.isnan(resample(track, at, gap_limit_s=0.9).position_enu_m).any()
    with pytest.raises(ValueError, match="increase strictly"):
        resample(PoseTrack(time_s[::-1], np.ones((5, 3)), np.ones((5, 4))), at, 1.0)


def test_one_sample_is_known_at_its_own_time_only():
    track = PoseTrack(np.array([1.0]), np.ones((1, 3)), np.array([[1.0, 0, 0, 0]]))
    found = resample(track, np.array([0.9, 1.0, 1.1]), 1.0)
    assert list(np.isnan(found.position_enu_m[:, 0])) == [True, False, True]


@given(quaternions(), quaternions(), unit)
def test_slerp_divides_the_angle(a, b, share):
    total = geodesic_error_rad(a, b)
    q = slerp(a, b, np.array([share]))
    assert geodesic_error_rad(a, q) == pytest.approx(share * total, abs=1e-6)
    assert geodesic_error_rad(q, b) == pytest.approx((1 - share) * total, abs=1e-6)


@given(angle, st.floats(-1.4, 1.4), angle, vectors)
def test_angles_and_rotations_agree(roll, pitch, yaw, vector):
    q = from_roll_pitch_yaw(np.array([roll, pitch, yaw]))
    np.testing.assert_allclose(roll_pitch_yaw(q), [roll, pitch, yaw], atol=1e-7)
    cos, sin = np.cos, np.sin
    rx = np.array([[1, 0, 0], [0, cos(roll), -sin(roll)], [0, sin(roll), cos(roll)]])
    ry = np.array([[cos(pitch), 0, sin(pitch)], [0, 1, 0], [-sin(pitch), 0, cos(pitch)]])
    rz = np.array([[cos(yaw), -sin(yaw), 0], [sin(yaw), cos(yaw), 0], [0, 0, 1]])
    np.testing.assert_allclose(rotate(q, vector), rz @ ry @ rx @ vector, atol=1e-9)


@given(quaternions(), st.lists(st.sampled_from([-1.0, 1.0]), min_size=1, max_size=6))
def test_the_mean_of_equal_rotations_is_that_rotation(q, signs):
    mean = chordal_mean(np.array(signs)[:, None, None] * q)
    assert geodesic_error_rad(mean, q).max() < 1e-7


@given(quaternions(), vectors, st.floats(0.01, 1.5))
def test_the_mean_of_opposite_turns_is_the_middle(q, axis, turn):
    if np.linalg.norm(axis) < 0.1:
        axis = [0, 0, 1]
    pair = [product(q, axis_angle(axis, s * turn)) for s in (-1.0, 1.0)]
    assert geodesic_error_rad(chordal_mean(np.stack(pair)), q).max() < 1e-7


@settings(max_examples=50)
@given(quaternions(5), quaternions())
def test_the_mean_is_the_projection_of_the_mean_matrix(samples, turn):
    """SVD of the mean matrix onto SO(3); and turning all samples turns the mean."""
    samples = product(samples[:1], slerp(np.tile([1.0, 0, 0, 0], (5, 1)), samples, np.full(5, 0.4)))
    mean = chordal_mean(samples[:, None])
    matrices = np.stack([rotate(samples, np.tile(e, (5, 1))) for e in np.eye(3)], axis=-1)
    u, _, vt = np.linalg.svd(matrices.mean(axis=0))
    nearest = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    of_mean = np.stack([rotate(mean[0], e) for e in np.eye(3)], axis=-1)
    np.testing.assert_allclose(of_mean, nearest, atol=1e-6)
    turned = chordal_mean(product(np.repeat(turn, 5, 0), samples)[:, None])
    assert geodesic_error_rad(turned, product(turn, mean)).max() < 1e-6


def test_rotations_without_a_mean_give_nan():
    opposite = np.stack([axis_angle([1, 0, 0], a) for a in (0.0, np.pi)])
    assert np.isnan(chordal_mean(opposite)).all()
    assert np.isnan(chordal_mean(np.full((2, 1, 4), np.nan))).all()


def body(positions, yaws):
    """Cycles of constant pose on three phases."""
    p = np.repeat(np.array(positions, float)[:, None], 3, axis=1)
    angles = np.zeros((len(yaws), 3, 3))
    angles[..., 2] = np.array(yaws)[:, None]
    return Slices(p, from_roll_pitch_yaw(angles), 0)


def test_mean_and_confidence_by_hand():
    """1, 2, 6: mean 3, variance (4 + 1 + 9) / 2 = 7."""
    mean = mean_cycle(body([[1, 0, 0], [2, 0, 0], [6, 0, 0]], [0.1, 0.2, 0.3]))
    np.testing.assert_allclose(mean.position_enu_m, np.tile([3.0, 0, 0], (3, 1)))
    np.testing.assert_allclose(mean.position_ci_m[:, 0], 1.959964 * np.sqrt(7 / 3), rtol=1e-6)
    np.testing.assert_allclose(mean.angles_rad[:, 2], 0.2, atol=1e-12)
    np.testing.assert_allclose(mean.angles_ci_rad[:, 2], 1.959964 * 0.1 / np.sqrt(3), rtol=1e-6)
    assert list(mean.samples) == [3, 3, 3]


def test_one_cycle_has_no_confidence_and_holes_do_not_count():
    one = mean_cycle(body([[1, 2, 3]], [0.1]))
    assert np.isnan(one.position_ci_m).all() and list(one.samples) == [1, 1, 1]
    two = body([[1, 0, 0], [3, 0, 0]], [0.1, 0.3])
    two.position_enu_m[0, 1], two.orientation_wxyz[0, 1] = np.nan, np.nan
    for euler in (False, True):
        mean = mean_cycle(two, euler)
        np.testing.assert_allclose(mean.position_enu_m[:, 0], [2, 3, 2])
        np.testing.assert_allclose(mean.angles_rad[:, 2], [0.2, 0.3, 0.2])
        assert list(mean.samples) == [2, 1, 2]
        assert list(np.isnan(mean.position_ci_m[:, 0])) == [False, True, False]


@pytest.mark.parametrize("euler", [False, True])
def test_means_across_half_a_turn(euler):
    mean = mean_cycle(body(np.zeros((2, 3)), [np.pi - 0.1, -np.pi + 0.3]), euler)
    middle = axis_angle([0, 0, 1], np.pi + 0.1)
    assert geodesic_error_rad(mean.orientation_wxyz, middle).max() < 1e-9
    np.testing.assert_allclose(mean.angles_ci_rad[:, 2], CONFIDENCE_FACTOR * 0.2, rtol=1e-6)


def test_the_two_ways_of_averaging_rotations_differ():
    angles = np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 2.0]]])
    slices = Slices(np.zeros((2, 1, 3)), from_roll_pitch_yaw(angles), 0)
    one_by_one, mean = mean_cycle(slices, True), mean_cycle(slices)
    np.testing.assert_allclose(one_by_one.angles_rad, [[0.0, 0.5, 1.0]], atol=1e-9)
    assert geodesic_error_rad(one_by_one.orientation_wxyz, mean.orientation_wxyz)[0] > 0.05
    ways = geodesic_error_rad(mean.orientation_wxyz, slices.orientation_wxyz[:, 0])
    assert ways[0] == pytest.approx(ways[1])


@given(st.floats(-0.4, 0.4))
def test_a_shifted_cycle_is_read_later(shift):
    phase = phases(400, periodic=True)
    turn = 2.0 * np.pi * phase
    position = np.column_stack([np.cos(turn), np.sin(turn), np.zeros_like(turn)])
    angles = np.column_stack([np.zeros((400, 2)), turn])
    slices = Slices(position[None], from_roll_pitch_yaw(angles)[None], 0)
    moved, q = shifted(mean_cycle(slices), shift, periodic=True)
    later = turn + 2.0 * np.pi * shift
    np.testing.assert_allclose(moved[:, 0], np.cos(later), atol=1e-4)
    assert geodesic_error_rad(q, axis_angle([0, 0, 1], later)).max() < 1e-7
    ends, _ = shifted(mean_cycle(slices), shift, periodic=False)
    assert np.isnan(ends[:, 0]).mean() == pytest.approx(abs(shift), abs=0.006)
