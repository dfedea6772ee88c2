"""Suggestions for a wrong name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_NAMES = 60
"""Known names that are listed when none is near."""

LONGEST_NAME = 100
"""Of a longer name none is near; comparing it would take long."""


def near_names(name: object, known: Iterable[str]) -> str:
    """Say which known names are closest to a wrong one, else list them all.

    Args:
        name: What was given; need not be text.
        known: What may be given.

    Returns:
        "did you mean 'a' or 'b'?", or "known: a, b, c".
    """
    known = [str(one) for one in known]
    near: list[str] = []
    if isinstance(name, str) and len(name) <= LONGEST_NAME:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(f"'{n}'" for n in near) + "?"
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return "known: " + (", ".join(known[:MOST_NAMES]) or "none") + more
