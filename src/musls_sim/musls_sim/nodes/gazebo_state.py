"""Node `gazebo_state`: Gazebo's true state on the topics of this project.

ros_gz_bridge brings `/load/odometry` and `/drone_i/odometry`. When all bodies of one time are
there, their poses, twists and transforms are published, and last /clock with that time: 50 Hz of
simulated time, as the embedded simulator does. Gazebo's own clock is not passed on, because the
nodes do a step at each message of /clock and Gazebo sends 250 a second.
"""

from __future__ import annotations

import sys

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Pose, PoseStamped, Transform, TransformStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from musls_control.nodes.stepped_node import (
    DuplicateNode,
    point,
    quaternion,
    quaternion_of,
    relative,
    run,
    vector,
    vector_of,
)
from musls_description.errors import ConfigError
from musls_sim.gazebo_rows import BodyState, RowCollector, state_from_odometry
from musls_sim.nodes.polling import profile_of

QUEUE = 500
WRITER_QUEUE = 500
"""Deep: a recorder that has to wait for a processor shall miss nothing."""
GRAPH_CHECK_S = 0.5


class GazeboState(Node):
    """See the module's text."""

    def __init__(self) -> None:
        super().__init__("gazebo_state")
        n = self.declare_parameter("n_drones", 3).value
        if n < 1:
            raise ConfigError(f"parameter n_drones = {n}: must be 1 or more")
        bodies = ["load", *(f"drone_{i + 1}" for i in range(n))]
        self._rows = RowCollector(bodies)
        self._pub = {
            topic: self.create_publisher(kind, relative(topic), profile_of(topic, WRITER_QUEUE))
            for topic, kind in [
                ("/clock", Clock),
                ("/tf", TFMessage),
                *((f"/{body}/pose", PoseStamped) for body in bodies),
                *((f"/{body}/twist", TwistStamped) for body in bodies),
            ]
        }
        for body in bodies:
            self.create_subscription(
                Odometry, f"{body}/odometry", lambda m, b=body: self._take(b, m), QUEUE
            )
        self._said_lost = 0
        self.create_timer(GRAPH_CHECK_S, self._check)

    def _take(self, body: str, message: Odometry) -> None:
        stamp = message.header.stamp
        row = self._rows.take(body, stamp.sec * 1_000_000_000 + stamp.nanosec, _state(message))
        if row is not None:
            self._publish(row, stamp)

    def _publish(self, row: dict[str, BodyState], stamp: Time) -> None:
        transforms = TFMessage()
        header = Header(frame_id="world", stamp=stamp)
        for body, state in row.items():
            place, turn = state.position_enu_m, quaternion(state.orientation_wxyz)
            pose = Pose(position=point(place), orientation=turn)
            twist = Twist(
                linear=vector(state.velocity_enu_m_s),
                angular=vector(state.omega_enu_rad_s),
            )
            moved = Transform(translation=vector(place), rotation=turn)
            self._pub[f"/{body}/pose"].publish(PoseStamped(header=header, pose=pose))
            self._pub[f"/{body}/twist"].publish(TwistStamped(header=header, twist=twist))
            transforms.transforms.append(
                TransformStamped(header=header, child_frame_id=body, transform=moved)
            )
        self._pub["/tf"].publish(transforms)
        self._pub["/clock"].publish(Clock(clock=stamp))

    def _check(self) -> None:
        if self.count_publishers("/clock") > 1:
            raise DuplicateNode("gazebo_state: another node publishes /clock already")
        if self._rows.lost > self._said_lost:
            self._said_lost = self._rows.lost
            self.get_logger().warning(f"{self._said_lost} times lost: odometry was incomplete")


def _state(message: Odometry) -> BodyState:
    pose, twist = message.pose.pose, message.twist.twist
    return state_from_odometry(
        np.array(vector_of(pose.position)),
        np.array(quaternion_of(pose.orientation)),
        np.array(vector_of(twist.linear)),
        np.array(vector_of(twist.angular)),
    )


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; returns the exit code."""
    return run(GazeboState, args)


if __name__ == "__main__":
    sys.exit(main())
