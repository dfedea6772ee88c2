"""musls_sim: how the system moves, from the rigid-body plant to the recorded flight.

Internal: what users may rely on is in `musls` and its modules.
"""
