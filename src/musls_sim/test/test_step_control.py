"""Steps that make energy from nothing: the load's touch-down under taut cables is the hard case."""

import numpy as np
import pytest
from plant_helpers import SINKING_M_S, G, advance, hovering_plant, sinking_plant, trio

from musls_sim.plants.dart.skeleton import build_skeleton
from musls_sim.plants.interface import PlantInputs
from musls_sim.plants.rigid_links.mechanism import set_positions


def fastest_after_touch_down(links, **options):
    """Largest horizontal speed of a drone in the 0.1 s after."""
    plant, speeds = sinking_plant(links, **options)
    fastest, slowest_load = 0.0, 1.0
    for _ in range(25):
        advance(plant, speeds)
        velocity = plant.state.velocity_enu_m_s
        fastest = max(fastest, np.linalg.norm(velocity[1:, :2], axis=1).max())
        slowest_load = min(slowest_load, np.linalg.norm(velocity[0]))
    assert slowest_load < 0.15 * abs(SINKING_M_S), "the load has not touched down"
    return fastest


@pytest.mark.parametrize("links", [15, 29, 40])
def test_touch_down_flings_no_drone(links):
    """The drones are pulled inwards no more and drift apart, as at steps of 0.1 ms."""
    fine = fastest_after_touch_down(5, physics_step_s=1e-4)
    assert fastest_after_touch_down(links) == pytest.approx(fine, rel=0.05)


@pytest.mark.parametrize("links", [15, 29])
def test_nor_does_it_without_refinement(links):
    fine = fastest_after_touch_down(5, physics_step_s=1e-4)
    assert fastest_after_touch_down(links, refine=False) == pytest.approx(fine, rel=0.1)


def test_energy_is_that_of_dart():
    plant, _, _ = hovering_plant(trio(links=7))
    random = np.random.default_rng(0)
    positions = plant.positions + 0.1 * random.normal(size=plant.positions.size)
    set_positions(plant.records, positions)
    plant.start_moving(random.normal(size=plant.velocities.size))
    skeleton = build_skeleton(plant.tree)
    skeleton.setPositions(positions)
    skeleton.setVelocities(plant.velocities)
    weight = sum(body.getMass() * G * body.getCOM()[2] for body in skeleton.getBodyNodes())
    expected = skeleton.computeKineticEnergy() + weight
    ledger = plant.records.system[0]["ledger"]
    assert ledger["energy"] == pytest.approx(expected, rel=1e-9)


def test_the_work_of_forces_is_not_made():
    """A steady push accelerates the load: all of the gain is work."""
    plant, speeds, _ = hovering_plant(trio(), ground_height_enu_m=None)
    inputs = PlantInputs.zeros(plant.system)
    inputs.rotor_command_rad_s[:] = speeds
    inputs.wrench_enu[0, 3] = 5.0
    for _ in range(100):
        plant.step(inputs)
    assert plant.velocities[3] > 0.5
    ledger = plant.records.system[0]["ledger"]
    assert ledger["exchanged"] > 0.8
    assert plant.spurious_energy_j < 0.002 * ledger["exchanged"]
