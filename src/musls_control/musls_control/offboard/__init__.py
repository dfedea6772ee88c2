"""PX4's offboard protocol from the side of the companion computer, without ROS."""
