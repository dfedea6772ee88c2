"""Exits that move, reeled loads, drivers in a chain, and cables that fall through the air."""

import numpy as np
import pytest
from elastic_rigs import G, anchor, frequencies, hanging_rig, mote, point_mass, run, straight, winch

from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig, RigCable

AIR_ACROSS, AIR_ALONG = 0.03, 0.004
"""Drag of a cable per length and squared speed."""


def moved(motion):
    """Path of a prescribed body from its position, velocity and acceleration at a time."""

    def path(begin, end):
        rows = np.zeros((2, 18))
        rows[:, :9] = [np.ravel(motion(time)) for time in (begin, end)]
        return rows

    return path


@pytest.mark.parametrize("law", [None, [(0.0, 0.0), (0.01, 50.0), (0.03, 400.0)]])
def test_a_new_line_keeps_a_share_of_its_largest_stretch_and_loses_that_share_of_the_work(law):
    """Pulled to e_m, released, pulled again: F_0((e - s e_m) / (1 - s)), work lost s W_0(e_m)."""
    share, most, ea = 0.25, 0.02, 1e4
    cable = RigCable(
        (0, 1), np.zeros((2, 3)), straight((0, 0, 0), (0, 0, -1), 1), 1.0, 1e-6, ea_n=ea, law=law,
        permanent_share=share,
    )  # fmt: skip
    rig = Rig([anchor(), anchor((0, 0, -1))], [cable], gravity_m_s2=0.0)
    engine, w = Engine(rig, period_s=2e-3), 2.0 * np.pi
    engine.paths[1] = moved(
        lambda t: np.multiply.outer(
            [1.0 + most / 2 * (1 - np.cos(w * t)), most / 2 * w * np.sin(w * t),
             most / 2 * w * w * np.cos(w * t)], [0.0, 0.0, -1.0])
    )  # fmt: skip
    run(engine, 0.5)
    once = engine.energy_j().sum() + engine.sums["loss_cables"]  # W_0
    for _ in range(500):
        engine.advance()
        strain = -engine.body(1, "position")[2] - 1.0
        if law is None:
            expected = max(0.0, ea * (strain - share * most) / (1.0 - share))
            assert engine.tensions_n(0)[0] == pytest.approx(expected, abs=1e-9)
    assert law is not None or once == pytest.approx(ea * most**2 / 2, rel=1e-4)
    assert engine.sums["loss_cables"] == pytest.approx(share * once, rel=1e-4)
    assert abs(engine.missing_energy_j()) < 1e-4 * once


def hung(direction, tip=1.0):
    """A mass on a light stiff line of 1 m from the origin."""
    end = np.array(direction, float)
    length = 1.0 / (1.0 + tip * G / 1e6)
    cable = RigCable(
        (0, 1), np.zeros((2, 3)), straight((0, 0, 0), end, 1), length, 1e-6, ea_n=1e6,
        damping_n_s=500.0,
    )  # fmt: skip
    return Rig([anchor(), point_mass(end, tip, 1e-6)], [cable], gravity_m_s2=G)


def test_an_exit_that_accelerates_swings_its_load_to_twice_the_steady_angle():
    """tan th = a / g at rest in the moving frame; from the vertical it gets to 2 th."""
    a = 3.0
    engine = Engine(hung((0, 0, -1)), period_s=0.002)
    engine.paths[0] = moved(lambda t: [[a * t * t / 2, 0, 0], [a * t, 0, 0], [a, 0, 0]])
    engine.restart()
    angles, tension = [], []
    for _ in range(500):
        engine.advance()
        x, _, z = engine.body(1, "position") - engine.body(0, "position")
        angles.append(np.arctan2(-x, -z))
        tension.append(engine.tensions_n(0)[0])
    steady = np.arctan2(a, G)
    assert max(angles) == pytest.approx(2.0 * steady, rel=1e-3)
    # Where it passes the steady angle: weight in the moving frame and (v^2 = 2 (1 - cos) g').
    weight = np.hypot(a, G)
    lowest = weight * (3.0 - 2.0 * np.cos(steady))
    assert max(tension) == pytest.approx(lowest, rel=2e-3)


def test_an_exit_that_accelerates_upwards_pulls_load_and_line():
    """T = (m + mu l) (g + a) at the exit."""
    a = 2.0
    rig = hanging_rig(5, mass=0.2, tip=1.0, ea=1e6, gravity=G + a)
    rig.gravity_m_s2 = G
    engine = Engine(rig)
    engine.paths[0] = moved(lambda t: [[0, 0, a * t * t / 2], [0, 0, a * t], [0, 0, a]])
    engine.restart()
    run(engine, 0.4)
    assert -engine.end_force_n(0, 0)[2] == pytest.approx(1.2 * (G + a), rel=1e-6)


def test_an_exit_on_a_circle_carries_a_conical_pendulum():
    """g tan th = w^2 (R + L sin th), T = m g / cos th."""
    radius, rate, angle = 0.3, 2.0, 0.0
    for _ in range(200):
        angle = np.arctan(rate**2 * (radius + np.sin(angle)) / G)
    out = radius + np.sin(angle)
    rig = hung((np.sin(angle), 0.0, -np.cos(angle)))
    cable = rig.cables[0]
    cable.nodes_enu_m += [radius, 0, 0]
    cable.length_m = 1.0 / (1.0 + G / np.cos(angle) / 1e6)
    for body, x in zip(rig.bodies, (radius, out), strict=True):
        body.position_enu_m[0] = x
        body.velocity_enu_m_s = np.array([0.0, rate * x, 0.0])
    cable.velocities_enu_m_s = np.array([[0.0, rate * radius, 0.0], [0.0, rate * out, 0.0]])

    def motion(time):
        ahead = np.array([np.cos(rate * time), np.sin(rate * time), 0.0])
        aside = np.array([-ahead[1], ahead[0], 0.0])
        return [radius * ahead, radius * rate * aside, -radius * rate**2 * ahead]

    engine = Engine(rig)
    engine.paths[0] = moved(motion)
    engine.restart()
    for _ in range(785):  # once round
        engine.advance()
        x, y, z = engine.body(1, "position")
        assert np.hypot(x, y) == pytest.approx(out, abs=1e-4)
        assert z == pytest.approx(-np.cos(angle), abs=1e-4)
    assert engine.tensions_n(0)[0] == pytest.approx(G / np.cos(angle), rel=1e-3)


def test_a_driver_as_a_body_accelerates_as_one_in_the_chain():
    """A mass in the middle of a line: a body between two cables, or a heavier node of one."""
    nodes = np.cumsum(np.vstack([np.zeros(3), np.tile([0.05, 0.03, -0.11], (8, 1))]), axis=0)
    nodes[1:, 1] += 0.02 * np.sin(np.arange(1, 9))
    steps = np.linalg.norm(np.diff(nodes, axis=0), axis=1)
    length, mass, driver = 0.97 * steps.sum(), 0.4, 0.755
    tip = point_mass(nodes[-1], 0.5)
    line = dict(ea_n=1e4, damping_n_s=2.0)
    whole = RigCable((0, 1), np.zeros((2, 3)), nodes, length, mass, **line)
    one = Engine(Rig([anchor(), tip], [whole], gravity_m_s2=G))
    one.tables.nodes[4]["mass"] += driver
    one.restart()
    halves = [
        RigCable(ends, np.zeros((2, 3)), part, length / 2, mass / 2, **line)
        for ends, part in (((0, 1), nodes[:5]), ((1, 2), nodes[4:]))
    ]
    bodies = [anchor(), point_mass(nodes[4], driver, 1e-3), point_mass(nodes[-1], 0.5)]
    two = Engine(Rig(bodies, halves, gravity_m_s2=G))
    assert two.body(1, "acceleration") == pytest.approx(
        one.tables.nodes[4]["acceleration"], rel=1e-8
    )
    assert two.body(2, "acceleration") == pytest.approx(one.body(1, "acceleration"), rel=1e-8)


def test_the_papers_rod_with_a_quarter_of_the_platform_sways_at_9_12_rad_s():
    """Clamped top, five elements with EI / l at the clamp, 50 g: 9.118 (rigid elements)."""
    rig = hanging_rig(
        5, length=0.75, mass=0.05, tip=0.125, ea=1.74673e6, slack=False, ei_n_m2=1.74673,
        clamps=(np.array([0.0, 0.0, -1.0]), None), clamp_factor=1.0,
    )  # fmt: skip
    assert frequencies(Engine(rig), 0, 1)[0] == pytest.approx(9.118, rel=5e-3)


def test_a_reeled_load_feels_the_change_of_the_rate():
    """T = m (g - l''), paid out ever faster; the exit holds the line, too."""
    rig = hung((0, 0, -1))
    rig.winches = [winch(0, 0, stored_m=5.0)]
    engine = Engine(rig)
    tension = []
    for k in range(250):
        engine.feed[0] = 1.5 * 0.004 * k, 1.5 * 0.004 * (k + 1)
        engine.advance()
        tension.append(engine.tensions_n(0)[0])
    assert np.mean(tension[50:]) == pytest.approx(G - 1.5, rel=1e-3)
    assert engine.length_m(0) == pytest.approx(rig.cables[0].length_m + 0.75, abs=1e-9)


@pytest.mark.parametrize("angle", [0.0, 40.0, 90.0])
def test_a_straight_cable_falls_towards_its_terminal_velocity(angle):
    """Across and along each for itself: v = V tanh(g t / V), mu g = c V^2; it stays straight."""
    lean = np.radians(angle)  # from the horizontal
    along = np.array([np.cos(lean), 0.0, -np.sin(lean)])
    across = np.array([-np.sin(lean), 0.0, -np.cos(lean)])
    density, length, segments = 0.01, 2.0, 6
    nodes = straight((0, 0, 0), length * along, segments)
    cable = RigCable(
        (0, 1), np.zeros((2, 3)), nodes, length, density * length, ea_n=1e3,
        drag_across_n_s2_m3=AIR_ACROSS, drag_along_n_s2_m3=AIR_ALONG,
    )  # fmt: skip
    engine = Engine(Rig([mote(nodes[0]), mote(nodes[-1])], [cable], gravity_m_s2=G))
    run(engine, 2.0)
    falling = np.zeros(3)
    for weight, drag, way in (
        (np.cos(lean), AIR_ACROSS, across), (np.sin(lean), AIR_ALONG, along),
    ):  # fmt: skip
        terminal = np.sqrt(max(density * G * weight, 1e-30) / drag)
        falling += terminal * np.tanh(G * weight * 2.0 / terminal) * way
    velocity = engine.nodes(0)["velocity"]
    assert velocity == pytest.approx(np.tile(falling, (segments + 1, 1)), abs=2e-3)
    # The air took what the fall gave and the motion has not.
    fallen = -engine.nodes_enu_m(0)[:, 2].mean() - length * np.sin(lean) / 2.0
    gone = density * length * (G * fallen - falling @ falling / 2.0)
    assert engine.sums["loss_air"] == pytest.approx(gone, rel=2e-3)
