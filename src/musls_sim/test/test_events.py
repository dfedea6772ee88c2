"""Triggers of events, and what fails in a flight, against closed forms and invariants."""

import math

import numpy as np
import pytest

from musls_bringup.catalogue.scenarios import load_scenario
from musls_bringup.cli.app import run
from musls_control.controllers import Controller
from musls_description.config.errors import ConfigError
from musls_sim.plants.elastic.output import momenta
from musls_sim.plants.interface import LoadMass
from musls_sim.scenario.events import EVENTS, Poke, RotorFailure, When
from musls_sim.session.session import Session

G = 9.80665
PERIOD_S = 0.004
X500_MOST_RAD_S = 1000.0
SHORT = {
    "system.cables.links": 2,
    "mission.stages": [{"kind": "hold", "position_m": [0, 0, 1.5], "duration_s": 2.0}],
}


def poke(when, **fields):
    return {"kind": "poke", "when": when, "duration_s": 0.02} | fields


def flight(*events, name="hold", **changes):
    return Session(load_scenario(name, SHORT | {"events": list(events)} | changes))


def happenings(session, seconds, kind="poke"):
    with session:
        session.advance(round(seconds / PERIOD_S))
    return [(round(e.time_s, 6), e.what) for e in session.events.happened if e.kind == kind]


# ---------- Triggers


def test_event_after_another_one_by_name_and_by_kind():
    session = flight(
        poke({"event": "first", "after_s": 0.04}, body="drone_1"),
        poke({"time_s": 0.1}, name="first"),
        {"kind": "gust", "when": {"event": "poke"}, "velocity_enu_m_s": [0, 0, 0],
         "duration_s": 9},
    )  # fmt: skip
    found = happenings(session, 0.3)
    assert [time for time, what in found if what != "over"] == [0.1, 0.14]
    (gust,) = [e for e in session.events.happened if e.kind == "gust"]
    assert gust.time_s == pytest.approx(0.1, abs=PERIOD_S + 1e-9)


def test_condition_counts_from_its_begin_and_once():
    """The load swings up and down through a height; the event comes at the first crossing only."""
    push = poke({"time_s": 0.0}, force_enu_n=[0, 0, 12], duration_s=0.1, name="up")
    above = poke({"height": {"body": "load", "above_m": 1.52}}, body="drone_1")
    later = poke({"event": "up", "height": {"body": "load", "below_m": 1.52}}, body="drone_2")
    session = flight(push, above, later)
    heights = []
    with session:
        while session.time_s < 1.5:
            heights.append(session.state.position_enu_m[0, 2])
            session.advance(1)
    began = {e.what.split(":")[0]: round(e.time_s / PERIOD_S) for e in session.events.happened[:]
             if e.what != "over"}  # fmt: skip
    first = next(k for k, z in enumerate(heights) if z > 1.52)
    assert began["drone_1"] == first
    assert began["drone_2"] == next(k for k, z in enumerate(heights) if z < 1.52)
    assert sum(e.what.startswith("drone_1") for e in session.events.happened) == 1


@pytest.mark.parametrize(
    ("condition", "quantity"),
    [
        ({"tension": {"cable": 1, "above_n": 6.3}}, lambda s: s.tension_peak_n[0] > 6.3),
        ({"tension": {"cable": 2, "below_n": 5.6}}, lambda s: s.tension_n[1].min() < 5.6),
        (
            {"distance": {"bodies": ["load", "drone_1"], "below_m": 2.49}},
            lambda s: np.linalg.norm(s.position_enu_m[0] - s.position_enu_m[1]) < 2.49,
        ),
        ({"speed": {"above_m_s": 0.3}}, lambda s: np.linalg.norm(s.velocity_enu_m_s[0]) > 0.3),
        (
            {"tilt": {"body": "drone_2", "above_deg": 5.0}},
            lambda s: 1.0 - 2.0 * (s.orientation_wxyz[2, 1:3] ** 2).sum() < np.cos(np.radians(5.0)),
        ),
        (
            {"thrust": {"drone": 1, "above": 0.82}},
            lambda s: s.rotor_speed_rad_s[0].max() > np.sqrt(0.82) * X500_MOST_RAD_S,
        ),
    ],
)
def test_conditions_see_the_state(condition, quantity):
    push = poke({"time_s": 0.1}, force_enu_n=[2, 0, 1], duration_s=0.4)
    session = flight(push, poke(condition, body="drone_3"))
    first = None
    with session:
        while session.time_s < 1.5:
            if first is None and quantity(session.state):
                first = session.time_s
            session.advance(1)
    (began,) = [e.time_s for e in session.events.happened if e.what.startswith("drone_3")]
    assert first is not None and first > 0.1
    assert began == pytest.approx(first)


def test_charge_of_a_battery_triggers():
    low = {"kind": "rotor_failure", "drone": 1, "efficiency": 0.9,
           "when": {"charge": {"drone": 1, "below": 0.4999}, "after_s": 0.2}}  # fmt: skip
    changes = {"system.drones.propulsion.battery.start_charge": 0.5, "start": "air"}
    session = flight(low, name="delivery", **changes)
    (found,) = happenings(session, 1.0, "rotor_failure")
    # 1373 W at 3.7 V a cell, 12 cells, 10 A h: so much of the charge goes in a second.
    per_s = 1376.4 / (44.4 * 36000.0 * 0.99)
    assert found[0] == pytest.approx(0.2 + 1e-4 / per_s, abs=0.01)


def test_energy_drawn_from_a_battery_triggers():
    """Beside the test above: at the same power, in the same time."""
    low = {"kind": "rotor_failure", "drone": 1, "efficiency": 0.9,
           "when": {"energy": {"drone": 1, "above_wh": 0.1}}}  # fmt: skip
    session = flight(low, name="delivery", start="air")
    (found,) = happenings(session, 1.0, "rotor_failure")
    assert found[0] == pytest.approx(0.1 * 3600.0 / 1376.4, rel=0.05)


def test_stage_and_condition():
    event = poke({"stage": "hold", "height": {"above_m": 0.0}, "after_s": 0.1})
    session = flight(event)
    with session:
        while not session.events.happened:
            session.advance(1)
            assert session.time_s < 3.0
    assert session.stage == "hold"
    began = session.events.happened[0].time_s
    assert began == pytest.approx(1.6 + 0.1, abs=0.05)  # the flight settles for 1.6 s


def test_events_from_python():
    session = flight(poke({"time_s": 100.0}, name="wanted", body="drone_2"))
    with session:
        session.advance(10)
        session.trigger("wanted")
        session.apply({"kind": "poke", "body": "drone_1", "duration_s": 1.0})
        session.apply(Poke(when=When(time_s=50.0), body="drone_3", duration_s=1.0))
        session.advance(1)
        whats = [(e.time_s, e.what[:7]) for e in session.events.happened]
        at = pytest.approx(0.04)
        assert whats == [(at, "drone_2"), (at, "drone_1"), (at, "drone_3")]
        with pytest.raises(ConfigError, match="no event 'wanted' is waiting"):
            session.trigger("wanted")
        with pytest.raises(ConfigError, match="unknown event 'pok': did you mean"):
            session.apply({"kind": "pok"})
        with pytest.raises(ConfigError, match="unknown body 'drone_9'"):
            session.apply({"kind": "poke", "body": "drone_9", "duration_s": 1.0})


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([poke({})], "give time_s, stage, event, or a condition"),
        ([poke({"time_s": 1, "stage": "hold"})], "give either time_s or stage or event"),
        ([poke({"stage": "circle"})], "stage 'circle' is not flown"),
        ([poke({"event": "nothing"})], "no event 'nothing'"),
        ([poke({"event": "poke"})], "wait for each other: poke"),
        (
            [poke({"event": "b"}, name="a"), poke({"event": "a"}, name="b")],
            "wait for each other: a, b",
        ),
        (
            [poke({"time_s": 1}, name="a"), poke({"time_s": 1}, name="a")],
            "two events have the name",
        ),
        ([poke({"tension": {"cable": 9, "above_n": 1}})], "cable 9"),
        ([poke({"tension": {"cable": 1}})], "give either above_n or below_n"),
        ([poke({"height": {"body": "drone_7", "above_m": 1}})], "unknown body 'drone_7'"),
        ([poke({"distance": {"bodies": ["load", "load"], "below_m": 1}})], "load to itself"),
        ([poke({"charge": {"drone": 1, "below": 0.5}})], "drone 1 has no battery"),
        ([poke({"energy": {"drone": 2, "above_wh": 5}})], "drone 2 has no battery"),
        ([poke({"speed": {"body": "drone_7", "above_m_s": 1}})], "unknown body 'drone_7'"),
        ([poke({"tilt": {"above_deg": 10, "below_deg": 5}})], "give either above_deg or below_deg"),
        ([poke({"thrust": {"drone": 4, "above": 0.9}})], "drone 4, but there are 3"),
        ([poke({"thrust": {"drone": 1, "above": 1.5}})], "above"),
        ([poke({"charge": {"drone": 1, "below": 0.5}, "height": {"above_m": 1}})], "one condition"),
        ([{"kind": "drone_lost", "when": {"time_s": 1}, "drone": 4}], "drone 4, but there are 3"),
        (
            [{"kind": "rotor_failure", "when": {"time_s": 1}, "drone": 1, "rotors": [1, 5]}],
            "rotor 5, but drone 1 has 4",
        ),
        ([{"kind": "load_mass", "when": {"time_s": 1}, "mass_kg": 0}], "mass_kg"),
        ([{"kind": "gust", "when": {"time_s": 1}, "duration_s": 1}], "velocity_enu_m_s is missing"),
    ],
)
def test_bad_events_are_refused_in_one_line(events, words, tmp_path, capsys):
    import json

    argv = ["fly", "hold", "--out", str(tmp_path / "out"), "--set", f"events={json.dumps(events)}"]
    assert run(argv) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


# ---------- Actions


class Constant(Controller):
    """Rotor speeds that never change."""

    level = "rotor_speeds"

    def __init__(self, speed_rad_s):
        self.speed_rad_s = speed_rad_s

    def step(self, time_s, reference, estimate):
        """See `Controller.step`."""
        return np.full((4, 4), self.speed_rad_s)


def test_with_one_of_four_drones_lost_the_momentum_is_that_of_the_other_three():
    """Level drones, thrust through their centres: dP_z/dt = 3 T - M g, whatever the cables do."""
    speed = 600.0
    places = [[1.5, 0, 12], [0, 1.5, 12], [-1.5, 0, 12], [0, -1.5, 12]]
    changes = {
        "cable_model": "elastic",
        "start": {
            "kind": "state", "load": {"position_enu_m": [0, 0, 10]},
            "drones": [{"position_enu_m": p, "orientation_wxyz": [1, 0, 0, 0]} for p in places],
        },
        "system.drones.rotors.drag_n_s2_m_rad": 0.0,
        "system.drones.cable_attachment_m": [0, 0, 0],
        "system.cables.links": 4,
        "system.cables.elastic.drag_across_n_s2_m3": 0.0,
        "controller.kind": "formation",
        "events": [{"kind": "drone_lost", "when": {"time_s": 0.6}, "drone": 2}],
        "mission.stages": [{"kind": "hold", "position_m": [0, 0, 10], "duration_s": 5.0}],
    }  # fmt: skip
    scenario = load_scenario("quad", changes)
    k = scenario.system.drones[0].rotors[0].thrust_coefficient_n_s2
    mass = scenario.system.mass_kg
    with Session(scenario, controller=Constant(speed)) as session:
        session.advance(150)  # 32 time constants: the rotors have their speed
        upwards = []
        for _ in range(2):
            upwards.append(momenta(session.plant.tables)[0][2])
            session.advance(50)
    assert session.events.happened[0].what == "drone_2: all motors stopped"
    expected = (3 * 4 * k * speed**2 - mass * G) * 0.2
    assert upwards[1] - upwards[0] == pytest.approx(expected, rel=1e-6)


def test_several_rotors_lose_their_share():
    failure = RotorFailure(when=When(time_s=0.0), drone=2, rotors=(1, 3), efficiency=0.5)
    session = flight()
    with session:
        session.apply(failure)
        session.advance(1)
        left = session.plant.records.rotors["thrust"][1]
        k = session.scenario.system.drones[1].rotors[0].thrust_coefficient_n_s2
        np.testing.assert_allclose(left / k, [0.5, 1.0, 0.5, 1.0])
    assert session.events.happened[0].what == "drone_2: rotors 1, 3 at 50 %"


@pytest.mark.parametrize("cable_model", ["rigid_links", "elastic"])
def test_new_mass_of_the_load_leaves_velocities_and_hangs_with_its_weight(cable_model):
    event = {"kind": "load_mass", "when": {"time_s": 0.4}, "mass_kg": 0.6}
    session = flight(event, name="solo", start="air", cable_model=cable_model,
                     **{"system.cables.joint.damping_n_m_s_rad": 0.02})  # fmt: skip
    with session:
        session.advance(100)
        before = session.plant.state.motion[0, 3:6].copy()
        session.events.step(100)  # the event, without the motion of the next period
        if cable_model == "rigid_links":
            load = session.plant.records.bodies[0]
            assert load["mass"] == pytest.approx(0.6)
            np.testing.assert_allclose(load["velocity"], before, atol=1e-12)
        session.advance(900)
        assert session.state.tension_n[0, 0] == pytest.approx(0.6 * G, rel=0.02)
        assert abs(session.plant.spurious_energy_j) < 0.02
    assert session.events.happened[0].what == "load: 0.6 kg from now on"


def test_gust_blows_while_it_lasts():
    gust = {"kind": "gust", "when": {"time_s": 0.1}, "velocity_enu_m_s": [3, 0, -1],
            "duration_s": 0.2}  # fmt: skip
    session = flight(gust, **{"wind.mean_enu_m_s": [1, 2, 0]})
    with session:
        seen = []
        for _ in range(100):
            session.advance(1)
            seen.append(session.inputs.wind_enu_m_s.copy())
    np.testing.assert_allclose(seen[24], [1, 2, 0])
    np.testing.assert_allclose(seen[25:75], np.tile([4, 2, -1], (50, 1)))
    np.testing.assert_allclose(seen[75:], np.tile([1, 2, 0], (25, 1)), atol=1e-15)


def test_without_motion_capture_the_imu_goes_on_alone():
    """A perfect IMU and coarse cameras: the error of the estimate stands still meanwhile."""
    outage = {"kind": "mocap_outage", "when": {"time_s": 0.4}, "drones": [1, 3], "duration_s": 0.4}
    session = flight(outage, **{
        "estimation": {"kind": "mocap", "gyro_noise_rad_s": 0.0, "accelerometer_noise_m_s2": 0.0,
                       "position_noise_m": 0.01},
    })  # fmt: skip
    errors = []
    with session:
        for _ in range(250):
            session.advance(1)
            errors.append(session.estimate.drones.position_enu_m - session.state.position_enu_m[1:])
    changes = np.linalg.norm(np.diff(np.diff(np.array(errors), axis=0), axis=0), axis=2)
    late = 105 + 10  # samples that were on their way
    blind, sees_again = slice(late, 198), slice(205, 248)
    assert changes[blind][:, [0, 2]].max() < 1e-6
    assert changes[blind][:, 1].max() > 1e-4  # drone 2 is still seen
    assert changes[sees_again].max(axis=0).min() > 1e-4


def test_mocap_outage_needs_motion_capture():
    outage = {"kind": "mocap_outage", "when": {"time_s": 0.4}, "duration_s": 0.4}
    with pytest.raises(ConfigError, match="mocap_outage needs motion capture"):
        flight(outage, **{"estimation.kind": "truth"})


def test_drone_without_link_waits_then_lands():
    lost = {"kind": "link_lost", "when": {"time_s": 0.4}, "drone": 1, "duration_s": 2.0}
    session = flight(lost)
    kept = None
    with session:
        while session.time_s < 0.4:
            session.advance(1)
        kept = session.links.heard.data.copy()
        while session.time_s < 1.39:
            session.advance(1)
            np.testing.assert_array_equal(session.links.heard.data[0], kept[0])
        place = session.estimate.drones.position_enu_m[0].copy()
        session.advance(10)
        row = session.links.heard.data[0]
        np.testing.assert_allclose(row[:2], place[:2], atol=1e-3)
        assert math.isnan(row[2]) and row[5] == -0.7 and row[11] == 1.0
        np.testing.assert_array_equal(session.links.heard.data[1:, :2], kept[1:, :2])
        start_m = session.state.position_enu_m[1, 2]
        session.advance(150)
        assert session.state.position_enu_m[1, 2] < start_m - 0.1
        session.advance(150)  # the link is back
        np.testing.assert_array_equal(session.links.heard.data[0], kept[0])


def test_drone_without_link_disarms_when_it_has_landed():
    lost = {"kind": "link_lost", "when": {"time_s": 0.1}, "drone": 1}
    hold = [{"kind": "hold", "position_m": [0, 0, 0.25], "duration_s": 20.0}]
    session = flight(lost, name="solo", start="air", **{
        "mission.stages": hold, "formation": {"radius_m": 0.0, "height_m": 2.05},
    })  # fmt: skip
    with session:
        while session.time_s < 12.0:
            session.advance(50)
        assert session.links.heard.armed[0] == 0.0
        assert session.command.omega_cmd_rad_s.max() == 0.0
        assert session.state.position_enu_m[1, 2] < 0.5


def test_link_cannot_be_lost_by_drones_that_a_controller_commands():
    scenario = load_scenario("hold", SHORT | {
        "events": [{"kind": "link_lost", "when": {"time_s": 0.1}, "drone": 1}],
    })  # fmt: skip
    with pytest.raises(ConfigError, match="link_lost: your own controller"):
        Session(scenario, controller=Constant(600.0))


def test_same_events_same_bits():
    events = [
        {"kind": "rotor_failure", "when": {"time_s": 0.1}, "drone": 1, "efficiency": 0.8,
         "duration_s": 0.2},
        {"kind": "gust", "when": {"event": "rotor_failure"}, "velocity_enu_m_s": [3, 0, 0],
         "duration_s": 0.2},
        {"kind": "mocap_outage", "when": {"time_s": 0.1}, "duration_s": 0.2},
        {"kind": "load_mass", "when": {"time_s": 0.3}, "mass_kg": 1.5},
        {"kind": "drone_lost", "when": {"height": {"below_m": 1.45}}, "drone": 2},
    ]  # fmt: skip
    ends = []
    for _ in range(2):
        with flight(*events) as session:
            session.advance(200)
            ends.append((session.state.motion.copy(), list(session.events.happened)))
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]
    assert len(ends[0][1]) >= 7


@pytest.mark.parametrize("name", ["motor_out", "drone_lost", "mocap_outage", "poke"])
def test_shipped_events_can_be_flown(name):
    with Session(load_scenario(name)) as session:
        assert session.scenario.events
        session.advance(5)


def test_every_kind_is_a_specification():
    for kind in EVENTS:
        assert EVENTS[kind].kind == kind


@pytest.mark.filterwarnings("ignore:.*lost energy")  # 1000 tons at once
@pytest.mark.parametrize("model", ["rigid_links", "elastic"])
def test_a_load_that_becomes_heavy_on_the_ground_does_not_sink(model):
    heavier = {"kind": "load_mass", "when": {"time_s": 0.2}, "mass_kg": 1e6}
    session = flight(heavier, name="solo", cable_model=model, start="ground")
    with session:
        session.advance(250)
    assert session.events.happened[0].kind == "load_mass"
    half_m = session.scenario.system.load.collision.size_m[2] / 2.0
    assert session.state.position_enu_m[0, 2] > half_m - 1e-3


def test_a_slack_elastic_cable_never_pushes():
    session = flight(name="solo", cable_model="elastic", start="ground")
    with session:
        least = np.inf
        while session.time_s < 3.0:
            session.advance(1)
            least = min(least, session.state.tension_n.min())
    assert least == 0.0


def test_what_the_ground_takes_from_a_load_is_counted():
    """A load that is 1000 t all at once falls: its 9 MJ were called lost in the integration."""
    with Session(load_scenario("hold", ["start=air", "cable_model=elastic"])) as session:
        session.advance(25)
        session.plant.apply(LoadMass(1e6))
        session.advance(150)
        audit = session.plant.audit
        assert audit.loss_j > 5e6
        assert abs(audit.missing_j) < 1e-3 * audit.loss_j
        assert not session.events.happened and not session.plant.happened
