"""A stand-in PX4 installation, and flights with it."""

import sys
from functools import cache
from pathlib import Path

from flight_helpers import session_with_bag

from musls_control.autopilot import DroneSetpoints, MotorCommands
from musls_control.estimate import Estimate
from musls_control.px4 import Px4Cascade
from musls_sim.scenario.scenario import load_scenario

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
PEER = Path(__file__).with_name("scripted_px4.py")

HOP = (
    "autopilot.kind=px4",
    "mission.stages=[{kind: hold, duration_s: 2, position_m: [0, 0, 0.5]}]",
    "mission.settle_s=0.5",
    "mission.form_up_s=3",
)
"""A short flight from the ground to the ground, by PX4."""

HURRY = (
    "mission.stages=[{kind: hold, duration_s: 0.5, position_m: [0, 0, 0.3]}]",
    "mission.take_off_s=3",
    "mission.form_up_s=2",
    "mission.settle_s=0.3",
    "mission.vertical_speed_m_s=1",
    "mission.landing_speed_m_s=0.8",
)
"""As short as it gets."""


@cache
def _compile_what_the_peer_flies():
    """In flight it has ten seconds for an answer, too few for a compiler on a busy machine."""
    setpoint, command = DroneSetpoints.unset(1), MotorCommands.zeros(1, 4)
    Px4Cascade().step(0.0, setpoint, Estimate.zeros(1), command)


def install_peer(folder):
    """Lay out an installation as PX4's packages do, with the scripted peer for a binary."""
    _compile_what_the_peer_flies()
    binary = folder / "bin" / "px4"
    binary.parent.mkdir(parents=True)
    binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{PEER}" "$@"\n')
    binary.chmod(0o755)
    scripts = folder / "etc" / "init.d-posix"
    (scripts / "airframes").mkdir(parents=True)
    (scripts / "airframes" / "4001_gz_x500").write_text("#!/bin/sh\n")
    for name in ("rcS", "px4-rc.mavlink", "px4-rc.simulator"):
        (scripts / name).write_text("#!/bin/sh\n")
    (folder / "etc" / "init.d").mkdir()
    return binary


def px4_flight(folder, name="solo", *overrides):
    scenario = load_scenario(SHIPPED / f"{name}.yaml", [*HOP, *overrides])
    return session_with_bag(scenario, folder / "bag", autopilot_logs=folder / "logs")


def install_agent(folder):
    """A program in the agent's place: holds its port, brings nothing anywhere."""
    program = folder / "MicroXRCEAgent"
    code = (
        "import socket, sys, time\n"
        "assert sys.argv[1:3] == ['udp4', '-p'], sys.argv\n"
        "port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "port.bind(('', int(sys.argv[3])))\n"
        "print('running on', sys.argv[3], flush=True)\n"
        "time.sleep(3600)\n"
    )
    program.write_text(f"#!{sys.executable}\n{code}")
    program.chmod(0o755)
    return program


def children_of(pid):
    """Process ids of what a process has started and not outlived."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
