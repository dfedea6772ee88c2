"""Many worlds of one structure in one call."""
