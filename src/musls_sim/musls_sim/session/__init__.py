"""The flight: checks before it, the loop, and what it leaves behind."""
