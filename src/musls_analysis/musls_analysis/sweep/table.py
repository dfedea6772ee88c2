"""One table of all runs: CSV always, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from musls_analysis.sweep.metrics import chosen_metric, usual_metrics
from musls_analysis.sweep.plan import Plan
from musls_analysis.sweep.store import FINISHED, Store

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
    """Write table.csv and, with pyarrow, table.parquet.

    Returns:
        The files written.
    """
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
