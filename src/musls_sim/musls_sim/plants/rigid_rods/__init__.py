"""Rigid rods: load and drones as one composite body."""
