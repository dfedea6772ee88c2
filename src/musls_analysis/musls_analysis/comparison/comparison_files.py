"""Writes a comparison: table and mean trajectories as CSV, all numbers as JSON, figures as PNG."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.comparison.compare import StageComparison
from musls_analysis.comparison.mean_cycle import MeanCycle

TABLE = "table.csv"
SUMMARY = "comparison.json"

TABLE_COLUMNS = (
    "stage", "body", "translational_error_mm", "geodesic_error_deg", "lag_s",
    "lagged_translational_error_mm", "lagged_geodesic_error_deg", "overlap", "real_cycles",
    "sim_cycles", "offset_x_m", "offset_y_m", "offset_z_m", "origin_translational_error_mm",
    "best_offset_x_m", "best_offset_y_m", "best_offset_z_m", "best_offset_translational_error_mm",
)  # fmt: skip
_PARTS = ("x_m", "y_m", "z_m", "roll_rad", "pitch_rad", "yaw_rad")
MEAN_COLUMNS = (
    "time_s", "body", "source", "samples", *_PARTS, "qw", "qx", "qy", "qz",
    *(f"{part}_ci95" for part in _PARTS),
)  # fmt: skip


def write_comparison(
    comparisons: Sequence[StageComparison], about: Mapping[str, Any], folder: Path
) -> None:
    """Write everything that comes of a comparison.

    Args:
        comparisons: One per stage.
        about: What was compared and how, for the JSON file.
        folder: Where to; must exist.
    """
    rows = table_rows(comparisons)
    with (folder / TABLE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, TABLE_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _short(value) for key, value in row.items()} for row in rows)
    for comparison in comparisons:
        _write_means(comparison, folder / f"mean_{comparison.stage}.csv")
    summary = {**about, "stages": {c.stage: _summary(c) for c in comparisons}}
    text = json.dumps(summary, indent=2, allow_nan=False)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8")
    _write_figures(comparisons, folder)


def table_rows(comparisons: Sequence[StageComparison]) -> list[dict[str, Any]]:
    """Rows of the table, load first; the keys are `TABLE_COLUMNS`."""
    return [
        {
            "stage": c.stage,
            "body": body,
            "translational_error_mm": 1e3 * e.translational_error_m,
            "geodesic_error_deg": e.geodesic_error_deg,
            "lag_s": c.lag_s,
            "lagged_translational_error_mm": 1e3 * e.lagged_translational_error_m,
            "lagged_geodesic_error_deg": e.lagged_geodesic_error_deg,
            "overlap": e.overlap,
            "real_cycles": c.real_cycles,
            "sim_cycles": c.sim_cycles,
            **_offset_columns(c, body),
        }
        for c in comparisons
        for body, e in c.errors.items()
    ]


def _offset_columns(comparison: StageComparison, body: str) -> dict[str, float]:
    """Point that was compared, point that fits best, and what they are worth."""
    worth = comparison.offsets[body]
    columns = {f"offset_{axis}_m": v for axis, v in zip("xyz", worth.assumed_m, strict=True)}
    columns["origin_translational_error_mm"] = 1e3 * worth.origin_error_m
    columns |= {f"best_offset_{axis}_m": v for axis, v in zip("xyz", worth.best_m, strict=True)}
    return columns | {"best_offset_translational_error_mm": 1e3 * worth.best_error_m}


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _summary(comparison: StageComparison) -> dict[str, Any]:
    return {
        "period_s": comparison.period_s,
        "lag_s": comparison.lag_s,
        "real_cycles": comparison.real_cycles,
        "sim_cycles": comparison.sim_cycles,
        "cycles_found_in": "motion of the drones" if comparison.by_motion else "set-points",
        "errors": {body: asdict(errors) for body, errors in comparison.errors.items()},
        "offsets": {body: asdict(worth) for body, worth in comparison.offsets.items()},
        "frames": {body: _known(asdict(worth)) for body, worth in comparison.frames.items()},
        "warnings": list(comparison.warnings),
    }


def _known(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: what is not known is null."""
    return {key: value if np.all(np.isfinite(value)) else None for key, value in numbers.items()}


def _write_means(comparison: StageComparison, path: Path) -> None:
    times_s = comparison.phase * comparison.period_s
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(MEAN_COLUMNS)
        for source, means in (("real", comparison.real), ("sim", comparison.sim)):
            for body, mean in means.items():
                for time_s, n, row in zip(times_s, mean.samples, _columns(mean), strict=True):
                    cells = ["" if np.isnan(v) else f"{v:.7g}" for v in row]
                    writer.writerow([f"{time_s:.6g}", body, source, n, *cells])


def _columns(mean: MeanCycle) -> np.ndarray:
    return np.hstack(
        [
            mean.position_enu_m, mean.angles_rad, mean.orientation_wxyz, mean.position_ci_m,
            mean.angles_ci_rad,
        ]
    )  # fmt: skip


def _write_figures(comparisons: Sequence[StageComparison], folder: Path) -> None:
    # Imported here, because matplotlib is slow to import.
    from musls_analysis.figures.cycle_errors import cycle_errors_figure
    from musls_analysis.figures.mean_paths import mean_paths_figure
    from musls_analysis.figures.mean_pose import mean_pose_figure
    from musls_analysis.figures.style import save, styled

    figures = folder / "figures"
    figures.mkdir()
    with styled():
        for comparison in comparisons:
            stage = comparison.stage
            save(mean_paths_figure(comparison), figures / f"{stage}_paths_3d.png")
            save(cycle_errors_figure(comparison), figures / f"{stage}_errors.png")
            for body in comparison.errors:
                save(mean_pose_figure(comparison, body), figures / f"{stage}_pose_{body}.png")
