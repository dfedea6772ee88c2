"""ROS 2 nodes of the drones' side; thin, their logic is in plain classes."""
