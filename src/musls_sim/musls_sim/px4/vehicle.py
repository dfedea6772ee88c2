"""One drone's PX4: its process, its two links, and what it says when something is wrong."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import NoReturn

from musls_sim.px4.airframe import make_root
from musls_sim.px4.install import FLIGHT_LOGS, Px4Error, Px4Install
from musls_sim.px4.links import CommandLink, HilLink, LinkError
from musls_sim.px4.process import PX4_API_PORT, DdsLink, Instance, Px4Process
from musls_sim.px4.sensors import Sample

LAST_WORDS = 4
"""How many of PX4's own lines an error repeats."""

_COMPLAINT = re.compile(r"\b(ERROR|WARN|Parameter .* not found)\b")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Vehicle:
    """One PX4 from its start to its end.

    Attributes:
        name: "drone_1" and so on.
    """

    def __init__(
        self,
        index: int,
        instance: Instance,
        install: Px4Install,
        root: Path,
        log: Path,
        dds: DdsLink | None = None,
    ) -> None:
        """Prepare; nothing is started.

        `index`: drone, from 0.
        `instance`: claimed instance, closed with the vehicle.
        `root`: empty working folder.
        """
        self.index, self.name = index, f"drone_{index + 1}"
        self._instance, self._install, self._root, self._log = instance, install, root, log
        self._dds = dds
        system = dds.system_id(index) if dds else instance.system_id
        self.commands = CommandLink(instance.api, PX4_API_PORT + instance.number, system)
        self._hil: HilLink | None = None
        self._started: Px4Process | None = None

    @property
    def hil(self) -> HilLink:
        """The simulator's link, from `connect` on."""
        if self._hil is None:
            raise RuntimeError(f"{self.name} is not connected to its PX4")
        return self._hil

    @property
    def _process(self) -> Px4Process:
        if self._started is None:
            raise RuntimeError(f"the PX4 of {self.name} was not started")
        return self._started

    def start(self, airframe: str) -> None:
        """Start PX4 with an airframe script (raises Px4Error)."""
        make_root(self._root, self._install, airframe)
        self._started = Px4Process(
            self._install, self._instance.number, self._root, self._log, self.variables()
        )

    def variables(self) -> dict[str, str]:
        """Environment of PX4's start-up script."""
        return self._dds.variables(self.index) if self._dds else {}

    def connect(self, patience_s: float) -> None:
        """Wait until PX4 has connected to the simulator.

        Raises:
            Px4Error: It ended, or did not connect in time.
        """
        deadline = monotonic() + patience_s
        self._instance.listener.settimeout(0.1)
        while self._hil is None:
            self.check_alive()
            if monotonic() > deadline:
                self.fail(f"did not connect to the simulator within {patience_s:g} s")
            with suppress(TimeoutError):
                self._hil = HilLink(self._instance.listener.accept()[0])

    def send(self, time_us: int, sample: Sample) -> None:
        """Send its sensors (raises Px4Error)."""
        try:
            self.hil.send(time_us, sample, self.index)
        except LinkError as lost:
            self.fail(str(lost))

    def receive(self, time_us: int, patience_s: float) -> bool:
        """Wait for PX4's answer; returns whether it came.

        Raises:
            Px4Error: PX4 is gone.
        """
        try:
            return self.hil.receive(time_us, patience_s)
        except LinkError as lost:
            self.fail(str(lost))

    def check_alive(self) -> None:
        """Raise if the process has ended (raises Px4Error)."""
        if self._process.exit_text is not None:
            self.fail("ended")

    def complaints(self) -> list[str]:
        """Warnings and errors on PX4's console so far."""
        lines = _ESCAPES.sub("", self._process.console).splitlines()
        return [" ".join(line.split()) for line in lines if _COMPLAINT.search(line)]

    def fail(self, what: str) -> NoReturn:
        """Raise an error that repeats PX4's own words and names its log (raises Px4Error)."""
        if self._hil is not None:
            # A process whose connection is gone ends a moment later; then its exit is the news.
            self._process.wait_a_moment()
        self.commands.poll()
        ended = self._process.exit_text
        how = f" ({ended})" if ended else ""
        words = list(self.commands.texts)[-LAST_WORDS:] or self.complaints()[-LAST_WORDS:]
        said = f'; it said: "{" | ".join(words)}"' if words else ""
        raise Px4Error(
            f"{self.name}: PX4 instance {self._instance.number} {what}{how}{said}; "
            f"its console is kept in {self._log}"
        )

    def ask_to_end(self) -> None:
        """Begin to end PX4 (several end side by side)."""
        if self._hil is not None:
            self._hil.close()
        if self._started is not None:
            self._started.ask_to_end()

    def close(self) -> None:
        """End PX4 for certain, keep its flight log if it wrote one, free everything."""
        if self._started is not None:
            self._started.end()
        for flight_log in self._root.glob(FLIGHT_LOGS):
            with suppress(OSError):
                shutil.copy2(flight_log, self._log.with_suffix(".ulg"))
        if self._started is not None:
            self._instance.remove_socket()
        self._instance.close()
