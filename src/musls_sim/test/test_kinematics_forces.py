"""Our own kinematics and generalised forces against DART's poses and Jacobians."""

import numpy as np
import pytest
from plant_helpers import hovering_plant

from musls_description.library import load_system, system_names
from musls_description.vectors import from_matrix
from musls_sim.plants.rigid_links.dynamics import dynamics_step, generalised_forces
from musls_sim.plants.rigid_links.rows import rotor_table, spin_rotors


def random_state(plant, seed=0):
    rng = np.random.default_rng(seed)
    n = plant.skeleton.getNumDofs()
    q, dq = 0.5 * rng.normal(size=n), rng.normal(size=n)
    plant.skeleton.setPositions(q)
    plant.skeleton.setVelocities(dq)
    plant.read_motion()
    return rng


@pytest.mark.parametrize("name", system_names(slung=True))
def test_motion_of_every_body_equals_darts(name):
    plant, _, _ = hovering_plant(load_system(name))
    random_state(plant)
    for body, motion in zip(plant.skeleton.getBodyNodes(), plant.tables.motion, strict=True):
        transform = body.getWorldTransform().matrix()
        assert np.allclose(motion[:9].reshape(3, 3), transform[:3, :3], atol=1e-12)
        assert np.allclose(motion[9:12], transform[:3, 3], atol=1e-12)
        assert np.allclose(motion[12:15], body.getAngularVelocity(), atol=1e-11)
        assert np.allclose(motion[15:18], body.getLinearVelocity(), atol=1e-11)


@pytest.mark.parametrize("name", system_names(slung=True))
def test_a_step_of_ours_is_darts(name):
    """Accelerations, implicit damping and springs, and how coordinates go on."""
    plant, _, _ = hovering_plant(load_system(name), ground_height_enu_m=None)
    t, step_s = plant.tables, plant.physics_step_s
    for seed in range(5):
        rng = random_state(plant, seed)
        t.stiffness[6:] = 5.0 * rng.random(t.stiffness.size - 6)
        t.rest[6:] = rng.normal(size=t.rest.size - 6)
        t.damping[6:] = 0.01 * rng.random(t.damping.size - 6)
        t.changes[0] += 1
        plant.catch_up()
        t.tau[:] = rng.normal(size=t.tau.size)
        dynamics_step(t, step_s, plant.gravity_m_s2)
        plant.skeleton.setCommands(t.tau)
        plant.world.step()
        dq, q = plant.skeleton.getVelocities(), plant.skeleton.getPositions()
        change = np.abs(dq - t.dq).max()
        assert change > 1.0
        assert np.abs(t.next_dq - dq).max() < 1e-10 * change
        assert np.abs(t.next_q - q).max() < 1e-10 * step_s * change


def test_generalised_forces_equal_the_jacobian_transpose():
    plant, speeds, _ = hovering_plant(load_system("x500_trio_unequal"), ground_height_enu_m=None)
    rng, tables = random_state(plant), plant.tables
    speed = rng.uniform(300, 900, size=speeds.shape)
    drag = rng.uniform(0.0, 1.0, size=tables.drag.shape)
    wind = rng.normal(size=3)
    body, enu = rng.normal(size=(2, 1 + plant.system.n_drones, 6))
    tables.drag[:], tables.speed[:] = drag, speed
    generalised_forces(tables, wind, body, enu, np.nan)
    expected = np.zeros_like(tables.tau)
    for row, index in enumerate(tables.selected):
        node, motion = plant.skeleton.getBodyNode(int(index)), tables.motion[index]
        rotation, omega, velocity = motion[:9].reshape(3, 3), motion[12:15], motion[15:18]
        force = enu[row, 3:] + rotation @ body[row, 3:]
        force -= rotation @ (drag[row] * (rotation.T @ (velocity - wind)))
        moment = enu[row, :3] + rotation @ body[row, :3]
        for column, w in zip(tables.rotors[row - 1], speed[row - 1], strict=True) if row else ():
            hub, axis = rotation @ column[:3], rotation[:, 2]
            air = velocity + np.cross(omega, hub) - wind
            push = column[3] * w**2 * axis - column[7] * w * (air - axis * (air @ axis))
            force = force + push
            moment += np.cross(hub, push) + column[4] * w**2 * axis
        jacobian = plant.skeleton.getWorldJacobian(node)
        expected += jacobian.T @ np.concatenate([moment, force])
    assert np.abs(expected).max() > 1.0
    assert np.allclose(tables.tau, expected, atol=1e-11)


def test_rotor_constants_and_signs():
    """x500: k = 8.54858e-6, reaction torque 0.016 m times the thrust, against the spin."""
    table = rotor_table(load_system("x500_trio"))
    assert table.shape == (3, 4, 8)
    assert np.allclose(table[..., 3], 8.54858e-6)
    assert np.allclose(table[0, :, 4] / table[0, :, 3], [-0.016, -0.016, 0.016, 0.016])


def test_rotor_lag_is_the_exact_exponential():
    rotors = rotor_table(load_system("x500_trio"))[:1]
    speed, command = np.zeros((1, 4)), np.full((1, 4), 800.0)
    for _ in range(5):
        spin_rotors(speed, command, rotors, 0.004)
    assert np.allclose(speed, 800.0 * (1.0 - np.exp(-0.02 / 0.0125)))
    top = speed.copy()
    for _ in range(5):
        spin_rotors(speed, np.zeros((1, 4)), rotors, 0.004)
    assert np.allclose(speed, top * np.exp(-0.02 / 0.025))


def test_quaternions_of_random_rotations():
    from scipy.spatial.transform import Rotation

    for rotation in Rotation.random(200, random_state=3):
        out = from_matrix(*rotation.as_matrix().ravel())
        expected = rotation.as_quat(canonical=True, scalar_first=True)
        assert np.allclose(out, expected, atol=1e-12)
