"""Flies real vehicles: `ros2 launch musls_bringup real.launch.py scenario:=circle mocap:=mocap4r2`.

Motion capture to /load/pose, /drone_i/pose and PX4's visual odometry; formation, offboard and
recorder. The Micro XRCE-DDS agents of the vehicles have to run already (see docs/ros2.md).
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration

from musls_bringup.ros.launching import REAL_ARGUMENTS, actions_of, real_nodes


def start(context):
    """Turn the arguments into nodes."""
    given = {name: LaunchConfiguration(name).perform(context) for name in REAL_ARGUMENTS}
    return actions_of(real_nodes(given), given["params"])


def generate_launch_description():
    """Declare the arguments."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in REAL_ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
