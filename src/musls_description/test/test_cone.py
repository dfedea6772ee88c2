"""The virtual cone: the paper's numbers, eq. 11 by homogeneous matrices, a real flight."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import Cone, drone_poses


def recorded_flight(name):
    """Columns of an excerpt of the real flight, or a skip where it is not at hand."""
    for parent in Path(__file__).resolve().parents:
        path = parent.parent / "shared" / "flights" / f"flight_2136_{name}.csv"
        if path.is_file():
            return np.genfromtxt(path, delimiter=",", names=True)
    return pytest.skip("no shared/flights beside the checkout")


def fly(cone, n, position, yaw):
    """Poses of n drones for poses of the load's set-point (k, 3) and (k,)."""
    return cone.poses(np.asarray(position, float), np.asarray(yaw, float), n)


def turned(angle):
    """An angle within (-pi, pi]."""
    return np.pi - np.mod(np.pi - angle, 2.0 * np.pi)


def homogeneous(yaw, position):
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_euler("z", yaw).as_matrix()
    matrix[:3, 3] = position
    return matrix


def test_the_papers_formation():
    cone = Cone()
    assert np.allclose(
        cone.offsets_m(3),
        [[1.0, 0.0, 2.2962], [-0.5, 0.866, 2.2962], [-0.5, -0.866, 2.2962]],
        rtol=0,
        atol=5e-5,
    )
    position, yaw = fly(cone, 3, [[0.0, 0.0, 0.0]], [0.0])
    assert np.allclose(position[0], cone.offsets_m(3))
    assert yaw[0] == pytest.approx([np.pi, -np.pi / 3.0, np.pi / 3.0])


@example(0.0, (0.0, 0.0, 0.0), 1, 0.0, 1.0, 3.672083757589202e-16)
@settings(max_examples=100)
@given(
    yaw=st.floats(-20.0, 20.0),
    place=st.tuples(*[st.floats(-50.0, 50.0)] * 3),
    n=st.integers(1, 6),
    radius=st.floats(0.0, 5.0),
    height=st.floats(0.1, 5.0),
    first=st.floats(-4.0, 4.0),
)
def test_equation_11_by_homogeneous_matrices(yaw, place, n, radius, height, first):
    """World pose of a drone = pose of the load's set-point times pose in its frame."""
    cone = Cone(radius_m=radius, height_m=height, first_azimuth_rad=first)
    position, heading = fly(cone, n, [place], [yaw])
    load = homogeneous(yaw, place)
    for i in range(n):
        azimuth = first + 2.0 * np.pi * i / n
        spot = [radius * np.cos(azimuth), radius * np.sin(azimuth), height]
        drone = load @ homogeneous(azimuth + np.pi, spot)
        assert np.allclose(position[0, i], drone[:3, 3], rtol=0, atol=1e-9)
        x_axis = [np.cos(heading[0, i]), np.sin(heading[0, i]), 0.0]
        assert np.allclose(x_axis, drone[:3, 0], rtol=0, atol=1e-9)
    assert (heading > -np.pi).all() and (heading <= np.pi).all()


def test_many_poses_at_once_are_the_poses_one_by_one():
    random = np.random.default_rng(5)
    place, yaw = random.normal(size=(40, 3)), random.uniform(-10.0, 10.0, 40)
    position, heading = fly(Cone(), 4, place, yaw)
    assert position.shape == (40, 4, 3) and heading.shape == (40, 4)
    for k in range(40):
        one, turn = fly(Cone(), 4, place[k : k + 1], yaw[k : k + 1])
        assert np.array_equal(position[k], one[0])
        assert np.array_equal(heading[k], turn[0])


def test_offsets_may_change_from_pose_to_pose():
    cone = Cone()
    offsets = np.stack([Cone(radius_m=radius).offsets_m(3) for radius in (0.5, 1.0, 2.0)])
    position, _ = drone_poses(np.zeros((3, 3)), np.zeros(3), offsets, cone.azimuths_rad(3))
    assert np.allclose(position, offsets)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"radius_m": -1.0}, "radius_m = -1.0"),
        ({"height_m": 0.0}, "height_m = 0.0"),
        ({"first_azimuth_rad": float("nan")}, "first_azimuth_rad"),
    ],
)
def test_bad_values_are_refused_in_one_line(values, word):
    with pytest.raises(ConfigError, match=word) as error:
        Cone(**values)
    assert "\n" not in str(error.value)


# ---------- The real flight


def measured_and_wanted(log):
    """Positions (k, 3, 3) and yaws (k, 3): measured, and of the formation at the set-points."""
    place = np.column_stack([log[f"load_des_{name}"] for name in "xyz"])
    wanted = fly(Cone(), 3, place, log["load_des_yaw"])
    position = np.stack(
        [np.column_stack([log[f"d{i}_{name}"] for name in "xyz"]) for i in (1, 2, 3)], axis=1
    )
    yaw = np.column_stack([log[f"d{i}_yaw"] for i in (1, 2, 3)])
    return position, yaw, *wanted


def test_the_real_drones_are_on_our_cone_when_they_hover():
    """Last seconds of the engagement: the set-point has been at rest for more than 4 s."""
    log = recorded_flight("engage")
    log = log[log["t"] > log["t"][-1] - 3.0]
    assert len(log) >= 10 and np.ptp(log["load_des_yaw"]) == 0.0
    position, yaw, wanted, heading = measured_and_wanted(log)
    # A drone on the wrong place of the rim would be 1.7 m off and 2.1 rad turned.
    assert np.linalg.norm(position - wanted, axis=-1).max() < 0.2
    assert np.abs(turned(yaw - heading)).max() < 0.15


@pytest.mark.parametrize(("name", "lag_m", "mean_m"), [("circle", 0.7, 0.05), ("shm", 1.4, 0.02)])
def test_the_real_drones_are_on_our_cone_on_the_average_of_whole_periods(name, lag_m, mean_m):
    """In motion they lag behind their set-points, which cancels over whole periods."""
    position, yaw, wanted, heading = measured_and_wanted(recorded_flight(name))
    error = position - wanted
    assert np.abs(error.mean(axis=0)).max() < mean_m
    assert np.linalg.norm(error, axis=-1).max() < lag_m
    assert np.abs(turned(yaw - heading)).max() < 0.16
