"""Signals that ask a run to end: Ctrl-C, SIGTERM and SIGHUP, all alike, keep what was flown.

Before anything is flown they end the command at once. In flight the first one stops the flight,
whose results are then written; one more, or the first one after the flight, leaves the report out.
Bag, scenario and summary are kept in any case, unless a third one comes while they are written.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals."""

GIVE_UP = 3
"""With so many signals results are no longer waited for."""


class EndAsked(SystemExit):
    """One of the signals came; no `KeyboardInterrupt`, which typer would make an exit code of 130.

    Attributes:
        exit_code: What a shell expects of a process that a signal ended: 128 and its number.
    """

    def __init__(self, number: int) -> None:
        """Keep the exit code.

        Args:
            number: Of the signal.
        """
        self.exit_code = 128 + number
        super().__init__(self.exit_code)


def catch() -> None:
    """Let each of the signals raise `EndAsked`, but leave those alone that are to be ignored.

    `nohup` ignores SIGHUP, and shells SIGINT for what they start in the background.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise)


def _raise(number: int, frame: FrameType | None) -> None:
    raise EndAsked(number)


class Ending:
    """A context manager around a run that is to keep its results when it is asked to end.

    It takes over the signals that would raise an exception; others, such as SIGTERM in a program
    that uses musls as a library, keep their meaning. Outside the main thread it does nothing.

    Attributes:
        number: The first signal that came; 0 without any.
    """

    def __init__(self) -> None:
        self.number = 0
        self._count = 0
        self._stop: Callable[[], None] | None = None
        self._skippable = False
        self._before: dict[int, Any] = {}

    @property
    def name(self) -> str | None:
        """Name of the first signal; None without any."""
        return signal.Signals(self.number).name if self.number else None

    def keep_with(self, stop: Callable[[], None]) -> None:
        """From now on there is something to keep.

        Args:
            stop: Ends the run soon; called from a signal handler.
        """
        self._stop = stop

    @contextmanager
    def skippable(self) -> Iterator[None]:
        """Around work that one more signal breaks off; with two signals it does not begin.

        Raises:
            EndAsked: It is to be left out.
        """
        self._skippable = True
        try:
            if self._count > 1:
                raise EndAsked(self.number)
            yield
        finally:
            self._skippable = False

    def __enter__(self) -> Ending:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                handler = signal.getsignal(number)
                if callable(handler):  # SIG_DFL and SIG_IGN are not
                    self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        self.number = self.number or number
        if self._stop is None or self._skippable:
            raise EndAsked(number)
        if self._count >= GIVE_UP:
            raise KeyboardInterrupt
        self._stop()
