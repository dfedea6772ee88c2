"""Geometric attitude control: closed forms of moment, rates of the reference, and of the loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from musls_control.chain import GeometricAttitude, attitude_moments, reference_rates
from musls_control.estimate import Estimate

INERTIA = np.array([[0.02, 0.001, -0.0005], [0.001, 0.03, 0.0], [-0.0005, 0.0, 0.05]])
FREQUENCY, DAMPING = np.array([10.0, 8.0, 3.0]), np.array([0.7, 0.9, 1.0])


def wxyz(rotation):
    return np.ascontiguousarray(np.roll(rotation.as_quat(), 1, axis=-1))


def run(force, yaw, rotation, omega, rate=None, acceleration=None, inertia=INERTIA):
    """Thrust and moment of one drone."""
    control = GeometricAttitude(inertia[None], FREQUENCY, DAMPING)
    (drone,) = control.drones
    drone["force"], drone["yaw"] = force, yaw
    drone["rate"] = 0.0 if rate is None else rate
    drone["acceleration"] = 0.0 if acceleration is None else acceleration
    motion = Estimate.zeros(1).drones
    motion.orientation_wxyz[:], motion.omega_body_rad_s[:] = wxyz(rotation), omega
    attitude_moments(
        control.drones, control.gains, motion.orientation_wxyz, motion.omega_body_rad_s
    )
    return float(drone["thrust"]), drone["moment"].copy()


def desired(force, yaw):
    """Attitude of the paper's eq. 12 to 15 by plain linear algebra."""
    b3 = np.array(force) / np.linalg.norm(force)
    b2 = np.cross(b3, [np.cos(yaw), np.sin(yaw), 0.0])
    b2 /= np.linalg.norm(b2)
    return Rotation.from_matrix(np.column_stack([np.cross(b2, b3), b2, b3]))


unit = st.floats(-1.0, 1.0)
vectors = st.tuples(unit, unit, unit)


@settings(max_examples=80)
@given(
    tilt=vectors, yaw=st.floats(-3.0, 3.0), turn=vectors, omega=vectors, rate=vectors, acc=vectors
)
def test_the_law_of_the_paper(tilt, yaw, turn, omega, rate, acc):
    force = np.array([5.0 * tilt[0], 5.0 * tilt[1], 12.0 + 5.0 * tilt[2]])
    r_d = desired(force, yaw).as_matrix()
    actual = Rotation.from_matrix(r_d) * Rotation.from_rotvec(turn)
    r, w = actual.as_matrix(), np.array(omega)
    thrust, moment = run(force, yaw, actual, omega, rate, acc)

    def vee(m):
        return np.array([m[2, 1], m[0, 2], m[1, 0]])

    e_r = 0.5 * vee(r_d.T @ r - r.T @ r_d)
    feed = r.T @ r_d @ rate
    e_w = w - feed
    control = -(FREQUENCY**2) * e_r - 2.0 * DAMPING * FREQUENCY * e_w
    ahead = r.T @ r_d @ acc - np.cross(w, feed)
    expected = INERTIA @ (control + ahead) + np.cross(w, INERTIA @ w)
    assert thrust == pytest.approx(max(force @ r[:, 2], 0.0), abs=1e-12)
    assert np.allclose(moment, expected, rtol=0, atol=1e-12)


def test_no_error_no_moment():
    force = [1.0, -2.0, 9.0]
    thrust, moment = run(force, 0.8, desired(force, 0.8), [0.0, 0.0, 0.0])
    assert thrust == pytest.approx(np.linalg.norm(force))
    assert np.abs(moment).max() < 1e-14


def test_without_a_force_the_thrust_axis_is_kept():
    rotation = Rotation.from_rotvec([0.3, -0.2, 0.9])
    thrust, moment = run([0.0, 0.0, 0.0], 0.9, rotation, [0.0, 0.0, 0.0])
    assert thrust == 0.0 and np.isfinite(moment).all()
    axis_moment = np.linalg.solve(INERTIA, moment)
    assert np.abs(axis_moment[:2]).max() < 1e-12  # about the thrust axis alone


def test_a_force_along_the_heading_leaves_the_left_side_where_it_is():
    rotation = Rotation.from_rotvec([0.0, 1.2, 0.0])
    _, moment = run([5.0, 0.0, 0.0], 0.0, rotation, [0.0, 0.0, 0.0])
    about = np.linalg.solve(INERTIA, moment)
    assert about[1] > 0.0 and np.abs(about[[0, 2]]).max() < 1e-12


def test_a_force_downwards_gives_no_negative_thrust():
    thrust, moment = run([0.0, 0.0, -5.0], 0.0, Rotation.identity(), [0.0, 0.0, 0.0])
    assert thrust == 0.0 and np.isfinite(moment).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_step_response_is_that_of_a_second_order_system(axis):
    """A small step about each axis, full inertia matrix, against the closed form."""
    start = 1e-3
    rotvec = np.zeros(3)
    rotvec[axis] = start
    rotation, omega, h = Rotation.from_rotvec(rotvec), np.zeros(3), 2e-4
    wn, zeta = FREQUENCY[axis], DAMPING[axis]
    for k in range(1, 5001):
        _, moment = run([0.0, 0.0, 10.0], 0.0, rotation, omega)
        gyroscopic = np.cross(omega, INERTIA @ omega)
        omega = omega + h * np.linalg.solve(INERTIA, moment - gyroscopic)
        rotation = rotation * Rotation.from_rotvec(h * omega)
        if k % 500 == 0:
            t = k * h
            if zeta < 1.0:
                wd = wn * np.sqrt(1.0 - zeta**2)
                shape = np.cos(wd * t) + zeta * wn / wd * np.sin(wd * t)
            else:
                shape = 1.0 + wn * t
            expected = start * np.exp(-zeta * wn * t) * shape
            assert rotation.as_rotvec()[axis] == pytest.approx(expected, abs=0.005 * start)
    assert np.abs(np.delete(rotation.as_rotvec(), axis)).max() < 1e-3 * start


def moving(t):
    """A force and a yaw with two derivatives."""
    force = np.array([3.0 * np.sin(t), 2.0 * np.cos(1.3 * t), 10.0 + np.sin(0.7 * t)])
    rate = np.array([3.0 * np.cos(t), -2.6 * np.sin(1.3 * t), 0.7 * np.cos(0.7 * t)])
    second = np.array([-3.0 * np.sin(t), -3.38 * np.cos(1.3 * t), -0.49 * np.sin(0.7 * t)])
    return force, rate, second, np.array([0.5 * t + 0.2 * t**2, 0.5 + 0.4 * t, 0.4])


def rates_at(t):
    return tuple(map(np.array, reference_rates(*moving(t))))


@pytest.mark.parametrize("t", [0.0, 0.4, 1.7, 3.0])
def test_reference_rates_are_those_of_the_desired_attitude(t):
    def attitude(s):
        force, _, _, yaw = moving(s)
        return desired(force, yaw[0])

    h = 1e-4
    difference = (attitude(t - h).inv() * attitude(t + h)).as_rotvec() / (2 * h)
    rate, acceleration = rates_at(t)
    assert np.allclose(rate, difference, rtol=0, atol=1e-6)
    assert np.allclose(acceleration, (rates_at(t + h)[0] - rates_at(t - h)[0]) / (2 * h), atol=1e-6)


def test_with_feed_forward_a_turning_reference_is_followed_without_error():
    h, steps = 5e-4, 4000
    force, _, _, yaw = moving(0.0)
    rotation, omega = desired(force, yaw[0]), rates_at(0.0)[0]
    for k in range(steps):  # semi-implicit midpoint of the reference, so that errors are O(h^2)
        t = (k + 0.5) * h
        force, _, _, yaw = moving(t)
        rate, acceleration = rates_at(t)
        middle = rotation * Rotation.from_rotvec(0.5 * h * omega)
        ahead = omega + 0.5 * h * acceleration
        _, moment = run(force, yaw[0], middle, ahead, rate, acceleration)
        change = np.linalg.solve(INERTIA, moment - np.cross(ahead, INERTIA @ ahead))
        rotation = rotation * Rotation.from_rotvec(h * (omega + 0.5 * h * change))
        omega = omega + h * change
    force, _, _, yaw = moving(steps * h)
    error = (desired(force, yaw[0]).inv() * rotation).magnitude()
    assert error < 1e-5
