"""Shows how far long work is: a bar on a terminal, elsewhere a line where there is news."""

from __future__ import annotations

import sys
import threading
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

LINE_EVERY_S = 10.0
"""Least time between two lines where there is no terminal."""

DRAW_EVERY_S = 0.1
"""Time between two pictures of the bar, at least."""


class WorkShown:
    """A context manager around long work; nothing of it stays on a terminal."""

    def __init__(self, title: str, text: str = "") -> None:
        """Nothing is shown before the block begins."""
        self._title, self._text = title, text
        self._bar: Progress | None = None
        self._done = threading.Event()
        self._writer: threading.Thread | None = None
        self._next_draw_s = 0.0

    def __enter__(self) -> WorkShown:
        from rich.console import Console

        console = Console(stderr=True, highlight=False, soft_wrap=True)
        if console.is_terminal:
            self._bar = _bar(console)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=None, state=self._text)
            self._bar.refresh()
        else:
            # A thread, because work such as compiling gives no sign of life.
            self._writer = threading.Thread(target=self._write_lines, daemon=True)
            self._writer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._writer is not None:
            self._writer.join()
        if self._bar is not None:
            self._bar.stop()

    def update(self, text: str, share: float | None = None) -> None:
        """Tell where the work stands."""
        self._text = text
        if self._bar is None:
            return
        self._bar.update(self._task, state=text)
        if share is not None:
            self._bar.update(self._task, total=1.0, completed=min(max(share, 0.0), 1.0))
        now = monotonic()
        if now >= self._next_draw_s:
            self._bar.refresh()
            self._next_draw_s = now + DRAW_EVERY_S

    def note(self, text: str) -> None:
        """Write a line that stays."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False)
        else:
            print(text, file=sys.stderr)

    def _write_lines(self) -> None:
        said = ""
        while not self._done.wait(LINE_EVERY_S):
            line = f"musls: {self._title}: {' '.join(self._text.split())}"
            if line != said:
                print(line, file=sys.stderr)
            said = line


def _bar(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        refresh_per_second=2,
    )
