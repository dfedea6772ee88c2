"""Figures of one flight, of comparisons and of formations, drawn with matplotlib."""
