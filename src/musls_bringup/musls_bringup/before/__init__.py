"""Checks before a flight: the verdict, its figures, and the plan to look at."""
