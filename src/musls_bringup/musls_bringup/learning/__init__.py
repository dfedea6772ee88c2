"""Learning: environments on the batch of worlds, their tasks and agents."""
