"""The programs of a flight with real PX4s: `px4` with its folder and ports, and the DDS agent."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from shutil import which
from types import MappingProxyType
from typing import Any

from musls_control.child_processes import why_ended
from musls_control.px4.offboard import px4_namespace, target_system
from musls_sim.px4.install import START_SCRIPT, Firmware, Px4Error, find_program

GRACE_S = 1.0
"""Time between the request to end and the signal that forces it."""


class Program:
    """A running program, leader of a process group of its own; it dies with this process."""

    def __init__(self, command: Sequence[str], console: Path, **options: Any) -> None:
        """Start it (raises Px4Error); what it prints goes to the file `console`."""
        self._console = console
        try:
            console.parent.mkdir(parents=True, exist_ok=True)
            with console.open("wb") as output:
                self._process = subprocess.Popen(
                    [*guard(), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    **options,
                )
        except OSError as error:
            raise Px4Error(f"{command[0]} cannot be started: {error.strerror}") from error

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def exit_text(self) -> str | None:
        """Exit code or signal in words, or None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    @property
    def console(self) -> str:
        """Output so far."""
        return self._console.read_text(encoding="utf-8", errors="replace")

    def wait_a_moment(self) -> None:
        """Give it time to end by itself."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.3)

    def ask_to_end(self) -> None:
        """Ask the whole group to end."""
        self._signal(signal.SIGTERM)

    def end(self) -> None:
        """Wait for the whole group, which was asked to end, and kill what does not."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def guard() -> list[str]:
    """Command prefix that ends the program with its parent.

    It ends with this process, however that ends. As root PX4 would take real-time priority for
    its threads and starve everything else, this simulator included; so it may not.
    """
    setpriv = which("setpriv")
    root = os.geteuid() == 0
    if setpriv is None:
        if root:
            raise Px4Error(
                "PX4 started as root takes real-time priority; run as an ordinary user or install "
                "setpriv (package util-linux), which can forbid it"
            )
        return []
    no_priority = ["--bounding-set=-sys_nice", "--inh-caps=-sys_nice"] if root else []
    return [setpriv, "--pdeathsig", "KILL", *no_priority]


# ---------- PX4, in a folder of its own
#
# Nothing is written into PX4's installation. The folder of an instance has an `etc` that consists
# of links into the installation, except for the airframe and for the script that opens the MAVLink
# links (which PX4 leaves to the user to replace).

AUTOSTART_ID = 22001
"""Airframe number in the range that PX4 leaves to custom airframes."""

SIM_MODEL = "none_musls"

_LINKS = """\
#!/bin/sh
# The links of musls: one for a ground station to look on, one for set-points and commands.
offboard_port=$((14580+px4_instance))
mavlink start -x -u $((18570+px4_instance)) -r 40000
mavlink start -x -u $offboard_port -r 400000 -m custom -o $((14540+px4_instance)) -t 127.0.0.1
mavlink stream -r 10 -s EXTENDED_SYS_STATE -u $offboard_port
mavlink stream -r 30 -s LOCAL_POSITION_NED -u $offboard_port
mavlink stream -r 10 -s STATUSTEXT -u $offboard_port
"""


class Px4Process(Program):
    """A running `px4`."""

    def __init__(
        self,
        firmware: Firmware,
        instance: int,
        root: Path,
        console: Path,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start it (raises Px4Error).

        `root`: its working folder, see `make_root`.
        `variables`: of its environment, for its scripts.
        """
        script = Path("etc") / START_SCRIPT
        # PX4's own variables would choose another simulator, place or speed.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PX4_") and k != "R"}
        environment |= {"PX4_SYS_AUTOSTART": str(AUTOSTART_ID), "PX4_SIM_MODEL": SIM_MODEL}
        environment["XDG_DATA_HOME"] = str(root)  # where packages put what they write
        super().__init__(
            [str(firmware.binary), "-d", "-i", str(instance), "-w", str(root), "-s", str(script)],
            console,
            cwd=root,
            env=environment | dict(variables),
        )


def make_root(folder: Path, etc: Path, airframe: str) -> None:
    """Fill the folder of one instance, empty or made here; `etc` is that of the installation."""
    scripts = folder / "etc" / "init.d-posix"
    (scripts / "airframes").mkdir(parents=True)
    _link_entries(etc, folder / "etc", without={"init.d-posix"})
    _link_entries(etc / "init.d-posix", scripts, without={"airframes", "px4-rc.mavlink"})
    (scripts / "airframes" / f"{AUTOSTART_ID}_musls").write_text(airframe, encoding="utf-8")
    (scripts / "px4-rc.mavlink").write_text(_LINKS, encoding="utf-8")
    # PX4 looks for this one on PATH and runs it as a program in some versions.
    (scripts / "px4-rc.mavlink").chmod(0o755)


def _link_entries(source: Path, target: Path, without: set[str]) -> None:
    for entry in source.iterdir():
        if entry.name not in without:
            (target / entry.name).symlink_to(entry)


# ---------- Free PX4 instance numbers, claimed by their ports

HIL_PORT = 4560
API_PORT = 14540
PX4_API_PORT = 14580
PX4_GCS_PORT = 18570
LAST_INSTANCE = 250
"""System identifiers are instance numbers plus one, and one byte."""

LOCK_FILE = "/tmp/px4_lock-{}"
"""Lock file of a running PX4."""

SOCKET_FILE = "/tmp/px4-sock-{}"
"""Socket that PX4's programs speak to. It stays behind, and another user's cannot be replaced."""


@dataclass
class Instance:
    """One claimed instance.

    Attributes:
        number: PX4's instance number, from 1.
        listener: Listens on 127.0.0.1 for PX4's simulator link (TCP).
        api: Bound on 127.0.0.1 where PX4 sends its MAVLink to (UDP).
    """

    number: int
    listener: socket.socket
    api: socket.socket

    def remove_socket(self) -> None:
        """Remove the socket of an ended PX4 while its ports are held: nobody else has it then."""
        with suppress(OSError):
            os.unlink(SOCKET_FILE.format(self.number))

    def close(self) -> None:
        """Free the ports."""
        self.listener.close()
        self.api.close()


def claim_instances(count: int) -> list[Instance]:
    """Claim the lowest free instances (raises Px4Error).

    The listening sockets are the claim: two processes cannot hold the same.
    """
    numbers = range(1, LAST_INSTANCE + 1)
    claimed = list(islice(filter(None, map(_claim, numbers)), count))
    if len(claimed) < count:
        for instance in claimed:
            instance.close()
        raise Px4Error(
            f"{count} free PX4 instances are needed, only {len(claimed)} of 1 to {LAST_INSTANCE} "
            f"have their ports free (TCP {HIL_PORT} + i, UDP {API_PORT} + i, {PX4_API_PORT} + i, "
            f"{PX4_GCS_PORT} + i)"
        )
    return claimed


def _claim(number: int) -> Instance | None:
    """Claim one instance, or None if anything of it is in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    api = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        # Connections of an ended run linger; without this their port counts as in use.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", HIL_PORT + number))
        listener.listen(1)
        api.bind(("127.0.0.1", API_PORT + number))
        for port in (PX4_API_PORT, PX4_GCS_PORT):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("", port + number))  # PX4 binds all interfaces
        if _running(number) or _of_somebody_else(SOCKET_FILE.format(number)):
            raise OSError
    except OSError:
        listener.close()
        api.close()
        return None
    return Instance(number, listener, api)


def _of_somebody_else(path: str) -> bool:
    """Whether a file exists that this account does not own."""
    try:
        return os.lstat(path).st_uid != os.geteuid()
    except OSError:
        return False


def _running(number: int) -> bool:
    """Whether a PX4 of this instance number runs, be it without any of our ports."""
    import fcntl  # a PX4 runs on Linux

    try:
        with open(LOCK_FILE.format(number), "r+b") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # locked, or another user's: it cannot be locked by our PX4 either
        return True
    return False


# ---------- The Micro XRCE-DDS agent: brings the topics of PX4s on this machine into the ROS graph

VARIABLE = "MICRO_XRCE_AGENT"

HOW_TO_GET = (
    "build version 2.4 of github.com/eProsima/Micro-XRCE-DDS-Agent (cmake, make install), work in "
    f"PX4's image px4io/px4-sitl-gazebo-ros2, or name a program by {VARIABLE}"
)

LOOPBACK_ONLY = 1


def find_agent(environment: Mapping[str, str] = os.environ) -> Path:
    """Find the agent: by MICRO_XRCE_AGENT, or MicroXRCEAgent on PATH (raises Px4Error)."""
    return find_program("MicroXRCEAgent", VARIABLE, HOW_TO_GET, environment)


class XrceAgent(Program):
    """A running agent, and the settings by which a PX4 joins the ROS graph through it.

    Names count drones, not PX4 instances: drone i is `px4_i` with system id i + 1 in its graph,
    whichever instances of PX4 were free. The DDS domain is that of ROS_DOMAIN_ID.

    Attributes:
        port: UDP port on which it listens.
    """

    def __init__(self, program: Path, console: Path) -> None:
        """Start it on a free port (raises Px4Error)."""
        self._name = program.name
        self.port = _free_port()
        super().__init__([str(program), "udp4", "-p", str(self.port)], console)

    def close(self) -> None:
        """End it for certain; may be called repeatedly."""
        self.ask_to_end()
        self.end()

    def check_alive(self) -> None:
        """Raise if it has ended (raises Px4Error)."""
        code = self._process.poll()
        if code is not None:
            raise Px4Error(f"{self._name} {why_ended(code, self.console)}")

    def variables(self, index: int) -> dict[str, str]:
        """Environment of a drone's PX4 (from 0), read by its start-up script."""
        return {
            "PX4_UXRCE_DDS_PORT": str(self.port),
            "PX4_UXRCE_DDS_NS": px4_namespace(index + 1),
        }

    @staticmethod
    def parameters(index: int) -> dict[str, float]:
        """Parameters of a drone's PX4 (from 0).

        Without UXRCE_DDS_SYNCT stamps are PX4's clock, which is /clock. UXRCE_DDS_PTCFG 1 is
        loopback only: ROS nodes with ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST hear no other.
        """
        return {
            "MAV_SYS_ID": target_system(index + 1),
            "UXRCE_DDS_SYNCT": 0,
            "UXRCE_DDS_PTCFG": LOOPBACK_ONLY,
        }


def _free_port() -> int:
    """UDP port that is free on all interfaces, since the agent cannot be bound to loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
