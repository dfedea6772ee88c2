"""Before a flight: what it is about (`Brief`), and the list of what speaks against it."""
