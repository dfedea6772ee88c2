"""Energy comes from nowhere: systems without input that tumble, and the accounts of those that fly.

The integrator is of second order, so its energy error falls with the square of the step; what it
may come to is what `period.END_SHARE` allows. A run that would come to more must end by itself.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plant_helpers import G, advance, energy, formation, kinetic_energy, trio, with_cables

from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import DOUBTFUL_SHARE, FLOOR_LIFT_M, SimulationDiverged
from musls_sim.plants.rigid_links.period import END_SHARE
from musls_sim.plants.rigid_links.plant import RigidLinksPlant

pytestmark = pytest.mark.filterwarnings("ignore:at .* s. :UserWarning")


def tumbling(system, spin, joint_rates, gravity=G, **options):
    """A system without thrust, without ground and air, that turns."""
    rest = hanging_equilibrium(system, formation(system))
    plant = RigidLinksPlant(
        system, rest.configuration, ground_height_enu_m=None, gravity_m_s2=gravity, **options
    )
    plant.records.bodies["drag"] = 0.0
    rates = np.zeros(plant.tree.n_coordinates)
    rates[:3], rates[6:] = spin, joint_rates * np.resize([1.0, -1.0, 0.5], rates.size - 6)
    plant.start_moving(rates)
    return plant


def fall(plant, periods):
    """Largest rise of the energy above its lowest value before, and whether it ended by itself."""
    lowest = energy(plant)
    rise = 0.0
    for _ in range(periods):
        try:
            advance(plant, 0.0)
        except SimulationDiverged:
            return rise, True
        now = energy(plant)
        rise, lowest = max(rise, now - lowest), min(lowest, now)
    return rise, False


def allowed_j(plant, share=END_SHARE):
    """What a run may make from nothing before it ends."""
    mass = plant.records.bodies["mass"].sum()
    kinetic = kinetic_energy(plant)
    return FLOOR_LIFT_M * mass * 9.80665 + share * kinetic


spins = st.tuples(*[st.floats(-6.0, 6.0)] * 3)


@settings(max_examples=12, derandomize=True)
@given(
    spins, st.floats(0.0, 1.0), st.integers(1, 12), st.sampled_from(["solo", "duo", "trio"]),
    st.sampled_from([0.0, 2e-3, 2e-2]),
)  # fmt: skip
def test_energy_never_grows_without_input(spin, joint_rates, links, name, damping):
    system = with_cables(load_system(f"x500_{name}"), {"damping_n_m_s_rad": damping}, links=links)
    plant = tumbling(system, spin, joint_rates)
    free = plant.gravity_m_s2 * plant.records.bodies["mass"].sum() * 0.5 * G * 0.4**2
    allowed = allowed_j(plant) + END_SHARE * free
    rise, _ = fall(plant, 60)
    assert rise <= allowed


def test_a_whip_makes_no_energy():
    """15 undamped links at 15 rad/s: taut jerks of some 4000 N; it ends as a link passes 100 m/s.

    (It made 700 J from nothing while angular velocities were squared in the middle of the step.)
    """
    plant = tumbling(trio({"damping_n_m_s_rad": 0.0}, links=15), [15.0, 0.0, 0.0], 0.0)
    start = kinetic_energy(plant)
    with pytest.raises(SimulationDiverged, match="moves at") as error:
        for _ in range(500):
            advance(plant, 0.0)
    assert "damping" in str(error.value)
    assert plant.spurious_energy_j < 1e-3 * start


def test_rigid_bars_that_tumble_make_none():
    """At 7 rad/s, for 2 s."""
    plant = tumbling(trio({"damping_n_m_s_rad": 0.0}, links=1), [7.0, 0.0, 0.0], 0.0)
    start = kinetic_energy(plant)
    for _ in range(500):
        advance(plant, 0.0)
    assert plant.spurious_energy_j < 1e-3 * start


def test_a_doubt_is_told_once_with_what_helps():
    """At 1 % of the energy or the weight: bars that tumble at a step that is not refined."""
    plant = tumbling(trio({"damping_n_m_s_rad": 0.0}, links=1), [12.0, 0.0, 0.0], 1.0, refine=False)
    with pytest.warns(UserWarning, match="without a source|from nothing") as said:
        for _ in range(400):
            advance(plant, 0.0)
    told = [str(w.message) for w in said if "integration" in str(w.message)]
    assert len(told) == 1
    assert "what helps here: physics.step_size_s: 0.002" in told[0]
    assert plant.spurious_energy_j > DOUBTFUL_SHARE * plant.records.system[0]["ledger"]["kinetic"]
