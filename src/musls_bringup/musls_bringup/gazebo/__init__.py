"""Starting a flight in Gazebo."""
