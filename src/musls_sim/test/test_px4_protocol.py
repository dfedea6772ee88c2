"""The simulator's side of PX4's links, against a scripted peer over real sockets and processes."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from flight_helpers import Look
from px4_helpers import HURRY, PEER, install_peer, px4_flight

from musls_description.config.errors import ConfigError
from musls_sim.px4 import process as instances
from musls_sim.px4 import sitl
from musls_sim.px4 import sitl as start_up
from musls_sim.px4.install import Px4Error, find_px4


@pytest.fixture
def peer(tmp_path, monkeypatch):
    """The stand-in installation in PX4_BIN; gives a function that sets how it misbehaves."""
    monkeypatch.setenv("PX4_BIN", str(install_peer(tmp_path / "px4")))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    # The peer finds its state sooner than PX4 does.
    monkeypatch.setattr(start_up, "ALIGN_S", 1.5)
    monkeypatch.setattr(start_up, "OFFSET_S", 0.5)
    return lambda behaviour: monkeypatch.setenv("MUSLS_PEER", behaviour)


def peers_running():
    """Process ids of all scripted peers on this machine that belong to this test process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if str(PEER).encode() in words and parent == os.getpid():
            found.append(int(folder.name))
    return found


def wait_until(true):
    deadline = time.monotonic() + 20.0
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def free_instance():
    (instance,) = instances.claim_instances(1)
    instance.close()
    return instance.number


def left_folders():
    return list(Path(tempfile.gettempdir()).glob("musls-px4-*"))


@pytest.mark.slow
def test_flies_as_the_built_in_autopilot_does_and_leaves_nothing(tmp_path, peer):
    """The peer flies the built-in cascade: what is between them is not to be seen in the path."""

    def path(run):
        places = []
        run.observe_with(Look(lambda t, flown: places.append(flown.state.position_enu_m[1].copy())))
        result = run.run()
        assert result.landed and not result.interrupted
        return np.array(places)

    (tmp_path / "builtin").mkdir()
    real = px4_flight(tmp_path, "solo", *HURRY)
    through_links = path(real)
    direct = path(px4_flight(tmp_path / "builtin", "solo", *HURRY, "autopilot.kind=builtin"))
    assert direct[:, 2].max() > 2.0
    in_air = slice(500, int(real.components.plan.duration_s / 0.004))
    apart = np.linalg.norm(through_links[in_air] - direct[in_air], axis=1)
    # Its local frame begins 0.24 m above ours, and its speed is known by satellite only.
    assert np.sqrt(np.mean(apart**2)) < 0.1
    autopilot = real.components.autopilot
    assert autopilot.landed.all() and (autopilot.takeoff_state == 1).all()
    assert not peers_running() and not left_folders()
    assert (tmp_path / "logs" / "drone_1.log").is_file()


@pytest.mark.slow
def test_two_drones_lift_a_load_together(tmp_path, peer):
    run = px4_flight(tmp_path, "duo")
    lifted = [0.0]

    def watch(time_s, session):
        lifted[0] = max(lifted[0], session.state.position_enu_m[0, 2])

    run.observe_with(Look(watch))
    assert run.run().landed
    assert lifted[0] > 0.25


def test_a_px4_whose_link_is_lost_is_sent_no_setpoints(tmp_path, peer):
    with px4_flight(tmp_path, "solo", *HURRY) as session:
        session.advance(50)
        (vehicle,) = session.components.autopilot._vehicles
        sent = []
        send = vehicle.commands.send_setpoint
        vehicle.commands.send_setpoint = lambda *given: (sent.append(session.tick), send(*given))
        session.apply({"kind": "link_lost", "drone": 1, "duration_s": 0.4})
        session.advance(250)
    begin, end = session.events.happened
    assert (begin.what, end.what) == ("drone_1: no set-points", "over")
    assert sent and min(sent) >= 150


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("exit", ["ended (exit code 7)", "no airframe for you"]),
        ("die:100", ["closed the simulator link (exit code 3)", "stack smashed"]),
        pytest.param(
            *("die:1200", ["closed the simulator link (exit code 3)", "stack smashed"]),
            marks=pytest.mark.slow,
        ),
        ("refuse", ["refused to arm", "Preflight Fail: Compass needs calibration"]),
        ("disarm:1200", ["disarmed at", "Critical battery, shutting down"]),
        pytest.param(
            *("hold:1200", ["left offboard mode at", "Failsafe activated"]), marks=pytest.mark.slow
        ),
        ("hang:600", ["stopped answering: nothing for 0.3 s"]),
        ("deaf", ["did not connect to the simulator within 0.3 s"]),
        ("lost", ["did not find its position within 0.5 s"]),
    ],
)
def test_trouble_ends_the_flight_in_its_own_words(tmp_path, peer, monkeypatch, behaviour, words):
    monkeypatch.setattr(start_up, "STEP_LIMIT_S", 1.0)
    monkeypatch.setattr(start_up.Px4Sitl, "boot_limit_s", 0.5 if behaviour == "lost" else 60.0)
    monkeypatch.setattr(sitl, "CONNECT_LIMIT_S", 0.3 if behaviour == "deaf" else 30.0)
    peer(behaviour)
    run = px4_flight(tmp_path)
    run.components.autopilot._answer_limit_s = 0.3 if "hang" in behaviour else 30.0
    with pytest.raises(Px4Error) as caught:
        run.run()
    message = str(caught.value)
    for part in ("drone_1: PX4 instance ", *words, str(tmp_path / "logs" / "drone_1.log")):
        assert part in message
    assert "\n" not in message
    assert (tmp_path / "logs" / "drone_1.log").is_file()
    assert not peers_running() and not left_folders()


def test_unknown_parameter_is_named(tmp_path, peer):
    run = px4_flight(tmp_path, "solo", "autopilot.parameters.NO_SUCH_THING=3")
    with pytest.raises(ConfigError, match=r"NO_SUCH_THING: PX4 .* has no such"):
        run.run()


def test_an_interrupt_keeps_what_was_flown_and_ends_everything(tmp_path, peer):
    run = px4_flight(tmp_path)

    def interrupt(time_s, session):
        if time_s > 1.0:
            raise KeyboardInterrupt

    run.observe_with(Look(interrupt))
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert not peers_running()


def test_px4_dies_with_its_simulator(tmp_path):
    """After SIGKILL nobody can clean up."""
    install_peer(tmp_path / "px4")
    code = (
        "import sys, time; from pathlib import Path;"
        "from musls_sim.px4.install import Firmware;"
        "from musls_sim.px4.process import Px4Process;"
        "root = Path(sys.argv[1]);"
        "Px4Process(Firmware(root / 'px4/bin/px4'), 1, root, root / 'log');"
        "print('started', flush=True); time.sleep(60)"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "MUSLS_PEER": "deaf"},
    )
    assert run.stdout.readline() == b"started\n"
    (child,) = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    wait_until(lambda: str(PEER).encode() in Path(f"/proc/{child}/cmdline").read_bytes())
    run.kill()
    run.communicate(timeout=20)
    wait_until(lambda: not Path(f"/proc/{child}").exists())


def test_runs_side_by_side_take_different_instances():
    first = instances.claim_instances(3)
    second = instances.claim_instances(2)
    try:
        numbers = [i.number for i in first + second]
        assert len(set(numbers)) == 5 and min(numbers) >= 1
        assert [i.listener.getsockname() for i in first] == [
            ("127.0.0.1", 4560 + i.number) for i in first
        ]
        assert all(i.api.getsockname()[0] == "127.0.0.1" for i in first)
    finally:
        for instance in first + second:
            instance.close()


@pytest.mark.parametrize(
    ("kind", "address", "base"),
    [
        (socket.SOCK_STREAM, "127.0.0.1", instances.HIL_PORT),
        (socket.SOCK_DGRAM, "127.0.0.1", instances.API_PORT),
        (socket.SOCK_DGRAM, "0.0.0.0", instances.PX4_API_PORT),
        (socket.SOCK_DGRAM, "0.0.0.0", instances.PX4_GCS_PORT),
    ],
)
def test_instances_whose_ports_are_in_use_are_passed_over(kind, address, base):
    number = free_instance()
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, kind == socket.SOCK_STREAM)
        taken.bind((address, base + number))
        if kind == socket.SOCK_STREAM:
            taken.listen(1)
        assert free_instance() != number


def test_an_instance_that_runs_elsewhere_is_passed_over(monkeypatch, tmp_path):
    """A PX4 that was started by hand, for another simulator."""
    monkeypatch.setattr(instances, "LOCK_FILE", str(tmp_path / "lock-{}"))
    number = free_instance()
    code = (
        "import fcntl, sys; lock = open(sys.argv[1], 'w'); fcntl.lockf(lock, fcntl.LOCK_EX);"
        "print('locked', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(tmp_path / f"lock-{number}")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"locked\n"
        assert free_instance() != number
        holder.stdin.close()
    assert free_instance() == number  # a lock file alone, of an ended PX4, is in nobody's way


def test_too_few_free_instances(monkeypatch):
    monkeypatch.setattr(instances, "LAST_INSTANCE", 2)
    with pytest.raises(Px4Error, match=r"5 free PX4 instances are needed, only [0-2] of 1 to 2"):
        instances.claim_instances(5)


def test_no_px4_says_how_to_get_it(tmp_path):
    with pytest.raises(Px4Error, match=r"no px4 found \(PX4_BIN, PATH.*px4io/px4-sitl"):
        find_px4({"PATH": str(tmp_path)}, (tmp_path / "opt",))


def test_px4_is_found_by_variable_path_and_package(tmp_path):
    binary = install_peer(tmp_path / "px4")
    wanted = tmp_path / "px4" / "etc"
    assert find_px4({"PX4_BIN": str(binary)}, ()).etc == wanted
    assert find_px4({"PATH": str(binary.parent)}, ()).etc == wanted
    assert find_px4({"PATH": ""}, (tmp_path / "px4",)).etc == wanted
    link = tmp_path / "bin" / "px4"  # as the package makes /usr/bin/px4
    link.parent.mkdir()
    link.symlink_to(binary)
    assert find_px4({"PATH": str(link.parent)}, ()).etc == wanted


@pytest.mark.parametrize("broken", ["missing", "not executable", "no scripts"])
def test_a_wrong_px4_bin_is_named(tmp_path, broken):
    binary = install_peer(tmp_path / "px4")
    if broken == "missing":
        binary.unlink()
    elif broken == "not executable":
        binary.chmod(0o644)
    else:
        (tmp_path / "px4" / "etc" / "init.d-posix" / "rcS").unlink()
    with pytest.raises(Px4Error, match=str(binary)):
        find_px4({"PX4_BIN": str(binary)}, ())


def test_a_start_in_the_air_is_refused(tmp_path, peer):
    with pytest.raises(ConfigError, match=r"start: air with autopilot\.kind: px4"):
        px4_flight(tmp_path, "solo", "start=air")
