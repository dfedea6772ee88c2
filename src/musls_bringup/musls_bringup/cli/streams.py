"""Standard streams that never end a run: closed, full, or unable to show a degree sign.

A flight must not be lost because the terminal has gone. What cannot be written is dropped, and the
end of the command says so.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import unicodedata
from typing import Any

_PLAIN = {"°": " deg", "×": "x", "±": "+-", "µ": "u", "\N{GREEK SMALL LETTER MU}": "u",
          "–": "-", "—": "-", "−": "-", "…": "...", "\u202f": " ", "·": "*", "→": "->"}  # fmt: skip


def plain(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: write what a terminal cannot show in plain letters."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    letters = (_PLAIN.get(c) or _without_accent(c) for c in text)
    return "".join(letters), error.end


def _without_accent(letter: str) -> str:
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"


codecs.register_error("musls.plain", plain)


class Sink(io.RawIOBase):
    """A file descriptor that takes everything; after its first failure it drops what comes.

    Attributes:
        failure: Why something was dropped.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all or, after a failure, nothing."""
        left = memoryview(data).cast("B")
        size = len(left)
        while left and self.failure is None:
            try:
                left = left[os.write(self._descriptor, left) :]
            except OSError as error:
                self.failure = error
        return size

    def writable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._descriptor)


def protect() -> Sink:
    """Put such streams in the place of standard output and error; for a process of its own.

    Returns:
        Standard output's.
    """
    for descriptor in (0, 1, 2):  # a closed one would become the next file that is opened
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    encodings = [getattr(s, "encoding", None) or "utf-8" for s in (sys.stdout, sys.stderr)]
    sinks = [Sink(1), Sink(2)]
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedWriter(sink), encoding, "musls.plain", line_buffering=sink.isatty() or to_err
        )
        for sink, encoding, to_err in zip(sinks, encodings, (False, True), strict=True)
    )
    return sinks[0]


def is_quiet(failure: OSError) -> bool:
    """Whether the reader has just gone, such as `head`."""
    return failure.errno == errno.EPIPE
