"""Model predictive control of a load on cables: optimal control problem, obstacles, plans."""
