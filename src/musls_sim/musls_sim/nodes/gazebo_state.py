"""Node `gazebo_state`: Gazebo's true state on the topics of this project.

ros_gz_bridge brings `/load/odometry` and `/drone_i/odometry`. When all bodies of one time are
there, their poses, twists and transforms are published, and last /clock with that time: 50 Hz of
simulated time, as the embedded simulator does. Gazebo's own clock is not passed on, because the
nodes do a step at each message of /clock and Gazebo sends 250 a second.
"""

from __future__ import annotations

import sys

import numpy as np
from nav_msgs.msg import Odometry

from musls_control.nodes.stepped_node import (
    DUPLICATE_CHECK_S,
    DuplicateNode,
    SurvivingNode,
    quaternion_of,
    relative,
    run,
    vector_of,
)
from musls_description.config.errors import ConfigError
from musls_sim.nodes.polling import message_class, profile_of
from musls_sim.recording.graph_signals import OdometryRows, odometry_messages
from musls_sim.recording.messages import serialize

QUEUE = 500
WRITER_QUEUE = 500
"""Deep: a recorder that has to wait for a processor shall miss nothing."""
GRAPH_CHECK_S = 0.5


class GazeboState(SurvivingNode):
    """The node: reads Gazebo's pose topics and publishes this project's."""

    def __init__(self) -> None:
        super().__init__("gazebo_state")
        n = self.declare_parameter("n_drones", 3).value
        if n < 1:
            raise ConfigError(f"parameter n_drones = {n}: must be 1 or more")
        bodies = ["load", *(f"drone_{i + 1}" for i in range(n))]
        self._rows = OdometryRows(bodies)
        topics = {"/clock": "rosgraph_msgs/msg/Clock", "/tf": "tf2_msgs/msg/TFMessage"}
        topics |= {f"/{body}/pose": "geometry_msgs/msg/PoseStamped" for body in bodies}
        topics |= {f"/{body}/twist": "geometry_msgs/msg/TwistStamped" for body in bodies}
        self._pub = {
            topic: self.create_publisher(
                message_class(kind), relative(topic), profile_of(topic, WRITER_QUEUE)
            )
            for topic, kind in topics.items()
        }
        for body in bodies:
            self.create_subscription(
                Odometry, f"{body}/odometry", lambda m, b=body: self._take(b, m), QUEUE
            )
        self._said_lost = self._checks = 0
        self.create_timer(GRAPH_CHECK_S, self._check)

    def _take(self, body: str, message: Odometry) -> None:
        if not self._checks:  # another one may publish already
            return
        pose = message.pose.pose
        twist = message.twist.twist
        stamp = message.header.stamp
        turn = quaternion_of(pose.orientation)
        moves = (twist.linear, twist.angular)
        odometry = np.concatenate([vector_of(pose.position), turn, *map(vector_of, moves)])
        time_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
        rows = self._rows.take(body, time_ns, odometry)
        if rows is not None:
            for topic, part in odometry_messages(time_ns, rows):
                self._pub[topic].publish(serialize(part))

    def _check(self) -> None:
        self._checks += 1
        early = self._checks * GRAPH_CHECK_S <= DUPLICATE_CHECK_S  # an older one stays
        if early and self.count_publishers("/clock") > 1:
            raise DuplicateNode("gazebo_state: another node publishes /clock already")
        if self._rows.lost > self._said_lost:
            self._said_lost = self._rows.lost
            self.get_logger().warning(f"{self._said_lost} times lost: odometry was incomplete")


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; returns the exit code."""
    return run(GazeboState, args)


if __name__ == "__main__":
    sys.exit(main())
