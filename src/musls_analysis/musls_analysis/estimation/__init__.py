"""Estimation of parameters from recordings: one estimator; replays, taut rows, drones as models."""
