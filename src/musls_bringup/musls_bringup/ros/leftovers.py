"""Nodes of this project that run without whoever started them: found, named and ended."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from musls_control.parent import VARIABLE

_NODE = re.compile(r"(?:^|/)musls_(?:sim|control)(?:\.nodes\.|/)(\w+)$")
_REAPERS = ("systemd", "init", "tini", "docker-init", "dumb-init", "catatonit")
POLL_S = 0.05


@dataclass(frozen=True)
class Running:
    """A process of a node.

    Attributes:
        name: Of the node.
        pid: Its process.
        orphan: Whether who started it is gone.
    """

    name: str
    pid: int
    orphan: bool


def running_nodes(proc: Path = Path("/proc")) -> list[Running]:
    """All nodes of this user, by their process ids.

    Args:
        proc: Where the kernel shows processes.
    """
    found = []
    for folder in proc.glob("[0-9]*"):
        try:
            if folder.stat().st_uid != os.geteuid():
                continue
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            name = _node_of(words)
            if name is not None:
                found.append(Running(name, int(folder.name), _is_orphan(folder, proc)))
        except OSError:  # it has ended meanwhile
            continue
    return sorted(found, key=lambda node: node.pid)


def _node_of(words: list[str]) -> str | None:
    """Name of the node that a command line starts: `python -m ...` or an installed program."""
    for word in words[:3]:
        found = _NODE.search(word)
        if found:
            return found[1]
    return None


def _is_orphan(folder: Path, proc: Path) -> bool:
    parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    for entry in (folder / "environ").read_bytes().split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == VARIABLE.encode():
            return parent != int(value or 0)
    return parent <= 1 or (proc / str(parent) / "comm").read_text().strip() in _REAPERS


def end(nodes: list[Running], patience_s: float = 15.0) -> list[Running]:
    """End processes: asked first, killed if they do not listen.

    Args:
        nodes: Which.
        patience_s: Time that they get together.

    Returns:
        Those that had to be killed.
    """
    for node in nodes:
        _signal(node.pid, signal.SIGINT)
    until = time.monotonic() + patience_s
    while any(map(_lives, nodes)) and time.monotonic() < until:
        time.sleep(POLL_S)
    stubborn = list(filter(_lives, nodes))
    for node in stubborn:
        _signal(node.pid, signal.SIGKILL)
    return stubborn


def _lives(node: Running) -> bool:
    try:
        state = Path(f"/proc/{node.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
