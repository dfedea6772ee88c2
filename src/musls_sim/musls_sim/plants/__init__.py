"""Plants: what moves. They differ in the cable model, not in their interface."""
