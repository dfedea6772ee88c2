"""What a replay writes: tables, numbers and a figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.recordings.recording import PoseTrack
from musls_analysis.replay.replay import Replay, ReplayResult
from musls_description.rotations import roll_pitch_yaw


def summary(replay: Replay, result: ReplayResult) -> dict[str, Any]:
    """The numbers of a replay, JSON-ready."""
    difference = result.load.position_enu_m - result.measured.position_enu_m
    return {
        "translational_error_m": result.translational_error_m,
        "geodesic_error_deg": float(np.degrees(result.geodesic_error_rad)),
        "mean_difference_m": difference.mean(axis=0).tolist(),
        "translational_error_without_mean_m": float(
            np.linalg.norm(difference - difference.mean(axis=0), axis=1).mean()
        ),
        "prescribed_position_miss_m": result.position_miss_m,
        "prescribed_attitude_miss_deg": float(np.degrees(result.attitude_miss_rad)),
        "energy_audit_relative_error": float(result.audit.relative_error),
        "work_j": float(result.audit.work_j),
        "loss_j": float(result.audit.loss_j),
        "max_tension_n": result.tension_n.max(axis=(0, 2)).tolist(),
        "compared_from_s": float(result.load.time_s[0]),
        "compared_to_s": float(result.load.time_s[-1]),
        "jumps_left_out": {name: path.jumps for name, path in replay.recorded.paths.items()},
        "path_residual_m": {name: path.residual_m for name, path in replay.recorded.paths.items()},
        "path_residual_deg": {
            name: float(np.degrees(path.residual_rad))
            for name, path in replay.recorded.paths.items()
        },
    }


def write(replay: Replay, result: ReplayResult, folder: Path) -> dict[str, Any]:
    """Write load.csv, ends.csv, summary.json and load.png; returns the summary."""
    numbers = summary(replay, result)
    (folder / "summary.json").write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    pose = ("x_m", "y_m", "z_m", "roll_rad", "pitch_rad", "yaw_rad")
    names = ["t_s", *(f"predicted_{c}" for c in pose), *(f"measured_{c}" for c in pose)]
    columns = [_columns(result.load), _columns(result.measured)]
    _table(folder / "load.csv", names, [result.load.time_s[:, None], *columns])
    names, columns = ["t_s"], [result.load.time_s[:, None]]
    for i, drone in enumerate(replay.recorded.drones):
        names += [f"{drone}_force_{axis}_n" for axis in "xyz"]
        names += [f"{drone}_power_w", f"{drone}_load_end_tension_n", f"{drone}_drone_end_tension_n"]
        power = result.end_power_w[:, i : i + 1]
        columns += [result.end_force_n[:, i], power, result.tension_n[:, i]]
    _table(folder / "ends.csv", names, columns)
    from musls_analysis.figures import style

    with style.styled():
        style.save(_figure(result), folder / "load.png")
    return numbers


def _columns(track: PoseTrack) -> np.ndarray:
    return np.hstack([track.position_enu_m, roll_pitch_yaw(track.orientation_wxyz)])


def _table(path: Path, names: Sequence[str], columns: Sequence[np.ndarray]) -> None:
    np.savetxt(path, np.hstack(columns), "%.9g", ",", header=",".join(names), comments="")


def _figure(result: ReplayResult) -> Any:
    """Pose of the load, predicted and measured, over time."""
    from musls_analysis.figures import style

    figure = style.new_figure(3.95)
    axes = figure.subplots(3, 2, sharex=True)
    style.margins(figure, 0.68, 0.1, 0.4, 0.36, wspace=0.24, hspace=0.15)
    labels = ("x [m]", "y [m]", "z [m]", "roll [deg]", "pitch [deg]", "yaw [deg]")
    scale = np.array([1.0, 1.0, 1.0, *np.degrees([1.0, 1.0, 1.0])])
    values = []
    for track in (result.measured, result.load):
        columns = _columns(track)
        columns[:, 3:] = np.unwrap(columns[:, 3:], axis=0)
        values.append(columns * scale)
    turns = np.round((values[1] - values[0]).mean(axis=0)[3:] / 360.0)
    values[1][:, 3:] -= 360.0 * turns
    for k, (ax, label) in enumerate(zip(axes.T.flat, labels, strict=True)):
        ax.plot(result.measured.time_s, values[0][:, k], **style.SETPOINT_LINE, label="measured")
        ax.plot(result.load.time_s, values[1][:, k], color=style.colour("load"), label="predicted")
        ax.set_ylabel(label)
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="upper center", ncols=2)
    return figure
