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

Of a run's series times, poses and set-points are kept as 32-bit numbers, compressed (a load's
minute at 50 Hz takes about 100 kB); angles and errors are worked out when asked for.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.errors import setpoint_pose
from musls_analysis.comparison.quantities import find_values
from musls_analysis.comparison.summary import numbers_by_path
from musls_analysis.recordings.recording import (
    CableTrack,
    PoseTrack,
    RecordedStage,
    Recording,
    main_stages,
)
from musls_analysis.sweep.plan import FLIGHT_COLUMNS, Metric, Plan
from musls_description.config.errors import ConfigError, MuslsError, whole_file, writing
from musls_description.config.errors import lock as lock_file


def extract(recording: Recording, names: Iterable[str]) -> Recording:
    """Poses, set-points and tensions of the first body and of others and cables that it has."""
    selection = {next(iter(recording.bodies)), *names}
    bodies = {name: recording.bodies[name] for name in recording.bodies if name in selection}
    cables = {name: recording.cables[name] for name in recording.cables if name in selection}
    setpoints = {
        name: setpoint_pose(recording, name) for name in bodies if name in recording.setpoints
    }
    return Recording(bodies, setpoints, cables)


def pack(series: Recording) -> bytes:
    """Compress."""
    arrays: dict[str, NDArray] = {}
    for name, track in series.bodies.items():
        arrays[f"{name}.time_s"] = track.time_s
        arrays[f"{name}.pose"] = _poses(track)
    for name, track in series.setpoints.items():
        arrays[f"{name}.setpoint"] = _poses(track)
    for name, cable in series.cables.items():
        arrays[f"{name}.time_s"] = cable.time_s
        arrays[f"{name}.tension_n"] = cable.tension_n[:, 0]
    buffer = io.BytesIO()
    single_precision: dict[str, Any] = {
        name: np.asarray(v, np.float32) for name, v in arrays.items()
    }
    np.savez_compressed(buffer, **single_precision)
    return buffer.getvalue()


def _poses(track: PoseTrack) -> NDArray:
    return np.hstack([track.position_enu_m, track.orientation_wxyz])


def unpack(data: bytes) -> Recording:
    """Inverse of `pack`, up to the digits of a 32-bit number."""
    bodies: dict[str, PoseTrack] = {}
    setpoints: dict[str, PoseTrack] = {}
    cables: dict[str, CableTrack] = {}
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        for key in arrays.files:
            name, _, what = key.partition(".")
            time_s = arrays[f"{name}.time_s"].astype(float)
            values = arrays[key].astype(float)
            if what == "tension_n":
                cables[name] = CableTrack(time_s, np.column_stack([values, values]), np.zeros(0))
            elif what != "time_s":
                track = PoseTrack(time_s, values[:, :3], values[:, 3:])
                (bodies if what == "pose" else setpoints)[name] = track
    return Recording(bodies, setpoints, cables)


# ---------- The numbers of a run: a row of the table

_REDUCE: dict[str, Callable[[np.ndarray], Any]] = {
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "largest": lambda x: np.max(np.abs(x)),
    "rms": lambda x: np.sqrt(np.mean(np.square(x))),
    "range": np.ptp,
    "last": lambda x: x[-1],
}


def usual_metrics(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that every table has, from the content of summary.json; named by their path in it."""
    row = {key: summary[key] for key in FLIGHT_COLUMNS if key in summary}
    row["warnings"] = "; ".join(summary.get("warnings", ()))
    row["invalid"] = bool(row["warnings"])
    stages = [s.name for s in main_stages(_stages(summary))]
    cables = summary.get("cables", {}).values()
    if cables:
        row["max_tension_n"] = max(cable["max_tension_n"] for cable in cables)
    for name in stages:
        slack = [c["stages"][name]["slack_fraction"] for c in cables if name in c["stages"]]
        if slack:
            row[f"slack_fraction.{name}"] = float(np.mean(slack))
    for body, errors in summary.get("errors", {}).items():
        kinds = ["translational_error_m", "geodesic_error_deg"]
        if body == "load":
            kinds += ["translational_error_max_m", "geodesic_error_max_deg"]
            kinds += ["held_translational_error_m"]
        for name in stages:
            for kind in kinds:
                if kind in errors.get(name, {}):
                    row[f"errors.{body}.{name}.{kind}"] = errors[name][kind]
    return row


def chosen_metric(
    metric: Metric, summary: Mapping[str, Any], series: Recording | None
) -> float | None:
    """A number that the user asked for; None if the run has it not."""
    if metric.path is not None:
        pattern = re.compile(re.escape(metric.path).replace(r"\*", r"[^.]+"))
        every = numbers_by_path(summary)
        numbers = np.array([number for path, number in every if pattern.fullmatch(path)], float)
    else:
        signal = find_values(series, metric.signal or "") if series else None
        window = stage_window(summary, metric.stage) if metric.stage else (-np.inf, np.inf)
        if series is None or signal is None or window is None:
            return None
        time, values, setpoint = signal
        if metric.against == "setpoint":
            values = values - setpoint
        elif metric.against is not None:
            kind = (metric.signal or "").partition(".")[2]
            other = find_values(series, f"{metric.against}.{kind}")
            if other is None:
                return None
            values = values - values[0] - np.interp(time, other[0], other[1] - other[1][0])
        numbers = values[(time >= window[0]) & (time < window[1]) & np.isfinite(values)]
    return float(_REDUCE[metric.reduce](numbers)) if len(numbers) else None


def stage_window(summary: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """Start and end of a stage [s], None if the run has it not."""
    return next(((s.start_s, s.end_s) for s in _stages(summary) if s.name == name), None)


def _stages(summary: Mapping[str, Any]) -> list[RecordedStage]:
    return [RecordedStage(s["name"], s["start_s"], s["end_s"]) for s in summary.get("stages", ())]


MARK = "sweep.yaml"
FINISHED = "finished"
FAILED = "failed"


class SweepError(MuslsError):
    """A sweep cannot be run or written."""


class Outcome(NamedTuple):
    """Outcome of a run.

    Attributes:
        record: Record for JSON: id, status, reason, summary, wall_s, host.
        series: Compressed time series; empty if there are none.
    """

    record: dict[str, Any]
    series: bytes = b""
    log: bytes = b""


class Store:
    """Reads and writes the folder."""

    def __init__(self, folder: Path) -> None:
        """Keep the folder; no file is read or written yet."""
        self.folder = folder
        self.scratch = folder / "scratch"

    def check(self, *, resume: bool) -> None:
        """Refuse a folder that must not be written."""
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
        """Make the folder, keep the text of the sweep file in it and other sweeps out of it."""
        try:
            for part in ("runs", "series", "logs"):
                (self.folder / part).mkdir(parents=True, exist_ok=True)
            lock = (self.folder / ".lock").open("w")
        except OSError as error:
            raise SweepError(f"sweep folder {self.folder}: {error.strerror}") from None
        with lock:
            try:
                lock_file(lock)
            except OSError:
                raise SweepError(f"another sweep is running in {self.folder}") from None
            shutil.rmtree(self.scratch, ignore_errors=True)  # of a sweep that was killed
            with writing(self.scratch):
                self.scratch.mkdir()
            _write(self.folder / MARK, text.encode())
            try:
                yield
            finally:
                shutil.rmtree(self.scratch, ignore_errors=True)

    def finished(
        self, ids: Iterable[str], *, failed_too: bool = True, damaged: list[str] | None = None
    ) -> set[str]:
        """Runs that are done, without damaged files, which `damaged` gets."""
        complete_ids = set()
        for i in ids:
            try:
                record = self._read_record(i)
                self.series(i)
            except SweepError as error:
                if damaged is not None:
                    damaged.append(str(error))
                continue
            if record and (failed_too or record["status"] == FINISHED):
                complete_ids.add(i)
        return complete_ids

    def record(self, run: str) -> dict[str, Any] | None:
        """Record of a run, None if it has not been made, or is damaged."""
        try:
            return self._read_record(run)
        except SweepError:
            return None

    def _read_record(self, run: str) -> dict[str, Any] | None:
        path = self.folder / "runs" / f"{run}.json"
        try:
            record = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, RecursionError, ValueError):
            raise SweepError(f"{path} is damaged") from None
        keys = {FINISHED: {"reason", "summary"}, FAILED: {"reason"}}
        status = record.get("status") if isinstance(record, dict) else None
        if status not in keys or not keys[status] <= set(record):
            raise SweepError(f"{path} is damaged")
        return record

    def series(self, run: str) -> Recording | None:
        """Time series of a run; None if there are none (raises SweepError: a damaged file)."""
        path = self.folder / "series" / f"{run}.npz"
        try:
            return unpack(path.read_bytes()) if path.is_file() else None
        except (ConfigError, OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error):
            raise SweepError(f"{path} is damaged") from None

    def flight(self, run: str) -> Path:
        """Result folder of a run with `keep: bag`."""
        return self.folder / "flights" / run

    def write(self, outcome: Outcome, about: Mapping[str, Any]) -> None:
        """Write a run and further keys of its record; the JSON file appears complete."""
        run = outcome.record["id"]
        log = self.folder / "logs" / f"{run}.log"
        log.unlink(missing_ok=True)
        if outcome.log:
            _write(log, outcome.log)
        if outcome.series:
            _write(self.folder / "series" / f"{run}.npz", outcome.series)
        text = json.dumps({**outcome.record, **about}, allow_nan=False)
        _write(self.folder / "runs" / f"{run}.json", text.encode())


def _write(path: Path, data: bytes) -> None:
    with whole_file(path) as partial, partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


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


def write_table(rows: Sequence[Row], folder: Path, name: str = "table") -> list[Path]:
    """Write NAME.csv and, with pyarrow, NAME.parquet."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    path = folder / f"{name}.csv"
    other = folder / f"{name}.parquet"
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    _write(path, text.getvalue().encode())
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        other.unlink(missing_ok=True)  # an older one would not agree with the CSV
        return [path]
    arrays = {column: pyarrow.array(_of_one_type(column, rows)) for column in columns}
    parquet.write_table(pyarrow.table(arrays), other)
    return [path, other]


def _of_one_type(column: str, rows: Sequence[Row]) -> list[Any]:
    """A column of numbers, or else of texts."""
    values = [row.get(column) for row in rows]
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2 and kinds <= {bool, int, float, str}:
        return values
    as_one = float if kinds == {int, float} else str
    return [None if value is None else as_one(value) for value in values]
