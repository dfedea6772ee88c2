"""Many worlds in one call: each is the flight of its scenario alone, to the last bit."""

import copy
import dataclasses
import os
import pickle
import signal
import threading

import numpy as np
import pytest

from musls_bringup.catalogue.shipped import SCENARIOS
from musls_control.controllers import Controller, ControlLevel
from musls_control.mission.phase_end import LANDED
from musls_description.config.errors import ConfigError
from musls_sim.batch.batch import PIECE, Batch
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

STATE = ("motion", "rotor_speed_rad_s", "tension_n")


def shipped(name, *overrides):
    return load_scenario(SCENARIOS / f"{name}.yaml", list(overrides))


def scenario(*overrides, name="circle"):
    return shipped(name, "cable_model=massless", *overrides)


def assert_same(batch, world, session):
    for name in STATE:
        np.testing.assert_array_equal(getattr(batch, name)[world], getattr(session.state, name))
    np.testing.assert_array_equal(batch.estimate[world], session.estimate.data)
    np.testing.assert_array_equal(batch.largest_tension_n[world], session.max_tension_n)
    assert batch.time_s[world] == session.time_s
    if session.power is not None:
        charge = batch.parts["batteries"]["charge"][world]
        np.testing.assert_array_equal(charge, session.power.batteries["charge"])
        assert (charge < 0.9).all()


FLIGHTS = {
    "ground, gusts, dropouts, late set-points, load cells, boards and marks": (
        "wind.mean_enu_m_s=[1, 0, 0]",
        "wind.gust_std_m_s=[0.5, 0.5, 0.2]",
        "estimation={kind: mocap, dropout_fraction: 0.1}",
        "imperfections={setpoint_delay_s: 0.02, setpoint_jitter_s: 0.05, "
        "drones: [{level_tilt_rad: [0.02, 0.01]}, {mocap_offset_m: [0.05, 0, 0]}, {}]}",
        "system.cables.load_cell={}",
    ),
    "air, late commands, tilted rotors, batteries": (
        "start=air",
        "imperfections={command_latency_s: 0.012, drones: [{}, {thrust_tilt_rad: [0.02, 0.01]}, "
        "{}]}",
        "system.drones.propulsion={motor: {speed_constant_rpm_v: 920, resistance_ohm: 0.1}, "
        "battery: {cells: 3, capacity_ah: 2, start_charge: 0.9}, electronics_w: 4, "
        "propeller: {kind: constants, thrust_n_s2: 8.55e-6, moment_ratio_m: 0.016, "
        "inertia_kg_m2: 1e-5}}",
    ),
    "noisy truth, downwash, ground effect": (
        "estimation={kind: truth, noise: 0.001}",
        "aerodynamics=[downwash, ground_effect]",
        "events=[{kind: rotor_failure, when: {time_s: 1}, drone: 1, rotor: 2, efficiency: 0.8}]",
    ),
    "massless, one cut, one let go": (
        "start=air",
        "events=[{kind: cable_cut, cable: 2, when: {time_s: 1}}, "
        "{kind: release, cable: 1, when: {time_s: 2}}]",
    ),
    "rigid rods": ("start=air", "cable_model=rigid_rods"),
    "rigid links": ("cable_model=rigid_links", "system.cables.links=5"),
    "elastic, one let go, another load": (
        "start=air",
        "cable_model=elastic",
        "system.cables.links=3",
        "events=[{kind: load_mass, mass_kg: 1.2, when: {time_s: 0.5}}, "
        "{kind: release, cable: 1, when: {event: load_mass, after_s: 0.3}}, "
        "{kind: cable_cut, cable: 2, segment: 2, when: {time_s: 1.7}}]",
    ),
    "rigid links, another load": (
        "start=air",
        "cable_model=rigid_links",
        "system.cables.links=5",
        "events=[{kind: load_mass, mass_kg: 1.2, when: {time_s: 0.5}}]",
    ),
    "elastic, one breaks": (
        "start=air",
        "cable_model=elastic",
        "system.cables.links=3",
        "system.cables.elastic.break_force_n=12",
        "events=[{kind: poke, when: {time_s: 0.5}, force_enu_n: [3, 0, -15], duration_s: 0.5}]",
    ),
}


@pytest.mark.parametrize("overrides", FLIGHTS.values(), ids=FLIGHTS)
def test_a_world_is_the_flight_alone(overrides):
    batch = Batch(scenario(*overrides), worlds=3, seeds=[0, 7, 1], threads=2)
    for periods in (1, 130, 469):
        batch.advance(periods)
    with Session(scenario(*overrides, "seed=7")) as session:
        session.advance(600)
    assert_same(batch, 1, session)
    broke = any(event.kind == "cable_broken" for event in session.events.happened)
    assert broke == any("break_force_n" in one for one in overrides)


RIGS = {
    "a crane": ("crane",),
    "a parallel robot on rods": ("cdpr_drone_fails",),
    "winches driven by torques": ("gravity_rig",),
    "two drones, one after the other": ("tethered", "wind.gust_std_m_s=[0.5, 0.5, 0.2]"),
    "a winch that an event takes over": (
        "winch_delivery",
        "events=[{kind: winch, feed_m_s: 0.3, ramp_s: 0.2, when: {time_s: 0.5}}, "
        "{kind: winch, feed_m_s: 0, when: {event: winch, after_s: 0.6}}]",
    ),
}


@pytest.mark.parametrize("given", RIGS.values(), ids=RIGS)
def test_a_rig_in_a_batch_is_the_rig_alone(given):
    """In a world that begins anew later than the others, too."""
    batch = Batch(shipped(*given), worlds=3, seeds=[0, 7, 1], threads=2)
    batch.advance(70)
    batch.reset([1], seeds=[7])
    batch.advance(300)
    with Session(shipped(*given, "seed=7")) as session:
        session.advance(300)
    assert_same(batch, 1, session)


def test_worlds_have_rigs_of_their_own():
    drives = [f"rig.winches.winch_1={{time_s: [0, 1], feed_m_s: [0, {v}]}}" for v in (0.2, 0.4)]
    made = [shipped("winch_delivery", drive) for drive in drives]
    batch = Batch(made, threads=1)
    batch.advance(300)
    for i, one in enumerate(made):
        with Session(one) as session:
            session.advance(300)
        assert_same(batch, i, session)
    assert batch.position_enu_m[0, 0, 2] > batch.position_enu_m[1, 0, 2] + 0.02


EVENTS = (
    "{kind: gust, when: {time_s: 0.1}, duration_s: 0.3, velocity_enu_m_s: [2, 1, 0]}",
    "{kind: poke, when: {time_s: 0.2}, duration_s: 0.2, force_enu_n: [0.1, 0, 0]}",
    "{kind: rotor_failure, drone: 1, rotor: 2, efficiency: 0.9, when: {time_s: 0.1}, "
    "duration_s: 0.5}",
    "{kind: mocap_outage, drones: [2], when: {stage: settle, after_s: 0.3}, duration_s: 0.1}",
    "{kind: drone_lost, drone: 3, when: {time_s: 0.6}}",
)
MODELS = {
    "massless": ("wind.gust_std_m_s=[0.5, 0.5, 0.2]",),
    "rigid links": ("cable_model=rigid_links", "system.cables.links=5"),
    "elastic": ("cable_model=elastic", "system.cables.links=3"),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_events_happen_in_a_world_as_in_the_flight_alone(model):
    made = scenario("start=air", f"events=[{', '.join(EVENTS)}]", *model)
    batch = Batch(made, worlds=2, seeds=[1, 7], threads=1)
    for _ in range(2):  # again after a reset
        for periods in (50, 149, 1):
            batch.advance(periods)
        with Session(dataclasses.replace(made, seed=7)) as session:
            session.advance(200)
        happened = [event.kind for event in session.events.happened]
        assert all(happened.count(kind) == 2 for kind in ("gust", "poke", "mocap_outage"))
        assert_same(batch, 1, session)
        assert batch.motion[1, 3, 2] < batch.motion[1, 1, 2] - 0.02
        batch.reset(seeds=[1, 7])


def test_worlds_begin_anew_as_scenarios_with_other_events():
    """Each scenario has its own, and with commands from outside they come as well."""
    push = "{kind: poke, when: {time_s: 0.04}, duration_s: 0.1, force_enu_n: [0, %s, 0]}"
    made = [scenario("start=air", f"events=[{events}]") for events in ("", push % 2, push % -2)]
    batch = Batch(made, worlds=3, seeds=[1, 1, 1], threads=1, mission=False)
    for order in ([0, 1, 2], [2, 0, 1]):
        batch.reset(seeds=[1, 1, 1], scenarios=order)
        batch.advance(50)
        assert np.argsort(batch.velocity_enu_m_s[:, 0, 1])[[0, 2]].tolist() == [
            order.index(2),
            order.index(1),
        ]


LOST = (
    "{kind: drone_lost, drone: 1, when: {time_s: 1.002}}",
    "{kind: drone_lost, drone: 2, when: {time_s: 1}}, "
    "{kind: drone_lost, drone: 5, when: {time_s: 1.9}}",
    "{kind: poke, when: {stage: hold}, duration_s: 0.5, force_enu_n: [0, 5, 0]}, "
    "{kind: drone_lost, drone: 6, when: {time_s: 0.8}}",
)


@pytest.mark.parametrize("model", ["massless", pytest.param("elastic", marks=pytest.mark.slow)])
def test_losses_are_answered_in_a_world_as_in_the_flight_alone(model):
    """Drones that fail at other times, one after the other, and a snapshot between two losses."""
    given = (
        f"cable_model={model}", "start=air", "system.cables.links=3",
        "mission.stages=[{kind: hold, duration_s: 6, position_m: [0, 0, 1]}]",
        "contingency={then: land}",
    )  # fmt: skip
    made = [scenario(*given, f"events=[{lost}]", name="hexa_survives") for lost in LOST]
    batch = Batch([*made, made[0]], seeds=[5, 6, 7, 8], threads=2)
    batch.advance(500)
    kept = batch.snapshot(1)
    batch.advance(500)
    batch.restore(3, kept)
    while not batch.finished.all():
        batch.advance(500)
    for i, one in enumerate(made):
        with Session(dataclasses.replace(one, seed=5 + i)) as session:
            assert session.run().landed
        assert_same(batch, i, session)
        happened = [event.kind for event in session.events.happened]
        assert happened.count("reallocated") == 1 + (i == 1)
    np.testing.assert_array_equal(batch.motion[3], batch.motion[1])


POKES = (
    "{kind: poke, when: {time_s: 20}, duration_s: 12, force_enu_n: [7, 3, 0]}",
    "{kind: poke, when: {stage: slacken}, duration_s: 0.5, body: drone_2, force_enu_n: [2, 1, 0]}",
)


@pytest.mark.parametrize("poke", POKES, ids=["pulled aside", "in a stage"])
def test_a_world_lands_and_rests_as_the_flight_alone(poke):
    """To the last bit to the end, round the load where something has pulled it to, too."""
    short = "mission.stages=[{kind: hold, duration_s: 1, position_m: [0, 0, 0.5]}]"
    given = short, f"events=[{poke}]"
    batch = Batch(scenario(*given), worlds=2, seeds=[3, 4], threads=1)
    with Session(scenario(*given, "seed=4")) as session:
        for until in ("lower", "spread", "land", ""):
            begun = session.tick
            while session.stage != until and not session.guidance.finished:
                session.advance(1)
            batch.advance(session.tick - begun)
            assert_same(batch, 1, session)
        assert session.run().landed
    assert (np.hypot(*batch.position_enu_m[1, 0, :2]) > 0.1) == (poke is POKES[0])
    batch.advance(250)
    assert batch.finished[1] and batch.landed[1]
    assert batch.reasons[1] == LANDED.why


@pytest.mark.parametrize("threads", [1, 3])
def test_snapshot_and_restore(threads):
    """A world goes on from its snapshot as it did, in another world's place, too."""
    gusts = "wind.gust_std_m_s=[0.5, 0.5, 0.2]"
    batch = Batch(scenario("start=air", gusts), worlds=4, threads=threads)
    batch.advance(70)
    kept = batch.snapshot(2)
    batch.advance(70)
    then = batch.motion[2].copy()
    batch.advance(10)
    batch.restore([0, 2], kept)
    assert batch.time_s.tolist() == [0.28, 0.6, 0.28, 0.6]
    batch.advance(70)
    for world in (0, 2):
        np.testing.assert_array_equal(batch.motion[world], then)
    assert not np.array_equal(batch.motion[1], batch.motion[3])


def test_several_worlds_are_kept_and_restored_at_once():
    batch = Batch(scenario("start=air"), worlds=3, threads=1)
    batch.advance(40)
    kept = batch.snapshot([0, 2])
    batch.advance(30)
    then = batch.motion[[0, 2]].copy()
    batch.restore([2, 1], kept)
    batch.advance(30)
    np.testing.assert_array_equal(batch.motion[[2, 1]], then)
    with pytest.raises(ConfigError, match="of 2 worlds, must be of one or 3"):
        batch.restore([0, 1, 2], kept)


@pytest.mark.parametrize("fractions", [(0.3, 0.0), (0.0, 0.3)])
def test_a_snapshot_is_restored_where_dropouts_differ(fractions):
    batch = Batch([scenario("start=air", f"estimation.dropout_fraction={f}") for f in fractions])
    batch.advance(40)
    kept = batch.snapshot(0)
    batch.advance(60)
    then = batch.estimate[0].copy()
    batch.restore([0, 1], kept)
    batch.advance(60)
    for world in range(2):
        np.testing.assert_array_equal(batch.estimate[world], then)


def test_reset_draws_anew_or_by_seed():
    batch = Batch(scenario("start=air"), worlds=2, seeds=[5, 5], threads=1)
    batch.advance(100)
    first = batch.estimate.copy()
    np.testing.assert_array_equal(first[0], first[1])
    batch.reset([True, False])
    assert batch.time_s.tolist() == [0.0, 0.4]
    batch.reset([1], seeds=[5])
    batch.advance(100)
    np.testing.assert_array_equal(batch.estimate[1], first[1])
    assert not np.array_equal(batch.estimate[0], first[0])


def test_worlds_whose_numbers_differ():
    """Masses and cable lengths of their own; each is the flight of its own scenario."""
    own = [
        scenario("start=air", f"system.load.mass_kg={mass}", f"system.cables.length_m={length}")
        for mass, length in ((0.4, 1.0), (0.8, 1.3), (0.6, 0.9))
    ]
    batch = Batch(own, threads=2)
    batch.advance(200)
    for world, alone in enumerate(own):
        with Session(alone) as session:
            session.advance(200)
        assert_same(batch, world, session)


def test_worlds_begin_anew_as_another_scenario():
    own = [scenario("start=air", f"system.load.mass_kg={mass}") for mass in (0.4, 0.8)]
    batch = Batch(own, worlds=3, threads=1)
    batch.advance(50)
    batch.reset([0, 2], seeds=[7, 8], scenarios=[1, 0])
    batch.advance(100)
    with Session(dataclasses.replace(own[1], seed=7)) as session:
        session.advance(100)
    assert_same(batch, 0, session)
    assert np.ptp(batch.tension_n[:, 0, 0]) > 1.0


def test_without_its_mission_a_world_holds_its_first_setpoints():
    short = scenario("start=air", "mission.stages=[{kind: hold, duration_s: 1}]")
    batch = Batch(short, worlds=1, mission=False)
    begin = batch.position_enu_m[0].copy()
    batch.advance(2000)
    assert not batch.finished.any()
    assert np.abs(batch.position_enu_m[0] - begin).max() < 0.1


def test_a_drone_whose_motors_stop_falls():
    batch = Batch(scenario("start=air"), worlds=2, seeds=[1, 1])
    batch.motors[0, 1] = 0.0
    batch.advance(100)
    assert (batch.rotor_speed_rad_s[0, 1] < 0.1 * batch.rotor_speed_rad_s[1, 1]).all()
    assert batch.position_enu_m[0, 2, 2] < batch.position_enu_m[1, 2, 2] - 0.1


DIRECT = "controller={kind: payload, output: direct, allocation: qp}"
RODS = "controller={kind: payload, output: direct}"
CONTROLLED = {
    "payload, late set-points": (
        "controller=payload", "imperfections={setpoint_delay_s: 0.008, setpoint_jitter_s: 0.01}",
        "system.cables.load_cell={}",
    ),
    "payload, direct, tensions and distances": (DIRECT, "wind.gust_std_m_s=[0.5, 0.5, 0.2]"),
    "payload, rods": (RODS, "cable_model=rigid_rods"),
    "payload, incremental": (
        "controller={kind: payload, output: direct}", "autopilot.tracker=indi",
    ),
    "rotortm": (
        "controller=rotortm", "formation={}",
        "system.load.cable_attachments_m=[[0.6, 0, 0.1], [-0.3, 0.52, 0.1], [-0.3, -0.52, 0.1]]",
        "estimation={kind: truth}",
    ),
    "rotortm, rods": (
        "controller={kind: rotortm, links: rods}", "cable_model=rigid_rods",
        "wind.gust_std_m_s=[0.5, 0.5, 0.2]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("overrides", CONTROLLED.values(), ids=CONTROLLED)
def test_a_world_with_a_controller_is_the_flight_alone(overrides):
    """Also one that begins again while the others go on, so that its law does, too."""
    batch = Batch(scenario("start=air", *overrides), worlds=3, seeds=[0, 7, 1], threads=2)
    batch.advance(37)
    batch.reset([1], seeds=[7])
    batch.advance(300)
    with Session(scenario("start=air", *overrides, "seed=7")) as session:
        session.advance(300)
    assert_same(batch, 1, session)
    assert not np.array_equal(batch.motion[0], batch.motion[2]) or "truth" in overrides[-1]


def test_worlds_with_a_controller_and_numbers_of_their_own():
    """Gains follow from each world's masses; the mission's tables are shared."""
    own = [
        scenario("start=air", "controller=payload", f"system.load.mass_kg={m}") for m in (1.2, 1.8)
    ]
    batch = Batch(own)
    batch.advance(150)
    for world, alone in enumerate(own):
        with Session(alone) as session:
            session.advance(150)
        assert_same(batch, world, session)
    assert batch._starts[0].shared["reference"] is batch._starts[1].shared["reference"]


class Constant(Controller):
    """Commands the same all the time."""

    def __init__(self, level, command):
        self.level, self._command = level, command

    def step(self, time_s, reference, estimate):
        return self._command


LEVELS = {
    "forces": np.array([[0.3, -0.2, 22.0]] * 3),
    "forces, yaws and moments": np.array([[0.3, -0.2, 22.0, 0.4, 0.01, -0.02, 0.003]] * 3),
    "forces, and forces counted on": np.array(
        [[0.3, -0.2, 22.0, 0.4, 0.01, -0.02, 0.003, 0.2, -0.3, -9.0]] * 3
    ),
    "thrust_moment": np.array([[22.0, 0.002, -0.001, 0.003]] * 3),
    "thrust_rates": np.array([[22.0, 0.2, -0.1, 0.3]] * 3),
    "rotor_speeds": np.full((3, 4), 790.0) + np.arange(4),
}


@pytest.mark.parametrize(
    ("level", "tracker"),
    [*((level, "geometric") for level in LEVELS if "counted" not in level)]
    + [(level, "indi") for level in LEVELS if level.startswith("forces")],
)
def test_commands_from_outside(level, tracker):
    command, level = LEVELS[level], level.partition(",")[0]
    late = "imperfections.command_latency_s=0.008"
    made = scenario("start=air", late, f"autopilot.tracker={tracker}")
    batch = Batch(made, worlds=2, level=level, seeds=[made.seed, 9])
    batch.command[..., : command.shape[1]] = command
    batch.advance(150)
    with Session(made, controller=Constant(ControlLevel(level), command)) as session:
        session.advance(150)
    assert_same(batch, 0, session)


def test_setpoints_from_outside():
    """One world is told where its drones are to be, the other one flies the mission."""
    made = scenario("start=air", "mission.stages=[{kind: hold, duration_s: 60}]")
    batch = Batch(made, worlds=2, seeds=[1, 1])
    higher = np.column_stack([batch.position_enu_m[1, 1:] + [0, 0, 0.3], np.full(3, 0.2)])
    batch.command[1] = higher
    batch.advance(300)
    for world, controller in enumerate([None, Constant(ControlLevel.DRONE_SETPOINTS, higher)]):
        with Session(dataclasses.replace(made, seed=1), controller=controller) as session:
            session.advance(300)
        np.testing.assert_array_equal(batch.motion[world], session.state.motion)
    assert batch.position_enu_m[1, 0, 2] > batch.position_enu_m[0, 0, 2] + 0.02


def test_a_world_that_fails_leaves_the_others():
    batch = Batch(scenario("start=air"), worlds=3, seeds=[1, 1, 1])
    batch.wrench_enu[1, 0, 3] = np.nan
    batch.advance(50)
    assert batch.failed.tolist() == [False, True, False]
    batch.wrench_enu[:] = 0.0
    batch.reset(batch.failed, seeds=[1])
    batch.reset([0, 2], seeds=[1, 1])
    batch.advance(50)
    assert not batch.failed.any()
    np.testing.assert_array_equal(batch.motion[1], batch.motion[0])


REFUSED = {
    "lost links": (
        "events=[{kind: link_lost, drone: 1, when: {time_s: 1}}]",
        "events = link_lost: needs the stage 'events'",
    ),
    "cut rigid links": (
        "cable_model=rigid_links; events=[{kind: cable_cut, cable: 1, when: {time_s: 1}}]",
        "events = cable_cut: with cable_model = rigid_links",
    ),
    "hooks of rigid links": (
        "name=hexa_survives; cable_model=rigid_links",
        "contingency.hook = release: with cable_model = rigid_links .hold does not",
    ),
    "conditions": (
        "events=[{kind: drone_lost, drone: 1, when: {height: {below_m: 1}}}]",
        "events.when: of drone_lost .a time",
    ),
    "automatic events": (
        "events=[{kind: drone_lost, drone: 1, when: {event: cable_slack}}]",
        "events.when: of drone_lost",
    ),
    "autopilot": ("autopilot.kind=px4", "autopilot.kind = px4"),
    "engine": ("cable_model=rigid_links; physics.engine=dart", "physics.engine = dart"),
    "chains that break": (
        "cable_model=rigid_links; system.cables.elastic.break_force_n=500",
        "break_force_n",
    ),
    "pid": ("controller=pid; start=air", "controller.kind = pid"),
    "payload from the ground": ("controller=payload", "start.kind = ground"),
}


@pytest.mark.parametrize(("override", "named"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_batched_is_named(override, named):
    name, *settings = override.removeprefix("name=").split("; ")
    made = scenario(*settings, name=name) if "name=" in override else scenario(name, *settings)
    with pytest.raises(ConfigError, match=named) as error:
        Batch(made, worlds=2)
    assert "\n" not in str(error.value)


def test_bad_input_is_named():
    made = scenario("start=air")
    with pytest.raises(ConfigError, match="worlds = 0: must be at least 1"):
        Batch(made, worlds=0)
    with pytest.raises(ConfigError, match="worlds = 1: must be at least 2"):
        Batch([made, made], worlds=1)
    with pytest.raises(ConfigError, match="scenarios: 5, must be 0 to 0"):
        Batch(made, worlds=1).reset([0], seeds=[1], scenarios=[5])
    with pytest.raises(ConfigError, match="threads = 0"):
        Batch(made, worlds=1, threads=0)
    with pytest.raises(ConfigError, match="seeds: 1 of them for 2 worlds"):
        Batch(made, worlds=2, seeds=[1])
    with pytest.raises(ConfigError, match="level = torque: must be one of drone_setpoints"):
        Batch(made, worlds=2, level="torque")
    with pytest.raises(ConfigError, match=r"start\.kind = ground"):
        Batch(scenario(), worlds=2, level="forces")
    losses = scenario("start=air", name="quad_survives")
    with pytest.raises(ConfigError, match="contingency: must be null where commands come from"):
        Batch(losses, worlds=2, level="forces")
    with pytest.raises(ConfigError, match=r"scenario of world 1 .*structure differs"):
        Batch([made, scenario("start=air", name="duo")])
    batch = Batch(made, worlds=2)
    with pytest.raises(ConfigError, match="worlds: 2 to 2, must be 0 to 1"):
        batch.reset([2])
    with pytest.raises(ConfigError, match="another batch"):
        Batch(made, worlds=1).restore(0, batch.snapshot(0))
    with pytest.raises(ConfigError, match=r"worlds = 1000000000: they need .* GB of memory"):
        Batch(made, worlds=10**9)
    with pytest.raises(ConfigError, match="seeds: -1 is among them"):
        Batch(made, worlds=1, seeds=[-1])
    with pytest.raises(ConfigError, match="seeds: -2 is among them"):
        batch.reset([1], seeds=[-2])
    with pytest.raises(ConfigError, match="periods = -1: a flight does not go back"):
        batch.advance(-1)
    with pytest.raises(
        TypeError, match="Batch: scenario must be a Scenario or several, not 'hold'"
    ):
        Batch("hold")
    with pytest.raises(TypeError, match="integer"):
        Batch(made, worlds=1.5)
    with pytest.raises(TypeError):
        Batch(made, seeds=["a"])
    with pytest.raises(TypeError):
        batch.advance(1.5)


def test_no_number_of_periods_takes_for_ever():
    """Worlds that have finished rest; the call ends with the last of them."""
    batch = Batch(scenario("start=air", "mission.stages=[{kind: hold, duration_s: 0.1}]"), 2)
    batch.advance(10**30)
    assert batch.finished.all()


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_leaves_all_worlds_at_one_time(threads):
    batch = Batch(scenario("start=air"), 200, threads=threads, mission=False)
    batch.advance()
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        batch.advance(10**9)
    assert np.ptp(batch.time_s) == 0.0
    batch.advance(PIECE)
    assert np.ptp(batch.time_s) == 0.0


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_copy_does_not_step_the_original(copied, threads):
    """It is independent and equal, or refused in one line."""
    batch = Batch(scenario("start=air"), worlds=2, threads=threads)
    batch.advance(10)
    before = batch.motion.copy()
    try:
        other = copied(batch)
    except ConfigError as error:
        assert "copied" in str(error)
        return
    other.advance(10)
    np.testing.assert_array_equal(batch.motion, before)
    batch.advance(10)
    np.testing.assert_array_equal(batch.motion, other.motion)


@pytest.mark.parametrize("model", ["rigid_links", "elastic", "massless"])
def test_a_copy_of_a_session_does_not_step_the_original(model):
    with Session(scenario("start=air", f"cable_model={model}")) as session:
        for thing in (session, session.components.plant):
            with pytest.raises(ConfigError, match="cannot be copied"):
                copy.deepcopy(thing)


def test_what_is_assigned_is_written():
    batch = Batch(scenario("start=air"), worlds=2)
    kept = batch.motors, batch.command, batch.wrench_enu
    batch.motors = [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    batch.wrench_enu = np.full((2, 4, 6), 0.5)
    batch.wrench_enu += 0.5
    batch.command = 1.0
    assert kept[0][0, 0] == 0.0 and (kept[1] == 1.0).all() and (kept[2] == 1.0).all()
    for values, shape in ((np.zeros((3, 3)), r"\(3, 3\)"), ("much", r"\(\)")):
        with pytest.raises(ConfigError, match=rf"motors: shape {shape}, must be numbers \(2, 3\)"):
            batch.motors = values
    with pytest.raises(ConfigError, match="motion: is read only"):
        batch.motion = batch.motion.copy()


def test_a_batch_with_threads_goes_on_in_a_forked_child():
    batch = Batch(scenario("start=air"), worlds=4, threads=2)
    batch.advance(10)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        batch.advance(10)
        os._exit(0 if (batch.time_s == 0.08).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    batch.advance(10)
    assert (batch.time_s == 0.08).all()
