"""Before a flight: the verdict that every door asks, its figures, and the plan to look at."""
