"""Asks the nodes of a running flight for what their services do, without the command `ros2`."""

from __future__ import annotations

import os
from time import monotonic
from typing import Any

import rclpy
from std_srvs.srv import SetBool, Trigger

from musls_description.config.errors import ConfigError, MuslsError, near_names

SERVICES: dict[str, tuple[str, Any]] = {
    "start": ("formation/start", Trigger.Request()),
    "pause": ("formation/pause", SetBool.Request(data=True)),
    "resume": ("formation/pause", SetBool.Request(data=False)),
    "abort": ("formation/abort", Trigger.Request()),
    "land": ("offboard/land", Trigger.Request()),
}
"""Service and request of what can be asked for."""

PATIENCE_S = 10.0


def ask_flight(what: str, namespace: str = "") -> tuple[bool, str]:
    """Ask for one of `SERVICES`; returns whether it is done, and the node's words.

    Raises:
        ConfigError: Nothing of that name can be asked for.
        MuslsError: No node answers.
    """
    if what not in SERVICES:
        raise ConfigError(f"ask {what}: {near_names(what, SERVICES)}")
    name, request = SERVICES[what]
    service = "/" + "/".join(part for part in (namespace.strip("/"), name) if part)
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")  # as `musls ros fly` does
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("musls_ask", context=context)
    try:
        client = node.create_client(SetBool if name.endswith("pause") else Trigger, service)
        if not client.wait_for_service(PATIENCE_S):
            domain = os.environ.get("ROS_DOMAIN_ID", "0")
            raise MuslsError(f"nobody offers {service} within {PATIENCE_S:g} s in domain {domain}")
        executor = rclpy.executors.SingleThreadedExecutor(context=context)
        executor.add_node(node)
        future = client.call_async(request)
        until = monotonic() + PATIENCE_S
        while not future.done() and monotonic() < until:
            executor.spin_once(timeout_sec=0.1)
        answer = future.result() if future.done() else None
        if answer is None:
            raise MuslsError(f"no answer of {service} within {PATIENCE_S:g} s")
        return answer.success, f"{what}: {answer.message or ('done' if answer.success else 'no')}"
    finally:
        node.destroy_node()
        context.try_shutdown()
