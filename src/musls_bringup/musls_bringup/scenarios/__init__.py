"""The shipped scenarios, one YAML file each."""

from pathlib import Path

SCENARIOS = Path(__file__).parent
"""Folder of the files."""
