"""The two engines of rigid links: accelerations and cable forces are those of DART."""

import numpy as np
import pytest
from plant_helpers import UniversalLinks, advance, formation, hovering_plant, trio

from musls_description.config.errors import ConfigError
from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.hanging.ground import ground_spawn
from musls_description.hanging.tree import STOP_RAD
from musls_description.system.system_files import load_system, system_names
from musls_sim.plants.dart.dart_plant import DartPlant, outside
from musls_sim.plants.interface import CutCable, LoadMass, PlantInputs, PrescribedMotion
from musls_sim.plants.rigid_links.mechanism import set_positions
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.plants.trim import trim_speeds_rad_s

INSTANT_S = 1e-9


def contorted(name):
    """Both plants in the same random motion, with the same random forces."""
    system = load_system(name)
    rng = np.random.default_rng(1)
    plant, speeds, rest = hovering_plant(system, UniversalLinks, ground_height_enu_m=None)
    dart = DartPlant(system, rest.configuration, ground_height_enu_m=None, rotor_speed_rad_s=speeds)
    n = plant.tree.n_coordinates
    positions, rates = plant.positions + 0.3 * rng.normal(size=n), 2.0 * rng.normal(size=n)
    # Short of the stops of second axes, which DART gets as springs of a step.
    second = plant.records.coordinates["second"] != 0
    positions[second] = np.clip(positions[second], -0.95 * STOP_RAD, 0.95 * STOP_RAD)
    wind, wrenches = rng.normal(size=3), rng.normal(size=(2, 1 + system.n_drones, 6))
    for one in (plant, dart):
        one.records.system["wind"] = wind
        one.records.wrench_body[:], one.records.wrench_enu[:] = wrenches
        set_positions(one.records, positions)
        one.start_moving(rates)
    dart.skeleton.setPositions(positions)
    dart.skeleton.setVelocities(rates)
    return plant, dart


@pytest.mark.parametrize("name", system_names(slung=True))
def test_accelerations_and_cable_forces_are_those_of_dart(name):
    """Any motion, any outside forces, in a step that is an instant."""
    plant, dart = contorted(name)
    expected = plant.records.change.copy(), plant.records.force.copy()
    outside(dart.address, 0.0)
    dart.world.setTimeStep(INSTANT_S)
    dart.skeleton.setCommands(dart.records.change)
    dart.skeleton.computeForwardDynamics()
    acceleration = dart.skeleton.getAccelerations()
    assert np.allclose(acceleration, expected[0], rtol=1e-6, atol=1e-6 * np.abs(expected[0]).max())
    dart._note_cable_forces()
    assert np.allclose(dart.records.force, expected[1], rtol=1e-6, atol=1e-6)


def test_flights_of_both_engines_meet_as_dart_takes_finer_steps():
    """DART is of first order in its step: its distance halves."""
    system = trio({"friction_n_m": 1e-4})
    rest = hanging_equilibrium(system, formation(system))
    trim = trim_speeds_rad_s(system, rest)

    def flown(make, step_s):
        plant = make(system, rest.configuration, physics_step_s=step_s, rotor_speed_rad_s=trim)
        for _ in range(100):
            advance(plant, 1.01 * trim * [1.0, 1.002, 1.0, 1.001], [1.0, 0.0, 0.0])
        return plant.state.motion[:, :13].copy()

    ours = flown(RigidLinksPlant, 0.001)
    gaps = [np.abs(flown(DartPlant, step) - ours).max() for step in (0.002, 0.001)]
    assert gaps[0] < 0.02
    assert gaps[0] / gaps[1] == pytest.approx(2.0, rel=0.1)


def test_dart_stands_on_the_ground():
    system = load_system("x500_trio")
    plant = DartPlant(system, ground_spawn(system))
    start = plant.state.position_enu_m.copy()
    for _ in range(100):
        advance(plant, 0.0)
    assert np.abs(plant.state.position_enu_m - start).max() < 0.02


def test_dart_says_what_it_does_not_do():
    system = load_system("x500_trio")
    plant = DartPlant(system, ground_spawn(system))
    with pytest.raises(ConfigError, match=r"choose physics\.engine: embedded"):
        plant.apply(CutCable(1, 1))
    inputs = PlantInputs.zeros(system)
    inputs.motion = PrescribedMotion(lambda time_s: (np.zeros((3, 3)), np.zeros((3, 4))))
    with pytest.raises(ConfigError, match=r"engine: embedded"):
        plant.step(inputs)
    plant.apply(LoadMass(1.0))
    assert plant.skeleton.getBodyNode(0).getMass() == 1.0
