"""Draws figures in a helper process that is started early and waits.

Importing matplotlib takes as long as drawing half a report, and drawing uses one core. A process
started before a flight has matplotlib ready when the flight ends; then it splits in two, which
share the figures. It is a fresh interpreter, not a fork of this process, so physics and compiled
code here do not matter to it. If it fails that costs nothing but time: the figures are then drawn
here. This module imports nothing that is slow, so that the process can be started first of all.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from musls_analysis.figures.written import WrittenFigure
from musls_description.one_thread import ONE_THREAD

if TYPE_CHECKING:
    from musls_analysis.figures.write import FigurePlan
    from musls_analysis.recordings.recording import Recording

# Not -m: that would look for all modules in the user's folder first.
_SERVE = (
    "import sys; sys.path[:] = filter(None, sys.path);"
    "from musls_analysis.figures.worker import main; main()"
)


class FigureWorkers:
    """A context manager; leaving it ends the process."""

    def __init__(self, count: int = 2) -> None:
        """Start the process and return at once.

        Args:
            count: Number of processes that it splits into.
        """
        self.count = count
        path = os.pathsep.join(filter(None, sys.path))
        # A session of its own: Ctrl-C is for this process, which then closes its input.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": path}, start_new_session=True,
        )  # fmt: skip

    def begin(self, recording: Recording, summary: Mapping[str, Any], folder: Path) -> None:
        """Begin to do the same as `musls_analysis.figures.write.write_figures`, once."""
        self._job = recording, summary, folder
        with suppress(OSError):  # a dead process is noticed below
            to_process, _ = self._pipes()
            pickle.dump((self.count, *self._job), to_process, pickle.HIGHEST_PROTOCOL)
            to_process.close()

    def finish(self) -> list[WrittenFigure]:
        """Wait for the figures that were begun; the process ends with it."""
        try:
            return pickle.load(self._pipes()[1])
        except (EOFError, OSError, pickle.UnpicklingError):
            from musls_analysis.figures.write import write_figures

            return write_figures(*self._job)

    def close(self) -> None:
        """End the process, and those that it split into."""
        to_process, from_process = self._pipes()
        with suppress(OSError):
            to_process.close()
        from_process.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()

    def __enter__(self) -> FigureWorkers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """Input and output of the process."""
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a helper process without pipes")
        return process.stdin, process.stdout


def main() -> None:
    """Get ready, wait for one job, draw, answer."""
    gc.disable()  # an eighth of the time would go into looking for garbage
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from musls_analysis.figures import style
    from musls_analysis.figures.write import figure_plans

    with style.styled():
        _warm_up()
        try:
            count, recording, summary, folder = pickle.load(sys.stdin.buffer)
        except EOFError:  # not needed after all
            return
        folder.mkdir(parents=True, exist_ok=True)
        _plans[:] = figure_plans(recording, summary)
        numbers = range(len(_plans))
        with ProcessPoolExecutor(count, get_context("fork")) as pool:
            # The last ones take longest: begun first, no process waits for another at the end.
            written = list(pool.map(_write, reversed(numbers), [folder] * len(numbers)))[::-1]
    sys.stdout.buffer.write(pickle.dumps(written))
    sys.stdout.buffer.flush()


_plans: list[FigurePlan] = []
"""Of the job; the processes have it because they split after it is made."""


def _write(number: int, folder: Path) -> WrittenFigure:
    from musls_analysis.figures.write import write_figure

    return write_figure(_plans[number], folder)


def _warm_up() -> None:
    """Draw what every figure has: matplotlib loads fonts and more at the first use."""
    from musls_analysis.figures import style

    figure = style.new_figure(1.0)
    ax = figure.add_subplot()
    ax.set_title("ready")
    ax.axvspan(0.0, 0.5)
    ax.fill_between([0.0, 1.0], [0.0, 0.5], [1.0, 1.0])
    ax.plot([0.0, 1.0], [0.0, 1.0], marker="^")
    style.legend_on_top(figure, style.body_handles(["load", "drone_1"]))
    style.save(figure, BytesIO())


if __name__ == "__main__":
    main()
