"""Drones moved along prescribed paths: kinematics, inertia matrix, motion, energy audit."""

import dataclasses

import numpy as np
import pytest
from plant_helpers import UniversalLinks, follow, formation, hovering_plant, with_cables
from scipy.spatial.transform import Rotation

from musls_description.hanging.equilibrium import hanging_equilibrium, slung_state
from musls_description.system.system_files import load_system, system_names
from musls_sim.plants.dart.skeleton import build_skeleton
from musls_sim.plants.rigid_links.mechanism import jacobians, joint_space_inertia, set_positions
from musls_sim.plants.rigid_links.plant import RigidLinksPlant


@pytest.mark.parametrize("name", system_names(slung=True))
def test_inertia_matrix_and_jacobians_equal_darts(name):
    plant, _, _ = hovering_plant(load_system(name), UniversalLinks)
    random = np.random.default_rng(2)
    positions = plant.positions + 0.3 * random.normal(size=plant.tree.n_coordinates)
    set_positions(plant.records, positions)
    plant.start_moving(random.normal(size=plant.tree.n_coordinates))
    skeleton = build_skeleton(plant.tree)
    skeleton.setPositions(positions)
    assert np.allclose(joint_space_inertia(plant.records), skeleton.getMassMatrix(), atol=1e-12)
    ours = jacobians(plant.records)
    for k in (*plant.tree.first_link, *plant.tree.drone):
        expected = skeleton.getWorldJacobian(skeleton.getBodyNode(int(k)))
        assert np.allclose(ours[k], expected, atol=1e-12), k


class Sway:
    """All drones sway together along y and roll and pitch, from rest."""

    def __init__(self, plant):
        self.position = plant.state.position_enu_m[1:].copy()
        self.turn = Rotation.from_quat(plant.state.orientation_wxyz[1:], scalar_first=True)

    def __call__(self, time_s):
        share = min(time_s / 2.0, 1.0)
        share = share**2 * (3.0 - 2.0 * share)
        position = self.position + [0.0, 0.2 * np.sin(1.3 * time_s) * share, 0.0]
        tilt = [0.1 * np.sin(2.0 * time_s) * share, 0.05 * np.sin(3.0 * time_s) * share, 0.0]
        turned = Rotation.from_rotvec(tilt) * self.turn
        return position, turned.as_quat(scalar_first=True)


@pytest.mark.parametrize(
    ("step_s", "joint"),
    [
        (0.004, {}),
        (0.001, {}),
        (0.004, {"damping_n_m_s_rad": 0.05}),
        (0.004, {"friction_n_m": 0.01}),
        (0.004, {"stiffness_n_m_rad": 0.2}),
    ],
)
def test_prescribed_motion_is_met_and_the_work_accounted_for(step_s, joint):
    """Asked for: 1 mm, 0.1 degrees, work = change of energy + losses within 1 %.

    The pose is met in the middle of each step, so at its end to second order in the step.
    """
    system = with_cables(load_system("x500_trio_swivel"), joint)
    rest = hanging_equilibrium(load_system("x500_trio_swivel"), formation(system))
    plant = RigidLinksPlant(system, rest.configuration, physics_step_s=step_s)
    path = Sway(plant)
    moved = 0.0
    for _ in range(1000):
        follow(plant, path)
        position, quaternion = path(plant.time_s)
        assert np.abs(plant.state.position_enu_m[1:] - position).max() < 1e-5
        present = Rotation.from_quat(plant.state.orientation_wxyz[1:], scalar_first=True)
        wanted = Rotation.from_quat(quaternion, scalar_first=True)
        assert np.degrees((wanted.inv() * present).magnitude().max()) < 1e-3
        moved = max(moved, np.abs(plant.state.position_enu_m[0, 1]))
    assert moved > 0.05, "the load must swing for the test to mean something"
    assert plant.reaction.audit.absolute_work_j > 0.5
    assert abs(plant.reaction.audit.relative_error) < 0.01


def test_reaction_at_rest_carries_the_weight():
    """Held still, the end wrenches are the drones' weights plus the cables' pull."""
    system = load_system("x500_trio_swivel")
    rest = hanging_equilibrium(system, formation(system))
    plant = RigidLinksPlant(system, rest.configuration)
    held = plant.state.position_enu_m[1:].copy(), plant.state.orientation_wxyz[1:].copy()
    for _ in range(50):
        follow(plant, lambda time_s: held)
    assert np.allclose(plant.records.guide[:, 3:], rest.drone_force_n, atol=1e-3)
    assert np.allclose(plant.state.tension_n[:, 0], rest.load_end_tension_n, rtol=2e-3)


def test_a_cable_jerked_taut_is_met_and_accounted_for():
    """Drones rise from slack cables, the load leaves the ground: jerks, stops and contacts."""
    system = load_system("x500_trio_swivel")
    drones = formation(system, radius=0.9, height=1.6)
    facing = np.arange(3) * 2.0 * np.pi / 3.0 + np.pi
    level = Rotation.from_euler("z", facing[:, None]).as_matrix()
    start, _ = slung_state(system, np.array([0.0, 0.0, 0.05]), np.eye(3), drones, level)
    plant = RigidLinksPlant(system, start, ground_height_enu_m=0.0, physics_step_s=0.004)
    level = plant.state.orientation_wxyz[1:].copy()

    def rising(time_s):
        share = min(time_s / 1.0, 1.0)
        return drones + [0.0, 0.0, 1.3 * share**2 * (3.0 - 2.0 * share)], level

    for _ in range(350):
        follow(plant, rising)
        position, quaternion = rising(plant.time_s)
        assert np.abs(plant.state.position_enu_m[1:] - position).max() < 1e-3
        present = Rotation.from_quat(plant.state.orientation_wxyz[1:], scalar_first=True)
        wanted = Rotation.from_quat(quaternion, scalar_first=True)
        assert np.degrees((wanted.inv() * present).magnitude().max()) < 0.1
    assert plant.state.position_enu_m[0, 2] > 0.3, "the load must be lifted"
    assert plant.refined_periods > 0
    assert abs(plant.reaction.audit.relative_error) < 0.01


def test_shorter_steps_do_not_jerk_the_cables():
    """Positions half a step on depend on the step: what a change leaves is not taken back at once.

    That would pull with more than 100 N.
    """
    system = load_system("x500_trio_swivel")
    rest = hanging_equilibrium(system, formation(system))
    plant = RigidLinksPlant(system, rest.configuration, physics_step_s=0.004)
    path, peaks = Sway(plant), []
    for period in range(120):
        if period == 110:
            plant.levels.record["present"] = plant.levels.last
        follow(plant, path)
        peaks.append(plant.state.tension_peak_n.copy())
    assert np.allclose(peaks[110], peaks[109], rtol=0.05)


def test_end_force_and_velocity_are_those_of_the_cables_end():
    """The hook's speed by finite differences; the force carries load and cables."""
    system = load_system("x500_trio_swivel")
    rest = hanging_equilibrium(system, formation(system))
    plant = RigidLinksPlant(system, rest.configuration, physics_step_s=0.001)
    path, ends = Sway(plant), []
    for _ in range(700):
        follow(plant, path)
        ends.append([plant.cable_nodes_enu_m(i)[-1] for i in range(3)])
    measured = (np.array(ends[-1]) - np.array(ends[-3])) / (2.0 * plant.period_s)
    state, hook = plant.state, system.drones[0].cable_attachment_m
    turns = Rotation.from_quat(state.orientation_wxyz[1:], scalar_first=True)
    plant_speed = state.velocity_enu_m_s[1:] + turns.apply(
        np.cross(state.omega_body_rad_s[1:], hook)
    )
    assert np.allclose(measured, plant_speed, atol=5e-3)
    assert np.abs(plant_speed).max() > 0.05
    carried = plant.reaction.end_force_n[:, 2].sum()
    assert carried == pytest.approx(system.carried_mass_kg * 9.80665, rel=0.15)


def parallel_cables():
    """The trio with a load of little inertia under vertical cables, and its drones' pose."""
    system = load_system("x500_trio_swivel")
    drones = tuple(
        dataclasses.replace(drone, cable_attachment_m=(0.0, 0.0, 0.0)) for drone in system.drones
    )
    cables = tuple(dataclasses.replace(c, links=1, mass_kg=1e-3) for c in system.cables)
    system = dataclasses.replace(system, drones=drones, cables=cables)
    hooks = np.array(system.load.cable_attachments_m) + [0.0, 0.0, 3.0]
    return system, hooks


def test_load_on_parallel_cables_swings_as_a_pendulum():
    """Ends held, cables parallel: the load does not turn, period 2 pi sqrt(l / g)."""
    system, hooks = parallel_cables()
    length = system.cables[0].length_m
    rest = hanging_equilibrium(system, hooks)
    plant = RigidLinksPlant(system, rest.configuration, ground_height_enu_m=None)
    held = hooks, plant.state.orientation_wxyz[1:].copy()

    def push(time_s):
        return np.array([0.0, 0.0, 0.0, 0.0, 1.0 if time_s < 0.2 else 0.0, 0.0])

    sideways = []
    for _ in range(3000):
        follow(plant, lambda time_s: held, push)
        sideways.append(plant.state.position_enu_m[0, 1])
    sideways = np.array(sideways) - np.mean(sideways)
    rising = np.flatnonzero((sideways[:-1] < 0.0) & (sideways[1:] >= 0.0))
    share = -sideways[rising] / (sideways[rising + 1] - sideways[rising])
    crossings = (rising + share) * plant.period_s
    assert np.diff(crossings).mean() == pytest.approx(
        2.0 * np.pi * np.sqrt(length / 9.80665), rel=0.01
    )
    missing = plant.reaction.audit.missing_j
    assert abs(missing) < 0.02 * plant.reaction.audit.absolute_work_j
    assert plant.state.tension_n.sum(axis=0)[0] == pytest.approx(1.66 * 9.80665, rel=0.05)
