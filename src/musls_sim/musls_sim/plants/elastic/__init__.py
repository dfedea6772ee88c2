"""Elastic cables: lumped nodes and rigid bodies in one banded, L-stable implicit step."""
