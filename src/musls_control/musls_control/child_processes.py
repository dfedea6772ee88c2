"""Processes that end with the one that started them, and what they said when they ended."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from musls_description import ONE_THREAD
from musls_description.config.errors import MuslsError

R = TypeVar("R")

VARIABLE = "MUSLS_PARENT"
"""Environment variable with the process id of the parent with which a node ends."""

EXIT_BAD_INPUT = 2
"""Exit code of a node that was given what it cannot use."""

_PR_SET_PDEATHSIG = 1

STOP_S = 30.0
"""Time that a node gets to end after SIGINT before it is killed."""
LOOK_S = 1.0


def end_quietly_while_starting() -> None:
    """End without a traceback on SIGINT and SIGTERM in a node that another program started.

    For the time in which its modules are imported; `run` takes the signals after that.
    """
    if os.environ.get(VARIABLE, "").isdigit():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: os._exit(0))


def end_with_parent() -> None:
    """Get SIGINT when the process named in MUSLS_PARENT ends; at once if it has ended already.

    SIGINT lets a recorder finish its bag. A node that hangs is killed `STOP_S` later.
    """
    parent = os.environ.get(VARIABLE, "")
    if parent.isdigit():
        Thread(target=_kill_after, args=(int(parent),), daemon=True).start()
        end_with(int(parent), signal.SIGINT)


def _kill_after(parent: int) -> None:
    """Kill this process some time after its parent has ended."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    time.sleep(STOP_S)
    os.kill(os.getpid(), signal.SIGKILL)


def end_with(parent: int, number: int) -> None:
    """Get a signal when the parent process ends; at once if it has ended already.

    After SIGKILL it cannot end what it started.
    """
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    except (OSError, AttributeError, TypeError):  # not Linux
        return
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


_ENDING_WITH = (
    "import os, sys; from musls_control.child_processes import end_with;"
    "end_with(int(sys.argv[1]), int(sys.argv[2])); os.execv(sys.argv[3], sys.argv[3:])"
)


def ending_with_us(words: Sequence[str]) -> list[str]:
    """Command that runs a program which gets SIGTERM when this process has ended, for any reason.

    Linux means the thread that starts it, so that has to live as long. `words` begin with a path.
    """
    return [sys.executable, "-c", _ENDING_WITH, str(os.getpid()), str(int(signal.SIGTERM)), *words]


class ProcessDied(MuslsError):  # noqa: N818 (the name says what happened)
    """A worker process ended, or was killed, within a call.

    Attributes:
        code: Exit code, or minus the signal that ended it.
        closed: Whether it was its owner who ended it.
    """

    def __init__(self, code: int, *, closed: bool = False) -> None:
        self.code = code
        self.closed = closed
        super().__init__(f"a worker process {ending(code)} (out of memory, or killed)")


# Not -m: that would look for all modules in the user's folder first.
_SERVE = (
    "import sys; sys.path[:] = filter(None, sys.path);"
    "from musls_control.child_processes import serve; serve()"
)


class WorkerProcess:
    """A process that calls functions, one at a time; another one is started after its death.

    It leaves Ctrl-C, which on a terminal reaches all processes, to the one that started it.
    """

    def __init__(self) -> None:
        self._closed = False
        self._process = self._started()

    def call(self, function: Callable[..., R], *arguments: Any) -> R:
        """Call a function of a module there; raises what it raises, or ProcessDied."""
        if self._process.poll() is not None:
            self._process = self._started()
        try:
            self._pipe.send((function, arguments))
            is_error, value = self._pipe.recv()
        except (EOFError, OSError):
            raise ProcessDied(self._process.wait(), closed=self._closed) from None
        if is_error:
            raise value
        result: R = value
        return result

    def _started(self) -> subprocess.Popen[bytes]:
        self._pipe, other = Pipe()
        words = [sys.executable, "-c", _SERVE, str(other.fileno()), str(os.getpid())]
        path = os.pathsep.join(filter(None, sys.path))
        with other:
            # Neither forked nor a child of multiprocessing's: numba and DART keep threads, and
            # Dask's workers may have no such children.
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
                start_new_session=True,
            )
        if self._closed:  # meanwhile, by another thread
            process.kill()
        return process

    def close(self) -> None:
        """End the process at once."""
        self._closed = True
        self._process.kill()
        self._process.wait()


def serve() -> None:
    """Answer calls with (whether it raised, result or error) until the pipe ends."""
    pipe = Connection(int(sys.argv[1]))
    parent = int(sys.argv[2])
    end_with(parent, signal.SIGKILL)
    while True:
        try:
            function, arguments = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            answer = False, function(*arguments)
        except Exception as error:
            answer = True, error
        try:
            pipe.send(answer)
        except Exception as error:  # it cannot be pickled
            pipe.send((True, MuslsError(f"{answer[1]!r}: {error}")))


_of_thread = threading.local()


def call_in_worker(function: Callable[..., R], *arguments: Any) -> R:
    """Call a function in the worker process of this thread, which keeps it for the next call."""
    if not hasattr(_of_thread, "worker"):
        _of_thread.worker = WorkerProcess()
    worker: WorkerProcess = _of_thread.worker
    return worker.call(function, *arguments)


class _Processes(ThreadPoolExecutor):
    """Threads that each leave their calls to a worker process."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        return super().submit(call_in_worker, partial(function, **named), *arguments)


def worker_count(workers: int | None, calls: int) -> int:
    """Number of processes: as many as asked for, else one per core, and at most one per call."""
    if workers is None:
        workers = (
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        )
    return max(1, min(workers or 1, calls))


@contextmanager
def worker_threads(
    count: int, executor: type[ThreadPoolExecutor] = ThreadPoolExecutor
) -> Iterator[Executor]:
    """An executor of threads that each have a worker process for `call_in_worker`.

    An exception, such as that of Ctrl-C, ends the processes at once.
    """
    workers = [WorkerProcess() for _ in range(count)]
    free = iter(workers)

    def begin() -> None:
        _of_thread.worker = next(free)

    with executor(count, initializer=begin) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.close()


def worker_processes(count: int) -> AbstractContextManager[Executor]:
    """An executor with so many processes, see `worker_threads`.

    The death of a process is a `ProcessDied` of the call that it was in; the others go on.
    """
    return worker_threads(count, _Processes)


# ---------- What a program said when it ended, and how it ended, for a message of one line


_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))|[\r\x00-\x08]")
OUR_ERROR = "musls: error: "
_TOLD = (
    re.compile(rf"^{OUR_ERROR}"),
    re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)\b"),  # end of a traceback
    re.compile(r"\b(?:FATAL|fatal|ERROR|error|Error|terminate called)\b"),
    re.compile(r"\b(?:WARN|WARNING|warning)\b"),
)
"""Patterns of lines that most likely say why a process ended, in order of preference."""


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
    for pattern in _TOLD:
        for line in reversed(lines):
            if pattern.search(line):
                return line.removeprefix(OUR_ERROR)
    return lines[-1] if lines else ""


def ending(code: int) -> str:
    """Description of how a process ended, from its return code."""
    if code >= 0:
        return f"ended with code {code}"
    numbers = {s.value for s in signal.Signals}
    return f"was ended by {signal.Signals(-code).name if -code in numbers else f'signal {-code}'}"


def why_ended(code: int, output: str) -> str:
    """Description of how a process ended and what it said, to end a sentence with."""
    words = last_words(output)
    return ending(code) + (f": {words}" if words else ", without a word")


# ---------- Exceptions in callbacks that must not end a node while drones fly

OWN = "musls_"
"""Begin of the names of our packages' folders."""


class CallbackErrors:
    """Counts exceptions by what they are and where they were raised.

    Attributes:
        counts: Counts by description, such as "TypeError: unsupported operand (formation.py:94)".
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, error: Exception) -> str:
        """Count an exception; returns its description the first time, "" after that."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if OWN in frame.filename] or list(frames)
        place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
        earlier_text = (
            next((text for text in self.counts if text.endswith(place)), "") if own else ""
        )
        words = " ".join(str(error).split())
        text = earlier_text or f"{type(error).__name__}: {words}{place}"
        self.counts[text] += 1
        return text if self.counts[text] == 1 else ""
