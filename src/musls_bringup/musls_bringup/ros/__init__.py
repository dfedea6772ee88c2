"""ROS 2 without a ROS installation: message packages, the graph of nodes, flights through it."""
