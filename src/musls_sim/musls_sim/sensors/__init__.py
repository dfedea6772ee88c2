"""State estimates of the drones: truth, or motion capture fused with the IMU."""
