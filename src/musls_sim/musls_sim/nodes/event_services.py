"""Events on the ROS graph: let one of the scenario happen now, or one that is described."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import String
from std_srvs.srv import Trigger

from musls_description.errors import ConfigError
from musls_sim.nodes.polling import Poller
from musls_sim.session.event_queue import names_of

if TYPE_CHECKING:
    from musls_sim.session.session import Session

TRIGGER, APPLY = "/musls/trigger_event", "/musls/apply_event"
"""A service for each event of the scenario is below the first one; the second one is a topic."""


class EventServices:
    """Services `/musls/trigger_event/NAME` (std_srvs/Trigger) and topic `/musls/apply_event`.

    NAME is that of an event of the scenario, or its kind where it has no name. The topic
    (std_msgs/String) takes the fields of any event as JSON.
    """

    def __init__(self, node: Node, session: Session, poller: Poller) -> None:
        """Offer them.

        Args:
            node: Has them.
            session: What the events happen to.
            poller: Takes the calls.
        """
        self._node, self._session = node, session
        names = dict.fromkeys(names_of(event)[0] for event in session.scenario.events)
        for name in names:
            if name.isidentifier():  # what ROS allows as a part of a name
                poller.serve(Trigger, f"{TRIGGER}/{name}", self._trigger(name))
        poller.subscribe(String, APPLY, self._apply, QoSProfile(depth=10))

    def _trigger(self, name: str):
        def answer(_: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
            try:
                self._session.trigger(name)
                answer.success, answer.message = True, f"{name}: now"
            except ConfigError as error:
                answer.success, answer.message = False, str(error)
            return answer

        return answer

    def _apply(self, message: String) -> None:
        try:
            fields = json.loads(message.data)
            if not isinstance(fields, dict):
                raise ConfigError("expected a mapping of an event's fields")
            self._session.apply(fields)
        except (ValueError, ConfigError) as error:
            self._node.get_logger().error(f"{APPLY}: {error}")
