"""Makes the runs that a sweep's folder does not hold yet, each in a process whose death costs it.

A worker process (`child_processes`) lives from run to run, because a start costs more than many
flights. Each belongs to a thread of this program or, on a cluster, of a Dask worker.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

from musls_analysis.recordings.recording import Recording
from musls_analysis.sweep.plan import Plan, wanted_series
from musls_analysis.sweep.store import FAILED, FINISHED, Outcome, Store, SweepError, extract, pack
from musls_control.child_processes import (
    ProcessDied,
    call_in_worker,
    ending,
    last_words,
    worker_count,
    worker_threads,
)
from musls_description.config.errors import MuslsError, install_command, is_full_disk, writing
from musls_description.config.registry import load_file
from musls_description.config.schema import build

_CONNECT_S = 10


@dataclass
class SweepProgress:
    """State of a sweep.

    Attributes:
        before: Runs that the folder already held; they count as finished or failed, too.
        damaged: Damaged files of runs that are made again.
        last: Record of the last run.
        workers: Processes of this machine that make them.
        in_runs_s: Wall time that the worker processes spent in runs, summed over them.
        cpu_s: Processor time of that.
    """

    total: int
    before: int = 0
    finished: int = 0
    failed: int = 0
    damaged: list[str] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    workers: int = 0
    in_runs_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def left(self) -> int:
        """Runs still to be made."""
        return self.total - self.finished - self.failed

    def count(self, record: dict[str, Any]) -> None:
        """Take note of a run that was made."""
        self.finished += record["status"] == FINISHED
        self.failed += record["status"] == FAILED
        self.last = record
        self.in_runs_s += record.get("wall_s") or 0.0
        self.cpu_s += record.get("cpu_s") or 0.0


class Job(NamedTuple):
    """A run for a process.

    Attributes:
        settings: Resolved scenario.
        flyer: "module:function"; the function takes a Scenario and a folder to be made, or None,
            and gives recording and summary.
        series: Bodies and cables whose time series are wanted.
        keep_at: Path for the result folder, None to delete it; on a cluster a folder that
            all machines see.
        timeout_s: Wall time the run may take, None for any.
    """

    id: str
    settings: dict[str, Any]
    flyer: str
    series: tuple[str, ...]
    keep_at: Path | None
    timeout_s: float | None


def run_sweep(
    plan: Plan,
    store: Store,
    flyer: str,
    watch: Callable[[SweepProgress], None],
    *,
    workers: int | None = 1,
    scheduler: str | None = None,
    retry_failed: bool = False,
    executor: Executor | None = None,
) -> SweepProgress:
    """Make the runs that are missing; the folder must be open.

    The flyer is explained at `Job`; `watch` is called at the start and after each run. The runs
    are made in so many processes of this machine, with None as many as the sweep says, or by
    the Dask scheduler at an address; or by `executor`, of `sweep_executor`, which outlives them.
    """
    sweep = plan.sweep
    runs = {run.id: run for run in plan.runs}
    damaged: list[str] = []
    done_ids = store.finished(runs, failed_too=not retry_failed, damaged=damaged)
    finished_count = len(store.finished(done_ids, failed_too=False))
    progress = SweepProgress(
        len(runs), len(done_ids), finished_count, len(done_ids) - finished_count, damaged
    )
    watch(progress)
    series = tuple(wanted_series(sweep))
    jobs = [
        Job(
            run.id,
            dict(run.settings),
            flyer,
            series,
            store.flight(run.id).resolve() if sweep.keep == "bag" else None,
            sweep.timeout_s,
        )
        for run in plan.runs
        if run.id not in done_ids
    ]
    if not jobs:
        return progress
    scratch = store.scratch if scheduler is None else None
    if scheduler is None:
        progress.workers = worker_count(workers or sweep.workers, len(jobs))
    own = nullcontext(executor) if executor else sweep_executor(progress.workers, scheduler)
    with own as pool:
        running = {pool.submit(_make_in_process, job, scratch): job.id for job in jobs}
        for future in as_completed(list(running)):
            run = runs[running.pop(future)]
            try:
                outcome = future.result()
            except Exception as error:
                if scheduler is None or isinstance(error, SweepError):
                    raise
                reason = f"on the cluster: {error}"
                outcome = Outcome({"id": run.id, "status": FAILED, "reason": reason})
            store.write(outcome, {"point": run.point, "settings": run.settings})
            progress.count(outcome.record)
            watch(progress)
    return progress


def sweep_executor(workers: int, scheduler: str | None) -> AbstractContextManager[Executor]:
    """Executor of runs: so many processes of this machine, or the Dask scheduler at an address."""
    return worker_threads(workers) if scheduler is None else _on_cluster(scheduler)


@contextmanager
def _on_cluster(scheduler: str) -> Iterator[Executor]:
    """The Dask cluster of the scheduler at an address, "tcp://host:port"."""
    try:
        from dask.distributed import Client
    except ImportError:
        raise SweepError(f"--scheduler needs Dask: {install_command('distributed')}") from None
    connected = Future[Any]()

    def connect() -> None:
        try:
            connected.set_result(Client(scheduler, timeout=_CONNECT_S, set_as_default=False))
        except BaseException as error:
            connected.set_exception(error)

    # Apart: where something else listens, such as a web server, Dask waits for ever, or finds a
    # length in its answer for which there is no memory.
    threading.Thread(target=connect, daemon=True).start()
    try:
        client = connected.result(2 * _CONNECT_S)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SweepError(f"no Dask scheduler at {scheduler}: {reason}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError:
            raise SweepError(f"the Dask scheduler at {scheduler} has no workers") from None
        executor = client.get_executor(pure=False)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)


# ---------- A run, in a worker process and seen from outside

_HALF_LOG = 32_768
"""Bytes kept at either end of a log: a diverging simulation may print millions of lines."""

NO_SPACE = "no space"
ENDED = "ended"
"""Status of a run that found the disk full, or that a signal cut short."""

UNMADE = {
    NO_SPACE: "--resume goes on where there is room",
    ENDED: "--resume makes this run again and goes on",
}
"""Status of runs that end the sweep and are not kept, with what helps."""

_FLIGHT = "flight"
"""Folder of a run's results in its temporary folder."""

_LOG = "log"
"""File in a run's temporary folder with what it prints, the physics included."""


def _make_in_process(job: Job, scratch: Path | None) -> Outcome:
    """Make a run in the worker process of this thread, whose death is a failed run.

    It gets a temporary folder in `scratch`, None for where the system has them.
    """
    begin = perf_counter()
    died: ProcessDied | None = None
    record: dict[str, Any] = {"id": job.id, "status": FAILED}
    series = b""
    with TemporaryDirectory(dir=scratch, prefix=f"{job.id}-") as folder:
        try:
            record, series = call_in_worker(_make_with_log, job, Path(folder))
        except ProcessDied as error:
            died = error
        log = _shortened(Path(folder) / _LOG)
        if died is None or not died.closed:
            _keep(Path(folder), job.keep_at)
    if hint := UNMADE.get(record["status"]):
        raise SweepError(f"{record['reason']}; {hint}")
    if died is not None:
        words = last_words(log.decode(errors="replace"))
        reason = f"the process {ending(died.code)}"
        if died.code == -signal.SIGALRM and job.timeout_s is not None:
            reason = f"took longer than {job.timeout_s:g} s"
        record |= {
            "wall_s": round(perf_counter() - begin, 3),
            "host": os.uname().nodename,
            "reason": reason + (f": {words[:200]}" if words else ""),
        }
    return Outcome(record, series, log)


def _keep(scratch: Path, place: Path | None) -> None:
    """Move the flight of a run to where it is kept, also of one that failed or was ended."""
    flight = scratch / _FLIGHT
    if place is not None and flight.is_dir():
        with writing(place):
            shutil.rmtree(place, ignore_errors=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(flight, place)


def _shortened(path: Path) -> bytes:
    """Beginning and end of a log."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        text = file.read(_HALF_LOG)
        end = path.stat().st_size
        if end > 2 * _HALF_LOG:
            text += f"\n... {end - 2 * _HALF_LOG} bytes left out ...\n".encode()
            file.seek(end - _HALF_LOG)
        return (text + file.read()).strip(b"\n")


def _make_with_log(job: Job, scratch: Path) -> tuple[dict[str, Any], bytes]:
    """`make` in a worker process: what it prints goes into a log, and its time is limited."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever it computes
    with (scratch / _LOG).open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    with suppress(Exception):  # what is slow to import does not count; its error is the run's
        _flyer(job)
    signal.setitimer(signal.ITIMER_REAL, job.timeout_s or 0.0)
    answer = make(job, scratch)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    sys.stdout.flush()
    sys.stderr.flush()
    return answer


def make(job: Job, scratch: Path) -> tuple[dict[str, Any], bytes]:
    """Make a run in an empty folder: its record and compressed time series."""
    begin = perf_counter()
    used_s = process_time()
    record: dict[str, Any] = {"id": job.id, "status": FINISHED, "reason": None}
    series = b""
    try:
        record["summary"], series = _fly(job, scratch / _FLIGHT if job.keep_at else None)
    except KeyboardInterrupt:
        record |= {"status": ENDED, "reason": f"run {job.id} was ended by a signal"}
    except Exception as error:  # a bug in one run is that run's failure
        reason = " ".join(str(error).split())
        if not isinstance(error, MuslsError):
            traceback.print_exc()
            reason = f"{type(error).__name__}: {reason}"
        record |= {"status": NO_SPACE if is_full_disk(error) else FAILED, "reason": reason}
    return record | {
        "wall_s": round(perf_counter() - begin, 3),
        "cpu_s": round(process_time() - used_s, 3),
        "host": os.uname().nodename,
    }, series


def _flyer(job: Job) -> Callable[..., tuple[Recording, dict[str, Any]]]:
    module, _, function = job.flyer.partition(":")
    flyer: Callable[..., tuple[Recording, dict[str, Any]]] = getattr(
        import_module(module), function
    )
    return flyer


def _fly(job: Job, folder: Path | None) -> tuple[dict[str, Any], bytes]:
    from musls_sim.scenario.scenario import Scenario

    for extension in job.settings.get("extensions", ()):  # what it registers, this process has not
        load_file(extension)
    recording, summary = _flyer(job)(build(Scenario, job.settings, f"run {job.id}"), folder)
    return summary, pack(extract(recording, job.series))
