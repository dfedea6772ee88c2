"""Commands on what was recorded: compare, replay, view, sweeps and the like."""
