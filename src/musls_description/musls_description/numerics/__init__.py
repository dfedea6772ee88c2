"""Numerics: compiled functions, records, vectors, rotations and arrays."""
