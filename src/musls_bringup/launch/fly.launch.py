"""Flies a scenario: `ros2 launch musls_bringup fly.launch.py scenario:=circle record:=true`.

sim:=embedded starts the embedded simulator. sim:=gazebo starts everything but Gazebo, PX4, the
DDS agent and the bridge, which have to run already (see docs/docker.md).
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration

from musls_bringup.ros.launching import ARGUMENTS, actions_of, launched_nodes


def start(context):
    """Turn the arguments into nodes."""
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    return actions_of(launched_nodes(given), given["params"])


def generate_launch_description():
    """Declare the arguments."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
