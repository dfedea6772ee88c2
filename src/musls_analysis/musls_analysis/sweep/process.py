"""A worker process seen from outside: give it a run, get what became of it, whatever happens."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import IO, Any

from musls_analysis.sweep.store import FAILED, Outcome
from musls_analysis.sweep.worker import END_OF_RUN, Job
from musls_description.one_thread import ONE_THREAD

_HALF_LOG = 32_768
"""Of a log, so many bytes at its beginning and at its end are kept: a diverging simulation may
print millions of lines."""

# Not -m: that would look for all modules in the user's folder first.
_SERVE = (
    "import sys; sys.path[:] = filter(None, sys.path);"
    "from musls_analysis.sweep.worker import main; main()"
)


class WorkerProcess:
    """Serves one run at a time; started with its first run, and again after its death."""

    def __init__(self, scratch: Path | None = None) -> None:
        """Nothing is started yet.

        Args:
            scratch: Where runs get temporary folders; default the system's place.
        """
        self._scratch = scratch
        self._process: subprocess.Popen[bytes] | None = None
        self._log: _Log | None = None
        self._closed = False

    def run(self, job: Job) -> Outcome:
        """Make a run; a death of the process is a failed run."""
        begin = perf_counter()
        process, log = self._started()
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(job.timeout_s or 0.0, expire)
        if job.timeout_s is not None:
            timer.start()
        try:
            with TemporaryDirectory(dir=self._scratch, prefix=f"{job.id}-") as folder:
                to_worker, from_worker = _pipes(process)
                pickle.dump((job, Path(folder)), to_worker)
                to_worker.flush()
                record, series = pickle.load(from_worker)
            return Outcome(record, series, log.take())
        except (EOFError, OSError, pickle.UnpicklingError):
            code = process.wait()
            text = log.take()
            reason = f"took longer than {job.timeout_s:g} s" if expired.is_set() else _death(code)
            wall_s = round(perf_counter() - begin, 3)
            record = {"id": job.id, "status": FAILED, "wall_s": wall_s, "host": os.uname().nodename}
            return Outcome(record | {"reason": reason + _last_words(text)}, log=text)
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the process at once."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            _close_pipes(process)

    def _started(self) -> tuple[subprocess.Popen[bytes], _Log]:
        process, log = self._process, self._log
        if process is None or log is None or process.poll() is not None:
            if process is not None:
                _close_pipes(process)
            path = os.pathsep.join(filter(None, sys.path))
            # A session of its own: Ctrl-C is for the sweep, which then ends its processes.
            self._process = process = subprocess.Popen(
                [sys.executable, "-c", _SERVE],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": path}, start_new_session=True,
            )  # fmt: skip
            self._log = log = _Log(process.stderr)
            if self._closed:  # closed by another thread meanwhile
                self.close()
        return process, log


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Standard input and output of a process that was started with pipes for both."""
    assert process.stdin is not None and process.stdout is not None
    return process.stdin, process.stdout


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close our ends of a dead process's pipes; its log closes the third."""
    for pipe in _pipes(process):
        with suppress(OSError):
            pipe.close()


def _death(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"the process died of {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"


def _last_words(log: bytes) -> str:
    lines = [line.strip() for line in log.decode(errors="replace").splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""


class _Log:
    """Drains a stream, and keeps beginning and end of what came since the last `take`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._news = threading.Condition()
        self._head, self._tail, self._dropped = b"", b"", 0
        self._ended = False
        threading.Thread(target=self._drain, daemon=True).start()

    def take(self) -> bytes:
        """What was printed up to the end of the run or of the process."""
        with self._news:
            self._news.wait_for(
                lambda: self._ended or (self._head + self._tail).endswith(END_OF_RUN), timeout=2.0
            )
            gap = f"\n... {self._dropped} bytes left out ...\n".encode() if self._dropped else b""
            text = self._head + gap + self._tail
            self._head, self._tail, self._dropped = b"", b"", 0
        return text.replace(END_OF_RUN, b"").strip(b"\n")

    def _drain(self) -> None:
        with suppress(OSError, ValueError), self._stream:
            while chunk := os.read(self._stream.fileno(), 65_536):
                with self._news:
                    self._keep(chunk)
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _keep(self, chunk: bytes) -> None:
        room = _HALF_LOG - len(self._head)
        self._head += chunk[:room]
        tail = self._tail + chunk[room:]
        self._dropped += max(0, len(tail) - _HALF_LOG)
        self._tail = tail[-_HALF_LOG:]
