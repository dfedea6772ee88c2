"""`physics.accuracy`: the motion is as good as asked for, and the step no shorter than it needs."""

import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest
from plant_helpers import with_cables, without_drag

from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import with_places
from musls_description.hanging.hang import hang
from musls_description.system.system_files import load_system
from musls_sim.plants import PLANTS
from musls_sim.plants.interface import PlantInputs, PlantSetup, accurate_step_s, swing_rad_s
from musls_sim.plants.trim import trim_speeds_rad_s
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session
from musls_sim.specs.physics import BodyState, PhysicsSpec, StartSpec

SHM = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios" / "shm.yaml"
PERIODS = 500
FINE = {"rigid_links": 0.00025, "elastic": 0.00025, "massless": 0.001}


@functools.cache
def system_of(length_m):
    return without_drag(with_cables(load_system("x500_solo"), length_m=length_m))


@functools.cache
def swing(cable_model, length_m, physics):
    """Load and drone in 2 s after the load was let go 40 degrees beside a hovering drone."""
    system = system_of(length_m)
    place = np.array([[0.0, 0.0, 3.0 + length_m]])
    hanging = hang(system, with_places(place))
    rest = hanging.rest
    turn, load = np.radians(40.0), rest.configuration.load_position_enu_m
    way = (place[0, 2] - load[2]) * np.array([np.sin(turn), 0.0, -np.cos(turn)])
    start = StartSpec(
        kind="state",
        load=BodyState(
            position_enu_m=tuple(place[0] + way),
            orientation_wxyz=(np.cos(0.5 * turn), 0.0, -np.sin(0.5 * turn), 0.0),
        ),
        drones=(BodyState(position_enu_m=tuple(place[0]), orientation_wxyz=(0.0, 0.0, 0.0, 1.0)),),
    )
    plant = PLANTS[cable_model](PlantSetup(system, start, physics, hanging))
    inputs = PlantInputs.zeros(system)
    inputs.rotor_command_rad_s[:] = trim_speeds_rad_s(system, rest)
    places = []
    for _ in range(PERIODS):
        plant.step(inputs)
        places.append(plant.state.position_enu_m.copy())
    return np.array(places)


@pytest.mark.parametrize("length_m", [0.5, 2.42])
@pytest.mark.parametrize("accuracy", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("cable_model", ["rigid_links", "elastic", "massless"])
def test_a_swing_is_as_accurate_as_asked_for(cable_model, accuracy, length_m):
    """Measured: half of what is asked for at most, a tenth where massless cables need no less."""
    fine = swing(cable_model, length_m, PhysicsSpec(step_size_s=FINE[cable_model]))
    found = swing(cable_model, length_m, PhysicsSpec(accuracy=accuracy))
    way = np.ptp(fine[:, 0], axis=0).max()
    error = np.linalg.norm(found - fine, axis=-1).max() / way
    assert error < accuracy


def in_shm(physics):
    """The paper's harmonic motion from the air: places of all bodies, and the largest tension."""
    scenario = load_scenario(SHM, ["start=air", "estimation.kind=truth"])
    places, tension = [], 0.0
    with Session(dataclasses.replace(scenario, physics=physics), force=True) as session:
        while session.plant.time_s < 12.0:
            session.advance(1)
            places.append(session.state.position_enu_m.copy())
            tension = max(tension, session.state.tension_peak_n.max())
    return np.array(places), tension


def test_a_flight_is_as_accurate_by_default():
    """Measured: 1.4e-5 of the way, 1.8e-4 of the largest tension."""
    default, fine = in_shm(PhysicsSpec()), in_shm(PhysicsSpec(step_size_s=0.0005))
    accuracy = PhysicsSpec().accuracy
    error = np.linalg.norm(default[0] - fine[0], axis=-1).max()
    assert error < accuracy * np.ptp(fine[0][:, 0], axis=0).max()
    assert default[1] == pytest.approx(fine[1], rel=accuracy)


def test_the_step_follows_the_accuracy_by_the_order_of_the_method():
    system = system_of(2.42)
    steps = [
        accurate_step_s(system, PhysicsSpec(accuracy=a), order)
        for a, order in ((1e-4, 2), (1e-5, 2), (1e-4, 4))
    ]
    assert steps[0] / steps[1] == pytest.approx(np.sqrt(10.0))
    assert steps[2] == 0.004


def test_the_swing_is_that_of_a_load_below_a_free_drone():
    """A pendulum of two masses: g / L (1 + m / M), the cable's mass with the load's."""
    system = system_of(0.5)
    both = 1.0 + system.carried_mass_kg / system.drones[0].mass_kg
    assert swing_rad_s(system, 9.81) == pytest.approx(np.sqrt(9.81 / 0.5 * both))


@pytest.mark.parametrize("accuracy", [0.0, -1e-3, np.nan, 1.0, 1e-9, "fine"])
def test_other_accuracies_are_refused_in_one_line(accuracy):
    with pytest.raises(ConfigError, match=r"physics\.accuracy = ") as refused:
        load_scenario(SHM, [f"physics.accuracy={accuracy}"])
    assert "\n" not in str(refused.value)
