"""What the drones know of their state: truth, or motion capture fused with the IMU."""
