"""Playing a plan: time, pause, goals and aborts, without jumps of the set-points."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from musls_control.mission.plan import GroundSpot, compile_air_plan, compile_plan
from musls_control.mission.player import CommandRefusal, FlightPlayer, GoalSettings, PlayState
from musls_control.mission.spec import MissionSpec
from musls_control.trajectories import Hold
from musls_description.hanging.cone import Cone

CONE = Cone()
MISSION = MissionSpec(stages=(Hold(duration_s=5.0, position_m=(1.0, 2.0, 1.5)),))
PERIOD_S = 0.02


def ground_player():
    azimuth = CONE.azimuths_rad(3)
    drones = np.column_stack([2.0 * np.cos(azimuth), 2.0 * np.sin(azimuth), np.full(3, 0.24)])
    spot = GroundSpot(np.array([0.0, 0.0, 0.05]), 0.0, drones)
    player = FlightPlayer(compile_plan(MISSION, CONE, spot), CONE, MISSION, GoalSettings())
    player.start(10.0)
    return player


def play(player, start_s, end_s):
    """Set-points at all periods of a time span."""
    count = round((end_s - start_s) / PERIOD_S)
    return [player.at(start_s + k * PERIOD_S) for k in range(count)]


def time_of(player, stage):
    """Middle of a stage, in the player's time."""
    rows = np.flatnonzero(player.plan.stage == player.plan.stage_names.index(stage))
    return 10.0 + (rows[0] + rows[-1] + 1) / 2.0 / player.plan.rate_hz


def fastest(setpoints):
    """Largest move of load and drones between two periods while not touching down."""
    load = np.array([s.load_pose[:3] for s in setpoints])
    drones = np.array([s.drones.position_enu_m for s in setpoints])
    steps = np.linalg.norm(np.diff(drones, axis=0), axis=2)
    return np.nanmax(np.linalg.norm(np.diff(load, axis=0), axis=1)), np.nanmax(steps)


def test_rows_hold_from_their_time_to_the_next():
    player = ground_player()
    plan = player.plan
    for row in (0, 1, 7, 100):
        begin = 10.0 + row / plan.rate_hz
        for time_s in (begin, begin + 0.5 / plan.rate_hz):
            assert np.array_equal(player.at(time_s).load_pose, plan.load_pose[row])
    assert player.at(9.9).stage == "spool_up"


def test_a_whole_flight_ends_touching_down_until_finished():
    player = ground_player()
    setpoints = play(player, 10.0, 10.0 + player.plan.duration_s + 30.0)
    stages = list(dict.fromkeys(s.stage for s in setpoints))
    assert stages == list(player.plan.stage_names)
    last = setpoints[-1]
    assert np.isnan(last.drones.position_enu_m[:, 2]).all()
    assert (last.drones.velocity_enu_m_s[:, 2] == -MISSION.landing_speed_m_s).all()
    assert player.state is PlayState.FLYING
    player.finish()
    assert player.state is PlayState.DONE


def test_a_plan_in_the_air_is_done_at_its_end():
    first = MISSION.stages[0].pose(np.zeros(1))[0]
    player = FlightPlayer(compile_air_plan(MISSION, CONE, first, 3), CONE, MISSION, GoalSettings())
    player.start(0.0)
    play(player, 0.0, player.plan.duration_s)
    assert player.state is PlayState.FLYING
    assert np.isfinite(player.at(player.plan.duration_s + 0.01).drones.position_enu_m).all()
    assert player.state is PlayState.DONE


def test_a_pause_shifts_everything_after_it():
    player, undisturbed = ground_player(), ground_player()
    begin = time_of(player, "transit")
    player.pause(begin)
    held = play(player, begin, begin + 7.0)
    assert len({s.row for s in held}) == 1
    player.resume(begin + 7.0)
    for later_s in (0.3, 2.0, 9.0):
        now = player.at(begin + 7.0 + later_s)
        assert np.array_equal(now.load_pose, undisturbed.at(begin + later_s).load_pose)


def test_set_points_go_on_where_they_were_after_a_time_in_which_nobody_played():
    player, asleep_s = ground_player(), 7.0
    middle_s = time_of(player, "form_up")
    before = play(player, 10.0, middle_s)
    player.stand_still(middle_s + asleep_s, asleep_s)
    after = play(player, middle_s + asleep_s, 10.0 + player.plan.duration_s + asleep_s)
    assert max(fastest([before[-1], after[0]])) < 0.1  # 7 s later it would be 2 m away
    assert list(dict.fromkeys(s.stage for s in before + after)) == list(player.plan.stage_names)


def test_a_goal_is_reached_at_the_transit_speed_and_held():
    player = ground_player()
    begin = time_of(player, "hold")
    play(player, begin - 0.1, begin)
    goal = np.array([-1.0, 0.5, 2.0, 1.0])
    player.go_to(goal, begin)
    setpoints = play(player, begin, begin + 30.0)
    assert setpoints[-1].load_pose == pytest.approx(goal)
    assert player.state is PlayState.GOAL
    load_step, _ = fastest(setpoints)
    assert load_step <= MISSION.transit_speed_m_s / player.plan.rate_hz + 1e-9


@pytest.mark.parametrize("stage", ["form_up", "tension", "lift", "transit", "hold", "lower"])
def test_an_abort_brings_all_down_without_a_jump(stage):
    player = ground_player()
    begin = time_of(player, stage)
    before = play(player, begin - 1.0, begin)
    if stage == "lower":
        with pytest.raises(CommandRefusal, match="landing already"):
            player.abort(begin)
        return
    player.abort(begin)
    after = play(player, begin, begin + 60.0)
    load_step, drone_step = fastest([before[-1], *after])
    rate = player.plan.rate_hz
    fastest_load = max(MISSION.transit_speed_m_s, MISSION.vertical_speed_m_s)
    assert load_step <= fastest_load / rate + 1e-9
    assert drone_step <= 2.0 / rate  # m/s: the set-points of spreading out are the fastest
    assert after[-1].stage == "land" and np.isnan(after[-1].drones.position_enu_m[0, 2])


def test_goals_take_the_speed_that_is_set_in_flight():
    player = ground_player()
    begin = time_of(player, "hold")
    player.at(begin)
    player.goals = GoalSettings(goal_speed_m_s=0.1)
    player.go_to(np.array([2.0, 2.0, 1.5, 0.0]), begin)
    load_step, _ = fastest(play(player, begin, begin + 9.0))
    assert load_step == pytest.approx(0.1 / player.plan.rate_hz)


def test_an_abort_on_the_way_up_lands_on_the_spot():
    player = ground_player()
    begin = time_of(player, "take_off")
    before = player.at(begin)
    player.abort(begin)
    after = player.at(begin + PERIOD_S)
    assert np.array_equal(after.drones.position_enu_m[:, :2], before.drones.position_enu_m[:, :2])
    assert np.isnan(after.drones.position_enu_m[:, 2]).all()


@pytest.mark.parametrize("stage", ["form_up", "tension"])
def test_an_abort_does_not_drag_the_load_over_the_ground(stage):
    player = ground_player()
    begin = time_of(player, stage)
    player.at(begin)
    player.abort(begin)
    poses = np.array([s.load_pose for s in play(player, begin, begin + 40.0)])
    assert np.abs(poses[:, :2]).max() < 1e-9
    assert poses[:, 2].max() <= 0.05 + 1e-9


def test_the_load_keeps_its_height_until_it_is_above_its_place():
    player = ground_player()
    begin = time_of(player, "hold")
    player.at(begin)
    player.go_to(np.array([3.0, 2.0, 2.5, 0.0]), begin)
    player.at(begin + 30.0)
    player.abort(begin + 30.0)
    poses = np.array([s.load_pose for s in play(player, begin + 30.0, begin + 70.0)])
    away = np.linalg.norm(poses[:, :2] - [1.0, 2.0], axis=1) > 0.1
    assert away[0] and (poses[away, 2] == pytest.approx(2.5))


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda p: p.start(11.0), "cannot start: flying"),
        (lambda p: p.resume(11.0), "cannot resume: flying"),
        (lambda p: p.go_to(np.array([0.0, 0.0, 1.0, 0.0]), 11.0), "not in the air"),
    ],
)
def test_refusals_say_why(ask, text):
    player = ground_player()
    player.at(11.0)
    with pytest.raises(CommandRefusal, match=text):
        ask(player)


@pytest.mark.parametrize(
    "goal",
    [
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 5.1, 0.0),
        (8.0, 8.0, 1.0, 0.0),
        (np.nan, 0.0, 1.0, 0.0),
        (0.0, 0.0, np.nan, 0.0),
        (0.0, 0.0, 1.0, np.inf),
    ],
)
def test_impossible_goals_are_refused(goal):
    player = ground_player()
    begin = time_of(player, "hold")
    player.at(begin)
    with pytest.raises(CommandRefusal, match="goal"):
        player.go_to(np.array(goal), begin)
    assert player.state is PlayState.FLYING


# ---------- The states, as the documentation draws them

PAGE = Path(__file__).parents[3] / "docs" / "ros2_reference.md"
ASKS = {
    "pause": lambda p, t: p.pause(t),
    "resume": lambda p, t: p.resume(t),
    "goal": lambda p, t: p.go_to(np.array([0.5, 0.5, 1.0, 0.0]), t),
    "abort": lambda p, t: p.abort(t),
    "set down": lambda p, t: p.set_down(t),
}


def test_the_states_are_those_of_the_documented_diagram():
    """All that can be asked for, three times one after another, from the middle of a stage."""
    found = set()
    for asks in product(ASKS, repeat=3):
        player = ground_player()
        found.add(("idle", player.state.value, "start"))
        now_s = time_of(player, "hold")
        for ask in asks:
            player.at(now_s)
            before = player.state.value
            try:
                ASKS[ask](player, now_s)
            except CommandRefusal:
                continue
            found |= {(before, player.state.value, ask)} if player.state.value != before else set()
            now_s += 0.5
        if player.state in (PlayState.FLYING, PlayState.ABORTING):
            before, end_s = player.state.value, now_s + player.plan.duration_s
            while not player.touches_down and now_s < end_s:
                now_s += 0.2
                player.at(now_s)
            assert player.touches_down
            player.finish()
            found.add((before, player.state.value, "disarmed"))
    first = MISSION.stages[0].pose(np.zeros(1))[0]
    player = FlightPlayer(compile_air_plan(MISSION, CONE, first, 3), CONE, MISSION, GoalSettings())
    player.start(0.0)
    player.at(player.plan.duration_s + 1.0)
    found.add(("flying", player.state.value, "end in the air"))
    drawn = re.findall(r"^    (\w+) --> (\w+) : (.+)$", PAGE.read_text(), re.M)
    assert len(drawn) == len(set(drawn)) and set(drawn) == found


def test_drones_come_back_to_the_plan_from_where_they_are():
    """After a controller: no jump, what is not known stays planned, and the plan after a while."""
    player = ground_player()
    begin_s = time_of(player, "hold")
    planned, before = player.at(begin_s), player.plan
    off_m = np.array([[0.3, 0.0, -0.1], [0.0, 0.05, 0.0], [np.nan] * 3])
    player.begin_at(planned.drones.position_enu_m + off_m)
    found = player.setpoint.drones.position_enu_m
    np.testing.assert_allclose(found, planned.drones.position_enu_m + np.nan_to_num(off_m))
    row, rate_hz = player.row, player.plan.rate_hz
    moved = player.plan.drone_position_enu_m - before.drone_position_enu_m
    steps_m = np.linalg.norm(np.diff(moved[row:], axis=0), axis=2)
    assert steps_m.max() < 1.9 * 0.32 / (3.0 * rate_hz)  # of a smooth way of 3 s
    assert not moved[:row].any() and not moved[row + round(3.3 * rate_hz) :].any()
