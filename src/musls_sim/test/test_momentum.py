"""Momentum of rigid links: without a force from outside none changes.

Chains are shaken, come taut, part and fall on the ground, at several time steps.
"""

import dataclasses

import numpy as np
import pytest
from plant_helpers import PlantInputs, advance, hovering_plant, momenta, trio, without_drag

from musls_bringup.catalogue.scenarios import load_scenario
from musls_sim.plants.interface import CutCable
from musls_sim.session.session import Session

pytestmark = pytest.mark.filterwarnings("ignore:at .* s. :UserWarning")

STEPS_S = [0.004, 0.002, 0.0005]
SHARE = 1e-9
"""Of the largest momentum of a body that may be missing."""


def still_plant(links, step_s, *, friction=0.8, **options):
    """The trio without gravity, rotors, air and joint damping."""
    system = without_drag(trio({"damping_n_m_s_rad": 0.0}, links=links))
    plant, _, _ = hovering_plant(
        system,
        **{"ground_height_enu_m": None, "gravity_m_s2": 0.0, **options},
        physics_step_s=step_s,
    )
    plant.records.bodies["drag"] = 0.0
    for name in ("thrust", "torque", "drag"):
        plant.records.rotors[name] = 0.0
    return plant


def shake(plant, rate_rad_s, seed=1):
    """Random rates of all joints, so that the cables ring."""
    rates = np.zeros(len(plant.records.rate))
    rates[6:] = rate_rad_s * np.random.default_rng(seed).normal(size=len(rates) - 6)
    plant.start_moving(rates)


def largest_momentum(plant):
    bodies = plant.records.bodies
    return float((bodies["mass"] * np.linalg.norm(bodies["velocity"], axis=1)).max())


@pytest.mark.parametrize("step_s", STEPS_S)
@pytest.mark.parametrize("links", [1, 3, 15])
def test_shaken_chains_that_come_taut_keep_the_momenta(links, step_s):
    """Load and drones are pulled apart, then fly against the cables; forces in pairs."""
    plant = still_plant(links, step_s)
    shake(plant, 3.0)
    inputs = PlantInputs.zeros(plant.system)
    before, largest = momenta(plant), 0.0
    for k in range(150):
        pull = 12.0 if k < 50 else -6.0 if k < 75 else 0.0  # slack in between, then a jerk
        inputs.wrench_enu[0, 5] = -3.0 * pull
        inputs.wrench_enu[1:, 5] = pull
        plant.step(inputs)
        largest = max(largest, largest_momentum(plant))
    after = momenta(plant)
    assert np.abs(after[0] - before[0]).max() < SHARE * largest


@pytest.mark.parametrize("step_s", STEPS_S)
@pytest.mark.parametrize("rate_rad_s", [1.0, 2.0])
def test_what_turns_freely_keeps_its_angular_momentum(rate_rad_s, step_s):
    plant = still_plant(3, step_s)
    shake(plant, rate_rad_s)
    before = momenta(plant)
    for _ in range(100):
        advance(plant, 0.0)
    after = momenta(plant)
    scale = np.linalg.norm(before[1])
    assert np.abs(after[1] - before[1]).max() < SHARE * scale
    assert np.abs(after[0] - before[0]).max() < SHARE * largest_momentum(plant)


def test_a_chain_that_is_cut_keeps_the_momentum_of_both_pieces():
    plant = still_plant(5, 0.004)
    shake(plant, 1.0)
    for _ in range(20):
        advance(plant, 0.0)
    before = momenta(plant)
    plant.apply(CutCable(cable=1, segment=3))
    for _ in range(100):
        advance(plant, 0.0)
    after = momenta(plant)
    for then, now in zip(before, after, strict=True):
        assert np.abs(now - then).max() < SHARE * np.linalg.norm(before[1])


@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_fall_on_smooth_ground_keeps_the_horizontal_momentum(step_s):
    """Ground without friction pushes upwards alone: load, drones and links hit it."""
    system = dataclasses.replace(
        without_drag(trio({"damping_n_m_s_rad": 1e-4}, links=5)), ground_friction=0.0
    )
    plant, _, _ = hovering_plant(
        system, physics_step_s=step_s, contact=("load", "drones", "cables"), ground_height_enu_m=1.0
    )
    plant.records.bodies["drag"] = 0.0
    for name in ("thrust", "torque", "drag"):
        plant.records.rotors[name] = 0.0
    rates = np.zeros(len(plant.records.rate))
    rates[:6] = 0.3, -0.2, 0.5, 0.7, -0.4, -1.0
    rates[6:] = 0.5 * np.random.default_rng(3).normal(size=len(rates) - 6)
    plant.start_moving(rates)
    before, touched = momenta(plant)[0], False
    for _ in range(200):
        advance(plant, 0.0)
        touched |= bool(plant.records.system[0]["touches"])
    assert touched
    after = momenta(plant)[0]
    assert np.abs(after[:2] - before[:2]).max() < SHARE * np.linalg.norm(before)


@pytest.mark.parametrize("links", [6, 12])
def test_a_light_cable_that_whips_does_not_move_a_drone_on_the_ground(links):
    """The cable weighs 6 g and nothing damps it; the drone idles, and friction holds it."""
    changes = {
        "cable_model": "rigid_links",
        "formation.height_m": 1.25,
        "system.cables.length_m": 1.2,
        "system.cables.mass_kg": 0.006,
        "system.cables.radius_m": 0.0007,
        "system.cables.links": links,
        "system.cables.joint": {"damping_n_m_s_rad": 0.0},
    }
    session = Session(load_scenario("solo", changes))
    before = session.plant.state.position_enu_m[1].copy()
    session.advance(400)
    moved_m = np.linalg.norm(session.plant.state.position_enu_m[1] - before)
    assert moved_m < 0.01
