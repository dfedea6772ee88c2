"""Flies a scenario: `ros2 launch musls_bringup fly.launch.py scenario:=circle record:=true`.

sim:=embedded starts the embedded simulator. sim:=gazebo starts everything but Gazebo, PX4, the
DDS agent and the bridge, which have to run already (see docs/docker.md).
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from musls_bringup.ros.launching import ARGUMENTS, launched_nodes, shared_file


def start(context):
    """Turn the arguments into nodes."""
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    params = given["params"] or str(shared_file("params", "nodes.yaml"))
    actions = []
    for spec in launched_nodes(given):
        node = Node(
            package=spec.package,
            executable=spec.executable,
            parameters=[params, dict(spec.parameters)],
            arguments=list(spec.arguments),
            output="screen",
        )
        actions.append(node)
        if spec.executable == "recorder":  # ends when the formation is done
            ended = OnProcessExit(target_action=node, on_exit=[EmitEvent(event=Shutdown())])
            actions.append(RegisterEventHandler(ended))
    return actions


def generate_launch_description():
    """Declare the arguments."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
