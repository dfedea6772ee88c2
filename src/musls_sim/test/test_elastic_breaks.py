"""Elastic cables that break at a tension or are cut: when, momentum, energy, recoil."""

import json
from pathlib import Path

import numpy as np
import pytest
from elastic_rigs import G, anchor, beam_rig, hanging_rig, point_mass, run, straight

from musls_description.config.errors import ConfigError
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.output import bending_energy, momenta
from musls_sim.plants.elastic.rig import Rig, RigCable
from musls_sim.plants.interface import CutCable
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

HOLD = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios" / "hold.yaml"


def bob(break_force_n, *, ea=1000.0, mass=1.0, speed=0.0, above=0.0, period=0.004):
    """A mass on a weightless spring of 1 m, let go above its equilibrium with a speed."""
    rig = hanging_rig(1, mass=1e-12, tip=mass, ea=ea, break_force_n=break_force_n)
    rig.bodies[1].position_enu_m[2] += above
    rig.bodies[1].velocity_enu_m_s = np.array([0.0, 0.0, speed])
    rig.cables[0].nodes_enu_m[1] = rig.bodies[1].position_enu_m
    rig.cables[0].velocities_enu_m_s = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, speed]])
    return Engine(rig, period_s=period)


@pytest.mark.parametrize("where", ["bottom", "middle", "top"])
@pytest.mark.parametrize("ei", [0.0, 0.05])
def test_what_hangs_on_the_broken_segment_falls_freely(where, ei):
    """The load (bottom) or load and lower piece (else) fall with g; the rest hangs on."""
    n = 6
    segment = {"bottom": n - 1, "middle": n // 2, "top": 0}[where]
    engine = Engine(hanging_rig(n, mass=0.2, tip=0.5, ea=1e4, ei_n_m2=ei))
    run(engine, 0.02)
    before, energy, strain = momenta(engine.tables), engine.energy_j().sum(), engine.energy_j()[2]
    engine.cut(0, segment)
    cut = engine.breaks[-1]
    after = momenta(engine.tables)
    assert after[0] == pytest.approx(before[0], abs=1e-15)
    assert after[1] == pytest.approx(before[1], abs=1e-15)
    # Tension of a segment: everything below its middle.
    held = (0.5 + 0.2 * (n - segment - 0.5) / n) * G
    assert cut.tension_n == pytest.approx(held, rel=1e-6)
    assert cut.energy_j == pytest.approx(held**2 / 2e4 / n, rel=1e-5)
    assert energy - engine.energy_j().sum() == pytest.approx(cut.energy_j, rel=1e-9)
    falling = engine.tables.nodes[segment + 1 :]["mass"]
    masses = np.append(falling, engine.rig.bodies[1].mass_kg)

    def mean(a, v, body):
        return masses @ np.append(engine.tables.nodes[a][segment + 1 :, 2], body) / masses.sum()

    speeds = [mean("velocity", 0, engine.body(1, "velocity")[2])]
    for _ in range(40):
        accelerations = mean("acceleration", 0, engine.body(1, "acceleration")[2])
        assert accelerations == pytest.approx(-G, abs=1e-9)
        engine.advance()
        speeds.append(mean("velocity", 0, engine.body(1, "velocity")[2]))
    assert np.diff(speeds) == pytest.approx(-G * 0.004, abs=1e-12)
    if where == "bottom":
        assert engine.body(1, "acceleration") == pytest.approx([0.0, 0.0, -G], abs=1e-9)
    assert -1e-6 < engine.missing_energy_j() < strain, "the waves of the recoil die out"
    assert engine.tensions_n(0)[segment] == 0.0


def cut_within_period(engine, segment, share):
    """Let a segment of cable 0 part in the coming period, after a share of it."""
    engine.segments(0)["cut_at"][segment] = share
    engine.tables.system["can_break"] = 1.0


def test_a_cut_within_a_period_divides_the_step():
    """After 12.3 ms the load falls: parabola exact, whatever the step."""
    engine = Engine(hanging_rig(1, mass=0.2, tip=0.5, ea=1e5))
    start = engine.body(1, "position")[2]
    run(engine, 0.012)
    cut_within_period(engine, 0, 0.0003 / engine.period_s)
    run(engine, 0.028)
    assert [(b.cable, b.segment) for b in engine.breaks] == [(0, 0)]
    assert engine.breaks[0].time_s == pytest.approx(0.0123, abs=1e-12)
    fallen = 0.5 * G * (0.04 - 0.0123) ** 2
    assert start - engine.body(1, "position")[2] == pytest.approx(fallen, abs=1e-9)
    assert engine.body(1, "velocity")[2] == pytest.approx(-G * (0.04 - 0.0123), abs=1e-9)


def test_two_cuts_in_one_step_happen_in_their_order():
    engine = Engine(hanging_rig(6, mass=0.2, tip=0.5, ea=1e4))
    cut_within_period(engine, 4, 0.0031 / engine.period_s)
    cut_within_period(engine, 2, 0.0009 / engine.period_s)
    engine.advance()
    assert [(b.segment, round(b.time_s, 9)) for b in engine.breaks] == [(2, 9e-4), (4, 31e-4)]
    engine.cut(0, 4)  # cut already
    assert len(engine.breaks) == 2


@pytest.mark.parametrize("period", [0.008, 0.004, 0.002])
def test_break_comes_when_the_tension_crosses(period):
    """T = m g + m w v sin(w t) crosses the break force at a known time, within a step."""
    w, v = np.sqrt(1000.0), 0.2
    limit = G + 0.8 * w * v
    engine = bob(limit, speed=-v, period=period)
    while not engine.breaks and engine.time_s < 0.2:
        engine.advance()
    exact = np.arcsin(0.8) / w
    assert engine.breaks[0].time_s == pytest.approx(exact, abs=0.15 * (w * period) ** 2 / w)
    assert engine.breaks[0].tension_n == pytest.approx(limit, rel=2e-6)
    assert engine.body(1, "acceleration")[2] == pytest.approx(-G, abs=1e-9)


def test_the_time_of_a_break_is_of_second_order():
    w, v = np.sqrt(1000.0), 0.2
    errors = []
    for period in (0.008, 0.004, 0.002):
        engine = bob(G + 0.6 * w * v, speed=-v, period=period)
        while not engine.breaks:
            engine.advance()
        errors.append(abs(engine.breaks[0].time_s - np.arcsin(0.6) / w))
    assert errors[0] / errors[1] > 3.0
    assert errors[1] / errors[2] > 3.0


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.5, 0.75])
@pytest.mark.parametrize(("over", "breaks"), [(0.995, True), (1.005, False)])
def test_a_peak_within_a_step_is_not_missed(shift, over, breaks):
    """The tension peaks between two steps of 8 ms, 0.5 % above or below the break force."""
    w, v, period = 40.0, 0.25, 0.008
    # Start so that the peak comes at (5 + shift) periods.
    phase = np.pi / 2.0 - w * (5.0 + shift) * period
    amplitude = v / w
    limit = G + over * w * v
    engine = bob(
        limit, ea=w * w, speed=-v * np.cos(phase), above=-amplitude * np.sin(phase), period=period
    )
    seen = 0.0
    for _ in range(9):
        engine.advance()
        seen = max(seen, engine.tensions_n(0)[0])
    assert bool(engine.breaks) == breaks
    if shift == 0.5 and not breaks:
        assert seen < 0.995 * (G + w * v), "the step would see the peak by itself"


@pytest.mark.parametrize("speed", [0.5, 3.0])
@pytest.mark.parametrize(("over", "breaks"), [(0.95, True), (1.05, False)])
def test_a_snap_breaks_the_line_if_its_peak_is_above_the_break_force(speed, over, breaks):
    """A mass reaches the natural length at a speed: m g + sqrt((m g)^2 + k m v^2)."""
    mass, ea = 0.5, 2.4e4
    peak = mass * G + np.sqrt((mass * G) ** 2 + ea * mass * speed**2)
    stretch = mass * G / ea
    engine = bob(over * peak, ea=ea, mass=mass, speed=-speed, above=stretch + 0.4 * speed * 0.004)
    energy = engine.energy_j().sum()
    for _ in range(25):
        engine.advance()
    assert bool(engine.breaks) == breaks
    lost = sum(b.energy_j for b in engine.breaks)
    assert lost == pytest.approx((over * peak) ** 2 / (2.0 * ea) if breaks else 0.0, rel=0.01)
    assert engine.energy_j().sum() + lost <= energy + 1e-6 * energy
    assert abs(engine.missing_energy_j()) < 0.1 * mass * speed**2


@pytest.mark.parametrize(("segments", "error"), [(40, 0.03), (160, 0.015)])
def test_the_free_end_recoils_at_tension_over_impedance(segments, error):
    """v = T / sqrt(EA mu) behind the front that runs from the break at sqrt(EA / mu)."""
    ea, mu, pull = 1e4, 0.1, 50.0
    length = 2.0
    nodes = straight((0, 0, 0), (length * (1.0 + pull / ea), 0, 0), segments)
    cable = RigCable((0, 1), np.zeros((2, 3)), nodes, length, mu * length, ea_n=ea)
    rig = Rig([anchor(), anchor(nodes[-1])], [cable], gravity_m_s2=0.0)
    engine = Engine(rig, period_s=2e-5)
    engine.cut(0, segments - 1)
    speed = np.sqrt(ea / mu)
    run(engine, 0.6 * length / speed)
    v = engine.nodes(0)["velocity"][:, 0]
    exact = pull / np.sqrt(ea * mu)
    behind = v[int(0.6 * segments) : int(0.95 * segments)]
    assert -behind.mean() == pytest.approx(exact, rel=error)
    # Impulse: the anchor's pull over the time, the half lump at the break not counted.
    momentum = momenta(engine.tables)[0][0]
    assert momentum == pytest.approx(-pull * engine.time_s, rel=1e-9)
    assert abs(v[: int(0.15 * segments)]).max() < 1e-3 * exact, "the front has not come there yet"


def test_cutting_one_of_two_cables():
    """A point load on two cables: m g / (2 cos b) each; the other has m g cos b after the cut."""
    angle, mass, ea = 0.6, 1.0, 2e5
    tension = mass * G / (2.0 * np.cos(angle))
    direction = np.array([[np.sin(angle), 0, -np.cos(angle)], [-np.sin(angle), 0, -np.cos(angle)]])
    natural = 1.0 / (1.0 + tension / ea)
    cables = [
        RigCable((k, 2), np.zeros((2, 3)), straight(-d, (0, 0, 0), 1), natural, 1e-9, ea_n=ea,
                 damping_n_s=500.0)
        for k, d in enumerate(direction)
    ]  # fmt: skip
    rig = Rig([anchor(-direction[0]), anchor(-direction[1]), point_mass((0, 0, 0), mass)], cables,
              gravity_m_s2=G)  # fmt: skip
    engine = Engine(rig)
    run(engine, 0.02)
    assert engine.tensions_n(0)[0] == pytest.approx(tension, rel=1e-6)
    engine.cut(1, 0)
    force = mass * (engine.body(2, "acceleration") + [0, 0, G])
    assert np.linalg.norm(force) == pytest.approx(tension, rel=1e-3), "the stretch is still there"
    run(engine, 0.02)  # the axial oscillation (71 Hz, damped) is over, the swing begins
    turned = 0.5 * G * np.sin(angle) * 0.02**2
    v2 = (G * np.sin(angle) * 0.02) ** 2
    expected = mass * (G * np.cos(angle - turned) + v2)
    assert engine.tensions_n(0)[0] == pytest.approx(expected, rel=2e-3)


def test_a_body_jumps_by_its_tension_over_its_mass_when_its_cable_goes():
    """A held-up body: lift minus weight was the tension, and is its acceleration times mass."""
    rig = hanging_rig(3, mass=0.03, tip=0.4, ea=1e4)
    rig.bodies[0] = point_mass((0, 0, 0), 2.0)
    engine = Engine(rig)
    engine.wrench_enu[0, 5] = 2.43 * G
    engine.restart()
    assert np.abs(engine.body(0, "acceleration")).max() < 1e-9
    engine.cut(0, 0)
    tension = engine.breaks[0].tension_n
    assert engine.body(0, "acceleration")[2] == pytest.approx(tension / (2.0 + 0.005), rel=1e-9)


def test_the_weakest_segment_breaks_and_both_pieces_move_on():
    limits = np.full(8, 100.0)
    limits[5] = 12.0
    rig = hanging_rig(8, mass=0.2, tip=0.5, ea=1e4, damping_n_s=1.0, break_force_n=limits)
    engine = Engine(rig)
    for k in range(100):
        engine.wrench_enu[1, 5] = -0.2 * k
        engine.advance()
    assert [b.segment for b in engine.breaks] == [5]
    assert engine.breaks[0].tension_n == pytest.approx(12.0, rel=2e-6)
    z = engine.nodes_enu_m(0)[:, 2]
    assert z[6] < z[5] - 0.3
    assert abs(engine.missing_energy_j()) < 0.02


def test_bending_vanishes_in_both_joints_beside_a_break():
    engine = Engine(beam_rig(6, ei=0.5))
    engine.wrench_enu[1, 4] = 0.05
    engine.relax()
    bent = [bending_energy(engine.tables.system[0], engine.tables.cables[0], i)
            for i in range(6)]  # fmt: skip
    energy = engine.energy_j().sum()
    engine.cut(0, 2)
    now = [bending_energy(engine.tables.system[0], engine.tables.cables[0], i)
           for i in range(6)]  # fmt: skip
    assert now[2] == now[3] == 0.0
    assert [now[i] for i in (0, 1, 4, 5)] == pytest.approx([bent[i] for i in (0, 1, 4, 5)])
    assert engine.breaks[0].energy_j == pytest.approx(bent[2] + bent[3], rel=1e-3)
    assert energy - engine.energy_j().sum() == pytest.approx(engine.breaks[0].energy_j, rel=1e-9)
    engine.wrench_enu[:] = 0.0
    before = momenta(engine.tables)[0] * 0.0
    run(engine, 0.02)
    free = engine.tables.nodes["mass"][3:, None] * engine.tables.nodes["velocity"][3:]
    total = free.sum(axis=0) + engine.rig.bodies[1].mass_kg * engine.body(1, "velocity")
    assert total == pytest.approx(before, abs=1e-9), "nothing pulls at the loose piece"


def test_a_segment_that_is_overloaded_at_the_start_breaks_at_once():
    engine = Engine(hanging_rig(4, mass=0.2, tip=0.5, ea=1e4, break_force_n=6.3))
    engine.advance()
    assert engine.breaks[0].segment == 0
    assert engine.breaks[0].time_s == 0.0
    assert len(engine.breaks) == 1


def test_the_limit_does_not_change_a_flight_below_it():
    """A break force that is not reached leaves every bit as it is."""
    states = []
    for limit in (np.inf, 1e4):
        engine = Engine(hanging_rig(5, mass=0.2, tip=0.5, ea=1e4, break_force_n=limit))
        engine.wrench_enu[1, 3] = 1.0
        run(engine, 0.2)
        states.append(engine.tables.nodes[["position", "velocity", "acceleration"]].tobytes())
    assert states[0] == states[1]


@pytest.mark.parametrize(("cable", "segment", "what"), [(1, 0, "cable 1"), (0, 4, "segment 4")])
def test_cuts_of_what_is_not_there_are_refused(cable, segment, what):
    engine = Engine(hanging_rig(4))
    with pytest.raises(ConfigError, match=what):
        engine.cut(cable, segment)


def test_a_break_force_must_be_positive():
    with pytest.raises(ConfigError, match="break_force_n"):
        Engine(hanging_rig(4, break_force_n=0.0))


def hold(cable_model, **events):
    """A session in which the trio holds its load in the air."""
    overrides = [f"cable_model={cable_model}", f"events={json.dumps([events])}"]
    return Session(load_scenario(HOLD, overrides))


def test_a_scenario_cuts_a_cable_and_the_audit_closes():
    """The event happens, the cable's load end hangs on nothing, the others take the weight."""
    session = hold("elastic", kind="cable_cut", when={"time_s": 0.1}, cable=2)
    with session:
        session.advance(24)
        before = session.state.tension_n.copy()
        session.advance(26)
        record = session.events.happened[-1]
        assert (record.kind, record.what) == ("cable_cut", "cable_2: cut in segment 1")
        assert record.time_s == pytest.approx(0.1)
        plant = session.plant
        assert [(b.cable, b.segment) for b in plant.breaks] == [(1, 0)]
        assert plant.breaks[0].tension_n == pytest.approx(before[1, 0], rel=0.05)
        assert plant.segment_tensions_n(1)[0] == 0.0
        assert plant.audit.break_j == pytest.approx(plant.breaks[0].energy_j)
        assert abs(plant.audit.missing_j) < 0.02
        with pytest.raises(ConfigError, match="cables 1 to 3"):
            plant.apply(CutCable(4, 1))
        with pytest.raises(ConfigError, match="segments 1 to"):
            plant.apply(CutCable(1, 0))


def test_a_session_tells_of_a_cable_that_breaks():
    with hold("elastic", kind="poke", when={"time_s": 0.02}, force_enu_n=[0, 0, -60.0],
              duration_s=1.0) as session:  # fmt: skip
        engine = session.plant
        engine.tables.segments["break_force"] = 15.0
        engine.segments(2)[0]["break_force"] = 12.0  # at the load's end of cable 3
        engine.tables.system["can_break"] = 1.0
        engine.can_break = True
        session.advance(40)
        told = [r for r in session.events.happened if r.kind == "cable_broken"]
        assert told
        assert told[0].what.startswith("cable_3: segment 1 of ")
        assert told[0].what.endswith(" broke at 12 N")
        assert 0.02 < told[0].time_s < 0.1


@pytest.mark.parametrize(
    ("model", "event", "named"),
    [
        ("rigid_links", {"cable": 1, "segment": 99}, "segment 99, but cable 1 has"),
        ("elastic", {"cable": 4}, "cable 4, but there are 3"),
        ("elastic", {"cable": 1, "segment": 99}, "segment 99, but cable 1 has"),
    ],
)
def test_events_that_cannot_be_are_refused_before_the_flight(model, event, named):
    with pytest.raises(ConfigError, match=named) as caught:
        hold(model, kind="cable_cut", when={"time_s": 1.0}, **event)
    assert "\n" not in str(caught.value)
