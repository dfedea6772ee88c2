"""Slack of straight cables: they do not push, and snap taut with a jerk that has a height."""

from pathlib import Path

import numpy as np
import pytest
from plant_helpers import (
    G,
    advance,
    hovering_plant,
    kinetic_energy,
    momenta,
    sinking_plant,
    with_cables,
)

from musls_analysis.report.summary import named_peaks
from musls_bringup.api import fly
from musls_description.system.system_files import load_system
from musls_sim.plants.rigid_links.slack import BRAKE_S
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.loop import Observer

SHM = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios" / "shm.yaml"
SPEED_M_S = 0.3


def pushes(plant):
    """How hard the cables push, over their weight, (n,)."""
    weights = G * np.array([cable.mass_kg for cable in plant.system.cables])
    return -plant.state.tension_n.min(axis=1) / weights


@pytest.mark.parametrize("step_s", [0.004, 0.001])
def test_touch_down_under_straight_cables(step_s):
    """No cable pushes with more than its weight; chains without slack, as DART's, do with 40 N."""
    plant, speeds = sinking_plant(15, physics_step_s=step_s)
    slack = 0.0
    for _ in range(100):
        advance(plant, speeds)
        assert (pushes(plant) < 1.0 + 1e-9).all()
        slack = max(slack, plant.records.slacks["length"].max())
    assert 0.002 < slack < 0.1


def test_tension_at_touch_down_converges():
    """Measured: 17.14, 17.27 and 17.34 N at 4, 2 and 1 ms."""

    def peak(step_s):
        plant, speeds = sinking_plant(15, physics_step_s=step_s)
        largest = 0.0
        for _ in range(25):
            advance(plant, speeds)
            largest = max(largest, plant.state.tension_peak_n.max())
        return largest

    assert peak(0.004) == pytest.approx(peak(0.001), rel=0.02)


STEPS_S = (0.004, 0.002, 0.001)


def from_ground_to_ground(cable_model, step_s):
    """Largest tension at take-up and touch-down of `shm` with a short hover in between [N]."""
    hover = "mission.stages=[{kind: hold, position_m: [0, 0, 1], duration_s: 1}]"
    choices = [f"cable_model={cable_model}", f"physics.step_size_s={step_s}", hover]
    scenario = load_scenario(SHM, choices)
    # A straight chain stands on what it has slid into: it may push with its own weight.
    weights = G * np.array([cable.mass_kg for cable in scenario.system.cables])
    allowed = weights[:, None] if cable_model == "rigid_links" else 0.0

    class Look(Observer):
        def observe(self, time_s, session):
            assert (session.state.tension_n >= -allowed * 1.05).all(), time_s

    peaks = named_peaks(fly(scenario, observers=[Look()]), slack_threshold_n=0.2)
    return [peaks[where]["max_n"] for where in ("take_up", "touch_down")]


@pytest.mark.slow
def test_rigid_links_pull_alike_at_all_steps_and_never_push():
    """Measured: 15.3, 16.4, 16.6 N and 21.8, 21.9, 22.0 N at 4, 2 and 1 ms."""
    coarse, half, fine = (from_ground_to_ground("rigid_links", step_s) for step_s in STEPS_S)
    assert coarse[0] == pytest.approx(fine[0], rel=0.1)
    assert half[0] == pytest.approx(fine[0], rel=0.025)
    assert coarse[1] == pytest.approx(fine[1], rel=0.02)
    assert half[1] == pytest.approx(fine[1], rel=0.01)


@pytest.mark.slow
def test_massless_cables_pull_alike_at_all_steps_and_never_push():
    """Measured: 14.6 N and 25.8, 25.7, 25.7 N."""
    coarse, half, fine = (from_ground_to_ground("massless", step_s) for step_s in STEPS_S)
    assert coarse == pytest.approx(fine, rel=0.01)
    assert half == pytest.approx(fine, rel=0.01)


@pytest.mark.slow
def test_elastic_cables_pull_as_hard_as_the_others_and_never_push():
    """Each step has other jerks. Measured: 23.1, 25.7, 27.2 N and 11.6, 10.0, 12.0 N."""
    found = np.array([from_ground_to_ground("elastic", step_s) for step_s in STEPS_S])
    assert (found > 7.0).all()  # 5.9 N are the cable's share of the weight
    assert (found < 35.0).all()


def powerless(system, **options):
    """A system in its hanging equilibrium whose rotors and bodies feel no air."""
    plant, _, rest = hovering_plant(system, **options)
    plant.records.bodies["drag"] = 0.0
    for what in ("thrust", "torque", "drag"):
        plant.records.rotors[what] = 0.0
    return plant, rest


def test_a_drone_falls_all_but_freely_above_a_load_that_stands():
    """Its straight cable bears no more than the cable's weight of it."""
    system = with_cables(load_system("x500_solo"), {"damping_n_m_s_rad": 0.0})
    _, rest = powerless(system)
    ground = rest.configuration.load_position_enu_m[2] + system.load.collision.bottom_m
    plant, _ = powerless(system, ground_height_enu_m=float(ground))
    for _ in range(25):
        advance(plant, 0.0)
    mass, cable = system.drones[0].mass_kg, system.cables[0].mass_kg
    fallen = -0.1 * G * mass / (mass + cable)
    assert plant.state.velocity_enu_m_s[1, 2] == pytest.approx(fallen, rel=1e-3)


@pytest.mark.parametrize("step_s", [0.004, 0.001])
def test_a_cable_that_snaps_taut_is_an_inelastic_impact(step_s):
    """Both ends go on together, the momentum stays, half m v^2 of the reduced mass is lost."""
    system = with_cables(load_system("x500_solo"), {"damping_n_m_s_rad": 0.0})
    plant, _ = powerless(
        system, ground_height_enu_m=None, gravity_m_s2=1e-12, physics_step_s=step_s
    )
    slack = plant.records.slacks[0]
    slack["length"], slack["rate"] = 0.02, -SPEED_M_S
    plant.records.bodies["slides"][1] = 0
    plant.start_moving(np.zeros(len(plant.records.rate)))
    momentum, energy = momenta(plant)[0], kinetic_energy(plant)
    largest = 0.0
    for _ in range(50):
        advance(plant, 0.0)
        largest = max(largest, plant.state.tension_peak_n.max())
    assert slack["length"] == slack["rate"] == 0.0
    assert momenta(plant)[0] == pytest.approx(momentum, rel=1e-9, abs=1e-9)
    load = system.load.mass_kg
    reduced = load * (system.mass_kg - load) / system.mass_kg
    assert energy - kinetic_energy(plant) == pytest.approx(0.5 * reduced * SPEED_M_S**2, rel=1e-6)
    assert largest == pytest.approx(reduced * SPEED_M_S / BRAKE_S, rel=0.03)
