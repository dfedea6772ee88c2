"""Wheels (pulleys) on elastic cables against closed forms."""

import itertools

import numpy as np
import pytest
from elastic_rigs import G, Y, anchor, point_mass, pulley, run, winch

from musls_description.config.errors import ConfigError
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable

DENSITY = 1e-3


def side(bodies, begin, end, tension, segments=3, ea=1e6, density=DENSITY, **options):
    """A cable between two places, stretched by a tension, weightless or nearly so."""
    begin, end = np.array(begin, float), np.array(end, float)
    length = np.linalg.norm(end - begin) / (1.0 + tension / ea)
    nodes = np.linspace(begin, end, segments + 1)
    points = options.pop("points", np.zeros((2, 3)))
    options.setdefault("damping_n_s", 2.4e-4 * ea)  # relaxation time of the default line
    return RigCable(bodies, points, nodes, length, density * length, ea_n=ea, **options)


def atwood(m1=1.0, m2=1.5, inertia=0.0, radius=0.1, **options):
    """Two masses on one line over a pulley at the origin, held where they are."""
    cables = [
        side((0, 1), (0, 0, 0), (0, 0, -1.0), m1 * G, **options),
        side((0, 2), (0, 0, 0), (0, 0, -1.0), m2 * G, **options),
    ]
    bodies = [anchor(), point_mass((0, 0, -1.0), m1), point_mass((0, 0, -1.0), m2)]
    wheel = pulley((0, 0), (1, 0), radius_m=radius, inertia=inertia)
    return Rig(bodies, cables, gravity_m_s2=G, pulleys=[wheel])


@pytest.mark.parametrize("inertia", [0.0, 0.02])
def test_atwood(inertia):
    """a = (m1 - m2) g / (m1 + m2 + J / r^2); the axle carries both falls."""
    engine = Engine(atwood(inertia=inertia))
    run(engine, 0.4)
    a = 0.5 * G / (2.5 + inertia / 0.01)
    assert engine.rate_rad_s[0] * 0.1 == pytest.approx(a * 0.4, rel=5e-3)
    assert engine.body(1, "velocity")[2] == pytest.approx(a * 0.4, rel=1e-2)
    below = [engine.tensions_n(k)[0] for k in (0, 1)]
    assert below == pytest.approx([1.0 * (G + a), 1.5 * (G - a)], rel=0.01)
    assert engine.holding_wrench(0)[2] == pytest.approx(sum(below), rel=0.01)
    assert abs(engine.missing_energy_j()) < 5e-3


def test_what_goes_in_on_one_side_comes_out_on_the_other():
    engine = Engine(atwood(inertia=0.01))
    total = [sum(engine.length_m(k) for k in (0, 1))]
    mass = engine.tables.nodes["mass"].sum()
    for _ in range(100):
        engine.advance()
        total.append(sum(engine.length_m(k) for k in (0, 1)))
    assert np.ptp(total) < 1e-14
    assert engine.tables.nodes["mass"].sum() == pytest.approx(mass, abs=1e-15)
    assert engine.length_m(0) < 0.95


def test_equal_masses_stay():
    engine = Engine(atwood(1.0, 1.0))
    run(engine, 1.0)
    assert abs(engine.rate_rad_s[0]) < 1e-5
    assert engine.tensions_n(0) == pytest.approx(engine.tensions_n(1))
    assert engine.holding_wrench(0)[2] == pytest.approx(2.0 * G + 2.0 * G * DENSITY, rel=1e-5)


@pytest.mark.parametrize("angle", [30.0, 90.0, 150.0])
def test_axle_force_of_a_wrap(angle):
    """A line over a pulley, weightless: tensions equal, axle 2 T sin(wrap / 2)."""
    wrap = np.radians(angle)
    half = 0.5 * (np.pi - wrap)
    ends = [np.array([np.sin(s * half), 0.0, -np.cos(half)]) for s in (-1.0, 1.0)]
    # One end held, the other pulled along its side.
    cables = [side((0, k + 1), (0, 0, 0), e, 20.0, density=1e-6) for k, e in enumerate(ends)]
    bodies = [anchor(), anchor(ends[0]), point_mass(ends[1], 1.0)]
    rig = Rig(bodies, cables, gravity_m_s2=0.0, pulleys=[pulley((0, 0), (1, 0), radius_m=0.05)])
    engine = Engine(rig)
    engine.wrench_enu[2, 3:] = 20.0 * ends[1]
    engine.restart()
    engine.advance()
    assert engine.tensions_n(0) == pytest.approx([20.0] * 3, rel=1e-6)
    assert engine.tensions_n(1) == pytest.approx([20.0] * 3, rel=1e-6)
    axle = np.linalg.norm(engine.holding_wrench(0)[:3])
    assert axle == pytest.approx(2.0 * 20.0 * np.sin(wrap / 2.0), rel=1e-6)


def heavy_line(segments, period=0.002, ea=1e6):
    """A line of 2 m and 1 kg over a pulley, one side 0.1 m longer, no load."""
    mote = 1e-6
    cables, bodies = [], [anchor()]
    for k, length in enumerate((0.95, 1.05)):
        weights = (mote + (np.arange(segments)[::-1] + 0.5) * 0.5 * length / segments) * G
        steps = length / segments * (1.0 + weights / ea)
        nodes = np.zeros((segments + 1, 3))
        nodes[1:, 2] = -np.cumsum(steps)
        cables.append(
            RigCable((0, k + 1), np.zeros((2, 3)), nodes, length, 0.5 * length, ea_n=ea,
                     damping_n_s=2e3, slack=False)
        )  # fmt: skip
        bodies.append(point_mass(nodes[-1], mote, 1e-12))
    wheel = pulley((0, 0), (1, 0), radius_m=0.1)
    return Engine(Rig(bodies, cables, gravity_m_s2=G, pulleys=[wheel]), period_s=period)


@pytest.mark.parametrize("segments", [1, 4, 16])
def test_heavy_line_alone_runs_off_with_a_cosh(segments):
    """x = x0 cosh(sqrt(2 g / L) t): all of it moves with one speed, for any segment count."""
    engine = heavy_line(segments)
    run(engine, 0.6)
    rate = np.sqrt(2.0 * G / 2.0)
    x = 0.5 * (engine.length_m(1) - engine.length_m(0))
    assert x == pytest.approx(0.05 * np.cosh(rate * 0.6), rel=2e-3)
    speed = engine.rate_rad_s[0] * 0.1
    assert speed == pytest.approx(0.05 * rate * np.sinh(rate * 0.6), rel=2e-3)
    assert engine.body(1, "velocity")[2] == pytest.approx(speed, rel=5e-3)
    assert abs(engine.missing_energy_j()) < 1e-4


@pytest.mark.parametrize("wrap_turns", [0.0, 1.0])
def test_capstan_holds_up_to_its_ratio(wrap_turns):
    """T1 / T2 = e^(mu wrap): 1.8745 at 0.2 over half a turn; below it nothing slides."""
    ratio = np.exp(0.2 * (np.pi + 2.0 * np.pi * wrap_turns))
    for share, slides in ((0.98, False), (1.02, True)):
        rig = atwood(1.0, share * ratio, density=1e-6)
        options = {"capstan_friction": 0.2, "extra_wrap_rad": 2.0 * np.pi * wrap_turns}
        rig.pulleys = [pulley((0, 0), (1, 0), radius_m=0.1, **options)]
        engine = Engine(rig)
        run(engine, 0.1)
        before = engine.rate_rad_s[0]
        run(engine, 0.3)
        moved = engine.angle_rad[0] * 0.1
        if slides:
            a = (share * ratio - ratio) * G / (share * ratio + ratio)
            assert (engine.rate_rad_s[0] - before) * 0.1 == pytest.approx(a * 0.3, rel=0.02)
            ends = engine.tensions_n(1)[0] / engine.tensions_n(0)[0]
            assert ends == pytest.approx(ratio, rel=1e-3)
        else:
            assert abs(moved) < 3e-3  # friction begins unloaded
            assert abs(engine.rate_rad_s[0]) < 1e-5


def tackle(pull, efficiency=1.0, falls=6, load=10.0):
    """A block and tackle: pulleys on a beam at height 0 and on a block, line from the beam's end.

    The line begins at the block (even number of falls: at the beam), the hauling part goes down
    from the last pulley on the beam to a mass that pulls.
    """
    count = (
        falls  # pulleys: falls - 1 between falls, and one from the last fall to the hauling part
    )
    beam, block = anchor(), point_mass((0, 0, -1.0), load, 1.0)
    puller = point_mass((0, 0, -0.8), pull / G, 1.0)
    tension = load * G / falls
    cables, pulleys = [], []
    for _ in range(falls):
        # Fall k from beam (even number: starts there) to block, end A above.
        cables.append(side((0, 1), (0, 0, 0), (0, 0, -1.0), tension, density=1e-5, segments=2,
                           ea=1e5, damping_n_s=100.0))  # fmt: skip
    cables.append(side((0, 2), (0, 0, 0), (0, 0, -0.8), pull, density=1e-5, segments=2, ea=1e5,
                       damping_n_s=100.0))  # fmt: skip
    for k in range(count):
        end = 1 if k % 2 == 0 else 0  # first pulley on the block
        nxt = 0 if k == falls - 1 else end
        pulleys.append(pulley((k, end), (k + 1, nxt), efficiency=efficiency))
    return Rig([beam, block, puller], cables, gravity_m_s2=G, pulleys=pulleys)


def test_block_and_tackle_of_six_falls():
    """Pull W / 6, speed ratio 6."""
    engine = Engine(tackle(10.0 * G / 6.0))
    run(engine, 0.5)
    assert abs(engine.body(1, "velocity")[2]) < 2e-3
    engine = Engine(tackle(10.0 * G / 6.0 * 1.2))
    run(engine, 0.5)
    pulled, lifted = engine.body(2, "velocity")[2], engine.body(1, "velocity")[2]
    assert pulled / lifted == pytest.approx(-6.0, rel=5e-3)
    m = 10.0 / 6.0 * 1.2
    a = (6.0 * m - 10.0) * G / (10.0 + 36.0 * m)
    assert lifted == pytest.approx(a * 0.5, rel=0.02)


def test_block_and_tackle_with_sheaves_that_rub():
    """Pull to lift: W (1 - e) / (e (1 - e^6)), every sheave passes on the share e."""
    e = 0.95
    needed = 10.0 * G * (1.0 - e) / (e * (1.0 - e**6))
    for share, lifts in ((0.98, False), (1.03, True)):
        engine = Engine(tackle(share * needed, e))
        run(engine, 0.5)
        lifted = engine.body(1, "velocity")[2]
        assert (lifted > 5e-3) == lifts, (share, lifted)
    tensions = [engine.tensions_n(k)[-1] for k in range(7)]
    ratios = [a / b for a, b in itertools.pairwise(tensions)]
    assert ratios == pytest.approx([e] * 6, rel=2e-3)


def test_moving_pulley_keeps_all_forces_in_balance():
    """A load hangs by its pulley in a line between two fixed points: the lines find one tension."""
    points = [np.array([-1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.3])]
    load = np.array([0.2, 0.0, -1.0])
    cables = [
        side((2, k), load, p, 7.0, density=5e-3, segments=4, damping_n_s=500.0, ea=2e5)
        for k, p in enumerate(points)
    ]
    body = RigBody(1.0, 1e-2 * np.eye(3), load, drag_n_s_m=np.full(3, 4.0))
    bodies = [anchor(points[0]), anchor(points[1]), body]
    rig = Rig(
        bodies,
        cables,
        gravity_m_s2=G,
        pulleys=[pulley((0, 0), (1, 0), radius_m=0.03, inertia=1e-5)],
    )
    engine = Engine(rig)
    run(engine, 10.0)
    at_pulley = [engine.tensions_n(k)[0] for k in (0, 1)]
    assert at_pulley[0] == pytest.approx(at_pulley[1], rel=2e-3)
    slopes = [engine.nodes_enu_m(k)[1] - engine.nodes_enu_m(k)[0] for k in (0, 1)]
    slopes = [s / np.linalg.norm(s) for s in slopes]
    assert slopes[0][0] == pytest.approx(-slopes[1][0], abs=5e-3)
    held = engine.end_force_n(0, 0) + engine.end_force_n(1, 0)
    assert held == pytest.approx([0.0, 0.0, G], abs=0.05)  # the line still vibrates across
    mass = 1.0 + sum(k.mass_kg for k in cables)
    frame = engine.holding_wrench(0)[:3] + engine.holding_wrench(1)[:3]
    assert frame == pytest.approx([0.0, 0.0, mass * G], abs=0.05)


def test_a_winch_hauls_over_a_pulley_with_spinning_drum_and_pulley():
    """Winch on the ground, pulley above, load: all momenta and energies in one system."""
    cables = [
        side((0, 1), (0, 0, 0), (0.5, 0, 2.0), G, density=0.02, ea=2e4, damping_n_s=20.0),
        side((1, 2), (0.5, 0, 2.0), (0.5, 0, 1.0), G, density=0.02, ea=2e4, damping_n_s=20.0),
    ]
    bodies = [anchor(), anchor((0.5, 0, 2.0)), point_mass((0.5, 0, 1.0), 1.0)]
    drum = winch(0, 0, "drum", 3.0, 0.04, 2e-3, axis=tuple(Y))
    wheel = pulley((0, 1), (1, 0), radius_m=0.05, inertia=1e-3, axis=tuple(Y))
    missing = []
    for period in (0.004, 0.002):
        rig = Rig(bodies, cables, gravity_m_s2=G, winches=[drum], pulleys=[wheel])
        engine = Engine(rig, period_s=period)
        for k in range(round(0.8 / period)):
            t = np.array([k, k + 1]) * period
            engine.feed[0] = -0.04 * G * (1.0 + 0.3 * np.sin(6.0 * t))
            engine.advance()
        missing.append(abs(engine.missing_energy_j()))
        assert engine.angle_rad[0] * 0.04 < -0.05
        assert -engine.angle_rad[0] * 0.04 == pytest.approx(-engine.angle_rad[1] * 0.05, abs=0.01)
    assert missing[0] < 5e-3
    assert missing[1] < missing[0] / 2.0


def test_a_pulley_stops_where_a_side_is_used_up():
    engine = Engine(atwood(1.0, 3.0))
    run(engine, 2.0)
    assert engine.halted[0] != 0.0
    assert engine.length_m(0) == pytest.approx(0.1, abs=5e-3)
    assert abs(engine.rate_rad_s[0]) < 0.01


def test_bad_wheels_are_refused():
    rig = atwood()
    rig.cables[1].mass_kg *= 2.0
    with pytest.raises(ConfigError, match="one line"):
        Engine(rig)
    rig = atwood()
    rig.pulleys = [pulley((0, 0), (1, 1))]
    with pytest.raises(ConfigError, match="different bodies"):
        Engine(rig)
    rig = atwood()
    rig.pulleys = [*rig.pulleys, pulley((0, 0), (1, 1))]
    with pytest.raises(ConfigError, match="two winches or pulleys"):
        Engine(rig)
