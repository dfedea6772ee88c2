"""The files of a flight in Gazebo."""
