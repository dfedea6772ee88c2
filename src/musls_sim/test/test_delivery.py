"""The delivery: gates, weighing, letting go without a jump, giving up."""

import numpy as np
import pytest

from musls_bringup.api.simulation import fly as api_fly
from musls_bringup.catalogue.scenarios import load_scenario
from musls_control.mission.delivery import PayloadScale
from musls_description.config.errors import ConfigError
from musls_sim.session.session import Session

G = 9.80665
SHORT = {
    "cable_model": "massless",
    "mission.form_up_s": 4.0,
    "mission.delivery.pick_up": "attached",
    "mission.delivery.place_m": [1, 0],
    "mission.stages": [{"kind": "hold", "position_m": [0, 0, 1.5], "duration_s": 0.5}],
}


def fly(**changes):
    return Session(load_scenario("delivery", SHORT | changes))


def until(session, kind, limit_s=120.0):
    """Fly until an event of a kind has happened."""
    while not any(e.kind == kind for e in session.events.happened):
        session.advance(1)
        assert session.time_s < limit_s
        assert not session.finished


def stages_of(session):
    """Stages flown from now to the end, in order."""
    flown = [session.stage]
    while not session.finished:
        session.advance(5)
        if session.stage != flown[-1]:
            flown.append(session.stage)
        assert session.time_s < 200.0
    return flown


# ---------- Weighing


def test_scale_learns_the_thrust_and_weighs_while_it_rises():
    """Constants 7 % wrong, a drone that accelerates upwards: the load comes out exactly."""
    scale = PayloadScale(np.array([2.0]), np.full((1, 4), 1e-5), G)
    true = 0.93e-5

    def hover(mass, up=1.0, rise=0.0):
        scale.begin()
        for k in range(101):
            speed = np.sqrt(mass * (G + rise) / (4.0 * true * up))
            scale.add(0.02, np.full((1, 4), speed), np.array([up]), np.array([rise * 0.02 * k]))

    hover(2.0)
    assert scale.masses_kg()[0] == pytest.approx(2.0 / 0.93)
    scale.tare()
    assert scale.factor[0] == pytest.approx(0.93)
    hover(2.5, up=0.97, rise=0.4)
    assert scale.masses_kg()[0] == pytest.approx(2.5, rel=1e-9)
    assert scale.carried_kg == pytest.approx(0.5, rel=0.02)


# ---------- The mission


@pytest.mark.slow
@pytest.mark.parametrize("model", ["massless", "rigid_links", "elastic"])
def test_parcel_is_hooked_up_brought_and_left(model):
    with Session(load_scenario("delivery", {"cable_model": model})) as session:
        until(session, "attach")
        assert session.stage == "pick_up"
        until(session, "weighed")
        assert session.guidance.watch.payload_kg == pytest.approx(2.0, rel=0.03)
        while session.stage != "release":
            session.advance(1)
        session.advance(1)
        assert np.abs(session.state.tension_n).max() < 0.5
        left = session.state.position_enu_m[0].copy()
        assert left == pytest.approx([8.0, 0.0, 0.1], abs=0.25)
        rises = []
        for _ in range(125):
            session.advance(1)
            rises.append(abs(session.state.acceleration_enu_m_s2[1, 2]))
        assert max(rises) < 0.5  # a drone without its 2 kg would start with 2.4 m/s2
        flown = stages_of(session)
        assert flown == ["release", "climb", "return", "descend", "spread", "land", "disarmed"]
        assert session.guidance.landed
        assert np.abs(session.state.position_enu_m[0] - left).max() < 0.01
        assert np.linalg.norm(session.state.position_enu_m[1, :2]) < 4.0


@pytest.mark.parametrize("wrong", ["propeller", "battery"])
def test_weight_is_right_with_weak_propellers_and_an_empty_battery(wrong):
    weak = {"kind": "rotor_failure", "when": {"time_s": 0}, "drone": 1, "efficiency": 0.92}
    changes = {"propeller": {"events": [weak]},
               "battery": {"system.drones.propulsion.battery.start_charge": 0.35}}  # fmt: skip
    with fly(**changes[wrong]) as session:
        until(session, "weighed")
        assert session.guidance.watch.payload_kg == pytest.approx(2.0, rel=0.03)


def test_let_go_in_the_air_the_drone_stays():
    """C8: the load falls; with the weight known the drone rises a fifth of what it does without."""
    peaks = []
    for told in (True, False):
        with fly(**{"mission.delivery.drop": "air"}) as session:
            if not told:
                session.components.autopilot.scale_load = lambda ratio: None
            until(session, "release")
            height = session.state.position_enu_m[1, 2]
            rise = []
            for _ in range(250):
                session.advance(1)
                rise.append(session.state.position_enu_m[1, 2] - height)
            peaks.append(max(np.abs(rise)))
            assert session.state.position_enu_m[0, 2] < 0.2
    assert peaks[0] < 0.05
    assert peaks[1] > 3.0 * peaks[0]


# ---------- Giving up


def test_a_hook_that_never_closes_ends_the_delivery():
    changes = {"mission.delivery.pick_up": "hook", "mission.delivery.hook_distance_m": 1e-4,
               "mission.delivery.timeout_s": 1.0}  # fmt: skip
    with fly(**changes) as session:
        until(session, "abort")
        (told,) = [e.what for e in session.events.happened if e.kind == "abort"]
        assert told == "not hooked after 1 s: return"
        assert stages_of(session)[-2:] == ["land", "disarmed"]
        assert session.guidance.landed


@pytest.mark.parametrize("how", ["return", "land"])
def test_a_delivery_given_up_brings_the_load_down(how):
    stop = {"kind": "abort", "when": {"stage": "approach", "after_s": 2.0}}
    changes = {"mission.delivery.abort": how, "events": [stop],
               "mission.delivery.place_m": [4, 0]}  # fmt: skip
    with fly(**changes) as session:
        until(session, "abort")
        flown = stages_of(session)
        assert ("return" in flown) == (how == "return")
        assert flown[-5:] == ["lower", "slacken", "spread", "land", "disarmed"]
        assert not any(e.kind == "release" for e in session.events.happened)
        x, _, z = session.state.position_enu_m[0]
        assert z == pytest.approx(0.1, abs=0.01)
        assert (abs(x) < 0.4) if how == "return" else (1.0 < x < 4.0)


@pytest.mark.parametrize("time_s", [3.0, 9.0])
def test_a_delivery_given_up_before_its_pick_up_comes_back_and_is_valid(time_s):
    """Before the drones have weighed themselves, or in formation; the load stays where it is."""
    stop = {"kind": "abort", "when": {"time_s": time_s}}
    run = api_fly(load_scenario("delivery", SHORT | {"events": [stop]}), quiet=True)
    assert not run.warnings
    names = [stage.name for stage in run.stages]
    assert "abort" in names and "pick_up" not in names and names[-1] == "disarmed"


# ---------- Bad input


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"controller": "payload"}, "is flown by the formation"),
        ({"cable_model": "rigid_rods", "mission.delivery.pick_up": "hook"}, "release: the cable"),
        ({"mission.kind": "stages"}, "go together"),
        ({"mission.stages": []}, "give either stages|needs stages"),
        ({"events": [{"kind": "abort", "when": {"stage": "circle"}}]}, "'circle' is not flown"),
    ],
)
def test_refused_in_one_line(changes, words):
    with pytest.raises(ConfigError, match=words) as caught:
        fly(**changes)
    assert "\n" not in str(caught.value)


def test_only_a_delivery_can_be_given_up():
    with pytest.raises(ConfigError, match=r"only mission.kind: delivery can be aborted"):
        Session(load_scenario("hold", {"events": [{"kind": "abort", "when": {"time_s": 1}}]}))
