"""Drones that decide for themselves: what each one knows, and the network between them."""
