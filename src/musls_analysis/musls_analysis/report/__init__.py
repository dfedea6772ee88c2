"""Report: summary, page and tensions of one flight."""
