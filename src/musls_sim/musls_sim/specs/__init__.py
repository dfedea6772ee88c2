"""Specifications without behaviour: physics, rigs, estimation, imperfections."""
