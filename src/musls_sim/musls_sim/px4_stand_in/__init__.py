"""The embedded simulator where PX4 and Gazebo stand: commanders, plant and autopilot, no ROS."""
