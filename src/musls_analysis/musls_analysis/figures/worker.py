"""Draws figures in helper processes that are started early and wait.

Importing matplotlib takes as long as drawing half a report, and drawing uses one core. Processes
started before a flight have matplotlib ready when the flight ends, and share the figures. They are
fresh interpreters, not forks, so physics and compiled code in this process do not matter to them.
A helper that fails costs nothing but time: its figures are then drawn here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from musls_analysis.figures.written import WrittenFigure
from musls_analysis.recordings.recording import Recording

# Not -m: that would look for all modules in the user's folder first.
_SERVE = (
    "import sys; sys.path[:] = filter(None, sys.path);"
    "from musls_analysis.figures.worker import main; main()"
)


class FigureWorkers:
    """A context manager; leaving it ends the processes.

    Attributes:
        count: Number of processes.
    """

    def __init__(self, count: int = 2) -> None:
        """Start the processes and return at once.

        Args:
            count: Number of processes.
        """
        self.count = count
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        # A session of their own: Ctrl-C is for this process, which then closes their input.
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-c", _SERVE],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=environment, start_new_session=True,
            )
            for _ in range(count)
        ]  # fmt: skip

    def begin(self, recording: Recording, summary: Mapping[str, Any], folder: Path) -> None:
        """Begin to do the same as `musls_analysis.figures.write.write_figures`, once."""
        self._job = recording, summary, folder
        job = pickle.dumps((recording, summary, folder), pickle.HIGHEST_PROTOCOL)
        for k, process in enumerate(self._processes):
            with suppress(OSError):  # a dead process is noticed below
                to_process, _ = _pipes(process)
                pickle.dump((slice(k, None, self.count), job), to_process)
                to_process.close()

    def finish(self) -> list[WrittenFigure]:
        """Wait for the figures that were begun; the processes end with it."""
        figures: dict[int, WrittenFigure] = {}
        for k, process in enumerate(self._processes):
            try:
                written = pickle.load(_pipes(process)[1])
            except (EOFError, OSError, pickle.UnpicklingError):
                from musls_analysis.figures.write import write_figures

                written = write_figures(*self._job, slice(k, None, self.count))
            figures |= {k + self.count * i: figure for i, figure in enumerate(written)}
        return [figures[i] for i in sorted(figures)]

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            to_process, from_process = _pipes(process)
            with suppress(OSError):
                to_process.close()
            from_process.close()
            process.terminate()
            process.wait()

    def __enter__(self) -> FigureWorkers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Its input and its output."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a helper process without pipes")
    return process.stdin, process.stdout


def main() -> None:
    """Get ready, wait for one job, draw, answer."""
    from musls_analysis.figures import style
    from musls_analysis.figures.write import write_figures

    with style.styled():  # loads fonts
        figure = style.new_figure(1.0)
        figure.add_subplot().set_title("ready")
        figure.canvas.draw()
    try:
        part, job = pickle.load(sys.stdin.buffer)
    except EOFError:  # not needed after all
        return
    recording, summary, folder = pickle.loads(job)
    answer = pickle.dumps(write_figures(recording, summary, folder, part))
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
