"""Base of the nodes: parameters, steps in simulated or real time, a clean end."""

from __future__ import annotations

import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point, PoseStamped, Quaternion, TransformStamped, Vector3
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock as SteadyClock
from rclpy.clock import ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from musls_control.child_processes import EXIT_BAD_INPUT, CallbackErrors, end_with_parent
from musls_description.config.documented_keys import json_schema, unit_of
from musls_description.config.errors import MuslsError
from musls_description.numerics import rotations

FROM_PX4 = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=10,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)
"""PX4 publishes best effort: a reliable subscription would get nothing."""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Late subscribers get the last message."""

OTHER_CLOCK_S = 10.0
"""Time between two log lines about a second clock."""

DUPLICATE_CHECK_S = 3.0
"""Age up to which a node gives way to another one; an older one stays."""
CHECK_EVERY_S = 0.25
RATE_HZ = 50.0
WAKE_S = 0.2
"""Longest time in which a waiting node does not look for signals."""

TIME_BACK_S = 1.0
"""Step back of simulated time from which it is another simulation, or a second clock."""


class DuplicateNode(MuslsError):  # noqa: N818 (the name says what happened)
    """Another node of the same kind is running already."""


T = TypeVar("T")


class DescribedNode(Node):
    """A node whose parameters have descriptions, and ranges where they are numbers."""

    def say(self, text: str, *, error: bool = False) -> None:
        """Log a line whose severity is known only now.

        rclpy ties the place of a call to the severity of its first one, and raises at another.
        """
        if error:
            self.get_logger().error(text)
        else:
            self.get_logger().info(text)

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

    def settings(self, kind: type[T], take: Callable[[T], None]) -> None:
        """Declare the fields of a `spec` that have a range as numbers, changeable at any time.

        `take`: gets the settings now, and again whenever parameters change. Fields that are
        parameters already count, too.
        """
        properties = json_schema(kind)["properties"]
        for name, of in properties.items():
            if "minimum" in of:
                text = f"{of['description'].removesuffix('.')} [{unit_of(name)}]"
                self.number(name, of["default"], of["minimum"], of["maximum"], text)
        names = [name for name in properties if self.has_parameter(name)]

        def changed(parameters: list) -> SetParametersResult:
            new = {p.name: p.value for p in parameters}
            take(kind(**{n: new.get(n, self.get_parameter(n).value) for n in names}))
            return SetParametersResult(successful=True)

        changed([])
        self.add_on_set_parameters_callback(changed)


class SurvivingNode(DescribedNode):
    """A node that an exception in one callback does not end.

    Attributes:
        time_s: Time of the last step.
        errors: Exceptions that did not end it.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.time_s = 0.0
        self.errors = CallbackErrors()
        self._errors_out = self.create_publisher(DiagnosticArray, "/diagnostics", 10)

    @property
    def busy(self) -> str:
        """Why the node must not end now, "" if it may."""
        return ""

    @contextmanager
    def surviving(self) -> Iterator[None]:
        """Context for one drone's work: an exception in it must not stop the others."""
        try:
            yield
        except Exception as error:
            self.survive(error)

    def survive(self, error: Exception) -> None:
        """Continue after an exception in a callback: log it once, count it on `/diagnostics`.

        Raises:
            MuslsError: The same, if the node may end.
        """
        if isinstance(error, DuplicateNode) or (isinstance(error, MuslsError) and not self.busy):
            raise error
        if text := self.errors.note(error):
            self.get_logger().error(f"error in a callback, the node goes on: {text}")
        values = [KeyValue(key=what, value=str(n)) for what, n in self.errors.counts.items()]
        status = DiagnosticStatus(
            level=DiagnosticStatus.ERROR,
            name=f"{self.get_name()}: callbacks",
            message=f"{self.errors.counts.total()} errors",
            hardware_id=self.get_name(),
            values=values,
        )
        self._errors_out.publish(DiagnosticArray(header=in_world(self.time_s), status=[status]))


class SteppedNode(SurvivingNode, ABC):
    """A node that is stepped at a rate: by /clock with `use_sim_time`, else by a timer.

    Attributes:
        active: Whether it is stepped.
    """

    active = True

    def __init__(self, name: str) -> None:
        """Make a node with `RATE_HZ` steps a second; with /clock each message is a step."""
        super().__init__(name)
        self._checks = 0
        self._watched: str | None = None
        self._other_clock_s = -np.inf
        if self.get_parameter("use_sim_time").value:
            self.create_subscription(Clock, "/clock", self._on_clock, 10)
        else:
            self.create_timer(1.0 / RATE_HZ, self._on_timer)
        self.create_timer(CHECK_EVERY_S, self._check_duplicate, clock=steady_clock())

    @abstractmethod
    def step(self, time_s: float) -> None:
        """Do one step."""

    def start_over(self) -> None:
        """Forget everything: simulated time went back; to be overridden."""

    def follows(self, time_s: float) -> bool:
        """Whether a time that jumps is that of this node's own simulator; to be overridden."""
        return True

    def publish_alone(self, topic: str) -> None:
        """Name a topic on which only this node may publish."""
        self._watched = topic

    def _on_clock(self, message: Clock) -> None:
        time_s = message.clock.sec + message.clock.nanosec * 1e-9
        jumps = self.time_s > 0.0 and abs(time_s - self.time_s) > TIME_BACK_S
        if jumps and not self.follows(time_s):
            if not self._other_clock_s <= self.time_s < self._other_clock_s + OTHER_CLOCK_S:
                self._other_clock_s = self.time_s
                self.get_logger().error(
                    f"/clock says {time_s:.2f} s, the poses are of {self.time_s:.2f} s: somebody "
                    "else's clock, passed over; another ROS_DOMAIN_ID keeps simulations apart"
                )
            return
        if time_s < self.time_s - TIME_BACK_S:
            self.get_logger().warning("time went back: another simulation, starting over")
            self.start_over()
        self.time_s = time_s
        if self.active:
            self.step(time_s)

    def _on_timer(self) -> None:
        self.time_s = self.get_clock().now().nanoseconds * 1e-9
        if self.active:
            self.step(self.time_s)

    def _check_duplicate(self) -> None:
        """End this node if one of the same name runs already.

        Checks are counted, because a starved node may make its first one late.
        """
        self._checks += 1
        early = self._checks * CHECK_EVERY_S <= DUPLICATE_CHECK_S
        if early and self._watched and self.count_publishers(self._watched) > 1:
            raise DuplicateNode(
                f"{self.get_fully_qualified_name()}: another node publishes {self._watched} "
                "already; only one node may command the drones"
            )


def relative(topic: str) -> str:
    """A topic's name in the node's namespace; that of time, frames and diagnostics stays."""
    return topic if topic in WHOLE_GRAPH else topic.lstrip("/")


WHOLE_GRAPH = ("/clock", "/tf", "/tf_static", "/diagnostics")


BASE_LINKS = "Also frames BODY/base_link, as REP-105 names them."


def publish_same_frames(node: Node, parents: Mapping[str, str]) -> None:
    """Say on `/tf_static` of frames that they are the same as others, {child: parent}."""
    same = []
    for child, parent in parents.items():
        transform = TransformStamped(header=Header(frame_id=parent), child_frame_id=child)
        transform.transform.rotation.w = 1.0
        same.append(transform)
    node.create_publisher(TFMessage, "/tf_static", LATCHED).publish(TFMessage(transforms=same))


class _Unattended(CallbackGroup):
    """Subscriptions that an executor passes over."""

    def can_execute(self, entity: object) -> bool:
        return False

    def beginning_execution(self, entity: object) -> bool:
        return False

    def ending_execution(self, entity: object) -> None:
        pass


def unattended(node: Node, kind: type, topic: str) -> Subscription:
    """Subscription without a callback: the newest message waits until `newest` takes it."""
    return node.create_subscription(kind, topic, _not_called, NEWEST, callback_group=_Unattended())


def _not_called(_: Any) -> None:
    raise AssertionError("no executor takes these messages")


def newest(subscription: Subscription) -> Any:
    """The message of an `unattended` subscription that came since the last call, or None."""
    with subscription.handle:
        pair = subscription.handle.take_message(subscription.msg_type, False)
    return None if pair is None else pair[0]


class ManagedNode(LifecycleNodeMixin, SteppedNode):
    """A stepped node with ROS's lifecycle: it is stepped while it is active.

    With the parameter `managed` a lifecycle manager configures and activates it; else it does so by
    itself.
    """

    active = False

    def __init__(self, name: str) -> None:
        SteppedNode.__init__(self, name)
        LifecycleNodeMixin.__init__(self)
        self._managed = self.value("managed", False, "Wait for a lifecycle manager to activate.")
        for service in self.services:
            if service.srv_type is ChangeState:
                service.callback = partial(self._on_change_state, service.callback)

    def _on_change_state(
        self,
        change: Callable[[ChangeState.Request, ChangeState.Response], ChangeState.Response],
        request: ChangeState.Request,
        answer: ChangeState.Response,
    ) -> ChangeState.Response:
        """Answer also what the state machine cannot do; it cannot take a shutdown back either."""
        transition = request.transition
        if (transition.id in SHUTDOWNS or "shutdown" in transition.label) and self.busy:
            self.get_logger().error(f"not shut down: {self.busy}")
            answer.success = False
            return answer
        try:
            return change(request, answer)
        except RuntimeError as error:  # rcl's, of a transition that the present state has not
            reason = str(error).partition(", at ")[0]
            self.get_logger().error(
                f"transition {transition.label or transition.id} refused: {reason}"
            )
            answer.success = False
            return answer

    def come_up(self) -> None:
        """Configure and activate, if nobody else does; when all is made."""
        if not self._managed:
            self.trigger_configure()
            self.trigger_activate()

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Step from now on."""
        self.active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop stepping; refused while drones fly."""
        if self.busy:
            self.get_logger().error(f"not deactivated: {self.busy}")
            return TransitionCallbackReturn.FAILURE
        self.active = False
        return super().on_deactivate(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop stepping for good; not asked for while drones fly."""
        self.active = False
        return super().on_shutdown(state)


SHUTDOWNS = (
    Transition.TRANSITION_UNCONFIGURED_SHUTDOWN,
    Transition.TRANSITION_INACTIVE_SHUTDOWN,
    Transition.TRANSITION_ACTIVE_SHUTDOWN,
)


def steady_clock() -> SteadyClock:
    """Real time that never jumps, also with `use_sim_time`."""
    return SteadyClock(clock_type=ClockType.STEADY_TIME)


def stamp(time_s: float) -> Time:
    """A time as a ROS message."""
    sec, nanosec = divmod(round(time_s * 1e9), 1_000_000_000)
    return Time(sec=sec, nanosec=nanosec)


def duration(time_s: float) -> Duration:
    """A time span as a ROS message."""
    return Duration(
        **dict(zip(("sec", "nanosec"), divmod(round(time_s * 1e9), 10**9), strict=True))
    )


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
    # SIGINT is set too because a shell's background job inherits it as ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    node = None
    code = 0
    try:
        _begin(args)
        end_with_parent()
        node = make()
        (work or _spin)(node, Interrupt())
    except KeyboardInterrupt:  # while the node was being made
        pass
    except (MuslsError, ParameterException) as error:  # of users, told in one line
        print("musls: error:", " ".join(str(error).split()), file=sys.stderr, flush=True)
        code = EXIT_BAD_INPUT
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
        for number in (signal.SIGINT, signal.SIGTERM):  # launch repeats the terminal's Ctrl-C
            signal.signal(number, signal.SIG_IGN)
    return code


def _begin(args: list[str] | None) -> None:
    """Initialise ROS."""
    try:
        # Not rclpy's handlers, which take the context away in the midst of a step.
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:  # rcl's, with places in its sources
        raise MuslsError(str(error).partition(", at /")[0]) from None


def _spin(node: SurvivingNode, interrupt: Interrupt) -> None:
    """Call the callbacks that are due; an exception in one must not end the drones' guidance."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while not interrupt.came and rclpy.ok():
        try:
            executor.spin_once(timeout_sec=WAKE_S)
        except Exception as error:
            node.survive(error)


# ---------- Parts of messages

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Hears best-effort publishers, too, as those of motion capture are."""


def in_world(time_s: float) -> Header:
    """Head of a message in the world frame."""
    return Header(frame_id="world", stamp=stamp(time_s))


def time_of(message: Any) -> float:
    """Stamp of a message [s]."""
    return message.header.stamp.sec + message.header.stamp.nanosec * 1e-9


def point(place: Iterable[float]) -> Point:
    """A place."""
    return Point(**dict(zip("xyz", map(float, place), strict=True)))


def vector(parts: Iterable[float]) -> Vector3:
    """A vector."""
    return Vector3(**dict(zip("xyz", map(float, parts), strict=True)))


def quaternion(parts: Iterable[float]) -> Quaternion:
    """An orientation from w, x, y, z."""
    return Quaternion(**dict(zip("wxyz", map(float, parts), strict=True)))


def vector_of(message: Point | Vector3) -> tuple[float, float, float]:
    """x, y, z."""
    return message.x, message.y, message.z


def quaternion_of(message: Quaternion) -> tuple[float, float, float, float]:
    """w, x, y, z."""
    return message.w, message.x, message.y, message.z


def place_and_yaw(message: PoseStamped) -> np.ndarray:
    """x, y, z, yaw of a pose, (4,)."""
    return np.array([*vector_of(message.pose.position), yaw_of(message.pose.orientation)])


def yaw_of(q: Quaternion) -> float:
    """Yaw of an orientation: rotation about z after pitch and roll, REP-103 [rad]."""
    return float(rotations.yaw_of(np.array(quaternion_of(q))))


def level(yaw_rad: float) -> Quaternion:
    """An orientation that is level, with a yaw."""
    return quaternion(rotations.from_yaw(np.array(yaw_rad)))
