"""Node `player`: publishes a recorded bag again, byte for byte; needs no rosbag2.

With `as_mocap` it stands where a motion-capture system stands: the poses of load and drones come
on `/mocap/BODY/pose`, best effort and stamped now. So the chain of a real flight can be tried.
"""

from __future__ import annotations

import sys
import time
from itertools import groupby
from pathlib import Path
from struct import pack

from rclpy.publisher import Publisher
from rclpy.qos import qos_profile_sensor_data
from rosbags.rosbag2 import Reader, ReaderError

from musls_control.nodes.stepped_node import WAKE_S, DescribedNode, Interrupt, relative, run
from musls_description.config.errors import ConfigError
from musls_sim.nodes.polling import message_class, profile_of
from musls_sim.recording.signals import CLOCK

POSE = "geometry_msgs/msg/PoseStamped"
STAMP_AT = 4
"""Offset of the header's time in a message's bytes."""

STEADY_S = 2.0
"""Time without a new subscriber after which it begins."""

QUEUE = 500
"""Messages of a topic that a slow subscriber may still be owed."""

DELIVERY_S = 1.0
"""Time for the last messages to arrive."""


class Player(DescribedNode):
    """The node: waits for listeners, then publishes the messages at their times."""

    def __init__(self) -> None:
        super().__init__("player")
        folder = self.value("bag", "", "Folder with metadata.yaml.")
        self._rate = self.number("rate", 1.0, 0.01, 100.0, "Seconds of the bag per second.")
        self._listeners = self.count(
            "wait_for_listeners", 0, 0, 100, "Subscribers of every topic to wait for."
        )
        self._as_mocap = self.value("as_mocap", False, "Only poses, as a capture system's.")
        if not folder:
            raise ConfigError("parameter bag: which bag? (a folder with metadata.yaml)")
        try:
            self._reader = Reader(Path(folder))
            self._reader.open()
        except ReaderError as error:
            raise ConfigError(f"bag {folder}: {error}") from error
        self._pub: dict[str, Publisher] = {}
        for connection in self._reader.connections:
            if connection.msgcount:
                self._offer(connection.topic, connection.msgtype)

    def _offer(self, topic: str, msgtype: str) -> None:
        if self._as_mocap:
            if topic.endswith("/pose") and msgtype == POSE:
                self._pub[topic] = self.create_publisher(
                    message_class(POSE), f"mocap{topic}", qos_profile_sensor_data
                )
            return
        try:
            kind = message_class(msgtype)
        except (ImportError, AttributeError):
            self.get_logger().warning(f"{topic}: left out, {msgtype} is not installed")
            return
        self._pub[topic] = self.create_publisher(kind, relative(topic), profile_of(topic, QUEUE))

    def _wait_for_listeners(self, interrupt: Interrupt) -> None:
        """Wait for listeners, which need a moment to find all topics."""
        before: list[int] = []
        since = time.perf_counter()
        while not interrupt.came and time.perf_counter() - since < STEADY_S:
            counts = [publisher.get_subscription_count() for publisher in self._pub.values()]
            if counts != before or min(counts, default=0) < self._listeners:
                before = counts
                since = time.perf_counter()
            _sleep(WAKE_S, interrupt)

    def run(self, interrupt: Interrupt) -> None:
        """Publish all messages at their times."""
        self._wait_for_listeners(interrupt)
        begin = time.perf_counter()
        first_ns = None
        for time_ns, messages in groupby(self._reader.messages(), key=lambda entry: entry[1]):
            first_ns = time_ns if first_ns is None else first_ns
            at_s = begin + (time_ns - first_ns) * 1e-9 / self._rate
            _sleep(at_s - time.perf_counter(), interrupt)
            if interrupt.came:
                break
            # The clock first: what has no stamp belongs to the clock message before it.
            for connection, _, data in sorted(messages, key=lambda entry: entry[0].topic != CLOCK):
                if connection.topic in self._pub:
                    self._pub[connection.topic].publish(self._sent(bytes(data)))
        _sleep(DELIVERY_S, interrupt)
        self._reader.close()

    def _sent(self, data: bytes) -> bytes:
        """Message to publish: that of the bag, or one stamped now where it is motion capture."""
        if not self._as_mocap:
            return data
        now = divmod(self.get_clock().now().nanoseconds, 1_000_000_000)
        return data[:STAMP_AT] + pack("<iI", *now) + data[STAMP_AT + 8 :]


def _sleep(seconds: float, interrupt: Interrupt) -> None:
    """Sleep until the time is over or a signal has come."""
    end = time.perf_counter() + seconds
    while not interrupt.came and (wait_s := end - time.perf_counter()) > 0.0:
        time.sleep(min(wait_s, WAKE_S))


def main(args: list[str] | None = None) -> int:
    """Run the node to the end of the bag, SIGINT or SIGTERM; returns the exit code."""
    return run(Player, args, Player.run)


if __name__ == "__main__":
    sys.exit(main())
