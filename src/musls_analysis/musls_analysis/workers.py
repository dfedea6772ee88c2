"""Worker processes that end with the process that started them, however that ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context

from musls_control.parent import end_with
from musls_description.errors import MuslsError


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
