"""Flights with the real PX4, where one is installed."""

import os
import signal
from multiprocessing import get_context

import numpy as np
import pytest
from flight_helpers import Look, session_with_bag
from px4_helpers import HOP, HURRY, SHIPPED, px4_flight

from musls_description.config.errors import ConfigError
from musls_sim.px4.install import Px4Error, find_px4
from musls_sim.px4.process import SOCKET_FILE
from musls_sim.scenario.scenario import load_scenario

try:
    find_px4()
    MISSING = ""
except Px4Error as error:
    MISSING = str(error)

pytestmark = [pytest.mark.px4, pytest.mark.skipif(bool(MISSING), reason=MISSING or "-")]


def path_of(run):
    """Positions of load and drones at each control period, (k, 1 + n, 3), and the stages."""
    places, stages = [], []

    def watch(time_s, session):
        places.append(session.state.position_enu_m.copy())
        stages.append(session.stage)

    run.observe_with(Look(watch))
    result = run.run()
    assert result.landed
    return np.array(places), np.array(stages)


@pytest.mark.slow
def test_three_px4s_fly_as_the_built_in_autopilot_does(tmp_path):
    real, stages = path_of(px4_flight(tmp_path, "circle"))
    builtin = load_scenario(SHIPPED / "circle.yaml", [*HOP, "autopilot.kind=builtin"])
    ours, our_stages = path_of(session_with_bag(builtin, tmp_path / "builtin"))
    assert real[stages == "hold", 0, 2].max() > 0.25  # the load is off the ground
    for stage in ("lift", "hold"):
        n = min((stages == stage).sum(), (our_stages == stage).sum())
        apart = real[stages == stage][:n] - ours[our_stages == stage][:n]
        rms = np.sqrt((apart**2).sum(axis=2).mean(axis=0))
        assert (rms < 0.15).all(), f"{stage}: {rms}"  # satellite navigation against motion capture


def test_a_failed_preflight_check_is_told(tmp_path):
    run = px4_flight(tmp_path, "solo", "autopilot.parameters.SYS_HAS_NUM_DIST=1")
    with pytest.raises(Px4Error, match=r"refused to arm for 15 s .*it said: .*Preflight Fail"):
        run.run()


def test_a_parameter_that_this_px4_does_not_know(tmp_path):
    """Before anything starts: the names are read from the program."""
    with pytest.raises(ConfigError, match=r"NO_SUCH_THING: PX4 v1\..* \(/.*\) has no such"):
        px4_flight(tmp_path, "solo", "autopilot.parameters.NO_SUCH_THING=3")


def test_a_flight_log_is_written_where_asked_for_and_no_socket_stays(tmp_path):
    run = px4_flight(tmp_path, "solo", *HURRY, "autopilot.flight_log=true")
    assert run.run().landed
    assert (tmp_path / "logs" / "drone_1.ulg").read_bytes()[:4] == b"ULog"
    number = int((tmp_path / "logs" / "drone_1.log").read_text().split("instance: ")[1].split()[0])
    assert not os.path.exists(SOCKET_FILE.format(number))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, r"closed the simulator link \(killed by SIGKILL\)"),
        (signal.SIGSTOP, "stopped answering: nothing for 1 s"),
    ],
)
def test_a_px4_that_is_lost_in_flight(tmp_path, number, words):
    run = px4_flight(tmp_path)
    run.components.autopilot._answer_limit_s = 1.0
    lost = []

    def lose(time_s, session):
        if session.stage == "form_up" and not lost:
            lost.append(session.components.autopilot._vehicles[0]._process._process.pid)
            os.kill(lost[0], number)

    run.observe_with(Look(lose))
    with pytest.raises(Px4Error, match=words):
        run.run()
    assert not os.path.exists(f"/proc/{lost[0]}")


def test_a_long_wait_before_take_off(tmp_path):
    """PX4 by itself would disarm after 10 s (COM_DISARM_PRFLT)."""
    assert px4_flight(tmp_path, "solo", *HURRY, "mission.spool_up_s=13").run().landed


def test_a_px4_that_disarms_says_why(tmp_path):
    late = ("mission.spool_up_s=8", "autopilot.parameters.COM_DISARM_PRFLT=2")
    run = px4_flight(tmp_path, "solo", *HURRY, *late)
    with pytest.raises(Px4Error, match=r"disarmed at .*it said: .*auto preflight disarming"):
        run.run()


def _fly(folder):
    path_of(px4_flight(folder))


@pytest.mark.slow
def test_two_runs_side_by_side(tmp_path):
    context = get_context("spawn")
    runs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        runs.append(context.Process(target=_fly, args=(tmp_path / name,)))
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0]


@pytest.mark.slow
def test_a_lost_link_is_px4s_own_affair(tmp_path):
    """COM_OBL_RC_ACT 4: it lands by itself; the simulation goes on."""
    lost = "events=[{kind: link_lost, drone: 1, when: {stage: form_up, after_s: 3}}]"
    lands = "autopilot.parameters.COM_OBL_RC_ACT=4"
    run = px4_flight(tmp_path, "solo", *HURRY, lost, lands, "mission.form_up_s=20")
    heights, armed = [], []

    def watch(time_s, session):
        heights.append(session.state.position_enu_m[1, 2])
        armed.append(bool(session.components.autopilot.armed[0]))

    run.observe_with(Look(watch))
    with run:
        begun = None
        while run.time_s < 40.0 and (begun is None or run.time_s - begun < 12.0):
            run.advance(10)
            if begun is None and run.events.happened:
                begun = run.time_s
    k = round(begun / run.plant.period_s)
    assert heights[k] > 0.6  # it flew
    assert heights[-1] < 0.3 and not armed[-1]  # it is down, and disarmed, while the plan goes on
    assert run.stage == "form_up"


@pytest.mark.slow
def test_three_px4s_set_down_what_four_carried(tmp_path):
    scenario = load_scenario(
        SHIPPED / "quad_survives.yaml",
        [
            *HOP,
            "system.cables.links=4",
            "autopilot.parameters.SDLOG_BACKEND=0",
            "mission.stages=[{kind: hold, duration_s: 3, position_m: [0, 0, 1]}]",
            "events=[{kind: drone_lost, drone: 1, when: {stage: hold, after_s: 1}}]",
        ],
    )
    run = session_with_bag(scenario, tmp_path / "bag", autopilot_logs=tmp_path / "logs")
    sinks = []

    def watch(time_s, session):
        if session.stage in ("reform", "lower"):
            sinks.append(-session.state.velocity_enu_m_s[0, 2])

    run.observe_with(Look(watch))
    assert run.run().landed
    assert [e.kind for e in run.events.happened if e.kind == "drone_given_up"] == ["drone_given_up"]
    assert max(sinks) < 0.5
    assert run.max_tension_n.max() < 60.0
    assert run.separation.closest.tips_m > 0.0
