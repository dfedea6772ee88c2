"""Publishes a bag again: `ros2 launch musls_bringup replay.launch.py bag:=FOLDER rate:=2.0`."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration

from musls_bringup.ros.launching import REPLAY_ARGUMENTS, actions_of, replay_nodes


def start(context):
    """Turn the arguments into nodes."""
    given = {name: LaunchConfiguration(name).perform(context) for name in REPLAY_ARGUMENTS}
    return actions_of(replay_nodes(given), "")


def generate_launch_description():
    """Declare the arguments."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in REPLAY_ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
