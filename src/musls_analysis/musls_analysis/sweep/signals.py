"""Time series and numbers that a sweep keeps of a run: poses, set-points, errors, tensions.

Kept are times, poses and set-points as 32-bit numbers, compressed (a load's minute at 50 Hz takes
about 100 kB); angles and errors are worked out when asked for.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.errors import geodesic_error_rad, translational_error_m
from musls_analysis.recordings.recording import Recording, Stage, main_stages
from musls_analysis.sweep.spec import Metric
from musls_description.rotations import roll_pitch_yaw, wrapped

Series = Mapping[str, NDArray]
"""Arrays as kept: "load.time_s", "load.pose", "load.setpoint", "cable_1.tension_n", ..."""

POSE_SIGNALS = ("x_m", "y_m", "z_m", "roll_deg", "pitch_deg", "yaw_deg")
ERROR_SIGNALS = ("translational_error_m", "geodesic_error_deg")
CABLE_SIGNALS = ("tension_n",)


def signal_names(bodies: Iterable[str]) -> list[str]:
    """All signals of bodies and cables."""
    return [
        f"{body}.{kind}"
        for body in sorted(bodies)
        for kind in (
            CABLE_SIGNALS if body.startswith("cable_") else (*POSE_SIGNALS, *ERROR_SIGNALS)
        )
    ]


def extract(recording: Recording, names: Iterable[str]) -> dict[str, NDArray]:
    """Take the series of bodies and cables out of a recording, of those that it has."""
    kept: dict[str, NDArray] = {}
    for name in names:
        if name in recording.bodies:
            track = recording.bodies[name]
            kept[f"{name}.time_s"] = track.time_s
            kept[f"{name}.pose"] = np.hstack([track.position_enu_m, track.orientation_wxyz])
            if name in recording.setpoints:
                held = recording.setpoints[name].held_at(track.time_s)
                kept[f"{name}.setpoint"] = np.hstack([held.position_enu_m, held.orientation_wxyz])
        elif name in recording.cables:
            kept[f"{name}.time_s"] = recording.cables[name].time_s
            kept[f"{name}.tension_n"] = recording.cables[name].tension_n[:, 0]
    return kept


def pack(series: Series) -> bytes:
    """Compress."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(v, np.float32) for name, v in series.items()}
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def unpack(data: bytes) -> Series:
    """Inverse of `pack`, up to the digits of a 32-bit number."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name].astype(float) for name in arrays.files}


def signal(series: Series, name: str) -> tuple[NDArray, NDArray, NDArray] | None:
    """Time, values, set-point (NaN without one), (T,) each, of a signal such as "load.yaw_deg".

    Angles are unwrapped. None if the run has it not.
    """
    body, _, kind = name.partition(".")
    time = series.get(f"{body}.time_s")
    if time is None:
        return None
    if kind in CABLE_SIGNALS:
        values = series.get(name)
        return None if values is None else (time, values, np.full(len(time), np.nan))
    pose = series.get(f"{body}.pose")
    if pose is None:
        return None
    wanted = series.get(f"{body}.setpoint", np.full_like(pose, np.nan))
    if kind in ERROR_SIGNALS:
        return time, _error(kind, pose, wanted), np.zeros(len(time))
    k = POSE_SIGNALS.index(kind)
    if k < 3:
        return time, pose[:, k], wanted[:, k]
    angle = np.unwrap(roll_pitch_yaw(pose[:, 3:])[:, k - 3])
    target = angle + wrapped(roll_pitch_yaw(wanted[:, 3:])[:, k - 3] - angle)
    return time, np.degrees(angle), np.degrees(target)


def _error(kind: str, pose: NDArray, wanted: NDArray) -> NDArray:
    if kind == "translational_error_m":
        return translational_error_m(pose[:, :3], wanted[:, :3])
    return np.degrees(geodesic_error_rad(pose[:, 3:], wanted[:, 3:]))


# ---------- The numbers of a run: a row of the table

FLIGHT_COLUMNS = (
    "real_time_factor", "step_size_s", "steps", "refined_periods", "sim_time_s", "wall_time_s",
    "loop_step_us", "plant_step_us", "bare_dart_step_us", "thrust_margin", "sag_m", "landed",
)  # fmt: skip
"""Numbers at the top of summary.json that go into the table."""

SUMMARY_PARTS = ("errors", "cables", "tension", "slack_threshold_n")
"""Other keys of summary.json at which the path of a metric may begin."""

_REDUCE: dict[str, Callable[[np.ndarray], Any]] = {
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "rms": lambda x: np.sqrt(np.mean(np.square(x))),
    "range": np.ptp,
    "last": lambda x: x[-1],
}


def usual_metrics(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that every table has, from the content of summary.json.

    Flight numbers; `max_tension_n` and, per main stage, `slack_fraction.<stage>` over all cables;
    mean errors of all bodies and greatest errors of the load in the main stages, named by their
    path in summary.json.
    """
    row = {key: summary[key] for key in FLIGHT_COLUMNS if key in summary}
    stages = [s.name for s in main_stages(_stages(summary))]
    cables = list(summary.get("cables", {}).values())
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
        for name in stages:
            for kind in kinds:
                if kind in errors.get(name, {}):
                    row[f"errors.{body}.{name}.{kind}"] = errors[name][kind]
    return row


def chosen_metric(metric: Metric, summary: Mapping[str, Any], series: Series) -> float | None:
    """A number that the user asked for; None if the run has it not."""
    if metric.path is not None:
        found = np.array(_numbers(summary, metric.path.split(".")), float)
    else:
        found = _samples(metric, summary, series)
    return float(_REDUCE[metric.reduce](found)) if len(found) else None


def _numbers(node: Any, path: Sequence[str]) -> list[float]:
    """All numbers at a path, in which `*` stands for every key."""
    if not path:
        return [node] if isinstance(node, (int, float)) else []
    if isinstance(node, Sequence) and not isinstance(node, str):
        node = {str(i): item for i, item in enumerate(node)}
    if not isinstance(node, Mapping):
        return []
    below = node.values() if path[0] == "*" else [node[path[0]]] if path[0] in node else []
    return [number for item in below for number in _numbers(item, path[1:])]


def _samples(metric: Metric, summary: Mapping[str, Any], series: Series) -> np.ndarray:
    found = signal(series, metric.signal) if metric.signal is not None else None
    if found is None:
        return np.empty(0)
    time, values, _ = found
    if metric.stage is not None:
        window = stage_window(summary, metric.stage)
        if window is None:
            return np.empty(0)
        values = values[(time >= window[0]) & (time < window[1])]
    return values[np.isfinite(values)]


def stage_window(summary: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """Start and end of a stage [s], None if the run has it not."""
    return next(((s.start_s, s.end_s) for s in _stages(summary) if s.name == name), None)


def _stages(summary: Mapping[str, Any]) -> list[Stage]:
    return [Stage(s["name"], s["start_s"], s["end_s"]) for s in summary.get("stages", ())]
