"""From a load to a fleet: how many drones, which cables, which cone, and what if one fails."""
