"""Node `gazebo_state`: Gazebo's true state on the topics of this project.

ros_gz_bridge brings `/load/odometry` and `/drone_i/odometry`. When all bodies of one time are
there, their poses, twists and transforms are published, and last /clock with that time: 50 Hz of
simulated time, as the embedded simulator does. Gazebo's own clock is not passed on, because the
nodes do a step at each message of /clock and Gazebo sends 250 a second.
"""

from __future__ import annotations

import sys

import numpy as np
from geometry_msgs.msg import PoseStamped, TransformStamped, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from tf2_msgs.msg import TFMessage

from musls_control.nodes.stepped_node import DuplicateNode, run
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
            topic: self.create_publisher(kind, topic, profile_of(topic, WRITER_QUEUE))
            for topic, kind in [
                ("/clock", Clock),
                ("/tf", TFMessage),
                *((f"/{body}/pose", PoseStamped) for body in bodies),
                *((f"/{body}/twist", TwistStamped) for body in bodies),
            ]
        }
        for body in bodies:
            self.create_subscription(
                Odometry, f"/{body}/odometry", lambda m, b=body: self._take(b, m), QUEUE
            )
        self._said_lost = 0
        self.create_timer(GRAPH_CHECK_S, self._check)

    def _take(self, body: str, message: Odometry) -> None:
        stamp = message.header.stamp
        row = self._rows.take(body, stamp.sec * 1_000_000_000 + stamp.nanosec, _state(message))
        if row is not None:
            self._publish(row, stamp)

    def _publish(self, row: dict[str, BodyState], stamp) -> None:
        transforms = TFMessage()
        for body, state in row.items():
            transforms.transforms.append(_transform(body, state, stamp))
            self._pub[f"/{body}/pose"].publish(_pose(state, stamp))
            self._pub[f"/{body}/twist"].publish(_twist(state, stamp))
        self._pub["/tf"].publish(transforms)
        self._pub["/clock"].publish(Clock(clock=stamp))

    def _check(self) -> None:
        if self.count_publishers("/clock") > 1:
            raise DuplicateNode("gazebo_state: another node publishes /clock already")
        if self._rows.lost > self._said_lost:
            self._said_lost = self._rows.lost
            self.get_logger().warning(f"{self._said_lost} times lost: odometry was incomplete")


def _state(message: Odometry) -> BodyState:
    p, q = message.pose.pose.position, message.pose.pose.orientation
    v, w = message.twist.twist.linear, message.twist.twist.angular
    return state_from_odometry(
        np.array([p.x, p.y, p.z]),
        np.array([q.w, q.x, q.y, q.z]),
        np.array([v.x, v.y, v.z]),
        np.array([w.x, w.y, w.z]),
    )


def _pose(state: BodyState, stamp) -> PoseStamped:
    message = PoseStamped()
    message.header.frame_id, message.header.stamp = "world", stamp
    _fill(message.pose.position, state.position_enu_m)
    _turn(message.pose.orientation, state.orientation_wxyz)
    return message


def _twist(state: BodyState, stamp) -> TwistStamped:
    message = TwistStamped()
    message.header.frame_id, message.header.stamp = "world", stamp
    _fill(message.twist.linear, state.velocity_enu_m_s)
    _fill(message.twist.angular, state.omega_enu_rad_s)
    return message


def _transform(body: str, state: BodyState, stamp) -> TransformStamped:
    message = TransformStamped(child_frame_id=body)
    message.header.frame_id, message.header.stamp = "world", stamp
    _fill(message.transform.translation, state.position_enu_m)
    _turn(message.transform.rotation, state.orientation_wxyz)
    return message


def _fill(xyz, vector: np.ndarray) -> None:
    xyz.x, xyz.y, xyz.z = vector.tolist()


def _turn(rotation, quaternion: np.ndarray) -> None:
    rotation.w, rotation.x, rotation.y, rotation.z = quaternion.tolist()


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; returns the exit code."""
    return run(GazeboState, args)


if __name__ == "__main__":
    sys.exit(main())
