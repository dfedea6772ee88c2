"""End a process when the process that started it has ended, for any reason."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from threading import Thread

from musls_description.config.errors import MuslsError

VARIABLE = "MUSLS_PARENT"
"""Environment variable with the process id of the parent with which a node ends."""

_PR_SET_PDEATHSIG = 1

STOP_S = 30.0
"""Time that a node gets to end after SIGINT before it is killed."""
LOOK_S = 1.0


def end_quietly_while_starting() -> None:
    """Let SIGINT and SIGTERM end a node that somebody else started without a traceback.

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
    except (OSError, AttributeError):  # not Linux
        return
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Give so many processes; an exception, such as that of Ctrl-C, ends them at once.

    Ctrl-C on a terminal reaches all of its processes; these leave it to the one that started them.
    """
    others = set(active_children())
    # Spawned, not forked: numba and DART keep threads.
    spawn = get_context("spawn")
    with ProcessPoolExecutor(count, spawn, end_with, (os.getpid(), signal.SIGKILL)) as pool:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for _ in range(count):  # starts a process each, which inherits what is blocked
                pool.submit(os.getpid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            yield pool
        except BaseException as error:
            for process in set(active_children()) - others:
                process.kill()
            pool.shutdown(cancel_futures=True)
            if isinstance(error, BrokenProcessPool):
                raise MuslsError("a worker process died (out of memory, or killed)") from error
            raise
