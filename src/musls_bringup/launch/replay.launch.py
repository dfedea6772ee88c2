"""Publishes a bag again: `ros2 launch musls_bringup replay.launch.py bag:=FOLDER rate:=2.0`."""

from musls_bringup.ros.launching import REPLAY_ARGUMENTS, description, replay_nodes


def generate_launch_description():
    """Declare the arguments; the nodes are made when they are known."""
    return description(REPLAY_ARGUMENTS, replay_nodes)
