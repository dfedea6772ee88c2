"""All that a scenario file says: its keys, their types and defaults, and how it is read."""
