"""The seed paper (Merton et al.): its recorded flights, and what they tell about its drones."""
