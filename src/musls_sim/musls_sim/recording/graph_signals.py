"""The signals on a ROS graph, without ROS: received bytes into a bag, states as messages."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from struct import unpack_from
from typing import Any

import numpy as np

from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import rotate
from musls_description.system.slung_system import RigSystem
from musls_sim.recording import messages as msg
from musls_sim.recording.bag_file import HEAD_SIZE, BagFile, RowTemplate, render_each
from musls_sim.recording.messages import has_header
from musls_sim.recording.signals import CLOCK, TF, Rate, Row, recorded_topics

_AFTER_ENCAPSULATION = 4
_FIRST_TRANSFORM = 8
"""A TFMessage begins with the number of its transforms."""


def stamp_ns(msgtype: str, data: bytes) -> int | None:
    """Time in the header of a message, None if its type has none."""
    transforms = msgtype == "tf2_msgs/msg/TFMessage"
    if not (transforms or msgtype == "rosgraph_msgs/msg/Clock" or has_header(msgtype)):
        return None
    offset = _FIRST_TRANSFORM if transforms else _AFTER_ENCAPSULATION
    if len(data) < offset + 8:
        return None
    sec, nanosec = unpack_from("<iI", data, offset)
    return int(sec) * 1_000_000_000 + int(nanosec)


class ClockHistory:
    """Simulated time at real times, for messages that have no stamp of their own.

    Attributes:
        newest_ns: Simulated time of its last message.
    """

    def __init__(self, length: int = 2000) -> None:
        self._heard: deque[tuple[int, int]] = deque(maxlen=length)
        self.begun = False
        self.newest_ns = 0

    def note(self, published_ns: int, time_ns: int) -> None:
        """Take note of a clock message: when it was published, and what it said."""
        self._heard.append((published_ns, time_ns))
        self.begun = True
        self.newest_ns = time_ns

    def at(self, published_ns: int) -> int:
        """Clock's time when something was published; its first time before that."""
        for heard_ns, time_ns in reversed(self._heard):
            if heard_ns <= published_ns:
                return time_ns
        return self._heard[0][1] if self._heard else 0


class ReceivedBag:
    """A bag under construction; messages are put in the order of time, `buffer_s` at a time.

    Of what comes before `begin` only set-points are kept.

    Attributes:
        topics: Message type of each topic.
    """

    def __init__(self, folder: Path, system: RigSystem, buffer_s: float = 5.0) -> None:
        """`buffer_s`: recorded time kept in memory for sorting."""
        self.topics = recorded_topics(system)
        self._channel = {topic: k for k, topic in enumerate(self.topics, start=1)}
        self._latched = {self._channel[t] for t in self.topics if t.endswith("/setpoint")}
        self._buffer_ns = round(buffer_s * 1e9)
        self._waiting: list[tuple[int, int, bytes]] = []
        self._newest_ns = 0
        self._done_ns = 0
        self._begun = False
        self._bag: BagFile | None = BagFile(folder, self.topics)
        self._counts = _Counted(system)

    def begin(self, time_ns: int) -> None:
        """Set the bag's begin: older messages that came before are dropped."""
        self._begun = True
        self._forget(time_ns)

    def add(self, topic: str, data: bytes, time_ns: int | None = None) -> None:
        """Take a message, CDR with its header; `time_ns` is needed if its type has no stamp."""
        if time_ns is None:
            time_ns = stamp_ns(self.topics[topic], data)
        if time_ns is None or self._bag is None:
            raise ValueError(f"a message on {topic} without a time, or after the end of the bag")
        self._newest_ns = max(self._newest_ns, time_ns)
        self._waiting.append((time_ns, self._channel[topic], data))
        if self._newest_ns - self._done_ns > 2 * self._buffer_ns:
            self._done_ns = self._newest_ns - self._buffer_ns
            if self._begun:
                self._write(self._done_ns, self._bag)
            else:
                self._forget(self._done_ns)

    def _forget(self, until_ns: int) -> None:
        self._waiting = [w for w in self._waiting if w[0] >= until_ns or w[1] in self._latched]

    @property
    def lost(self) -> dict[str, int]:
        """Messages that are missing in the bag, by topic; known when it is closed.

        Topics of one rate are published together: what one has and another lacks was lost.
        """
        return self._counts.missing(self._channel)

    def close(self) -> None:
        """Write the rest and finish the bag; further calls do nothing."""
        if self._bag is None:
            return
        bag = self._bag
        self._bag = None
        try:
            self._write(None, bag)
        finally:
            bag.close()

    def _write(self, until_ns: int | None, bag: BagFile) -> None:
        self._waiting.sort(key=lambda entry: entry[0])
        count = len(self._waiting)
        if until_ns is not None:
            count = next(k for k, entry in enumerate(self._waiting) if entry[0] >= until_ns)
        ready = self._waiting[:count]
        self._waiting = self._waiting[count:]
        self._counts.note(ready)
        bag.write([render_each(ready)])


class _Counted:
    """Count of each topic's messages, against the times at which its kind was published."""

    def __init__(self, system: RigSystem) -> None:
        state, shape = (
            Counter([place.topic for place in Row(system, rate).places])
            for rate in (Rate.STATE, Rate.SHAPE)
        )
        # /tf comes with both; that it lacks is seen among the states, which come more often.
        self._kinds = [state | Counter([CLOCK, TF]), shape]
        self._times: dict[int, Counter[int]] = {}

    def note(self, messages: list[tuple[int, int, bytes]]) -> None:
        """Count messages that are written: time, channel, bytes."""
        for time_ns, channel, _ in messages:
            self._times.setdefault(channel, Counter())[time_ns] += 1

    def missing(self, channels: Mapping[str, int]) -> dict[str, int]:
        """Messages that lack, by topic; the first and the last time may be cut and do not count.

        Topics with stamps of their own, such as bodies that are seen one by one, cannot be told.
        """
        losses: dict[str, int] = {}
        for kind in self._kinds:
            counters = {t: self._times.get(channels[t], Counter()) for t in kind if t in channels}
            totals = Counter(time_ns for counter in counters.values() for time_ns in counter)
            counters = {  # of what is not published here, as in a real flight, nothing
                topic: counter
                for topic, counter in counters.items()
                if 2 * sum(totals[time_ns] > 1 for time_ns in counter) > len(counter)
            }
            times = sorted(set().union(*counters.values()))[1:-1]
            for topic, counter in counters.items():
                lack = sum(max(kind[topic] - counter[time_ns], 0) for time_ns in times)
                losses |= {topic: lack} if lack else {}
        return losses


class StateMessages:
    """The present state as the messages that a recorder would write, to be published.

    Attributes:
        topics: Message type of each topic.
    """

    def __init__(self, system: RigSystem, rate: Rate) -> None:
        self._row = Row(system, rate)
        self.topics = self._row.topics
        self._template = RowTemplate(self._row, {topic: k for k, topic in enumerate(self.topics)})

    def render(self, time_s: float, session: Any) -> Iterator[tuple[str, bytes]]:
        """Topic and message, CDR with its header, of a session's state at a time."""
        values = zip(self._row.shapes, self._row.values(session), strict=True)
        row = self._row.written({name: np.asarray(value)[None] for name, value in values})
        rendered = self._template.render(np.array([round(time_s * 1e9)]), row)
        data = bytes(rendered.data)
        ends = np.cumsum(rendered.sizes).tolist()
        starts = [0, *ends[:-1]]
        for topic, start, end in zip(self._template.topics, starts, ends, strict=True):
            yield topic, data[start + HEAD_SIZE : end]


# ---------- Gazebo's odometry, which comes body by body

WAITING_TIMES = 10
"""Times that may be incomplete at once, 0.2 s; older ones are given up."""


class OdometryRows:
    """Puts the odometry of all bodies of one time together.

    Attributes:
        lost: Times that stayed incomplete.
    """

    def __init__(self, bodies: Sequence[str]) -> None:
        self._bodies = tuple(bodies)
        self._rows: dict[int, dict[str, Array]] = {}
        self._done_ns = -1
        self.lost = 0

    def take(self, body: str, time_ns: int, odometry: Array) -> dict[str, Array] | None:
        """Add one body's odometry; returns that of all, in their order, if it is the last one."""
        if time_ns <= self._done_ns:
            return None
        row = self._rows.setdefault(time_ns, {})
        row[body] = odometry
        if len(row) == len(self._bodies):
            del self._rows[time_ns]
            self._give_up(time_ns)
            return {name: row[name] for name in self._bodies}
        if len(self._rows) > WAITING_TIMES:
            self._give_up(min(self._rows))
        return None

    def _give_up(self, until_ns: int) -> None:
        late = [time for time in self._rows if time <= until_ns]
        for time in late:
            del self._rows[time]
        self.lost += len(late)
        self._done_ns = until_ns


def odometry_messages(time_ns: int, odometry: Mapping[str, Array]) -> Iterator[tuple[str, Any]]:
    """Topic and message of the poses and twists of bodies, then /tf and last /clock.

    `odometry`: of each body: position and orientation [w, x, y, z] in the world, velocity and
    angular velocity in the body's frame, (13,).
    """
    for body, row in odometry.items():
        turn = row[3:7]
        yield (
            f"/{body}/pose",
            msg.stamped(
                "geometry_msgs/msg/PoseStamped",
                time_ns,
                msg.WORLD,
                pose__position=row[:3],
                pose__orientation=turn,
            ),
        )
        yield (
            f"/{body}/twist",
            msg.stamped(
                "geometry_msgs/msg/TwistStamped",
                time_ns,
                msg.WORLD,
                twist__linear=rotate(turn, row[7:10]),
                twist__angular=rotate(turn, row[10:13]),
            ),
        )
    rows = np.array([*odometry.values()])
    yield TF, msg.transforms(time_ns, [*odometry], rows[:, :3], rows[:, 3:7])
    yield CLOCK, msg.clock(time_ns)
