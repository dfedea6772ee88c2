"""Base of the nodes: parameters, steps in simulated or real time, a clean end."""

from __future__ import annotations

import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped, Quaternion
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.clock import Clock as SteadyClock
from rclpy.clock import ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from transforms3d.euler import euler2quat, quat2euler

from musls_control.parent import end_with_parent
from musls_description.errors import MuslsError

FROM_PX4 = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=10,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)
"""PX4 publishes best effort: a reliable subscription would get nothing."""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Late subscribers get the last message."""

DUPLICATE_CHECK_S = 3.0
"""Age up to which a node gives way to another one; an older one stays."""
CHECK_EVERY_S = 0.25
EXIT_BAD_INPUT = 2
WAKE_S = 0.2
"""Longest time in which a waiting node does not look for signals."""

TIME_BACK_S = 1.0
"""Simulated time that goes back by more is another simulation."""


class DuplicateNode(MuslsError):  # noqa: N818 (the name says what happened)
    """Another node of the same kind is running already."""


class DescribedNode(Node):
    """A node whose parameters have descriptions, and ranges where they are numbers."""

    def number(self, name: str, default: float, low: float, high: float, text: str) -> float:
        """Declare a number that may be changed at any time; returns its value."""
        described = ParameterDescriptor(
            description=text,
            floating_point_range=[FloatingPointRange(from_value=low, to_value=high)],
        )
        return self.declare_parameter(name, default, described).value

    def count(self, name: str, default: int, low: int, high: int, text: str) -> int:
        """Declare a whole number that is fixed once the node runs; returns its value."""
        described = ParameterDescriptor(
            description=text,
            read_only=True,
            integer_range=[IntegerRange(from_value=low, to_value=high)],
        )
        return self.declare_parameter(name, default, described).value

    def value(self, name: str, default: Any, text: str, *, fixed: bool = True) -> Any:
        """Declare a parameter that is no number; returns its value."""
        described = ParameterDescriptor(description=text, read_only=fixed)
        return self.declare_parameter(name, default, described).value


class SteppedNode(DescribedNode, ABC):
    """A node that is stepped at a rate: by /clock with `use_sim_time`, else by a timer."""

    def __init__(self, name: str, *, rate_hz: float = 50.0) -> None:
        """Make a node of so many steps a second; with /clock every message is a step."""
        super().__init__(name)
        self.time_s = 0.0
        self._checks = 0
        self._watched: str | None = None
        if self.get_parameter("use_sim_time").value:
            self.create_subscription(Clock, "/clock", self._on_clock, 10)
        else:
            self.create_timer(1.0 / rate_hz, self._on_timer)
        self.create_timer(CHECK_EVERY_S, self._check_duplicate, clock=steady_clock())

    @abstractmethod
    def step(self, time_s: float) -> None:
        """Do one step."""

    def start_over(self) -> None:
        """Simulated time went back: forget everything that was; to be overridden."""

    def publish_alone(self, topic: str) -> None:
        """Name a topic on which only this node may publish."""
        self._watched = topic

    def _on_clock(self, message: Clock) -> None:
        time_s = message.clock.sec + message.clock.nanosec * 1e-9
        if time_s < self.time_s - TIME_BACK_S:
            self.get_logger().warning("time went back: another simulation, starting over")
            self.start_over()
        self.time_s = time_s
        self.step(time_s)

    def _on_timer(self) -> None:
        self.time_s = self.get_clock().now().nanoseconds * 1e-9
        self.step(self.time_s)

    def _check_duplicate(self) -> None:
        """A second node that comes up ends at once; the first one goes on.

        Checks are counted, because a starved node may make its first one late.
        """
        self._checks += 1
        early = self._checks * CHECK_EVERY_S <= DUPLICATE_CHECK_S
        if early and self._watched and self.count_publishers(self._watched) > 1:
            raise DuplicateNode(
                f"{self.get_fully_qualified_name()}: another node publishes {self._watched} "
                "already; only one node may command the drones"
            )


def steady_clock() -> SteadyClock:
    """Real time that never jumps, whatever `use_sim_time` says."""
    return SteadyClock(clock_type=ClockType.STEADY_TIME)


def stamp(message_time: Any, time_s: float) -> Any:
    """Fill a builtin_interfaces/Time."""
    nanoseconds = round(time_s * 1e9)
    message_time.sec, message_time.nanosec = divmod(nanoseconds, 1_000_000_000)
    return message_time


def microseconds(time_s: float) -> int:
    """PX4's time stamp."""
    return round(time_s * 1e6)


class Interrupt:
    """Whether SIGINT or SIGTERM has come since this was made.

    A flag instead of an exception: that could be lost in a callback from C code, or leave the
    clean end half done at a second signal.
    """

    def __init__(self) -> None:
        self.came = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.came = True


def run(
    make: Callable[[], Node],
    args: list[str] | None = None,
    work: Callable[[Any, Interrupt], None] | None = None,
) -> int:
    """Make a node and let it work until SIGINT or SIGTERM; returns the exit code.

    Bad parameters and other errors of ours end with one line and code 2. `work` is what it does
    until it has finished or is interrupted; by default it is spun.
    """
    # Not rclpy's handlers, which take the context away in the midst of a step. SIGINT is set too
    # because a shell's background job inherits it as ignored.
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    node, code = None, 0
    try:
        end_with_parent()
        node = make()
        (work or _spin)(node, Interrupt())
    except KeyboardInterrupt:  # while the node was being made
        pass
    except BAD_INPUT as error:
        code = report(error)
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return code


def _spin(node: Node, interrupt: Interrupt) -> None:
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while not interrupt.came:
        executor.spin_once(timeout_sec=WAKE_S)


BAD_INPUT = (MuslsError, ParameterException)
"""Errors of users, told in one line."""


def report(error: Exception) -> int:
    """Print an error as one line; returns the exit code."""
    print("musls: error:", " ".join(str(error).split()), file=sys.stderr, flush=True)
    return EXIT_BAD_INPUT


# ---------- Reading stamped messages

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Hears best-effort publishers, too, as those of motion capture are."""


def place_and_yaw(message: PoseStamped) -> np.ndarray:
    """x, y, z, yaw of a pose, (4,)."""
    p = message.pose.position
    return np.array([p.x, p.y, p.z, yaw_of(message.pose.orientation)])


def yaw_of(q: Quaternion) -> float:
    """Yaw of an orientation: rotation about z after pitch and roll, REP-103 [rad]."""
    return float(quat2euler([q.w, q.x, q.y, q.z], "sxyz")[2])


def turn_to(q: Quaternion, yaw_rad: float) -> None:
    """Fill an orientation that is level with a yaw."""
    q.w, q.x, q.y, q.z = (float(part) for part in euler2quat(0.0, 0.0, yaw_rad, "sxyz"))


def time_of(message: Any) -> float:
    """Stamp of a message [s]."""
    return message.header.stamp.sec + message.header.stamp.nanosec * 1e-9
