"""Runs of compiled stages: wherever something in Python cuts them, the flight is the same."""

import numpy as np
import pytest

from musls_bringup.catalogue.shipped import SCENARIOS
from musls_sim.plants.interface import SimulationDiverged
from musls_sim.recording.recorder import MemoryRecorder
from musls_sim.recording.signals import Rate
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.collisions import CollisionError
from musls_sim.session.compiled_stages.session_memory import World
from musls_sim.session.loop import Observer, Progress
from musls_sim.session.session import Session

HOLD = "mission.stages=[{kind: hold, duration_s: 1, position_m: [0, 0, 0.5]}]"

FLIGHTS = {
    "from ground to ground, gusts, lost samples": (
        "cable_model=massless",
        HOLD,
        "wind.gust_std_m_s=[0.5, 0.5, 0.2]",
        "estimation={kind: mocap, dropout_fraction: 0.1}",
        "recording={rate_hz: 25, shape_rate_hz: 5}",
    ),
    "collisions in a storm": (
        "cable_model=rigid_links",
        "system.cables.links=3",
        "start=air",
        "wind.mean_enu_m_s=[60, 0, 0]",
    ),
    "elastic, late commands, the truth": (
        "cable_model=elastic",
        "system.cables.links=3",
        "start=air",
        HOLD,
        "estimation={kind: truth}",
        "imperfections.command_latency_s=0.012",
        "recording={rate_hz: 125, shape_rate_hz: 25}",
    ),
    "events": (
        "cable_model=rigid_links",
        "system.cables.links=3",
        "start=air",
        HOLD,
        "events=[{kind: rotor_failure, when: {time_s: 0.5013}, drone: 1, rotor: 2, "
        "efficiency: 0.7, duration_s: 1.001}, "
        "{kind: poke, when: {stage: hold, after_s: 0.1}, duration_s: 0.5, force_enu_n: [1, 0, 0]}, "
        "{kind: gust, when: {time_s: 0.7}, velocity_enu_m_s: [2, 0, 0], duration_s: 0.3}, "
        "{kind: mocap_outage, when: {time_s: 1}, duration_s: 0.3}, "
        "{kind: drone_lost, when: {time_s: 1.7}, drone: 3}]",
    ),
    "payload from the ground": ("cable_model=massless", HOLD, "controller=payload"),
}


class Looker(MemoryRecorder):
    """Looks at the session at each time that it records, and not at rows and copies afterwards."""

    def observe(self, time_s, loop):
        super().observe(time_s, loop)


def session_of(*overrides, kind=MemoryRecorder, scenario="circle"):
    session = Session(load_scenario(SCENARIOS / f"{scenario}.yaml", list(overrides)))
    asked = session.scenario.recording
    recorder = kind(
        session.scenario.system,
        step_period_s=0.004,
        rate_hz=asked.rate_hz,
        shape_rate_hz=asked.shape_rate_hz,
    )
    session.observe_with(recorder)
    session.observe_with(Progress(lambda time_s, session: None))
    return session, recorder


def assert_same(one, other):
    (a, recorded), (b, again) = one, other
    assert a.tick == b.tick and a.guidance.landed == b.guidance.landed
    np.testing.assert_array_equal(a.state.motion, b.state.motion)
    np.testing.assert_array_equal(a.max_tension_n, b.max_tension_n)
    assert a.events.happened == b.events.happened
    assert a.separation.closest == b.separation.closest
    assert a.collisions.distances() == b.collisions.distances()
    assert a.plant.refined_periods == b.plant.refined_periods
    assert a.plant.spurious_energy_j == b.plant.spurious_energy_j
    for topic, texts in recorded.texts.items():  # what is found late is told late
        assert sorted(texts) == sorted(again.texts[topic])
    for recorder in (recorded, again):
        recorder.evaluate_references()
    for rate, rows in recorded.rows.items():
        np.testing.assert_array_equal(rows.stamps_ns(), again.rows[rate].stamps_ns())
        for name, column in rows.columns().items():
            np.testing.assert_array_equal(column, again.rows[rate].columns()[name])


def cut_everywhere(session):
    """Let a step of one's own follow every stage, which ends all runs."""
    for name in session.step_names:
        session.insert_after(name, f"after {name}", lambda tick: None)


@pytest.mark.parametrize("overrides", FLIGHTS.values(), ids=FLIGHTS)
def test_a_flight_is_the_same_however_its_runs_are_cut(overrides, monkeypatch):
    """And where nothing cuts them, compiled code flies on until something in Python is due."""
    whole, cut = session_of(*overrides), session_of(*overrides, kind=Looker)
    calls, advance = [], World.advance
    with monkeypatch.context() as watched:
        watched.setattr(
            World, "advance", lambda world, *given: (calls.append(given[1]), advance(world, *given))
        )
        whole[0].run()
    assert sum(periods for periods in calls if periods > 1) > 0.7 * whole[0].tick
    cut_everywhere(cut[0])
    with cut[0] as session:
        while not session.finished:
            session.advance(1)
    assert_same(whole, cut)


@pytest.mark.parametrize(
    "scenario",
    [
        "cable_cut",
        pytest.param("hexa_survives", marks=pytest.mark.slow),
        "release",
        "rotortm_rods_circle6",
        "snap_and_break",
    ],
)
def test_rows_are_what_was_seen_though_system_or_plan_have_changed_since(scenario):
    flown, looked = (session_of(kind=kind, scenario=scenario) for kind in (MemoryRecorder, Looker))
    for session, _ in (flown, looked):
        with session:
            session.advance(int(0.9 * session.guidance.planned_s / session.plant.period_s))
    assert_same(flown, looked)


def assert_ends_alike(one, other, error):
    with pytest.raises(error) as said:
        one[0].run()
    cut_everywhere(other[0])
    with pytest.raises(error) as said_again:
        other[0].run()
    assert str(said.value) == str(said_again.value)
    assert_same(one, other)


def test_a_flight_that_a_collision_ends():
    storm = "cable_model=massless", "start=air", "wind.mean_enu_m_s=[60, 0, 0]"
    one, other = (session_of(*storm, "limits.collision=end") for _ in range(2))
    assert_ends_alike(one, other, CollisionError)


def test_a_flight_that_diverges():
    one, other = (session_of("cable_model=massless", "start=air") for _ in range(2))
    for session, _ in (one, other):
        session.inputs.wrench_enu[0, 5] = 500.0  # the load goes up, faster and faster
    assert_ends_alike(one, other, SimulationDiverged)


def fly_by_requests(session, asked, end):
    """Fly to each period of `asked`, ask the player for something then, and go on to an end."""
    player = session.guidance.flight.player
    with session:
        for tick, what, given in asked:
            session.advance(tick - session.tick)
            getattr(player, what)(*given, session.time_s)
        session.advance(end - session.tick)


REQUESTS = {
    "a pause": [(700, "pause", ()), (1203, "resume", ()), (2100, "abort", ())],
    "a goal": [(701, "go_to", ([0.4, -0.3, 1.2, 0.5],)), (1490, "pause", ()), (1600, "resume", ())],
}


@pytest.mark.parametrize("rate_hz", [5, 33.3333, 50])
@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
def test_what_people_ask_for_is_the_same_however_runs_are_cut(asked, rate_hz):
    """At any rate of the plan; and what is recorded of the load's reference rests in a pause."""
    keys = "cable_model=massless", "start=air", f"mission.setpoint_rate_hz={rate_hz}"
    whole, cut = session_of(*keys), session_of(*keys, kind=Looker)
    cut_everywhere(cut[0])
    for session, _ in (whole, cut):
        fly_by_requests(session, asked, 7500)
    assert_same(whole, cut)
    (begin, _, _), (end, _, _) = [entry for entry in asked if entry[1] in ("pause", "resume")]
    rows = whole[1].rows[Rate.REFERENCE]
    time_s, place = rows.stamps_ns() * 1e-9, rows.columns()["reference.position_enu_m"]
    rests = (time_s > 0.004 * begin + 0.02) & (time_s < 0.004 * end)
    assert np.ptp(place[rests], axis=0) == pytest.approx(0.0, abs=1e-12)
    assert whole[0].state.motion[1:, 2].min() > 1.0  # after a goal, too, they hang there


class Seen(Observer):
    """Notes times and places of all bodies, one by one or by rows."""

    every = 2

    def __init__(self, *, by_rows):
        self.by_rows = by_rows
        self.times_s, self.places = [], []

    def observe(self, time_s, loop):
        self.record([time_s], loop)

    def record(self, times_s, seen):
        self.times_s += times_s
        self.places += list(seen.plant.state.motion[..., :3].copy().reshape(len(times_s), -1, 3))


def test_an_observer_by_rows_sees_what_one_in_each_period_does():
    seen = []
    for by_rows in (False, True):
        scenario = load_scenario(SCENARIOS / "hold.yaml", ["cable_model=massless", HOLD])
        session = Session(scenario)
        seen.append(Seen(by_rows=by_rows))
        session.observe_with(seen[-1])
        with session:
            session.advance(601)
    assert seen[0].times_s == seen[1].times_s
    assert len(seen[0].times_s) == 301
    assert np.array_equal(seen[0].places, seen[1].places)
