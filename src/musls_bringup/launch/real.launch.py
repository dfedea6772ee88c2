"""Flies real vehicles: `ros2 launch musls_bringup real.launch.py scenario:=circle mocap:=mocap4r2`.

Motion capture to /load/pose, /drone_i/pose and PX4's visual odometry; formation, offboard and
recorder. The Micro XRCE-DDS agents of the vehicles have to run already (see docs/real_flights.md).
"""

from musls_bringup.ros.launching import REAL_ARGUMENTS, description, real_nodes


def generate_launch_description():
    """Declare the arguments; the nodes are made when they are known."""
    return description(REAL_ARGUMENTS, real_nodes, real=True)
