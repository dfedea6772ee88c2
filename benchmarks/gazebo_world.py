"""Cost of a step of the generated world in the air, full and lean in turns, without PX4.

The trio hangs from hover and its rotors are told to turn at hover speed, as PX4 would tell them.
Each turn is a server of its own in a process of its own; its first steps, in which it loads, are
not counted. Nothing listens to the sensors but a subscriber to each drone's IMU. Needs what
`physics.engine: gazebo_px4` needs but PX4, see docs/gazebo.md.

    .venv/bin/python benchmarks/gazebo_world.py --turns 5
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import struct
import subprocess
import sys
from time import perf_counter, process_time

import numpy as np

from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.system.system_files import load_system
from musls_description.writers import world_sdf
from musls_description.writers.sdf import drone_name
from musls_sim.plants.gazebo import MESSAGE, TOPIC, GazeboServer
from musls_sim.plants.trim import trim_speeds_rad_s

STEP_S = 0.004
BLOCK, BLOCKS = 25, 12
"""Steps timed at a time, and how often: 1.2 s of flight."""

IMU = "/world/musls/model/{}/link/base_link/sensor/imu_sensor/imu"


def main() -> None:
    """Print median and least time per step of each world over all turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--turn", choices=["full", "lean"], help="one turn, for the script itself")
    given = parser.parse_args()
    if given.turn:
        print(json.dumps(one_turn(lean=given.turn == "lean")), flush=True)
        os._exit(0)  # a message that arrives while Python ends would abort the process
    times: dict[str, list[np.ndarray]] = {"full": [], "lean": []}
    for _ in range(given.turns):
        for kind, rows in times.items():
            command = [sys.executable, __file__, "--turn", kind]
            run = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append(np.array(json.loads(run.stdout.splitlines()[-1])))
    for kind, rows in times.items():
        cpu, wall = np.concatenate(rows).T
        speed = 1e3 * STEP_S / wall
        print(
            f"{kind}: processor time {np.median(cpu):.2f} ms a step (least {cpu.min():.2f}), wall "
            f"{np.median(wall):.2f} ms (least {wall.min():.2f}), {np.median(speed):.2f} x real "
            f"time (best {speed.max():.2f})"
        )


def one_turn(*, lean: bool) -> list[list[float]]:
    """Processor time of all threads and wall time per step of each block [ms]."""
    system = load_system("x500_trio")
    azimuth = np.arange(system.n_drones) * 2.0 * np.pi / system.n_drones
    circle = np.column_stack([np.cos(azimuth), np.sin(azimuth), np.full(system.n_drones, 3.2)])
    rest = hanging_equilibrium(system, circle)
    start = {
        "start": rest.configuration,
        "rotor_speed_rad_s": trim_speeds_rad_s(system, rest),
    }
    text = world_sdf(system, start["start"], step_s=STEP_S, lean=lean, pace=0.0)
    server = GazeboServer(text, [("load", "base_link")], lambda: np.zeros((1, 6)), lambda: None)
    transport = importlib.import_module("gz.transport13._transport")
    node, options = transport.Node(), transport.SubscribeOptions()
    speakers = []
    for i, speed in enumerate(start["rotor_speed_rad_s"]):
        name = drone_name(system, i)
        node.subscribe_raw(IMU.format(name), lambda *_: None, "gz.msgs.IMU", options)
        speaker = node.advertise(TOPIC.format(name), MESSAGE, transport.AdvertiseMessageOptions())
        message = struct.pack("<BB4d", 0x1A, 32, *speed)
        speakers.append((speaker, message))
    server.run(1)
    times = []
    for _ in range(BLOCKS):
        for speaker, message in speakers:
            speaker.publish_raw(message, MESSAGE)
        cpu, wall = process_time(), perf_counter()
        server.run(BLOCK)
        spent = process_time() - cpu, perf_counter() - wall
        times.append([1e3 * t / BLOCK for t in spent])
    height = server.motion[0, 11]
    if not 0.5 < height < 1.5:  # the load hangs at 1 m
        raise SystemExit(f"the load is at {height:.2f} m: the drones did not hover")
    return times


if __name__ == "__main__":
    main()
