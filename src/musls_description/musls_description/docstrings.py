"""Read Google-style docstrings of classes: summary, explanation, meaning of each field."""

from __future__ import annotations

import inspect
import re


def summary(thing: object) -> str:
    """First line of a docstring; "" if there is no docstring."""
    return (thing.__doc__ or "").strip().partition("\n")[0]


def explanation(kind: type) -> str:
    """What a class's docstring says before its sections, on one line."""
    text = re.split(r"\n\n(?=\w+:\n)", inspect.cleandoc(kind.__doc__ or ""))[0]
    return " ".join(text.split())


def meanings(kind: type) -> dict[str, str]:
    """Meaning of each field from "Attributes:", on one line, those of base classes included."""
    found: dict[str, str] = {}
    for cls in reversed(kind.__mro__[:-1]):
        found |= _own_meanings(cls)
    return found


def _own_meanings(kind: type) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    text = inspect.cleandoc(vars(kind).get("__doc__") or "")
    for line in text.partition("Attributes:\n")[2].split("\n"):
        match = re.fullmatch(r" {4}(\w+): (.*)", line)
        if match:
            name = match[1]
            found[name] = match[2]
        elif name and line.startswith(" " * 8):
            found[name] += " " + line.strip()
        elif line.strip():
            break
    return found
