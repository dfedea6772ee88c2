"""Draws figures in helper processes that are started early and wait.

Importing matplotlib takes as long as drawing half a report, and drawing uses one core. A process
started before a flight imports it and splits in several, which have everything ready when the
flight ends and then share the figures. It is a fresh interpreter, not a fork of this process, so
physics and compiled code here do not matter to it. If it fails that costs nothing but time: the
figures are then drawn here. This module imports nothing that is slow, so that the process can be
started first of all.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from musls_analysis.figures.written import WrittenFigure
from musls_description.one_thread import ONE_THREAD

if TYPE_CHECKING:
    from musls_analysis.figures.pose import PoseFigure
    from musls_analysis.recordings.recording import Recording

# Not -m: that would look for all modules in the user's folder first.
_SERVE = (
    "import sys; sys.path[:] = filter(None, sys.path);"
    "from musls_analysis.figures.worker import main; main(int(sys.argv[1]))"
)


class FigureWorkers:
    """A context manager; leaving it ends the process."""

    def __init__(self, count: int = 2) -> None:
        """Start the process and return at once.

        Args:
            count: Number of processes that it splits into.
        """
        path = os.pathsep.join(filter(None, sys.path))
        # A session of its own: Ctrl-C is for this process, which then closes its input.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": path}, start_new_session=True,
        )  # fmt: skip

    def begin(self, recording: Recording, summary: Mapping[str, Any], folder: Path) -> None:
        """Begin to do the same as `musls_analysis.figures.write.write_figures`, once."""
        self._job = recording, summary, folder
        with suppress(OSError):  # a dead process is noticed below
            to_process, _ = self._pipes()
            pickle.dump(self._job, to_process, pickle.HIGHEST_PROTOCOL)
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


def main(count: int) -> None:
    """Get ready, wait for one job, draw, answer.

    Args:
        count: Number of processes that draw.
    """
    gc.disable()  # an eighth of the time would go into looking for garbage
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from musls_analysis.figures import style, write  # noqa: F401 (before they split off)

    fork = get_context("fork")
    _taken.extend([fork.Value("i", 0), fork.Value("i", 0)])
    with (
        style.styled(),
        TemporaryFile() as job,
        ProcessPoolExecutor(count, fork, _get_ready) as pool,
    ):
        pool.submit(os.getpid)  # now they split off
        shutil.copyfileobj(sys.stdin.buffer, job)
        job.flush()
        if not job.tell():  # not needed after all
            return
        shares = pool.map(_draw_share, range(count), [job.fileno()] * count)
        written = [figure for _, figure in sorted(chain.from_iterable(shares))]
    sys.stdout.buffer.write(pickle.dumps(written))
    sys.stdout.buffer.flush()


_taken: list[Any] = []
"""How many figures were begun from the front and from the back of their row, shared memory."""

_pose: list[PoseFigure] = []
"""Axes for poses that were made before the job came."""


def _get_ready() -> None:
    """Draw what every figure has: matplotlib loads fonts and more at the first use.

    Each process does it after it has split off, because the first writing to a page of the memory
    that they share takes time, too.
    """
    from musls_analysis.figures import style, write

    figure = style.new_figure(1.0)
    ax = figure.add_subplot()
    ax.set_title("ready")
    ax.axvspan(0.0, 0.5)
    ax.fill_between([0.0, 1.0], [0.0, 0.5], [1.0, 1.0])
    ax.plot([0.0, 1.0], [0.0, 1.0], marker="^")
    style.legend_on_top(figure, style.body_handles(["load", "drone_1"]))
    style.save(figure, BytesIO())
    _pose[:] = [write.PoseFigure()]


def _draw_share(number: int, job: int) -> list[tuple[int, WrittenFigure]]:
    """Draw figures until none is left."""
    from musls_analysis.figures.write import figure_plans, write_figure

    # Not read: the processes share the position in the file.
    with mmap.mmap(job, 0, access=mmap.ACCESS_READ) as content:
        recording, summary, folder = pickle.loads(content)
    folder.mkdir(parents=True, exist_ok=True)
    plans = list(figure_plans(recording, summary, *_pose))
    # The last ones take longest: begun first, no process waits for another at the end.
    row = sorted(reversed(range(len(plans))), key=lambda place: plans[place].shares_axes)
    written = []
    while (place := _take(row, from_back=number == 0)) is not None:
        written.append((place, write_figure(plans[place], folder)))
    return written


def _take(row: Sequence[int], *, from_back: bool) -> int | None:
    """Next figure of a row that no process has begun."""
    front, back = _taken
    with front.get_lock():
        if front.value + back.value == len(row):
            return None
        if from_back:
            back.value += 1
            return row[-back.value]
        front.value += 1
        return row[front.value - 1]


if __name__ == "__main__":
    main(int(sys.argv[1]))
