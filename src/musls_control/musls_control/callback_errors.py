"""Exceptions in the callbacks of a node that must not end it while drones fly, without ROS."""

from __future__ import annotations

import traceback
from collections import Counter
from pathlib import Path

OWN = "musls_"
"""Begin of the names of our packages' folders."""


class CallbackErrors:
    """Counts exceptions by what they are and where they were raised.

    Attributes:
        counts: By description, such as "TypeError: unsupported operand (formation.py:94)".
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, error: Exception) -> str:
        """Count an exception; returns its description the first time, "" after that."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if OWN in frame.filename] or list(frames)
        place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
        known = next((text for text in self.counts if text.endswith(place)), "") if own else ""
        words = " ".join(str(error).split())
        text = known or f"{type(error).__name__}: {words}{place}"
        self.counts[text] += 1
        return text if self.counts[text] == 1 else ""
