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

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from musls_analysis.comparison.errors import error_table
from musls_analysis.recordings.recording import (
    LOAD,
    Array,
    BatteryTrack,
    CableTrack,
    Recording,
    main_stages,
)

# ---------- What the load's error is made of: behind on its way, too low, aside

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

    The kind of the scenario's controller may add a reason.
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


# ---------- Slack

DEFAULT_SLACK_THRESHOLD_N = 0.5
"""Tension at the load below which a cable counts as slack: about twice the weight of the seed
paper's cable, and under a tenth of its share of the load."""


def slack_mask(cable: CableTrack, slack_threshold_n: float) -> np.ndarray:
    """Which samples are slack: tension at the load end below the threshold (T,)."""
    return cable.tension_n[:, 0] < slack_threshold_n


def slack_intervals(cable: CableTrack, slack_threshold_n: float) -> list[tuple[float, float]]:
    """When the cable was slack [s]: first slack sample, first taut one after it or the last one."""
    mask = slack_mask(cable, slack_threshold_n)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    times = cable.time_s[np.minimum(edges, len(mask) - 1)].tolist()
    return list(zip(times[::2], times[1::2], strict=True))


# ---------- Largest tensions: in flight, at snaps, at take-up and touch-down

SNAP_S = 0.3
"""A tension so soon after a cable was slack belongs to its snap."""

LOW_M = 0.02
"""A load that is not higher above where it stood counts as standing."""

TAKE_UP = frozenset({"spool_up", "take_off", "form_up", "tension", "lift"})
TOUCH_DOWN = frozenset({"lower", "slacken", "spread", "land", "disarmed"})

WHERE = {
    "in_flight": "in flight",
    "snap": "at snaps",
    "take_up": "at take-up",
    "touch_down": "at touch-down",
}
"""Names for people, in the order in which they are shown."""

Peaks = tuple[Array, Array]
"""Times (k,) [s] and largest tensions of all cables, in the recording's order (k, n_cables)."""


@dataclass(frozen=True)
class Peak:
    """The largest tension of one sort."""

    max_n: float
    cable: str
    time_s: float
    stage: str


def cable_peaks(recording: Recording, peaks: Peaks | None) -> dict[str, tuple[Array, Array]]:
    """Times and tensions of each cable: the peaks of all steps, else the recorded samples."""
    cables = {name: track for name, track in recording.cables.items() if len(track.time_s)}
    if peaks is None or peaks[1].shape[1] != len(cables):
        return {name: (t.time_s, t.tension_n.max(axis=1)) for name, t in cables.items()}
    return {name: (peaks[0], peaks[1][:, k]) for k, name in enumerate(cables)}


def named_peaks(
    recording: Recording, slack_threshold_n: float, peaks: Peaks | None = None
) -> dict[str, dict[str, Any]]:
    """The largest tension of each sort that the flight had, by the keys of `WHERE`."""
    best: dict[str, Peak] = {}
    for name, (time_s, tension) in cable_peaks(recording, peaks).items():
        ends = [end for _, end in slack_intervals(recording.cables[name], slack_threshold_n)]
        snaps = _soon_after(time_s, np.array(ends))
        landed = _touching_down(recording, time_s)
        for stage in recording.stages:
            inside = recording.stage_mask(stage, time_s)
            for where, mask in _sorts(stage.name, inside, snaps, landed):
                if not mask.any():
                    continue
                row = int(np.argmax(np.where(mask, tension, -np.inf)))
                if where not in best or tension[row] > best[where].max_n:
                    best[where] = Peak(float(tension[row]), name, float(time_s[row]), stage.name)
    return {where: asdict(best[where]) for where in WHERE if where in best}


def _sorts(
    stage: str, inside: np.ndarray, snaps: np.ndarray, landed: np.ndarray
) -> list[tuple[str, np.ndarray]]:
    phase = stage.rstrip("0123456789").rstrip("_") if stage[-1:].isdigit() else stage
    for where, phases in (("take_up", TAKE_UP), ("touch_down", TOUCH_DOWN)):
        if phase in phases:
            return [(where, inside)]
    return [
        ("in_flight", inside & ~snaps & ~landed),
        ("snap", inside & snaps & ~landed),
        ("touch_down", inside & landed),
    ]


def _soon_after(time_s: Array, ends_s: Array) -> np.ndarray:
    """Whether a cable was slack shortly before each time, (T,)."""
    if not len(ends_s):
        return np.zeros(len(time_s), bool)
    last = np.searchsorted(ends_s, time_s + SNAP_S / 3.0, side="right") - 1
    since = time_s - ends_s[np.maximum(last, 0)]
    return np.asarray((last >= 0) & (since < SNAP_S))


def _touching_down(recording: Recording, time_s: Array) -> np.ndarray:
    """Whether the load comes down to where it stood before the flight, (T,)."""
    first = next((s for s in recording.stages if s.name == "spool_up"), None)
    load = recording.bodies.get(LOAD)
    if first is None or load is None:
        return np.zeros(len(time_s), bool)
    height = load.position_enu_m[:, 2]
    standing = float(np.median(height[recording.stage_mask(first, load.time_s)]))
    low = (height < standing + LOW_M).astype(np.int8)
    found = np.zeros(len(time_s), bool)
    for down_s in load.time_s[1:][np.diff(low) == 1]:
        found |= (time_s > down_s - SNAP_S) & (time_s < down_s + 2.0 * SNAP_S)
    return found


def sentence(tension: dict[str, dict[str, Any]]) -> str:
    """The peaks in words: "6.3 N in flight (circle), 61.2 N at touch-down"."""
    parts = []
    for where, peak in tension.items():
        stage = f" ({peak['stage'].replace('_', ' ')})" if where in ("in_flight", "snap") else ""
        parts.append(f"{peak['max_n']:.1f} N {WHERE[where]}{stage}")
    return ", ".join(parts)


def summarise(
    recording: Recording,
    *,
    slack_threshold_n: float = DEFAULT_SLACK_THRESHOLD_N,
    max_tension_n: Sequence[float] | None = None,
    peaks: Peaks | None = None,
    controller: str = "",
) -> dict[str, Any]:
    """Condense a recording to numbers that fit into JSON, with the keys in the module's text.

    A cable is slack while its tension at the load is below the threshold. `max_tension_n` is the
    greatest tension of each cable if known better than from the recording, e.g. from every step of
    a simulation; `peaks` is the same over time. `controller` is the kind that flew.
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
        "stages": [asdict(stage) for stage in recording.stages],
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
