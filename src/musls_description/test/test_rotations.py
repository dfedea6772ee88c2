"""Quaternion helpers, for arrays and for compiled code, against each other and transforms3d."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from transforms3d import euler, quaternions

from musls_description.numerics import rotations
from musls_description.numerics import vectors as compiled

number = st.floats(-1.0, 1.0)


@st.composite
def unit(draw):
    """Unit quaternions of either sign."""
    q = np.array([draw(number) for _ in range(4)])
    norm = np.linalg.norm(q)
    return q / norm if norm > 1e-3 else np.array([1.0, 0.0, 0.0, 0.0])


vectors = st.tuples(number, number, number).map(np.array)
near = {"rtol": 0.0, "atol": 1e-12}


def same_rotation(a, b):
    return abs(np.dot(a, b)) == pytest.approx(1.0, abs=1e-12)


@given(unit(), unit())
def test_products(a, b):
    expected = quaternions.qmult(a, b)
    assert np.allclose(compiled.quaternion_product(a, b), expected, **near)
    assert np.allclose(rotations.product(a, b), expected, **near)
    assert np.allclose(
        rotations.relative(a, b), quaternions.qmult(quaternions.qconjugate(b), a), **near
    )


@given(unit(), vectors)
def test_turning_vectors(q, v):
    expected = quaternions.rotate_vector(v, q)
    assert np.allclose(compiled.rotate_by(q, v), expected, **near)
    assert np.allclose(rotations.rotate(q, v), expected, **near)
    assert np.allclose(compiled.rotate_back_by(q, expected), v, **near)
    assert np.allclose(rotations.matrix_to_body(q) @ expected, v, **near)


@given(unit())
def test_matrices(q):
    matrix = quaternions.quat2mat(q)
    assert np.allclose(np.reshape(compiled.body_axes_in_world(q), (3, 3)).T, matrix, **near)
    assert np.allclose(rotations.matrix_to_body(q).T, matrix, **near)
    assert np.allclose(compiled.body_z_in_world(q), matrix[:, 2], **near)
    assert np.allclose(compiled.world_z_in_body(q), matrix[2], **near)
    back = compiled.from_matrix(matrix)
    assert back[0] >= 0.0 and same_rotation(back, q)


@pytest.mark.parametrize("axis", [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.8, 0], [0, -0.6, 0.8]])
def test_half_turns_have_a_quaternion_too(axis):
    matrix = 2.0 * np.outer(axis, axis) - np.eye(3)
    assert same_rotation(compiled.from_matrix(matrix), [0.0, *axis])


@given(vectors.map(lambda v: 3.0 * v))
def test_rotation_vectors(v):
    angle = np.linalg.norm(v)
    axis = v / angle if angle > 1e-9 else [1.0, 0.0, 0.0]
    expected = quaternions.axangle2quat(axis, angle)
    assert np.allclose(compiled.from_rotation_vector(v), expected, rtol=0, atol=1e-9)


@given(unit(), vectors)
def test_turning_on_in_the_body(q, v):
    expected = quaternions.qmult(q, compiled.from_rotation_vector(v))
    assert np.allclose(compiled.turned(q, v), expected, **near)


@given(unit(), unit())
def test_the_turn_from_one_to_the_other(a, b):
    turn = np.array(compiled.rotation_between(a, b))
    assert np.linalg.norm(turn) <= np.pi + 1e-9
    reached = compiled.quaternion_product(compiled.from_rotation_vector(turn), a)
    assert same_rotation(reached, b)


@given(st.floats(-3.1, 3.1), st.floats(-1.5, 1.5), st.floats(-3.1, 3.1))
def test_roll_pitch_yaw(roll, pitch, yaw):
    q = euler.euler2quat(roll, pitch, yaw, "sxyz")
    assert same_rotation(rotations.from_roll_pitch_yaw(np.array([roll, pitch, yaw])), q)
    assert np.allclose(rotations.roll_pitch_yaw(q), [roll, pitch, yaw], rtol=0, atol=1e-9)
    assert rotations.yaw_of(q) == pytest.approx(yaw, abs=1e-9)
    assert compiled.yaw_of(q) == pytest.approx(yaw, abs=1e-9)
    assert same_rotation(rotations.from_yaw(np.array(yaw)), euler.euler2quat(0, 0, yaw, "sxyz"))


@given(st.floats(-50.0, 50.0))
def test_wrapped_angles(angle):
    for found in (compiled.wrapped(angle), float(rotations.wrapped(np.array(angle)))):
        assert -np.pi - 1e-9 <= found < np.pi + 1e-9
        assert np.cos(found - angle) == pytest.approx(1.0)
    assert rotations.wrapped(np.array(-np.pi - 1e-17)) == -np.pi  # where % gives a whole turn
    assert rotations.wrapped(np.nextafter(np.pi, 4.0)) < 0.0


@given(st.floats(-50.0, 50.0), st.floats(-50.0, 50.0))
def test_an_angle_is_brought_near_another_by_whole_turns(angle, about):
    near = float(rotations.near(angle, about))
    assert abs(near - about) <= np.pi + 1e-9
    turns = (near - angle) / (2.0 * np.pi)
    assert turns == pytest.approx(round(turns), abs=1e-9)


def test_many_at_once():
    q = np.random.default_rng(1).normal(size=(5, 7, 4))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    assert rotations.matrix_to_body(q).shape == (5, 7, 3, 3)
    assert rotations.matrix_to_body(q).flags.c_contiguous
    assert rotations.yaw_of(q).shape == (5, 7)
    assert rotations.from_yaw(np.zeros((5, 7))).shape == (5, 7, 4)
    assert np.isnan(compiled.wrapped(np.nan))


@given(unit(), vectors)
def test_matrices_and_rotation_vectors_against_scipy(q, vector):
    turn = Rotation.from_quat(q, scalar_first=True)
    m = turn.as_matrix()
    assert np.allclose(rotations.matrix(q), m, **near)
    assert same_rotation(rotations.from_matrix(m), q)
    turned = rotations.from_rotation_vector(4.0 * vector)
    assert same_rotation(turned, Rotation.from_rotvec(4.0 * vector).as_quat(scalar_first=True))
    back = rotations.from_rotation_vector(rotations.rotation_vector(q))
    assert same_rotation(back, q)
    assert np.linalg.norm(rotations.rotation_vector(q)) <= np.pi + 1e-12
    a, b, c = rotations.intrinsic_xyz(m)
    assert np.allclose(Rotation.from_euler("XYZ", [a, b, c]).as_matrix(), m, **near)


def test_matrices_of_many_rotations_at_once():
    turns = Rotation.random(50, random_state=1)
    found = rotations.from_matrix(turns.as_matrix().reshape(5, 10, 3, 3))
    expected = turns.as_quat(canonical=True, scalar_first=True).reshape(5, 10, 4)
    assert np.allclose(found, expected, **near)
