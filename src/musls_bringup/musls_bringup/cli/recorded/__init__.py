"""Commands for recordings: compare, replay, view, sweeps and others."""
