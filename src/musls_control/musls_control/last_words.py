"""What a program said when it ended, and how it ended, for a message of one line."""

from __future__ import annotations

import re
import signal
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))|[\r\x00-\x08]")
OUR_ERROR = "musls: error: "
_TOLD = (
    re.compile(rf"^{OUR_ERROR}"),
    re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)\b"),  # end of a traceback
    re.compile(r"\b(?:FATAL|fatal|ERROR|error|Error|terminate called)\b"),
    re.compile(r"\b(?:WARN|WARNING|warning)\b"),
)
"""What most likely says why, in this order."""


def plain(text: str) -> str:
    """A text without the codes by which terminals colour and move."""
    return _ESCAPES.sub("", text)


def lines_of(text: str) -> list[str]:
    """Lines that say something, plain and with single spaces."""
    return [line for raw in plain(text).split("\n") if (line := " ".join(raw.split()))]


def last_words(text: str) -> str:
    """The line of a program's output that most likely says why it ended, "" without any line.

    What libraries log after that, or beside it, is passed over.
    """
    lines = lines_of(text)
    for told in _TOLD:
        for line in reversed(lines):
            if told.search(line):
                return line.removeprefix(OUR_ERROR)
    return lines[-1] if lines else ""


def ending(code: int) -> str:
    """How a process ended, in words, from its return code."""
    if code >= 0:
        return f"ended with code {code}"
    known = {s.value for s in signal.Signals}
    return f"was ended by {signal.Signals(-code).name if -code in known else f'signal {-code}'}"


def why_ended(code: int, output: str, more: Iterable[str] = ()) -> str:
    """How a process ended and what it said, for the end of a sentence."""
    said = [words for words in (last_words(output), *more) if words]
    return ending(code) + (f": {'; '.join(said)}" if said else ", without a word")


# ---------- Exceptions in callbacks that must not end a node while drones fly

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
