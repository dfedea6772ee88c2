"""NED/FRD and ENU/FLU: the maps are their own inverse and mean what they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from musls_control.px4 import frames as px4_frames

finite = st.floats(-1e3, 1e3)
vectors = arrays(np.float64, (3,), elements=finite)
quaternions = arrays(np.float64, (4,), elements=st.floats(-1.0, 1.0)).filter(
    lambda q: np.linalg.norm(q) > 1e-3
)


def rotation(q):
    """Rotation matrix of a unit quaternion [w, x, y, z]."""
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_directions_by_name():
    east, north, up = np.eye(3)
    assert px4_frames.world_enu_ned(east).tolist() == [0.0, 1.0, 0.0]
    assert px4_frames.world_enu_ned(north).tolist() == [1.0, 0.0, 0.0]
    assert px4_frames.world_enu_ned(up).tolist() == [0.0, 0.0, -1.0]
    forward, left, above = np.eye(3)
    assert px4_frames.body_flu_frd(forward).tolist() == [1.0, 0.0, 0.0]
    assert px4_frames.body_flu_frd(left).tolist() == [0.0, -1.0, 0.0]
    assert px4_frames.body_flu_frd(above).tolist() == [0.0, 0.0, -1.0]


@pytest.mark.parametrize(
    ("enu_deg", "ned_deg"), [(0.0, 90.0), (90.0, 0.0), (45.0, 45.0), (180.0, -90.0), (-90.0, -180)]
)
def test_yaw_by_compass(enu_deg, ned_deg):
    assert px4_frames.yaw_enu_ned(np.radians(enu_deg)) == pytest.approx(np.radians(ned_deg))


@given(vectors)
def test_vectors_come_back(vector):
    assert np.array_equal(px4_frames.world_enu_ned(px4_frames.world_enu_ned(vector)), vector)
    assert np.array_equal(px4_frames.body_flu_frd(px4_frames.body_flu_frd(vector)), vector)


@given(quaternions)
def test_orientations_come_back_up_to_sign(q):
    q = q / np.linalg.norm(q)
    back = px4_frames.orientation_enu_ned(px4_frames.orientation_enu_ned(q))
    assert abs(back @ q) == pytest.approx(1.0)


@given(quaternions, vectors)
def test_orientation_turns_body_vectors_as_the_vector_maps_do(q, body_flu):
    world_enu = rotation(q) @ body_flu
    world_ned = rotation(px4_frames.orientation_enu_ned(q)) @ px4_frames.body_flu_frd(body_flu)
    assert px4_frames.world_enu_ned(world_enu) == pytest.approx(world_ned, abs=1e-9)


@given(st.floats(-50.0, 50.0))
def test_yaw_comes_back_as_the_same_direction(yaw):
    back = float(px4_frames.yaw_enu_ned(px4_frames.yaw_enu_ned(yaw)))
    assert -np.pi <= back < np.pi
    assert np.exp(1j * back) == pytest.approx(np.exp(1j * yaw), abs=1e-9)


@given(vectors, quaternions, finite)
def test_the_compiled_controllers_use_the_same_maps(vector, q, yaw):
    assert px4_frames.world_enu_ned(vector).tolist() == list(px4_frames.world_swapped(vector))
    assert px4_frames.body_flu_frd(vector).tolist() == list(px4_frames.body_swapped(vector))
    assert px4_frames.orientation_enu_ned(q) == pytest.approx(px4_frames.orientation_swapped(q))
    assert px4_frames.yaw_enu_ned(yaw) == pytest.approx(px4_frames.yaw_swapped(yaw))


def test_shapes_and_not_given_are_kept():
    many = np.full((5, 2, 3), np.nan, np.float32)
    assert px4_frames.world_enu_ned(many).shape == many.shape
    assert np.isnan(px4_frames.world_enu_ned(many)).all()
    assert px4_frames.orientation_enu_ned(np.ones((7, 4), np.float32)).shape == (7, 4)
    assert np.isnan(px4_frames.yaw_enu_ned(np.nan))
