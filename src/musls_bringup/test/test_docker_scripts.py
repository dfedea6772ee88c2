"""The scripts of the Docker image, with stand-ins for PX4, Gazebo and the image's entry point.

A stand-in only says what it was called with and lives on; what is tested are the scripts.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from musls_bringup.gazebo import files as gazebo
from musls_bringup.gazebo.__main__ import main as write_files

DOCKER = Path(__file__).resolve().parents[3] / "docker"

PX4 = """\
#!/bin/sh
env | grep ^PX4_ | sort
echo "arguments: $*"
echo "INFO [commander] Ready for takeoff!"
[ "$3" = "$DIES" ] && exit 7
exec sleep 60
"""
GZ = """\
#!/bin/sh
case $1 in
sim) echo "gz $*"; ls "$(dirname "$4")" ;;
service) echo "$SAYS" ;;
esac
"""
ENTRY = f"""\
#!/bin/sh
[ "$1" = python ] && shift && exec {sys.executable} "$@"
"""


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def run(*command, **variables):
    """Exit code, standard output and standard error."""
    done = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **variables},
    )
    return done.returncode, done.stdout, done.stderr


def healthy(service, subject, **variables):
    return run(DOCKER / "healthy.sh", service, subject, **variables)[0] == 0


def wait_until(condition, limit_s=10.0):
    give_up = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def alive_in_session(session):
    """Ids of the processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, sid = stat.read_text().rsplit(")", 1)[1].split()[:4]
            if int(sid) == session and state != "Z":
                found.append(stat.parent.name)
    return found


@pytest.fixture
def flight(tmp_path):
    """Folder of a flight."""
    out = tmp_path / "flight"
    assert write_files(["circle", "--out", str(out)]) == 0
    return out


@pytest.fixture
def px4_service(flight, tmp_path):
    """Starts px4.sh on the flight; whatever happens, none of its PX4s outlives it."""
    px4 = program(tmp_path / "px4" / "bin" / "px4", PX4)
    started = []

    def start(dies=""):
        process = subprocess.Popen(
            [str(DOCKER / "px4.sh"), str(flight), gazebo.WORLD],
            env={**os.environ, "PX4_PREFIX": str(px4.parents[1]), "DIES": dies},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=20)
        wait_until(lambda sid=process.pid: not alive_in_session(sid))


def test_px4s_are_started_with_model_world_and_parameters(px4_service, flight):
    process = px4_service()
    wait_until(lambda: healthy("px4", flight))
    process.terminate()
    assert process.wait(10) == 0
    lines = (flight / "px4.list").read_text().splitlines()
    assert len(lines) == 3
    for line in lines:
        instance, model, *parameters = line.split()
        log = (flight / "px4" / f"{model}.log").read_text().splitlines()
        assert f"arguments: -d -i {instance}" in log
        expected = [f"PX4_GZ_MODEL_NAME={model}", f"PX4_GZ_WORLD={gazebo.WORLD}"]
        expected += ["PX4_GZ_STANDALONE=1", "PX4_SYS_AUTOSTART=4001"]
        assert {*expected, *(f"PX4_PARAM_{p}" for p in parameters)} <= set(log)


def test_a_parameter_that_px4_does_not_know_is_named_before_any_starts(flight, tmp_path):
    """Its parameters are text in the program."""
    px4 = program(tmp_path / "px4" / "bin" / "px4", PX4 + "exit\n")
    with px4.open("ab") as file:
        file.write(b"\0MPC_THR_HOVER\0HTE_THR_RANGE\0UXRCE_DDS_SYNCT\0")
    (flight / "px4.list").write_text("1 x500_1 MPC_THR_HOVER=0.7 NO_SUCH_THING=3\n")
    command = (DOCKER / "px4.sh", flight, gazebo.WORLD)
    code, _, error = run(*command, PX4_PREFIX=str(px4.parents[1]))
    assert code == 2 and "autopilot.parameters.NO_SUCH_THING: this PX4 (" in error
    assert list((flight / "px4").iterdir()) == []


COMPOSE = """\
#!/bin/sh
echo "$MUSLS_UID:$MUSLS_GID $MUSLS_RUNS $*"
"""
XAUTH = """\
#!/bin/sh
[ "$1" = nlist ] && echo "0100 0004 7f000001 0001 30 0012 4d49 0010 $2"
[ "$1" = -f ] && cat > "$2"
exit 0
"""


def test_the_command_of_the_host_says_who_owns_results_and_lends_the_cookie(tmp_path):
    program(tmp_path / "bin" / "docker", COMPOSE)
    program(tmp_path / "bin" / "xauth", XAUTH)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    runs = tmp_path / "my runs"
    given = {"PATH": path, "MUSLS_RUNS": str(runs), "DISPLAY": ":7"}
    owner = {} if os.getuid() else {"MUSLS_UID": "1234", "MUSLS_GID": "99"}
    code, text, _ = run(DOCKER / "musls.sh", "up", "--build", **given, **owner)
    who = "1234:99" if owner else f"{os.getuid()}:{os.getgid()}"
    assert code == 0
    assert text == f"{who} {runs} compose -f {DOCKER}/compose.yaml up --build\n"
    cookie = runs / ".xauth"
    assert cookie.read_text().startswith("ffff ") and cookie.stat().st_mode & 0o077 == 0
    if owner:
        code, _, error = run(DOCKER / "musls.sh", "up", **given)
        assert code == 2 and "MUSLS_UID" in error


def test_one_px4_that_ends_ends_all(px4_service):
    process = px4_service(dies="1")
    assert process.wait(10) == 1
    assert "ended with code 7" in process.stdout.read()


def test_px4_is_not_healthy_before_all_are_ready(flight):
    assert not healthy("px4", flight)
    logs = flight / "px4"
    logs.mkdir()
    for name in ("x500_1", "x500_2", "x500_3"):
        assert not healthy("px4", flight)
        (logs / f"{name}.log").write_text("INFO [commander] Ready for takeoff!\n")
    assert healthy("px4", flight)
    (logs / "x500_2.log").write_text("WARN [health] Preflight Fail: no GPS\n")
    assert not healthy("px4", flight)


def test_agents_health_is_its_bound_port():
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as px4,
    ):
        agent.bind(("127.0.0.1", 0))
        port = agent.getsockname()[1]
        assert healthy("agent", str(port))
        px4.connect(("127.0.0.1", port))
        agent.close()
        assert not healthy("agent", str(port))  # a client alone is no agent


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Service providers [Address, Request Message Type]:\n  tcp://172.18.0.2:41235", True),
        ("No service providers on service [/world/musls/scene/info]", False),
        ("", False),
    ],
)
def test_gazebos_health_is_its_answer(answer, expected, tmp_path):
    gz = program(tmp_path / "gz", GZ)
    path = f"{gz.parent}{os.pathsep}{os.environ['PATH']}"
    assert healthy("gazebo", gazebo.WORLD, PATH=path, SAYS=answer) is expected


def test_an_unknown_service_is_said():
    code, _, text = run(DOCKER / "healthy.sh", "bridge", "x")
    assert code == 2 and "unknown service bridge" in text


@pytest.fixture
def gazebo_script(tmp_path):
    """gazebo.sh beside an entry point that needs no ROS, and a stand-in for gz on PATH."""
    script = Path(shutil.copy(DOCKER / "gazebo.sh", tmp_path))
    program(tmp_path / "entry.sh", ENTRY)
    program(tmp_path / "bin" / "gz", GZ)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return lambda *arguments: run(script, *arguments, PATH=path)


def test_gazebo_runs_the_prepared_world(gazebo_script, tmp_path):
    flight = tmp_path / "flight"
    code, text, _ = gazebo_script(flight, "circle", "--set", "system.cables.links=5")
    assert code == 0
    said, first, *files = text.splitlines()
    assert said == f"the flight is recorded in {flight}"
    assert first == f"gz sim -s -r {flight}/world.sdf"
    assert {"world.sdf", "bridge.yaml", "nodes.yaml", "px4.list"} <= set(files)


@pytest.mark.slow
def test_a_second_flight_of_a_name_gets_a_folder_of_its_own(gazebo_script, tmp_path):
    """`up` twice, without cleaning: the other services follow the link to the newest."""
    for folder in ("flight", "flight_2"):
        assert gazebo_script(tmp_path / "flight", "solo")[0] == 0
        assert (tmp_path / ".flight").resolve() == (tmp_path / folder).resolve()
        bag = (tmp_path / ".flight" / "nodes.yaml").read_text()
        assert f"{tmp_path / folder}/bag" in bag


def test_gazebo_does_not_run_a_bad_scenario(gazebo_script, tmp_path):
    code, text, error = gazebo_script(tmp_path / "flight", "nonsense")
    assert (code, text) == (2, "")
    assert error.startswith("musls: error: unknown scenario 'nonsense'")
    assert not (tmp_path / "flight").exists()
