"""Cost of recording a second of flight: in memory, as a bag, and message by message.

The topics of a bag with states and set-points at 50 Hz and cable shapes at 10 Hz. Every way has a
process of its own and they take turns, so that a noisy machine slows all; the ratio is the figure
to quote. Processor time, system calls included. `messages` is the plain way: rosbags serialises
each message and `mcap.writer.Writer` takes it. `--against` measures the recorder of another
checkout in the same run.

    .venv/bin/python benchmarks/recording.py
    .venv/bin/python benchmarks/recording.py --drones 6 --against ../other/checkout
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np

SYSTEMS = {1: "x500_solo", 3: "x500_trio", 6: "x500_hexa"}
RATE_HZ, SHAPE_EVERY = 50, 5
TURN_S = 10
"""Flight time per turn, in which every recorder writes."""
LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def main() -> None:
    """Print a table of the ways to record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drones", type=int, default=3, choices=SYSTEMS)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--against", type=Path, help="root of another checkout")
    parser.add_argument("--worker", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        _answer(given.worker, given.drones)
        return
    workers = {way: _start(way, given.drones, None) for way in WAYS}
    if given.against:
        workers["bag, other checkout"] = _start("bag", given.drones, given.against)
    times: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(given.rounds):
        for name, worker in workers.items():
            times[name].append(_turn(worker))
    for worker in workers.values():
        worker.communicate()
    print(
        f"{given.drones} drones; medians [10 %, 90 %], {given.rounds} turns of {TURN_S} s of flight"
    )
    print(f"{'':20s} {'ms per s of flight':26s} ratio to bag")
    bag = np.array(times["bag"])
    for name, values in times.items():
        ms = np.array(values)
        print(f"{name:20s} {_spread(1e3 * ms, 2):26s} {_spread(ms / bag, 2)}")


def _start(way: str, drones: int, checkout: Path | None) -> subprocess.Popen[str]:
    environment = dict(os.environ)
    if checkout is not None:
        packages = sorted((checkout.resolve() / "src").glob("musls_*"))
        environment["PYTHONPATH"] = os.pathsep.join(map(str, packages))
    worker = subprocess.Popen(
        [sys.executable, __file__, "--worker", way, "--drones", str(drones)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    for _ in range(3):  # caches, growing arrays
        _turn(worker)
    return worker


def _turn(worker: subprocess.Popen[str]) -> float:
    """Let a worker record a turn; processor time per flight time."""
    if worker.stdin is None or worker.stdout is None:
        raise RuntimeError("a worker without pipes")
    worker.stdin.write("\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def _answer(way: str, drones: int) -> None:
    """Record a turn for every line that comes, and say how long it took."""
    from musls_description.system.system_files import load_system
    from musls_sim.plants.interface import PlantState
    from musls_sim.session.flight import TensionPeaks

    system = load_system(SYSTEMS[drones])
    rng = np.random.default_rng(1)
    nodes = [rng.normal(size=(cable.links + 1, 3)) for cable in system.cables]
    state = PlantState.zeros(system)
    plant: Any = SimpleNamespace(
        state=state, cable_nodes_enu_m=nodes.__getitem__, cable_end_rotations=lambda i: None
    )
    level, session = (
        np.tile(LEVEL, (1 + drones, 1)),
        SimpleNamespace(plant=plant, tension_peaks=TensionPeaks(drones, periods=5)),
    )
    with tempfile.TemporaryDirectory() as folder:
        recorder = WAYS[way](Path(folder) / "bag", system)
        for turn, _ in enumerate(sys.stdin):
            begin = process_time()
            for k in range(TURN_S * RATE_HZ):
                time_s = TURN_S * turn + k / RATE_HZ
                state.motion[:, :6] = time_s
                recorder.on_setpoint(time_s, state.position_enu_m, level)
                recorder.observe(time_s, session)
            print((process_time() - begin) / TURN_S, flush=True)
        recorder.close()


class MessageByMessage:
    """The topics of a bag through rosbags' serialiser and mcap's writer, one message at a time."""

    def __init__(self, folder: Path, system: Any) -> None:
        """Create the file."""
        from mcap.writer import CompressionType, Writer

        from musls_sim.recording.signals import Rate, Row, recorded_topics

        folder.mkdir()
        self._file = (folder / "bag.mcap").open("wb")
        self._writer = Writer(self._file, compression=CompressionType.NONE)
        self._writer.start("ros2")
        self._state, self._shape, self._setpoint = (
            Row(system, rate) for rate in (Rate.STATE, Rate.SHAPE, Rate.SETPOINT)
        )
        self._channels = {}
        for topic, msgtype in recorded_topics(system).items():
            schema = self._writer.register_schema(msgtype, "ros2msg", b"")
            self._channels[topic] = self._writer.register_channel(topic, "cdr", schema)
        self._count = 0

    def on_setpoint(self, time_s: float, *poses: np.ndarray) -> None:
        """As `BagRecorder.on_setpoint`."""
        self._write(time_s, self._setpoint, list(poses))

    def observe(self, time_s: float, session: Any) -> None:
        """As `BagRecorder.observe`."""
        self._write(time_s, self._state, self._state.values(session))
        if self._count % SHAPE_EVERY == 0:
            self._write(time_s, self._shape, self._shape.values(session))
        self._count += 1

    def close(self) -> None:
        """Finish the file."""
        self._writer.finish()
        self._file.close()

    def _write(self, time_s: float, row: Any, values: list[np.ndarray]) -> None:
        from musls_sim.recording.messages import serialize

        time_ns = round(time_s * 1e9)
        columns = dict(zip(row.shapes, values, strict=True))
        for topic, message in row.messages(time_ns, row.written(columns)):
            self._writer.add_message(self._channels[topic], time_ns, serialize(message), time_ns)


def _memory(folder: Path, system: Any) -> Any:
    from musls_sim.recording import MemoryRecorder

    return MemoryRecorder(system, step_period_s=1 / RATE_HZ)


def _bag(folder: Path, system: Any) -> Any:
    from musls_sim.recording import BagRecorder

    return BagRecorder(folder, system, step_period_s=1 / RATE_HZ)


WAYS: dict[str, Callable[[Path, Any], Any]] = {
    "memory": _memory,
    "bag": _bag,
    "messages": MessageByMessage,
}


def _spread(values: np.ndarray, digits: int) -> str:
    low, middle, high = np.percentile(values, [10, 50, 90])
    return f"{middle:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


if __name__ == "__main__":
    main()
