"""The embedded simulator with PX4s on the graph: stand-ins for PX4 and agent, and real ones."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from px4_helpers import children_of, install_agent, install_peer
from ros_probe import needs_ros

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.flight.fly import FlyOptions
from musls_bringup.ros import processes
from musls_bringup.ros.graph_flight import check_px4, fly_through_graph
from musls_description.config.errors import MuslsError
from musls_description.config.schema import to_yaml
from musls_sim.px4.install import Px4Error
from musls_sim.px4.process import VARIABLE

pytestmark = [needs_ros(), pytest.mark.timeout(1200)]

QUICK = ["autopilot.kind=px4", "system.cables.links=3"]
HOP = [
    "autopilot.kind=px4",
    "mission.stages=[{kind: hold, duration_s: 4, position_m: [0, 0, 0.5]}]",
    "mission.form_up_s=3",
]

try:
    check_px4(find_scenario("solo", QUICK))
    MISSING = ""
except Px4Error as error:
    MISSING = str(error)


@pytest.fixture
def standins(tmp_path, monkeypatch):
    """PX4 and agent are stand-ins for all nodes of the test."""
    monkeypatch.setenv("PX4_BIN", str(install_peer(tmp_path / "px4")))
    monkeypatch.setenv(VARIABLE, str(install_agent(tmp_path)))


@pytest.fixture
def solo(tmp_path):
    """File of a scenario with one real PX4."""
    file = tmp_path / "solo.yaml"
    file.write_text(to_yaml(find_scenario("solo", QUICK)))
    return file


def gone(pid):
    end = time.monotonic() + 10.0
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_time_runs_drones_stand_and_everything_ends(standins, nodes, probe, solo, tmp_path):
    from geometry_msgs.msg import PoseStamped
    from px4_msgs.msg import VehicleStatus
    from rosgraph_msgs.msg import Clock

    from musls_control.px4.offboard import px4_topic

    nodes.start(processes.simulator(solo, realtime=False))
    # Real PX4's client would publish it, through the agent.
    topic = px4_topic(1, "out", VehicleStatus)
    status = probe.node.create_publisher(VehicleStatus, topic, 10)
    probe.listen(Clock, "/clock")
    probe.listen(PoseStamped, "/drone_1/pose")
    assert probe.until(lambda: probe.count.get("/clock", 0) > 20 and "/drone_1/pose" in probe.last)
    first = probe.last["/drone_1/pose"]
    begin = probe.last["/clock"].clock.sec
    assert probe.until(status.get_subscription_count)
    end = time.monotonic() + 25.0  # longer than PX4's status may be missing

    def over():
        status.publish(VehicleStatus(arming_state=1))
        return time.monotonic() > end

    assert probe.until(over)
    assert nodes.running("embedded_sim"), nodes.last_line("embedded_sim")
    assert probe.last["/clock"].clock.sec > begin + 10
    places = [np.array([p.x, p.y, p.z]) for p in (first.pose.position, last_place(probe))]
    assert np.abs(places[1] - places[0]).max() < 0.01
    children = children_of(nodes.pid("embedded_sim"))
    assert len(children) == 2  # PX4 and agent
    assert nodes.stop("embedded_sim") == 0
    assert all(gone(pid) for pid in children)
    assert "dds px4_1" in (tmp_path / "px4" / "drone_1.log").read_text()


def last_place(probe):
    return probe.last["/drone_1/pose"].pose.position


@pytest.mark.slow
def test_a_px4_that_stays_off_the_graph_is_named(standins, nodes, probe, solo):
    """The stand-in has no DDS client."""
    nodes.start(processes.simulator(solo, realtime=True))
    assert probe.until(lambda: not nodes.running("embedded_sim"), 200.0)
    line = nodes.last_line("embedded_sim")
    assert line.startswith("drone_1: PX4 runs, but nothing comes on /px4_1/fmu/out/vehicle_status")
    assert nodes.stop("embedded_sim") == 2


def test_without_an_agent_nothing_is_started(standins, monkeypatch, tmp_path, domain):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "missing"))
    with pytest.raises(MuslsError, match=rf"{VARIABLE} = .*missing: no such program; build"):
        fly_through_graph(find_scenario("solo", QUICK), tmp_path / "out", FlyOptions())
    assert not (tmp_path / "out").exists()


@pytest.mark.px4
@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=MISSING or "-")
def test_real_px4s_lift_and_land_the_load_through_the_graph(tmp_path, domain):
    from musls_analysis.recordings.readers import read_recording

    out = tmp_path / "out"
    scenario = find_scenario("circle", HOP)
    summary = fly_through_graph(scenario, out, FlyOptions(report=False))
    assert summary["landed"] and not summary["interrupted"]
    assert summary == json.loads((out / "summary.json").read_text())
    load = read_recording(out).bodies["load"].position_enu_m
    assert load[:, 2].max() > load[0, 2] + 0.25
    assert abs(load[-1, 2] - load[0, 2]) < 0.1
    assert {f.name for f in (out / "px4").iterdir()} >= {"agent.log", "drone_1.log", "drone_3.log"}
