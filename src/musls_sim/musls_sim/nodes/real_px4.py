"""A drone of `embedded_sim` flown by a real PX4, which is on the graph through its agent."""

from __future__ import annotations

from px4_msgs.msg import OffboardControlMode, VehicleStatus
from rclpy.node import Node

from musls_control.nodes.stepped_node import FROM_PX4
from musls_control.offboard.topics import px4_topic
from musls_sim.nodes.polling import Poller
from musls_sim.px4.errors import Px4Error
from musls_sim.px4.graph_session import GraphSession

SHOW_UP_S = 20.0
"""Time for PX4's first status to come: so much of it both really and in the simulation."""


class RealDrone:
    """Listens to who guides the drone, so that simulated time can wait for him.

    Attributes:
        inputs: Topics to PX4 that are watched, and their types.
    """

    def __init__(self, node: Node, index: int, session: GraphSession, poller: Poller) -> None:
        self._node, self._index, self._session = node, index, session
        self._status_topic = px4_topic(index + 1, "out", "vehicle_status", VehicleStatus)
        self._heard = False
        poller.subscribe(VehicleStatus, self._status_topic, self._on_status, FROM_PX4)
        topic = px4_topic(index + 1, "in", "offboard_control_mode", OffboardControlMode)
        self.inputs = {topic: "px4_msgs/msg/OffboardControlMode"}
        poller.subscribe(OffboardControlMode, topic, self._on_mode, FROM_PX4)

    @property
    def armed(self) -> bool:
        """Whether the motors may turn."""
        return bool(self._session.px4s.armed[self._index])

    def publish(self, time_us: int) -> None:
        """PX4 speaks for itself."""

    def check(self, age_s: float) -> None:
        """See that PX4 is on the graph.

        Raises:
            Px4Error: Its status did not come in time.
        """
        if not self._heard and age_s > SHOW_UP_S:
            raise Px4Error(
                f"drone_{self._index + 1}: PX4 runs, but nothing comes on {self._status_topic} "
                f"for {SHOW_UP_S:g} s: another ROS_DOMAIN_ID, or a PX4 release with another "
                "version of this message than px4_msgs here"
            )

    def _on_status(self, _: VehicleStatus) -> None:
        self._heard = True

    def _on_mode(self, message: OffboardControlMode) -> None:
        self._node.lockstep.answer(self._index, message.timestamp)
