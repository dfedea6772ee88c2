"""Formats of recordings, a file each; each gives a `Capture`."""
