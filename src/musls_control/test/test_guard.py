"""The guard's steps, and the way down from where the load hangs."""

from dataclasses import replace

import numpy as np
import pytest

from musls_control.brief.brief import read_brief
from musls_control.estimate import Estimate
from musls_control.guard import FlightEnd, Guard, GuardSettings, GuardStep, Health, tracking_error_m
from musls_control.mission.contingency import Loss, LossKind
from musls_control.mission.guidance import KnownState
from musls_control.mission.plan import GroundSpot, compile_plan
from musls_control.mission.player import CommandRefusal, FlightPlayer, GoalSettings, PlayState
from musls_control.mission.spec import MissionSpec
from musls_control.real_flight.graph import graph_contingency
from musls_description.config.schema import build, to_data, to_yaml
from musls_description.hanging.cone import Cone
from musls_description.system.drone import tip_radius_m
from musls_description.system.system_files import load_system

FINE = Health(0.02, 0.3, "flying")


def steps(health, *, from_s, until_s, end_s=30.0, other=FINE):
    """Steps of the guard, by time, when drone 2 is not well from one time until another one.

    `other`: what is known of drone 1 meanwhile.
    """
    guard, found = Guard(), []
    for time_s in np.arange(0.0, end_s, 0.1):
        faulty = from_s <= time_s < until_s
        bodies = {
            "load": Health(0.02),
            "drone_1": other if faulty else FINE,
            "drone_2": health if faulty else FINE,
        }
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


def test_a_drone_that_its_pilot_flies_away_is_not_landed():
    """Landing all would take it from the pilot."""
    away = steps(Health(0.02, 5.0, "released"), from_s=1.0, until_s=99.0)
    assert away == [(1.0, GuardStep.PAUSE), (4.0, GuardStep.LOWER)]


ASTRAY = Health(0.02, 1.6, "flying")


@pytest.mark.parametrize(("health", "other"), [(Health(0.6, 0.3), FINE), (ASTRAY, ASTRAY)])
def test_all_land_when_a_drone_stays_out_of_sight_or_several_are_astray(health, other):
    lands = (14.0, GuardStep.LAND)
    seen = steps(health, from_s=1.0, until_s=99.0, other=other)
    assert seen == [(1.0, GuardStep.PAUSE), (4.0, GuardStep.LOWER), lands]


def test_the_others_land_by_themselves_beside_one_that_alone_is_astray():
    """In PX4's own land mode they would sink onto one that lies on the ground."""
    seen = steps(ASTRAY, from_s=1.0, until_s=99.0)
    assert seen == [(1.0, GuardStep.PAUSE), (4.0, GuardStep.LOWER)]
    guard = Guard()
    assert guard.alone({"load": FINE, "drone_1": FINE, "drone_2": ASTRAY}) == "drone_2"
    assert guard.alone({"load": FINE, "drone_1": ASTRAY, "drone_2": ASTRAY}) == ""
    assert guard.alone({"load": FINE, "drone_1": Health(0.02, 0.1, "silent")}) == "drone_1"


def test_a_short_fault_only_pauses_and_the_way_down_is_not_given_up():
    short = steps(Health(np.inf), from_s=1.0, until_s=2.0)
    assert short == [(1.0, GuardStep.PAUSE), (2.0, GuardStep.WATCH)]
    assert steps(Health(np.inf), from_s=1.0, until_s=5.0)[-1] == (4.0, GuardStep.LOWER)
    assert steps(FINE, from_s=1.0, until_s=99.0) == []


def test_a_dead_offboard_node_is_a_fault_as_a_lost_body_is():
    """Its phases stay, because they are latched; its heartbeat does not."""
    guard = Guard()
    bodies = {"load": Health(0.02), "drone_1": FINE}
    dead = bodies | {"offboard": Health(0.6, news="heartbeat")}
    assert guard.fault(dead["offboard"]) == "no heartbeat for 0.6 s"
    assert guard.look(1.0, bodies | {"offboard": Health(0.1, news="heartbeat")}) is None
    assert guard.look(1.5, dead) is GuardStep.PAUSE
    assert guard.given_up(9.0, dead) == ""
    assert guard.look(4.5, dead) is GuardStep.LOWER
    assert guard.look(14.5, dead) is GuardStep.LAND


def test_a_pause_that_nobody_ends_after_its_fault_is_followed_by_the_way_back():
    guard = Guard()
    guard.settings = GuardSettings(abort_after_s=20.0)
    bad, good = {"drone_2": Health(9.0)}, {"drone_2": FINE}
    assert guard.look(1.0, bad) is GuardStep.PAUSE
    assert guard.look(2.0, good, waits=True) is GuardStep.WATCH
    assert guard.look(21.9, good, waits=True) is None
    assert guard.look(22.0, good, waits=True) is GuardStep.RETURN
    assert guard.look(23.0, good) is None
    assert guard.look(24.0, bad) is GuardStep.PAUSE  # it goes on watching
    resumed = Guard()
    resumed.look(1.0, bad)
    resumed.look(2.0, good, waits=True)
    assert {resumed.look(t, good) for t in np.arange(2.1, 300.0, 1.0)} == {None}


def test_a_low_battery_brings_the_load_back_once_and_keeps_a_flight_from_beginning():
    guard, low = Guard(), Health(0.0, phase="flying", charge=0.24)
    full = replace(low, charge=0.9)
    assert guard.look(0.0, {"drone_1": full, "drone_2": full}) is None
    assert guard.look(1.0, {"drone_1": full, "drone_2": low}) is GuardStep.RETURN
    assert guard.low({"drone_1": full, "drone_2": low}) == "drone_2: battery at 24 %"
    assert guard.look(2.0, {"drone_1": full, "drone_2": low}) is None
    astray = replace(low, error_m=9.0)
    assert guard.look(3.0, {"drone_1": full, "drone_2": astray}) is GuardStep.PAUSE
    assert guard.look(3.5, {"drone_1": full, "drone_2": low}) is GuardStep.WATCH
    assert guard.look(4.0, {"drone_1": full, "drone_2": low}) is None  # it is on its way back
    known = KnownState.always(Estimate.zeros(2), np.zeros((2, 4)))
    known.charge = {"drone_1": 0.49, "drone_2": np.nan}  # nobody tells the second one's
    (missing,) = known.missing(0.0, ("flying",), 0.5)
    assert missing == "battery of drone_1 at 49 %, at least 50 % is needed (charge_to_start)"


def test_a_drone_that_is_not_where_its_poses_are_lands_all_before_the_load_is_lifted():
    doubted = {"drone_1": FINE, "drone_2": Health(0.02, 0.3, "doubted")}
    assert Guard().look(1.0, doubted, carries=False) is GuardStep.LAND


@pytest.mark.parametrize(
    "health", [Health(0.02, 0.3, "doubted"), Health(0.02, 0.3, "flying", doubt="frozen")]
)
def test_a_drone_in_doubt_is_not_led_by_set_points_for_longer_than_a_moment(health):
    """All land by what does not need its estimate; a short doubt only pauses."""
    assert steps(health, from_s=1.0, until_s=99.0) == [
        (1.0, GuardStep.PAUSE), (1.2, GuardStep.LAND)
    ]  # fmt: skip
    assert steps(health, from_s=1.0, until_s=1.1) == [
        (1.0, GuardStep.PAUSE), (1.1, GuardStep.WATCH)
    ]  # fmt: skip
    guard, load = Guard(), {"load": Health(0.02, doubt="jump"), "drone_1": FINE}
    found = [guard.look(t, load) for t in np.arange(1.0, 6.0, 0.1)]
    assert [step for step in found if step] == [GuardStep.PAUSE, GuardStep.LOWER]
    assert "frozen" in Guard().fault(Health(0.02, doubt="frozen"))


def test_a_drone_in_doubt_is_given_up_at_once_where_the_others_can_go_on():
    """Also when its last pose that was used is old."""
    bodies = {"load": Health(0.02), "drone_1": FINE, "drone_2": Health(0.6, doubt="frozen")}
    guard = Guard()
    assert guard.look(5.0, bodies) is GuardStep.PAUSE
    assert [guard.given_up(t, bodies) for t in (5.1, 5.21)] == ["", "drone_2"]


def over(end, time_s, phases, **options):
    names = {f"drone_{i + 1}": phase for i, phase in enumerate(phases)}
    return end.look(time_s, names, lost_after_s=10.0, **options)


def test_a_flight_is_over_when_all_are_disarmed_not_when_the_first_one_is():
    end = FlightEnd()
    assert not over(end, 0.0, ["landed", "released", "released"], descends=True)
    assert end.waits_for == {"drone_2": "released", "drone_3": "released"}
    assert not over(end, 500.0, ["landed", "landed", "released"], descends=True)
    assert over(end, 501.0, ["landed"] * 3, descends=True) and not end.lost


def test_a_silent_drone_is_lost_only_on_the_way_to_the_ground_and_after_some_time():
    end = FlightEnd()
    silent = ["landed", "silent", "landed"]
    assert not any(over(end, t, silent) for t in range(100))  # still up
    assert not over(end, 100.0, silent, descends=True)
    assert not over(end, 109.0, silent, descends=True) and not end.lost
    assert over(end, 110.0, silent, descends=True) and end.lost == {"drone_2"}
    assert not over(end, 111.0, ["landed", "flying", "landed"], descends=True) and not end.lost


def test_without_the_offboard_node_what_it_said_last_is_no_news():
    end, said = FlightEnd(), ["flying", "flying", "landed"]
    assert not over(end, 0.0, said, descends=True, heard=False)
    assert end.waits_for == {"drone_1": "unheard", "drone_2": "unheard"}
    assert over(end, 10.0, said, descends=True, heard=False)
    assert end.lost == {"drone_1", "drone_2"}


@pytest.mark.parametrize(("phase", "waits"), [("silent", 0), ("flying", 0), ("released", 1)])
def test_a_drone_that_was_given_up_is_waited_for_while_a_pilot_has_it(phase, waits):
    end = FlightEnd()
    given_up = {"given_up": ["drone_2"], "descends": True}
    assert over(end, 0.0, ["landed", phase, "landed"], **given_up) == (not waits)
    assert list(end.waits_for) == ["drone_2"] * waits


def test_a_drone_may_follow_late_and_parts_that_are_not_given_do_not_count():
    asked = np.array([[9.0, 9.0, 1.0], [3.0, 4.0, np.nan], [30.0, 40.0, 1.0]])
    assert tracking_error_m(asked, np.array([0.0, 0.0, 9.0])) == 5.0


@pytest.mark.parametrize("aside_m", [(0.0, 0.0), (-0.2, 0.1)])
def test_the_load_is_lowered_where_it_is_and_drones_land_around_it(aside_m):
    """Which is beside its set-point where the formation has stopped before it was there."""
    hold = {"kind": "hold", "duration_s": 5.0, "position_m": [2.0, 1.0, 1.5]}
    mission, cone = build(MissionSpec, {"stages": [hold]}, ""), Cone()
    places = Cone(radius_m=1.5).offsets_m(3) * [1.0, 1.0, 0.0] + [0.0, 0.0, 0.24]
    ground = GroundSpot(np.array([0.0, 0.0, 0.05]), 0.0, places)
    plan = compile_plan(mission, cone, ground)
    player = FlightPlayer(plan, cone, mission, GoalSettings())
    player.start(0.0)
    begin_s = float(np.argmax(plan.stage == plan.stage_names.index("hold"))) / plan.rate_hz
    before = player.at(begin_s + 1.0)
    player.pause(begin_s + 1.0)
    player.hold_aside(np.array(aside_m))
    stopped = player.setpoint.drones.position_enu_m
    assert stopped - before.drones.position_enu_m == pytest.approx(np.tile([*aside_m, 0.0], (3, 1)))
    player.set_down(begin_s + 3.0)
    seen = [player.at(begin_s + 3.0 + t) for t in np.arange(0.0, 60.0, 0.2)]
    assert player.state is PlayState.ABORTING and player.touches_down
    loads, hangs = np.array([now.load_pose for now in seen]), np.array([2.0, 1.0]) + aside_m
    assert np.abs(loads[:, :2] - hangs).max() < 1e-9 and loads[-1, 2] < 0.05
    steps_m = np.diff([stopped, *(s.drones.position_enu_m for s in seen)], axis=0)
    assert np.nanmax(np.linalg.norm(steps_m[:-1], axis=2)) < 0.3  # nothing jumps
    out = seen[-1].drones.position_enu_m[:, :2] - hangs
    assert np.linalg.norm(out, axis=1) == pytest.approx(np.full(3, 1.5))
    assert {now.stage for now in seen} == {"abort", "lower", "slacken", "spread", "land"}


# ---------- A contingency: the others go on without a drone


def test_only_a_single_fault_that_lasts_gives_a_drone_up_and_all_must_be_seen():
    bodies = {"load": Health(0.02), "drone_1": FINE, "drone_2": Health(0.02, 0.3, "silent")}
    guard = Guard()
    assert guard.look(5.0, bodies) is GuardStep.PAUSE
    assert guard.given_up(5.9, bodies) == ""
    assert guard.given_up(6.0, bodies) == "drone_2"
    assert guard.given_up(6.0, bodies | {"drone_1": Health(0.02, 0.3, "released")}) == ""
    assert guard.given_up(6.0, bodies | {"load": Health(0.6)}) == ""
    assert guard.survive(6.0) is GuardStep.SURVIVE
    left = {body: health for body, health in bodies.items() if body != "drone_2"}
    assert guard.look(6.1, left) is None
    assert guard.look(6.2, left | {"drone_1": Health(0.02, 0.3, "silent")}) is GuardStep.PAUSE
    assert guard.look(9.3, left | {"drone_1": Health(0.02, 0.3, "silent")}) is GuardStep.LOWER


@pytest.fixture(scope="module")
def survives(tmp_path_factory):
    """Way without a drone, plan of the whole flight and its middle row, for a hexa."""
    file = tmp_path_factory.mktemp("hexa") / "hexa.yaml"
    system = to_data(load_system("x500_hexa"))
    stage = {"kind": "line", "start_m": [0, -1, 1], "end_m": [0, 1, 1], "speed_m_s": 0.4}
    data = {
        "system": system,
        "mission": {"stages": [stage | {"repetitions": 1}]},
        "formation": {"radius_m": 1.4, "height_m": 2.205},
        "contingency": {},
    }
    file.write_text(to_yaml(data))
    found = read_brief(file)
    places = Cone(radius_m=1.9).offsets_m(6) * [1.0, 1.0, 0.0] + [0.0, 0.0, 0.24]
    plan = found.plan_from(np.array([0.0, 0.0, 0.05]), 0.0, places)
    line = np.flatnonzero(plan.stage == plan.stage_names.index("line"))
    return found, plan, int(line[len(line) // 2])


@pytest.fixture(scope="module")
def prepared(survives):
    return graph_contingency(survives[0])


@pytest.fixture
def way(prepared):
    """Answers to the loss of each drone of the hexa, at the begin of a flight."""
    prepared.begin()
    return prepared


def without(way, plan, row, place, *, falls):
    """Answer to the loss of drone 2, which is at a place."""
    places = plan.drone_position_enu_m[row].copy()
    places[1] = place
    kind = LossKind.FALLS if falls else LossKind.UNGUIDED
    return way.without(Loss(1, kind, "seen"), plan, row, places)


@pytest.mark.parametrize("falls", [True, False])
def test_without_a_drone_set_points_never_jump_and_keep_clear_of_one_that_hovers(
    survives, way, falls
):
    found, plan, row = survives
    place = plan.drone_position_enu_m[row, 1]
    answer = without(way, plan, row, place, falls=falls)
    rest = answer.plan
    assert answer.goes_on == ("goes on" in answer.what) == ("line" in rest.stage_names)
    drones = np.concatenate([plan.drone_position_enu_m[row : row + 1], rest.drone_position_enu_m])
    steps = np.linalg.norm(np.diff(drones, axis=0), axis=2)
    assert steps[:-1].max() < 0.4  # at 5 Hz; the last one is PX4's landing
    assert np.ptp(drones[:, 1], axis=0).max() == 0.0  # of the lost one they stay
    assert "reform" in rest.stage_names
    assert not falls or "line" in rest.stage_names
    tips_m = 2 * tip_radius_m(found.system.drones[1])
    level = np.linalg.norm(np.delete(drones, 1, axis=1)[..., :2] - place[:2], axis=2)
    assert falls or level.min() > tips_m
    down = way.down(rest, 5)
    assert down.landing_speed_m_s is not None
    first = np.linalg.norm(down.drone_position_enu_m[0] - rest.drone_position_enu_m[5], axis=1)
    assert first.max() < 0.2


@pytest.mark.parametrize("person", ["before", "after", "nobody"])
def test_without_a_drone_the_mission_waits_for_the_person_who_paused_it(survives, way, person):
    """New places are taken at once, because the load must be held; the load does not move."""
    found, plan, row = survives
    begin_s = row / plan.rate_hz
    player = FlightPlayer(plan, found.formation, found.mission, GoalSettings())
    player.start(0.0)
    player.at(begin_s)
    for who in {"before": "pg", "after": "gp", "nobody": "g"}[person]:
        if who == "p" or player.moving:
            player.pause(begin_s, by_guard=who == "g")
    assert player.held == (person != "nobody")
    place = player.at(begin_s + 1.0).load_pose
    answer = without(way, plan, player.row, plan.drone_position_enu_m[row, 1], falls=True)
    rest, goes_on = answer.plan, answer.goes_on
    first = int((rest.stage == 0).sum()) - 1
    assert goes_on and rest.stage_names[0] == "reform"
    player.swap(rest, begin_s + 1.0, way.down, hold_row=first)
    times = begin_s + 1.0 + np.arange(0.0, first / rest.rate_hz + 20.0, 0.02)
    for time_s in times:
        now = player.at(time_s)
    moved_m = np.linalg.norm(now.load_pose - place)
    if person == "nobody":
        assert moved_m > 0.5
        return
    assert (player.state, player.held, now.stage) == (PlayState.PAUSED, True, "reform")
    assert np.all(now.drones.position_enu_m == rest.drone_position_enu_m[first]) and moved_m == 0.0
    player.resume(times[-1])
    assert player.at(times[-1] + 1.0).stage == "line" and player.state is PlayState.FLYING


def test_a_pause_is_a_persons_until_somebody_else_decides(survives):
    found, plan, row = survives
    player = FlightPlayer(plan, found.formation, found.mission, GoalSettings())
    player.start(0.0)
    begin_s = row / plan.rate_hz
    player.at(begin_s)
    player.pause(begin_s)
    with pytest.raises(CommandRefusal, match="cannot pause: paused"):
        player.pause(begin_s)
    player.resume(begin_s + 1.0)
    player.pause(begin_s + 1.0, by_guard=True)
    assert not player.held
    player.pause(begin_s + 1.0)
    assert player.held
    player.set_down(begin_s + 2.0)
    assert player.state is PlayState.ABORTING and not player.held


def test_turning_back_goes_on_with_what_is_landing_already(survives):
    found, plan, row = survives
    for begin_s in (row / plan.rate_hz, None):
        player = FlightPlayer(plan, found.formation, found.mission, GoalSettings())
        player.start(0.0)
        lower = np.flatnonzero(plan.stage == plan.stage_names.index("lower"))[3] / plan.rate_hz
        player.at(begin_s or lower)
        player.pause(begin_s or lower, by_guard=True)
        player.turn_back((begin_s or lower) + 60.0)
        assert player.state is (PlayState.ABORTING if begin_s else PlayState.FLYING)


def test_beside_a_drone_that_stands_in_the_way_nothing_is_tried(survives, way):
    _, plan, row = survives
    near = plan.drone_position_enu_m[row, 2] + [0.1, 0.0, 0.0]
    assert without(way, plan, row, near, falls=False) is None
    assert not way.gone.any()


def test_the_others_set_the_load_down_beside_a_drone_that_stayed_behind(survives, way, monkeypatch):
    """They are near it already, and keep farther from it on their way."""
    found, plan, row = survives
    monkeypatch.setattr(way, "spec", replace(way.spec, margin=1.2))  # no formation has as much
    asked, behind = plan.drone_position_enu_m[row], np.array([0.0, 0.65])
    place = asked[1] - [*behind, 0.0]
    answer = without(way, plan, row, place, falls=False)
    rest = answer.plan
    assert not answer.goes_on and rest.stage_names[:2] == ("reform", "lower")
    path = np.concatenate([plan.load_pose[row : row + 1], rest.load_pose])
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() < 0.4
    others = np.delete(rest.drone_position_enu_m, 1, axis=1)[..., :2]
    tips_m = np.linalg.norm(others - place[:2], axis=2).min(axis=1)
    tips_m -= 2 * tip_radius_m(found.system.drones[1])
    assert tips_m[0] < 0.1 < tips_m[rest.stage != 0].min()
    assert tips_m.min() == tips_m[0] > 0.0


def test_poses_of_a_busy_computer_do_not_hide_the_drone_that_is_lost():
    rng, guard, done = np.random.default_rng(5), Guard(), []
    for time_s in np.arange(0.0, 9.0, 0.1):
        late = rng.uniform(0.0, 0.35, 5)
        bodies = {f"drone_{k + 3}": Health(age, 0.3, "flying") for k, age in enumerate(late)}
        bodies["drone_2"] = Health(0.3, 0.3, "silent" if time_s > 2.0 else "flying")
        if not done and guard.given_up(time_s, bodies) == "drone_2":
            done.append(time_s)
            guard.survive(time_s)
        if done:
            del bodies["drone_2"]
        done += [step for step in [guard.look(time_s, bodies)] if step not in (None, "paused")]
    assert done == [pytest.approx(3.2, abs=0.11)]


def test_a_fall_is_seen_and_a_second_loss_is_left_to_the_guard(survives, way):
    """Only the formations that were found beforehand are flown in real time."""
    asked = survives[1].drone_position_enu_m[survives[2]]
    estimate = Estimate.zeros(6)
    estimate.tension_n[:] = np.nan  # nobody tells
    estimate.drones.position_enu_m[:] = asked - [0.0, 0.0, 0.6]
    estimate.drones.velocity_enu_m_s[[3, 4], 2] = np.nan, -2.0

    def lost():
        seen = way.look(1.0, estimate, asked, lifting=False)
        return [(loss.drone, loss.kind) for loss in seen]

    assert lost() == [(4, LossKind.FALLS)]
    way.note(Loss(4, LossKind.FALLS, ""))
    estimate.drones.velocity_enu_m_s[3, 2] = -2.0
    assert lost() == []
