"""What is shipped, by name, and the keys that describe it."""
