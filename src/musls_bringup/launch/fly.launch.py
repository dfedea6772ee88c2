"""Flies a scenario: `ros2 launch musls_bringup fly.launch.py scenario:=circle record:=true`.

sim:=embedded starts the embedded simulator. sim:=gazebo starts everything but Gazebo, PX4, the
DDS agent and the bridge, which have to run already (see docs/docker.md).
"""

from musls_bringup.ros.launching import ARGUMENTS, description, launched_nodes


def generate_launch_description():
    """Declare the arguments; the nodes are made when they are known."""
    return description(ARGUMENTS, launched_nodes)
