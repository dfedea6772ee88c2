"""The system: drones, load, cables, rigs, obstacles, and the files that describe them."""
