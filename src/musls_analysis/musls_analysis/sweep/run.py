"""Runs what a sweep's folder does not hold yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from musls_analysis.sweep.execute import run_local, run_on_cluster
from musls_analysis.sweep.plan import Plan, Run, wanted_series
from musls_analysis.sweep.store import FAILED, FINISHED, Store
from musls_analysis.sweep.worker import Job


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
