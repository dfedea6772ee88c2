"""Equilibrium of a system: its tree of bodies, places in the air and on the ground."""
