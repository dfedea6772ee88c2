"""ROS 2 nodes of the simulator's side; thin, their logic is in plain classes."""
