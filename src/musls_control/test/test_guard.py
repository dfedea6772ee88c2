"""The guard's steps, and the way down from where the load hangs."""

import numpy as np
import pytest

from musls_control.formation import Cone
from musls_control.guard import Guard, GuardStep, Health, tracking_error_m
from musls_control.mission.plan import GroundSpot, compile_plan
from musls_control.mission.player import FlightPlayer, GoalSettings, PlayState
from musls_control.mission.spec import MissionSpec
from musls_description.schema import build

FINE = Health(0.02, 0.3, "flying")


def steps(health, *, from_s, until_s, end_s=30.0):
    """Steps of the guard, by time, when drone 2 is not well from one time until another one."""
    guard, found = Guard(), []
    for time_s in np.arange(0.0, end_s, 0.1):
        faulty = from_s <= time_s < until_s
        bodies = {"load": Health(0.02), "drone_1": FINE, "drone_2": health if faulty else FINE}
        step = guard.look(time_s, bodies)
        if step is not None:
            found.append((round(float(time_s), 1), step))
    return found


@pytest.mark.parametrize("phase", ["silent", "released", "landed", "failed", "holding"])
def test_others_wait_and_set_down_when_a_drone_is_gone(phase):
    health = Health(0.02, 0.3, phase)
    assert steps(health, from_s=1.0, until_s=99.0) == [
        (1.0, GuardStep.PAUSE), (4.0, GuardStep.LOWER)
    ]  # fmt: skip


@pytest.mark.parametrize("health", [Health(0.6, 0.3, "flying"), Health(0.02, 1.6, "flying")])
def test_all_land_when_a_drone_stays_out_of_sight_or_astray(health):
    assert steps(health, from_s=1.0, until_s=99.0) == [
        (1.0, GuardStep.PAUSE), (4.0, GuardStep.LOWER), (14.0, GuardStep.LAND)
    ]  # fmt: skip


def test_a_short_fault_only_pauses_and_the_way_down_is_not_given_up():
    short = steps(Health(np.inf), from_s=1.0, until_s=2.0)
    assert short == [(1.0, GuardStep.PAUSE), (2.0, GuardStep.WATCH)]
    assert steps(Health(np.inf), from_s=1.0, until_s=5.0)[-1] == (4.0, GuardStep.LOWER)
    assert steps(FINE, from_s=1.0, until_s=99.0) == []


def test_a_drone_may_follow_late_and_parts_that_are_not_given_do_not_count():
    asked = np.array([[9.0, 9.0, 1.0], [3.0, 4.0, np.nan], [30.0, 40.0, 1.0]])
    assert tracking_error_m(asked, np.array([0.0, 0.0, 9.0])) == 5.0


def test_the_load_is_lowered_where_it_is_and_drones_land_around_it():
    hold = {"kind": "hold", "duration_s": 5.0, "position_m": [2.0, 1.0, 1.5]}
    mission, cone = build(MissionSpec, {"stages": [hold]}, ""), Cone()
    places = cone.offsets_m(3, 1.5) * [1.0, 1.0, 0.0] + [0.0, 0.0, 0.24]
    ground = GroundSpot(np.array([0.0, 0.0, 0.05]), 0.0, places)
    plan = compile_plan(mission, cone, ground)
    player = FlightPlayer(plan, cone, mission, GoalSettings())
    player.start(0.0)
    begin_s = float(np.argmax(plan.stage == plan.stage_names.index("hold"))) / plan.rate_hz
    before = player.at(begin_s + 1.0)
    player.pause(begin_s + 1.0)
    player.set_down(begin_s + 3.0)
    seen = [player.at(begin_s + 3.0 + t) for t in np.arange(0.0, 60.0, 0.2)]
    assert player.state is PlayState.ABORTING and player.touches_down
    loads = np.array([now.load_pose for now in seen])
    assert np.abs(loads[:, :2] - [2.0, 1.0]).max() < 1e-9 and loads[-1, 2] < 0.05
    steps_m = np.diff(
        [before.drone_position_enu_m, *(s.drone_position_enu_m for s in seen)], axis=0
    )
    assert np.nanmax(np.linalg.norm(steps_m[:-1], axis=2)) < 0.3  # nothing jumps
    out = seen[-1].drone_position_enu_m[:, :2] - [2.0, 1.0]
    assert np.linalg.norm(out, axis=1) == pytest.approx(np.full(3, 1.5))
    assert {now.stage for now in seen} == {"abort", "lower", "slacken", "spread", "land"}
