"""Progress of long work: a bar on a terminal, elsewhere a line where there is news."""

from __future__ import annotations

import sys
import threading
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

    from musls_sim.session.loop import Observer
    from musls_sim.session.session import Session


LINE_EVERY_S = 10.0
"""Least time between two lines where there is no terminal."""

DRAW_EVERY_S = 0.1
"""Time between two pictures of the bar, at least."""

PREPARING = "preparing (compiles on first use, some 20 s)"


def is_watched() -> bool:
    """Whether a person sees the output: a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class ProgressDisplay:
    """A context manager around long work; nothing of it stays on a terminal."""

    def __init__(self, title: str, text: str = "", *, quiet: bool = False) -> None:
        """`quiet`: show nothing but notes."""
        self._title = title
        self._text = text
        self._quiet = quiet
        self._bar: Progress | None = None
        self._done = threading.Event()
        self._writer: threading.Thread | None = None
        self._next_draw_s = 0.0

    def __enter__(self) -> ProgressDisplay:
        if self._quiet:
            return self
        from rich.console import Console

        console = Console(stderr=True, highlight=False, soft_wrap=True)
        if console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[state]}", markup=False),
                TimeElapsedColumn(),
                console=console,
                transient=True,
                refresh_per_second=2,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=None, state=self._text)
            self._bar.refresh()
        else:
            # A thread, because work such as compiling gives no sign of life.
            self._writer = threading.Thread(target=self._write_lines, daemon=True)
            self._writer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        if self._writer is not None:
            self._writer.join()
        if self._bar is not None:
            self._bar.stop()

    def update(self, text: str, share: float | None = None) -> None:
        """Show the progress."""
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

    def flight(self, remark: str = "") -> Observer:
        """Progress display of a flight."""
        from musls_sim.session.loop import Progress

        # Of one flight after another: simulated and real time of the first look after compiling.
        begin: list[tuple[Session, float, float]] = []

        def show(now: float, session: Session) -> None:
            if not now:
                return
            planned_s = session.guidance.planned_s
            pace = ""
            if begin and begin[0][0] is session:
                _, begin_s, real_s = begin[0]
                factor = (now - begin_s) / (monotonic() - real_s)
                rest_s = max(planned_s - now, 0.0) / factor
                pace = f"{factor:5.1f}x real time  {rest_s:3.0f} s left  "
            else:
                begin[:] = [(session, now, monotonic())]
            stage = session.stage.replace("_", " ")
            self.update(f"{now:6.1f} / {planned_s:.0f} s  {pace}{stage} {remark}", now / planned_s)

        return Progress(show)

    def share(self, share: float) -> None:
        """Show the share that is done."""
        self.update(f"{100 * share:.0f} %", share)

    def count(self, done: int, total: int) -> None:
        """Show how many of several flights are done."""
        self.update(f"{done} of {total} done", done / total)

    def note(self, text: str) -> None:
        """Write a line that stays."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False)
        else:
            print(text, file=sys.stderr)

    def _write_lines(self) -> None:
        last_line = ""
        while not self._done.wait(LINE_EVERY_S):
            line = f"musls: {self._title}: {' '.join(self._text.split())}"
            if line != last_line:
                print(line, file=sys.stderr)
            last_line = line
