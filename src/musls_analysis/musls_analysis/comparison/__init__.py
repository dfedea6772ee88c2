"""Comparison: errors, mean cycles, phase and tables of two recordings."""
