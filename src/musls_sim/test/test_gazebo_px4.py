"""The engine `physics.engine: gazebo_px4`: PX4's Gazebo bridge and the generated world."""

from __future__ import annotations

import importlib
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from xml.etree import ElementTree

import numpy as np
import pytest

from musls_description.config.errors import ConfigError
from musls_description.hanging.ground import ground_spawn
from musls_description.system.system_files import load_system
from musls_description.writers.sdf import world_sdf
from musls_sim.plants.gazebo import BridgedPlant, MotorListener, velocities
from musls_sim.px4.in_gazebo import WorkThreads
from musls_sim.px4.install import Px4Error, find_px4
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"


def _missing() -> str:
    try:
        for name in ("gz.sim8", "gz.math7", "gz.transport13._transport"):
            importlib.import_module(name)
    except ImportError as error:
        return f"Gazebo Harmonic's Python bindings are missing ({error})"
    return ""


def _no_bridge() -> str:
    try:
        firmware = find_px4()
    except Px4Error as error:
        return str(error)
    return f"{firmware.text} has no gz_bridge" if firmware.lacks("SIM_GZ_EN") else ""


gazebo = pytest.mark.skipif(bool(_missing()), reason=_missing() or "-")


def test_motor_commands_are_read_without_protobuf() -> None:
    """Packed and unpacked velocities between other fields of gz.msgs.Actuators, by hand."""
    speeds = (0.0, 150.0, 727.25)
    header = b"\x0a\x04\x0a\x02\x08\x07"  # field 1, a message
    position = b"\x12\x08" + struct.pack("<d", 9.0)  # field 2
    packed = b"\x1a\x18" + struct.pack("<3d", *speeds)
    assert velocities(header + position + packed) == list(speeds)
    assert velocities(b"".join(b"\x19" + struct.pack("<d", v) for v in speeds)) == list(speeds)
    assert velocities(b"") == []
    for broken in (packed[:-1], b"\x1a", b"\x1c"):
        with pytest.raises(ValueError, match="no protobuf message"):
            velocities(broken)


def test_a_world_keeps_the_pace_that_is_asked_for() -> None:
    system = load_system("x500_trio")
    spawn = ground_spawn(system)
    for pace, text in ((1.0, "1"), (0.3, "0.3"), (0.0, "0")):
        world = ElementTree.fromstring(world_sdf(system, spawn, pace=pace)).find("world")
        assert world is not None and world.findtext("physics/real_time_factor") == text
    with pytest.raises(ConfigError, match=r"pace of the world = -1: must be 0"):
        world_sdf(system, spawn, pace=-1.0)


def test_imus_tell_every_step_where_that_is_asked_for() -> None:
    """Only they: by default and for all other sensors the rates stay PX4's."""
    system = load_system("x500_trio")
    for asked, imu in ((None, 250.0), (1000.0, 1000.0)):
        world = ElementTree.fromstring(
            world_sdf(system, ground_spawn(system), imu_rate_hz=asked)
        ).find("world")
        assert world is not None
        other = {"magnetometer": 100.0, "air_pressure": 50.0, "navsat": 30.0}
        for i in (1, 2, 3):
            sensors = world.findall(f"model[@name='x500_{i}']/link/sensor")
            rates = {s.attrib["type"]: float(s.findtext("update_rate", "0")) for s in sensors}
            assert rates == {"imu": imu} | other


@pytest.mark.gazebo
@gazebo
def test_commands_are_waited_for() -> None:
    """Through Gazebo's own transport, within this process."""
    os.environ.setdefault("GZ_IP", "127.0.0.1")
    os.environ.setdefault("GZ_PARTITION", f"musls_{os.getpid()}")
    transport = importlib.import_module("gz.transport13._transport")
    motors = MotorListener(["a_1", "a_2"], 4)
    node = transport.Node()
    options = transport.AdvertiseMessageOptions()
    speaker = node.advertise("/a_2/command/motor_speed", "gz.msgs.Actuators", options)
    assert motors.wait(0.0) == [0, 1] and not motors.heard.any()
    speaker.publish_raw(b"\x1a\x10" + struct.pack("<2d", 3.0, 4.0), "gz.msgs.Actuators")
    motors.wait(20.0, running=True)  # nobody runs: returns at once
    for _ in range(100):
        if motors.wait(0.1) == [0]:
            break
    assert motors.heard.tolist() == [False, True]
    assert motors.speed_rad_s.tolist() == [[0.0] * 4, [3.0, 4.0, 0.0, 0.0]]
    motors.begin()
    assert motors.wait(0.0, running=True) == [1]


@pytest.mark.gazebo
@gazebo
def test_only_real_px4s_fly_there(tmp_path: Path) -> None:
    scenario = load_scenario(SHIPPED / "solo.yaml", ["physics.engine=gazebo_px4"])
    with (
        Session(scenario, autopilot_logs=tmp_path) as session,
        pytest.raises(ConfigError, match=r"physics\.engine = gazebo_px4: only real PX4s"),
    ):
        session.advance(1)


@pytest.mark.gazebo
@gazebo
def test_slack_cables_lie_on_soft_ground(tmp_path: Path) -> None:
    """Their links have no collisions; without the ground they would hang 0.3 m below it."""
    settings = ["physics.engine=gazebo_px4", "system.cables.links=5"]
    with Session(load_scenario(SHIPPED / "circle.yaml", settings)) as session:
        plant = session.plant
        assert isinstance(plant, BridgedPlant)
        for _ in range(250):
            plant.stand()
        nodes = np.array([plant.cable_nodes_enu_m(i)[:-1] for i in range(3)])
    assert -0.01 < nodes[:, :, 2].min() < 0.0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc")
def test_threads_that_work_are_told_from_those_that_sleep() -> None:
    """Named as PX4 names its work queues, in a process of its own."""
    command = [sys.executable, "-c", _THREADS]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    threads = WorkThreads(process.pid)
    try:
        process.stdout.readline()
        threads.find()
        assert len(threads) == 2  # queue and wire; neither Python's main thread nor the other one
        assert _soon(lambda: not threads.busy)
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert _soon(lambda: threads.busy)  # whether a processor is free for it or not
    finally:
        process.kill()
        process.communicate()
    assert not threads.busy
    threads.close()


def _soon(fact: Callable[[], bool]) -> bool:
    deadline = monotonic() + 20.0
    while monotonic() < deadline:
        if fact():
            return True
        sleep(0.01)
    return False


_THREADS = """
import ctypes, sys, threading
name = ctypes.CDLL(None).prctl
def queue():
    name(15, b"wq:test", 0, 0, 0)
    ready.set()
    go.wait()
    while True:
        pass
def other(called):
    name(15, called, 0, 0, 0)
    begun.wait()
    threading.Event().wait()
ready, go, begun = threading.Event(), threading.Event(), threading.Barrier(3)
for called in (b"mavlink", b"ZMQbg/IO/0"):
    threading.Thread(target=other, args=[called], daemon=True).start()
threading.Thread(target=queue, daemon=True).start()
begun.wait()
ready.wait()
print("ready", flush=True)
sys.stdin.readline()
go.set()
threading.Event().wait()
"""


@pytest.mark.gazebo
@pytest.mark.px4
@pytest.mark.slow
@gazebo
@pytest.mark.skipif(bool(_no_bridge()), reason=_no_bridge() or "-")
def test_three_px4s_lift_a_load_in_gazebo(tmp_path: Path) -> None:
    """Gazebo's motors and sensors, PX4's bridge: up, hold for two seconds, down."""
    scenario = load_scenario(
        SHIPPED / "circle.yaml",
        [
            "autopilot.kind=px4",
            "physics.engine=gazebo_px4",
            "system.cables.links=5",
            "mission.stages=[{kind: hold, duration_s: 2, position_m: [0, 0, 0.5]}]",
            "mission.settle_s=0.5",
            "mission.form_up_s=3",
        ],
    )
    heights = []
    with Session(scenario, autopilot_logs=tmp_path) as session:
        while not session.finished:
            session.advance(1)
            if session.stage == "hold":
                heights.append(session.state.position_enu_m[0, 2])
                weight = 9.80665 * scenario.system.load.mass_kg
                # Newton's law with the commands' thrust: within the manoeuvre's accelerations
                assert 0.4 * weight < session.state.tension_n.sum() < 2.5 * weight
    assert session.result().landed
    # PX4's position loop is late by more than a second: the load still rises in the hold.
    assert heights[-1] > 0.2
