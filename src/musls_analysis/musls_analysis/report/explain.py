"""What the error of the load is made of: behind on its way, too low, aside."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from musls_analysis.recordings.recording import LOAD, Recording, main_stages

SLOWEST_M_S = 0.02
"""Mean speed of a set-point below which nothing lags behind."""

MOST_LEFT = 0.8
"""Share of the error that may be left without the lag, if the lag is to explain it."""

WHY = {
    "formation": (
        "The drones follow a moving set-point with the lag of PX4's position loop (about "
        "1/MPC_XY_P, 1.05 s by default), and nothing feeds the load's own error back; "
        "the controller “payload” does."
    ),
}
"""Reason for the lag by the controller that flew."""


def explanations(recording: Recording, controller: str = "") -> list[str]:
    """Say for each main stage what the load's error is made of, one line each.

    Args:
        recording: The flight.
        controller: Kind of the scenario's controller, which may add a reason.
    """
    lines = list(_lines(recording))
    if lines and controller in WHY:
        lines.append(WHY[controller])
    return lines


def _lines(recording: Recording) -> Iterator[str]:
    body, asked = recording.bodies.get(LOAD), recording.setpoints.get(LOAD)
    if body is None or asked is None or len(asked.time_s) < 2:
        return
    for stage in main_stages(recording.stages):
        inside = recording.stage_mask(stage, body.time_s)
        if inside.sum() < 10:
            continue
        time_s = body.time_s[inside]
        wanted = np.column_stack(
            [np.interp(time_s, asked.time_s, c) for c in asked.position_enu_m.T]
        )
        held = asked.held_at(time_s).position_enu_m
        gap = held - body.position_enu_m[inside]
        speed = np.gradient(wanted, time_s, axis=0)
        mean_m_s = float(np.linalg.norm(speed, axis=1).mean())
        if not np.isfinite(gap).all() or mean_m_s < SLOWEST_M_S:
            continue
        lag_s = float((gap * speed).sum() / (speed**2).sum())
        rest = gap - lag_s * speed
        behind_mm = 1e3 * abs(lag_s) * mean_m_s
        total_mm = 1e3 * float(np.linalg.norm(gap, axis=1).mean())
        left_mm = 1e3 * float(np.linalg.norm(rest, axis=1).mean())
        if left_mm > MOST_LEFT * total_mm:
            continue  # the lag explains nothing
        word = "behind" if lag_s > 0.0 else "ahead of"
        yield (
            f"{stage.name.replace('_', ' ')}: mean error of the load {total_mm:.0f} mm; it is "
            f"{abs(lag_s):.2f} s {word} its set-point, which at {mean_m_s:.2f} m/s is "
            f"{behind_mm:.0f} mm; without the lag {left_mm:.0f} "
            f"mm would be left, {1e3 * abs(rest[:, 2].mean()):.0f} mm of it in height"
        )
