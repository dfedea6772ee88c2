"""The integrator of rigid links: second order, and against MuJoCo at its working step."""

import dataclasses

import numpy as np
import pytest
from plant_helpers import (
    advance,
    hovering_plant,
    kinetic_energy,
    momenta,
    trio,
    with_cables,
    without_drag,
)
from scipy.spatial.transform import Rotation

from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.system.system_files import load_system
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.plants.trim import trim_speeds_rad_s

PERIODS = 500


def solo(links, damping):
    system = with_cables(load_system("x500_solo"), {"damping_n_m_s_rad": damping}, links=links)
    return without_drag(system)


def tilted_by(rest, angle_rad):
    """The load on its straight cable beside an upright drone."""
    start = rest.configuration
    angles = [a.copy() for a in start.joint_angles_rad]
    angles[0][-2] -= angle_rad
    turn = Rotation.from_rotvec([0.0, angle_rad, 0.0]).as_matrix()
    return dataclasses.replace(
        start, joint_angles_rad=tuple(angles), load_rotation=turn @ start.load_rotation
    )


def swing(links, damping, step_s, deg=40.0):
    """All bodies' places in 2 s of a swing with the rotors at their trim, (periods, n, 3)."""
    system = solo(links, damping)
    rest = hanging_equilibrium(system, np.array([[0.0, 0.0, 3.0]]))
    trim = trim_speeds_rad_s(system, rest)
    start = tilted_by(rest, np.radians(deg))
    if step_s is None:
        model = pytest.importorskip("mujoco_model").MujocoModel(system, start, trim)
        places = []
        for _ in range(PERIODS):
            model.step(trim, 0.004)
            places.append(model.poses()[0])
        return np.array(places)
    plant = RigidLinksPlant(
        system, start, physics_step_s=step_s, ground_height_enu_m=None, rotor_speed_rad_s=trim
    )
    places = []
    for _ in range(PERIODS):
        advance(plant, trim)
        places.append(plant.records.bodies["position"].copy())
    assert plant.refined_periods == 0
    return np.array(places)


def distance_mm(a, b):
    return 1e3 * np.linalg.norm(a - b, axis=-1).max()


def test_an_undamped_swing_is_mujocos():
    """Measured: 0.74 mm at 4 ms; semi-implicit Euler is off by 140 mm."""
    pytest.importorskip("mujoco", reason="the second engine, MuJoCo, is not installed")
    assert distance_mm(swing(6, 0.0, 0.004), swing(6, 0.0, None)) < 1.0


def test_the_error_falls_with_the_square_of_the_step():
    """Fifteen links as shipped. Measured: 0.29, 0.076 and 0.016 mm at 4, 2 and 1 ms."""
    fine = swing(15, 2e-3, 0.0005)
    error = [distance_mm(swing(15, 2e-3, step), fine) for step in (0.004, 0.002, 0.001)]
    assert error[0] < 0.5
    assert error[0] / error[1] > 3.2
    assert error[1] / error[2] > 3.2


@pytest.mark.parametrize(("step_s", "turn"), [(0.004, 1e-5), (0.001, 1e-6)])
def test_a_drone_without_moment_does_not_turn(step_s, turn):
    """On a cable without joint damping that ends in its centre of mass, it keeps its attitude.

    But for what `momentum` turns the whole, by the error of the step: 4e-6 rad in a second.
    """
    system = solo(6, 0.0)
    drone = dataclasses.replace(system.drones[0], cable_attachment_m=(0.0, 0.0, 0.0))
    system = dataclasses.replace(system, drones=(drone,))
    rest = hanging_equilibrium(system, np.array([[0.0, 0.0, 3.0]]))
    trim = trim_speeds_rad_s(system, rest)
    start = tilted_by(rest, np.radians(40.0))
    plant = RigidLinksPlant(
        system, start, physics_step_s=step_s, ground_height_enu_m=None, rotor_speed_rad_s=trim
    )
    attitude = plant.state.orientation_wxyz[1].copy()
    for _ in range(250):
        advance(plant, trim)
    assert np.abs(plant.state.orientation_wxyz[1] - attitude).max() < turn


def tumbling(step_s):
    """Kinetic momentum, energy after 1 s of free tumbling without gravity, and at the start."""
    plant, _, _ = hovering_plant(
        trio({"damping_n_m_s_rad": 0.0}),
        ground_height_enu_m=None,
        gravity_m_s2=0.0,
        physics_step_s=step_s,
    )
    records = plant.records
    records.bodies["drag"] = 0.0
    records.rotors["thrust"] = records.rotors["torque"] = records.rotors["drag"] = 0.0
    rates = np.zeros(len(records.rate))
    rates[:6] = 0.2, -0.1, 1.5, 1.0, 0.5, -0.5
    plant.start_moving(rates)
    before = *momenta(plant), kinetic_energy(plant)
    for _ in range(250):
        advance(plant, 0.0)
        assert (plant.state.tension_n > 0.0).all()
    return before, (*momenta(plant), kinetic_energy(plant))


def test_free_tumbling_keeps_momentum_and_energy():
    """Momenta to rounding, energy within a thousandth at 4 ms."""
    before, after = tumbling(0.004)
    linear, angular = (np.linalg.norm(b - a) for b, a in zip(before[:2], after[:2], strict=True))
    assert linear < 1e-9 * np.linalg.norm(before[0])
    assert angular < 1e-9 * np.linalg.norm(before[1])
    assert abs(after[2] - before[2]) < 1e-3 * before[2]


def test_many_undamped_links_hold_at_the_step_chosen_for_them():
    """Sixty links that shiver: a second on, the joints turn no faster than at the start.

    Finer steps follow the shivering for a moment; its tension does not ask for them.
    """
    plant, speeds, _ = hovering_plant(trio({"damping_n_m_s_rad": 0.0}, links=60))
    rates = np.zeros(len(plant.records.rate))
    rates[6:] = 0.05 * np.random.default_rng(1).normal(size=len(rates) - 6)
    plant.start_moving(rates)
    for _ in range(250):
        advance(plant, speeds)
    assert plant.refined_periods < 100
    assert plant.spurious_energy_j < 0.01
    assert np.abs(plant.velocities[6:]).max() < 2.0


@pytest.mark.parametrize("step_s", [0.004, 0.001])
def test_what_falls_comes_to_rest_on_the_ground(step_s):
    """Load and drones stand or lie on their corners; of 200 J, less than 0.5 % were made."""
    plant, _, _ = hovering_plant(trio(), physics_step_s=step_s)
    for _ in range(400):
        advance(plant, 0.0)
    corners = plant.records.edges["place"].reshape(-1, 8, 3)
    bodies = plant.records.bodies[plant.records.selected]
    height = np.einsum("bij,bkj->bki", bodies["rotation"], corners) + bodies["position"][:, None]
    assert height[..., 2].min() > -0.02
    assert height[..., 2].min(axis=1).max() < 0.02
    assert np.abs(plant.state.velocity_enu_m_s).max() < 1.0
    assert plant.spurious_energy_j < 1.0
