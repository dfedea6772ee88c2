"""The stability rule against the integrator's real limit, and what the plant does beyond it."""

import dataclasses
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plant_helpers import G, advance, formation, hovering_plant, trio, with_cables

from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.hanging.tree import build_tree
from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import record_at
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import SimulationDiverged
from musls_sim.plants.rigid_links.constraints.slack import steadying
from musls_sim.plants.rigid_links.integrator import step
from musls_sim.plants.rigid_links.mechanism import SYSTEM, build_records
from musls_sim.plants.rigid_links.period import OK, RUNAWAY, TOO_COARSE, check_step
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.plants.rigid_links.step_control import (
    CALM_PERIODS,
    LIMIT,
    design_tension_n,
    largest_stable_step_s,
    largest_stable_tension_n,
    settle,
    stable_step_s,
    substeps,
)
from musls_sim.plants.trim import trim_speeds_rad_s


def rope(links, damping):
    """The trio's cable with other links."""
    return trio({"damping_n_m_s_rad": damping}, links=links).cables[0]


# --- the rule ----------------------------------------------------------------------------------


@compiled()
def steps(address, count, step_s):
    for _ in range(count):
        step(record_at(address, SYSTEM), step_s)


@compiled()
def judged(address, limits):
    return check_step(record_at(address, SYSTEM), limits)


def stays_at_rest(cable, weight_kg, step_s, *, steadied=False):
    """Whether a chain that hangs from a fixed load, a weight at its end, stays where it is."""
    solo = load_system("x500_solo")
    weight = dataclasses.replace(
        solo.drones[0], mass_kg=weight_kg, cable_attachment_m=(0.0, 0.0, 0.0)
    )
    huge = tuple(tuple(1e9 * (i == j) for j in range(3)) for i in range(3))
    load = dataclasses.replace(solo.load, mass_kg=1e9, inertia_kg_m2=huge)
    system = dataclasses.replace(solo, load=load, cables=(cable,), drones=(weight,))
    memory, records = build_records(
        system, build_tree(system), gravity_m_s2=G, ground_height_enu_m=None, ahead_s=0.004
    )
    records.bodies["drag"] = 0.0
    if not steadied:
        records.slacks["link_mass"] = np.inf
    records.wrench_enu[0, 5] = G * load.mass_kg
    records.angle[6] = np.pi
    records.angle[8:] = 1e-7 * np.random.default_rng(0).normal(size=records.angle.size - 8)
    for _ in range(60):
        steps(memory.ctypes.data, 10, step_s)
        if not np.abs(records.rate[6:]).max() <= 0.1:
            return False
    return True


@pytest.mark.parametrize("weight_kg", [0.5, 2.3])
@pytest.mark.parametrize("damping", [0.0, 2e-3])
@pytest.mark.parametrize("links", [5, 15, 29, 60])
def test_rule_meets_the_integrators_real_limit(links, damping, weight_kg):
    """By bisection the real limit is 0.98 to 1.14 times the rule's."""
    cable = rope(links, damping)
    limit = largest_stable_step_s(cable, weight_kg * G)
    assert stays_at_rest(cable, weight_kg, 0.9 * limit)
    assert not stays_at_rest(cable, weight_kg, 1.2 * limit)


cables = st.builds(rope, st.integers(1, 100), st.sampled_from([0.0, 1e-5, 2e-4, 2e-3, 0.05]))


@settings(max_examples=50)
@given(cables, st.floats(0.01, 1e4))
def test_largest_tension_is_the_inverse_of_largest_step(cable, tension):
    step = largest_stable_step_s(cable, tension)
    assert largest_stable_tension_n(cable, step) == pytest.approx(tension, rel=1e-9)
    assert largest_stable_step_s(cable, 1.1 * tension) < step
    assert largest_stable_tension_n(cable, 1.1 * step) < tension


def test_undamped_limit_is_that_of_the_top_mode():
    """2 / omega with omega = 2 sqrt(3) sqrt(T / mu) / h (module text)."""
    cable, tension = rope(30, 0.0), 20.0
    mu, h = 0.02 / 2.42, 2.42 / 30
    omega = 2.0 * np.sqrt(3.0) * np.sqrt(tension / mu) / h
    assert largest_stable_step_s(cable, tension) == pytest.approx(2.0 / omega, rel=1e-12)


@settings(max_examples=50)
@given(st.integers(20, 100), st.floats(0.01, 1e4), st.floats(1e-5, 4e-3))
def test_steadying_is_the_least_damping_that_holds_a_step(links, tension, step_s):
    bare = rope(links, 0.0)
    damping = float(steadying(tension, bare.link_mass_kg, bare.link_length_m, step_s))
    held = largest_stable_tension_n(rope(links, damping), step_s)
    if damping == 0.0:
        assert largest_stable_tension_n(bare, step_s) >= tension * (1.0 - 1e-9)
    else:  # for the worst wave of any length, which chains have only nearly
        assert tension * (1.0 - 1e-9) <= held <= 2.2 * tension


@pytest.mark.parametrize("weight_kg", [0.5, 2.3, 20.0])
@pytest.mark.parametrize("links", [5, 30, 60])
def test_a_control_period_holds_chains_without_damping(links, weight_kg):
    assert stays_at_rest(rope(links, 0.0), weight_kg, 0.004, steadied=True)


def test_step_is_chosen_for_the_worst_cable():
    system = with_cables(load_system("x500_trio_unequal"), {"damping_n_m_s_rad": 0.0})
    tension = design_tension_n(system, G)
    limits = [largest_stable_step_s(cable, tension) for cable in system.cables]
    assert stable_step_s(system, G) == min(limits) < max(limits)


def test_substeps_divide_the_period():
    assert [substeps(s) for s in (1.0, 0.004, 0.0039, 0.002, 0.0004, 0.004 / 3.0)] == [
        1, 1, 2, 2, 10, 3,
    ]  # fmt: skip


# --- beyond it ---------------------------------------------------------------------------------


def assert_finite(plant):
    for field in dataclasses.fields(plant.state):
        assert np.isfinite(getattr(plant.state, field.name)).all(), field.name


def test_diagnosis_offers_cures():
    """Joints that whirl at 30 rad/s are too fast for the step, though it suits the tension."""
    plant, speeds, _ = hovering_plant(
        trio({"damping_n_m_s_rad": 0.0}, links=30), ground_height_enu_m=None, refine=False
    )
    rates = 3.0 * np.random.default_rng(0).normal(size=plant.tree.n_coordinates)
    plant.start_moving(rates)
    with pytest.raises(SimulationDiverged, match=r"choose a smaller physics\.step_size_s"):
        for _ in range(250):
            advance(plant, speeds)


@pytest.mark.parametrize("what", ["rotor", "wind"])
def test_input_that_is_not_finite_raises(what, capfd):
    plant, speeds, _ = hovering_plant(trio())
    command, wind = speeds.copy(), np.zeros(3)
    (command[0] if what == "rotor" else wind)[0] = np.nan
    with pytest.raises(SimulationDiverged):
        for _ in range(20):
            advance(plant, command, wind)
    assert capfd.readouterr().err.count("\n") < 2000


@pytest.mark.parametrize("ground", [pytest.param(None, marks=pytest.mark.slow), 0.0])
def test_violent_start_ends_with_an_error_too(ground):
    """Neither 60000 lines of warnings nor an abort in the collision detector.

    In a process of its own: ODE aborts the whole process.
    """
    script = textwrap.dedent(
        f"""
        import numpy as np
        from plant_helpers import advance, hovering_plant, trio
        from musls_sim.plants.interface import SimulationDiverged
        plant, speeds, _ = hovering_plant(trio(links=30), ground_height_enu_m={ground})
        n = plant.tree.n_coordinates
        plant.start_moving(50.0 * np.random.default_rng(0).normal(size=n))
        try:
            for _ in range(10):
                advance(plant, speeds)
        except SimulationDiverged:
            print("diverged")
        """
    )
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr[-500:]
    assert run.stdout.strip() == "diverged"
    assert run.stderr.count("\n") < 2000


# --- refinement --------------------------------------------------------------------------------


def slack_plant(links, damping, **options):
    """The trio in the air at rest with every cable bowed in an S, and rotor speeds for hovering.

    The load falls while the drones rise, until the cables are taut. They pull at the drones'
    centres of mass, so the drones stay upright without an autopilot.
    """
    system = trio({"damping_n_m_s_rad": damping}, links=links)
    centred = tuple(
        dataclasses.replace(d, cable_attachment_m=(0.0, 0.0, 0.0)) for d in system.drones
    )
    system = dataclasses.replace(system, drones=centred)
    rest = hanging_equilibrium(system, formation(system))
    speeds = trim_speeds_rad_s(system, rest)
    place = (np.arange(links) + 0.5) / links
    bow = np.concatenate([[0.0], 0.8 * np.sin(2.0 * np.pi * place), [0.0]])
    angles = []
    for cable in rest.configuration.joint_angles_rad:
        bowed = np.array(cable)
        bowed.reshape(-1, 2)[:, 0] += np.diff(bow)
        angles.append(bowed)
    start = dataclasses.replace(rest.configuration, joint_angles_rad=tuple(angles))
    plant = RigidLinksPlant(
        system, start, rotor_speed_rad_s=speeds, ground_height_enu_m=None, **options
    )
    return plant, speeds


@pytest.mark.parametrize(("links", "damping"), [(15, 0.0), (30, 0.0), (15, 2e-3), (30, 2e-3)])
def test_refinement_flies_through_a_snap(links, damping):
    plant, speeds = slack_plant(links, damping)
    refined, tension, speed = [], [], []
    for _ in range(125):
        before = plant.refined_periods
        advance(plant, speeds)
        assert_finite(plant)
        refined.append(plant.refined_periods > before)
        tension.append(plant.state.tension_peak_n.max())
        speed.append(np.linalg.norm(plant.state.velocity_enu_m_s, axis=1).max())
    when = np.flatnonzero(refined) * plant.period_s
    assert len(when) == plant.refined_periods > 0
    assert when[0] > 0.15 or not damping, "only a slack cable that nothing damps needs refinement"
    # The jerk is a multiple of the static tension; nothing comes out faster than it went in.
    assert max(tension) > 10.0 * plant.system.carried_mass_kg * G / 3.0
    taut = int(np.argmax(np.array(tension) > 50.0))
    assert max(speed) < 1.3 * speed[taut - 1]


def test_step_is_doubled_again_after_a_calm_while():
    """At once from the finest ones, which serve the moment of a jerk."""
    plant, _, _ = hovering_plant(trio())
    settle(plant.levels.record[0], 3)
    levels = []
    for _ in range(4 * CALM_PERIODS):
        levels.append(plant.levels.present)
        settle(plant.levels.record[0], plant.levels.present)
    calm = [level for level in (2, 1, 0, 0) for _ in range(CALM_PERIODS)]
    assert levels == [3, *calm[: len(levels) - 1]]


def test_a_step_is_judged_by_tension_and_joint_rate():
    plant, _, _ = hovering_plant(load_system("x500_duo"))
    records, joints = plant.records, plant.tree.n_coordinates

    def verdict(peak=(3.0, 5.0), limit=(4.0, 6.0), rates=None):
        records.peak[:] = peak
        records.rate[:] = 0.0 if rates is None else rates
        limits = np.zeros(2, LIMIT)
        limits["joint_rate"], limits["jump"], limits["tension"] = 10.0, np.inf, limit
        return judged(plant.address, limits)

    assert verdict() == OK
    assert verdict(limit=(4.0, 4.9)) == TOO_COARSE
    assert verdict(peak=(4.1, 5.0)) == TOO_COARSE
    assert verdict(peak=(np.nan, 5.0)) == RUNAWAY
    for k, rate, expected in (
        (6, 10.1, TOO_COARSE),
        (19, -10.1, TOO_COARSE),
        (19, 2001.0, RUNAWAY),
        (19, np.nan, RUNAWAY),
        (4, 50.0, OK),  # the load may move as it likes
        (4, 101.0, RUNAWAY),
    ):
        whirl = np.zeros(joints)
        whirl[k] = rate
        assert verdict(rates=whirl) == expected, (k, rate)


def test_thrust_step_stays_within_the_ordinary_step():
    """40 % more thrust is what `TENSION_MARGIN` is for: no period is refined."""
    plant, speeds, _ = hovering_plant(trio({"damping_n_m_s_rad": 0.0}, links=30))
    peak = 0.0
    for _ in range(250):
        advance(plant, np.sqrt(1.4) * speeds)
        peak = max(peak, plant.state.tension_peak_n.max())
    rest = plant.system.carried_mass_kg * G / 3.0
    assert 1.35 * rest < peak < design_tension_n(plant.system, G)
    assert plant.refined_periods == 0


def test_refinement_that_is_never_needed_changes_nothing():
    records = []
    for refine in (False, True):
        plant, speeds, _ = hovering_plant(trio(), refine=refine)
        for _ in range(50):
            advance(plant, 1.02 * speeds)
        records.append(plant.state.position_enu_m.copy())
    assert (records[0] == records[1]).all()
