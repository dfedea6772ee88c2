"""Topics of a delivery: events that are to happen, and what has happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

APPLY, EVENTS = "/musls/apply_event", "/events"
_HAPPENED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class DeliveryTopics:
    """Asks for events on `/musls/apply_event`; hears and tells on `/events` what has happened."""

    def __init__(self, node: Node, heard: Callable[[str], None]) -> None:
        """Begin to listen.

        Args:
            node: Has publishers and subscription.
            heard: Told the kind of each event that happens from now on.
        """
        self._ask = node.create_publisher(String, APPLY, QoSProfile(depth=10))
        self._tell = node.create_publisher(String, EVENTS, _HAPPENED)
        node.create_subscription(
            String, EVENTS, lambda m: heard(m.data.partition(":")[0]), QoSProfile(depth=100)
        )

    @property
    def heard_by_hooks(self) -> bool:
        """Whether any node subscribes to the events."""
        return self._ask.get_subscription_count() > 0

    def send(self, event: dict[str, Any]) -> None:
        """Let an event happen, given by its fields."""
        self._ask.publish(String(data=json.dumps(event)))

    def tell(self, kind: str, what: str) -> None:
        """Say what has happened."""
        self._tell.publish(String(data=f"{kind}: {what}"))
