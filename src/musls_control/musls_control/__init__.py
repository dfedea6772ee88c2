"""musls_control: what the drones do, from trajectories and missions to control laws."""
