"""Errors that a user can mend; the command line shows them as one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_LENGTH = 2000
"""Of a message; what a user gave in, such as a name of a million letters, stands in it."""


def one_line(text: str) -> str:
    """Write a text on one line: white space becomes a blank, control characters are escaped."""
    text = " ".join(text.split())
    if len(text) > MAX_LENGTH:
        half = MAX_LENGTH // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class MuslsError(Exception):
    """Base of all errors that end a command with one clear line and exit code 2."""

    def __init__(self, message: str = "") -> None:
        """Keep the message on one line."""
        super().__init__(one_line(str(message)))


class ConfigError(MuslsError, ValueError):
    """A file, key or value is wrong; the message names it, its value and what is allowed."""


# ---------- Suggestions for a wrong name

MOST_NAMES = 60
"""Known names that are listed when none is near."""

LONGEST_NAME = 100
"""Of a longer name none is near; comparing it would take long."""


def near_names(name: object, known: Iterable[str]) -> str:
    """Known names near a wrong one, "did you mean 'a' or 'b'?", else all, "known: a, b, c"."""
    known = [str(one) for one in known]
    near: list[str] = []
    if isinstance(name, str) and len(name) <= LONGEST_NAME:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(f"'{n}'" for n in near) + "?"
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return "known: " + (", ".join(known[:MOST_NAMES]) or "none") + more
