"""Static shapes and frequencies of elastic cables against closed forms."""

import numpy as np
import pytest
from elastic_rigs import G, anchor, beam_rig, frequencies, hanging_rig, mote, period_of, run
from scipy.optimize import brentq
from scipy.special import jn_zeros, jv, yv

from musls_description.config.errors import ConfigError
from musls_sim.plants.elastic.cables.line import law_records, linear_strain, table_law
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig, RigCable
from musls_sim.plants.elastic.start import nodes_between


def hung_between(segments, ea, length=5.0, span=4.0, mass=0.5):
    """A cable between two anchors in equilibrium, gravity 9.81."""
    begin, end = np.zeros(3), np.array([span, 0.0, 0.0])
    nodes = nodes_between(begin, end, segments, length, mass, G, linear_strain(ea))
    cable = RigCable((0, 1), np.zeros((2, 3)), nodes, length, mass, ea_n=ea)
    return Engine(Rig([anchor(begin), anchor(end)], [cable], gravity_m_s2=G))


# Horizontal tension of the rigid polygon of h = 4, l = 5 m, 0.1 kg/m (computed independently).
POLYGON_H_N = {5: 1.64129840, 10: 1.65446185, 20: 1.65777282, 40: 1.65860319}
CATENARY_H_N = 1.65888022


@pytest.mark.parametrize("segments", POLYGON_H_N)
def test_catenary_has_the_polygons_tension_and_does_not_move(segments):
    engine = hung_between(segments, 1e6)
    accelerations = engine.nodes(0)["acceleration"][1:-1]
    assert np.abs(accelerations).max() < 1e-6 * G
    horizontal = engine.holding_wrench(1)[0]
    assert horizontal == pytest.approx(POLYGON_H_N[segments], rel=1e-5)
    assert engine.holding_wrench(0)[0] == pytest.approx(-horizontal, rel=1e-8)
    assert engine.holding_wrench(0)[2] + engine.holding_wrench(1)[2] == pytest.approx(
        0.5 * G, rel=1e-9
    )
    before = engine.nodes_enu_m(0).copy()
    run(engine, 0.4)
    assert np.abs(engine.nodes_enu_m(0) - before).max() < 1e-8


def test_catenary_converges_with_the_square_of_the_segment():
    errors = [
        abs(hung_between(n, 2e6).holding_wrench(1)[0] / CATENARY_H_N - 1.0) for n in (10, 20, 40)
    ]
    assert np.array(errors[:-1]) / errors[1:] == pytest.approx(4.0, rel=0.02)


def test_elastic_catenary_has_irvines_end_forces():
    """x(L) = H L / EA + 2 (H / w) asinh(V / H) between level ends, V half the weight."""
    ea, length, span, w = 20.0, 5.0, 4.0, 0.1 * G
    v = w * length / 2.0

    def reach(h):
        return h * length / ea + 2.0 * h / w * np.arcsinh(v / h) - span

    exact = brentq(reach, 0.1, 10.0)
    errors = [hung_between(n, ea).holding_wrench(1)[0] / exact - 1.0 for n in (10, 20, 40)]
    assert abs(errors[-1]) < 5e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
    sag = -hung_between(40, ea).nodes_enu_m(0)[20, 2]
    low = exact / w * (np.sqrt(1.0 + (v / exact) ** 2) - 1.0) + w * length**2 / (8.0 * ea)
    assert sag == pytest.approx(low, rel=1e-3)


@pytest.mark.parametrize("segments", [1, 2, 5, 20])
def test_own_weight_and_load_stretch_a_cable(segments):
    """mu g L^2 / (2 EA) + M g L / EA for any number of segments, and it stays there."""
    engine = Engine(hanging_rig(segments, length=10.0, mass=1.0, tip=2.0, ea=1e4))
    stretch = -engine.nodes_enu_m(0)[-1, 2] - 10.0
    assert stretch == pytest.approx(4.905e-3 + 2.0 * G * 10.0 / 1e4, rel=1e-9)
    engine.advance()
    assert engine.holding_wrench(0)[2] == pytest.approx(3.0 * G, rel=1e-9)
    run(engine, 0.4)
    assert -engine.nodes_enu_m(0)[-1, 2] - 10.0 == pytest.approx(stretch, abs=1e-11)


def test_a_disturbed_cable_relaxes_to_the_same_stretch():
    engine = Engine(hanging_rig(5, length=10.0, mass=1.0, tip=2.0, ea=1e4))
    length = -engine.nodes_enu_m(0)[-1, 2]
    engine.tables.bodies[1]["position"][2] += 0.01
    engine.tables.nodes[2]["position"][0] += 0.02
    assert engine.relax() < 1e-6 * G
    assert -engine.nodes_enu_m(0)[-1, 2] == pytest.approx(length, abs=1e-9)
    assert np.abs(engine.nodes_enu_m(0)[:, 0]).max() < 1e-9


BILINEAR = [(0.0, 0.0), (0.01, 10.0), (0.05, 90.0)]


@pytest.mark.parametrize(("mass", "slope"), [(0.5, 1000.0), (5.0, 2000.0)])
def test_table_gives_stretch_and_frequency_of_its_branch(mass, slope):
    """Strain from the inverse table; w = sqrt((dF / de) / (M L)) about it."""
    strain = np.interp(mass * G, *np.array(BILINEAR).T[::-1])
    rig = hanging_rig(1, length=2.0, mass=1e-9, tip=mass, law=BILINEAR, law_linear=True)
    rig.bodies[1].position_enu_m = np.array([0.0, 0.0, -2.0 * (1.0 + strain)])
    engine = Engine(rig)
    assert abs(engine.body(1, "acceleration")[2]) < 1e-6 * G
    assert frequencies(engine, 2, 1)[0] == pytest.approx(np.sqrt(slope / (mass * 2.0)), rel=1e-5)


def test_table_is_monotone_and_its_energy_the_integral_of_its_force():
    rows = law_records([(0.0, 0.0), (0.002, 5.0), (0.01, 200.0), (0.02, 260.0)])
    strains = np.linspace(-0.005, 0.03, 4001)
    force, slope, energy = np.array([table_law(rows, 0, len(rows), e) for e in strains]).T
    assert (slope > 0.0).all()
    sums = np.concatenate([[0.0], np.cumsum((force[1:] + force[:-1]) / 2 * np.diff(strains))])
    assert np.abs(energy - energy[0] - sums).max() < 1e-6 * np.abs(energy).max()
    assert table_law(rows, 0, len(rows), 0.0)[2] == 0.0


@pytest.mark.parametrize(
    "table", [[(0.0, 0.0)], [(0.0, 0.0), (0.1, 0.0)], [(0.0, 0.0), (0.1, 5.0), (0.05, 9.0)]]
)
def test_table_that_is_not_monotone_is_refused(table):
    with pytest.raises(ConfigError, match="both increase"):
        law_records(table)


@pytest.mark.parametrize("segments", [1, 2, 5, 20])
def test_relaxation_time_does_not_depend_on_the_segments(segments):
    """A weightless cable with damping c and a heavy load: w^2 = EA / (M L), zeta = c w / (2 EA)."""
    ea, damping = 1e4, 40.0
    rig = hanging_rig(segments, length=2.0, mass=1e-7, tip=1.0, ea=ea, damping_n_s=damping)
    engine = Engine(rig, period_s=5e-4)
    engine.tables.bodies[1]["velocity"][2] = 0.01
    rest = engine.body(1, "position")[2]
    engine.restart()
    heights = []
    for _ in range(800):
        engine.advance()
        heights.append(engine.body(1, "position")[2] - rest)
    w = np.sqrt(ea / 2.0)
    zeta = damping * w / (2.0 * ea)
    assert period_of(np.array(heights), 5e-4) == pytest.approx(
        2.0 * np.pi / (w * np.sqrt(1.0 - zeta**2)), rel=2e-3
    )
    tops = np.array([h for a, h, b in zip(heights, heights[1:], heights[2:], strict=False)
                     if h > a and h > b])  # fmt: skip
    decay = np.log(tops[0] / tops[3]) / 3.0
    assert decay == pytest.approx(2.0 * np.pi * zeta / np.sqrt(1.0 - zeta**2), rel=0.02)


@pytest.mark.parametrize("segments", [1, 4, 16])
def test_axial_waves_have_the_discrete_frequency(segments):
    """Fixed and free end, lumps of half a segment: w = 2 (c / l) sin(pi / (4 n)) exactly."""
    rig = hanging_rig(segments, length=2.0, mass=0.1, ea=500.0, gravity=0.0, slack=False)
    speed = np.sqrt(500.0 / 0.05)
    exact = 2.0 * speed * segments / 2.0 * np.sin(np.pi / (4.0 * segments))
    assert frequencies(Engine(rig), 2, 1)[0] == pytest.approx(exact, rel=1e-6)
    assert exact == pytest.approx(np.pi / 2.0 * speed / 2.0, rel=0.11 / segments**2)


def test_hanging_chain_has_the_discrete_frequencies_and_converges_to_bessels():
    engine = Engine(hanging_rig(10))
    assert frequencies(engine, 0) == pytest.approx([3.754942, 8.325753, 12.167014], rel=5e-5)
    exact = jn_zeros(0, 3) / 2.0 * np.sqrt(G)
    errors = np.array([1.0 - frequencies(Engine(hanging_rig(n)), 0) / exact for n in (10, 20)])
    # The third mode has a quarter wave on three segments of ten: not yet in the limit.
    assert (errors[0] / errors[1])[:2] == pytest.approx(4.0, rel=0.12)


def test_chain_with_a_load_has_the_frequency_of_its_bessel_equation():
    """J0(z L) Y2(z 0) = J2(z 0) Y0(z L), z = 2 w sqrt(s / g), s from M / mu to M / mu + L."""
    mu, load, length = 0.1, 0.5, 1.0

    def mismatch(w):
        low, high = (2.0 * w * np.sqrt(s / G) for s in (load / mu, load / mu + length))
        return jv(0, high) * yv(2, low) - jv(2, low) * yv(0, high)

    roots, w = [], np.linspace(0.5, 60.0, 5000)
    values = [mismatch(x) for x in w]
    for k in np.flatnonzero(np.sign(values[1:]) != np.sign(values[:-1])):
        roots.append(brentq(mismatch, w[k], w[k + 1]))
    found = frequencies(Engine(hanging_rig(40, length, mu, load)), 0, 2)
    assert found == pytest.approx(roots[:2], rel=2e-3)


def test_hanging_chain_swings_at_its_frequency():
    """In time: the tip of the first mode crosses the vertical every half period."""
    engine = Engine(hanging_rig(10), period_s=0.004)
    w = frequencies(engine, 0, 1)[0]
    lengths = -np.diff(engine.nodes_enu_m(0)[:, 2])
    s = np.linspace(0.0, 1.0, 11)
    sideways = 0.01 * jv(0, jn_zeros(0, 1)[0] * np.sqrt(1.0 - s))
    down = np.concatenate([[0.0], np.cumsum(np.sqrt(lengths**2 - np.diff(sideways) ** 2))])
    engine.tables.nodes["position"][:, 0], engine.tables.nodes["position"][:, 2] = sideways, -down
    engine.tables.bodies["position"][1] = sideways[-1], 0.0, -down[-1]
    engine.restart()
    x = []
    for _ in range(1500):
        engine.advance()
        x.append(engine.body(1, "position")[0])
    assert period_of(np.array(x), 0.004) == pytest.approx(2.0 * np.pi / w, rel=2e-3)


def bent(rig, force=(0.0, 0.0, 0.0), moment=(0.0, 0.0, 0.0)):
    engine = Engine(rig)
    engine.wrench_enu[1] = [*moment, *force]
    engine.relax()
    return engine


@pytest.mark.parametrize("segments", [1, 5, 20])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_cantilever_deflects_as_its_discrete_joints_say(segments, factor):
    """Hinges at the segments' ends: first order with one whole joint at the clamp, else second."""
    force, n = 3e-4, segments
    engine = bent(beam_rig(n, clamp_factor=factor), (0.0, force, 0.0))
    exact = (n + 1) * (2 * n + 1) / (6 * n**2) if factor == 1.0 else (1 + 1 / (2 * n**2)) / 3
    assert engine.body(1, "position")[1] == pytest.approx(force * exact, rel=1e-5)
    assert engine.holding_wrench(0)[1] == pytest.approx(-force, rel=1e-6)
    assert engine.holding_wrench(0)[5] == pytest.approx(-force, rel=1e-4)  # times a length of 1 m


@pytest.mark.parametrize("segments", [4, 10])
def test_simply_supported_beam_deflects_as_its_discrete_joints_say(segments):
    """(F L^3 / 48 EI) (1 + 2 / n^2), the force in the middle; two halves clamped to a mote."""
    n, force = segments // 2, 1e-3
    ends = ((0.0, 0, 0), (0.5, 0, 0), (1.0, 0, 0))
    axis = np.array([1.0, 0.0, 0.0])
    halves = [
        RigCable(
            (k, k + 1),
            np.zeros((2, 3)),
            np.linspace(ends[k], ends[k + 1], n + 1),
            0.5,
            0.05,
            ea_n=10.0,
            slack=False,
            ei_n_m2=1.0,
            clamps=(None, axis) if k == 0 else (axis, None),
        )
        for k in range(2)
    ]
    rig = Rig([anchor(ends[0]), mote(ends[1]), anchor(ends[2])], halves, gravity_m_s2=0.0)
    engine = bent(rig, (0.0, force, 0.0))
    assert engine.body(1, "position")[1] == pytest.approx(
        force / 48.0 * (1.0 + 2.0 / segments**2), rel=1e-5
    )


def test_end_moment_bends_a_rod_into_a_circle():
    """All kinks M l / EI (half at the clamps): the end turns by M L / EI, here a quarter turn."""
    n = 12
    moment = np.pi / 2.0
    engine = bent(beam_rig(n, end_clamp=True), moment=(0.0, 0.0, moment))
    steps = np.diff(engine.nodes_enu_m(0), axis=0)
    headings = np.arctan2(steps[:, 1], steps[:, 0])
    assert np.diff(headings) == pytest.approx(moment / n, rel=1e-6)
    assert headings[0] == pytest.approx(moment / (2 * n), rel=1e-6)
    forward = engine.body(1, "rotation")[:, 0]
    assert forward == pytest.approx([0.0, 1.0, 0.0], abs=1e-6)
    assert engine.energy_j()[3] == pytest.approx(moment**2 / 2.0, rel=1e-6)


def buckling_load(segments, factor, first=0.80, second=0.88):
    """Load under which a column of the case studies' rod gives way, its foot clamped.

    A small force across deflects the tip by w(P); 1 / w falls to 0 at the buckling load, almost on
    a straight line (Southwell).
    """
    ei, length, across = 1.74673, 0.75, 1e-6
    guess = np.pi**2 * ei / (4.0 * length**2) * (0.82 if factor == 1.0 and segments == 5 else 1.0)
    loads = np.array([first, second]) * guess
    inverse = []
    for load in loads:
        rig = beam_rig(segments, ei=ei, length=length, clamp_factor=factor)
        engine = bent(rig, (-load, across, 0.0))
        inverse.append(across / engine.body(1, "position")[1])
    return loads[0] + inverse[0] * (loads[1] - loads[0]) / (inverse[0] - inverse[1])


def test_a_column_buckles_at_eulers_load():
    """Discrete n = 5 with hinges EI / l: 6.2893 N; converges to pi^2 EI / (4 L^2) = 7.662 N."""
    assert buckling_load(5, 1.0) == pytest.approx(6.2893, rel=2e-3)
    euler = np.pi**2 * 1.74673 / (4.0 * 0.75**2)
    errors = [1.0 - buckling_load(n, 2.0) / euler for n in (5, 10)]
    assert abs(errors[0]) < 0.02
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.25)


@pytest.mark.parametrize(("aside_m", "segments"), [(0.0, 15), (1e-6, 15), (0.02, 15), (0.0, 2)])
def test_a_slack_cable_below_its_end_hangs_in_a_fold(aside_m, segments):
    """Straight below, no force at the ends says to which side."""
    begin, end = np.zeros(3), np.array([aside_m, 0.0, 1.9])
    nodes = nodes_between(begin, end, segments, 2.42, 0.018, G, linear_strain(2.4e5))
    assert nodes[[0, -1]] == pytest.approx(np.array([begin, end]), abs=1e-9)
    lengths = np.sort(np.linalg.norm(np.diff(nodes, axis=0), axis=1))
    assert lengths[1:] == pytest.approx(2.42 / segments, rel=1e-6)
    assert lengths[0] < 2.42 / segments * (1.0 + 1e-6)
    assert nodes[:, 2].min() == pytest.approx(-(2.42 - 1.9) / 2.0, abs=2.42 / segments)
