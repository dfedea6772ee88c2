"""Starts a drone's agent: `ros2 launch musls_bringup agent.launch.py scenario:=own.yaml drone:=2`.

The node `agent` in the drone's namespace and its own offboard node, on the drone's own computer.
The formation node (parameter `agents`: true) gives the task, from anywhere; see docs/agents.md.
"""

from musls_bringup.ros.launching import AGENT_ARGUMENTS, agent_nodes, description


def generate_launch_description():
    """Declare the arguments; the nodes are made when they are known."""
    return description(AGENT_ARGUMENTS, agent_nodes)
