"""Events by which motion capture lies in flight, with the relay's filter and the guard."""

import itertools

import numpy as np
import pytest

import musls
from musls_analysis.comparison.summary import facts
from musls_description.config.errors import ConfigError
from musls_description.system.drone import tip_radius_m

AIR = {"start": "air", "system.cables.links": 3}
BODIES = ("load", "drone_1", "drone_2", "drone_3")

LIES = {
    # the event, and the word by which it is refused
    "frozen": ({"kind": "mocap_frozen", "drone": 2}, "frozen"),
    "swapped": ({"kind": "mocap_swapped", "drone": 2, "with_drone": 3}, "exchanged"),
    "turned": ({"kind": "mocap_turned", "drone": 2}, "turn"),
    "turned over": ({"kind": "mocap_turned", "drone": 1, "angle_deg": 180, "axis_enu": [1, 0, 0]},
                    "tilt"),
    "jump": ({"kind": "mocap_jump", "drone": 3}, "jump"),
    "origin": ({"kind": "mocap_jump", "drone": 2, "place_enu_m": [0, 0, 0]}, "jump"),
}  # fmt: skip


def flown(event, overrides=AIR, name="circle"):
    when = {"stage": "line" if "survives" in name else "circle", "after_s": 3.0}
    events = [{**event, "when": when}]
    return musls.fly(musls.load_scenario(name, {**overrides, "events": events}))


def first(run, kind, words=""):
    return next((e for e in run.events if e.kind == kind and words in e.what), None)


def places(run):
    """Of load and drones, (time, 4, 3)."""
    return np.stack([run.body(body).position_enu_m for body in BODIES], axis=1)


def check_safe(run, begin_s):
    """Nobody hits anything, and the load is set down near where it hung."""
    moved = places(run)[run.body("load").time_s >= begin_s]
    pairs = itertools.combinations(range(1, moved.shape[1]), 2)
    apart_m = min(np.linalg.norm(moved[:, i] - moved[:, j], axis=1).min() for i, j in pairs)
    assert apart_m > 1.0
    assert np.linalg.norm(moved[:, 0, :2] - moved[0, 0, :2], axis=1).max() < 1.0
    assert moved[-1, 0, 2] < 0.1 and (moved[-1, 1:, 2] < 0.3).all()
    fastest_m_s = np.linalg.norm(np.diff(moved[:, 1:], axis=0), axis=2).max() / 0.02
    assert fastest_m_s < 1.5
    assert not any(e.kind in ("collision", "too_close", "doubtful") for e in run.events)


QUICK = ("frozen", "turned", "origin")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in LIES]
)
def test_a_capture_that_lies_is_doubted_and_all_land_within_a_second(name):
    event, word = LIES[name]
    run = flown(event)
    begin_s = first(run, event["kind"]).time_s
    doubt = first(run, "mocap", "poses refused")
    assert f"drone_{event['drone']}" in doubt.what and word in doubt.what
    paused, landing = first(run, "guard", "paused"), first(run, "guard", "landing all drones")
    assert begin_s < doubt.time_s <= paused.time_s < landing.time_s < begin_s + 1.0
    check_safe(run, begin_s)
    assert [stage.name for stage in run.stages][-2:] == ["land", "disarmed"]
    events = [{"time_s": e.time_s, "kind": e.kind, "what": e.what} for e in run.events]
    told = dict(facts({"events": events}))["not as planned"]
    assert told.startswith(f"the guard, at {landing.time_s:.1f} s: landing all drones: drone_")


@pytest.mark.slow
def test_a_flight_from_the_ground_ends_where_the_guard_has_landed_it():
    run = flown(LIES["frozen"][0], {"system.cables.links": 3})
    check_safe(run, first(run, "mocap_frozen").time_s)
    assert [stage.name for stage in run.stages][-2:] == ["land", "disarmed"]


@pytest.mark.parametrize("duration_s", [0.05, pytest.param(0.3, marks=pytest.mark.slow)])
def test_a_short_lie_is_not_believed_and_the_guard_watches_on(duration_s):
    run = flown(LIES["jump"][0] | {"duration_s": duration_s})
    assert first(run, "guard", "landing") is None
    assert (first(run, "guard", "paused") is None) == (duration_s < 0.2)
    if duration_s > 0.2:
        assert first(run, "mocap", "drone_3: poses used again")
        assert first(run, "guard", "watching: faults are over")


def test_the_capture_is_in_the_loop_and_changes_nothing_until_it_lies():
    """Every sample of a flight without a fault is believed, so it is the same bit for bit."""
    late = {"kind": "mocap_frozen", "drone": 2, "when": {"time_s": 1000.0}}
    overrides = {**AIR, "estimation.load.kind": "mocap"}
    with_relay = musls.fly(musls.load_scenario("circle", {**overrides, "events": [late]}))
    without = musls.fly(musls.load_scenario("circle", overrides))
    assert places(with_relay).tobytes() == places(without).tobytes()
    assert with_relay.events == without.events


@pytest.mark.slow
def test_one_of_six_in_doubt_lands_by_itself_and_the_others_go_on():
    run = flown(LIES["frozen"][0], {"start": "air"}, "hexa_survives")
    begin_s = first(run, "mocap_frozen").time_s
    on = first(run, "guard", "going on without a drone: drone_2: in doubt")
    assert on.time_s < begin_s + 1.0 and "its hook opens; new formation" in on.what
    assert first(run, "land", "drone_2")
    lost = run.body("drone_2")
    high = lost.position_enu_m[lost.time_s >= on.time_s, 2]
    assert high[-1] < 0.3 and np.diff(high).min() > -0.04  # lands, does not fall: 2 m/s at most
    assert not any(e.kind in ("collision", "too_close") for e in run.events)


def test_two_of_six_in_doubt_have_all_land_and_nobody_lets_the_load_go():
    """What sinks below its set-points then, or has a slack cable, is not lost."""
    run = flown(LIES["swapped"][0], {"start": "air"}, "hexa_survives")
    begin_s = first(run, "mocap_swapped").time_s
    assert first(run, "guard", "landing all drones").time_s < begin_s + 1.0
    assert not any(e.kind in ("drone_given_up", "hook_opened", "collision") for e in run.events)
    assert [stage.name for stage in run.stages][-2:] == ["land", "disarmed"]
    assert run.body("load").position_enu_m[-1, 2] < 0.1


@pytest.mark.parametrize(
    ("changed", "event", "words"),
    [
        ({"estimation.kind": "truth"}, {}, "mocap_frozen needs motion capture: estimation.kind"),
        ({"estimation.latency_s": 0.0}, {}, "estimation.latency_s must be 0.004 s or more"),
        ({"controller.kind": "payload"}, {}, "choose controller.kind: formation"),
        ({}, {"drone": 4}, "drone 4, but there are 3 drones"),
        ({}, {"kind": "mocap_swapped", "with_drone": 2}, "with_drone must be another one"),
        ({}, {"kind": "mocap_turned", "axis_enu": [0, 0, 0]}, "axis_enu must not be zero"),
    ],
)
def test_what_such_an_event_needs_is_one_line(changed, event, words):
    with pytest.raises(ConfigError, match=words) as refusal:
        flown({"kind": "mocap_frozen", "drone": 2} | event, {**AIR, **changed})
    assert "\n" not in str(refusal.value)


def test_an_event_by_hand_in_a_flight_without_a_relay_is_refused():
    with (
        musls.Session(musls.load_scenario("circle", AIR)) as session,
        pytest.raises(ConfigError, match="no relay judges the capture of this flight"),
    ):
        session.apply({"kind": "mocap_frozen", "drone": 2})


def test_the_others_set_the_load_down_and_land_clear_of_one_that_has_fallen():
    """Without a contingency; they neither wait for it nor sink onto it."""
    falls = {"kind": "drone_lost", "drone": 2, "when": {"stage": "line", "after_s": 2.0}}
    with_guard = {"kind": "mocap_frozen", "drone": 2, "when": {"time_s": 1000.0}}
    overrides = {"system.cables.links": 3, "events": [falls, with_guard]}
    run = musls.fly(musls.load_scenario("hexa", overrides))
    begin_s = first(run, "drone_lost").time_s
    assert first(run, "guard", "lowering the load").time_s < begin_s + 5.0
    assert first(run, "guard", "landing") is None
    assert [stage.name for stage in run.stages][-3:] == ["spread", "land", "disarmed"]
    tracks = [run.body(f"drone_{i}").position_enu_m for i in range(1, 7)]
    moved = np.stack(tracks, axis=1)[run.body("load").time_s >= begin_s]
    pairs = itertools.combinations(range(6), 2)
    apart_m = min(np.linalg.norm(moved[:, i] - moved[:, j], axis=1).min() for i, j in pairs)
    tips_m = 2.0 * tip_radius_m(musls.load_scenario("hexa").system.drones[0])
    assert apart_m - tips_m > 0.15  # 0.36 m are planned
    hits = [e.what for e in run.events if e.kind == "collision"]
    assert all(hit.startswith("drone_2 and ground") for hit in hits)
