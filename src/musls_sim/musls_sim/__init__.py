"""musls_sim: how the system moves, from the rigid-body plant to the recorded flight."""
