"""Suggestions for a wrong name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near_names(name: str, known: Iterable[str]) -> str:
    """Say which known names are closest to a wrong one, else list them all.

    Returns:
        "did you mean 'a' or 'b'?", or "known: a, b, c".
    """
    known = list(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(f"'{n}'" for n in near) + "?"
    return "known: " + ", ".join(known)
