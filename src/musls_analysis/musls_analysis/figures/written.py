"""What is known of a figure on disk; apart from the drawing, so that it needs no matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class WrittenFigure(NamedTuple):
    """A figure on disk.

    Attributes:
        path: PNG file.
        title: Short title.
        caption: What one sees.
        narrow: Whether two fit side by side.
    """

    path: Path
    title: str
    caption: str
    narrow: bool = False
