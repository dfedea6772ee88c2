"""Bad scenarios at every door that starts drones: refused alike, or only the flight can tell."""

import json
import warnings

import numpy as np
import pytest

import musls
from musls_bringup.before.planned import prepare
from musls_bringup.before.verdict import judge
from musls_bringup.cli.app import run
from musls_bringup.ros.launching import REAL_ARGUMENTS, real_nodes
from musls_control.brief.brief import read_brief
from musls_control.real_flight.before_arming import ArmingLimits, check_before_arming
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml

HOLD = {"kind": "hold", "position_m": [0, 0, 1], "duration_s": 1}
ASIDE = {**HOLD, "position_m": [2, 0, 1]}
CRATE = {"kind": "box", "name": "crate", "size_m": [0.3, 0.3, 0.3]}
FAST = {"kind": "waypoints", "speed_m_s": 4.0,
        "points": [[0, 0, 1], [4, 0, 1], [4, 4, 1], [0, 0, 1]]}  # fmt: skip

TRIO = {"cable_model": "massless", "mission.stages": [HOLD]}
BY_PLAN = {
    "30 kg": ({"system.load.mass_kg": 30}, "thrust margin 0.23"),
    "margin 0.99": ({"system.load.mass_kg": 3.3}, "thrust margin 0.99"),
    "load into a box": (
        {"mission.stages": [HOLD, ASIDE],
         "world.obstacles": [{**CRATE, "position_enu_m": [1, 0, 1]}]},
        "brings load into crate",
    ),
    "drone into a box": (
        {"mission.stages": [HOLD, ASIDE],
         "world.obstacles": [{**CRATE, "position_enu_m": [1.5, 0.9, 3.2]}]},
        "into crate",
    ),
    "cable into a box": (
        {"mission.stages": [HOLD, ASIDE],
         "world.obstacles": [
             {**CRATE, "size_m": [0.1, 0.1, 0.1], "position_enu_m": [1.1, 0.5, 2.1]}]},
        "brings cable_2 into crate",
    ),
    "limit of the distance": ({"limits.separation_m": 1.0}, "limits.separation_m = 1"),
    "discs overlap": ({"formation.radius_m": 0.25}, "overlap"),
    "cables do not reach": ({"formation.radius_m": 50}, "cables do not reach"),
    "too high": ({"formation.height_m": 4.0}, "formation.height_m = 4"),
    "rise beyond the cables": ({"mission.rise_m": 4}, "mission.rise_m = 4"),
    "through the ground": (
        {"start": "air", "mission.stages": [{**HOLD, "position_m": [0, 0, -1]}]},
        "would touch the ground",
    ),
    "too fast for any drone": ({"mission.stages": [{**FAST, "speed_m_s": 500}]}, "30 m/s"),
    "turns too fast": (
        {"mission.stages": [
            {"kind": "circle", "radius_m": 1e-4, "speed_m_s": 1, "height_m": 1}]},
        "rad/s",
    ),
    "beyond the horizon": (
        {"mission.stages": [HOLD, {**HOLD, "position_m": [1e5, 0, 1]}]}, "10000 m"
    ),
    "longer than a day": ({"mission.stages": [{**HOLD, "duration_s": 1e8}]}, "a day"),
    "upright cables": ({"controller.kind": "rotortm"}, "cables stand upright"),
    "weak gravity's opposite": ({"physics.gravity_m_s2": 30}, "at gravity 30"),
}  # fmt: skip
"""Changes of `circle`, and what every door says of it."""

EXPLAINED = {
    ("upright cables", "launch"): "rotortm",
    ("beyond the horizon", "node"): "a day",
}
"""Doors that refuse for another reason first: no such law flies through the graph, and the node
makes its plan first, on which the way lasts too long."""

IN_FLIGHT = {
    "fast second stage": {"mission.stages": [HOLD, FAST]},
    "load that becomes heavier later": {
        "cable_model": "rigid_links",
        "mission.stages": [HOLD, ASIDE],
        "events": [{"kind": "load_mass", "when": {"stage": "transit"}, "mass_kg": 8.0}],
    },
}
"""Only the flight can tell: `check` and the real launch fly it, the others say so or fly it."""


def refused(door):
    """What a door says against a flight, "" for nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            door()
        except ConfigError as error:
            return str(error)
    return ""


def armed(scenario, tmp_path):
    """What the node does before it arms: it reads the file, and looks where the bodies stand."""
    file = tmp_path / "scenario.yaml"
    file.write_text(to_yaml(scenario))
    brief = read_brief(file)
    places, _ = scenario.hanging.on_ground.bodies(scenario.system)
    plan = brief.plan_from(places[0], 0.0, np.array(places[1:]))
    check_before_arming(brief, plan, ArmingLimits(setpoint_speed_m_s=50.0))


def launched(scenario, tmp_path, **changed):
    file = tmp_path / "given.yaml"
    file.write_text(to_yaml(scenario))
    given = {name: default for name, (default, _) in REAL_ARGUMENTS.items()}
    out = str(tmp_path / "real")
    return real_nodes(given | {"scenario": str(file), "out": out} | changed)


@pytest.mark.parametrize("name", BY_PLAN)
def test_every_door_refuses_for_the_same_reason(name, tmp_path):
    changes, says = BY_PLAN[name]
    scenario = musls.load_scenario("circle", {**TRIO, **changes})
    verdict = judge(scenario)
    assert not verdict.can_be_flown and verdict.flown is None
    told = {
        "check": verdict.sentence,
        "fly": refused(lambda: musls.fly(scenario)),
        "dry run": refused(lambda: prepare(scenario)),
        "node": refused(lambda: armed(scenario, tmp_path)),
        "launch": refused(lambda: launched(scenario, tmp_path)),
    }
    other = {door for door, text in told.items() if says not in text}
    assert other == {door for (of, door) in EXPLAINED if of == name}, told
    assert all(EXPLAINED[name, door] in told[door] for door in other), told
    assert not (tmp_path / "real").exists()


@pytest.mark.parametrize("name", IN_FLIGHT)
def test_what_only_the_flight_tells_is_flown_before_real_drones_start(name, tmp_path):
    scenario = musls.load_scenario("circle", {**TRIO, **IN_FLIGHT[name]})
    verdict = judge(scenario)
    assert verdict.flown is not None and not verdict.can_be_flown
    assert "in flight: " in refused(lambda: launched(scenario, tmp_path))
    assert not (tmp_path / "real").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        musls.fly(scenario, out=tmp_path / "flown", report=False)
    summary = json.loads((tmp_path / "flown" / "summary.json").read_text())
    assert [f"in flight: {line}" for line in summary["warnings"]] == verdict.problems
    assert summary["check"]["can_be_flown"] is False
    assert not refused(lambda: prepare(scenario)) and not refused(lambda: armed(scenario, tmp_path))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("tether", {"cable_model": "massless"}),  # two reasons: its cables, its start
        ("circle", {**TRIO, "events": [{"kind": "drone_lost", "when": {"stage": "x"}, "drone": 1}],
                    "controller": {"kind": "rotortm", "links": "rods"}}),
        ("circle", {**TRIO, "cable_model": "rigid_rods", "limits.separation_m": 1.0,
                    "controller": {"kind": "rotortm", "links": "cables"}}),
    ],
)  # fmt: skip
def test_of_two_reasons_check_and_fly_tell_the_same(name, changes):
    scenario = musls.load_scenario(name, changes)
    said = refused(lambda: musls.fly(scenario))
    assert said
    try:
        assert judge(scenario).problems[0] in said
    except ConfigError as error:
        assert str(error) == said


def test_an_empty_battery_is_told_before_the_flight_and_decided_by_it():
    flat = {"system.drones.propulsion.battery.capacity_ah": 0.2}
    verdict = judge(musls.load_scenario("delivery", flat))
    (charge,) = [finding for finding in verdict.findings if finding.key == "charge"]
    assert "95.2 s, the battery of drone_1 lasts for 23 s of hover" in charge.text
    assert not charge.refuses
    assert verdict.flown is not None and not verdict.can_be_flown
    whole = judge(musls.load_scenario("delivery"), flown=False)
    assert not [finding for finding in whole.findings if finding.key == "charge"]


def test_a_flight_of_wrenches_without_rotors_has_no_margin_of_them():
    """RotorTM's law acts at once, its rotors rest: `check` once ended with a traceback."""
    flown = judge(musls.load_scenario("winch_delivery", {"controller": "rotortm"})).flown
    assert flown is not None and flown.margin is None


def test_a_flight_of_real_drones_is_forced_with_a_reason_that_is_recorded(tmp_path):
    heavy = musls.load_scenario("circle", {**TRIO, "system.load.mass_kg": 2.6})
    _, _, formation, _ = launched(heavy, tmp_path, force="a winch takes half of it")
    assert formation.parameters["force"] == "a winch takes half of it"
    kept = json.loads((tmp_path / "real" / "check.json").read_text())
    assert kept["forced"] == "a winch takes half of it" and not kept["can_be_flown"]
    near = musls.load_scenario("circle", {**TRIO, "limits.separation_m": 1.0})
    assert "limits.separation_m" in refused(lambda: launched(near, tmp_path, force="I know"))


@pytest.mark.parametrize("controller", ["pid", "payload"])
def test_check_flies_with_the_controller_of_the_scenario(controller, capsys):
    given = ["--set", f"controller={controller}", "--set", "cable_model=massless"]
    assert run(["check", "solo", *given, "--for", "12", "--json"]) in (0, 1)
    flown = json.loads(capsys.readouterr().out)["flown"]
    assert flown["instead"] == "" and flown["seconds"] == pytest.approx(12.0, abs=0.1)


@pytest.mark.parametrize("model", ["massless", "rigid_links", "elastic"])
def test_a_load_may_lean_below_one_hook(model):
    """Its centre of mass hangs below the hook: it leans by atan(0.1 / 0.05)."""
    load = {"mass_kg": 0.5, "shape": {"kind": "box", "size_m": [0.4, 0.2, 0.1]},
            "cable_attachments_m": [[0.1, 0, 0.05]]}  # fmt: skip
    cables = {"from": "rope", "length_m": 2.0}
    system = {"name": "hook", "load": load, "drones": {"from": "x500"}, "cables": cables}
    given = {"cable_model": model, "start": "air", "system": system, "mission.stages": [HOLD]}
    scenario = musls.load_scenario("solo", given)
    verdict = judge(scenario)
    assert verdict.can_be_flown, verdict.sentence
    assert any("the load will hang tilted by 63 deg" in line for line in verdict.cautions)
    with pytest.warns(UserWarning, match="tilted by 63 deg"):
        flight = musls.fly(scenario)
    _, x, y, _ = flight.body("load").orientation_wxyz[-1]
    lean_deg = np.degrees(np.arccos(1.0 - 2.0 * (x**2 + y**2)))
    assert lean_deg == pytest.approx(np.degrees(np.arctan2(0.1, 0.05)), abs=1.0)
