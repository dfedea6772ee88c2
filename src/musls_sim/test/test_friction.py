"""Coulomb friction and stops of the cable joints: a single rod that hangs from a fixed load.

The rod's first axis swings it in a vertical plane: with mass m and length l gravity turns it with
k sin(theta), k = m g l / 2, and friction resists with at most tau_f.
"""

import dataclasses

import dartpy
import numpy as np
import pytest
from plant_helpers import advance, hovering_plant, trio
from scipy.integrate import solve_ivp

from musls_description.hanging.tree import STOP_RAD, build_tree
from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import record_at
from musls_description.system.system_files import load_system
from musls_sim.plants.dart.dart_plant import DartPlant
from musls_sim.plants.dart.skeleton import build_skeleton, build_world
from musls_sim.plants.rigid_links.articulated import (
    STICK_RATE_RAD_S,
    STOP_DAMPING_N_M_S_RAD,
    STOP_STIFFNESS_N_M_RAD,
)
from musls_sim.plants.rigid_links.integrator import step
from musls_sim.plants.rigid_links.mechanism import SYSTEM, build_records, own_positions_of

G = 9.81
K = G / 2.0
"""Gravity's stiffness of a rod of 1 kg and 1 m [N m]."""

FIRST, SECOND = 6, 7  # coordinates of the rod's two axes, after the load's six


def rod_system(mass_kg=1.0, **joint):
    """A rod below a load that nothing moves, and a mote for a drone."""
    solo = load_system("x500_solo")
    cable = dataclasses.replace(
        solo.cables[0],
        mass_kg=mass_kg,
        length_m=1.0,
        radius_m=1e-4,
        links=1,
        joint=dataclasses.replace(solo.cables[0].joint, **{"damping_n_m_s_rad": 0.0, **joint}),
    )
    tiny, huge = (
        tuple(tuple(x * (i == j) for j in range(3)) for i in range(3)) for x in (1e-12, 1e9)
    )
    mote = dataclasses.replace(
        solo.drones[0],
        mass_kg=1e-9,
        inertia_kg_m2=tiny,
        cable_attachment_m=(0.0, 0.0, 0.0),
        rotors=tuple(dataclasses.replace(r, drag_n_s2_m_rad=0.0) for r in solo.drones[0].rotors),
    )
    load = dataclasses.replace(solo.load, mass_kg=1e9, inertia_kg_m2=huge)
    return dataclasses.replace(solo, load=load, cables=(cable,), drones=(mote,))


@compiled()
def one_step(address, step_s):
    return step(record_at(address, SYSTEM), step_s)


class Rod:
    """A rod below a load that does not move."""

    def __init__(self, step_s=1e-3, angle_rad=0.0, gravity=G, mass_kg=1.0, **joint):
        system = rod_system(mass_kg, **joint)
        self.step_s, self.gravity, self.mass_kg = step_s, gravity, mass_kg
        self.memory, self.records = build_records(
            system,
            build_tree(system),
            gravity_m_s2=gravity,
            ground_height_enu_m=None,
            ahead_s=0.004,
        )
        self.records.bodies["drag"] = 0.0
        self.records.wrench_enu[0, 5] = gravity * system.load.mass_kg
        self.records.angle[FIRST] = np.pi + angle_rad

    @property
    def angle_rad(self):
        """Angle of the first axis from straight down."""
        return self.records.angle[FIRST] - np.pi

    @property
    def rate_rad_s(self):
        return self.records.rate[FIRST]

    @property
    def energy_j(self):
        """Of the rod, from straight down."""
        height = 0.5 * (1.0 - np.cos(self.angle_rad))
        return self.mass_kg * (self.rate_rad_s**2 / 6.0 + self.gravity * height)

    def step(self):
        one_step(self.memory.ctypes.data, self.step_s)

    def run(self, duration_s):
        """Angle, rate and energy at every step, the start included, (steps + 1, 3)."""
        rows = []
        for k in range(round(duration_s / self.step_s) + 1):
            if k:
                self.step()
            rows.append((self.angle_rad, self.rate_rad_s, self.energy_j))
        return np.array(rows)


class ExactRod(Rod):
    """The same in DART, which solves friction as a constraint."""

    def __init__(self, step_s=1e-3, angle_rad=0.0, **joint):
        super().__init__(step_s, angle_rad, **joint)
        tree = build_tree(rod_system(**joint))
        self.skeleton = build_skeleton(tree, friction_as_constraint=True)
        self.skeleton.getJoint(0).setActuatorType(dartpy.dynamics.ActuatorType.LOCKED)
        self.skeleton.setPosition(FIRST, np.pi + angle_rad)
        self.world = build_world(self.skeleton, step_s, G)

    def step(self):
        self.world.step()
        self.records.angle[:] = self.skeleton.getPositions()
        self.records.rate[:] = self.skeleton.getVelocities()


def peaks(record):
    """Angles at which the rod turns round while it swings, with their sign."""
    turns = np.flatnonzero(np.diff(np.sign(record[:, 1])) != 0) + 1
    return record[turns[turns > 1], 0]


@pytest.mark.parametrize("step_s", [1e-3, 4e-3])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_rod_sticks_and_creeps_as_the_regularisation_says(share, step_s):
    """Below tau_f the rod creeps with w = w_s r / sqrt(1 - r^2), r = torque / tau_f.

    (About w_s r for small shares r.) In 5 s that is 0.02, 0.05 and 0.11 rad.
    """
    start, duration = 0.3, 5.0
    friction = K * np.sin(start) / share

    def creep(_, angle):
        r = K * np.sin(angle) / friction
        return -STICK_RATE_RAD_S * r / np.sqrt(1.0 - r**2)

    expected = start - solve_ivp(creep, (0.0, duration), [start], rtol=1e-9).y[0, -1]
    rod = Rod(step_s, start, friction_n_m=friction)
    moved = start - rod.run(duration)[-1, 0]
    assert moved == pytest.approx(expected, rel=0.01)
    assert moved < 0.12
    exact = ExactRod(step_s, start, friction_n_m=friction)
    assert abs(exact.run(1.0)[-1, 0] - start) < 1e-6, "DART's own friction holds it still"


@pytest.mark.parametrize("step_s", [1e-3, 4e-3])
def test_rod_slips_and_comes_to_rest_within_the_dead_band(step_s):
    friction = 0.3
    record = Rod(step_s, 0.5, friction_n_m=friction).run(6.0)
    assert np.ptp(record[:, 0]) > 0.8, "it must slip to the other side"
    dead_band = np.arcsin(friction / K)
    rest = record[-round(1.0 / step_s) :]
    assert np.abs(rest[:, 0]).max() < dead_band
    assert np.abs(rest[:, 1]).max() < STICK_RATE_RAD_S


@pytest.mark.parametrize("step_s", [1e-3, 4e-3])
def test_each_half_swing_loses_the_closed_form_of_amplitude(step_s):
    """Small swings under Coulomb friction shrink by 2 tau_f / k at each turn, whatever their size.

    Only swings whose peak rate is far above w_s; measured within 0.7 %.
    """
    friction = 0.04
    sizes = np.abs(peaks(Rod(step_s, 0.2, friction_n_m=friction).run(10.0)))
    sizes = np.concatenate([[0.2], sizes[sizes > 0.05]])
    assert len(sizes) == 10
    assert -np.diff(sizes) == pytest.approx(np.full(9, 2.0 * friction / K), rel=0.025)


@pytest.mark.parametrize("step_s", [1e-3, 4e-3])
def test_rod_follows_darts_exact_friction(step_s):
    """Until the swing has died away; measured 1.8 % of the first amplitude at most."""
    records = [kind(step_s, 0.2, friction_n_m=0.04).run(8.0)[:, 0] for kind in (Rod, ExactRod)]
    gap = np.abs(records[0] - records[1])
    assert gap.max() < 0.03 * 0.2
    without = Rod(step_s, 0.2).run(8.0)[:, 0]
    assert np.abs(without - records[1]).max() > 0.1, "friction must matter in this test"


def test_friction_does_not_depend_on_the_step():
    """The swing's amplitudes at 1 ms and 4 ms; measured within 0.0001 rad."""
    fine, coarse = (peaks(Rod(step, 0.2, friction_n_m=0.04).run(9.0))[:10] for step in (1e-3, 4e-3))
    assert fine == pytest.approx(coarse, abs=5e-4)


@pytest.mark.parametrize("step_s", [1e-3, 4e-3])
@pytest.mark.parametrize("friction", [0.04, 0.3, 3.0])
def test_energy_never_grows(friction, step_s):
    record = Rod(step_s, 0.5, friction_n_m=friction).run(6.0)
    lost = record[0, 2] - record[:, 2]
    # The integrator itself, without friction, lets the energy swing by 1e-5 J in a step.
    assert np.diff(lost).min() > -1e-5
    assert lost[-1] > 0.01


def test_friction_joins_the_joints_own_damping():
    """Viscous damping c alone decays with c / 2I; with friction the loss per turn adds up."""
    damping = 0.02
    plain = np.abs(peaks(Rod(1e-3, 0.2, damping_n_m_s_rad=damping).run(4.0)))
    both = np.abs(peaks(Rod(1e-3, 0.2, damping_n_m_s_rad=damping, friction_n_m=0.02).run(4.0)))
    period = 2.0 * np.pi / np.sqrt(K / (1.0 / 3.0))
    decay = np.exp(-damping / (2.0 / 3.0) * period / 2.0)
    assert plain[1] / plain[0] == pytest.approx(decay, rel=0.002)
    # Constant loss and decay in one swing: a' = a d - (tau_f / k) (1 + d).
    expected = both[0] * decay - 0.02 / K * (1.0 + decay)
    assert both[1] == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize("own", [None, 0.004])
def test_a_cable_turns_about_itself_with_a_damping_of_its_own(own):
    """Of a hanging cylinder, I = m r^2 / 2: its turn comes to rest after I w / c. Default: c."""
    joint, inertia, radius_m = 0.02, 0.5 * 0.1**2, 0.1
    base = rod_system(damping_n_m_s_rad=joint)
    rod = dataclasses.replace(
        base.cables[0], radius_m=radius_m, twist="free", twist_damping_n_m_s_rad=own
    )
    system = dataclasses.replace(base, cables=(rod,))
    memory, records = build_records(
        system, build_tree(system), gravity_m_s2=0.0, ground_height_enu_m=None, ahead_s=0.004
    )
    records.bodies["drag"] = 0.0
    records.rate[FIRST] = 2.0
    for _ in range(1000):
        one_step(memory.ctypes.data, 0.004)
    damping = joint if own is None else own
    angle = own_positions_of(records)[FIRST]
    turned = inertia * 2.0 / damping * (1.0 - np.exp(-damping / inertia * 4.0))
    assert angle == pytest.approx(turned, rel=1e-3)


def pushed(friction, exact):
    """Three-link trio whose load is pushed and turned: places of all bodies over 0.5 s."""
    system = trio({"damping_n_m_s_rad": 2e-4, "friction_n_m": friction}, links=3)
    plant, speeds, rest = hovering_plant(system, physics_step_s=1e-3, ground_height_enu_m=None)
    if exact:
        plant = DartPlant(
            system, rest.configuration, rotor_speed_rad_s=speeds, physics_step_s=2.5e-4,
            exact_friction=True, ground_height_enu_m=None,
        )  # fmt: skip
    rates = np.zeros(plant.tree.n_coordinates)
    rates[2:5] = 3.0, 0.5, 0.3
    plant.start_moving(rates)
    places = []
    for _ in range(125):
        advance(plant, speeds)
        places.append(plant.records.bodies["position"].copy())
    return np.array(places)


@pytest.mark.parametrize("friction", [0.005, 0.02, 0.1])
def test_plant_with_friction_follows_darts_exact_friction(friction):
    """Measured: 0.7, 1.4 and 5.9 mm off, where friction makes a difference of 8, 27 and 111 mm."""

    def gap_mm(a, b):
        return 1e3 * np.linalg.norm(a - b, axis=-1).max()

    exact = pushed(friction, exact=True)
    assert gap_mm(pushed(friction, exact=False), exact) < 0.15 * gap_mm(
        pushed(0.0, exact=False), exact
    )


BASE = {"damping_n_m_s_rad": 0.003, "stiffness_n_m_rad": 0.02}


class TestStops:
    """A weightless rod of 10 g and 1 m that turns about its second axis."""

    def turned(self, moment, step_s=4e-3, duration_s=4.0, rod=None, **changes):
        rod = rod or Rod(step_s, gravity=0.0, mass_kg=0.01, **{**BASE, **changes})
        angles = []
        for _ in range(round(duration_s / step_s)):
            axis = rod.records.coordinates["axis"][SECOND]
            rod.records.bodies["wrench"]["moment"][1] = moment * axis
            rod.step()
            angles.append(rod.records.angle[SECOND])
        return rod, np.array(angles)

    @pytest.mark.parametrize("step_s", [1e-3, 4e-3])
    @pytest.mark.parametrize("side", [1.0, -1.0])
    def test_stop_holds_the_second_axis(self, side, step_s):
        """At rest the stop's spring balances the moment: 60 degrees + moment / stiffness."""
        moment = 0.1
        _, angles = self.turned(side * moment, step_s)
        stiffness = BASE["stiffness_n_m_rad"] + STOP_STIFFNESS_N_M_RAD
        expected = (moment + STOP_STIFFNESS_N_M_RAD * STOP_RAD) / stiffness
        assert side * angles[-1] == pytest.approx(expected, rel=1e-4)
        assert np.abs(angles).max() < np.radians(75.0), "clear of the singularity, overshoot too"

    @pytest.mark.parametrize("side", [1.0, -1.0])
    def test_stop_lets_go(self, side):
        rod, _ = self.turned(side * 0.5)
        _, angles = self.turned(-side * 0.01, rod=rod, duration_s=20.0)
        # Moment against the joint's own spring alone.
        assert angles[-1] == pytest.approx(-side * 0.01 / 0.02, rel=0.01)

    @pytest.mark.parametrize(("step_s", "slack"), [(1e-4, 0.01), (1e-3, 0.08), (4e-3, 0.3)])
    def test_rod_bounces_off_the_stops_with_less_speed(self, step_s, slack):
        """Half an oscillation at the stop leaves exp(-pi zeta) of the speed, coarse steps less."""
        rod = Rod(step_s, gravity=0.0, mass_kg=0.01)
        rod.records.rate[SECOND] = 5.0
        free = []  # rates between the stops
        for _ in range(round(1.2 / step_s)):
            rod.step()
            rate = rod.records.rate[SECOND]
            if abs(rod.records.angle[SECOND]) < 0.5 and (not free or rate * free[-1] < 0.0):
                free.append(rate)
        inertia = 0.01 / 3.0
        # The damper acts at the stop only and the spring starts from rest there.
        ratio = STOP_DAMPING_N_M_S_RAD / (2.0 * np.sqrt(STOP_STIFFNESS_N_M_RAD * inertia))
        bounce = -np.array(free[1:]) / np.array(free[:-1])
        assert free[0] == pytest.approx(5.0, rel=1e-6)
        assert len(bounce) >= 2
        expected = np.exp(-np.pi * ratio / np.sqrt(1.0 - ratio**2))
        assert (bounce < expected * 1.005).all()
        assert (bounce > expected * (1.0 - slack)).all()

    def test_first_axis_has_no_stop(self):
        rod = Rod(1e-3, gravity=0.0, mass_kg=0.01)
        rod.records.rate[FIRST] = 5.0
        for _ in range(1000):
            rod.step()
        assert rod.records.rate[FIRST] == pytest.approx(5.0, rel=1e-6)
        assert rod.angle_rad == pytest.approx(5.0, rel=1e-6)
