"""Comparison of our own flights with the tables and figures of papers."""
