"""Session and ROS graph fly by the same decisions: the same facts, the same rows of set-points."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from musls_bringup.catalogue.scenarios import load_scenario
from musls_control.brief.brief import read_brief
from musls_control.estimate import Estimate
from musls_control.guard import LOOK_EVERY_S, Guard
from musls_control.mission.contingency import Contingency
from musls_control.mission.delivery import Outlet
from musls_control.mission.guidance import OFFBOARD, KnownState, guide
from musls_control.mission.player import CommandRefusal, PlayState
from musls_control.real_flight.graph import ReceivedMotion, graph_contingency, guidance_of
from musls_description.config.schema import to_yaml
from musls_sim.session.guidance import ROUNDING_S, MissionGuidance

STEP_S, TICKS, PERIOD_S = 0.02, 5, 0.004
G = 9.80665
GOAL = np.array([0.5, 0.3, 1.4, 0.2])
LEVEL = (1.0, 0.0, 0.0, 0.0)


class Side:
    """One of the two: what it flies, and what it says."""

    def __init__(self, known):
        self.known, self.rows, self.said, self.asked = known, [], [], []
        self.ended = []
        self.out = Outlet(self.tell, self.asked.append, self.end_phase)

    def tell(self, time_s, kind, what):
        self.said.append((round(time_s, 3), kind, what))

    def end_phase(self, time_s, what):
        """What a driver records of the end of a phase."""
        self.ended.append(what)

    def ask(self, action, time_s):
        """What a person asks for."""
        player = self.flight.player
        try:
            if action == "goal":
                player.go_to(GOAL, time_s)
            else:
                getattr(player, action)(time_s)
        except CommandRefusal as refusal:
            self.tell(time_s, "refused", str(refusal))

    def keep(self, time_s, numbers, stage):
        """Take note of set-points that have changed: places, velocities, accelerations, yaws."""
        if not self.rows or self.flight.player.setpoint.row != self.rows[-1][0]:
            row = self.flight.player.setpoint.row
            self.rows.append((row, round(time_s, 3), stage, numbers))


class InSession(Side):
    """Guidance as a session has it, in every control period, told by the memory of an estimate."""

    def __init__(self, scenario, plan, way):
        n = scenario.system.n_drones
        super().__init__(KnownState.always(Estimate.zeros(n), np.zeros((n, 4))))
        self.known.heard_s = dict.fromkeys(self.known.heard_s, 0.0)
        estimate = self.known.estimate
        for unknown in (estimate.position_enu_m, estimate.velocity_enu_m_s, estimate.tension_n):
            unknown[:] = np.nan
        self.happened = []
        self.flight = guide(
            plan, scenario.mission, scenario.formation, scenario.system, G, self.known, self.out,
            guard=Guard(), contingency=way,
        )  # fmt: skip
        autopilot = SimpleNamespace(landed=np.zeros(n, bool))
        self.guidance = MissionGuidance(self.flight, autopilot, [], PERIOD_S, self.out)
        self.guidance.act_through(
            SimpleNamespace(
                note=self.tell, apply=self.asked.append, check=lambda _: None,
                happened=self.happened,
            )
        )  # fmt: skip
        self.out.end_phase = self.end_phase  # not to observers, of which there are none

    def see(self, _, places, velocities, rotors):
        self.known.estimate.position_enu_m[:] = places
        self.known.estimate.velocity_enu_m_s[:] = velocities
        self.known.rotor_speed_rad_s[:] = rotors

    def happen(self, kind):
        self.happened.append(SimpleNamespace(kind=kind))

    def step(self, time_s):
        begin = round(time_s / PERIOD_S)
        for tick in range(begin, begin + TICKS):
            self.guidance.step(tick)
            data = self.guidance.setpoint.data
            self.keep(tick * PERIOD_S, data[:, :10].copy(), self.flight.player.stage)


class InGraph(Side):
    """Guidance as the node has it, at every message of the clock, told by stamped messages."""

    def __init__(self, scenario, plan, way, file):
        n = scenario.system.n_drones
        super().__init__(ReceivedMotion(n, 4))
        self.known.phases.update(dict.fromkeys(self.known.drones, "flying"))
        self.known.heard_s = dict.fromkeys((*self.known.bodies, OFFBOARD), 0.0)
        self.flight = guidance_of(file, plan, self.known, self.out, guard=Guard(), contingency=way)
        self.flight.begin(0.0)
        self.look_s = 0.0

    def see(self, time_s, places, velocities, rotors):
        delivers = self.flight.player.keeper is not None
        for body, place in enumerate(places):
            self.known.on_pose(body, time_s, place, LEVEL)
            if delivers:
                self.known.on_twist(body, time_s, velocities[body], (0.0, 0.0, 0.0))
            if delivers and body:
                self.known.on_rotors(body, time_s, rotors[body - 1])

    def happen(self, kind):
        if self.flight.player.keeper is not None:
            self.flight.player.keeper.on_event(kind)

    def step(self, time_s):
        if time_s > self.look_s - ROUNDING_S:
            self.look_s = time_s + LOOK_EVERY_S
            self.flight.look(time_s)
        now = self.flight.step(time_s)
        self.keep(time_s, now.drones.data[:, :10], now.stage)


class Flights:
    """The same flight on both sides; bodies are where the session's set-points are, or lost."""

    def __init__(self, scenario, file, way):
        ground = scenario.hanging.formation.offsets_m(scenario.system.n_drones) * [1.3, 1.3, 0.0]
        plan = file.plan_from(np.array([0.0, 0.0, 0.1]), 0.0, ground + [0.0, 0.0, 0.24])
        ways = [None, None] if way is None else [copy.deepcopy(way), copy.deepcopy(way)]
        self.session = InSession(scenario, plan, ways[0])
        self.graph = InGraph(scenario, plan, ways[1], file)
        self.sides, self.system = (self.session, self.graph), scenario.system
        self.falls, self.astray, self.blind_until_s = {}, set(), -1.0
        self.places = None

    def do(self, action, time_s):
        """Let a person ask for something, or a body get lost."""
        what, _, drone = action.partition(" ")
        if what in ("pause", "resume", "goal", "abort"):
            for side in self.sides:
                side.ask(what, time_s)
        elif what == "falls":
            self.falls.setdefault(int(drone), time_s)
        elif what in ("astray", "home"):
            (self.astray.add if what == "astray" else self.astray.discard)(int(drone))
        elif what in ("silent", "flying", "holding"):
            for side in self.sides:
                side.known.phases[f"drone_{drone}"] = what
        elif what == "blind":
            self.blind_until_s = time_s + float(drone)
        else:
            for side in self.sides:
                side.happen({"closes": "attach", "given_up": "abort"}[what])

    def see(self, time_s):
        """What motion capture tells, the same to both."""
        asked = self.session.guidance.setpoint.data
        load = self.session.guidance.plan.load_pose[self.session.guidance.row, :3]
        places = np.vstack([np.maximum(load, [-9.0, -9.0, 0.1]), asked[:, :3]])
        places[1:, 2] = np.nan_to_num(places[1:, 2], nan=0.24)
        for drone in self.astray:
            places[drone] += [2.0, 0.0, 0.0]
        for drone, since_s in self.falls.items():
            places[drone, 2] = max(places[drone, 2] - 0.5 * G * (time_s - since_s) ** 2, 0.24)
        before = places if self.places is None else self.places
        self.places, velocities = places, (places - before) / STEP_S
        carried = self.session.flight.player.stage in ("weigh", "waypoints", "hold", "approach")
        drone, cable = self.system.drones[0], self.system.cables[0]
        mass_kg = drone.mass_kg + cable.mass_kg + 2.0 * carried
        speed = np.sqrt(mass_kg * G / 4.0 / drone.rotors[0].thrust_coefficient_n_s2)
        for side in self.sides:
            side.known.heard_s[OFFBOARD] = time_s
            if time_s >= self.blind_until_s:
                side.see(time_s, places, velocities, np.full((len(places) - 1, 4), speed))
                side.known.heard_s.update(dict.fromkeys(side.known.bodies, time_s))

    def fly(self, script, until_s):
        """Play a script, (instant, action), from the begin of the flight."""
        due, instant, late_until = dict[int, list](), 0, -1
        for at, action in script:
            due.setdefault(at, []).append(action)
        while instant * STEP_S < until_s:
            time_s = instant * STEP_S
            for action in due.get(instant, ()):
                if action == "late":
                    late_until = instant + 35
                else:
                    self.do(action, time_s)
            if instant == late_until:
                for side in self.sides:
                    side.flight.stand_still(time_s, 35 * STEP_S)
            self.see(time_s)
            if instant >= late_until:
                for side in self.sides:
                    side.step(time_s)
            instant += 1
        return self


def check_equal(flights, apart_s=0.0):
    """Hold the rows of both sides equal; times may be apart by the steps of the graph."""
    one, other = flights.sides
    assert one.asked == other.asked
    ended = [
        [what for what in side.ended if not what.startswith("land ")] for side in flights.sides
    ]
    assert ended[0] == ended[1]  # who has landed, land detectors or phases say
    assert [said[1:] for said in one.said] == [said[1:] for said in other.said]
    assert [(number, stage) for number, _, stage, _ in one.rows] == [
        (number, stage) for number, _, stage, _ in other.rows
    ]
    for mine, its in zip(one.rows, other.rows, strict=True):
        np.testing.assert_array_equal(mine[3], its[3], str(mine[:3]))
    times_s = [
        np.array([*(row[1] for row in side.rows), *(said[0] for said in side.said)])
        for side in flights.sides
    ]
    np.testing.assert_allclose(*times_s, rtol=0.0, atol=apart_s + 1e-9)
    assert one.flight.player.state is other.flight.player.state


@pytest.fixture(scope="module")
def quad(tmp_path_factory):
    """Four drones whose load is so light that three carry on."""
    changes = {
        "system.load.mass_kg": 0.8,
        "events": [],
        "contingency": {},
        "mission.stages": [{"kind": "circle", "height_m": 1.5, "radius_m": 1.0}],
    }
    scenario = load_scenario("quad_survives", changes)
    file = tmp_path_factory.mktemp("quad") / "quad.yaml"
    file.write_text(to_yaml(scenario))
    found = read_brief(file)
    way = graph_contingency(found)
    assert isinstance(way, Contingency)
    return scenario, found, way


ACTIONS = [
    "pause", "resume", "goal", "abort", "late", "blind 0.3", "blind 0.8", "blind 2.5", "blind 6",
    "falls 2", "falls 3", "silent 1", "flying 1", "silent 2", "holding 4", "flying 4", "astray 3",
    "home 3",
]  # fmt: skip
SCRIPTS = st.lists(st.tuples(st.integers(0, 2200), st.sampled_from(ACTIONS)), max_size=7)
IN_CIRCLE = 1300
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""A failing script is short enough as it is."""


@settings(max_examples=2, deadline=None, phases=PHASES)
@given(SCRIPTS)
@example([(97, "late"), (109, "abort")])
@example([(67, "holding 4")])
@example([(IN_CIRCLE, "falls 2"), (IN_CIRCLE + 500, "falls 3")])
@example([(IN_CIRCLE, "pause"), (IN_CIRCLE + 60, "silent 1"), (IN_CIRCLE + 400, "resume")])
def test_rows_of_set_points_are_equal_row_by_row(quad, script):
    check_equal(Flights(*quad).fly(script, 40.0))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, phases=PHASES)
@given(SCRIPTS)
def test_rows_of_many_set_points_are_equal_row_by_row(quad, script):
    check_equal(Flights(*quad).fly(script, 60.0))


@pytest.mark.parametrize(
    "before",
    [[], pytest.param([(IN_CIRCLE - 60, "abort")], marks=pytest.mark.slow)],
    ids=["", "aborted"],
)
def test_what_a_loss_leads_to_is_told_and_asked_for_alike(quad, before):
    """The examples above do what they are for; the load hangs on the way back, too."""
    flights = Flights(*quad).fly([*before, (IN_CIRCLE, "falls 2")], 36.0)
    check_equal(flights)
    assert flights.graph.asked == [{"kind": "release", "cable": 2}]
    kinds = [kind for _, kind, _ in flights.graph.said]
    assert kinds == ["drone_given_up", "hook_opened", "reallocated", "guard"]
    assert "the mission goes on" in flights.graph.said[-1][2]
    why = [line for line in flights.graph.ended if "drone_2: " in line]
    assert why[0].startswith("abort ended: " if before else "circle ended: ")
    assert [line.startswith("circle was cut short: ") for line in flights.graph.ended].count(
        True
    ) == len(before)
    state = PlayState.ABORTING if before else PlayState.FLYING
    assert flights.session.flight.player.state is state
    assert flights.session.guidance.setpoint.armed.tolist() == [1.0, 0.0, 1.0, 1.0]


DELIVERED = st.lists(
    st.tuples(st.integers(0, 3000), st.sampled_from(["pause", "resume", "late", "blind 0.4"])),
    max_size=4,
)


@settings(max_examples=2, deadline=None, phases=PHASES)
@given(DELIVERED, st.sampled_from([None, 900, 1400]), st.sampled_from([None, 1200, 2600]))
@example([(950, "pause"), (2700, "resume")], 1000, None)
def test_a_delivery_is_flown_alike(tmp_path_factory, script, hooks, gives_up):
    """Hooks that close in time, later or not at all; given up at any time, or not."""
    scenario = load_scenario("delivery", {"mission.delivery.timeout_s": 6.0})
    file = tmp_path_factory.mktemp("delivery") / "delivery.yaml"
    file.write_text(to_yaml(scenario))
    events = [(hooks, "closes"), (gives_up, "given_up")]
    script = [*script, *((at, what) for at, what in events if at)]
    flights = Flights(scenario, read_brief(file), None).fly(script, 64.0)
    # A gate gives up between two steps of the graph.
    check_equal(flights, apart_s=len(flights.graph.said) * STEP_S)
