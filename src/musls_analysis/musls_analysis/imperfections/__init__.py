"""Imperfections of real drones, estimated from their recorded flights."""
