"""Whether PX4 has done all its work, as the kernel sees it (Linux)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LISTENERS = "px4"
"""Threads that take Gazebo's messages in; they carry the program's name."""

QUEUES = "wq:"
"""Start of the names of PX4's work queues: estimator, controllers, drivers."""

_FIRST = {LISTENERS: 0, "wq:INS0": 1}
"""Work goes from the listeners to the estimator's queue, from there to the others."""


class WorkThreads:
    """The threads of a PX4 that carry its flight.

    A queue that is out of work sleeps; one that is running or waits for a processor does not.
    """

    def __init__(self, pid: int) -> None:
        """Look at nothing yet.

        Args:
            pid: Of the process.
        """
        self._tasks = Path(f"/proc/{pid}/task")
        self._files: list[int] = []

    def find(self) -> None:
        """Find the threads: modules start and end them. None are found where there is no /proc."""
        self.close()
        found = []
        with suppress(OSError):
            for task in self._tasks.iterdir():
                with suppress(OSError):
                    name = (task / "comm").read_text().rstrip("\n")
                    if name == LISTENERS or name.startswith(QUEUES):
                        file = os.open(task / "stat", os.O_RDONLY | os.O_CLOEXEC)
                        found.append((_FIRST.get(name, 2), file))
        self._files = [file for _, file in sorted(found)]

    def __len__(self) -> int:
        """How many were found."""
        return len(self._files)

    @property
    def busy(self) -> bool:
        """Whether one of those found has work to do."""
        return any(map(_running, self._files))

    def close(self) -> None:
        """Forget them."""
        for file in self._files:
            os.close(file)
        self._files = []


def _running(file: int) -> bool:
    """Whether a thread runs or waits for a processor; one that has ended does not."""
    try:
        return os.pread(file, 64, 0).partition(b") ")[2][:1] == b"R"
    except OSError:
        return False
