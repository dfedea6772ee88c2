"""The Micro XRCE-DDS agent: brings the topics of PX4s on this machine into the ROS graph."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from musls_sim.px4.errors import Px4Error
from musls_sim.px4.process import GRACE_S, guard

PROGRAM = "MicroXRCEAgent"
VARIABLE = "MICRO_XRCE_AGENT"

HOW_TO_GET = (
    "build version 2.4 of github.com/eProsima/Micro-XRCE-DDS-Agent (cmake, make install), work in "
    f"PX4's image px4io/px4-sitl-gazebo-ros2, or name a program by {VARIABLE}"
)


def find_agent(environment: Mapping[str, str] = os.environ) -> Path:
    """Find the agent: by MICRO_XRCE_AGENT, or MicroXRCEAgent on PATH.

    Args:
        environment: Holds MICRO_XRCE_AGENT and PATH.

    Raises:
        Px4Error: There is none.
    """
    named = environment.get(VARIABLE)
    if named:
        if not (os.path.isfile(named) and os.access(named, os.X_OK)):
            raise Px4Error(f"{VARIABLE} = {named}: no such program; {HOW_TO_GET}")
        return Path(named)
    on_path = shutil.which(PROGRAM, path=environment.get("PATH", ""))
    if on_path is None:
        raise Px4Error(f"no {PROGRAM} found ({VARIABLE}, PATH): {HOW_TO_GET}")
    return Path(on_path)


class XrceAgent:
    """A running agent.

    Attributes:
        port: UDP port on which it listens.
    """

    def __init__(self, program: Path, console: Path) -> None:
        """Start it on a free port; it dies with this process, whatever ends that.

        Args:
            program: See `find_agent`.
            console: File for what it prints; its folder is made.

        Raises:
            Px4Error: It cannot be started.
        """
        self._program, self._console, self.port = program, console, _free_port()
        command = [*guard(), str(program), "udp4", "-p", str(self.port)]
        try:
            console.parent.mkdir(parents=True, exist_ok=True)
            with console.open("wb") as output:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise Px4Error(f"{program} cannot be started: {error.strerror}") from error

    def check_alive(self) -> None:
        """Raise if it has ended.

        Raises:
            Px4Error: It has; with its last line.
        """
        code = self._process.poll()
        if code is None:
            return
        lines = self._console.read_text(encoding="utf-8", errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        words = f'; it said: "{said[-1]}"' if said else ""
        raise Px4Error(f"{self._program.name} ended with code {code}{words}")

    def close(self) -> None:
        """End it for certain; may be called repeatedly."""
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def _free_port() -> int:
    """A UDP port that is free on all interfaces now: the agent cannot be told to use loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
