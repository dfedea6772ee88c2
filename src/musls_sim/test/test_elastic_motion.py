"""Moving elastic cables: momentum, energy, order of convergence, snaps, extreme stiffness."""

import numpy as np
import pytest
from elastic_rigs import G, anchor, beam_rig, hanging_rig, mote, point_mass, run, straight

from musls_sim.plants.elastic.cables.cable import joint_moment
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.output import momenta
from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable


def pendulum(ea=1e3, segments=4, period=0.004, tip=1.0, angle=0.6, **options):
    """A cable with a mass at its end, let go from an angle, straight and unstretched."""
    direction = np.array([np.sin(angle), 0.0, -np.cos(angle)])
    nodes = np.linspace(0.0, 1.0, segments + 1)[:, None] * direction
    cable = RigCable((0, 1), np.zeros((2, 3)), nodes, 1.0, 0.1, ea_n=ea, **options)
    rig = Rig([anchor(), point_mass(nodes[-1], tip)], [cable], gravity_m_s2=G)
    return Engine(rig, period_s=period)


def free_pair(ei=0.3, damping=0.0, segments=6, clamps=True, seed=1):
    """Two tumbling rigid bodies joined by a rod that bends, no gravity."""
    rng = np.random.default_rng(seed)
    axis = np.array([1.0, 0.0, 0.0])
    points = np.array([[0.05, 0.0, 0.02], [-0.05, 0.01, 0.0]])
    bodies = [
        RigBody(
            mass_kg=mass,
            inertia_kg_m2=np.diag([0.01, 0.02, 0.025]),
            position_enu_m=np.array([x, 0.0, 0.0]) - point,
            velocity_enu_m_s=0.3 * rng.normal(size=3),
            omega_enu_rad_s=rng.normal(size=3),
        )
        for mass, x, point in ((2.0, 0.0, points[0]), (1.0, 1.0, points[1]))
    ]
    nodes = straight((0, 0, 0), (1, 0, 0), segments)
    ends = [np.cross(b.omega_enu_rad_s, r) + b.velocity_enu_m_s
            for b, r in zip(bodies, points, strict=True)]  # fmt: skip
    velocities = np.linspace(*ends, segments + 1)
    cable = RigCable(
        (0, 1),
        points,
        nodes,
        1.0,
        0.2,
        ea_n=2e3,
        slack=False,
        ei_n_m2=ei,
        bending_damping_n_m2_s=damping,
        clamps=(axis, axis) if clamps else (None, None),
        velocities_enu_m_s=velocities,
    )
    return Rig(bodies, [cable], gravity_m_s2=0.0)


def test_bending_forces_have_no_sum_and_no_moment():
    rng = np.random.default_rng(3)
    for _ in range(50):
        points = rng.normal(size=(3, 3))
        speeds = rng.normal(size=(3, 3))
        d1, d2 = np.diff(points, axis=0)
        l1, l2 = np.linalg.norm(d1), np.linalg.norm(d2)
        t1, t2 = d1 / l1, d2 / l2
        u1, u2 = np.diff(speeds, axis=0) / [[l1], [l2]]
        u1, u2 = u1 - t1 * (t1 @ u1), u2 - t2 * (t2 @ u2)
        for held in (False, True):
            angle, on_2, on_1, moment, loss, _ = joint_moment(t1, t2, u1, u2, 1.3, 0.7, held)
            above, below = np.array(on_2) / l2, -np.array(on_1) / l1
            forces = np.array([below, -above - below, above])
            twist = t1 * (t1 @ moment) - t2 * (t2 @ moment)  # what a clamp takes up
            assert np.abs(np.cross(points, forces).sum(axis=0) + twist).max() < 1e-7
            assert held or np.abs(twist).max() < 1e-7
            assert np.cos(angle) == pytest.approx(t1 @ t2)
            assert loss >= 0.0


@pytest.mark.parametrize("whirling", [0.0, 1.0])
@pytest.mark.parametrize("heading", np.deg2rad([0.0, 30.0, 45.0, 90.0]))
def test_bending_is_damped_as_linear_theory_says_in_every_direction(heading, whirling):
    """First mode of a clamped rod of damping tau EI: amplitude exp(-tau w^2 t / 2)."""
    segments, root, tau, amplitude = 24, 1.8751040687, 0.01, 0.02
    rig = beam_rig(segments, damping=tau, ea=1e5)
    cable, x = rig.cables[0], np.linspace(0.0, 1.0, segments + 1)
    ratio = (np.cosh(root) + np.cos(root)) / (np.sinh(root) + np.sin(root))
    shape = np.cosh(root * x) - np.cos(root * x) - ratio * (np.sinh(root * x) - np.sin(root * x))
    shape *= amplitude / shape[-1]
    frequency = root**2 * np.sqrt(1.0 / 0.1)
    cable.nodes_enu_m[:, 1:] = np.outer(shape, [np.cos(heading), np.sin(heading)])
    slopes = np.diff(shape) * segments
    cable.nodes_enu_m[1:, 0] = np.cumsum(np.sqrt(1.0 - slopes**2)) / segments  # unstretched
    speeds = np.outer(shape, [-np.sin(heading), np.cos(heading)]) * frequency * whirling
    speeds -= 0.5 * tau * frequency**2 * cable.nodes_enu_m[:, 1:]
    cable.velocities_enu_m_s = np.column_stack([0.0 * x, speeds])
    rig.bodies[1].position_enu_m = cable.nodes_enu_m[-1]
    rig.bodies[1].velocity_enu_m_s = cable.velocities_enu_m_s[-1]
    engine, period = Engine(rig), 2.0 * np.pi / frequency
    sizes = []
    while engine.time_s < 1.5 + period:
        engine.advance()
        y, z = engine.body(1, "position")[1:]
        sizes.append((engine.time_s, np.hypot(y, z), y * np.sin(heading) - z * np.cos(heading)))
    time_s, size, aside = np.array([row for row in sizes if row[0] > 1.5]).T
    expected = amplitude * np.exp(-0.5 * tau * frequency**2 * time_s)
    if whirling:
        assert size == pytest.approx(expected, rel=0.02)
    else:
        assert np.abs(aside).max() < 1e-9
        assert (size / expected).max() == pytest.approx(1.0, abs=0.02)
    assert engine.missing_energy_j() == pytest.approx(0.0, abs=2e-3 * engine.start_energy_j)


@pytest.mark.parametrize("clamps", [False, True])
def test_momentum_is_exact_and_angular_momentum_of_second_order(clamps):
    errors = []
    for period in (0.004, 0.002, 0.001):
        engine = Engine(free_pair(clamps=clamps, damping=0.002), period_s=period)
        linear, angular = momenta(engine.tables)
        run(engine, 0.2)
        now = momenta(engine.tables)
        assert now[0] == pytest.approx(linear, abs=1e-12)
        errors.append(np.linalg.norm(now[1] - angular))
    assert errors[0] < 0.02 * np.linalg.norm(angular)
    assert errors[0] / errors[1] > 3.0
    assert errors[1] / errors[2] > 3.0


def test_held_force_changes_momentum_by_exactly_force_times_time():
    engine = Engine(free_pair())
    linear, _ = momenta(engine.tables)
    force = np.array([1.0, -2.0, 0.5])
    expected = linear.copy()
    for k in range(20):
        engine.wrench_enu[1, 3:] = force * (k % 3)
        expected += force * (k % 3) * engine.period_s
        engine.advance()
        assert momenta(engine.tables)[0] == pytest.approx(expected, abs=1e-12)


def test_smooth_motion_is_of_second_order():
    """A bouncing, swinging pendulum (EA 60 N: 8 rad/s) against a run with a fine step."""
    results = []
    for period in (0.008, 0.004, 0.002, 0.00025):
        engine = pendulum(ea=60.0, period=period)
        run(engine, 0.8)
        results.append(engine.nodes_enu_m(0)[1:].copy())
    errors = [np.abs(r - results[-1]).max() for r in results[:-1]]
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.25)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.25)


def test_energy_audit_closes_with_the_square_of_the_step():
    """Kinetic, potential and strain energy plus dissipation: what is missing is numerical."""
    missing = []
    for period in (0.004, 0.002, 0.001):
        engine = pendulum(ea=200.0, segments=1, period=period, damping_n_s=5.0)
        run(engine, 0.8)
        missing.append(engine.missing_energy_j())
        assert engine.sums["loss_cables"] > 0.01
    assert abs(missing[0]) < 5e-4
    assert abs(missing[2]) < abs(missing[0]) / 8.0


def test_a_stiff_swinging_line_keeps_energy_period_and_centripetal_tension():
    """EA 2e6 N at 4 ms: tension M (g cos + v^2 / L) at the bottom, released from 0.6 rad."""
    engine = pendulum(ea=2e6, segments=8, tip=1.0)
    start = engine.energy_j().sum()
    lowest, tension = 0.0, 0.0
    for _ in range(500):
        engine.advance()
        z = engine.body(1, "position")[2]
        if z < lowest:
            lowest, tension = z, engine.tensions_n(0)[-1]
    assert lowest == pytest.approx(-1.0, abs=1e-4)
    # The light cable swings with the mass: energy balance of the rod of 0.1 kg with its load.
    rate2 = 2.0 * G * (1.0 - np.cos(0.6)) * (1.0 + 0.05) / (1.0 + 0.1 / 3.0)
    expected = (1.0 + 0.1 / 16.0) * (G + rate2)
    assert tension == pytest.approx(expected, rel=0.01)
    assert engine.energy_j().sum() < start + 1e-6
    assert start - engine.energy_j().sum() < 0.03 * 1.05 * G * (1.0 - np.cos(0.6))
    assert engine.refined_periods == 0


@pytest.mark.parametrize("ea", [1.0, 1e3, 1e5, pytest.param(2e6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("segments", [1, 10, 100])
def test_stable_at_4_ms_through_a_snap(ea, segments):
    """A mass falls 0.5 m into a slack cable: energy never grows, and it comes to rest hanging."""
    nodes = straight((0, 0, 0), (0.05, 0, -0.5), segments)
    cable = RigCable(
        (1, 0), np.zeros((2, 3)), nodes[::-1], 1.0, 0.05, ea_n=ea, damping_n_s=2.4e-4 * ea
    )
    rig = Rig([anchor(), point_mass(nodes[-1], 0.5)], [cable], gravity_m_s2=G)
    engine = Engine(rig)
    start = highest = engine.energy_j().sum()
    peak = 0.0
    for _ in range(500):
        engine.advance()
        highest = max(highest, engine.energy_j().sum())
        peak = max(peak, engine.tensions_n(0).max())
    assert highest <= start + 2e-3 * 0.5 * G
    if ea >= 1e3:
        assert peak > 2.0 * 0.5 * G
        assert np.linalg.norm(engine.body(1, "position")) < 1.1


@pytest.mark.parametrize("ei", [1e-4, 0.05, 2.0])
@pytest.mark.parametrize("segments", [5, 40])
def test_bending_is_stable_at_4_ms(ei, segments):
    """A rod clamped at one end, let go horizontally: energy falls, no kinks."""
    axis = np.array([1.0, 0.0, 0.0])
    cable = RigCable(
        (0, 1),
        np.zeros((2, 3)),
        straight((0, 0, 0), (1, 0, 0), segments),
        1.0,
        0.05,
        ea_n=1e6,
        slack=False,
        ei_n_m2=ei,
        bending_damping_n_m2_s=1e-3 * ei,
        clamps=(axis, None),
    )
    engine = Engine(Rig([anchor(), mote((1, 0, 0), 0.01)], [cable], gravity_m_s2=G))
    start = highest = engine.energy_j().sum()
    for _ in range(250):
        engine.advance()
        highest = max(highest, engine.energy_j().sum())
    assert highest <= start + 1e-3
    assert np.linalg.norm(engine.body(1, "position")) < 1.001


def test_it_does_not_matter_where_the_elimination_begins():
    """A leaf, a prescribed end, a border, and a cable from A to B or from B to A: one motion."""
    results = []
    for swap in (False, True):
        for alone in (True, False):
            engine = pendulum(ea=5e4, segments=7, damping_n_s=3.0)
            cable = engine.rig.cables[0]
            if swap:
                cable.bodies, cable.nodes_enu_m = (1, 0), cable.nodes_enu_m[::-1].copy()
            rig = Rig([*engine.rig.bodies, mote((0, 5, 0))], [cable], gravity_m_s2=G)
            if not alone:  # a second cable on the body: it is no leaf any more
                tip = cable.nodes_enu_m[0 if swap else -1]
                extra = RigCable((2, 1), np.zeros((2, 3)), straight((0, 5, 0), tip, 1), 50.0, 1e-12)
                rig.cables.append(extra)
            engine = Engine(rig)
            assert engine.tables.cables[0]["leaf"] == alone
            run(engine, 0.4)
            nodes = engine.nodes_enu_m(0)[::-1] if swap else engine.nodes_enu_m(0)
            tensions = engine.tensions_n(0)[::-1] if swap else engine.tensions_n(0)
            results.append((nodes.copy(), tensions.copy()))
    for nodes, tensions in results[1:]:
        assert nodes == pytest.approx(results[0][0], abs=1e-8)
        assert tensions == pytest.approx(results[0][1], rel=1e-5)


def test_prescribed_end_moves_exactly_and_its_work_is_accounted_for():
    """The anchor goes round a circle: path exact at each period, work = energy + losses."""
    radius, rate = 0.3, 4.0

    def path(begin, end):
        out = np.zeros((2, 18))
        for row, time in zip(out, (begin, end), strict=True):
            s, k = np.sin(rate * time), np.cos(rate * time)
            row[:9] = np.ravel([[radius * (1.0 - k), radius * s, 0.0],
                                [radius * rate * s, radius * rate * k, 0.0],
                                [radius * rate**2 * k, -radius * rate**2 * s, 0.0]])  # fmt: skip
        return out

    rig = hanging_rig(10, length=1.0, mass=0.05, tip=0.5, ea=1e4, damping_n_s=3.0)
    rig.bodies[0].velocity_enu_m_s = np.array([0.0, radius * rate, 0.0])
    engine = Engine(rig)
    engine.paths[0] = path
    engine.restart()
    run(engine, 1.0)
    time = engine.time_s
    place = [radius * (1.0 - np.cos(rate * time)), radius * np.sin(rate * time), 0.0]
    assert engine.nodes_enu_m(0)[0] == pytest.approx(place, abs=1e-12)
    work = engine.sums["absolute_work"]
    assert work > 0.1
    assert abs(engine.missing_energy_j()) < 2e-3 * work


def test_same_start_same_bits():
    results = []
    for _ in range(2):
        engine = pendulum(ea=1e5, segments=9)
        run(engine, 0.4)
        results.append(engine.tables.nodes.tobytes())
    assert results[0] == results[1]
