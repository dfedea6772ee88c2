"""The session: the only loop, its order, what watches it, and how it ends."""

from pathlib import Path

import numpy as np
import pytest
from flight_helpers import Look, session_with_bag
from rosbags.highlevel import AnyReader

from musls_control.autopilot import Autopilot
from musls_control.controllers import Controller
from musls_description.config.errors import ConfigError
from musls_sim.plants.interface import EventRecord
from musls_sim.recording import MemoryRecorder
from musls_sim.recording.signals import EVENTS, Rate
from musls_sim.scenario.events import Poke, When
from musls_sim.scenario.scenario import AUTOPILOTS, load_scenario
from musls_sim.session import compose as compose_module
from musls_sim.session.loop import Loop, Observer
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
SHORT = (
    "system=x500_duo", "system.cables.links=3", "formation={radius_m: 1.0, height_m: 2.38}",
    "mission.settle_s=0.2", "mission.stages.0.duration_s=0.3", "estimation.kind=truth",
    "mission.setpoint_rate_hz=50",
)  # fmt: skip
PERIODS = 126
"""Of the short flight: 0.2 s settle, 0.3 s hold, and one to find that it is over."""


def scenario(*overrides):
    return load_scenario(SHIPPED / "hold.yaml", [*SHORT, *overrides])


class Diary(Observer):
    """Writes down all that it is told."""

    def __init__(self, entries, name="", every=1, fail_in=""):
        self.entries, self.name, self.every, self.fail_in = entries, name, every, fail_in

    def note(self, what, *more):
        self.entries.append((self.name, what, *more))
        if what == self.fail_in:
            raise RuntimeError(f"{self.name} fails in {what}")

    def start(self, loop):
        self.note("start")

    def observe(self, time_s, loop):
        self.note("observe", loop.tick)

    def on_setpoint(self, time_s, *poses):
        self.note("setpoint", time_s, *(pose.shape for pose in poses))

    def on_stage(self, time_s, name):
        self.note("stage", time_s, name)

    def on_event(self, time_s, kind, what):
        self.note("event", time_s, kind)

    def close(self):
        self.note("close")


class Wrapped(Autopilot):
    """The built-in autopilot, which notes when it is started and closed."""

    def __init__(self, setup, entries, fail_in):
        self._inside, self.entries, self.fail_in = AUTOPILOTS["builtin"](setup), entries, fail_in

    def start(self, setpoint, estimate):
        self.entries.append(("autopilot", "start"))
        if self.fail_in == "start":
            raise RuntimeError("autopilot fails in start")
        self._inside.start(setpoint, estimate)

    def close(self):
        self.entries.append(("autopilot", "close"))
        self._inside.close()

    landed = property(lambda self: self._inside.landed)

    def step(self, *given):
        return self._inside.step(*given)


def noting(entries, fail_in=""):
    return lambda setup: Wrapped(setup, entries, fail_in)


# ---------- Loop


def test_a_loop_runs_its_steps_in_order_with_the_observers_between():
    plant = type("Clockwork", (), {"period_s": 0.25})()
    done = []
    loop = Loop(plant)
    loop.observe_with(Diary(done, "a"))
    loop.observe_with(Diary(done, "b", every=3))
    loop.set_steps(
        {
            "before": lambda tick: done.append(("before", tick)),
            "observers": loop.look,
            "after": lambda tick: done.append(("after", tick)),
        }
    )
    loop.observe_with(Diary(done, "c", every=2))
    assert done == []
    loop.advance(4)
    assert done[:3] == [("a", "start"), ("b", "start"), ("c", "start")]
    expected = []
    for tick in range(4):
        looking = [name for name, every in (("a", 1), ("b", 3), ("c", 2)) if tick % every == 0]
        expected += [("before", tick), *((n, "observe", tick) for n in looking), ("after", tick)]
    assert done[3:] == expected
    assert loop.tick == 4 and loop.time_s == 1.0 and not loop.finished
    loop.stop()
    assert loop.finished and loop.stopped
    loop.close()
    loop.close()
    assert sorted(done[-3:]) == [("a", "close"), ("b", "close"), ("c", "close")]
    assert done.count(("a", "close")) == 1


def test_steps_of_ones_own_are_inserted_before_and_after_named_ones():
    plant = type("Clockwork", (), {"period_s": 0.25})()
    done = []
    loop = Loop(plant)
    loop.set_steps({"control": lambda tick: done.append("control"), "plant": lambda tick: None})
    loop.insert_before("plant", "push", lambda tick: done.append("push"))
    loop.insert_after("plant", "look twice", lambda tick: done.append("look"))
    loop.insert_before("control", "first", lambda tick: done.append("first"))
    assert loop.step_names == ("first", "control", "push", "plant", "look twice")
    loop.advance(1)
    assert done == ["first", "control", "push", "look"]
    with pytest.raises(ConfigError, match="no step 'plan' in this loop: it has first, control, p"):
        loop.insert_after("plan", "more", print)
    with pytest.raises(ConfigError, match="there is a step 'push' already"):
        loop.insert_after("plant", "push", print)


@pytest.mark.parametrize(
    ("work_j", "what"), [(-2.0, "2 J came from nothing"), (2.0, "2 J got lost in the integration")]
)
def test_energy_from_nothing_or_lost_is_an_event(work_j, what):
    hold = "mission.stages=[{kind: hold, position_m: [0, 0, 1], duration_s: 4}]"
    with Session(scenario("cable_model=massless", "start=air", hold)) as session:
        session.advance(251)
        assert session.events.happened == []
        session.plant.records.system[0]["work"] += work_j
        session.advance(500)
    (event,) = session.events.happened
    assert event.kind == "doubtful" and event.what.startswith(what)


THIN = ("start=air", "system.cables.material=cord", "system.cables.diameter_m=1e-4")
"""Cords that hold 1.06 N, on which a share of some 4 N hangs."""


@pytest.mark.parametrize("model", ["rigid_links", "massless"])
def test_a_rope_that_would_have_parted_makes_the_flight_doubtful(model):
    with Session(scenario(f"cable_model={model}", *THIN)) as session:
        session.advance(125)
        found = [event for event in session.events.happened if event.kind == "doubtful"]
    assert len(found) == 2  # once for each of two cables
    assert found[0].what.startswith("cable_1 is pulled with ")
    assert found[0].what.endswith("more than it holds (material = cord (1.06 N)), and did not part")


@pytest.mark.parametrize("model", ["rigid_links", "elastic"])
def test_a_rope_that_parts_is_not_told_to_hold(model):
    weak = "system.cables.elastic.break_force_n=8.0"
    with Session(scenario("start=air", f"cable_model={model}", weak)) as session:
        for _ in range(50):
            session.inputs.wrench_enu[0, 5] = -30.0
            session.advance(1)
        kinds = {event.kind for event in session.events.happened}
    assert "cable_broken" in kinds and "doubtful" not in kinds


def test_an_elastic_rope_parts_where_its_material_does():
    with pytest.raises(
        ConfigError, match=r"cables\.0\.material = cord \(1\.06 N\): the cable would"
    ):
        Session(scenario("cable_model=elastic", *THIN))


def test_a_session_has_the_steps_that_its_flight_needs():
    with Session(scenario()) as session:
        assert session.step_names == (
            "reference", "events", "links", "separation", "observers", "plan", "rows", "control",
            "plant", "cable_events", "collisions", "estimation",
        )  # fmt: skip
    windy = scenario("wind.gust_std_m_s=[1, 1, 0]", "imperfections.command_latency_s=0.008",
                     "imperfections.drones=[{thrust_tilt_rad: [0.01, 0.0]}]")  # fmt: skip
    with Session(windy) as session:
        names = session.step_names
        begin = names.index("control") + 1
        assert names[begin : begin + 5] == (
            "command_latency", "wind", "tilted_thrust", "plant", "cable_events",
        )  # fmt: skip


# ---------- Session


def test_run_is_advance_until_finished_bit_for_bit():
    states = []
    for drive in ("run", "one by one", "in one go"):
        session = Session(scenario("seed=4", "estimation.kind=mocap"))
        if drive == "run":
            result = session.run()
            assert result.periods == PERIODS and not result.interrupted
            assert result.sim_time_s == session.time_s == pytest.approx(0.504)
        elif drive == "one by one":
            with session:
                while not session.finished:
                    session.advance(1)
        else:
            session.advance(PERIODS - 1)  # starts by itself
            assert not session.finished
            session.advance(1)
            assert session.finished and not session.stopped
            session.close()
        states.append((session.tick, session.state.motion.copy(), session.estimate.data.copy()))
    first, *others = states
    for other in others:
        assert all(map(np.array_equal, first, other))


def test_in_a_period_guidance_speaks_before_observers_look_and_the_plant_moves_after():
    seen = []
    session = Session(scenario(), observers=[Diary(seen)])
    before = session.state.position_enu_m.copy()

    def look(time_s, loop):
        seen.append(("look", loop.stage, loop.time_s == time_s == loop.plant.time_s))
        if loop.tick == 0:
            assert np.array_equal(loop.state.position_enu_m, before)

    session.observe_with(Look(look))
    session.advance(1)
    told = [("", "setpoint", 0.0, (3, 3), (3, 4)), ("", "stage", 0.0, "settle")]
    assert seen == [("", "start"), *told, ("", "observe", 0), ("look", "settle", True)]
    assert session.plant.time_s == session.time_s == session.plant.period_s
    session.advance(PERIODS - 1)
    assert all(entry[2] for entry in seen if entry[0] == "look")
    assert [entry[3] for entry in seen if entry[1] == "stage"] == ["settle", "hold"]
    session.close()


def test_the_parts_are_composed_once_and_shared(monkeypatch):
    made = []
    compose = compose_module.PLANTS["rigid_links"]
    monkeypatch.setitem(
        compose_module.PLANTS._entries,
        "rigid_links",
        lambda setup: made.append(setup) or compose(setup),
    )
    session = Session(scenario())
    assert len(made) == 1
    assert session.plant is session.components.plant and session.state is session.plant.state
    assert session.estimate is session.components.estimator.estimate
    assert session.inputs.rotor_command_rad_s is session.command.omega_cmd_rad_s
    state, setpoint = session.state.motion, session.guidance.setpoint.data
    session.run()
    assert len(made) == 1
    assert session.state.motion is state and session.guidance.setpoint.data is setpoint
    session.close()


def test_sessions_of_a_scenario_share_the_plan_and_fly_alike():
    flown = scenario("seed=4", "start=ground")
    ends = []
    for _ in range(2):
        with Session(flown) as session:
            session.run()
        ends.append(session.state.motion.copy())
        plan = session.components.plan
    np.testing.assert_array_equal(ends[0], ends[1])
    load, drones = plan.ground.load_position_enu_m, plan.ground.drone_position_enu_m
    assert flown.brief.plan_from(load, 0.0, drones) is plan
    assert flown.brief.plan_from(load + [1.0, 0.0, 0.0], 0.0, drones) is not plan


def test_the_reference_is_where_the_mission_asks_the_load_to_be():
    overrides = (
        "mission.stages=[{kind: circle, radius_m: 1, speed_m_s: 2}]",
        "mission.settle_s=0.2",
    )
    session = Session(scenario(*overrides))
    session.advance(150)
    angle = 2.0 * 0.4  # rad, at 1 m radius
    reference = session.reference
    assert reference.position_enu_m[:2] == pytest.approx([np.cos(angle), np.sin(angle)])
    assert reference.velocity_enu_m_s[:2] == pytest.approx(
        [-2.0 * np.sin(angle), 2.0 * np.cos(angle)]
    )
    assert np.linalg.norm(reference.acceleration_enu_m_s2) == pytest.approx(4.0)
    session.close()


def test_a_recorder_in_memory_and_a_bag_see_the_same(tmp_path):
    session = session_with_bag(
        scenario("recording={rate_hz: 125, shape_rate_hz: 25}"), tmp_path / "bag"
    )
    memory = MemoryRecorder(
        session.scenario.system,
        step_period_s=session.plant.period_s,
        rate_hz=25.0,
        shape_rate_hz=25.0,
    )
    heights = []
    session.observe_with(memory)
    session.observe_with(Look(lambda t, s: heights.append(s.state.position_enu_m[0, 2]), every=10))
    session.run()
    with AnyReader([tmp_path / "bag"]) as reader:
        chosen = [c for c in reader.connections if c.topic == "/load/pose"]
        poses = {t: reader.deserialize(d, c.msgtype) for c, t, d in reader.messages(chosen)}
    assert len(poses) == 63 and len(heights) == 13
    every_40_ms = [m.pose.position.z for t, m in sorted(poses.items()) if t % 40_000_000 == 0]
    recorded = memory.rows[Rate.STATE].columns()["pose.position_enu_m"][:, 0, 2]
    assert every_40_ms == heights == recorded.tolist()


def test_the_reference_is_recorded_as_controllers_get_it():
    """Not held between the set-points, which come ten times a second here."""
    circle = "{kind: circle, radius_m: 0.1, speed_m_s: 0.5, repetitions: 1}"
    chosen = scenario(f"mission.stages=[{circle}]", "mission.setpoint_rate_hz=10")
    memory, asked = MemoryRecorder(chosen.system, step_period_s=0.004), []
    look = Look(lambda t, s: asked.append(s.guidance.reference_at(t).position_enu_m), every=5)
    with Session(chosen, observers=[memory, look]) as session:
        session.run()
    memory.evaluate_references()
    recorded = memory.rows[Rate.REFERENCE].columns()["reference.position_enu_m"][:, 0]
    np.testing.assert_allclose(recorded, asked, rtol=0.0, atol=1e-12)
    assert len(np.unique(recorded[:, 0])) > 15


# ---------- When it goes wrong


@pytest.mark.parametrize("method", ["observe", "setpoint", "stage"])
def test_a_failing_observer_ends_the_run_and_everything_is_closed(tmp_path, method):
    entries = []
    session = session_with_bag(scenario(), tmp_path / "bag", make_autopilot=noting(entries))
    session.observe_with(Diary(entries, "bad", every=20, fail_in=method))
    session.observe_with(Diary(entries, "after"))
    with pytest.raises(RuntimeError, match=f"bad fails in {method}"):
        session.run()
    for name in ("autopilot", "bad", "after"):
        assert entries.count((name, "close")) == 1
    with AnyReader([tmp_path / "bag"]) as reader:  # readable, with its index
        assert reader.message_count > 0 or method != "observe"


@pytest.mark.parametrize("who", ["autopilot", "first", "second"])
def test_what_fails_to_start_takes_everything_with_it(tmp_path, who):
    entries = []
    make = noting(entries, "start" if who == "autopilot" else "")
    first = Diary(entries, "first", fail_in="start" if who == "first" else "")
    session = Session(scenario(), observers=[first], make_autopilot=make)
    second = Diary(entries, "second", fail_in="start" if who == "second" else "")
    session.observe_with(second)
    bag = session_with_bag(scenario(), tmp_path / "bag").observers[0]
    session.observe_with(bag)
    with pytest.raises(RuntimeError, match=f"{who} fails in start"), session:
        raise AssertionError("it must not come this far")
    for name in ("autopilot", "first", "second"):
        assert entries.count((name, "close")) == 1, name
    assert session.tick == 0
    with AnyReader([tmp_path / "bag"]) as reader:
        assert reader.message_count == 0


class NoLevel(Controller):
    """A controller that does not say what it puts out."""

    def step(self, time_s, reference, estimate):
        """Never called."""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"events": ["{kind: poke, when: {time_s: 0}, body: drone_9, duration_s: 1}"]}, "drone_9"),
    ],
)
def test_a_session_that_is_refused_closes_its_autopilot(options, words):
    entries = []
    events = f"events=[{', '.join(options.pop('events', []))}]"
    with pytest.raises(ConfigError, match=words):
        Session(scenario(events), make_autopilot=noting(entries), **options)
    assert entries == [("autopilot", "close")]


def test_a_controller_without_level_is_refused():
    with pytest.raises(ConfigError, match=r"NoLevel.level = None: choose one of"):
        Session(scenario(), controller=NoLevel)


def test_a_session_that_never_flies_can_be_closed(tmp_path):
    entries = []
    session = session_with_bag(scenario(), tmp_path / "bag", make_autopilot=noting(entries))
    session.close()
    session.close()
    assert entries == [("autopilot", "close")]
    with AnyReader([tmp_path / "bag"]) as reader:
        assert reader.message_count == 0


def test_stop_ends_a_run_after_the_present_period():
    session = Session(scenario())
    session.observe_with(Look(lambda t, s: s.stop() if s.tick == 40 else None))
    result = session.run()
    assert result.interrupted and result.periods == 41
    assert session.finished and session.stopped


# ---------- Events


def test_events_happen_in_their_time_and_are_told():
    told = []
    events = (
        "events=[{kind: poke, when: {time_s: 0.05}, force_enu_n: [1, 0, 0], duration_s: 0.1},"
        "{kind: poke, when: {stage: hold, after_s: 0.1}, body: drone_2,"
        " moment_enu_n_m: [0, 0, 0.01], duration_s: 0.05}]"
    )
    session = Session(scenario(events), observers=[Diary(told)])
    push = {}
    session.observe_with(Look(lambda t, s: push.update({s.tick: s.inputs.wrench_enu.copy()})))
    session.run()
    times = [entry[2] for entry in told if entry[1] == "event"]
    assert times == pytest.approx([0.052, 0.152, 0.3, 0.352])
    assert [event.time_s for event in session.events.happened] == times
    assert "load: pushed by [1.0, 0.0, 0.0] N for 0.1 s" in session.events.happened[0].what
    acting = {tick: [tuple(map(int, at)) for at in np.argwhere(w)] for tick, w in push.items()}
    assert [tick for tick, where in acting.items() if (0, 3) in where] == list(range(13, 38))
    assert [tick for tick, where in acting.items() if (2, 2) in where] == list(range(75, 88))


def test_what_happens_to_the_cables_by_itself_is_recorded_once_and_in_its_time(monkeypatch):
    build = compose_module.build_plant

    def breaking(*args):
        plant = build(*args)
        step, plant.happened = plant.step, []

        def step_and_break(inputs):
            step(inputs)
            if round(plant.time_s / plant.period_s) == 10:
                plant.happened.append(EventRecord(0.0385, "cable_broken", "cable_2: at 812 N"))

        plant.step = step_and_break
        return plant

    monkeypatch.setattr(compose_module, "build_plant", breaking)
    recorder, entries = MemoryRecorder(scenario().system, step_period_s=0.004), []
    observers = [recorder, Diary(entries)]
    with Session(scenario(), observers=observers) as session:
        session.advance(20)
    assert recorder.texts[EVENTS] == [(38500000, "cable_broken: cable_2: at 812 N")]
    told = [i for i, e in enumerate(entries) if e[1] == "event"]
    assert [entries[i] for i in told] == [("", "event", 0.0385, "cable_broken")]
    assert entries[told[0] - 1] == ("", "observe", 9)
    assert [e.what for e in session.events.happened] == ["cable_2: at 812 N"]
    assert session.plant.happened == []


def test_an_event_that_is_added_in_flight_counts_from_the_beginning_of_the_stage():
    session = Session(scenario())
    with session:
        session.advance(60)  # hold began at 0.2 s
        session.add_event(Poke(when=When(stage="hold", after_s=0.1), duration_s=0.05))
        session.advance(30)
    (begin, end) = session.events.happened
    assert (begin.time_s, end.time_s) == pytest.approx((0.3, 0.352))


def test_an_event_in_a_stage_that_is_not_flown_is_refused():
    event = "events=[{kind: poke, when: {stage: circle}, duration_s: 1}]"
    with pytest.raises(ConfigError, match=r"'circle' is not flown; this mission has settle, hold"):
        Session(scenario(event))


def test_a_controller_class_of_another_kind_is_refused():
    with pytest.raises(ConfigError, match=r"not a musls\.Controller"):
        Session(scenario(), controller=dict)


@pytest.mark.parametrize("controller", ["formation", "payload"])
def test_people_pause_a_flight_and_send_the_load_elsewhere_as_on_the_ros_graph(controller):
    """Set-points rest meanwhile, also those of a controller in compiled code."""
    changes = ["start=air", "cable_model=massless", f"controller={controller}",
               "mission.settle_s=0.5"]  # fmt: skip
    with Session(load_scenario(SHIPPED / "circle.yaml", changes)) as session:
        session.advance(1000)
        player, moving = session.guidance.flight.player, session.reference
        assert np.linalg.norm(moving.velocity_enu_m_s) > 0.1
        player.pause(session.time_s)
        session.advance(1000)
        held = session.reference
        assert not held.velocity_enu_m_s.any()
        load = session.state.position_enu_m[0]
        assert np.linalg.norm(load - held.position_enu_m) < 0.15
        assert np.linalg.norm(session.state.velocity_enu_m_s[0]) < 0.1
        player.resume(session.time_s)
        session.advance(250)
        assert np.linalg.norm(session.reference.velocity_enu_m_s) > 0.1
        player.go_to(np.array([0.5, 0.0, 1.5, 0.0]), session.time_s)
        session.advance(2500)
        assert session.stage == "goal" and not session.finished
        assert np.linalg.norm(session.state.position_enu_m[0] - [0.5, 0.0, 1.5]) < 0.15
