"""Takes messages without an executor: at thousands a second rclpy's costs more than the rest."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from musls_sim.recording.signals import qos


class Poller:
    """Subscriptions whose messages are taken when `poll` is called.

    The node must not be spun by an executor that takes the same messages.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._inputs: list[tuple[Any, bool, Callable]] = []
        self._services: list[tuple[Any, Callable]] = []

    def subscribe(
        self, kind: type, topic: str, take: Callable, profile: QoSProfile, *, raw: bool = False
    ) -> None:
        """Add a subscription.

        `take` gets messages; if `raw`, their bytes and the real time of publishing [ns].
        """
        subscription = self._node.create_subscription(kind, topic, _unused, profile, raw=raw)
        self._inputs.append((subscription, raw, take))

    def serve(self, kind: type, name: str, answer: Callable) -> None:
        """Add a service; `answer` gets a request and a response, and returns the response."""
        self._services.append((self._node.create_service(kind, name, _unused), answer))

    def poll(self) -> int:
        """Take all messages and requests that wait; returns the number of messages."""
        count = self._serve()
        for subscription, raw, take in self._inputs:
            with subscription.handle:
                while True:
                    pair = subscription.handle.take_message(subscription.msg_type, raw)
                    if pair is None:
                        break
                    message, info = pair
                    take(*([message, info["source_timestamp"]] if raw else [message]))
                    count += 1
        return count

    def _serve(self) -> int:
        """Answer the requests that wait; returns their number."""
        count = 0
        for service, answer in self._services:
            with service.handle:
                while True:
                    request, header = service.handle.service_take_request(service.srv_type.Request)
                    if request is None:
                        break
                    service.send_response(answer(request, service.srv_type.Response()), header)
                    count += 1
        return count


def message_class(msgtype: str) -> type:
    """Class of "package/msg/Name"."""
    package, _, name = msgtype.split("/")
    return getattr(import_module(f"{package}.msg"), name)


def profile_of(topic: str, depth: int | None = None) -> QoSProfile:
    """Quality of service of one of this project's topics."""
    profile = qos(topic)
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth or profile.depth,
        reliability=ReliabilityPolicy(profile.reliability.value),
        durability=DurabilityPolicy(profile.durability.value),
    )


def _unused(_: Any) -> None:
    raise AssertionError("polled subscriptions have no executor")
