"""End a process when the process that started it has ended, for any reason."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Thread
from typing import Any, TypeVar

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
    wanted = os.environ.get(VARIABLE, "")
    if wanted.isdigit():
        Thread(target=_kill_after, args=(int(wanted),), daemon=True).start()
        end_with(int(wanted), signal.SIGINT)


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
    "import os, sys; from musls_control.parent import end_with;"
    "end_with(int(sys.argv[1]), int(sys.argv[2])); os.execv(sys.argv[3], sys.argv[3:])"
)


def ending_with_us(words: Sequence[str]) -> list[str]:
    """Command that runs a program which gets SIGTERM when this process has ended, for any reason.

    Linux means the thread that starts it, so that has to live as long. `words` begin with a path.
    """
    return [
        sys.executable, "-c", _ENDING_WITH, str(os.getpid()), str(int(signal.SIGTERM)), *words
    ]  # fmt: skip


class ProcessDied(MuslsError):  # noqa: N818 (the name says what happened)
    """A worker process ended, or was killed, within a call."""


class _Worker:
    """A process that calls functions, one at a time; another one is started after its death.

    It leaves Ctrl-C, which on a terminal reaches all processes, to the one that started it.
    """

    def __init__(self) -> None:
        self._closed = False
        self._process: SpawnProcess | None = self._started()

    def call(self, function: Callable[..., R], *arguments: Any) -> R:
        """Call a function of a module there; raises what it raises, or ProcessDied."""
        process = self._process = self._process or self._started()
        try:
            self._pipe.send((function, arguments))
            raised, value = self._pipe.recv()
        except (EOFError, OSError):
            process.join()
            code, self._process = process.exitcode or 0, None
            how = f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            raise ProcessDied(f"a worker process died {how} (out of memory, or killed)") from None
        if raised:
            raise value
        result: R = value
        return result

    def _started(self) -> SpawnProcess:
        spawn = get_context("spawn")  # not forked: numba and DART keep threads
        self._pipe, other = spawn.Pipe()
        process = spawn.Process(target=_serve, args=(other, os.getpid()), daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which it inherits
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        other.close()
        if self._closed:  # meanwhile, by another thread
            process.kill()
        return process

    def close(self) -> None:
        """End the process at once."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()


def _serve(pipe: Connection, parent: int) -> None:
    """Answer calls with (whether it raised, result or error) until the pipe ends."""
    end_with(parent, signal.SIGKILL)
    while True:
        try:
            function, arguments = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer = False, function(*arguments)
        except Exception as error:
            answer = True, error
        try:
            pipe.send(answer)
        except Exception as error:  # it cannot be pickled
            pipe.send((True, MuslsError(f"{answer[1]!r}: {error}")))


@contextmanager
def worker_processes(count: int) -> Iterator[Executor]:
    """An executor with so many processes; an exception, such as that of Ctrl-C, ends them at once.

    The death of a process is a `ProcessDied` of the call that it was in; the others go on.
    """
    workers = [_Worker() for _ in range(count)]
    free = iter(workers)
    of_thread = threading.local()

    def begin() -> None:
        of_thread.worker = next(free)

    class Processes(ThreadPoolExecutor):
        """Threads that each leave their calls to a process."""

        def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
            return super().submit(
                lambda: of_thread.worker.call(partial(function, **named), *arguments)
            )

    with Processes(count, initializer=begin) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.close()
