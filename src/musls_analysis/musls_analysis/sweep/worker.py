"""The process that flies: takes jobs from its standard input, answers on its standard output.

Whatever the physics prints goes to standard error. When the other end closes, the process ends at
once, in the middle of a run too: a killed sweep leaves nobody behind.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import shutil
import sys
import threading
import traceback
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

from musls_analysis.sweep.signals import extract, pack
from musls_analysis.sweep.store import FAILED, FINISHED
from musls_description.errors import MuslsError
from musls_description.schema import build

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
    from musls_sim.scenario import Scenario

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
