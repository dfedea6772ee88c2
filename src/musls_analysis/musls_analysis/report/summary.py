"""The part of summary.json that follows from the recording.

Keys (stable)::

    errors.<body>.<stage>.translational_error_m      mean distance to the set-point, eq. 12
                         .translational_error_max_m  greatest
                         .translational_error_rms_m  root mean square
                         .geodesic_error_deg         mean angle to the set-point, eq. 13
                         .geodesic_error_max_deg
                         .geodesic_error_rms_deg
    cables.<cable>.max_tension_n         greatest of both ends
                  .slack_fraction        share of samples with slack at the load end
                  .stages.<stage>.max_tension_n, .mean_tension_n (load end), .slack_fraction
    tension.<in_flight | snap | take_up | touch_down>   the largest of its sort, of all cables
           .max_n, .cable, .time_s, .stage
    explanations[]                       what the load's errors are made of, for people
    batteries.<drone>.charge_start, .charge_end   share of the capacity; only with batteries
                     .energy_wh, .mean_power_w, .max_power_w, .max_current_a, .min_voltage_v
    slack_threshold_n
    stages[]: name, start_s, end_s
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from musls_analysis.comparison.errors import error_table
from musls_analysis.recordings.recording import BatteryTrack, CableTrack, Recording
from musls_analysis.report.explain import explanations
from musls_analysis.report.peaks import Peaks, cable_peaks, named_peaks
from musls_analysis.report.tension import DEFAULT_SLACK_THRESHOLD_N, slack_mask


def summarise(
    recording: Recording,
    *,
    slack_threshold_n: float = DEFAULT_SLACK_THRESHOLD_N,
    max_tension_n: Sequence[float] | None = None,
    peaks: Peaks | None = None,
    controller: str = "",
) -> dict[str, Any]:
    """Condense a recording to numbers that fit into JSON.

    Args:
        recording: The flight.
        slack_threshold_n: A cable is slack while its tension at the load is below it.
        max_tension_n: Greatest tension of each cable if known better than from the recording,
            e.g. from every step of a simulation.
        peaks: The same over time.
        controller: Kind of the controller that flew.

    Returns:
        The keys listed in the module's text.
    """
    known = cable_peaks(recording, peaks)
    cables = {
        name: _cable(recording, track, known[name], slack_threshold_n)
        for name, track in recording.cables.items()
        if len(track.time_s)
    }
    if max_tension_n is not None:
        for entry, tension in zip(cables.values(), max_tension_n, strict=True):
            entry["max_tension_n"] = float(tension)
    batteries = {name: _battery(track) for name, track in recording.batteries.items()}
    return {
        "errors": error_table(recording).by_body(),
        "explanations": explanations(recording, controller),
        "cables": cables,
        "tension": named_peaks(recording, slack_threshold_n, peaks),
        **({"batteries": batteries} if batteries else {}),
        "slack_threshold_n": float(slack_threshold_n),
        "stages": [
            {"name": s.name, "start_s": s.start_s, "end_s": s.end_s} for s in recording.stages
        ],
    }


def _battery(battery: BatteryTrack) -> dict[str, float]:
    time_s, power_w = battery.time_s, battery.power_w
    energy_j = float(np.sum(np.diff(time_s) * (power_w[1:] + power_w[:-1]) / 2.0))
    return {
        "charge_start": float(battery.charge[0]),
        "charge_end": float(battery.charge[-1]),
        "energy_wh": energy_j / 3600.0,
        "mean_power_w": energy_j / max(float(time_s[-1] - time_s[0]), 1e-9),
        "max_power_w": float(power_w.max()),
        "max_current_a": float(battery.current_a.max()),
        "min_voltage_v": float(battery.voltage_v.min()),
    }


def _cable(
    recording: Recording,
    cable: CableTrack,
    peaks: tuple[np.ndarray, np.ndarray],
    slack_threshold_n: float,
) -> dict[str, Any]:
    slack = slack_mask(cable, slack_threshold_n)
    stages = {}
    for stage in recording.stages:
        mask = recording.stage_mask(stage, cable.time_s)
        if mask.any():
            between = peaks[1][recording.stage_mask(stage, peaks[0])].max(initial=0.0)
            stages[stage.name] = {
                "max_tension_n": float(max(cable.tension_n[mask].max(), between)),
                "mean_tension_n": float(cable.tension_n[mask, 0].mean()),
                "slack_fraction": float(slack[mask].mean()),
            }
    return {
        "max_tension_n": float(max(cable.tension_n.max(), peaks[1].max(initial=0.0))),
        "slack_fraction": float(slack.mean()),
        "stages": stages,
    }
