"""Nodes as data become launch actions. For launch files only: `launch` comes with ROS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from musls_bringup.ros import graph
from musls_bringup.ros.launching import shared_file


def actions_of(nodes: Sequence[graph.NodeSpec], params: str) -> list[Any]:
    """Launch actions that start nodes, and end the launch when one of them ends.

    Args:
        nodes: What to start.
        params: Parameter file; the shipped one if empty.

    Raises:
        ConfigError: The shipped file is not installed.
    """
    from launch.actions import EmitEvent, RegisterEventHandler
    from launch.event_handlers import OnProcessExit
    from launch.events import Shutdown
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    def _given(value: Any) -> Any:
        """Text stays text: launch would read it as YAML, which a robot's description is not."""
        return ParameterValue(value, value_type=str) if isinstance(value, str) else value

    file = params or str(shared_file("params", "nodes.yaml"))
    actions: list[Any] = []
    for spec in nodes:
        node = Node(
            package=spec.package,
            executable=spec.executable,
            parameters=[file, {name: _given(v) for name, v in spec.parameters.items()}],
            arguments=list(spec.arguments),
            output="screen",
            # A loaded machine takes longer than launch's 5 s to end a node, and a node that is
            # killed leaves an unfinished bag.
            sigterm_timeout=str(graph.STOP_S),
            sigkill_timeout=str(graph.STOP_S),
        )
        reason = f"{spec.executable} has ended"
        ended = OnProcessExit(
            target_action=node, on_exit=[EmitEvent(event=Shutdown(reason=reason))]
        )
        actions += [node, RegisterEventHandler(ended)]
    return actions
