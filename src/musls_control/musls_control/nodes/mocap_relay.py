"""Node `mocap_relay`: poses of a motion-capture system to PX4's vehicle_visual_odometry.

Input per drone: `/mocap/drone_i/pose` (geometry_msgs/PoseStamped, ENU, as capture drivers publish
rigid bodies; remap as needed). Only real flights need this node; it has not flown yet.
"""

from __future__ import annotations

import sys

import numpy as np
from geometry_msgs.msg import PoseStamped
from px4_msgs.msg import VehicleOdometry
from rclpy.publisher import Publisher
from rclpy.qos import qos_profile_sensor_data

from musls_control.nodes.stepped_node import SteppedNode, run
from musls_control.offboard.topics import px4_topic
from musls_control.offboard.visual_odometry import MocapRelay

_NOT_GIVEN = np.full(3, np.nan, np.float32)
REPORT_S = 10.0


class MocapRelayNode(SteppedNode):
    """See the module's text."""

    def __init__(self) -> None:
        super().__init__("mocap_relay")
        instances = self.value("drones", [1, 2, 3], "PX4 instances, from 1.")
        north = self.value("north_aligned", False, "Whether the world's y axis points north.")
        camera = self.number("camera_latency_s", 0.0, 0.0, 0.5, "From exposure to stamp [s].")
        longest = self.number("longest_latency_s", 0.2, 0.001, 2.0, "Older samples drop [s].")
        position = self.number("position_std_m", 0.002, 1e-5, 1.0, "Noise per axis [m].")
        attitude = self.number("attitude_std_rad", 0.005, 1e-5, 1.0, "Noise per axis [rad].")
        self._position_variance = np.full(3, position**2, np.float32)
        self._attitude_variance = np.full(3, attitude**2, np.float32)
        self._relays: dict[int, MocapRelay] = {}
        self._out: dict[int, Publisher] = {}
        self._latencies_s: list[float] = []
        for i in instances:
            self._relays[i] = MocapRelay(
                north_aligned=north, camera_latency_s=camera, longest_latency_s=longest
            )
            topic = px4_topic(i, "in", "vehicle_visual_odometry", VehicleOdometry)
            self._out[i] = self.create_publisher(VehicleOdometry, topic, 10)
            self.create_subscription(
                PoseStamped,
                f"/mocap/drone_{i}/pose",
                lambda message, i=i: self._on_pose(i, message),
                qos_profile_sensor_data,
            )
        self.publish_alone(
            px4_topic(instances[0], "in", "vehicle_visual_odometry", VehicleOdometry)
        )
        self._next_report_s = 0.0

    def step(self, time_s: float) -> None:
        """State the latency now and then."""
        if time_s < self._next_report_s or not self._latencies_s:
            return
        self._next_report_s = time_s + REPORT_S
        milliseconds = 1e3 * np.array(self._latencies_s)
        self._latencies_s.clear()
        dropped = {i: relay.dropped for i, relay in self._relays.items() if relay.dropped}
        self.get_logger().info(
            f"latency mean {milliseconds.mean():.1f} ms, largest {milliseconds.max():.1f} ms, "
            f"dropped {dropped or 'none'}"
        )

    def _on_pose(self, instance: int, message: PoseStamped) -> None:
        stamp, p, q = message.header.stamp, message.pose.position, message.pose.orientation
        now_s = self.get_clock().now().nanoseconds * 1e-9
        found = self._relays[instance].convert(
            now_s,
            stamp.sec + stamp.nanosec * 1e-9,
            np.array([p.x, p.y, p.z]),
            np.array([q.w, q.x, q.y, q.z]),
        )
        if found is None:
            return
        self._latencies_s.append(found.latency_s)
        self._out[instance].publish(
            VehicleOdometry(
                timestamp=found.timestamp_us,
                timestamp_sample=found.timestamp_sample_us,
                pose_frame=found.pose_frame,
                position=found.position_m.astype(np.float32),
                q=found.orientation_wxyz.astype(np.float32),
                velocity_frame=VehicleOdometry.VELOCITY_FRAME_UNKNOWN,
                velocity=_NOT_GIVEN,
                angular_velocity=_NOT_GIVEN,
                position_variance=self._position_variance,
                orientation_variance=self._attitude_variance,
                velocity_variance=_NOT_GIVEN,
            )
        )


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(MocapRelayNode, args)


if __name__ == "__main__":
    sys.exit(main())
