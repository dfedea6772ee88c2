"""Flights through the ROS graph, their bags, and how they end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from ros_probe import needs_ros, own_domain
from rosbags.rosbag2 import Reader

from musls_analysis.recordings.readers import read_recording
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import main
from musls_bringup.flight.fly import FlyOptions, fly
from musls_bringup.ros import processes
from musls_bringup.ros.graph_flight import fly_through_graph
from musls_description.config.errors import MuslsError

pytestmark = [needs_ros(), pytest.mark.timeout(1200)]

SHORT_CIRCLE = ["mission.stages.0.radius_m=0.8", "mission.transit_speed_m_s=0.6"]
IN_AIR = ["system.cables.links=3", "mission.stages.0.duration_s=2"]


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    """One scenario flown through the graph and in process: folders and summaries."""
    folder = tmp_path_factory.mktemp("flown")
    scenario, options = find_scenario("circle", SHORT_CIRCLE), FlyOptions(report=False)
    with own_domain():
        through = fly_through_graph(scenario, folder / "ros", options)
    inside = fly(scenario, folder / "inside", options)
    return folder, through, inside


def load_path(recording, time_s, of="bodies"):
    track = getattr(recording, of)["load"]
    return np.column_stack(
        [np.interp(time_s, track.time_s, track.position_enu_m[:, k]) for k in range(3)]
    )


@pytest.mark.slow
def test_a_flight_through_the_graph_is_the_flight_in_process(flown):
    folder, through, inside = flown
    assert [s["name"] for s in through["stages"]] == [s["name"] for s in inside["stages"]]
    assert through["landed"] and not through["interrupted"]
    assert through["lost_answers"] == [0, 0, 0] and through["lost_messages"] == {}
    ros, here = (read_recording(folder / name) for name in ("ros", "inside"))
    shift = ros.stages[0].start_s - here.stages[0].start_s
    time_s = np.arange(0.0, here.stages[-2].end_s - 0.1, 0.02)
    apart = load_path(ros, time_s + shift) - load_path(here, time_s)
    middle_s = np.arange(0.1, time_s[-1], 0.2)  # of the set-points' periods
    spans = {stage.name: stage for stage in here.stages}
    # On the way down the load waits until it is still: that may take a look (6 cm) more or less.
    sinks_s = spans["lower"].start_s - 0.1
    for part, allowed_m in ((time_s < sinks_s, 0.005), (time_s > sinks_s, 0.08)):
        assert np.sqrt((apart[part] ** 2).sum(axis=1).mean()) < allowed_m
    asked = load_path(ros, time_s + shift, "references") - load_path(here, time_s, "references")
    # As of the set-points below.
    assert np.abs(asked[time_s < sinks_s]).max() < 0.005
    in_formation = (middle_s > spans["tension"].start_s) & (middle_s < spans["spread"].start_s)
    # The wait for all to be in place may end a set-point earlier or later.
    (slacken,) = (stage for stage in ros.stages if stage.name == "slacken")
    late_s = slacken.start_s - spans["slacken"].start_s
    assert abs(late_s - shift) < 0.41
    then_s = middle_s + np.where(middle_s < spans["slacken"].start_s, shift, late_s)
    sinking = (middle_s > sinks_s) & (middle_s < spans["slacken"].start_s)
    for body in here.setpoints:
        ours = here.setpoints[body].held_at(middle_s).position_enu_m
        theirs = ros.setpoints[body].held_at(then_s).position_enu_m
        # When the node plans, the load has sunk into the ground by 0.5 mm (STATIC_SINK_M).
        steady = in_formation & ~sinking
        assert ours[steady] == pytest.approx(theirs[steady], abs=6e-4)
        assert ours[sinking] == pytest.approx(theirs[sinking], abs=0.065)
        # Until the node planned, the cables had fallen and pulled the drones on by 3 mm.
        assert ours[~sinking] == pytest.approx(theirs[~sinking], abs=0.005)
    assert np.diff(ros.bodies["load"].time_s).max() < 0.0201  # nothing lost
    assert through["warnings"] == inside["warnings"]
    for name in ("translational_error_m", "held_translational_error_m"):
        errors = [flight["errors"]["load"]["circle"][name] for flight in (through, inside)]
        assert errors[0] == pytest.approx(errors[1], abs=2e-3)
    # Peaks of all steps; those of impacts depend on how the cables lie when the node plans.
    peaks = {where: peak["max_n"] for where, peak in inside["tension"].items()}
    found = {where: peak["max_n"] for where, peak in through["tension"].items()}
    assert found == pytest.approx(peaks, rel=0.3)
    assert found["in_flight"] == pytest.approx(peaks["in_flight"], rel=0.02)


@pytest.mark.slow
def test_the_bag_is_compared_and_viewed_like_any_other(flown, tmp_path, capsys):
    folder, _, _ = flown
    bags = [str(folder / name / "bag") for name in ("inside", "ros")]
    assert main(["compare", *bags, "--stage", "circle", "--out", str(tmp_path / "c")]) == 0
    assert (tmp_path / "c" / "comparison.json").is_file()
    picture = tmp_path / "p.png"
    assert main(["view", bags[1], "--png", "30", "--out", str(picture)]) == 0
    assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_the_controller_of_the_load_flies_through_the_graph(tmp_path):
    """On the circle the formation alone is some 300 mm off; with it, 70 to 80 mm through ROS."""
    keys = ["mission.stages.0.radius_m=0.5", "mission.transit_speed_m_s=0.6"]
    scenario = find_scenario("circle_payload", keys)
    with own_domain():
        flown = fly_through_graph(scenario, tmp_path / "ros", FlyOptions(report=False))
    assert flown["landed"] and flown["lost_answers"] == [0, 0, 0]
    assert flown["controller"] == {}  # it has no figures of its own
    assert flown["errors"]["load"]["circle"]["held_translational_error_m"] < 0.12
    recording = read_recording(tmp_path / "ros")
    # It takes over and hands back: integrators, hover thrust and set-points go on from what is
    # there. In process it is 0.46 and 0.21 m aside, 0.03 and 0.12 m in height (transit at 0.6 m/s).
    (transit, *_), (circle,), (lower,) = (
        [stage for stage in recording.stages if stage.name == name]
        for name in ("transit", "circle", "lower")
    )
    for begin_s in (transit.start_s, lower.start_s):
        time_s = np.arange(begin_s, begin_s + 4.0, 0.02)
        off_m = load_path(recording, time_s) - load_path(recording, time_s, "references")
        assert np.linalg.norm(off_m[:, :2], axis=1).max() < 0.5
        assert np.abs(off_m[:, 2]).max() < 0.25
    for number in (1, 2, 3):  # what the autopilots are asked for is in the bag, at every step
        asked = recording.setpoint_acceleration(number)
        inside = recording.stage_mask(circle, asked.time_s)
        assert np.diff(asked.time_s[inside]) == pytest.approx(0.02)
        assert inside.sum() == pytest.approx(circle.duration_s / 0.02, abs=3)
        assert np.isfinite(asked.acceleration_enu_m_s2).all()


@pytest.mark.slow
def test_a_delivery_flies_through_the_graph(tmp_path):
    """Hooks open and close through the simulator's events, which also hears of the stages."""
    push = {
        "kind": "poke",
        "when": {"stage": "hold"},
        "force_enu_n": [0.5, 0, 0],
        "duration_s": 0.2,
    }
    keys = {
        "cable_model": "massless",
        "mission.form_up_s": 4,
        "mission.delivery.place_m": [1, 0],
        "mission.stages": [{"kind": "hold", "position_m": [0, 0, 1.5], "duration_s": 0.5}],
        "events": [push],
    }
    scenario = find_scenario(
        "delivery", [f"{key}={json.dumps(value)}" for key, value in keys.items()]
    )
    with own_domain():
        flown = fly_through_graph(scenario, tmp_path / "ros", FlyOptions(report=False))
    assert flown["landed"] and flown["lost_answers"] == [0]
    events = [(e["kind"], e["what"]) for e in flown["events"] if "cable" not in e["kind"]]
    assert [kind for kind, _ in events] == ["attach", "weighed", "poke", "poke", "release"]
    assert float(dict(events)["weighed"].split()[1]) == pytest.approx(2.0, rel=0.03)
    flown_stages = [stage["name"] for stage in flown["stages"]]
    assert flown_stages[-7:] == [
        "release", "climb", "return", "descend", "spread", "land", "disarmed"
    ]  # fmt: skip
    recording = read_recording(tmp_path / "ros")
    assert recording.bodies["load"].position_enu_m[-1] == pytest.approx([1.0, 0.0, 0.1], abs=0.25)
    assert recording.bodies["drone_1"].position_enu_m[-1, 0] > 1.0


def wait_until(condition, within_s):
    """Returns whether something came true."""
    end = time.monotonic() + within_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


def messages(bag):
    """Everything in a bag, in an order that does not depend on who came first at one time.

    DDS fills messages up to whole words.
    """
    with Reader(bag) as reader:
        return sorted(
            (time, c.topic, bytes(data).ljust(-(-len(data) // 4) * 4, b"\0"))
            for c, time, data in reader.messages()
        )


@pytest.mark.slow
def test_a_bag_that_is_played_and_recorded_again_is_the_same(nodes, tmp_path):
    scenario = find_scenario("hold", IN_AIR)
    fly(scenario, tmp_path / "flown", FlyOptions(report=False))
    bag, again = tmp_path / "flown" / "bag", tmp_path / "again"
    nodes.start(processes.recorder(tmp_path / "flown" / "scenario.yaml", again))
    playing = {"bag": str(bag), "rate": 2.0, "wait_for_listeners": 1}
    nodes.start(processes.NodeSpec("musls_sim", "player", playing))
    assert wait_until(lambda: not nodes.running("player"), 150.0)
    assert "Traceback" not in nodes.log("player")
    assert nodes.stop("recorder") == 0
    assert messages(again) == messages(bag)


def process_ids(word):
    """Processes with a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if word in text and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_flight_leaves_no_process(domain, tmp_path, number, code):
    out = tmp_path / f"flight_{number.name}"
    command = [
        "ros",
        "fly",
        "circle",
        "--set",
        "system.cables.links=7",
        "--no-report",
        "--out",
        str(out),
    ]
    flight = subprocess.Popen(
        [sys.executable, "-c", "import sys; from musls_bringup.cli import main; sys.exit(main())"]
        + command,
        start_new_session=True,
    )
    # musls, simulator, recorder, and the formation when all is recorded
    assert wait_until(lambda: len(process_ids(out.name)) == 4, 400.0)
    said = out / "logs" / "formation.log"
    # It has flown for a while: the recorder, which tells when there is something to keep, knows.
    assert wait_until(lambda: said.read_text().count("stage ") >= 4, 400.0)
    flight.send_signal(number)
    assert flight.wait(150.0) == code
    assert process_ids(out.name) == []
    summary = json.loads((out / "summary.json").read_text())
    assert summary["interrupted"] and summary["ended_by"] == number.name


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_minute_without_growth_or_loss(nodes, probe, air):
    statistics = air.with_name("statistics.json")
    nodes.start(processes.simulator(air, realtime=False, statistics_file=str(statistics)))
    nodes.start(processes.offboard(3))
    nodes.start(processes.formation(air, autostart=True))
    probe.wait_for_flight()

    def resident_mb(name):
        pages = Path(f"/proc/{nodes.pid(name)}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    names = ("embedded_sim", "offboard", "formation")
    assert probe.until(lambda: probe.time_s > 20.0, 300.0)
    early = {name: resident_mb(name) for name in names}
    assert probe.until(lambda: probe.time_s > 60.0, 600.0)
    growth = {name: resident_mb(name) - early[name] for name in names}
    assert max(growth.values()) < 1.5, growth
    assert nodes.stop("embedded_sim") == 0
    assert json.loads(statistics.read_text())["lost_answers"] == [0, 0, 0]


def test_flights_end_with_one_line_when_a_node_fails(domain, tmp_path, monkeypatch):
    scenario = find_scenario("hold", IN_AIR)
    bad = processes.offboard(3, heartbeat_s=9.0)
    monkeypatch.setattr(processes, "offboard", lambda n: bad)
    with pytest.raises(MuslsError, match=r"node offboard ended with code 2: .*heartbeat_s"):
        fly_through_graph(scenario, tmp_path / "out", FlyOptions(report=False))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["offboard", *(pytest.param(n, marks=pytest.mark.slow) for n in ("recorder", "embedded_sim"))],
)
def test_what_a_fault_ended_is_kept_with_the_fault_as_event(domain, tmp_path, monkeypatch, name):
    made, killed = [], []

    class Watched(processes.Graph):
        def __init__(self, logs):
            super().__init__(logs)
            made.append(self)

    def kill(sim_s, *_):
        # What a killed recorder still kept in memory for sorting, up to 10 s, is lost.
        if sim_s > (20.0 if name == "recorder" else 1.0) and not killed:
            killed.append(made[0].pid(name))
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(processes, "Graph", Watched)
    scenario, out = (
        find_scenario("hold", [*IN_AIR, "mission.stages.0.duration_s=300"]),
        tmp_path / "out",
    )
    why = f"node {name} was ended by SIGKILL"
    with pytest.raises(processes.NodeFailed, match=f"{why}.*; what was flown is kept in {out}"):
        fly_through_graph(scenario, out, FlyOptions(), kill)
    summary = json.loads((out / "summary.json").read_text())
    assert why in summary["failure"] and not summary["interrupted"]
    (fault,) = [event for event in summary["events"] if event["kind"] == "fault"]
    assert why in fault["what"]
    recording = read_recording(out)
    assert recording.bodies["load"].time_s[-1] > 0.5
    assert name == "recorder" or [e.what for e in recording.events if e.kind == "fault"]
    assert {f.name for f in out.iterdir()} == {"bag", "logs", "scenario.yaml", "summary.json"}
