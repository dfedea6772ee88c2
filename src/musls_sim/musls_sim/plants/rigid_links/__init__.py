"""Cables as chains of rigid links, stepped by DART (the seed paper's model)."""
