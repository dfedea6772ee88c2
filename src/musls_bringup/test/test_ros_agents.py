"""One node a drone: agents on the ROS graph, with stand-ins of PX4, and what kills one of them."""

import json
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from ros_probe import needs_ros

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import main
from musls_bringup.ros import processes
from musls_bringup.ros.launching import AGENT_ARGUMENTS, ARGUMENTS, agent_nodes, launched_nodes
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml

NETWORK = "network: {links: all}"
CONSENSUS = f"controller={{kind: agents, agent: consensus, knows: [load], {NETWORK}}}"


@pytest.fixture
def team(tmp_path):
    """File of a scenario that hangs in the air, flown by agents."""
    file = tmp_path / "team.yaml"
    changes = [CONSENSUS, "cable_model=massless", "start=air", "mission.stages.0.duration_s=3000"]
    file.write_text(to_yaml(find_scenario("hold", changes)))
    return file


def start(nodes, file, **parameters):
    """Simulator, three agents with their offboard nodes, and the formation that gives the task."""
    nodes.start(processes.simulator(file, realtime=True))
    for drone in (1, 2, 3):
        agent, offboard = processes.agent(file, drone, **parameters)
        nodes.start(agent, name=f"agent_{drone}")
        nodes.start(offboard, name=f"offboard_{drone}")
    nodes.start(processes.formation(file, autostart=True, agents=True))


def fly_by_agents(nodes, probe):
    """Until the agents have flown for 2 s."""
    probe.wait_for_flight()
    assert probe.until(lambda: probe.stage == "hold"), nodes.log("formation")
    begun_s = probe.time_s
    assert probe.until(lambda: probe.time_s > begun_s + 2.0), nodes.log("agent_1")
    assert "holds its place" not in nodes.log("agent_1") and probe.phases == {"flying"}


def test_launch_starts_one_agent_a_drone_in_its_namespace(team):
    given = {name: default for name, (default, _) in ARGUMENTS.items()}
    nodes = launched_nodes(given | {"scenario": str(team), "namespace": "hall1"})
    agents = [node for node in nodes if node.executable == "agent"]
    assert [node.namespace for node in agents] == [f"/hall1/drone_{k}" for k in (1, 2, 3)]
    offboards = [node for node in nodes if node.executable == "offboard"]
    assert [node.parameters["drones"] for node in offboards] == [[1], [2], [3]]
    (formation,) = [node for node in nodes if node.executable == "formation"]
    assert formation.parameters["agents"] is True
    given = {name: default for name, (default, _) in AGENT_ARGUMENTS.items()}
    alone = agent_nodes(given | {"scenario": str(team), "drone": "2"})
    assert [node.executable for node in alone] == ["agent", "offboard"]
    assert alone[0].parameters["drone"] == 2


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"drone": "7"}, "drone:=7: must be a number from 1 to 3"),
        ({"scenario": "hold"}, "controller.kind = formation, must be agents"),
    ],
)
def test_what_cannot_be_launched_is_said_in_one_line(team, change, text):
    given = {name: default for name, (default, _) in AGENT_ARGUMENTS.items()}
    with pytest.raises(ConfigError, match=text):
        agent_nodes(given | {"scenario": str(team)} | change)


@needs_ros()
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_three_agents_hold_the_load_and_go_on_when_the_formation_dies(nodes, probe, team):
    """Nobody gives a task any more: the load stays; then all land, and set it down together."""
    start(nodes, team, task_s=8.0)
    fly_by_agents(nodes, probe)
    before = probe.positions()
    nodes.stop("formation", signal.SIGKILL)
    begun_s = probe.time_s
    assert probe.until(lambda: probe.time_s > begun_s + 4.0)
    assert np.abs(probe.positions() - before).max() < 0.3
    assert probe.phases == {"flying"}
    assert probe.until(lambda: "no task for 8 s" in nodes.log("agent_2")), nodes.log("agent_2")
    assert probe.until(lambda: probe.positions()[0, 2] < 0.3), probe.positions()
    assert probe.positions()[1:, 2].min() > -0.1


@needs_ros()
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_command_flies_agents_from_ground_to_ground(domain, tmp_path, monkeypatch):
    """Formation, agents, formation: `musls ros fly` gives what `musls fly` does, but for delays."""
    monkeypatch.chdir(tmp_path)
    changes = [CONSENSUS, "cable_model=massless", "mission.stages.0.duration_s=6"]
    Path("team.yaml").write_text(to_yaml(find_scenario("hold", changes)))
    assert main(["ros", "fly", "team.yaml", "--out", "graph"]) == 0
    assert main(["fly", "team.yaml", "--out", "process"]) == 0
    errors_m = [
        json.loads(Path(out, "summary.json").read_text())["errors"]["load"]["hold"]
        ["translational_error_m"] for out in ("graph", "process")
    ]  # fmt: skip
    assert errors_m[0] < errors_m[1] + 0.05


@needs_ros()
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("victim", ["agent_2", "offboard_2"])
def test_nobody_falls_when_a_node_of_one_drone_dies(nodes, probe, team, victim):
    """The others hold; a drone without its agent holds by its offboard node, or its PX4 lands."""
    start(nodes, team)
    fly_by_agents(nodes, probe)
    nodes.stop(victim, signal.SIGKILL)
    begun_s, heights = probe.time_s, []
    while probe.time_s < begun_s + 6.0:
        assert probe.until(lambda now=probe.time_s: probe.time_s > now + 0.2)
        heights.append(probe.positions()[:, 2])
    sinking_m_s = np.array([(a - b) / 0.2 for a, b in pairwise(heights)])
    assert sinking_m_s.max() < 2.5  # the others go down with it for a moment; a fall passes 2.9 m/s
    assert all(nodes.running(f"agent_{k}") for k in (1, 2, 3) if f"agent_{k}" != victim)
