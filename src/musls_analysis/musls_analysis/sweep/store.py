"""The folder of a sweep: one file per run, complete or not there.

::

    sweep.yaml               what was asked for
    runs/<id>.json           settings, outcome and summary of a finished or failed run
    series/<id>.npz          its time series
    logs/<id>.log            what it printed, if anything
    flights/<id>/            its result folder, with `keep: bag`
    table.csv, table.parquet, figures/

A file is written under another name and renamed, its JSON last; so whatever kills the sweep, a
run has its JSON if and only if it is finished.
"""

from __future__ import annotations

import csv
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from musls_analysis.sweep.plan import Plan
from musls_analysis.sweep.signals import Series, chosen_metric, unpack, usual_metrics
from musls_description.errors import MuslsError

MARK = "sweep.yaml"
FINISHED = "finished"
FAILED = "failed"


class SweepError(MuslsError):
    """A sweep cannot be run or written."""


class Outcome(NamedTuple):
    """Outcome of a run.

    Attributes:
        record: For JSON: id, status, reason, summary, wall_s, host.
        series: Compressed time series; empty if there are none.
    """

    record: dict[str, Any]
    series: bytes = b""
    log: bytes = b""


class Store:
    """Reads and writes the folder."""

    def __init__(self, folder: Path) -> None:
        """Nothing is touched yet."""
        self.folder = folder
        self.scratch = folder / "scratch"

    def check(self, *, resume: bool) -> None:
        """Refuse a folder that must not be written.

        Raises:
            SweepError: It exists and `resume` is not asked for, or it is no sweep's.
        """
        # os.path, because Path raises for names that are too long.
        if not os.path.exists(self.folder):
            return
        if not os.path.isfile(self.folder / MARK):
            if os.path.isdir(self.folder) and not any(self.folder.iterdir()):
                return
            raise SweepError(f"{self.folder} is not a sweep's folder (no {MARK} in it)")
        if not resume:
            raise SweepError(
                f"sweep folder {self.folder} exists; --resume continues it, --out names another"
            )

    @contextmanager
    def opened(self, text: str) -> Iterator[None]:
        """Make the folder, keep the text of the sweep file in it and other sweeps out of it.

        Raises:
            SweepError: Another sweep is running in it, or it cannot be written.
        """
        try:
            for part in ("runs", "series"):
                (self.folder / part).mkdir(parents=True, exist_ok=True)
            lock = (self.folder / ".lock").open("w")
        except OSError as error:
            raise SweepError(f"sweep folder {self.folder}: {error.strerror}") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SweepError(f"another sweep is running in {self.folder}") from None
            shutil.rmtree(self.scratch, ignore_errors=True)  # of a sweep that was killed
            self.scratch.mkdir()
            _write(self.folder / MARK, text.encode())
            try:
                yield
            finally:
                shutil.rmtree(self.scratch, ignore_errors=True)

    def finished(self, ids: Iterable[str], *, failed_too: bool = True) -> set[str]:
        """Which of some runs are done."""
        return {
            i
            for i in ids
            if (record := self.record(i)) and (failed_too or record["status"] == FINISHED)
        }

    def record(self, run: str) -> dict[str, Any] | None:
        """Record of a run, None if it has not been made."""
        try:
            return json.loads((self.folder / "runs" / f"{run}.json").read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:  # not ours, or a broken disk: make the run again
            return None

    def series(self, run: str) -> Series:
        """Time series of a run; empty if there are none."""
        path = self.folder / "series" / f"{run}.npz"
        return unpack(path.read_bytes()) if path.is_file() else {}

    def flight(self, run: str) -> Path:
        """Result folder of a run with `keep: bag`."""
        return self.folder / "flights" / run

    def write(self, outcome: Outcome, about: Mapping[str, Any]) -> None:
        """Write a run and further keys of its record; whoever sees its JSON sees all of it."""
        run = outcome.record["id"]
        log = self.folder / "logs" / f"{run}.log"
        if outcome.log:
            log.parent.mkdir(exist_ok=True)
            _write(log, outcome.log)
        elif log.exists():
            log.unlink()
        if outcome.series:
            _write(self.folder / "series" / f"{run}.npz", outcome.series)
        text = json.dumps({**outcome.record, **about}, indent=1, allow_nan=False)
        _write(self.folder / "runs" / f"{run}.json", text.encode())


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


# ---------- One table of all runs: CSV always, Parquet where pyarrow is installed

Row = dict[str, Any]


def make_rows(plan: Plan, store: Store) -> list[Row]:
    """Rows of all runs made so far, in the order of the plan.

    Columns: id, status, reason, repetition, seed, the parameters by their keys, then metrics; a
    failed run has no metrics.
    """
    rows = []
    for run in plan.runs:
        record = store.record(run.id)
        if record is None:
            continue
        row: Row = {
            "id": run.id,
            "status": record["status"],
            "reason": record["reason"],
            "repetition": run.repetition,
            "seed": run.settings["seed"],
            **run.point,
            "run_wall_s": record.get("wall_s"),
            "run_cpu_s": record.get("cpu_s"),
        }
        if record["status"] == FINISHED:
            row |= usual_metrics(record["summary"])
            if plan.sweep.metrics:
                series = store.series(run.id)
                for metric in plan.sweep.metrics:
                    row[metric.column] = chosen_metric(metric, record["summary"], series)
        rows.append(row)
    return rows


def write_table(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write table.csv and, with pyarrow, table.parquet."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    path = folder / "table.csv"
    partial = folder / ".table.csv.partial"
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(path)
    parquet = _write_parquet(rows, columns, folder / "table.parquet")
    return [path, parquet] if parquet else [path]


def _write_parquet(rows: Sequence[Row], columns: Sequence[str], path: Path) -> Path | None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        path.unlink(missing_ok=True)  # an older one would not agree with the CSV
        return None
    arrays = {}
    for column in columns:
        values = [row.get(column) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        if kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]
        elif len(kinds) > 1 or not kinds <= {bool, int, float, str}:
            values = [None if value is None else str(value) for value in values]
        arrays[column] = pyarrow.array(values)
    parquet.write_table(pyarrow.table(arrays), path)
    return path
