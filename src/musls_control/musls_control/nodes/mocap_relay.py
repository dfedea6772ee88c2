"""Node `mocap_relay`: poses of a motion-capture system for the graph and for PX4. Real flights.

Input, ENU: `/mocap/BODY/pose` (geometry_msgs/PoseStamped) per body, or what a driver publishes
(`input`, see `DRIVERS`). Output: `/BODY/pose` and /tf of load and
drones, and PX4's `vehicle_visual_odometry` of the drones. What is refused, why and since when is on
/diagnostics, in the log and, as `/events`, in the bag; a body whose poses are wrong is named on
`/BODY/mocap/doubt`, which the guard hears.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Pose, PoseStamped, Transform, TransformStamped
from px4_msgs.msg import VehicleAttitude, VehicleOdometry, VehicleStatus
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from musls_control.brief.brief import read_brief
from musls_control.nodes.stepped_node import (
    BASE_LINKS,
    FROM_PX4,
    LATCHED,
    SteppedNode,
    in_world,
    publish_same_frames,
    quaternion_of,
    run,
    vector,
    vector_of,
)
from musls_control.px4.frames import orientation_enu_ned
from musls_control.px4.offboard import ARMING_STATE_ARMED, Vehicle, px4_topic, vehicles
from musls_control.real_flight.capture import DRIVERS, CaptureFilter, Driver
from musls_control.real_flight.mocap import MocapFilter, MocapLimits, Sample, visual_odometry
from musls_description.config.errors import ConfigError

_NOT_GIVEN = np.full(3, np.nan, np.float32)
REPORT_S = 10.0
WARN_S = 1.0
CHANGES = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class MocapRelayNode(SteppedNode):
    """The node: forwards poses of motion capture to PX4 and to this project's topics."""

    def __init__(self) -> None:
        super().__init__("mocap_relay")
        instances = self.value("drones", [1, 2, 3], "PX4 instances, from 1.")
        kind = self.value("input", "poses", f"Driver of the capture: {', '.join(DRIVERS)}.")
        if kind not in DRIVERS:
            raise ConfigError(f"parameter input = {kind}: must be one of {', '.join(DRIVERS)}")
        self._bodies = ["load", *(f"drone_{i}" for i in instances)]
        names = self.value("rigid_bodies", self._bodies, "Names of load and drones there.")
        if len(names) != len(self._bodies):
            raise ConfigError(
                f"parameter rigid_bodies has {len(names)} names, must have {len(self._bodies)}: "
                f"those of {', '.join(self._bodies)}"
            )
        self._north = self.value("north_aligned", False, "Whether the world's y axis points north.")
        self.number("timeout_s", 0.5, 0.02, 60.0, "Silence of a body that is reported [s].")
        position = self.number("position_std_m", 0.002, 1e-5, 1.0, "Noise per axis [m].")
        attitude = self.number("attitude_std_rad", 0.005, 1e-5, 1.0, "Noise per axis [rad].")
        self._position_variance = np.full(3, position**2, np.float32)
        self._attitude_variance = np.full(3, attitude**2, np.float32)
        mission_file = self.value(
            "mission_file", "", "Scenario (resolved): what its bodies can do."
        )
        self._capture = self._judge_of(mission_file)
        self.settings(MocapLimits, lambda limits: setattr(self._capture, "limits", limits))
        self._last_words: dict[str, str] = dict.fromkeys(self._bodies, "")
        self._latencies_s: list[float] = []
        self._px4_age_s: dict[str, float] = {}
        self._silent: set[str] = set()
        self._counts = dict.fromkeys(self._bodies, 0)
        self._next_report_s = self._next_warning_s = self._begun_s = 0.0
        namespaces = self.value("px4_namespaces", [""], "As of the offboard node.")
        self._make_outputs(vehicles(instances, namespaces))
        self._listen(kind, names)
        if self.value("base_links", False, BASE_LINKS):
            publish_same_frames(self, {f"{body}/base_link": body for body in self._bodies})

    @property
    def filters(self) -> dict[str, MocapFilter]:
        """Filter of each body."""
        return self._capture.filters

    def _judge_of(self, mission_file: str) -> CaptureFilter:
        """Filter of the captured poses, from the abilities of the bodies of the flown system."""
        if not mission_file:
            return CaptureFilter(self._bodies, MocapLimits())
        brief = read_brief(Path(mission_file))
        count = brief.system.n_drones
        names = {"load", *(f"drone_{i + 1}" for i in range(count))}
        if strangers := [body for body in self._bodies if body not in names]:
            raise ConfigError(
                f"parameter drones: {strangers[0]} is not in {mission_file}, which is for {count} "
                "drones"
            )
        # Hooks of a delivery close and open where nobody tells the relay.
        tied = not brief.delivers
        return CaptureFilter.of(self._bodies, MocapLimits(), brief.system, tied=tied)

    def _make_outputs(self, fleet: Sequence[Vehicle]) -> None:
        self._pose_out = {
            body: self.create_publisher(PoseStamped, f"{body}/pose", 10) for body in self._bodies
        }
        self._tf_out = self.create_publisher(TFMessage, "/tf", 100)
        topics = {
            f"drone_{vehicle.drone}": px4_topic(
                vehicle.namespace, "in", VehicleOdometry, "vehicle_visual_odometry"
            )
            for vehicle in fleet
        }
        self._odometry_out: dict[str, Publisher] = {
            body: self.create_publisher(VehicleOdometry, topic, 10)
            for body, topic in topics.items()
        }
        self.publish_alone(next(iter(topics.values())))
        self._doubt_out = {
            body: self.create_publisher(String, f"{body}/mocap/doubt", LATCHED)
            for body in self._bodies
        }
        self._events_out = self.create_publisher(String, "events", CHANGES)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        for doubted in self._doubt_out.values():  # of a relay before this one
            doubted.publish(String())
        self.create_subscription(
            String, "events", lambda m: self._capture.on_event(m.data), CHANGES
        )
        for vehicle in fleet:
            status = px4_topic(vehicle.namespace, "out", VehicleStatus)
            attitude = px4_topic(vehicle.namespace, "out", VehicleAttitude)
            drone = f"drone_{vehicle.drone}"
            self.create_subscription(
                VehicleStatus, status, lambda m, d=drone: self._on_status(d, m), FROM_PX4
            )
            self.create_subscription(
                VehicleAttitude, attitude, lambda m, d=drone: self._on_attitude(d, m), FROM_PX4
            )

    def _on_status(self, drone: str, message: VehicleStatus) -> None:
        self._capture.on_armed(drone, armed=message.arming_state == ARMING_STATE_ARMED)

    def _on_attitude(self, drone: str, message: VehicleAttitude) -> None:
        self._px4_age_s[drone] = self._now_s - 1e-6 * message.timestamp_sample
        q = orientation_enu_ned(np.array(message.q, np.float64))
        self._capture.on_attitude(self._now_s, drone, q)

    @property
    def _now_s(self) -> float:
        return self.get_clock().now().nanoseconds * 1e-9

    def _listen(self, kind: str, names: Sequence[str]) -> None:
        """Subscribe with best effort, as capture drivers publish; reliable ones match as well."""
        driver = DRIVERS[kind]
        if not driver.package:
            for body, name in zip(self._bodies, names, strict=True):
                self.create_subscription(
                    PoseStamped,
                    driver.topic.format(name=name),
                    lambda m, b=body: self._take(b, m.header.stamp, m.pose),
                    qos_profile_sensor_data,
                )
            return
        try:
            message = getattr(import_module(f"{driver.package}.msg"), driver.message)
        except ImportError:
            raise ConfigError(
                f"parameter input = {kind}: the package {driver.package} is not installed; build "
                "it in your ROS workspace, or use input:=poses"
            ) from None
        self._body_of = dict(zip(names, self._bodies, strict=True))
        self.create_subscription(
            message, driver.topic, partial(self._take_all, driver), qos_profile_sensor_data
        )

    def _take_all(self, driver: Driver, message: Any) -> None:
        """Take a message that has all bodies."""
        for entry in getattr(message, driver.bodies):
            body = self._body_of.get(getattr(entry, driver.name))
            if body is not None:
                self._take(body, message.header.stamp, entry.pose)

    def _take(self, body: str, when: Any, pose: Pose) -> None:
        now_s = self._now_s
        sample = Sample(
            when.sec + when.nanosec * 1e-9,
            np.array(vector_of(pose.position)),
            np.array(quaternion_of(pose.orientation)),
        )
        if not self._capture.take(now_s, body, sample):
            return
        latency_s = self.filters[body].latency_s(now_s, sample)
        self._latencies_s.append(latency_s)
        self._publish(body, now_s - latency_s, pose)
        if body in self._odometry_out:
            self._odometry_out[body].publish(self._odometry(body, now_s, sample, latency_s))

    def _publish(self, body: str, time_s: float, pose: Pose) -> None:
        """Pose and transform, stamped with the exposure."""
        header = in_world(time_s)
        self._pose_out[body].publish(PoseStamped(header=header, pose=pose))
        place = vector(vector_of(pose.position))
        transform = Transform(translation=place, rotation=pose.orientation)
        self._tf_out.publish(
            TFMessage(
                transforms=[
                    TransformStamped(header=header, child_frame_id=body, transform=transform)
                ]
            )
        )

    def _odometry(
        self, body: str, now_s: float, sample: Sample, latency_s: float
    ) -> VehicleOdometry:
        return VehicleOdometry(
            **visual_odometry(now_s, sample, latency_s, north_aligned=self._north),
            velocity_frame=VehicleOdometry.VELOCITY_FRAME_UNKNOWN,
            velocity=_NOT_GIVEN,
            angular_velocity=_NOT_GIVEN,
            position_variance=self._position_variance,
            orientation_variance=self._attitude_variance,
            velocity_variance=_NOT_GIVEN,
            reset_counter=self.filters[body].resets % 256,
        )

    def step(self, time_s: float) -> None:
        """Say what is missing or refused, and now and then how late the poses are."""
        self._begun_s = self._begun_s or time_s
        self._tell_doubts(time_s)
        if not self._next_warning_s - WARN_S <= time_s < self._next_warning_s:
            self._next_warning_s = time_s + WARN_S
            self._warn(time_s)
            self._report(time_s)
        if self._latencies_s and not (
            self._next_report_s - REPORT_S <= time_s < self._next_report_s
        ):
            self._next_report_s = time_s + REPORT_S
            milliseconds = 1e3 * np.array(self._latencies_s)
            self._latencies_s.clear()
            drops = {b: f.dropped for b, f in self.filters.items() if f.dropped}
            self.get_logger().info(
                f"{len(milliseconds)} poses, latency mean {milliseconds.mean():.1f} ms, largest "
                f"{milliseconds.max():.1f} ms, dropped {drops or 'none'}"
            )

    def _warn(self, time_s: float) -> None:
        timeout_s = self.get_parameter("timeout_s").value
        log = self.get_logger()
        for body, mocap_filter in self.filters.items():
            count = sum(mocap_filter.dropped.values())
            if count > self._counts[body]:
                log.warning(
                    f"{body}: {count - self._counts[body]} poses refused: {mocap_filter.detail}"
                )
                self._counts[body] = count
            silent_s = min(mocap_filter.silent_s(time_s), time_s - self._begun_s)
            if silent_s > timeout_s and body not in self._silent:
                self._silent.add(body)
                log.error(f"{body}: no usable pose for {silent_s:.1f} s")
            elif silent_s <= timeout_s and body in self._silent:
                self._silent.discard(body)
                log.info(f"{body}: poses again")

    def _tell_doubts(self, time_s: float) -> None:
        """Say when a body begins and ceases to be doubted."""
        for body, doubt, text in self._capture.news(time_s):
            self._doubt_out[body].publish(String(data=doubt))
            self._events_out.publish(String(data=f"mocap: {text}"))
            self.say(text, error=bool(doubt))

    def _report(self, time_s: float) -> None:
        """Report on `/diagnostics` what is used and what is refused, why and since when."""
        statuses = []
        for body, mocap_filter in self.filters.items():
            level = DiagnosticStatus.OK
            message = "OK"
            values: dict[str, Any] = {"used": mocap_filter.used, "resets": mocap_filter.resets}
            if body in self._odometry_out:
                values["imu"] = "heard" if mocap_filter.has_attitude else "not heard"
            if (age_s := self._px4_age_s.get(body)) is not None:
                values["px4_age_s"] = f"{age_s:.3f}"
                limits = mocap_filter.limits
                if not -limits.future_tolerance_s <= age_s <= limits.longest_latency_s:
                    level = DiagnosticStatus.WARN
                    message = (
                        f"PX4's newest attitude is {age_s:.3f} s old by this computer's clock: "
                        "clocks not in step? (UXRCE_DDS_SYNCT)"
                    )
            values |= {f"refused: {why}": n for why, n in mocap_filter.dropped.items()}
            since_s = mocap_filter.refused_since_s
            if np.isfinite(since_s):
                level = DiagnosticStatus.ERROR
                message = (
                    f"refused since {since_s:.2f} ({time_s - since_s:.1f} s): "
                    f"{mocap_filter.reason}: {mocap_filter.detail}"
                )
            elif mocap_filter.silent_s(time_s) > self.get_parameter("timeout_s").value:
                level = DiagnosticStatus.ERROR
                message = "no poses"
            statuses.append(
                DiagnosticStatus(
                    level=level,
                    name=f"{self.get_name()}: {body}",
                    message=message,
                    hardware_id=body,
                    values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
                )
            )
        self._diagnostics.publish(DiagnosticArray(header=in_world(time_s), status=statuses))


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(MocapRelayNode, args)


if __name__ == "__main__":
    sys.exit(main())
