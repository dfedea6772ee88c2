"""Models of a system for other simulators: SDF for Gazebo, Xacro and URDF for ROS."""
