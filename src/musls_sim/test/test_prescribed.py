"""Drones moved along prescribed paths: kinematics, inertia matrix, motion, energy audit."""

import numpy as np
import pytest
from plant_helpers import formation, hovering_plant
from scipy.spatial.transform import Rotation

from musls_description.library import load_system, system_names
from musls_description.spawn import hanging_equilibrium
from musls_sim.plants.inertia import (
    end_compliance,
    factorise,
    joint_space_inertia,
    mass_table,
    parent_coordinates,
)
from musls_sim.plants.prescribed import PrescribedPlant, end_jacobian


def scattered_plant(name):
    plant, _, _ = hovering_plant(load_system(name))
    start = plant.skeleton.getPositions()
    plant.skeleton.setPositions(start + 0.3 * np.random.default_rng(2).normal(size=start.size))
    plant._read_motion()
    return plant


@pytest.mark.parametrize("name", system_names())
def test_inertia_matrix_equals_darts_and_its_factor_solves(name):
    plant = scattered_plant(name)
    tree = plant.tree
    parent = parent_coordinates(tree)
    inertia = joint_space_inertia(
        plant._motion, plant._parents, plant._first, plant._joints, mass_table(tree), parent,
        np.zeros(tree.n_coordinates),
    )  # fmt: skip
    assert np.allclose(inertia, plant.skeleton.getMassMatrix(), atol=1e-12)
    jacobian = np.random.default_rng(0).normal(size=(7, tree.n_coordinates))
    expected = jacobian @ np.linalg.solve(inertia, jacobian.T)
    compliance = end_compliance(factorise(inertia, parent), parent, jacobian)
    assert np.abs(compliance - expected).max() < 1e-8 * np.abs(expected).max()


@pytest.mark.parametrize("name", system_names())
def test_end_jacobian_equals_darts(name):
    plant = scattered_plant(name)
    for i, (first, drone) in enumerate(zip(plant.tree.first_link, plant.tree.drone, strict=True)):
        out = np.zeros((6, plant.tree.n_coordinates))
        chain = np.arange(first, drone + 1)
        end_jacobian(plant._motion, plant._joints, plant._first, chain, out)
        body = plant.skeleton.getBodyNode(int(drone))
        assert np.allclose(out, plant.skeleton.getWorldJacobian(body), atol=1e-12), i


class Sway:
    """All drones sway together along y and roll and pitch, from rest."""

    def __init__(self, plant):
        self.position = plant.state.position_enu_m[1:].copy()
        self.turn = Rotation.from_quat(plant.state.orientation[1:], scalar_first=True)

    def __call__(self, time_s):
        share = min(time_s / 2.0, 1.0)
        share = share**2 * (3.0 - 2.0 * share)
        position = self.position + [0.0, 0.2 * np.sin(1.3 * time_s) * share, 0.0]
        tilt = [0.1 * np.sin(2.0 * time_s) * share, 0.05 * np.sin(3.0 * time_s) * share, 0.0]
        turned = Rotation.from_rotvec(tilt) * self.turn
        return position, turned.as_quat(scalar_first=True)


@pytest.mark.parametrize("step_s", [0.004, 0.001])
def test_prescribed_motion_is_met_and_the_work_accounted_for(step_s):
    """Within 1 mm and 0.1 degrees; work = change of energy + losses within 1 %."""
    system = load_system("x500_trio_swivel")
    rest = hanging_equilibrium(system, formation(system))
    plant = PrescribedPlant(system, rest.configuration, physics_step_s=step_s)
    path = Sway(plant)
    moved = 0.0
    for _ in range(1000):
        plant.follow(path)
        position, quaternion = path(plant.time_s)
        assert np.abs(plant.state.position_enu_m[1:] - position).max() < 1e-3
        present = Rotation.from_quat(plant.state.orientation[1:], scalar_first=True)
        wanted = Rotation.from_quat(quaternion, scalar_first=True)
        assert np.degrees((wanted.inv() * present).magnitude().max()) < 0.1
        moved = max(moved, np.abs(plant.state.position_enu_m[0, 1]))
    assert moved > 0.05, "the load must swing for the test to mean something"
    assert plant.audit.absolute_work_j > 1.0
    assert abs(plant.audit.relative_error) < 0.01


def test_reaction_at_rest_carries_the_weight():
    """Held still, the end wrenches are the drones' weights plus the cables' pull."""
    system = load_system("x500_trio_swivel")
    rest = hanging_equilibrium(system, formation(system))
    plant = PrescribedPlant(system, rest.configuration)
    held = plant.state.position_enu_m[1:].copy(), plant.state.orientation[1:].copy()
    for _ in range(50):
        plant.follow(lambda time_s: held)
    assert np.allclose(plant.end_wrench[:, 3:], rest.drone_force_n, atol=1e-3)
    assert np.allclose(plant.state.tension_n[:, 0], rest.load_end_tension_n, rtol=2e-3)
