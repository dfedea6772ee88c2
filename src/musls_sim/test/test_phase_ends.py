"""Each phase that ends says why, and what it says holds in the recorded flight."""

import re

import numpy as np
import pytest

import musls
from musls_bringup.cli import main
from musls_control.mission.phase_end import GATES, LANDED, was_cut_short
from musls_control.mission.plan import HOOKED, RELEASED, RESTED, WEIGHED

FROM_THE_GROUND = {
    "cable_model": "massless",
    "mission.stages": [{"kind": "hold", "duration_s": 1, "position_m": [0, 0, 0.8]}],
}


@pytest.fixture(scope="module")
def run():
    return musls.fly("hold", set=FROM_THE_GROUND | {"start": "ground"})


def test_all_phases_but_the_last_say_why_they_ended(run):
    assert not run.stages[-1].end_reason and run.stages[-1].name == "disarmed"
    for stage in run.stages[:-1]:
        assert stage.end_reason.startswith(f"{stage.name} ended: ") and not was_cut_short(
            stage.end_reason
        )
    assert not [event for event in run.events if event.kind == "phase"], "they are the stages'"


def test_a_planned_phase_lasts_as_long_as_it_says(run):
    planned = {s: re.search(r"planned (\d+\.\d) s$", s.end_reason) for s in run.stages}
    planned = {stage: float(found[1]) for stage, found in planned.items() if found}
    assert {"spool_up", "take_off", "hold"} <= {stage.name for stage in planned}
    for stage, said_s in planned.items():  # a row in it may have waited
        assert stage.duration_s > said_s - 0.06
    (hold,) = [stage for stage in planned if stage.name == "hold"]
    assert hold.duration_s == pytest.approx(planned[hold], abs=0.06)


def test_the_lift_ends_where_it_says(run):
    (lift,) = [stage for stage in run.stages if stage.name == "lift"]
    near, low, high = map(float, re.findall(r"\d+\.\d+", lift.end_reason))
    assert re.fullmatch(
        r"lift ended: drones within .* m of their places, load .* to .* m high", lift.end_reason
    )
    load = run.body("load")
    k = int(np.searchsorted(run.time_s, lift.end_s)) - 1
    assert low - 0.02 <= load.position_enu_m[k, 2] <= high + 0.02
    for name in ("drone_1", "drone_2", "drone_3"):
        body = run.body(name)
        asked = body.setpoint.held_at(run.time_s).position_enu_m[k]
        assert np.linalg.norm(body.position_enu_m[k] - asked) < near + 0.02


def test_the_landing_is_what_it_says(run):
    (land,) = [stage for stage in run.stages if stage.name == "land"]
    assert land.end_reason == f"land ended: {LANDED.why}"
    last = (run.time_s > land.end_s - 2.0) & (run.time_s < land.end_s)
    for k in (1, 2, 3):
        assert np.abs(run.body(f"drone_{k}").velocity_enu_m_s[last]).max() < 0.3


def test_an_abort_is_told_by_the_command_and_kept_in_the_folder(tmp_path, capsys):
    abort = "events=[{kind: abort, when: {stage: waypoints, after_s: 1}}]"
    out = tmp_path / "given_up"
    words = ["fly", "delivery", "--out", str(out), "--quiet", "--no-report", "--set", abort]
    assert main(words) == 0
    said = " ".join(capsys.readouterr().out.split())
    why = "waypoints was cut short: the delivery is given up: asked for"
    assert re.search(rf"not as planned, at \d+\.\d s: {why}", said)
    stages = {stage.name: stage.end_reason for stage in musls.read_recording(out).stages}
    assert stages["waypoints"] == why
    assert stages["land"] == f"land ended: {LANDED.why}"


def test_a_flight_in_the_air_ends_with_its_plan():
    run = musls.fly("hold", set=FROM_THE_GROUND | {"start": "air"})
    assert run.stages[-1].end_reason == "hold ended: the plan is over"


def test_each_gate_of_a_delivery_has_words():
    assert {*GATES} == {HOOKED, RESTED, RELEASED, WEIGHED}
