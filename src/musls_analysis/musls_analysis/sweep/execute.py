"""Runs jobs, several at a time: in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from musls_analysis.sweep.process import WorkerProcess
from musls_analysis.sweep.store import FAILED, Outcome, SweepError
from musls_analysis.sweep.worker import Job

_CONNECT_S = 10


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_local(jobs: Sequence[Job], workers: int, scratch: Path) -> Generator[Outcome, None, None]:
    """Make runs in processes of this machine.

    Leaving the iterator ends the processes.

    Args:
        jobs: The runs.
        workers: Number of processes.
        scratch: Folder for temporary folders.

    Yields:
        What became of each run, as they end.
    """
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    made: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
    stop = threading.Event()

    def serve(process: WorkerProcess) -> None:
        try:
            while not stop.is_set():
                made.put(process.run(waiting.get_nowait()))
        except queue.Empty:
            pass
        except BaseException as error:  # shown by the thread that waits
            made.put(error)

    processes = [WorkerProcess(scratch) for _ in range(min(workers, len(jobs)))]
    threads = [threading.Thread(target=serve, args=(p,), daemon=True) for p in processes]
    try:
        for thread in threads:
            thread.start()
        for _ in jobs:
            outcome = made.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
    finally:
        stop.set()
        for process in processes:
            process.close()
        for thread in threads:
            thread.join()


def run_on_cluster(jobs: Sequence[Job], scheduler: str) -> Generator[Outcome, None, None]:
    """Make runs on a Dask cluster, each in a process below a Dask worker.

    Args:
        jobs: The runs; `keep_at` must be a folder that all machines see.
        scheduler: Address, "tcp://host:port".

    Yields:
        What became of each run, as they end.

    Raises:
        SweepError: dask.distributed is not installed, or there is no scheduler or worker.
    """
    client, as_completed = _connect(scheduler)
    futures: dict[Any, Job] = {}
    try:
        for job in jobs:
            futures[client.submit(run_alone, tuple(job), key=f"musls-{job.id}", pure=False)] = job
        for future in as_completed(list(futures), loop=client.loop):
            if future.status == "finished":
                yield Outcome(*future.result())
            else:
                reason = f"on the cluster: {future.exception()}"
                yield Outcome({"id": futures[future].id, "status": FAILED, "reason": reason})
            future.release()
    finally:
        client.cancel(list(futures))
        client.close()


def _connect(scheduler: str) -> tuple[Any, Any]:
    try:
        from dask.distributed import Client, as_completed
    except ImportError:
        raise SweepError("--scheduler needs Dask: pip install 'musls[sweep]'") from None
    try:
        client = Client(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SweepError(f"no Dask scheduler at {scheduler}: {reason}") from None
    try:
        client.wait_for_workers(1, timeout=_CONNECT_S)
    except TimeoutError:
        client.close()
        raise SweepError(f"the Dask scheduler at {scheduler} has no workers") from None
    return client, as_completed


_of_thread = threading.local()


def run_alone(job: Sequence[Any]) -> tuple[Any, ...]:
    """A task for Dask: make a run in a process that its thread keeps for the next one."""
    if not hasattr(_of_thread, "process"):
        _of_thread.process = WorkerProcess()
    return tuple(_of_thread.process.run(Job(*job)))
