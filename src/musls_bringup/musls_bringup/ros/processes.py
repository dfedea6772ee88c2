"""The nodes of a flight as data: `musls ros fly` starts them as processes, launch by name."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from musls_control.child_processes import STOP_S, VARIABLE, last_words, why_ended
from musls_description.config.errors import MuslsError


class NodeFailed(MuslsError):  # noqa: N818 (the name says what happened)
    """A node ended before the flight was over."""


@dataclass(frozen=True)
class NodeSpec:
    """One node.

    Attributes:
        executable: Entry point for `ros2 run`; for ours also the name of the module.
        arguments: Further words of the command line.
        remappings: Other names of topics, by the node's own.
        namespace: Namespace of relative names of topics and services.
    """

    package: str
    executable: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    remappings: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""

    @property
    def command(self) -> list[str]:
        """Command line of one of our nodes that needs no ROS installation."""
        renamed = {**self.remappings, **({"__ns": self.namespace} if self.namespace else {})}
        module = f"{self.package}.nodes.{self.executable}"
        rules = [
            *(("-p", f"{name}:={_text(value)}") for name, value in self.parameters.items()),
            *(("-r", f"{name}:={other}") for name, other in renamed.items()),
        ]
        words = [word for rule in rules for word in rule]
        return [sys.executable, "-m", module, *(["--ros-args", *words] if words else [])]


def simulator(scenario_file: Path, **parameters: Any) -> NodeSpec:
    """The embedded simulator; further parameters as in the node."""
    return NodeSpec(
        "musls_sim", "embedded_sim", {"scenario_file": str(scenario_file), **parameters}
    )


def offboard(n_drones: int, *, use_sim_time: bool = True, **parameters: Any) -> NodeSpec:
    """One offboard node for drones 1 to n."""
    drones = list(range(1, n_drones + 1))
    return NodeSpec(
        "musls_control",
        "offboard",
        {"use_sim_time": use_sim_time, "drones": drones, **parameters},
    )


def agent(
    scenario_file: Path, drone: int, *, use_sim_time: bool = True, **parameters: Any
) -> tuple[NodeSpec, NodeSpec]:
    """A drone's agent in the drone's namespace, and the offboard node that obeys it alone.

    Further parameters are those of the agent.
    """
    name = f"drone_{drone}"
    node = f"offboard_{drone}"
    mine = {"mission_file": str(scenario_file), "drone": drone, "use_sim_time": use_sim_time}
    renamed = {
        "__node": node,
        "formation/setpoints": f"{name}/agent/setpoints",
        # The formation asks for landings as of one node for all drones.
        f"{node}/land_{name}": f"offboard/land_{name}",
    }
    return (
        NodeSpec("musls_control", "agent", mine | parameters, namespace=f"/{name}"),
        NodeSpec(
            "musls_control",
            "offboard",
            {"use_sim_time": use_sim_time, "drones": [drone]},
            remappings=renamed,
        ),
    )


def formation(scenario_file: Path, *, use_sim_time: bool = True, **parameters: Any) -> NodeSpec:
    """The formation with the scenario's mission."""
    return NodeSpec(
        "musls_control",
        "formation",
        {"use_sim_time": use_sim_time, "mission_file": str(scenario_file), **parameters},
    )


def recorder(scenario_file: Path, bag: Path, **parameters: Any) -> NodeSpec:
    """The recorder of a bag."""
    return NodeSpec(
        "musls_sim",
        "recorder",
        {"scenario_file": str(scenario_file), "bag": str(bag), **parameters},
    )


class Graph:
    """Processes of nodes; a context manager that ends what it started.

    They run with `environment`; the folder `logs` keeps what they print.
    """

    def __init__(self, logs: Path) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.logs = logs
        self.environment = {
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            VARIABLE: str(os.getpid()),
        }
        self._processes: dict[str, subprocess.Popen] = {}

    def start(self, node: NodeSpec, *, name: str = "", read: bool = False) -> IO[str] | None:
        """Start a node in a session of its own, so that Ctrl-C reaches us only."""
        name = name or node.executable
        with (self.logs / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                node.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if read else log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
                text=read or None,
            )
        self._processes[name] = process
        return process.stdout

    def running(self, name: str) -> bool:
        """Whether a node has not ended yet."""
        return self._processes[name].poll() is None

    def pid(self, name: str) -> int:
        """Process id of a node."""
        return self._processes[name].pid

    def check(self, names: Sequence[str] | None = None) -> None:
        """Raise if a node has ended that should not."""
        for name in names or list(self._processes):
            if not self.running(name):
                raise self.failure(name)

    def log(self, name: str) -> str:
        """Output of a node so far."""
        return (self.logs / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def last_line(self, name: str) -> str:
        """Last error that a node wrote, or else its last line."""
        return last_words(self.log(name)) or "it printed nothing"

    def failure(self, name: str) -> NodeFailed:
        """Error of a node that gave up, with its last line; waits for its end."""
        code = self._wait(name)
        return NodeFailed(f"node {name} {why_ended(code, self.log(name))}")

    def stop(self, name: str, how: int = signal.SIGINT) -> int:
        """End a node and return its exit code; negative if it had to be killed."""
        self._processes[name].send_signal(how)
        return self._wait(name)

    def end(self, name: str) -> int:
        """End a node; it may have ended already, or was never started."""
        if name not in self._processes:
            return 0
        return self.stop(name) if self.running(name) else self._processes[name].returncode

    def _wait(self, name: str) -> int:
        process = self._processes[name]
        try:
            return process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGINT)
        for name, process in self._processes.items():
            self._wait(name)
            if process.stdout is not None:
                process.stdout.close()


def _text(value: Any) -> str:
    """A parameter's value as `-p` reads it: as YAML, a text in quotes, since it may be empty."""
    return json.dumps(value, ensure_ascii=False)


# ---------- Nodes that an earlier run has left behind: found, named and ended

_NODE = re.compile(r"(?:^|/)musls_(?:sim|control)(?:\.nodes\.|/)(\w+)$")
_REAPERS = ("systemd", "init", "tini", "docker-init", "dumb-init", "catatonit")
POLL_S = 0.05


@dataclass(frozen=True)
class NodeProcess:
    """A node's process; an `orphan` is one whose starter has ended."""

    name: str
    pid: int
    orphan: bool


def running_nodes(proc: Path = Path("/proc")) -> list[NodeProcess]:
    """All nodes of this user, by their process ids."""
    nodes = []
    for folder in proc.glob("[0-9]*"):
        try:
            if folder.stat().st_uid != os.geteuid():
                continue
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            name = _node_of(words)
            if name is not None:
                nodes.append(NodeProcess(name, int(folder.name), _is_orphan(folder, proc)))
        except OSError:  # it has ended meanwhile
            continue
    return sorted(nodes, key=lambda node: node.pid)


def _node_of(words: list[str]) -> str | None:
    """Name of the node that a command line starts: `python -m ...` or an installed program."""
    for word in words[:3]:
        match = _NODE.search(word)
        if match:
            return match[1]
    return None


def _is_orphan(folder: Path, proc: Path) -> bool:
    parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    for entry in (folder / "environ").read_bytes().split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == VARIABLE.encode():
            return parent != int(value or 0)
    return parent <= 1 or (proc / str(parent) / "comm").read_text().strip() in _REAPERS


def end(nodes: list[NodeProcess], patience_s: float = 15.0) -> list[NodeProcess]:
    """End processes: asked first, killed if they do not listen."""
    for node in nodes:
        _signal(node.pid, signal.SIGINT)
    until = time.monotonic() + patience_s
    while any(map(_lives, nodes)) and time.monotonic() < until:
        time.sleep(POLL_S)
    stubborn = list(filter(_lives, nodes))
    for node in stubborn:
        _signal(node.pid, signal.SIGKILL)
    return stubborn


def _lives(node: NodeProcess) -> bool:
    try:
        state = Path(f"/proc/{node.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
