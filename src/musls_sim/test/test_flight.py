"""Whole flights: shipped scenarios start, runs repeat bit for bit, bags hold what the plant did."""

import copy
import signal
import time
import tracemalloc
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from flight_helpers import Look, session_with_bag
from rosbags.highlevel import AnyReader

from musls_control.estimate import Estimate
from musls_control.mission.delivery import Outlet
from musls_control.mission.guidance import FlightGuidance, KnownState
from musls_control.mission.plan import GroundSpot, compile_air_plan, compile_plan
from musls_control.mission.player import FlightPlayer, GoalSettings
from musls_control.mission.spec import PHASES, MissionSpec
from musls_control.trajectories import Circle
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml
from musls_description.hanging.cone import Cone
from musls_sim.plants.interface import SimulationDiverged
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.guidance import MissionGuidance
from musls_sim.session.loop import Observer, Progress

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
# RotorTM's act without rotors and stop elsewhere than they began: test_rotortm flies them. Rigs
# begin as they hang, and stay in the air: test_rig_missions.
NAMES = sorted(
    p.stem
    for p in SHIPPED.glob("*.yaml")
    if "stages:" in p.read_text()
    and not p.stem.startswith("rotortm")
    and "equilibrium" not in p.read_text()
)
IN_AIR = sorted({*NAMES} - {"engage", "engage_elastic", "paper", "snap_and_break"})
"""Without those that set the load down on the ground."""
FALLS = {"cable_cut", "drone_lost", "release", "rotor_failure"}
"""Events after which load or drones fall."""

HANGING = ("mission.stages=[{kind: hold, duration_s: 0.8}]", "mission.settle_s=0.2")
"""One second in the air."""
TRUTH = "estimation={kind: truth}"
HOP = (
    "start=ground",
    "mission.stages=[{kind: hold, duration_s: 3, position_m: [0, 0, 0.5]}]",
    "mission.settle_s=0.5",
    "mission.form_up_s=3",
)
"""The shortest flight from the ground to the ground."""


def scenario(name, *overrides):
    return load_scenario(SHIPPED / f"{name}.yaml", overrides)


def flight(folder, name, *overrides):
    return session_with_bag(scenario(name, *overrides), folder / "bag")


def fly_for(run, seconds):
    with run:
        run.advance(round(seconds / run.plant.period_s))
    return run


def state_arrays(run):
    state = vars(run.plant.state)
    return {name: np.array(value) for name, value in state.items() if name != "records"}


def same_state(a, b):
    a, b = state_arrays(a), state_arrays(b)
    return all(np.array_equal(a[name], b[name]) for name in a)


def raw_messages(folder):
    """Everything in a bag: topic, time and bytes of each message in order."""
    with AnyReader([folder]) as reader:
        return [(c.topic, time_ns, bytes(data)) for c, time_ns, data in reader.messages()]


def messages(folder, *topics):
    """Decoded messages of some topics with their times [s]."""
    with AnyReader([folder]) as reader:
        chosen = [c for c in reader.connections if c.topic in topics]
        for c, time_ns, data in reader.messages(chosen):
            yield c.topic, time_ns * 1e-9, reader.deserialize(data, c.msgtype)


def stages_in(folder):
    return [message.data for _, _, message in messages(folder, "/mission/stage")]


# ---------- Every scenario


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_scenario_starts(name, tmp_path):
    run = flight(tmp_path, name)
    before = run.plant.state.position_enu_m.copy()
    fly_for(run, 0.6)
    state = run.plant.state
    assert run.plant.time_s == pytest.approx(0.6)
    for array in state_arrays(run).values():
        assert np.isfinite(array).all()
    # The motors spool up; nothing moves yet.
    assert np.linalg.norm(state.position_enu_m - before, axis=1).max() < 0.01
    assert run.guidance.stage in ("spool_up", "settle")
    idle = [[rotor.speed_min_rad_s for rotor in drone.rotors] for drone in run.plant.system.drones]
    assert (state.rotor_speed_rad_s > 0.6 * np.array(idle)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_scenario_is_flown_to_its_end(name, tmp_path):
    run = flight(tmp_path, name)
    start = run.plant.state.position_enu_m.copy()
    result = run.run()
    survives = run.scenario.contingency is not None  # then another plan was flown in the end
    waited_s = result.sim_time_s - run.components.plan.duration_s
    assert survives or 0.0 <= waited_s < 30.0
    state = run.plant.state
    if run.scenario.start.kind == "air":
        if {event.kind for event in run.scenario.events} & FALLS:
            return  # nobody stays in place then
        if run.scenario.system.winches:
            return  # they lower the load
        # The load is where it is asked to be; who follows a circle ends behind its end.
        holds = {stage.kind for stage in run.scenario.mission.stages} == {"hold"}
        missed = np.linalg.norm(state.position_enu_m[0] - run.components.plan.load_pose[-1, :3])
        assert missed < (0.05 if holds else 0.5)
        return
    assert result.landed
    assert stages_in(tmp_path / "bag")[-1] == "disarmed"
    if survives:
        return  # one drone lies where it fell
    assert state.position_enu_m[:, 2] == pytest.approx(start[:, 2], abs=0.05)
    assert (state.rotor_speed_rad_s < 1.0).all()


@pytest.mark.parametrize("name", IN_AIR)
def test_every_shipped_scenario_flies_its_first_stage_from_the_air(name, tmp_path):
    still = "wind={mean_enu_m_s: [0, 0, 0]}"
    run = flight(tmp_path, name, "start=air", "mission.settle_s=0.2", still)
    before = run.plant.state.position_enu_m.copy()
    fly_for(run, 1.0)
    first = run.scenario.mission.stages[0]
    assert run.guidance.stage == first.kind
    for array in state_arrays(run).values():
        assert np.isfinite(array).all()
    # In 1 s, nothing has gone further than the set-point could pull it.
    assert np.linalg.norm(run.plant.state.position_enu_m - before, axis=1).max() < 1.0
    share = run.scenario.system.load.mass_kg * 9.80665 / run.scenario.system.n_drones
    assert (run.plant.state.tension_n[:, 0] > 0.1 * share).all()
    up = 1.0 - 2.0 * (run.plant.state.orientation_wxyz[:, 1:3] ** 2).sum(axis=1)
    assert (up > np.cos(np.radians(30.0))).all()


# ---------- Repeatability


@pytest.fixture(scope="module")
def windy(tmp_path_factory):
    """A short flight with noise, gusts and dropouts, and how to fly it again."""

    def fly(*overrides):
        folder = tmp_path_factory.mktemp("windy")
        settings = (*HANGING, "start=air", "estimation={kind: mocap, dropout_fraction: 0.1}")
        run = flight(folder, "wind", *settings, *overrides)
        result = run.run()
        return SimpleNamespace(run=run, result=result, bag=folder / "bag")

    return SimpleNamespace(fly=fly, first=fly("seed=5"))


def test_the_same_seed_gives_the_same_flight_bit_for_bit(windy):
    again = windy.fly("seed=5")
    assert same_state(windy.first.run, again.run)
    assert raw_messages(windy.first.bag) == raw_messages(again.bag)
    assert np.array_equal(windy.first.result.max_tension_n, again.result.max_tension_n)


def test_another_seed_gives_another_flight(windy):
    assert not same_state(windy.first.run, windy.fly("seed=6").run)


def test_the_resolved_scenario_flies_the_same_flight(windy, tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(to_yaml(windy.first.run.scenario))
    again = session_with_bag(load_scenario(path), tmp_path / "bag")
    again.run()
    assert same_state(windy.first.run, again)
    assert raw_messages(windy.first.bag) == raw_messages(tmp_path / "bag")


def test_progress_and_pace_do_not_change_the_flight(windy, tmp_path):
    run = session_with_bag(windy.first.run.scenario, tmp_path / "bag")
    seen = []
    run.observe_with(Progress(lambda time_s, flight: seen.append(time_s)))
    begin = time.perf_counter()
    result = run.run(realtime=True)
    wall = time.perf_counter() - begin
    assert same_state(windy.first.run, run)
    assert wall >= result.sim_time_s - 0.1
    # About ten reports a second, in order.
    assert 3 <= len(seen) <= 11 * wall + 1
    assert seen == sorted(seen) and seen[0] == 0.0 and seen[-1] <= result.sim_time_s


def test_from_the_ground_too_the_flight_repeats(tmp_path):
    """Contacts and slack cables included."""
    runs = []
    for name in "ab":
        (tmp_path / name).mkdir()
        runs.append(fly_for(flight(tmp_path / name, "circle"), 2.0))
    assert same_state(*runs)
    assert raw_messages(tmp_path / "a" / "bag") == raw_messages(tmp_path / "b" / "bag")


# ---------- The bag


def test_the_bag_holds_the_plants_state_at_the_recorded_times(tmp_path):
    rates = ("recording.rate_hz=125", "recording.shape_rate_hz=25")
    run = flight(tmp_path, "circle", *HANGING, *rates, "start=air", "seed=2")
    truth, nodes = {}, {}

    def keep(time_s, session):
        truth[round(time_s * 1e9)] = copy.deepcopy(session.state)
        nodes[round(time_s * 1e9)] = session.plant.cable_nodes_enu_m(1)

    run.observe_with(Look(keep, every=2))
    run.run()
    assert sorted(truth) == [round(k * 8e6) for k in range(len(truth))]

    seen = dict.fromkeys(("pose", "twist", "rotors", "tension", "shape"), 0)
    bodies = ["load", "drone_1", "drone_2", "drone_3"]
    topics = [f"/{b}/{kind}" for b in bodies for kind in ("pose", "twist")]
    topics += ["/drone_2/rotors", "/cable_3/tension", "/cable_2/shape"]
    for topic, _, message in messages(tmp_path / "bag", *topics):
        name, kind = topic.strip("/").split("/")
        stamp = message.header.stamp
        time_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
        state = truth[time_ns]
        seen[kind] += 1
        if kind == "pose":
            k = bodies.index(name)
            p, q = message.pose.position, message.pose.orientation
            assert [p.x, p.y, p.z] == state.position_enu_m[k].tolist()
            assert [q.w, q.x, q.y, q.z] == state.orientation_wxyz[k].tolist()
        elif kind == "twist":
            v = message.twist.linear
            assert [v.x, v.y, v.z] == state.velocity_enu_m_s[bodies.index(name)].tolist()
        elif kind == "rotors":
            assert message.velocity.tolist() == state.rotor_speed_rad_s[1].tolist()
        elif kind == "tension":
            end = ["cable_3/load_end", "cable_3/drone_end"].index(message.header.frame_id)
            assert message.wrench.force.x == state.tension_n[2, end]
        else:
            points = [[p.x, p.y, p.z] for p in message.points]
            assert np.array_equal(points, nodes[time_ns])
    n = len(truth)
    assert seen == {
        "pose": 4 * n,
        "twist": 4 * n,
        "rotors": n,
        "tension": 2 * n,
        "shape": n // 5 + 1,
    }


def test_the_bag_holds_each_change_of_the_set_points(tmp_path):
    settings = ("start=air", "mission.settle_s=0.4", TRUTH, "mission.setpoint_rate_hz=5")
    run = fly_for(flight(tmp_path, "circle", *settings), 2.0)
    flown = [(t, m) for _, t, m in messages(tmp_path / "bag", "/load/setpoint")]
    # The first, then one with each 0.2 s of the circle.
    assert [t for t, _ in flown] == pytest.approx([0.0, *np.arange(0.6, 2.0, 0.2)])
    angle = 0.3 / 1.5 * (np.array([t for t, _ in flown[1:]]) - 0.4)
    x = [m.pose.position.x for _, m in flown[1:]]
    assert x == pytest.approx(1.5 * np.cos(angle))
    drones = [m for _, _, m in messages(tmp_path / "bag", "/drone_1/setpoint")]
    assert len(drones) == len(flown)
    assert drones[-1].pose.position.z == pytest.approx(1.0 + 2.2962)
    assert run.guidance.stage == "circle" and stages_in(tmp_path / "bag") == ["settle", "circle"]


# ---------- The guidance


class Log(Observer):
    """Keeps what the guidance tells."""

    def __init__(self):
        self.times, self.stages = [], []

    def on_setpoint(self, time_s, *poses):
        self.times.append(time_s)

    def on_stage(self, time_s, name):
        self.stages.append((time_s, name))


def guidance_of(plan, mission, autopilot, log):
    """Guidance of two drones that are never where a plan waits for them."""
    player, out = FlightPlayer(plan, Cone(), mission, GoalSettings()), Outlet()
    flight = FlightGuidance(player, KnownState.always(Estimate.zeros(2), np.zeros((2, 4))), out)
    return MissionGuidance(flight, autopilot, [log], 0.004, out)


@pytest.mark.parametrize("rate", [1.0, 5.0, 7.0, 30.0, 100.0, 250.0])
def test_set_points_are_handed_out_at_their_rate_and_held(rate):
    """Also for rates that do not divide 250 Hz: at the first period in which they are due."""
    mission = MissionSpec(stages=(Circle(speed_m_s=3.0),), setpoint_rate_hz=rate, settle_s=1.0)
    plan = compile_air_plan(mission, Cone(), np.array([1.5, 0.0, 1.0, 0.0]), 2)
    log = Log()
    guidance = guidance_of(plan, mission, SimpleNamespace(), log)
    held = []
    for tick in range(10**5):
        guidance.step(tick)
        if guidance.finished:
            break
        held.append(guidance.setpoint.data.copy())
    due = np.arange(len(plan.stage)) / rate
    late = np.array(log.times) - due
    assert (late > -1e-9).all() and late.max() < 0.004
    # No drift: the last one is as punctual as the first, and so is the end.
    assert tick * 0.004 == pytest.approx(plan.duration_s, abs=0.004)
    for t, data in zip(np.arange(len(held)) * 0.004, held, strict=True):
        row = np.searchsorted(log.times, t + 1e-9) - 1
        assert np.array_equal(data[:, :3], plan.drone_position_enu_m[row])
        assert np.array_equal(data[:, 9], plan.drone_yaw_rad[row])
        assert (data[:, 11] == 1.0).all()
    first_circle = np.flatnonzero(plan.stage == 1)[0]
    assert log.stages == [(0.0, "settle"), (log.times[first_circle], "circle")]


@pytest.mark.parametrize(("lands", "wait_s"), [(True, 2.0), (False, 20.0)])
def test_a_flight_ends_after_landing_or_when_no_landing_is_found(lands, wait_s):
    """PX4's 2 s on the ground, at most 20 s after the plan; then disarmed, and over 0.4 s later."""
    mission = MissionSpec(stages=(Circle(speed_m_s=3.0),), settle_s=0.2)
    places = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    plan = compile_plan(mission, Cone(), GroundSpot(np.zeros(3), 0.0, places))
    log = Log()
    guidance = guidance_of(plan, mission, SimpleNamespace(landed=np.full(2, lands)), log)
    tick = 0
    while not guidance.finished:
        guidance.step(tick)
        armed = guidance.setpoint.armed.all()
        tick += 1
        assert tick * 0.004 < plan.duration_s + 25.0
    disarmed_s, stage = log.stages[-1]
    assert stage == "disarmed" and not armed and guidance.landed == lands
    assert disarmed_s == pytest.approx(plan.duration_s + wait_s, abs=0.03)
    assert tick * 0.004 == pytest.approx(disarmed_s + 0.4, abs=0.012)


@pytest.fixture(scope="module")
def hop(tmp_path_factory):
    """A short flight from the ground to the ground, flown to its end."""
    folder = tmp_path_factory.mktemp("hop")
    run = flight(folder, "hold", *HOP)
    start = run.plant.state.position_enu_m.copy()
    highest = start[:, 2].copy()

    def keep(time_s, session):
        np.maximum(highest, session.state.position_enu_m[:, 2], out=highest)

    run.observe_with(Look(keep, every=5))
    result = run.run()
    return SimpleNamespace(run=run, result=result, bag=folder / "bag", start=start, highest=highest)


def test_the_drones_land_and_are_disarmed(hop):
    assert hop.result.landed and not hop.result.interrupted
    state = hop.run.plant.state
    # All stand on the ground again, motors off and at rest.
    assert state.position_enu_m[:, 2] == pytest.approx(hop.start[:, 2], abs=0.02)
    assert np.abs(state.velocity_enu_m_s).max() < 0.05
    assert (hop.run.guidance.setpoint.armed == 0.0).all()
    assert (state.rotor_speed_rad_s < 1.0).all()
    tilt = 2.0 * (state.orientation_wxyz[:, 1:3] ** 2).sum(axis=1)
    assert tilt.max() < 1.0 - np.cos(np.radians(5.0))


def test_the_load_was_lifted_in_between(hop):
    assert hop.highest[0] == pytest.approx(0.5, abs=0.15)
    assert (hop.highest[1:] > 2.0).all()


def test_the_bag_tells_the_phases_of_the_flight(hop):
    assert stages_in(hop.bag) == [
        "spool_up", "take_off", "form_up", "tension", "lift", "hold",
        "lower", "slacken", "spread", "land", "disarmed",
    ]  # fmt: skip
    assert set(stages_in(hop.bag)) - PHASES == {"hold"}


def test_the_flight_lasts_about_as_long_as_planned(hop):
    assert hop.result.sim_time_s == hop.run.plant.time_s == hop.result.periods * 0.004
    waited_s = hop.run.guidance.begin_s
    assert 0.0 < hop.result.sim_time_s - hop.run.components.plan.duration_s - waited_s < 8.0
    assert hop.run.guidance.planned_s < hop.result.sim_time_s + 0.5


def test_the_cables_were_slack_on_the_ground_and_carried_the_load_in_the_air(hop):
    weight = hop.run.scenario.system.load.mass_kg * 9.80665
    changes = {m.data: t for _, t, m in messages(hop.bag, "/mission/stage")}
    tension = {}
    for topic, t, m in messages(hop.bag, *(f"/cable_{i}/tension" for i in (1, 2, 3))):
        if m.header.frame_id.endswith("load_end"):
            tension.setdefault(t, {})[topic] = m.wrench.force.x
    total = np.array([[t, *ends.values()] for t, ends in sorted(tension.items())])

    def between(a, b):
        return total[(total[:, 0] > changes[a] + 0.5) & (total[:, 0] < changes[b]), 1:]

    assert np.abs(between("spool_up", "take_off")).max() < 0.2
    assert between("hold", "lower").mean(axis=0) == pytest.approx(weight / 3.0, rel=0.1)
    assert np.abs(between("disarmed", "disarmed")).size == 0


# ---------- When something happens


@pytest.mark.parametrize("ticks", [3, 101])
def test_ctrl_c_ends_the_flight_and_keeps_the_bag(tmp_path, ticks):
    run = flight(tmp_path, "hold")

    def interrupt(tick):
        if tick == ticks:
            signal.raise_signal(signal.SIGINT)

    run.insert_after("estimation", "interrupt", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert not run.result().landed and run.tick == ticks
    poses = [t for _, t, _ in messages(tmp_path / "bag", "/load/pose")]
    # All records up to then, none lost in a buffer.
    assert poses == pytest.approx(np.arange(0.0, ticks * 0.004 + 1e-9, 0.02))
    assert stages_in(tmp_path / "bag") == ["settle"]


def test_a_failed_simulation_says_so_and_leaves_a_readable_bag(tmp_path):
    run = flight(tmp_path, "hold")

    def push(time_s, session):
        if session.tick == 101:
            session.inputs.wrench_enu[0, 3:] = 1e8  # more than anything can take

    run.observe_with(Look(push))
    with pytest.raises(SimulationDiverged, match=r"diverged at 0\.4\d\d s"):
        run.run()
    poses = [t for _, t, _ in messages(tmp_path / "bag", "/load/pose")]
    assert poses == pytest.approx(np.arange(0.0, 0.404, 0.02))


def test_a_bug_in_a_step_is_not_hidden_and_leaves_a_readable_bag(tmp_path):
    run = flight(tmp_path, "hold")

    def fail(tick):
        if tick == 50:
            raise ZeroDivisionError

    run.insert_after("estimation", "fail", fail)
    with pytest.raises(ZeroDivisionError):
        run.run()
    assert len(raw_messages(tmp_path / "bag")) > 100


@pytest.mark.parametrize(
    ("name", "override", "word"),
    [
        ("hold", "system.load.mass_kg=6", "margin"),
        ("hold", "formation.radius_m=2.7", "smaller radius"),
        ("hold", "autopilot.parameters.MPC_XY=1", "MPC_XY_P"),
        ("hold", "system.cables.joint.stiffness_n_m_rad=0.1", "stiffness"),
    ],
)
def test_a_flight_that_cannot_work_makes_no_bag(tmp_path, name, override, word):
    with pytest.raises(ConfigError, match=word) as error:
        flight(tmp_path, name, override)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_force_flies_a_load_that_is_too_heavy(tmp_path):
    heavy = scenario("hold", "system.load.mass_kg=6", TRUTH)
    run = fly_for(session_with_bag(heavy, tmp_path / "bag", force=True), 1.0)
    assert heavy.hanging.thrust_margin < 1.0
    # As the margin says: it sinks, from 1 m.
    assert run.plant.state.position_enu_m[0, 2] < 0.5


# ---------- Does it hold


@pytest.mark.parametrize(("estimation", "limit_m"), [(TRUTH, 0.001), ("seed=1", 0.02)])
def test_a_flight_that_starts_in_the_air_stays_there(tmp_path, estimation, limit_m):
    """The start is an equilibrium of plant and autopilot together: no transient."""
    run = flight(tmp_path, "hold", estimation)
    start = run.plant.state.position_enu_m.copy()
    worst = 0.0
    with run:
        for _ in range(250):
            run.advance(1)
            moved = np.linalg.norm(run.plant.state.position_enu_m - start, axis=1)
            worst = max(worst, moved.max())
    assert worst < limit_m


def test_a_hanging_load_pulls_from_the_first_record_on(tmp_path):
    run = fly_for(flight(tmp_path, "hold", TRUTH), 0.1)
    weight = run.scenario.system.load.mass_kg * 9.80665
    recorded = messages(tmp_path / "bag", "/cable_1/tension")
    tension = [m.wrench.force.x for _, _, m in recorded if m.header.frame_id.endswith("load_end")]
    assert tension == pytest.approx([weight / 3.0] * len(tension), rel=0.15)


@pytest.mark.parametrize("name", ["duo", "solo"])
def test_other_systems_stay_there_too(tmp_path, name):
    settings = ("start=air", "mission.stages=[{kind: hold}]", TRUTH)
    run = flight(tmp_path, name, *settings)
    start = run.plant.state.position_enu_m.copy()
    fly_for(run, 1.0)
    assert np.linalg.norm(run.plant.state.position_enu_m - start, axis=1).max() < 0.002


def test_the_flight_does_not_depend_on_the_physics_step(tmp_path):
    """The autopilot has its 4 ms whatever the step; the error falls with the step."""
    end = {}
    for step in ("0.004", "0.002", "0.001"):
        (tmp_path / step).mkdir()
        settings = ("start=air", TRUTH, "mission.settle_s=0.2", f"physics.step_size_s={step}")
        run = fly_for(flight(tmp_path / step, "circle", *settings), 2.0)
        assert run.plant.physics_step_s == float(step)
        end[step] = run.plant.state.position_enu_m.copy()
    off = [np.abs(end[step] - end["0.001"]).max() for step in ("0.004", "0.002")]
    assert off[1] < off[0] < 2e-3
    assert np.abs(end["0.004"][0] - [1.5, 0.0, 1.0]).max() > 0.1  # it did fly


def test_wind_blows_the_load_off_its_place(tmp_path):
    wind = "wind={mean_enu_m_s: [4, 0, 0]}"
    run = fly_for(flight(tmp_path, "hold", TRUTH, wind), 1.5)
    east, north, _ = run.plant.state.position_enu_m[0]
    assert east > 0.02 and abs(north) < east / 2.0


@pytest.fixture(scope="module")
def circle(tmp_path_factory):
    """The shipped circle flown to its end, and where the load was on the circle."""
    folder = tmp_path_factory.mktemp("circle")
    run = flight(folder, "circle")
    load = []

    def keep(time_s, session):
        if session.stage == "circle":
            load.append(session.state.position_enu_m[0].copy())

    run.observe_with(Look(keep, every=5))
    result = run.run()
    return SimpleNamespace(run=run, result=result, load=np.array(load))


@pytest.mark.slow
def test_the_circle_is_a_circle(circle):
    radius = np.linalg.norm(circle.load[:, :2], axis=1)
    # The swing into the circle and the lag are in these too.
    assert radius.mean() == pytest.approx(1.5, abs=0.1)
    assert np.abs(radius - 1.5).max() < 0.3
    assert circle.load[:, 2].mean() == pytest.approx(1.0, abs=0.1)
    assert np.ptp(circle.load[:, 2]) < 0.15
    angle = np.unwrap(np.arctan2(circle.load[:, 1], circle.load[:, 0]))
    assert angle[-1] - angle[0] == pytest.approx(2.0 * np.pi, abs=0.4)
    assert len(circle.load) == pytest.approx(50 * 2.0 * np.pi * 1.5 / 0.3, abs=11)


@pytest.mark.slow
def test_after_the_circle_all_drones_land(circle):
    assert circle.result.landed
    state = circle.run.plant.state
    assert (state.position_enu_m[1:, 2] < 0.3).all()
    assert (state.rotor_speed_rad_s < 1.0).all()


# ---------- Limits


def resident_mib():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def kept_bytes(recorder):
    """Memory of the rows that a recorder keeps."""
    views = [v for store in recorder.rows.values() for v in store.columns().values()]
    return sum(view.base.nbytes for view in views)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length_of_the_flight(tmp_path):
    run = flight(tmp_path, "hold", "mission.stages.0.duration_s=100")
    with run:
        run.advance(20 * 250)
        resident = resident_mib()
        tracemalloc.start()
        run.advance(250)  # all that is allocated once per flight but late
        rows = run.observers[0]
        before = tracemalloc.get_traced_memory()[0] - kept_bytes(rows)
        run.advance(40 * 250)
        after = tracemalloc.get_traced_memory()[0] - kept_bytes(rows)
        tracemalloc.stop()
        grown = resident_mib() - resident
    # Besides the recorded rows, which the report is made from, and the bag's index.
    assert (after - before) / 2**20 < 1.0
    assert grown < 30.0


def test_no_warnings_in_an_ordinary_flight(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flight(tmp_path, "circle", *HANGING, "start=air").run()


# ---------- Periods at once


def test_a_flight_ends_with_the_same_bits_however_many_periods_are_asked_for(tmp_path):
    """What is finished rests, as a world of a batch does."""
    overrides = ["start=air", "cable_model=massless", "mission.stages.0.duration_s=1.3"]
    ends = []
    for periods in (1, 7, 100, 10**6):
        with session_with_bag(scenario("hold", *overrides), tmp_path / f"{periods}") as run:
            while not run.finished:
                run.advance(periods)
            run.advance(periods)
            assert run.time_s < 6.0
            ends.append((run.tick, run.state.motion.tobytes(), run.estimate.data.tobytes()))
        ends[-1] += (str([*messages(tmp_path / f"{periods}", "/load/pose")]),)
    assert all(end == ends[0] for end in ends)
