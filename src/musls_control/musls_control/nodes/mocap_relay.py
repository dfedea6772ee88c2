"""Node `mocap_relay`: poses of a motion-capture system for the graph and for PX4. Real flights.

Input, ENU: `/mocap/BODY/pose` (geometry_msgs/PoseStamped) per body, or with `input: mocap4r2` one
`/rigid_bodies` (mocap4r2_msgs/RigidBodies) with all. Output: `/BODY/pose` and /tf of load and
drones, and PX4's `vehicle_visual_odometry` of the drones. Refused samples are logged with
the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped, Transform, TransformStamped
from px4_msgs.msg import VehicleOdometry
from rclpy.publisher import Publisher
from rclpy.qos import qos_profile_sensor_data
from tf2_msgs.msg import TFMessage

from musls_control.nodes.stepped_node import (
    BASE_LINKS,
    SteppedNode,
    in_world,
    publish_same_frames,
    quaternion_of,
    run,
    vector,
    vector_of,
)
from musls_control.px4.offboard import Vehicle, px4_topic, vehicles
from musls_control.real_flight.mocap import MocapFilter, MocapLimits, Sample, visual_odometry
from musls_description.config.errors import ConfigError

_NOT_GIVEN = np.full(3, np.nan, np.float32)
REPORT_S = 10.0
WARN_S = 1.0
INPUTS = ("poses", "mocap4r2")


class MocapRelayNode(SteppedNode):
    """The node: forwards poses of motion capture to PX4 and to this project's topics."""

    def __init__(self) -> None:
        super().__init__("mocap_relay")
        instances = self.value("drones", [1, 2, 3], "PX4 instances, from 1.")
        kind = self.value("input", "poses", "poses: a topic per body; or mocap4r2.")
        if kind not in INPUTS:
            raise ConfigError(f"parameter input = {kind}: must be one of {', '.join(INPUTS)}")
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
        self.filters = {body: MocapFilter(MocapLimits()) for body in self._bodies}
        self.settings(MocapLimits, self._take_limits)
        self._latencies_s: list[float] = []
        self._silent: set[str] = set()
        self._counted = dict.fromkeys(self._bodies, 0)
        self._next_report_s = self._next_warning_s = self._begun_s = 0.0
        given = self.value("px4_namespaces", [""], "As of the offboard node.")
        self._make_outputs(vehicles(instances, given))
        self._listen(kind, names)
        if self.value("base_links", False, BASE_LINKS):
            publish_same_frames(self, {f"{body}/base_link": body for body in self._bodies})

    def _make_outputs(self, found: Sequence[Vehicle]) -> None:
        self._pose_out = {
            body: self.create_publisher(PoseStamped, f"{body}/pose", 10) for body in self._bodies
        }
        self._tf_out = self.create_publisher(TFMessage, "/tf", 100)
        topics = {
            f"drone_{vehicle.drone}": px4_topic(
                vehicle.namespace, "in", VehicleOdometry, "vehicle_visual_odometry"
            )
            for vehicle in found
        }
        self._odometry_out: dict[str, Publisher] = {
            body: self.create_publisher(VehicleOdometry, topic, 10)
            for body, topic in topics.items()
        }
        self.publish_alone(next(iter(topics.values())))

    def _listen(self, kind: str, names: Sequence[str]) -> None:
        """Subscribe with best effort, as capture drivers publish; reliable ones match as well."""
        if kind == "poses":
            for body, name in zip(self._bodies, names, strict=True):
                self.create_subscription(
                    PoseStamped,
                    f"mocap/{name}/pose",
                    lambda m, b=body: self._take(b, m.header.stamp, m.pose),
                    qos_profile_sensor_data,
                )
            return
        try:
            from mocap4r2_msgs.msg import RigidBodies
        except ImportError:
            raise ConfigError(
                "parameter input = mocap4r2: the package mocap4r2_msgs is not installed; build it "
                "in your ROS workspace, or use input:=poses"
            ) from None
        self._body_of = dict(zip(names, self._bodies, strict=True))
        self.create_subscription(
            RigidBodies, "rigid_bodies", self._on_rigid_bodies, qos_profile_sensor_data
        )

    def _on_rigid_bodies(self, message: Any) -> None:
        for found in message.rigidbodies:
            body = self._body_of.get(found.rigid_body_name)
            if body is not None:
                self._take(body, message.header.stamp, found.pose)

    def _take(self, body: str, when: Any, pose: Pose) -> None:
        now_s = self.get_clock().now().nanoseconds * 1e-9
        sample = Sample(
            when.sec + when.nanosec * 1e-9,
            np.array(vector_of(pose.position)),
            np.array(quaternion_of(pose.orientation)),
        )
        mocap_filter = self.filters[body]
        if not mocap_filter.take(now_s, sample):
            return
        latency_s = mocap_filter.latency_s(now_s, sample)
        self._latencies_s.append(latency_s)
        self._publish(body, now_s - latency_s, pose)
        if body in self._odometry_out:
            self._odometry_out[body].publish(self._odometry(body, now_s, sample, latency_s))

    def _publish(self, body: str, time_s: float, pose: Pose) -> None:
        """Pose and transform, stamped with the exposure."""
        header = in_world(time_s)
        self._pose_out[body].publish(PoseStamped(header=header, pose=pose))
        place = vector(vector_of(pose.position))
        moved = Transform(translation=place, rotation=pose.orientation)
        self._tf_out.publish(
            TFMessage(
                transforms=[TransformStamped(header=header, child_frame_id=body, transform=moved)]
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
        if not self._next_warning_s - WARN_S <= time_s < self._next_warning_s:
            self._next_warning_s = time_s + WARN_S
            self._warn(time_s)
        if self._latencies_s and not (
            self._next_report_s - REPORT_S <= time_s < self._next_report_s
        ):
            self._next_report_s = time_s + REPORT_S
            milliseconds = 1e3 * np.array(self._latencies_s)
            self._latencies_s.clear()
            dropped = {b: f.dropped for b, f in self.filters.items() if f.dropped}
            self.get_logger().info(
                f"{len(milliseconds)} poses, latency mean {milliseconds.mean():.1f} ms, largest "
                f"{milliseconds.max():.1f} ms, dropped {dropped or 'none'}"
            )

    def _warn(self, time_s: float) -> None:
        timeout_s = self.get_parameter("timeout_s").value
        log = self.get_logger()
        for body, mocap_filter in self.filters.items():
            count = sum(mocap_filter.dropped.values())
            if count > self._counted[body]:
                log.warning(
                    f"{body}: {count - self._counted[body]} poses refused: {mocap_filter.detail}"
                )
                self._counted[body] = count
            silent_s = min(mocap_filter.silent_s(time_s), time_s - self._begun_s)
            if silent_s > timeout_s and body not in self._silent:
                self._silent.add(body)
                log.error(f"{body}: no usable pose for {silent_s:.1f} s")
            elif silent_s <= timeout_s and body in self._silent:
                self._silent.discard(body)
                log.info(f"{body}: poses again")

    def _take_limits(self, limits: MocapLimits) -> None:
        for mocap_filter in self.filters.values():
            mocap_filter.limits = limits


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(MocapRelayNode, args)


if __name__ == "__main__":
    sys.exit(main())
