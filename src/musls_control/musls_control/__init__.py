"""musls_control: what the drones do, from trajectories and missions to control laws.

Internal: what users may rely on is in `musls` and its modules.
"""
