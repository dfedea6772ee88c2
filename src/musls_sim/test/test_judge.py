"""Steps that make energy from nothing: the load's touch-down under taut cables is the hard case."""

import numpy as np
import pytest
from plant_helpers import G, advance, hovering_plant, trio

from musls_sim.plants.interface import SimulationDiverged
from musls_sim.plants.rigid_links.multibody import body_motion
from musls_sim.plants.rigid_links.step_control import MADE_ENERGY_J, account, mechanical_energy
from musls_sim.plants.rigid_links.tables import EXCHANGED

SINKING_M_S = -0.24
TILT_RAD = (0.012, -0.008, 0.0)


def sinking_plant(links, **options):
    """The trio sinking, the load half a millimetre above the ground and tilted by a degree."""
    system = trio(links=links)
    plant, speeds, rest = hovering_plant(system)
    bottom = rest.configuration.load_position_enu_m[2] + system.load.collision.bottom_m
    plant, speeds, _ = hovering_plant(system, ground_height_enu_m=float(bottom) - 5e-4, **options)
    velocities = np.zeros_like(plant.velocities)
    velocities[5] = SINKING_M_S
    plant.skeleton.setVelocities(velocities)
    positions = plant.positions.copy()
    positions[:3] += TILT_RAD
    plant.skeleton.setPositions(positions)
    plant.read_motion()
    return plant, speeds


def fastest_after_touch_down(links, **options):
    """Largest horizontal speed of a drone in the 0.1 s after."""
    plant, speeds = sinking_plant(links, **options)
    fastest, slowest_load = 0.0, 1.0
    for _ in range(25):
        advance(plant, speeds)
        velocity = plant.state.velocity_enu_m_s
        fastest = max(fastest, np.linalg.norm(velocity[1:, :2], axis=1).max())
        slowest_load = min(slowest_load, np.linalg.norm(velocity[0]))
    assert slowest_load < 0.1 * abs(SINKING_M_S), "the load has not touched down"
    return fastest


@pytest.mark.parametrize("links", [15, 29, 40])
def test_touch_down_flings_no_drone(links):
    """The drones are pulled inwards no more and drift apart, as at steps of 0.1 ms."""
    fine = fastest_after_touch_down(5, physics_step_s=1e-4)
    assert fastest_after_touch_down(links) == pytest.approx(fine, rel=0.05)


@pytest.mark.filterwarnings("ignore:at .* s. spurious energy:UserWarning")
def test_without_refinement_it_does_and_ends():
    """What the check is for: steps that pass by tension and joint rates can still be wrong."""
    ended = 0
    for links in (15, 29, 40):
        try:
            fastest_after_touch_down(links, refine=False)
        except SimulationDiverged as error:
            assert "spurious energy" in str(error)
            assert "physics.refine" in str(error)
            ended += 1
    assert ended


def test_energy_is_that_of_dart():
    plant, _, _ = hovering_plant(trio(links=7))
    random = np.random.default_rng(0)
    plant.skeleton.setPositions(plant.positions + 0.1 * random.normal(size=plant.positions.size))
    plant.skeleton.setVelocities(random.normal(size=plant.velocities.size))
    plant.read_motion()
    energy = sum(mechanical_energy(plant.tables.motion, plant.tables.masses, G))
    kinetic = plant.skeleton.computeKineticEnergy()
    weight = sum(
        body.getMass() * G * body.getCOM()[2]
        for body in map(plant.skeleton.getBodyNode, range(plant.skeleton.getNumBodyNodes()))
    )
    assert energy == pytest.approx(kinetic + weight, rel=1e-9)


def test_the_work_of_forces_is_not_made():
    """A steady push accelerates the load: all of the gain is work."""
    plant, _, _ = hovering_plant(trio(), ground_height_enu_m=None, physics_step_s=5e-4)
    tables = plant.tables
    tables.tau[:] = 0.0
    tables.tau[3:6] = [30.0, 0.0, G * tables.masses[:, 0].sum()]
    for _ in range(160):
        q, before = plant.positions, plant.velocities
        plant.skeleton.setCommands(tables.tau)
        plant.world.step()
        tables.q[:], after = plant.skeleton.getPositions(), plant.skeleton.getVelocities()
        body_motion(tables.q, after, tables.parents, tables.first, tables.joints, tables.motion)
        energies = mechanical_energy(tables.motion, tables.masses, G)
        made = account(tables, q, before, after, plant.physics_step_s, *energies)
        tables.dq[:] = after
        assert made < 0.1 * MADE_ENERGY_J
    assert plant.velocities[3] > 0.5
    assert plant.spurious_energy_j < 0.01 * tables.ledger[EXCHANGED]
