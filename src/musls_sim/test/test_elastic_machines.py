"""Machines of many winches and pulleys: crane, motion suspension rig, equaliser, hoist."""

import numpy as np
import pytest
from elastic_machines import CRANE_LOAD_KG, crane_engine, gravity_rig, line
from elastic_rigs import anchor, period_of, point_mass, pulley, run, winch

from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig

G = 9.80665


def test_crane_hangs_at_rest_and_hoists_with_half_the_rope_speed():
    engine, row, _ = crane_engine()
    assert [len(engine.rig.cables), len(engine.rig.pulleys), len(engine.rig.winches)] == [9, 6, 1]
    assert sum(k.segments for k in engine.rig.cables) == 70
    engine.paths = {}
    start = engine.body(row["load"], "position").copy()
    run(engine, 0.5)
    assert engine.body(row["load"], "position") == pytest.approx(start, abs=1e-5)
    falls = [engine.tensions_n(2)[-1], engine.tensions_n(3)[0]]
    assert falls[0] == pytest.approx(falls[1], rel=1e-3)
    frame = sum(engine.holding_wrench(b)[:3] for b in range(len(engine.rig.bodies) - 1))
    assert frame == pytest.approx([0.0, 0.0, engine.rig.mass_kg * G], rel=1e-4, abs=1.0)
    assert engine.drive_nm[0] == pytest.approx(-0.25 * engine.tensions_n(0)[0], rel=5e-3)
    for k in range(500):
        engine.feed[0] = -2.0 * np.clip(np.array([k, k + 1]) / 250.0, 0.0, 1.0)
        engine.advance()
    assert engine.body(row["load"], "velocity")[2] == pytest.approx(0.5 * 2.0 * 0.25, rel=0.01)
    lifted = CRANE_LOAD_KG * G * (engine.body(row["load"], "position")[2] - start[2])
    assert engine.sums["work"] == pytest.approx(lifted, rel=0.05)
    assert abs(engine.missing_energy_j()) < 1e-3 * lifted


@pytest.mark.slow
def test_crane_sways_as_a_pendulum_after_its_trolley_has_driven():
    """Period 2 pi sqrt(L / g), L from trolley to centre of the load; the main rope is one line."""
    engine, row, _ = crane_engine()
    lengths = sum(engine.length_m(k) for k in range(5))
    run(engine, 6.2)
    x = []
    for _ in range(4500):
        engine.advance()
        x.append(engine.body(row["load"], "position")[0] - 15.0)
    falls = engine.length_m(2) + engine.length_m(3)
    length = 0.5 * falls + 0.8
    amplitude = np.max(x) / length
    expected = 2.0 * np.pi * np.sqrt(length / G) * (1.0 + amplitude**2 / 16.0)
    assert period_of(np.array(x), 0.004) == pytest.approx(expected, rel=0.03)
    assert sum(engine.length_m(k) for k in range(5)) == pytest.approx(lengths, abs=1e-12)
    assert engine.refined_periods == 0


def test_gravity_rig_pulls_in_proportion_to_its_torques():
    """4 N m and 8 N m: ratio 2.00; F = 4 (tau / r) cos(angle) less the weight of ring and rope."""
    rig, rise = gravity_rig()
    assert [len(rig.cables), len(rig.pulleys), len(rig.winches)] == [9, 4, 4]
    assert sum(k.segments for k in rig.cables) == 57
    engine = Engine(rig)
    forces = []
    for torque in (4.0, 8.0):
        engine.feed[:] = -torque
        run(engine, 4.0)
        forces.append(-engine.holding_wrench(9)[2])
        assert abs(engine.rate_rad_s).max() < 1e-2
    assert forces[1] / forces[0] == pytest.approx(2.0, rel=0.01)
    assert (forces[1] - forces[0]) / 4.0 == pytest.approx(4.0 / 0.11 * rise, rel=1e-3)
    assert abs(engine.holding_wrench(9)[:2]).max() < 1e-6


def equaliser(one_line):
    """A load in one line (or two lines) below two holders 2 m apart."""
    points = [np.array([-1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])]
    load = np.array([0.0, 0.0, -1.5])
    cables = [line((2, k), (load, p), 6, 6.0, 1e5, 8e-3) for k, p in enumerate(points)]
    for cable in cables:
        cable.damping_n_s = 24.0
    body = point_mass(load, 1.0)
    body.drag_n_s_m = np.full(3, 0.3)
    pulleys = [pulley((0, 0), (1, 0), radius_m=0.03, inertia=1e-5)] if one_line else []
    engine = Engine(Rig([anchor(points[0]), anchor(points[1]), body], cables, pulleys=pulleys))
    engine.relax()

    def lags(t):
        """One holder sinks by 0.4 m within 1 s."""
        s = np.clip(t, 0.0, 1.0)
        out = np.zeros(18)
        out[:3] = points[1] - [0.0, 0.0, 0.4 * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)]
        out[5] = -0.4 * 30.0 * s**2 * (1.0 - s) ** 2
        out[8] = -0.4 * 60.0 * s * (1.0 - 3.0 * s + 2.0 * s**2)
        return out

    engine.paths = {1: lambda begin, end: np.array([lags(begin), lags(end)])}
    return engine


def test_equaliser_shares_the_load_though_one_holder_lags():
    """With a pulley both pull alike all the time; with two lines one carries more."""
    spread = []
    for one_line in (True, False):
        engine = equaliser(one_line)
        worst = 0.0
        for _ in range(500):
            engine.advance()
            a, b = (engine.tensions_n(k)[0] for k in (0, 1))
            worst = max(worst, abs(a - b) / (a + b))
        spread.append(worst)
    assert spread[0] < 5e-3
    assert spread[1] > 0.1


@pytest.mark.parametrize("segments", [2, 5])
def test_relax_finds_the_place_of_a_pulley(segments):
    """A load on a pulley in a line between two points: the ellipse's lowest point, no inertia."""
    points = [np.array([-1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.4])]
    load = np.array([0.2, 0.0, -1.2])
    cables = [line((2, k), (load, p), segments, 6.0, 1e5, 1e-3) for k, p in enumerate(points)]
    body = point_mass(load, 1.0)
    wheel = pulley((0, 0), (1, 0), radius_m=0.03, inertia=1e-5)
    engine = Engine(Rig([anchor(points[0]), anchor(points[1]), body], cables, pulleys=[wheel]))
    assert engine.relax() < 1e-5
    total = sum(engine.length_m(k) for k in (0, 1))
    half = np.arcsin(2.0 / total)  # both sides have one slope: total sin(half) is the distance
    tension = G / (2.0 * np.cos(half))
    for k in (0, 1):
        assert engine.tensions_n(k)[0] == pytest.approx(tension, rel=2e-3)


def test_a_winch_lowers_a_box_to_the_ground_and_goes_slack():
    """A hoist: the box stands, the line is slack, and the winch carries nothing."""
    box = point_mass((0.0, 0.0, 0.6), 0.5)
    box.inertia_kg_m2 = 1e-3 * np.eye(3)
    signs = [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    box.corners_m = 0.1 * np.array(signs)
    cable = line((0, 1), ((0, 0, 2.0), (0, 0, 0.7)), 6, 5.0, 1e5, 8e-3,
                 points=((0, 0, 0), (0, 0, 0.1)))  # fmt: skip
    cable.damping_n_s = 24.0
    rig = Rig([anchor((0, 0, 2.0)), box], [cable], ground_height_enu_m=0.0,
              winches=[winch(0, 0, stored_m=2.0)])  # fmt: skip
    engine = Engine(rig)
    engine.relax()
    for k in range(1000):
        engine.feed[0] = 0.25 * np.clip(np.array([k, k + 1]) / 100.0, 0.0, 1.0)
        engine.advance()
    assert engine.body(1, "position")[2] == pytest.approx(0.1, abs=1e-3)
    assert engine.tensions_n(0)[-1] < 0.1
    assert abs(engine.drive_nm[0]) < 0.25
    assert engine.refined_periods < 20
