"""What holds the mechanism at each step: surfaces, loops that close, cables that do not push."""
