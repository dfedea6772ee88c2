"""Shared fixtures: ROS domains, nodes and a listener; a tiny flight and its result."""

import shutil
import threading
from pathlib import Path

import pytest
from fly_helpers import FLY, TINY
from ros_probe import FlightProbe, own_domain

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import main
from musls_bringup.flight import progress
from musls_bringup.ros import processes
from musls_description.config.schema import to_yaml

QUICK = ["system.cables.links=3"]


@pytest.fixture
def domain():
    """A ROS domain that nobody else uses, in the environment."""
    with own_domain() as number:
        yield number


@pytest.fixture
def nodes(tmp_path, domain):
    """Processes of nodes."""
    with processes.Graph(tmp_path / "logs") as running:
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


@pytest.fixture(scope="module")
def older_result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("older")
    (folder / "tiny.yaml").write_text(TINY)
    options = ["--out", str(folder / "old"), "--seed", "1"]
    assert main([FLY[0], str(folder / "tiny.yaml"), *FLY[2:], *options]) == 0
    (folder / "old" / "notes.txt").write_text("keep")
    return folder / "old"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the tiny scenario, in which the user is."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "tiny.yaml").write_text(TINY)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def result(here, older_result):
    """A result of a flight with seed 1, where the user is."""
    return Path(shutil.copytree(older_result, here / "old"))
