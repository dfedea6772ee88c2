"""How the user calls the program."""

from __future__ import annotations

from pathlib import Path


def program() -> str:
    """`./musls`, the script of a checkout, or `musls` where only the packages are installed."""
    return "./musls" if (Path(__file__).parents[3] / "musls").is_file() else "musls"
