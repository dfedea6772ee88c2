"""Angles of the joints of the cables on the ROS graph, for robot_state_publisher and a URDF."""

from __future__ import annotations

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from musls_control.nodes.stepped_node import stamp
from musls_description.models.urdf import joint_coordinates
from musls_sim.plants.interface import Jointed, Plant
from musls_sim.recording.topics import MODEL_PREFIX

TOPIC = "/joint_states"


class JointStates:
    """Publishes `/joint_states`, where the plant has joints, while somebody listens.

    The URDF's root is the load: `/tf_static` says that `model/load` is `load`.
    """

    def __init__(self, node: Node, plant: Plant) -> None:
        """Offer the topic, or nothing if the cable model has no joints.

        Args:
            node: Has the publishers.
            plant: Whose joints.
        """
        self._plant = plant if isinstance(plant, Jointed) else None
        self._tree: object = None
        if self._plant is None:
            return
        self._out = node.create_publisher(JointState, TOPIC, 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._static = node.create_publisher(TFMessage, "/tf_static", latched)
        same = TransformStamped(child_frame_id=f"{MODEL_PREFIX}load")
        same.header.frame_id, same.transform.rotation.w = "load", 1.0
        self._static.publish(TFMessage(transforms=[same]))

    def publish(self, time_s: float) -> None:
        """Publish the present angles."""
        if self._plant is None or not self._out.get_subscription_count():
            return
        if self._plant.tree is not self._tree:
            self._tree = self._plant.tree
            self._coordinates = joint_coordinates(self._plant.tree)
        message = JointState(name=list(self._coordinates))
        stamp(message.header.stamp, time_s)
        message.position = self._plant.positions[list(self._coordinates.values())].tolist()
        self._out.publish(message)
