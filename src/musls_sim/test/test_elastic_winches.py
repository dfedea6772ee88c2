"""Winches on elastic cables against closed forms."""

import itertools

import numpy as np
import pytest
from elastic_rigs import G, Y, anchor, hanging_rig, point_mass, run, straight, winch
from scipy.special import j1, jvp, y1, yvp

from musls_description.config.errors import ConfigError
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.output import momenta
from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable


def light_line(direction, length=1.0, mass=1e-6, ea=1e6, segments=1, tip=1.0, velocity=(0, 0, 0)):
    """A point mass on a light line from the origin, stretched by its weight."""
    stretch = 1.0 + tip * G / ea
    nodes = np.linspace(0.0, length * stretch, segments + 1)[:, None] * np.array(direction)
    cable = RigCable(
        (0, 1),
        np.zeros((2, 3)),
        nodes,
        length,
        mass,
        ea_n=ea,
        velocities_enu_m_s=np.linspace(0.0, 1.0, segments + 1)[:, None] * np.array(velocity),
    )
    body = point_mass(nodes[-1], tip)
    body.velocity_enu_m_s = np.array(velocity, float)
    return Rig([anchor(), body], [cable], gravity_m_s2=G)


def test_a_line_fed_at_a_constant_rate_feels_no_damper():
    """Damping works on rate of length minus rate of free length: else 24 kN here."""
    rig = light_line((0, 0, -1), velocity=(0, 0, -0.1 * (1.0 + G / 1e6)), segments=4, mass=0.1)
    rig.cables[0].damping_n_s = 2.4e5
    rig.winches = [winch(0, 0, stored_m=1.0)]
    engine = Engine(rig)
    engine.feed[:] = 0.1
    engine.restart()
    run(engine, 2.0)
    weights = G + (np.arange(4)[::-1] + 0.5) * 0.1 * engine.length_m(0) / 4 * G
    assert engine.length_m(0) == pytest.approx(1.2, abs=1e-12)
    assert engine.tensions_n(0) == pytest.approx(weights, rel=1e-4)
    stretch = np.sum(weights) / 4 * engine.length_m(0) / 1e6
    assert engine.body(1, "position")[2] == pytest.approx(-1.2 - stretch, abs=2e-6)


@pytest.mark.parametrize("segments", [1, 4])
@pytest.mark.parametrize("rate", [0.3, -0.2])
def test_reeling_pendulum_follows_bessel_functions(rate, segments):
    """l th'' + 2 l' th' + g th = 0 with l = 1 + v t."""
    angle = 0.01
    direction = np.array([np.sin(angle), 0.0, -np.cos(angle)])
    rig = light_line(direction, velocity=rate * direction, segments=segments)
    rig.winches = [winch(0, 0, stored_m=2.0)]
    engine = Engine(rig, period_s=0.002)
    engine.feed[:] = rate
    engine.restart()
    # th = z^-1 (A J1(z) + B Y1(z)), z = 2 sqrt(g l) / |v|
    z0 = 2.0 * np.sqrt(G) / abs(rate)
    value = np.array([[j1(z0), y1(z0)], [jvp(1, z0) - j1(z0) / z0, yvp(1, z0) - y1(z0) / z0]])
    a, b = np.linalg.solve(value, [angle * z0, 0.0])
    worst = 0.0
    for _ in range(1500):
        engine.advance()
        x, _, z = engine.body(1, "position")
        zl = 2.0 * np.sqrt(G * (1.0 + rate * engine.time_s)) / abs(rate)
        expected = (a * j1(zl) + b * y1(zl)) / zl
        worst = max(worst, abs(np.arctan2(x, -z) - expected))
    assert worst < 0.005 * angle


def swinging_feed(period, segments=4, ea=300.0, rate=0.4):
    """A heavy swinging line, paid out and reeled in smoothly."""
    direction = np.array([np.sin(0.5), 0.0, -np.cos(0.5)])
    rig = light_line(direction, mass=0.5, ea=ea, segments=segments, tip=0.7)
    rig.winches = [winch(0, 0, stored_m=1.0)]
    engine = Engine(rig, period_s=period)

    def wanted(t):
        return rate * np.sin(4.0 * t)

    for k in range(round(1.2 / period)):
        engine.feed[0] = wanted(k * period), wanted((k + 1) * period)
        engine.advance()
    return engine


def test_energy_audit_of_a_feed_closes_with_the_square_of_the_step():
    """Winch force times rate is an entry of the balance; heavy line, swinging, running."""
    engines = [swinging_feed(period) for period in (0.004, 0.002, 0.001)]
    missing = [abs(e.missing_energy_j()) for e in engines]
    assert abs(engines[-1].sums["work"]) > 0.5
    assert max(missing) < 3e-5  # of 4 J that went back and forth
    paths = [e.nodes_enu_m(0)[1:].copy() for e in engines]
    order = np.abs(paths[0] - paths[1]).max() / np.abs(paths[1] - paths[2]).max()
    assert order == pytest.approx(4.0, rel=0.3)


def test_the_force_of_a_feed_is_the_tension_at_the_exit():
    """At rest weight of load and line; while it runs evenly the line below does not know it."""
    rig = hanging_rig(6, mass=0.6, tip=1.0, ea=1e6)
    rig.winches = [winch(0, 0, stored_m=1.0)]
    engine = Engine(rig)
    engine.advance()
    assert engine.drive_nm[0] == pytest.approx(-1.6 * G, rel=1e-5)
    assert -engine.end_force_n(0, 0)[2] == pytest.approx(1.6 * G + 0.6 * G, rel=1e-5)  # with wound


def free_winch(period=0.004, inertia=0.0, axis=None, kind="feed", torque=False):
    """Two free bodies without gravity, one with a winch, turning about each other."""
    bodies = [
        RigBody(mass_kg=m, inertia_kg_m2=np.diag([0.02, 0.03, 0.025]) * m, position_enu_m=p)
        for m, p in ((2.0, np.array([0.0, 0.0, 0.0])), (1.0, np.array([1.2, 0.0, 0.0])))
    ]
    bodies[1].velocity_enu_m_s = np.array([0.05, 0.5, 0.3])
    points = np.array([[0.1, 0.0, 0.05], [-0.1, 0.0, 0.0]])
    nodes = straight((0.1, 0, 0.05), (1.1, 0, 0), 5)
    velocities = np.linspace(np.zeros(3), bodies[1].velocity_enu_m_s, 6)
    cable = RigCable((0, 1), points, nodes, 1.0, 0.4, ea_n=200.0, velocities_enu_m_s=velocities)
    drum = {"radius_m": 0.05, "inertia": inertia, "axis": axis if axis is None else tuple(axis)}
    winches = [winch(0, 0, kind, 1.0, **(drum if kind == "drum" else {}))]
    by_rate = () if torque else (0,)
    rig = Rig(bodies, [cable], gravity_m_s2=0.0, winches=winches, by_rate=by_rate)
    return Engine(rig, period_s=period)


@pytest.mark.parametrize("kind", ["feed", "drum"])
def test_momenta_of_a_free_system_with_a_winch(kind):
    """Mass is conserved (wound cable sits at the exit), momentum of second order in the step."""
    errors, mass = [], []
    for period in (0.004, 0.002, 0.001):
        engine = free_winch(period, 2e-3, Y, kind, torque=kind == "drum")
        linear, angular = momenta(engine.tables)
        mass.append(engine.tables.nodes["mass"].sum())
        for k in range(round(0.4 / period)):
            t = np.array([k, k + 1]) * period
            engine.feed[0] = 0.3 * np.sin(5.0 * t) if kind == "feed" else -0.2 * np.sin(5.0 * t)
            engine.advance()
        assert abs(engine.angle_rad[0]) > 0.05
        mass.append(engine.tables.nodes["mass"].sum())
        now = momenta(engine.tables)
        errors.append([np.abs(now[0] - linear).max(), np.abs(now[1] - angular).max()])
    assert mass == pytest.approx([0.8] * 6, abs=1e-12)
    errors = np.array(errors)
    assert errors[0, 0] < 1e-3 * 0.58
    assert errors[0, 1] < 0.01 * 0.6
    assert (errors[:-1] / errors[1:] > 3.0).all()


def test_reeling_in_and_running_out_end_in_a_stop():
    """One segment's worth is left at one end, all cable is out at the other."""
    for kind, by_rate in (("feed", True), ("drum", True), ("drum", False)):
        rig = hanging_rig(10, mass=0.1, tip=1.0, ea=1e4, damping_n_s=30.0)
        rig.winches = [winch(0, 0, kind, 0.2, *((0.1, 0.01) if kind == "drum" else ()))]
        rig.by_rate = (0,) if by_rate else ()
        engine = Engine(rig)
        engine.feed[:] = -0.4 if kind == "feed" else (-4.0 if by_rate else -2.0)
        engine.restart()
        assert engine.halted[0] == 0.0
        run(engine, 3.0)
        left = engine.length_m(0)
        assert engine.halted[0] == -1.0, (kind, by_rate)
        assert left == pytest.approx(0.1, abs=1e-12 if by_rate else 1e-3)
        assert abs(engine.rate_rad_s[0]) < 1e-3
        assert engine.body(1, "position")[2] == pytest.approx(-left, abs=2e-3)
        engine.feed[:] = 0.4 if kind == "feed" else (4.0 if by_rate else 0.0)
        run(engine, 6.0)
        assert engine.halted[0] == 1.0, (kind, by_rate)
        assert engine.length_m(0) == pytest.approx(1.2, abs=1e-12 if by_rate else 2e-3)
        assert engine.body(1, "position")[2] == pytest.approx(-1.2, abs=5e-3)
        assert engine.tensions_n(0)[-1] == pytest.approx(1.005 * G, rel=0.02)


def test_a_winch_on_no_cable_is_refused():
    rig = hanging_rig(2)
    rig.winches = [winch(3, 0)]
    with pytest.raises(ConfigError, match="no end 1 of cable 4"):
        Engine(rig)


# ---------- Drums


def drum(
    radius=0.1, inertia=0.02, tip=1.0, mass=1e-6, ea=1e6, segments=1, by_rate=False, **options
):
    """A drum at the origin with a mass on its cable."""
    rig, stored_m = hanging_rig(segments, mass=mass, tip=tip, ea=ea), options.pop("stored_m", 5.0)
    rig.winches = [winch(0, 0, "drum", stored_m, radius, inertia, **options)]
    rig.by_rate = (0,) if by_rate else ()
    return rig


def test_free_drum_falls_with_its_inertia():
    """a = g / (1 + J / (M r^2)) from rest."""
    engine = Engine(drum())
    start = engine.body(1, "position")[2]
    run(engine, 0.5)
    a = G / (1.0 + 0.02 / (1.0 * 0.1**2))
    assert engine.body(1, "position")[2] - start == pytest.approx(-0.5 * a * 0.25, rel=2e-3)
    assert engine.rate_rad_s[0] == pytest.approx(a * 0.5 / 0.1, rel=2e-3)
    assert abs(engine.missing_energy_j()) < 1e-3


@pytest.mark.parametrize("segments", [1, 3, 12])
def test_free_drum_with_a_heavy_cable_lets_all_of_it_run(segments):
    """Load, free and wound cable move as one: (M + mu (L + x)) g = (M + mu L_total* + J / r^2) a.

    Wound cable does not turn with the drum here, so that the moving mass grows: energy balance.
    """
    engine = Engine(drum(mass=0.5, segments=segments, ea=1e6))
    run(engine, 0.4)
    out = engine.length_m(0) - 1.0
    fallen = (1.0 + 0.5) * G * out + 0.5 * 0.5 * G * out**2
    moving = 1.0 + 0.5 * (1.0 + out) + 0.02 / 0.1**2
    speed = np.sqrt(2.0 * fallen / moving)
    assert engine.rate_rad_s[0] * 0.1 == pytest.approx(speed, rel=2e-3)
    assert -engine.body(1, "velocity")[2] == pytest.approx(speed, rel=4e-3)


def test_holding_torque_power_and_energy_of_a_driven_drum():
    """Torque M g r holds; at constant speed torque times speed is the power that lifts."""
    rig = drum(mass=0.2, segments=3, by_rate=True)
    engine = Engine(rig)
    engine.advance()
    assert engine.drive_nm[0] == pytest.approx(-1.2 * G * 0.1, rel=1e-4)
    for k in range(250):
        engine.feed[0] = -2.0 * np.clip(np.array([k, k + 1]) / 100.0, 0.0, 1.0)
        engine.advance()
    weight = (1.0 + 0.2 * engine.length_m(0)) * G
    assert engine.drive_nm[0] == pytest.approx(-weight * 0.1, rel=0.01)
    assert engine.body(1, "velocity")[2] == pytest.approx(0.2, rel=1e-3)
    lifted = engine.energy_j().sum() - engine.start_energy_j
    assert engine.sums["work"] == pytest.approx(lifted, rel=2e-3)


def test_a_torque_that_holds_the_load_keeps_it_where_it_is():
    engine = Engine(drum(ea=1e5))
    engine.feed[:] = -1.0 * G * 0.1 * (1.0 + 0.5 * G / 1e5)  # the cable lies unstretched
    engine.restart()
    run(engine, 1.0)
    assert abs(engine.angle_rad[0]) < 1e-4


def test_a_brake_holds_below_its_torque_and_slips_above():
    engine = Engine(drum())
    engine.brake_nm[:] = 1.1
    engine.restart()
    run(engine, 1.0)
    stuck = engine.angle_rad[0]
    assert abs(stuck) * 0.1 < 5e-5
    run(engine, 1.0)
    assert engine.angle_rad[0] == pytest.approx(stuck, abs=1e-9)
    engine.brake_nm[:] = 0.5
    run(engine, 0.4)
    a = (G - 0.5 / 0.1) / (1.0 + 0.02 / 0.01)
    assert engine.rate_rad_s[0] * 0.1 == pytest.approx(a * 0.4, rel=5e-3)
    engine.brake_nm[:] = 2.0
    run(engine, 1.0)
    assert abs(engine.rate_rad_s[0]) < 1e-6
    assert engine.sums["loss_cables"] == pytest.approx(-engine.sums["work"]
        - (engine.energy_j().sum() - engine.start_energy_j), rel=0.02)  # fmt: skip


def test_layers_pay_out_the_sum_of_their_turns():
    """L = sum of 2 pi r_i N, r_i = r_0 + i d: three layers of four turns, all paid out."""
    lengths = 2.0 * np.pi * 4.0 * (0.1 + 0.02 * np.arange(3))
    # Up to the middle of the third layer, where no layer changes.
    stored_m = lengths[0] + lengths[1] + 0.5 * lengths[2]
    engine = Engine(drum(by_rate=True, layer_m=0.02, layer_turns=4.0, stored_m=stored_m))
    for angle, expected in (
        (2.0, 0.5 * lengths[2]),
        (6.0, 0.5 * lengths[2] + lengths[1]),
        (8.0, 0.5 * lengths[2] + lengths[1] + 0.5 * lengths[0]),
    ):
        while engine.angle_rad[0] < 2.0 * np.pi * angle - 1e-9:
            engine.feed[:] = min(8.0, (2.0 * np.pi * angle - engine.angle_rad[0]) / 0.004)
            engine.advance()
        out = engine.length_m(0) - 1.0
        # The climb is spread over half a turn about the end of a layer: d pi / 8 at its middle.
        assert out == pytest.approx(expected, abs=0.02 * np.pi / 8.0 + 1e-9)
    assert out == pytest.approx(expected, abs=1e-9)


def test_the_drum_turns_its_body_against_it():
    """Nothing outside: angular momentum of body and drum, torque inside the body."""
    engine = free_winch(0.001, inertia=5e-3, axis=Y, kind="drum", torque=True)
    engine.tables.nodes["velocity"] = 0.0
    engine.tables.bodies["velocity"] = 0.0
    engine.feed[:] = 0.5  # pays out: the cable goes slack
    engine.restart()
    run(engine, 0.05)
    spin = engine.rate_rad_s[0]
    omega = engine.body(0, "omega")[1]
    # J (y'' + w') = torque, (I + m r^2) w' + J y'' = 0 with the wound cable at the exit point
    arm = 0.4 * (0.1**2 + 0.05**2)
    whole = 0.06 + arm
    expected = 0.5 / (5e-3 * (1.0 - 5e-3 / whole)) * 0.05
    assert spin == pytest.approx(expected, rel=0.05)
    assert omega == pytest.approx(-5e-3 / whole * spin, rel=0.1)


def test_a_drum_keeps_the_stretch_of_what_it_winds():
    """Wound under T1: r phi / (1 + T1 / EA) of free length; off again under T2: all of it."""
    ea, angle, radius = 1e3, 2.0, 0.1
    rig = drum(radius=radius, ea=ea, by_rate=True, keeps_stretch=True)
    rig.cables[0].damping_n_s = 100.0
    engine = Engine(rig)
    start, turns = engine.length_m(0), np.sin(np.linspace(0.0, np.pi, 501)) * angle * np.pi / 4.0
    for begin, end in itertools.pairwise(turns):
        engine.feed[0] = -begin, -end  # phi within 2 s
        engine.advance()
    wound = start - engine.length_m(0)
    assert wound == pytest.approx(radius * angle / (1.0 + G / ea), rel=1e-4)
    engine.wrench_enu[1, 5] = -3.0 * G
    engine.feed[:] = 0.0
    run(engine, 4.0)
    assert engine.tensions_n(0)[0] == pytest.approx(4.0 * G, rel=1e-3)
    assert start - engine.length_m(0) == pytest.approx(wound, abs=1e-12)
    for begin, end in itertools.pairwise(turns):
        engine.feed[0] = begin, end
        engine.advance()
    engine.feed[:] = 0.0
    engine.advance()
    assert engine.length_m(0) == pytest.approx(start, abs=1e-9)
    # Below the strain of what it was wound with at first, the drum gives what lay on it: r phi.
    engine.feed[:] = 1.0
    run(engine, 1.0)
    assert engine.length_m(0) == pytest.approx(start + radius, abs=1e-9)
