"""Coulomb friction and stops of the cable joints: a single rod that hangs from a fixed load.

The rod's first axis swings it in a vertical plane: with mass m and length l gravity turns it with
k sin(theta), k = m g l / 2, and friction resists with at most tau_f.
"""

import dataclasses

import dartpy
import numpy as np
import pytest
from plant_helpers import advance, energy, hovering_plant, trio
from scipy.integrate import solve_ivp

from musls_description.library import load_system
from musls_description.tree import build_tree
from musls_sim.plants.rigid_links.dart import (
    CHANGE,
    DAMPING_N_M_S_RAD,
    STICK_RATE_RAD_S,
    STIFFNESS_N_M_RAD,
    STOP_RAD,
    JointForces,
    build_skeleton,
    build_world,
)
from musls_sim.plants.rigid_links.tables import Tables

G = 9.81
K = G / 2.0
"""Gravity's stiffness of a rod of 1 kg and 1 m [N m]."""

FIRST, SECOND = 6, 7  # coordinates of the rod's two axes, after the load's six


class Rod:
    """A rod below a load that does not move, with the plant's friction and stops."""

    def __init__(self, step_s=1e-3, angle_rad=0.0, exact=False, gravity=G, mass_kg=1.0, **joint):
        solo = load_system("x500_solo")
        cable = dataclasses.replace(
            solo.cables[0],
            mass_kg=mass_kg,
            length_m=1.0,
            radius_m=1e-4,
            links=1,
            joint=dataclasses.replace(solo.cables[0].joint, **{"damping_n_m_s_rad": 0.0, **joint}),
        )
        mote = dataclasses.replace(
            solo.drones[0],
            mass_kg=1e-9,
            inertia_kg_m2=tuple(tuple(1e-12 * (i == j) for j in range(3)) for i in range(3)),
            cable_attachment_m=(0.0, 0.0, 0.0),
        )
        system = dataclasses.replace(solo, cables=(cable,), drones=(mote,))
        tree = build_tree(system)
        self.skeleton = build_skeleton(tree, friction_as_constraint=exact)
        self.skeleton.getJoint(0).setActuatorType(dartpy.dynamics.ActuatorType.LOCKED)
        self.joint = self.skeleton.getJoint(1)
        self.skeleton.setPosition(FIRST, np.pi + angle_rad)
        self.world = build_world(self.skeleton, step_s, gravity)
        tables = Tables(system, tree, regularised_friction=not exact)
        self.joints = JointForces(self.skeleton, tree, tables.views)

    @property
    def angle_rad(self):
        """Angle of the first axis from straight down."""
        return self.skeleton.getPosition(FIRST) - np.pi

    def step(self):
        """One physics step, as `DartPlant` makes it."""
        self.joints.apply(self.skeleton.getPositions(), self.skeleton.getVelocities())
        self.world.step()

    def run(self, duration_s):
        """Angle, rate and energy at every step, the start included, (steps + 1, 3)."""
        rows = []
        for k in range(round(duration_s / self.world.getTimeStep()) + 1):
            if k:
                self.step()
            rate = self.skeleton.getVelocity(FIRST)
            rows.append((self.angle_rad, rate, energy(self)))
        return np.array(rows)


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
    exact = Rod(step_s, start, exact=True, friction_n_m=friction)
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
    records = [
        Rod(step_s, 0.2, exact=exact, friction_n_m=0.04).run(8.0)[:, 0] for exact in (False, True)
    ]
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


def pushed(friction, exact):
    """Three-link trio whose load is pushed and turned: places of all bodies over 0.5 s."""
    system = trio({"damping_n_m_s_rad": 2e-4, "friction_n_m": friction}, links=3)
    plant, speeds, _ = hovering_plant(
        system, physics_step_s=1e-3, exact_friction=exact, ground_height_enu_m=None
    )
    rates = np.zeros(plant.skeleton.getNumDofs())
    rates[2:5] = 3.0, 0.5, 0.3
    plant.skeleton.setVelocities(rates)
    plant.read_motion()
    places = []
    for _ in range(125):
        advance(plant, speeds)
        places.append(plant.tables.motion[:, 9:12].copy())
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
            rod.skeleton.setCommand(SECOND, moment)
            rod.step()
            angles.append(rod.skeleton.getPosition(SECOND))
        return rod, np.array(angles)

    def values(self, rod):
        joint = rod.joint
        return [
            [joint.getSpringStiffness(a), joint.getDampingCoefficient(a), joint.getRestPosition(a)]
            for a in range(2)
        ]

    @pytest.mark.parametrize("step_s", [1e-3, 4e-3])
    @pytest.mark.parametrize("side", [1.0, -1.0])
    def test_stop_holds_the_second_axis(self, side, step_s):
        """At rest the stop's spring balances the moment: 60 degrees + moment / stiffness."""
        moment = 0.1
        rod, angles = self.turned(side * moment, step_s)
        expected = STOP_RAD + moment / STIFFNESS_N_M_RAD
        assert side * angles[-1] == pytest.approx(expected, rel=1e-4)
        assert np.abs(angles).max() < np.radians(75.0), "clear of the singularity, overshoot too"
        base = [BASE["stiffness_n_m_rad"], BASE["damping_n_m_s_rad"]]
        first, second = self.values(rod)
        assert first == [*base, 0.0]
        assert second == [STIFFNESS_N_M_RAD, base[1] + DAMPING_N_M_S_RAD, side * STOP_RAD]

    @pytest.mark.parametrize("side", [1.0, -1.0])
    def test_stop_lets_go(self, side):
        rod, _ = self.turned(side * 0.5)
        held = self.values(rod)
        _, angles = self.turned(-side * 0.01, rod=rod, duration_s=20.0)
        assert self.values(rod) != held
        base = [BASE["stiffness_n_m_rad"], BASE["damping_n_m_s_rad"], 0.0]
        assert self.values(rod) == [base, base]
        # Moment against the joint's own spring alone.
        assert angles[-1] == pytest.approx(-side * 0.01 / 0.02, rel=0.01)

    @pytest.mark.parametrize(("step_s", "slack"), [(1e-4, 0.01), (1e-3, 0.08), (4e-3, 0.3)])
    def test_rod_bounces_off_the_stops_with_less_speed(self, step_s, slack):
        """Half an oscillation at the stop leaves exp(-pi zeta) of the speed, coarse steps less."""
        rod = Rod(step_s, gravity=0.0, mass_kg=0.01)
        rod.skeleton.setVelocity(SECOND, 5.0)
        free = []  # rates between the stops
        for _ in range(round(1.2 / step_s)):
            rod.step()
            rate = rod.skeleton.getVelocity(SECOND)
            if abs(rod.skeleton.getPosition(SECOND)) < 0.5 and (not free or rate * free[-1] < 0.0):
                free.append(rate)
        inertia = 0.01 / 3.0
        # The damper acts at the stop only and the spring starts from rest there.
        ratio = DAMPING_N_M_S_RAD / (2.0 * np.sqrt(STIFFNESS_N_M_RAD * inertia))
        bounce = -np.array(free[1:]) / np.array(free[:-1])
        assert free[0] == pytest.approx(5.0, rel=1e-6)
        assert len(bounce) >= 2
        expected = np.exp(-np.pi * ratio / np.sqrt(1.0 - ratio**2))
        assert (bounce < expected * 1.005).all()
        assert (bounce > expected * (1.0 - slack)).all()

    def test_first_axis_has_no_stop(self):
        rod = Rod(1e-3, gravity=0.0, mass_kg=0.01)
        rod.skeleton.setVelocity(FIRST, 5.0)
        for _ in range(1000):
            rod.step()
        assert rod.skeleton.getVelocity(FIRST) == pytest.approx(5.0, rel=1e-6)
        assert rod.angle_rad == pytest.approx(5.0, rel=1e-6)

    def test_stop_keeps_its_damper_in_a_joint_with_friction(self):
        rod, _ = self.turned(0.5, friction_n_m=1e-3)
        rate = rod.skeleton.getVelocity(SECOND)
        rod.step()
        damping = rod.joint.getDampingCoefficient(1)
        friction = 1e-3 / np.hypot(rate, STICK_RATE_RAD_S)
        expected = BASE["damping_n_m_s_rad"] + DAMPING_N_M_S_RAD + friction
        assert damping == pytest.approx(expected, rel=CHANGE)
