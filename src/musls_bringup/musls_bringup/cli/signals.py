"""Signals that ask a command to end: Ctrl-C, SIGTERM and SIGHUP keep what was flown, all alike."""

from __future__ import annotations

import signal
from types import FrameType

EXIT_INTERRUPTED = 128 + signal.SIGINT
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals."""


class EndAsked(KeyboardInterrupt):
    """One of the signals came.

    Attributes:
        number: Which.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def catch() -> None:
    """Let each of the signals raise `EndAsked`, but leave those alone that are to be ignored.

    `nohup` ignores SIGHUP, and shells SIGINT for what they start in the background.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise)


def _raise(number: int, frame: FrameType | None) -> None:
    raise EndAsked(number)


def exit_code(error: KeyboardInterrupt) -> int:
    """What a shell expects of a process that a signal ended: 128 and its number."""
    return 128 + getattr(error, "number", signal.SIGINT)
