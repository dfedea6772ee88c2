"""Runs what a sweep's folder does not hold yet."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import IO, Any, NamedTuple

from musls_analysis.sweep.plan import Plan, Run, wanted_series
from musls_analysis.sweep.signals import extract, pack
from musls_analysis.sweep.store import FAILED, FINISHED, Outcome, Store, SweepError
from musls_description.errors import MuslsError
from musls_description.one_thread import ONE_THREAD
from musls_description.schema import build

# ---------- The process that flies: jobs on its standard input, answers on its standard output.

END_OF_RUN = b"\0end of run\0"
"""Written to standard error after each run, so that the reader can tell the runs apart."""


class Job(NamedTuple):
    """A run for a process.

    Attributes:
        id: Of the run.
        settings: Resolved scenario.
        flyer: "module:function"; the function takes a Scenario and a folder to be made, and gives
            the summary. With a bag in the folder the run gets time series.
        series: Bodies and cables whose time series are wanted.
        keep_at: Where the result folder goes, None to throw it away.
        timeout_s: Wall time the run may take, None for any.
    """

    id: str
    settings: dict[str, Any]
    flyer: str
    series: tuple[str, ...] = ()
    keep_at: Path | None = None
    timeout_s: float | None = None


def make(job: Job, scratch: Path) -> tuple[dict[str, Any], bytes]:
    """Make a run.

    Args:
        job: What to fly.
        scratch: Empty folder.

    Returns:
        Record and compressed time series.
    """
    begin, used_s = perf_counter(), process_time()
    record: dict[str, Any] = {"id": job.id, "status": FINISHED, "reason": None}
    series = b""
    try:
        summary, series = _fly(job, scratch / "flight")
        record["summary"] = summary
    except MuslsError as error:
        record |= {"status": FAILED, "reason": " ".join(str(error).split())}
    except Exception as error:  # a bug in one run is that run's failure
        traceback.print_exc()
        reason = " ".join(str(error).split())
        record |= {"status": FAILED, "reason": f"{type(error).__name__}: {reason}"}
    return record | {
        "wall_s": round(perf_counter() - begin, 3),
        "cpu_s": round(process_time() - used_s, 3),
        "host": os.uname().nodename,
    }, series


def _fly(job: Job, folder: Path) -> tuple[dict[str, Any], bytes]:
    from musls_sim.scenario.scenario import Scenario

    module, _, function = job.flyer.partition(":")
    fly = getattr(import_module(module), function)
    summary = fly(build(Scenario, job.settings, f"run {job.id}"), folder)
    series = b""
    if job.series and (folder / "bag").is_dir():
        from musls_analysis.recordings.bag import read_bag

        series = pack(extract(read_bag(folder / "bag"), job.series))
    if job.keep_at is not None:
        shutil.rmtree(job.keep_at, ignore_errors=True)
        job.keep_at.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, job.keep_at)
    return summary, series


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    waiting: queue.SimpleQueue[tuple[Job, Path]] = queue.SimpleQueue()

    def listen() -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                waiting.put(pickle.load(sys.stdin.buffer))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        answer = make(*waiting.get())
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(2, END_OF_RUN)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()

# ---------- A worker process seen from outside.

_HALF_LOG = 32_768
"""Of a log, so many bytes at its beginning and at its end are kept: a diverging simulation may
print millions of lines."""

# Not -m: that would look for all modules in the user's folder first.
_SERVE = (
    "import sys; sys.path[:] = filter(None, sys.path);"
    "from musls_analysis.sweep.run import main; main()"
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


# ---------- Runs jobs, several at a time: in processes of this machine, or on a Dask cluster.

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


@dataclass(frozen=True)
class How:
    """How to run a sweep.

    Attributes:
        flyer: "module:function" that flies, see `worker.Job`.
        workers: Processes on this machine.
        scheduler: Dask scheduler to use instead.
        retry_failed: Make failed runs again.
    """

    flyer: str
    workers: int = 1
    scheduler: str | None = None
    retry_failed: bool = False


@dataclass
class Tally:
    """Where a sweep stands.

    Attributes:
        total: Number of runs.
        before: Runs that the folder already held.
        finished: Runs that ended well, those before included.
        failed: Runs that failed, likewise.
        last: Record of the last run.
        in_runs_s: Wall time that the worker processes spent in runs, summed over them.
        cpu_s: Processor time of that.
    """

    total: int
    before: int = 0
    finished: int = 0
    failed: int = 0
    last: dict[str, Any] = field(default_factory=dict)
    in_runs_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def left(self) -> int:
        """Runs still to be made."""
        return self.total - self.finished - self.failed


def run_sweep(plan: Plan, store: Store, how: How, watch: Callable[[Tally], None]) -> Tally:
    """Make the runs that are missing; the folder must be open.

    Args:
        plan: All runs.
        store: The folder.
        how: Where to run.
        watch: Called at the start and after each run.

    Raises:
        SweepError: No cluster.
    """
    runs = {run.id: run for run in plan.runs}
    done = store.finished(runs, failed_too=not how.retry_failed)
    tally = Tally(len(runs), before=len(done))
    tally.failed = len(done - store.finished(done, failed_too=False))
    tally.finished = len(done) - tally.failed
    watch(tally)
    jobs = [_job(plan, run, store, how) for run in plan.runs if run.id not in done]
    if not jobs:
        return tally
    if how.scheduler is not None:
        outcomes = run_on_cluster(jobs, how.scheduler)
    else:
        outcomes = run_local(jobs, how.workers, store.scratch)
    try:
        for outcome in outcomes:
            run = runs[outcome.record["id"]]
            store.write(outcome, {"point": run.point, "settings": run.settings})
            tally.finished += outcome.record["status"] == FINISHED
            tally.failed += outcome.record["status"] == FAILED
            tally.last = outcome.record
            tally.in_runs_s += outcome.record.get("wall_s") or 0.0
            tally.cpu_s += outcome.record.get("cpu_s") or 0.0
            watch(tally)
    finally:
        outcomes.close()
    return tally


def _job(plan: Plan, run: Run, store: Store, how: How) -> Job:
    return Job(
        run.id,
        dict(run.settings),
        how.flyer,
        tuple(wanted_series(plan.sweep)),
        store.flight(run.id).resolve() if plan.sweep.keep == "bag" else None,
        plan.sweep.timeout_s,
    )
