"""One `px4` process: started in a folder of its own, ended for certain."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from musls_sim.px4.airframe import AUTOSTART_ID, SIM_MODEL
from musls_sim.px4.errors import Px4Error
from musls_sim.px4.install import START_SCRIPT, Px4Install

GRACE_S = 1.0
"""Between the friendly and the other signal."""


class Px4Process:
    """A running `px4`, leader of a process group of its own."""

    def __init__(
        self,
        install: Px4Install,
        instance: int,
        root: Path,
        console: Path,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start it.

        Args:
            install: Where PX4 is.
            instance: PX4's instance number.
            root: Its working folder, see `airframe.make_root`.
            console: File for what it prints.
            variables: Of its environment, for its scripts.

        Raises:
            Px4Error: It cannot be started.
        """
        command = [
            *guard(),
            str(install.binary),
            "-d",
            "-i",
            str(instance),
            "-w",
            str(root),
            "-s",
            str(Path("etc") / START_SCRIPT),
        ]
        # PX4's own variables would choose another simulator, place or speed.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PX4_") and k != "R"}
        environment |= {"PX4_SYS_AUTOSTART": str(AUTOSTART_ID), "PX4_SIM_MODEL": SIM_MODEL}
        environment["XDG_DATA_HOME"] = str(root)  # where packages put what they write
        environment |= variables or {}
        self._console = console
        with console.open("wb") as output:
            try:
                self._process = subprocess.Popen(
                    command,
                    cwd=root,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise Px4Error(f"{install.binary} cannot be started: {error.strerror}") from error

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def exit_text(self) -> str | None:
        """How it ended, or None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    @property
    def console(self) -> str:
        """What it has printed."""
        return self._console.read_text(encoding="utf-8", errors="replace")

    def wait_a_moment(self) -> None:
        """Give it time to end by itself."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.3)

    def ask_to_end(self) -> None:
        """Ask the whole group to end."""
        self._signal(signal.SIGTERM)

    def end(self) -> None:
        """End the whole group and wait for it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def guard() -> list[str]:
    """What the program is started through.

    It dies with this process, whatever ends that. As root PX4 would take real-time priority for
    its threads and starve everything else, this simulator included; so it may not.
    """
    setpriv = shutil.which("setpriv")
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
