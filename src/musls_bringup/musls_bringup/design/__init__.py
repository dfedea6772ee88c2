"""From a load to a fleet: how many drones, which cables, which cone, and what if one fails?"""

WORLDS = 40
"""Worlds of the Monte Carlo of a choice."""
