"""Node `recorder`: writes the topics of this project into a bag, in simulated time.

rosbag2 comes with ROS installations only; this needs none. The bag begins with the mission's first
stage. On standard output it says `recording` when it can begin, `progress TIME STAGE` now and
then, `alert TEXT` when the formation is late or its guard acts, at the end `lost {TOPIC: COUNT}`,
and `done` when the formation has finished, for whoever started it.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path

from std_msgs.msg import String

from musls_control.nodes.stepped_node import LATCHED, DescribedNode, Interrupt, relative, run
from musls_description.config.errors import ConfigError, MuslsError
from musls_sim.nodes.polling import Poller, message_class, profile_of
from musls_sim.recording.graph_signals import ClockHistory, ReceivedBag, stamp_ns
from musls_sim.recording.messages import has_header, serialize, string
from musls_sim.recording.signals import CLOCK, EVENTS, FAULT, STAGE, TF, event_text
from musls_sim.scenario.scenario import load_scenario

QUEUE = 500
POLL_S = 0.005
PROGRESS_S = 0.2
ALERTS = ("guard:", "late:", "arming:", "lost:")
"""Events of the formation that end the wait for a flight at once."""


class Recorder(DescribedNode):
    """The node: takes messages until the formation has finished, then closes the bag."""

    def __init__(self) -> None:
        super().__init__("recorder")
        path = self.value("scenario_file", "", "Scenario (resolved): whose topics.")
        folder = self.value("bag", "", "Folder of the bag; must not exist.")
        if not path or not folder:
            raise ConfigError("parameters scenario_file and bag: both are needed")
        self._stop_when_done = self.value("stop_when_done", False, "End with the mission.")
        self._tells = self.value("progress", False, "Print time, stage and alerts.")
        self._bag = ReceivedBag(Path(folder), load_scenario(Path(path)).system)
        fault = self.value("fault_file", "", "Text of this file, at the end: the last event.")
        self._fault = Path(fault) if fault else None
        self._system_time = self.value(
            "system_time", False, "Real flight: no /clock, times are those of the computer."
        )
        self._poller = Poller(self)
        self._stage = ""
        self._state = ""
        self._clock = ClockHistory()
        for topic in sorted(self._bag.topics, key=lambda t: (t != CLOCK, t)):
            msgtype = self._bag.topics[topic]
            depth = 50 if topic in (STAGE, EVENTS) else QUEUE
            own = {CLOCK: self._take_clock, STAGE: self._take_stage, EVENTS: self._take_event}
            take = own.get(topic)
            if take is None and (topic == TF or has_header(msgtype)):
                take = partial(self._take_stamped, topic)
            take = take or partial(self._take_unstamped, topic)
            kind = message_class(msgtype)
            self._poller.subscribe(kind, relative(topic), take, profile_of(topic, depth), raw=True)
        self._poller.subscribe(String, "formation/state", self._on_state, LATCHED)

    def run(self, interrupt: Interrupt) -> None:
        """Record until the formation is done or interrupted, then finish the bag."""
        try:
            complete = self._record(interrupt)
        except MuslsError as error:
            if not self._stage:
                raise
            print(f"musls: error: {error}", file=sys.stderr, flush=True)
            sys.exit(1)  # bad input would be the code: a launch would end the flight
        finally:
            self._add_fault()
            self._bag.close()
        # Told by stamps that bodies share; in a real flight each has its own.
        losses = {} if self._system_time else self._bag.lost
        if losses:
            what = ", ".join(f"{count} of {topic}" for topic, count in losses.items())
            self.get_logger().warning(f"not recorded: {what}")
        print(f"lost {json.dumps(losses)}", flush=True)
        if complete:
            print("done", flush=True)

    def _record(self, interrupt: Interrupt) -> bool:
        """Take messages; whether the formation has finished."""
        is_announced = False
        next_s = 0.0
        while not interrupt.came:
            if not self._poller.poll():
                if self._stop_when_done and self._is_over:
                    return True
                time.sleep(POLL_S)
            if not is_announced and (self._clock.begun or self._system_time):
                is_announced = True
                print("recording", flush=True)
            if self._tells and self._stage and time.monotonic() >= next_s:
                next_s = time.monotonic() + PROGRESS_S
                print(f"progress {self._newest_ns * 1e-9:.2f} {self._stage}", flush=True)
        return False

    @property
    def _is_over(self) -> bool:
        """Whether the flight has ended; a bag that is played has its last stage, no formation."""
        return self._state == "done" or self._stage == "disarmed"

    def _add_fault(self) -> None:
        """Write the fault into the bag for which the starter of this node ended the flight."""
        if self._fault is not None and self._fault.is_file() and self._stage:
            text = event_text(FAULT, " ".join(self._fault.read_text(encoding="utf-8").split()))
            self._bag.add(EVENTS, serialize(string(text)), self._newest_ns)
            self._fault.unlink()

    @property
    def _newest_ns(self) -> int:
        return time.time_ns() if self._system_time else self._clock.newest_ns

    def _take_clock(self, data: bytes, published_ns: int) -> None:
        time_ns = stamp_ns("rosgraph_msgs/msg/Clock", data)
        if time_ns is None:  # too short to be one
            return
        self._clock.note(published_ns, time_ns)
        self._bag.add(CLOCK, data)

    def _take_stage(self, data: bytes, published_ns: int) -> None:
        time_ns = self._time_ns(published_ns)
        if not self._stage:
            self._bag.begin(time_ns)
        self._stage = _text(data)
        self._bag.add(STAGE, data, time_ns)

    def _take_event(self, data: bytes, published_ns: int) -> None:
        text = _text(data)
        if self._tells and text.startswith(ALERTS):
            print(f"alert {text}", flush=True)
        self._take_unstamped(EVENTS, data, published_ns)

    def _take_stamped(self, topic: str, data: bytes, _: int) -> None:
        self._bag.add(topic, data)

    def _take_unstamped(self, topic: str, data: bytes, published_ns: int) -> None:
        self._bag.add(topic, data, self._time_ns(published_ns))

    def _time_ns(self, published_ns: int) -> int:
        return published_ns if self._system_time else self._clock.at(published_ns)

    def _on_state(self, message: String) -> None:
        if self._stage:
            self._state = message.data


def _text(data: bytes) -> str:
    """Text of a std_msgs/msg/String."""
    length = int.from_bytes(data[4:8], "little")
    return data[8 : 7 + length].decode(errors="replace")


def main(args: list[str] | None = None) -> int:
    """Run the node until the end, SIGINT or SIGTERM; returns the exit code."""
    return run(Recorder, args, Recorder.run)


if __name__ == "__main__":
    sys.exit(main())
