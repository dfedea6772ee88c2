"""The numbers of a run: a row of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from musls_analysis.recordings.recording import Stage, main_stages
from musls_analysis.sweep.signals import Series, signal
from musls_analysis.sweep.spec import Metric

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
    """Numbers that every table has.

    Args:
        summary: Content of summary.json.

    Returns:
        Flight numbers; `max_tension_n` and, per main stage, `slack_fraction.<stage>` over all
        cables; mean errors of all bodies and greatest errors of the load in the main stages, named
        by their path in summary.json.
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
        found = np.asarray(_numbers(summary, metric.path.split(".")), float)
    else:
        found = np.asarray(_samples(metric, summary, series), float)
    if len(found) == 0:
        return None
    return float(_REDUCE[metric.reduce](found))


def _numbers(node: Any, path: Sequence[str]) -> list[float]:
    """All numbers at a path, in which `*` stands for every key."""
    if not path:
        return [node] if isinstance(node, (int, float)) else []
    if isinstance(node, Sequence) and not isinstance(node, str):
        node = {str(i): item for i, item in enumerate(node)}
    if not isinstance(node, Mapping):
        return []
    if path[0] == "*":
        below = list(node.values())
    else:
        below = [node[path[0]]] if path[0] in node else []
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
    for stage in summary.get("stages", ()):
        if stage["name"] == name:
            return stage["start_s"], stage["end_s"]
    return None


def _stages(summary: Mapping[str, Any]) -> list[Stage]:
    return [Stage(s["name"], s["start_s"], s["end_s"]) for s in summary.get("stages", ())]
