"""Publishes a bag again: `ros2 launch musls_bringup replay.launch.py bag:=FOLDER rate:=2.0`."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue


def generate_launch_description():
    """One player."""
    rate = ParameterValue(LaunchConfiguration("rate"), value_type=float)
    player = Node(
        package="musls_sim",
        executable="player",
        parameters=[{"bag": LaunchConfiguration("bag"), "rate": rate}],
        output="screen",
    )
    return LaunchDescription(
        [
            DeclareLaunchArgument("bag", description="Folder of the bag."),
            DeclareLaunchArgument("rate", default_value="1.0", description="Speed."),
            player,
        ]
    )
