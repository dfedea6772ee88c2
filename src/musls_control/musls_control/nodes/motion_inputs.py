"""Subscriptions to the motion of load and drones, for nodes that need it all the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from musls_control.heard_motion import HeardMotion
from musls_control.nodes.poses import time_of


class MotionInputs:
    """Listens to poses, twists and rotor speeds."""

    def __init__(
        self, node: Node, bodies: Sequence[str], motion: HeardMotion, heard: Callable[[], None]
    ) -> None:
        """Begin to listen.

        Args:
            node: Has the subscriptions.
            bodies: Load, then drones.
            motion: Is told.
            heard: Called after each message.
        """
        self._node, self._motion, self._heard = node, motion, heard
        self._inputs = []
        for k, body in enumerate(bodies):
            inputs = [
                (PoseStamped, "pose", lambda m, k=k: self._on_pose(k, m)),
                (TwistStamped, "twist", lambda m, k=k: self._on_twist(k, m)),
            ]
            if k:
                inputs.append((JointState, "rotors", lambda m, k=k: self._on_rotors(k, m)))
            self._inputs += [
                node.create_subscription(kind, f"/{body}/{topic}", take, 1)
                for kind, topic, take in inputs
            ]

    def end(self) -> None:
        """End the subscriptions."""
        for subscription in self._inputs:
            self._node.destroy_subscription(subscription)

    def _on_pose(self, body: int, message: PoseStamped) -> None:
        p, q = message.pose.position, message.pose.orientation
        self._motion.on_pose(body, time_of(message), (p.x, p.y, p.z), (q.w, q.x, q.y, q.z))
        self._heard()

    def _on_twist(self, body: int, message: TwistStamped) -> None:
        v, w = message.twist.linear, message.twist.angular
        self._motion.on_twist(body, time_of(message), (v.x, v.y, v.z), (w.x, w.y, w.z))
        self._heard()

    def _on_rotors(self, body: int, message: JointState) -> None:
        self._motion.on_rotors(body, time_of(message), message.velocity)
        self._heard()
