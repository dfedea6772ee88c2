"""Files of a comparison: table and mean trajectories as CSV, numbers as JSON, figures as PNG."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.comparison.compare import StageComparison

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
    """Write all files of a comparison into a folder, which must exist.

    `about` holds sources and options, for the JSON file.
    """
    with (folder / TABLE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(TABLE_COLUMNS)
        for row in table_rows(comparisons):
            writer.writerow(f"{v:.6g}" if isinstance(v, float) else v for v in row)
    for comparison in comparisons:
        _write_means(comparison, folder / f"mean_{comparison.stage}.csv")
    summary = {**about, "stages": {c.stage: _summary(c) for c in comparisons}}
    text = json.dumps(summary, indent=2, allow_nan=False)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8")
    _write_figures(comparisons, folder)


def table_rows(comparisons: Sequence[StageComparison]) -> list[tuple[Any, ...]]:
    """Rows of the table, in the order of `TABLE_COLUMNS`: one per stage and body."""
    return [
        (
            c.stage, body, 1e3 * e.translational_error_m, e.geodesic_error_deg, c.lag_s,
            1e3 * e.lagged_translational_error_m, e.lagged_geodesic_error_deg, e.overlap,
            c.real_cycles, c.sim_cycles, *c.offsets[body].assumed_m,
            1e3 * c.offsets[body].origin_error_m, *c.offsets[body].best_m,
            1e3 * c.offsets[body].best_error_m,
        )
        for c in comparisons
        for body, e in c.errors.items()
    ]  # fmt: skip


def _summary(comparison: StageComparison) -> dict[str, Any]:
    frames = {body: asdict(its) for body, its in comparison.frames.items()}
    return {
        "period_s": comparison.period_s,
        "lag_s": comparison.lag_s,
        "real_cycles": comparison.real_cycles,
        "sim_cycles": comparison.sim_cycles,
        "cycles_found_in": "motion of the drones" if comparison.by_motion else "set-points",
        "errors": {body: asdict(errors) for body, errors in comparison.errors.items()},
        "offsets": {body: asdict(its) for body, its in comparison.offsets.items()},
        "frames": {  # JSON has no NaN: what is not known is null
            body: {key: v if np.all(np.isfinite(v)) else None for key, v in its.items()}
            for body, its in frames.items()
        },
        "warnings": list(comparison.warnings),
    }


def moved_points(offsets_m: Mapping[str, Sequence[float]]) -> str:
    """Which other points than the origins of simulated bodies are compared, in words; or ""."""
    moved = "; ".join(
        f"{body} at ({x:g}, {y:g}, {z:g}) m in its frame" for body, (x, y, z) in offsets_m.items()
    )
    return f", but in the simulation {moved}" if moved else ""


def _write_means(comparison: StageComparison, path: Path) -> None:
    times_s = comparison.phase * comparison.period_s
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(MEAN_COLUMNS)
        for source, means in (("real", comparison.real), ("sim", comparison.sim)):
            for body, mean in means.items():
                columns = np.hstack([
                    mean.position_enu_m, mean.angles_rad, mean.orientation_wxyz,
                    mean.position_ci_m, mean.angles_ci_rad,
                ])  # fmt: skip
                for time_s, n, row in zip(times_s, mean.samples, columns, strict=True):
                    cells = ["" if np.isnan(v) else f"{v:.7g}" for v in row]
                    writer.writerow([f"{time_s:.6g}", body, source, n, *cells])


def _write_figures(comparisons: Sequence[StageComparison], folder: Path) -> None:
    # Imported here, because matplotlib is slow to import.
    from musls_analysis.figures.comparison import (
        cycle_errors_figure,
        mean_paths_figure,
        mean_pose_figure,
    )
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
