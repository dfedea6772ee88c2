"""Gazebo: what its world says, as rows of a recording."""
