"""What the ROS tests share: a domain, processes of nodes and a node that listens, one per test."""

import threading

import pytest
from ros_probe import FlightProbe, own_domain

from musls_bringup.cli import progress
from musls_bringup.fly import find_scenario
from musls_bringup.ros import graph
from musls_description.schema import to_yaml

QUICK = ["system.cables.links=3"]


@pytest.fixture
def domain():
    """A ROS domain that nobody else uses, in the environment."""
    with own_domain() as number:
        yield number


@pytest.fixture
def nodes(tmp_path, domain):
    """Processes of nodes."""
    with graph.Graph(tmp_path / "logs") as running:
        yield running


@pytest.fixture
def probe(domain):
    """A node of the test itself."""
    listener = FlightProbe()
    yield listener
    listener.close()


@pytest.fixture
def air(tmp_path):
    """File of a scenario that starts hanging in the air and stays there."""
    file = tmp_path / "air.yaml"
    scenario = find_scenario("hold", [*QUICK, "mission.stages.0.duration_s=3000"])
    file.write_text(to_yaml(scenario))
    return file


@pytest.fixture
def ground(tmp_path):
    """File of a scenario that starts on the ground."""
    file = tmp_path / "ground.yaml"
    file.write_text(to_yaml(find_scenario("circle", ["system.cables.links=7"])))
    return file


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """No lines about how far work is, however slow the machine is; a test may ask for them."""
    monkeypatch.setattr(progress, "LINE_EVERY_S", threading.TIMEOUT_MAX)
