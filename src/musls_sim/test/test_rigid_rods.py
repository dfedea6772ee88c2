"""Rigid rods: one composite body, against Newton and Euler for all parts, and closed forms."""

from pathlib import Path

import numpy as np
import pytest
from massless_rigs import motion_now, random_plant, system_of
from scipy.spatial.transform import Rotation

from musls_control.estimate import BodyMotion
from musls_description.config.errors import ConfigError
from musls_sim.plants.interface import PlantInputs, PrescribedMotion
from musls_sim.plants.rigid_rods import Composite, RigidRodsPlant
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

G = 9.81
SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
RHO = np.array([[-0.094, -0.267, 0.0097], [0.3683, 0.0, 0.0097], [-0.094, 0.267, 0.0097]])


def dragonflies(places=RHO, rod=0.0097):
    """RotorTM's triangle with three dragonflies on rods straight up."""
    foot = places - [0.0, 0.0, rod]
    n = len(places)
    system = system_of(
        [rod] * n, foot, np.zeros((n, 3)), load_mass=0.278,
        inertia=np.diag([0.00625019392, 0.00625019392, 0.01245978846]), masses=[0.25] * n,
        inertias=[np.diag([6.01e-4, 5.89e-4, 1.076e-3])] * n,
    )  # fmt: skip
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (1 + n, 1))
    start = BodyMotion.of(np.vstack([np.zeros(3), places]) + [0.0, 0.0, 5.0], upright)
    return system, start


def random_structure(rng, n):
    """Drones anywhere on rods around a load, all moving as one body."""
    system_plant = random_plant(rng, n)
    motion = motion_now(system_plant)
    system = system_plant.system
    velocity, omega = Composite.of(system, motion).velocities(motion)
    motion.velocity_enu_m_s[:], motion.omega_body_rad_s[:] = velocity, omega
    return RigidRodsPlant(system, motion, ground_height_enu_m=None, gravity_m_s2=G), motion


def test_the_composite_of_the_reference():
    system, start = dragonflies()
    whole = Composite.of(system, start)
    assert whole.mass_kg == pytest.approx(1.028)
    np.testing.assert_allclose(-whole.place_m[0], [0.043847, 0.0, 0.007077], atol=1e-6)
    np.testing.assert_allclose(
        np.diag(whole.inertia_kg_m2), [0.043698, 0.044370, 0.087685], atol=2e-4
    )
    assert abs(whole.inertia_kg_m2[0, 2]) > 1e-6  # which the authors drop


@pytest.mark.parametrize("n", [1, 3, 6])
def test_accelerations_and_rod_forces_are_those_of_all_bodies(n):
    """Dense: 6 equations of each part, 6 constraints of each rod."""
    rng = np.random.default_rng(n)
    for _ in range(5):
        plant, motion = random_structure(rng, n)
        system = plant.system
        inputs = PlantInputs.zeros(system)
        inputs.wrench_enu[:] = rng.normal(size=(1 + n, 6))
        plant._advance(inputs, 0.0)
        turns = Rotation.from_quat(motion.orientation_wxyz, scalar_first=True).as_matrix()
        omega = turns[0] @ motion.omega_body_rad_s[0]
        parts = [system.load, *system.drones]
        size = 6 * (1 + n)
        matrix, right = np.zeros((size + 6 * n, size + 6 * n)), np.zeros(size + 6 * n)
        for i, part in enumerate(parts):
            at, world = 6 * i, turns[i] @ np.array(part.inertia_kg_m2) @ turns[i].T
            matrix[at : at + 3, at : at + 3] = part.mass_kg * np.eye(3)
            matrix[at + 3 : at + 6, at + 3 : at + 6] = world
            right[at : at + 3] = inputs.wrench_enu[i, 3:] - [0.0, 0.0, part.mass_kg * G]
            right[at + 3 : at + 6] = inputs.wrench_enu[i, :3] - np.cross(omega, world @ omega)
        for k in range(n):
            arm = motion.position_enu_m[1 + k] - motion.position_enu_m[0]
            cross = np.cross(np.eye(3), arm)  # rows e_j x arm: (alpha x arm) = cross.T @ alpha
            row, at = size + 6 * k, 6 * (1 + k)
            jacobian = np.zeros((6, size))
            jacobian[:3, at : at + 3], jacobian[3:, at + 3 : at + 6] = np.eye(3), np.eye(3)
            jacobian[:3, :3], jacobian[3:, 3:6] = -np.eye(3), -np.eye(3)
            jacobian[:3, 3:6] = -cross.T
            matrix[row : row + 6, :size] = jacobian
            matrix[:size, row : row + 6] = jacobian.T
            right[row : row + 3] = np.cross(omega, np.cross(omega, arm))
        solution = np.linalg.solve(matrix, right)
        whole = plant.moving[0]["rate"]
        scale = np.abs(solution[:size]).max()
        alpha = turns[0] @ whole["omega"]
        np.testing.assert_allclose(alpha, solution[3:6], atol=1e-10 * scale)
        back = turns[0] @ plant.composite.place_m[0]
        load = whole["velocity"] + np.cross(alpha, back) + np.cross(omega, np.cross(omega, back))
        np.testing.assert_allclose(load, solution[:3], atol=1e-10 * scale)
        # On the load the rod acts with J^T lambda, that is -J^T: +lambda of its drone's rows.
        for k in range(n):
            force = solution[size + 6 * k : size + 6 * k + 3]
            nodes = plant.cable_nodes_enu_m(k)
            along = (nodes[-1] - nodes[0]) / np.linalg.norm(nodes[-1] - nodes[0])
            got = plant.state.cable_force_n[k, 0]
            assert got[0] == pytest.approx(force @ along, abs=1e-9 * scale)
            assert np.linalg.norm(got) == pytest.approx(np.linalg.norm(force), abs=1e-9 * scale)
            assert got[1] == pytest.approx(
                force @ np.array([-along[1], along[0], 0.0]) / np.hypot(*along[:2]),
                abs=1e-9 * scale,
            )


def test_a_moment_turns_by_the_inverse_inertia_and_a_thrust_tilts_the_right_way():
    system, start = dragonflies()
    plant = RigidRodsPlant(system, start, ground_height_enu_m=None, gravity_m_s2=G)
    inputs = PlantInputs.zeros(system)
    inputs.wrench_body[0, 0] = 0.01
    plant.step(inputs)
    expected = np.linalg.solve(plant.composite.inertia_kg_m2, [0.01, 0.0, 0.0])
    assert expected[0] == pytest.approx(0.2288, rel=5e-3)  # the authors' code gives 0.01
    np.testing.assert_allclose(plant.state.omega_body_rad_s[0], 0.004 * expected, atol=1e-8)
    for drone, (x, y) in ((1, RHO[0, :2]), (2, RHO[1, :2])):
        plant = RigidRodsPlant(system, start, ground_height_enu_m=None, gravity_m_s2=G)
        inputs = PlantInputs.zeros(system)
        inputs.wrench_body[drone, 5] = 1.0
        plant.step(inputs)
        omega = plant.state.omega_body_rad_s[0]
        assert omega[1] * x < 0.0 and omega[0] * y >= 0.0  # that side goes up


def test_a_free_structure_keeps_momentum_energy_and_shape():
    rng = np.random.default_rng(4)
    plant, start = random_structure(rng, 4)
    inputs = PlantInputs.zeros(plant.system)
    parts = [plant.system.load, *plant.system.drones]
    mass = np.array([p.mass_kg for p in parts])

    def distances(position):
        return np.linalg.norm(position[:, None] - position[None], axis=2)

    before = mass @ start.velocity_enu_m_s
    shape = distances(start.position_enu_m)
    for _ in range(250):
        plant.step(inputs)
    state = plant.state
    gain = mass @ state.velocity_enu_m_s - before
    np.testing.assert_allclose(gain, [0.0, 0.0, -mass.sum() * G], atol=1e-9)
    np.testing.assert_allclose(distances(state.position_enu_m), shape, atol=1e-12)
    assert abs(plant.audit.missing_j) < 1e-5


def test_work_that_is_done_on_it_is_accounted_for():
    system, start = dragonflies()
    plant = RigidRodsPlant(system, start, ground_height_enu_m=None, gravity_m_s2=G)
    inputs = PlantInputs.zeros(system)
    inputs.wrench_enu[2, 5] = 1.5 * G  # one drone pulls up: the whole rises and turns
    for _ in range(100):
        plant.step(inputs)
    audit = plant.audit
    assert audit.work_j > 1.0
    assert audit.energy_j - audit.start_j == pytest.approx(audit.work_j, rel=1e-6)
    assert plant.spurious_energy_j < 1e-6


def test_it_flies_from_the_air_and_stands_on_the_ground():
    scenario = load_scenario(
        SHIPPED / "hold.yaml",
        ["cable_model=rigid_rods", "mission.stages.0.duration_s=0.5", "estimation.kind=truth"],
    )
    with Session(scenario) as session:
        first = session.state.position_enu_m.copy()
        weight = sum(d.mass_kg for d in scenario.system.drones) + scenario.system.load.mass_kg
        assert session.state.tension_n[:, 0].sum() < weight * 9.80665
        session.advance(5)
        assert np.abs(session.state.position_enu_m - first).max() < 1e-3
    start = {"kind": "ground"}
    scenario = load_scenario(SHIPPED / "circle.yaml", ["cable_model=rigid_rods"])
    assert scenario.start.kind == start["kind"]
    with Session(scenario) as session:
        plant, inputs = session.plant, PlantInputs.zeros(scenario.system)
        first = plant.state.position_enu_m.copy()
        for _ in range(125):
            plant.step(inputs)
        assert np.abs(plant.state.position_enu_m - first).max() < 2e-3
        load_only = plant.state.tension_n[:, 0].sum()
        assert load_only < 0.0, "the rods carry the drones: they press"


def test_what_is_not_rigid_is_refused():
    system, start = dragonflies()
    start.position_enu_m[1, 2] += 0.01
    with pytest.raises(ConfigError, match=r"rod_1 of 0.0097 m .*apart"):
        RigidRodsPlant(system, start)
    system, start = dragonflies()
    start.velocity_enu_m_s[2, 0] = 0.1
    with pytest.raises(ConfigError, match="drone_2 does not move with the load"):
        RigidRodsPlant(system, start)
    plant = RigidRodsPlant(*dragonflies())
    inputs = PlantInputs.zeros(system)
    inputs.motion = PrescribedMotion(lambda t: (start.position_enu_m[1:], start.orientation_wxyz))
    with pytest.raises(ConfigError, match="choose cable_model: massless"):
        plant.step(inputs)
