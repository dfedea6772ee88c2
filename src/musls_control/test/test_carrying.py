"""What is fed forward of the cables' pull, and rows that wait for load and drones."""

import numpy as np
import pytest

from musls_control.autopilot import DroneSetpoints
from musls_control.mission.carrying import MOST_UPWARDS_M_S2, Carried
from musls_control.mission.plan import GroundSpot, compile_plan
from musls_control.mission.player import FlightPlayer, GoalSettings
from musls_control.mission.rows import PLAY, WAIT, due_row, in_place
from musls_control.mission.spec import MissionSpec
from musls_control.px4.position_control import GRAVITY_M_S2
from musls_description.config.schema import build
from musls_description.hanging.cone import Cone
from musls_description.hanging.hang import hang
from musls_description.system.system_files import load_system

CONE = Cone()
POSE = np.array([0.0, 0.0, 1.0, 0.0])


def carried():
    held = Carried.of(hang(load_system("x500_trio_swivel"), CONE, GRAVITY_M_S2, POSE))
    assert held is not None
    return held


def plan(what=None, **settings):
    angle = 2.0 * np.pi * np.arange(3) / 3
    places = np.column_stack([2.0 * np.cos(angle), 2.0 * np.sin(angle), np.full(3, 0.2)])
    stage = {"kind": "hold", "position_m": [0.0, 0.0, 1.0], "duration_s": 2.0}
    mission = build(MissionSpec, {"stages": [stage], **settings}, "mission")
    spot = GroundSpot(np.array([0.0, 0.0, 0.05]), 0.0, places)
    return mission, compile_plan(mission, CONE, spot, what)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("yaw", [0.0, 2.0])
def test_the_thrust_of_the_set_points_is_weight_and_pull(share, yaw):
    """The formulas of PX4 (thrust along (ax, ay, g), upright part h (1 + az / g)) back again."""
    held, system = carried(), load_system("x500_trio_swivel")
    aside, up = held.aside_m_s2(share, yaw), held.taken_up_m_s2(share)
    for i, drone in enumerate(system.drones):
        rotor = drone.rotors[0]
        slowest, fastest = rotor.speed_min_rad_s, rotor.speed_max_rad_s
        constant = sum(r.thrust_coefficient_n_s2 for r in drone.rotors)
        hover = (np.sqrt(held.weight_n[i] / constant) - slowest) / (fastest - slowest)
        along = np.array([*aside[i], GRAVITY_M_S2])
        along /= np.linalg.norm(along)
        collective = hover * (1.0 + up[i] / GRAVITY_M_S2) / along[2]
        thrust_n = constant * (slowest + collective * (fastest - slowest)) ** 2 * along
        c, s = np.cos(yaw), np.sin(yaw)
        pull_n = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ held.pull_n[i]
        np.testing.assert_allclose(
            thrust_n, [0.0, 0.0, held.weight_n[i]] + share * pull_n, atol=1e-9
        )


def test_what_is_fed_forward_stays_below_what_the_integrator_gives_back():
    held = carried()
    heavy = Carried(held.weight_n, 9.0 * held.pull_n, 0.0, 0.4, held.thrust_n_s2, held.speed_rad_s)
    assert (heavy.taken_up_m_s2(1.0) <= MOST_UPWARDS_M_S2).all()


def test_a_plan_feeds_forward_while_the_load_hangs_and_nothing_on_the_ground():
    held = carried()
    _, flight = plan(held)
    fed, share = flight.drone_acceleration_enu_m_s2, flight.share
    stage = np.array([flight.stage_at(row) for row in range(len(flight.stage))])
    for name in ("spool_up", "take_off", "form_up", "land"):
        assert not fed[stage == name].any(), name
    assert (share[stage == "hold"] == 1.0).all()
    np.testing.assert_allclose(fed[stage == "hold"][0, :, :2], held.aside_m_s2(1.0, 0.0))
    assert np.ptp(fed[stage == "hold"], axis=0).max() == 0.0
    steps = np.abs(np.diff(fed, axis=0)).max()
    assert steps < 0.3 * np.abs(fed).max()  # a ramp, no jump
    setpoints = flight.drone_setpoints(int(np.argmax(stage == "hold")), touches_down=False)
    assert np.isfinite(setpoints.acceleration_enu_m_s2).all()
    assert np.isfinite(setpoints.position_enu_m).all()
    untouched = plan()[1]
    assert not untouched.drone_acceleration_enu_m_s2.any() and not len(untouched.waits)


WAITS = np.array([(5, 3, 0.1, 0.9, 1.1, 0)], WAIT)


def play(rate=5.0):
    made = np.zeros(1, PLAY)
    made["rate"] = rate
    return made[0]


def test_a_row_waits_until_all_is_in_place_and_what_follows_comes_later():
    planned, places = np.zeros((10, 2, 3)), np.zeros((3, 3))
    places[0, 2], places[2, 0] = 1.0, 0.2  # the load hangs, drone 2 is 0.2 m away
    now = play()
    rows = []
    for tick in range(20):
        if tick == 7:
            places[2, 0] = 0.05
        rows.append(due_row(now, WAITS, planned, places, 0.2 * tick))
    assert rows[:9] == [0, 1, 2, 3, 4, 4, 4, 5, 6]
    assert now["begun"] == pytest.approx(0.4) and now["missed"] == 0


def test_a_wait_ends_after_its_time_and_says_so():
    planned, places, now = np.zeros((10, 2, 3)), np.full((3, 3), 1.0), play()
    rows = [due_row(now, WAITS, planned, places, 0.2 * tick) for tick in range(12)]
    assert rows[:10] == [0, 1, 2, 3, 4, 4, 4, 4, 5, 6] and now["missed"] == 1


@pytest.mark.parametrize(("amplitude_m", "aside_m"), [(0.3, 0.0), (0.0, 0.5), (0.3, 0.5)])
def test_a_load_is_lowered_once_it_rests_wherever_that_is(amplitude_m, aside_m):
    """A swing that has a tenth of it left after five seconds."""
    planned, places, now = np.zeros((200, 1, 3)), np.zeros((2, 3)), play()
    waits = np.array([(5, 50, 0.1, -np.inf, np.inf, 5)], WAIT)
    begins = None
    for tick in range(100):
        time_s = 0.2 * tick
        swing_m = amplitude_m * 10.0 ** (-time_s / 5.0)
        places[0, :2] = aside_m + swing_m * np.cos(2.0 * time_s), swing_m
        if due_row(now, waits, planned, places, time_s) >= 5:
            begins = swing_m
            break
    assert begins is not None and now["missed"] == 0
    assert begins < 0.1 / (1.0 - np.cos(1.0))  # what it moves by within a second, at least


@pytest.mark.parametrize(
    ("load_m", "off_m", "there"),
    [(1.0, 0.0, True), (0.8, 0.0, False), (1.2, 0.0, False), (1.0, 0.11, False),
     (np.nan, 0.0, True), (1.0, np.nan, True)],
)  # fmt: skip
def test_what_is_not_known_is_not_waited_for(load_m, off_m, there):
    places = np.zeros((2, 3))
    places[0, 2], places[1, 1] = load_m, off_m
    assert in_place(WAITS[0], np.zeros((1, 3)), places) is there


def test_the_player_says_who_is_not_where():
    mission, flight = plan(carried())
    player, places = FlightPlayer(flight, CONE, mission, GoalSettings()), np.zeros((4, 3))
    told = []
    for tick in range(2000):
        player.advance(0.1 * tick, places)
        if what := player.missed(places):
            told.append(what)
    assert len(told) == len(flight.waits)
    assert "drone_2 is " in told[0] and "tension begins all the same" in told[0]
    assert any("the load is 0.00 m high" in text for text in told)


def test_an_abort_gives_the_weight_back_before_the_drones_spread():
    mission, flight = plan(carried())
    player = FlightPlayer(flight, CONE, mission, GoalSettings())
    player.start(0.0)
    time_s = 0.0
    while player.at(time_s).stage != "hold":
        time_s += 0.2
    before = player.at(time_s).drones.acceleration_enu_m_s2.copy()
    player.abort(time_s)
    down = player.plan
    np.testing.assert_allclose(down.drone_acceleration_enu_m_s2[0], before)
    assert down.share[-1] == 0.0 and not down.drone_acceleration_enu_m_s2[-1].any()
    names = [down.stage_at(row) for row in range(len(down.stage))]
    assert down.share[names.index("spread") - 1] == 0.0


def test_set_points_without_a_load_ask_for_no_acceleration():
    _, flight = plan(carried())
    first = flight.drone_setpoints(0, touches_down=False)
    assert isinstance(first, DroneSetpoints)
    assert np.isnan(first.acceleration_enu_m_s2).all()
