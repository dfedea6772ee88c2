"""Geometric control of a load on cables: from the load's reference to a force of each drone."""
