"""Flights with real drones, without ROS: guard, checks before arming, motion capture."""
