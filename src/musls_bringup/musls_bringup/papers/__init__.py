"""What sets a paper's table and figures beside our own flights."""
