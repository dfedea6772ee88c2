"""Before a flight: how the system hangs, whether it can fly, what the flight stack is told."""
