"""Rates and latencies of the ROS graph, and what it costs against a flight in one process.

A listener takes everything that a flight of the paper's circle publishes, with the real time at
which it was published (DDS source time stamps, one clock for all processes). Then the whole circle
is flown through the graph and in process, recorded, without a listener.

    .venv/bin/python benchmarks/ros_graph.py
    .venv/bin/python benchmarks/ros_graph.py --seconds 20 --no-flights
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from struct import unpack_from

import numpy as np
import rclpy
from rclpy.qos import QoSProfile

from musls_bringup.fly import FlyOptions, fly
from musls_bringup.ros import graph
from musls_bringup.ros.fly import fly_through_graph
from musls_bringup.shipped import find_scenario
from musls_description.config.schema import to_yaml
from musls_sim.nodes.polling import Poller, message_class
from musls_sim.recording.graph import stamp_ns

IN_AIR = ["start=air", "mission.stages.0.repetitions=30"]
OTHERS = ("/rosout", "/parameter_events")
CHAIN = (
    ("clock", "set-points of the formation"),
    ("set-points of the formation", "last drone's set-point"),
    ("last drone's set-point", "rotor commands"),
    ("clock", "rotor commands"),
)


class Listener:
    """Takes everything, keeps when it was published and when it came."""

    def __init__(self) -> None:
        rclpy.init()
        self._node = rclpy.create_node("benchmark")
        self._poller = Poller(self._node)
        self.types: dict[str, str] = {}
        self.times_ns: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.stamps: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def listen(self) -> None:
        """Subscribe to what is new."""
        for topic, (kind, *_) in self._node.get_topic_names_and_types():
            offers = self._node.get_publishers_info_by_topic(topic)
            if topic in self.types or topic in OTHERS or not offers:
                continue
            self.types[topic] = kind
            offered = offers[0].qos_profile
            profile = QoSProfile(
                depth=1000, reliability=offered.reliability, durability=offered.durability
            )
            take = partial(self._take, topic)
            self._poller.subscribe(message_class(kind), topic, take, profile, raw=True)

    def _take(self, topic: str, data: bytes, published_ns: int) -> None:
        """Note the times of one message."""
        self.times_ns[topic].append((published_ns, time.time_ns()))
        kind = self.types[topic]
        if kind.startswith("px4_msgs"):  # every message begins with its time in us
            self.stamps[topic].append((1000 * unpack_from("<Q", data, 4)[0], published_ns))
        elif topic in ("/clock", "/formation/setpoints"):
            self.stamps[topic].append((stamp_ns(kind, data), published_ns))

    def take(self, seconds: float) -> None:
        """Listen for a time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self._poller.poll():
                time.sleep(0.0005)

    def forget(self) -> None:
        """Begin to count."""
        self.times_ns.clear()
        self.stamps.clear()

    def close(self) -> None:
        """End the node."""
        self._node.destroy_node()
        rclpy.shutdown()


def measure(realtime: bool, seconds: float, folder: Path) -> Listener:
    """Fly the circle and listen."""
    scenario = find_scenario("circle", IN_AIR)
    file = folder / "scenario.yaml"
    file.write_text(to_yaml(scenario), encoding="utf-8")
    listener = Listener()
    with graph.Graph(folder / "logs") as nodes:
        nodes.start(graph.simulator(file, realtime=realtime))
        nodes.start(graph.offboard(scenario.system.n_drones))
        nodes.start(graph.formation(file, autostart=True))
        begin = time.monotonic()
        while "/load/setpoint" not in listener.times_ns:
            listener.listen()
            listener.take(0.2)
            nodes.check()
            if time.monotonic() - begin > 120.0:
                raise SystemExit(f"no flight: {nodes.last_line('offboard')}")
        listener.listen()
        listener.take(3.0)
        listener.forget()
        listener.take(seconds)
        listener.close()
    return listener


def chain_us(listener: Listener) -> dict[tuple[str, str], np.ndarray]:
    """Real time from link to link for each message of the clock, us."""
    drones = [t for t in listener.stamps if t.endswith("trajectory_setpoint")]
    clock = dict(listener.stamps["/clock"])
    links = {
        "clock": clock,
        "set-points of the formation": dict(listener.stamps["/formation/setpoints"]),
        "last drone's set-point": dict(listener.stamps[max(drones)]),
    }
    # The rotor commands that a set-point changes are published with the next state.
    times = sorted(clock)
    follows = dict(zip(times[1:], times[:-1], strict=True))
    motors = [t for t in listener.stamps if t.endswith("actuator_motors")]
    links["rotor commands"] = {
        follows[at]: published for at, published in listener.stamps[max(motors)] if at in follows
    }
    found = {}
    for start, end in CHAIN:
        common = sorted(links[start].keys() & links[end].keys())
        found[start, end] = np.array([(links[end][t] - links[start][t]) / 1e3 for t in common])
    return found


def print_topics(listener: Listener) -> None:
    """One line per kind of topic."""
    clock = np.array(listener.stamps["/clock"])
    sim_s = (clock[-1, 0] - clock[0, 0]) * 1e-9
    wall_s = (clock[-1, 1] - clock[0, 1]) * 1e-9
    print(f"{sim_s:.1f} s flown in {wall_s:.1f} s: {sim_s / wall_s:.2f} x real time")
    kinds = defaultdict(list)
    for topic in listener.types:
        kinds[re.sub(r"_\d+", "_i", topic)].append(topic)
    print(f"{'topic':46s} {'type':42s} {'n':>2s} {'Hz':>6s}  delivery us")
    for name, topics in sorted(kinds.items()):
        times = np.array([pair for topic in topics for pair in listener.times_ns[topic]])
        rate = len(times) / len(topics) / sim_s
        delay = spread((times[:, 1] - times[:, 0]) / 1e3) if len(times) else ""
        print(f"{name:46s} {listener.types[topics[0]]:42s} {len(topics):2d} {rate:6.1f}  {delay}")


def spread(values: np.ndarray) -> str:
    """Median and the middle 90 %."""
    low, middle, high = np.percentile(values, [5, 50, 95])
    return f"{middle:.0f} [{low:.0f}, {high:.0f}]"


def main() -> None:
    """Print rates, latencies and real-time factors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of listening")
    parser.add_argument("--flights", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    os.environ.setdefault("ROS_DOMAIN_ID", "73")
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    for realtime in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            listener = measure(realtime, given.seconds, Path(folder))
        print("\nreal time" if realtime else "\nlockstep, as fast as possible")
        if realtime:
            print_topics(listener)
        for (start, end), values in chain_us(listener).items():
            print(f"{start} -> {end}: {spread(values)} us")
    if given.flights:
        print("\nthe whole circle, recorded")
        scenario, options = find_scenario("circle", []), FlyOptions(report=False)
        with tempfile.TemporaryDirectory() as folder:
            for name, flown in (("through ROS", fly_through_graph), ("in process", fly)):
                summary = flown(scenario, Path(folder) / name.split()[-1], options)
                print(f"{name}: {summary['real_time_factor']:.1f} x real time", flush=True)


if __name__ == "__main__":
    main()
