"""Dockerfile and compose.yaml: every name in them exists in the workspace and fits the others.

Their syntax is a matter of hadolint and of the Compose specification's schema (.ci/run).
"""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.gazebo import files as gazebo
from musls_bringup.ros.parameters import node_parameters
from musls_sim.plants import gazebo as plants_gazebo

ROOT = Path(__file__).resolve().parents[3]
DOCKER = ROOT / "docker"
COMPOSE = DOCKER / "compose.yaml"
ON_THE_HOST = "musls.sh"
SCRIPTS = {path.name for path in DOCKER.glob("*.sh")} - {ON_THE_HOST}
INSTALLED_SCRIPTS = "/opt/musls/bin/"
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def settings():
    """Variables of docker/.env."""
    lines = (DOCKER / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def interpolated(text, values):
    """compose.yaml's text with its variables; one that has to have a value and has none fails."""

    def value(match):
        name, rule = match[1], match[2] or ""
        if rule.startswith("-"):
            return values.get(name, rule[1:])
        assert values.get(name), f"{name} has no value in docker/.env"
        return values[name]

    return re.sub(r"\$\{(\w+)([:?-][^}]*)?\}", value, text)


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load(interpolated(COMPOSE.read_text(), settings()))["services"]


def words(service):
    command = service.get("command", [])
    return command.split() if isinstance(command, str) else command


def health_check(service):
    """Program and arguments, without the word CMD; nothing if there is none."""
    return service.get("healthcheck", {"test": ["CMD"]})["test"][1:]


def instructions(name):
    return re.findall(rf"^{name} (.*)$", DOCKERFILE, re.M)


def test_docker_compose_reads_it():
    def compose(*arguments):
        command = ["docker", "compose", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    if shutil.which("docker") is None or compose("version").returncode:
        pytest.skip("there is no docker compose here")
    done = compose("-f", str(COMPOSE), "--profile", "*", "config")
    assert done.returncode == 0, done.stderr


def test_an_unset_variable_is_seen():
    with pytest.raises(AssertionError, match="PX4_VERSION"):
        interpolated(COMPOSE.read_text(), settings() | {"PX4_VERSION": ""})


def test_every_setting_is_used():
    text = COMPOSE.read_text()
    assert not [name for name in settings() if f"${{{name}" not in text]


def test_the_version_stands_in_one_place():
    """Of what was flown PX4 has no image, so the newest is taken."""
    assert settings()["PX4_VERSION"] == "latest"
    for path in (ROOT / "Dockerfile", *DOCKER.glob("*.yaml"), *DOCKER.glob("*.sh")):
        assert not re.search(r"v1\.\d+\.\d+|:latest", path.read_text()), path


def test_one_service_builds_the_image_and_the_others_name_it(services):
    """Compose builds what has `build` side by side, and several builds of one tag fail."""
    builder = services["simulation"]
    assert set(builder["build"]["args"]) == {t.split("=")[0] for t in instructions("ARG")}
    assert (DOCKER / builder["build"]["context"] / "Dockerfile").is_file()
    for name in set(services) - {"simulation"}:
        assert "build" not in services[name] and services[name]["pull_policy"] == "never"
        assert services[name]["image"] == builder["image"]


def test_what_the_dockerfile_copies_exists_and_is_not_ignored():
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore
    for line in instructions("COPY"):
        *sources, _ = [word for word in line.split() if not word.startswith("--")]
        for source in sources:
            assert list(ROOT.glob(source)), source
            assert f"!{source.removeprefix('./')}" in ignore


def test_all_services_share_network_and_memory(services):
    assert services["simulation"]["ipc"] == "shareable"
    for name in set(services) - {"simulation", "analysis", "lockstep"}:
        assert services[name]["network_mode"] == "service:simulation", name
        assert services[name]["ipc"] == "service:simulation", name


def test_compiled_code_is_kept_for_all_flights(services):
    (folder,) = re.findall(r"NUMBA_CACHE_DIR=(\S+)", DOCKERFILE)
    kept = {name for name, s in services.items() if folder in [v["target"] for v in s["volumes"]]}
    assert kept == set(services) - {"gui"}


def test_nothing_runs_as_root(services):
    assert instructions("USER") == ["1000:1000"]
    owner = "{MUSLS_UID}:{MUSLS_GID}".format(**settings())
    assert int(settings()["MUSLS_UID"]) > 0
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["user"] == owner, name
        assert not {"privileged", "cap_add", "devices"} & set(service), name


def test_dependencies_exist_and_can_become_healthy(services):
    for name, service in services.items():
        for other, rule in service.get("depends_on", {}).items():
            assert other in services, f"{name} depends on {other}"
            if rule["condition"] == "service_healthy":
                assert health_check(services[other]), f"{name} waits for {other}'s health"


def test_scripts_that_are_named_exist(services):
    named = re.findall(r'ENTRYPOINT \["([^"]+)"', DOCKERFILE)
    for service in services.values():
        named += words(service)[:1] + service.get("entrypoint", [])[:1] + health_check(service)[:1]
    named = {path for path in named if path.startswith(INSTALLED_SCRIPTS)}
    assert named == {INSTALLED_SCRIPTS + name for name in SCRIPTS}
    assert all(os.access(DOCKER / name, os.X_OK) for name in SCRIPTS)


def test_nodes_exist_and_have_their_parameters(services):
    nodes = [words(s)[1:3] for s in services.values() if words(s)[:1] == ["node"]]
    for package, node in nodes:
        assert "def main(" in (ROOT / f"src/{package}/{package}/nodes/{node}.py").read_text()
    given = node_parameters(find_scenario("circle", []), Path("/runs/x"))
    assert {f"/{node}" for _, node in nodes} == set(given)


def test_modules_that_scripts_run_exist():
    modules = re.findall(r"python -m (\S+)", (DOCKER / "gazebo.sh").read_text())
    modules += re.findall(r"from (musls\S+) import main", (DOCKER / "entry.sh").read_text())
    assert len(modules) == 2
    assert all(find_spec(module) for module in modules)


def test_the_flight_in_lockstep_is_a_flight_in_gazebo_with_px4(services):
    """The service's words are options of `musls fly` that ask for the engine in lockstep."""
    service = services["lockstep"]
    script, musls, *given = service["entrypoint"] + words(service)
    assert (script, musls) == (f"{INSTALLED_SCRIPTS}entry.sh", "musls")
    assert given[:3] == ["fly", "--autopilot", "px4"] and given[3] == "--set"
    scenario, overrides = given[5], [given[4], "autopilot.kind=px4"]
    assert find_scenario(scenario, overrides).physics.engine == "gazebo_px4"
    imported = re.findall(r'"gz\.(\w+\d)\b', Path(plants_gazebo.__file__).read_text())
    assert imported and set(re.findall(r"python3-gz-(\w+)", DOCKERFILE)) == set(imported)


def test_health_checks_know_their_service(services):
    known = set(re.findall(r"^(\w+)\)", (DOCKER / "healthy.sh").read_text(), re.M))
    assert {health_check(s)[1] for s in services.values() if health_check(s)} == known


def test_the_worlds_name_is_the_same_everywhere(services):
    assert words(services["px4"])[-1] == gazebo.WORLD
    assert health_check(services["simulation"])[-1] == gazebo.WORLD


def test_the_agents_port_is_the_one_that_is_watched(services):
    assert words(services["agent"])[-1] == health_check(services["agent"])[-1]


def test_services_read_the_files_that_are_written(services):
    folder = "/runs/.flight"
    commands = " ".join(word for s in services.values() for word in words(s))
    read = set(re.findall(rf"{folder}/([\w.]+)", commands))
    for name in SCRIPTS:
        read |= set(re.findall(r"\$flight/([\w]+\.\w+)", (DOCKER / name).read_text()))
    written = gazebo.gazebo_files(find_scenario("circle", []), Path(folder))
    assert read == set(written) - {"scenario.yaml"}  # named in nodes.yaml
    assert f"{folder}/scenario.yaml" in written["nodes.yaml"]


def test_the_default_flight_can_be_prepared(services):
    script, flight, scenario, *options = words(services["simulation"])
    assert (script, flight) == (f"{INSTALLED_SCRIPTS}gazebo.sh", f"/runs/{settings()['FLIGHT']}")
    assert options == settings()["SCENARIO_OPTIONS"].split()
    assert gazebo.gazebo_files(find_scenario(scenario, []), Path(flight))
