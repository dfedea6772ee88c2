"""A hall for rehearsals: the simulator's truth as motion capture, which may lie; no program.

The node stands between the simulator, whose poses have the names `/truth/BODY/pose`, and
`mocap_relay`, and notes how a flight goes. It can cut the link of one drone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from px4_msgs import msg as px4
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.subscription import Subscription
from std_msgs.msg import String

from musls_control.nodes.stepped_node import (
    FROM_PX4,
    LATCHED,
    point,
    quaternion,
    quaternion_of,
    time_of,
    vector_of,
)
from musls_control.px4.frames import world_enu_ned
from musls_control.px4.offboard import (
    ARMING_STATE_ARMED,
    COMMAND_LAND,
    COMMAND_SET_MODE,
    CUSTOM_MODE_ENABLED,
    px4_topic,
    target_system,
)
from musls_control.real_flight.capture_faults import Fault, Pose

_EVERY = QoSProfile(depth=200, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_TO_PX4 = (px4.OffboardControlMode, px4.TrajectorySetpoint, px4.VehicleCommand)
_FROM_PX4 = (px4.VehicleStatus, px4.VehicleCommandAck, px4.VehicleOdometry, px4.VehicleAttitude)
_LAND = (COMMAND_LAND,)
_HOLD = (COMMAND_SET_MODE, CUSTOM_MODE_ENABLED, 4.0, 3.0)
"""Commands with their parameters; main mode 4 is auto, its sub-mode 3 hold."""


class Hall:
    """Motion capture, and what is noted of a flight.

    Attributes:
        bodies: Load and drones, by name.
        fault: Function that replaces what the capture sees; None for the truth.
        late_s: Age of the stamps of its poses.
        time_s: Simulated time of the newest pose.
        truth: True poses of the bodies, by name.
        events: Time and text of what was told on `/events`.
        armed: Whether the drones are armed, by name.
        misled_m: Largest distance from the truth of what an armed PX4 was sent as its place.
    """

    def __init__(self, n_drones: int, cut: int | None = None) -> None:
        """`cut`: drone (from 1) whose link to the nodes can be cut, see `renamed`."""
        self.bodies = ["load", *(f"drone_{i}" for i in range(1, n_drones + 1))]
        self.fault: Fault | None = None
        self.late_s = 0.0
        self.time_s = 0.0
        self.truth: dict[str, Pose] = {}
        self.events: list[tuple[float, str]] = []
        self.armed: dict[str, bool] = {}
        self.misled_m = 0.0
        self._texts: dict[str, str] = {}
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self._node = node = rclpy.create_node("hall", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(node)
        self._out = {
            body: node.create_publisher(PoseStamped, f"/mocap/{body}/pose", qos_profile_sensor_data)
            for body in self.bodies
        }
        for body in self.bodies:
            node.create_subscription(
                PoseStamped, f"/truth/{body}/pose", lambda m, b=body: self._pass(b, m), 5
            )
        node.create_subscription(String, "/events", self._on_event, _EVERY)
        for k, drone in enumerate(self.bodies[1:], start=1):
            status = px4_topic(k, "out", px4.VehicleStatus)
            odometry_topic = px4_topic(k, "in", px4.VehicleOdometry, "vehicle_visual_odometry")
            for kind, topic, take in (
                (px4.VehicleStatus, status, self._on_status),
                (px4.VehicleOdometry, odometry_topic, self._on_odometry),
            ):
                node.create_subscription(kind, f"/{topic}", partial(take, drone), FROM_PX4)
        self._listen("/mission/stage", _EVERY)
        self._listen("/formation/state", LATCHED)
        for drone in self.bodies[1:]:
            self._listen(f"/{drone}/offboard/phase", LATCHED)
        self._link: list[Subscription] = []
        self._cut = cut
        if cut is not None:
            for way, kinds in (("in", _TO_PX4), ("out", _FROM_PX4)):
                for kind in kinds:
                    self._bridge(kind, px4_topic(cut, way, kind), inwards=way == "in")

    @property
    def renamed(self) -> dict[str, str]:
        """Other names of the simulator's topics, so that all goes through the hall."""
        names = {f"/{body}/pose": f"/truth/{body}/pose" for body in self.bodies}
        names["/tf"] = "/truth/tf"
        if self._cut is not None:
            for way, kinds in (("in", _TO_PX4), ("out", _FROM_PX4)):
                topics = [f"/{px4_topic(self._cut, way, kind)}" for kind in kinds]
                names |= {topic: f"/far{topic}" for topic in topics}
        return names

    def text(self, topic: str) -> str:
        """The last text on `/mission/stage`, `/formation/state` or a drone's phase."""
        return self._texts.get(topic, "")

    def spin(self, seconds: float, condition: Callable[[], bool] = lambda: False) -> bool:
        """Pass messages for a time, or until a condition holds; returns whether it does."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if condition():
                return True
            self._executor.spin_once(timeout_sec=0.05)
        return condition()

    def cut_link(self) -> None:
        """Cut the link between a drone and the nodes."""
        for subscription in self._link:
            self._node.destroy_subscription(subscription)
        self._link.clear()

    def apply_event(self, fields: str) -> None:
        """Have the simulator bring an event about, fields as JSON."""
        self._tell(String, "/musls/apply_event", String(data=fields), 10)

    def as_pilot(self, drone: int, *, lands: bool) -> None:
        """Take a drone (from 1) out of offboard mode by its remote control: hold, or land."""
        number, *values = _LAND if lands else _HOLD
        parameters = {f"param{k}": value for k, value in enumerate(values, start=1)}
        command = px4.VehicleCommand(
            command=number, target_system=target_system(drone), from_external=True, **parameters
        )
        topic = f"/{px4_topic(drone, 'in', px4.VehicleCommand)}"
        self._tell(px4.VehicleCommand, topic, command, FROM_PX4)

    def close(self) -> None:
        """End the node."""
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()

    def __enter__(self) -> Hall:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _tell(self, kind: type, topic: str, message: Any, profile: Any) -> None:
        """Publish once, to readers that have had time to find this writer."""
        out = self._node.create_publisher(kind, topic, profile)
        self.spin(5.0, lambda: out.get_subscription_count() > 0)
        self.spin(0.3)
        out.publish(message)

    def _listen(self, topic: str, profile: QoSProfile) -> None:
        def keep(message: String) -> None:
            self._texts[topic] = message.data

        self._node.create_subscription(String, topic, keep, profile)

    def _bridge(self, kind: type, topic: str, *, inwards: bool) -> None:
        near = f"/{topic}"
        far = f"/far/{topic}"
        origin, target = (near, far) if inwards else (far, near)
        out = self._node.create_publisher(kind, target, FROM_PX4)
        subscription = self._node.create_subscription(kind, origin, out.publish, FROM_PX4)
        self._link.append(subscription)

    def _on_event(self, message: String) -> None:
        self.events.append((self.time_s, message.data))

    def _on_status(self, drone: str, message: px4.VehicleStatus) -> None:
        self.armed[drone] = message.arming_state == ARMING_STATE_ARMED

    def _on_odometry(self, drone: str, message: px4.VehicleOdometry) -> None:
        place = world_enu_ned(np.array(message.position, float))
        off_m = float(np.linalg.norm(place - self.truth[drone][0]))
        if self.armed.get(drone):
            self.misled_m = max(self.misled_m, off_m)

    def _pass(self, body: str, message: PoseStamped) -> None:
        """Send what the capture makes of a pose, stamped now."""
        self.time_s = time_of(message)
        place = np.array(vector_of(message.pose.position))
        self.truth[body] = place, np.array(quaternion_of(message.pose.orientation))
        poses: Mapping[str, Pose] = self.truth
        pose = self.fault(body, poses) if self.fault else poses[body]
        if pose is None:
            return
        out = PoseStamped()
        stamp_ns = self._node.get_clock().now().nanoseconds - round(self.late_s * 1e9)
        out.header.stamp.sec, out.header.stamp.nanosec = divmod(stamp_ns, 1_000_000_000)
        out.pose.position = point(pose[0])
        out.pose.orientation = quaternion(pose[1])
        self._out[body].publish(out)
