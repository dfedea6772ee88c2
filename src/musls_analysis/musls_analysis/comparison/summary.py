"""The part of summary.json that follows from the recording.

Keys (stable)::

    warnings[]                                   why this flight is not valid
    errors.<body>.<stage>.translational_error_m      mean distance to the reference, eq. 12
                         .translational_error_max_m  greatest
                         .translational_error_rms_m  root mean square
                         .geodesic_error_deg         mean angle to the reference, eq. 13
                         .geodesic_error_max_deg
                         .geodesic_error_rms_deg
                         .held_translational_error_m, .held_geodesic_error_deg
                                                     mean ones to the held set-point
    cables.<cable>.max_tension_n         greatest of both ends
                  .slack_fraction        share of samples with slack at the load end
                  .stages.<stage>.max_tension_n, .mean_tension_n (load end), .slack_fraction
    tension.<in_flight | snap | take_up | touch_down>   the largest of its sort, of all cables
           .max_n, .cable, .time_s, .stage
    explanations[]                       what the load's errors are made of, for people
    oscillations[]: stage, frequency_hz, amplitude_m, grows   swings of the load that do not die out
    entanglement.least_distance_m, .cables, .time_s   where two cables come closest
                .crossings[]: cables, time_s   cables that pass through each other
    batteries.<drone>.charge_start, .charge_end   share of the capacity; only with batteries
                     .energy_wh, .mean_power_w, .max_power_w, .max_current_a, .min_voltage_v
    slack_threshold_n
    stages[]: name, start_s, end_s
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from musls_analysis.comparison.entanglement import entanglement
from musls_analysis.comparison.entanglement import told as entanglement_told
from musls_analysis.comparison.errors import error_table, setpoint_pose, standing_height_m
from musls_analysis.recordings.recording import (
    LOAD,
    CableTrack,
    PoseTrack,
    RecordedStage,
    Recording,
    SignalTrack,
    main_stages,
    without_number,
)
from musls_control.mission.carrying import CLOSE_M, CLOSE_SHARE
from musls_control.mission.spec import PHASES
from musls_control.px4.parameters import PX4_PARAMETERS
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_sim.scenario.events import AUTOMATIC_KINDS

# ---------- What the load's error is made of: behind on its way, too low, aside

SLOWEST_M_S = 0.02
"""Mean speed of a set-point below which nothing lags behind."""

MAX_LEFT = 0.8
"""Share of the error that may be left without the lag, if the lag is to explain it."""

ERROR_CAUSES = {
    "formation": (
        "The drones follow a moving set-point with the lag of PX4's position loop (about "
        "1/MPC_XY_P, 1.05 s by default), and no controller acts on the load's own "
        "error; “payload” does."
    ),
}
"""Reason for the lag by the controller that flew."""


def explanations(recording: Recording, controller: str = "") -> list[str]:
    """Share of the lag in the load's error, by main stage, and its reason with this controller."""
    lines = list(_lags(recording))
    if lines and controller in ERROR_CAUSES:
        lines.append(ERROR_CAUSES[controller])
    return lines


def _lags(recording: Recording) -> Iterator[str]:
    body = recording.bodies.get(LOAD)
    if body is None or LOAD not in recording.setpoints:
        return
    setpoints = setpoint_pose(recording, LOAD)
    moves = recording.references.get(LOAD, recording.setpoints[LOAD])
    for stage in main_stages(recording.stages):
        inside = recording.stage_mask(stage, body.time_s)
        if inside.sum() < 10:
            continue
        time_s = body.time_s[inside]
        path_m = _held_outside(moves, time_s)
        gap = setpoints.position_enu_m[inside] - body.position_enu_m[inside]
        speed = np.gradient(path_m, time_s, axis=0)
        mean_m_s = float(np.linalg.norm(speed, axis=1).mean())
        if not np.isfinite(gap).all() or mean_m_s < SLOWEST_M_S:
            continue
        lag_s = float((gap * speed).sum() / (speed**2).sum())
        rest = gap - lag_s * speed
        behind_mm = 1e3 * abs(lag_s) * mean_m_s
        total_mm = 1e3 * float(np.linalg.norm(gap, axis=1).mean())
        left_mm = 1e3 * float(np.linalg.norm(rest, axis=1).mean())
        if left_mm > MAX_LEFT * total_mm:
            continue  # the lag explains nothing
        word = "behind" if lag_s > 0.0 else "ahead of"
        yield (
            f"{stage.name.replace('_', ' ')}: mean error of the load {total_mm:.0f} mm; it is "
            f"{abs(lag_s):.2f} s {word} its set-point, which at {mean_m_s:.2f} m/s is "
            f"{behind_mm:.0f} mm; without the lag {left_mm:.0f} "
            f"mm would be left, {1e3 * abs(rest[:, 2].mean()):.0f} mm of it in height"
        )


def _held_outside(track: PoseTrack, time_s: Array) -> Array:
    """Positions between samples, the first and last one held before and after (T, 3)."""
    return np.column_stack([np.interp(time_s, track.time_s, c) for c in track.position_enu_m.T])


# ---------- A load that swings and does not come to rest

LEAST_SWING_M = 0.02
"""Smaller amplitudes are noise and wind."""

LEAST_CYCLES = 5
"""Cycles that an oscillation needs in a stage, since fewer are a drift; two fewer if it grows."""

OF_ONE_TONE = 0.6
"""Share of the error's power at one frequency from which on it is an oscillation."""

OF_THE_PLAN = 0.01
"""Power of the reference at that frequency over the error's, from which on it is its lag."""


def oscillations(recording: Recording) -> Iterator[dict[str, Any]]:
    """Main stages in which the load's error is one tone that the reference has not.

    The error's axis of largest variance, minus its mean over a window; the tone is the largest of
    its spectrum with the neighbours on both sides (a Hann window is three lines wide), of one that
    grows after division by its growth. A swing that has faded to half in the second half of the
    stage is none.
    """
    body = recording.bodies.get(LOAD)
    if body is None or LOAD not in recording.setpoints:
        return
    setpoints_m = setpoint_pose(recording, LOAD).position_enu_m
    for stage in main_stages(recording.stages):
        inside = recording.stage_mask(stage, body.time_s)
        error = (body.position_enu_m - setpoints_m)[inside]
        if len(error) < 100 or not np.isfinite(error).all():
            continue
        spacing_s = stage.duration_s / len(error)
        _, _, axes = np.linalg.svd(error - error.mean(axis=0), full_matrices=False)
        swing = _without_drift(error @ axes[0])
        half = len(error) // 2
        growth = np.std(swing[half:]) / max(np.std(swing[:half]), 1e-9)
        even = max(growth, 1.0) ** -np.linspace(0.0, 2.0, len(error))
        ways = (_without_drift(even * (path @ axes[0])) for path in (error, setpoints_m[inside]))
        power, plan_power = (np.abs(np.fft.rfft(np.hanning(len(w)) * w)) ** 2 for w in ways)
        line = int(np.argmax(power[1:])) + 1
        tone = slice(max(line - 1, 0), line + 2)
        amplitude_m = float(np.sqrt(2.0) * np.std(swing[half:]))
        if (
            line >= LEAST_CYCLES - 2 * (growth > 2.0)
            and amplitude_m > LEAST_SWING_M
            and power[tone].sum() > OF_ONE_TONE * power[1:].sum()
            and plan_power[tone].sum() < OF_THE_PLAN * power[tone].sum()
            and growth > 0.5
        ):
            yield {
                "stage": stage.name,
                "frequency_hz": line / (len(swing) * spacing_s),
                "amplitude_m": amplitude_m,
                "grows": bool(growth > 2.0),
            }


def _without_drift(values: Array) -> Array:
    """Less the cubic parabola through them."""
    rows = np.linspace(-1.0, 1.0, len(values))
    return np.asarray(values - np.polyval(np.polyfit(rows, values, 3), rows))


# ---------- Slack

DEFAULT_SLACK_THRESHOLD_N = 0.5
"""Tension at the load below which a cable counts as slack: about twice the weight of the seed
paper's cable, and under a tenth of its share of the load."""


def slack_mask(cable: CableTrack, slack_threshold_n: float) -> np.ndarray:
    """Mask (T,) of slack samples: the tension at the load end is below the threshold."""
    return cable.tension_n[:, 0] < slack_threshold_n


def slack_intervals(cable: CableTrack, slack_threshold_n: float) -> list[tuple[float, float]]:
    """Times of slack [s]: first slack sample, first taut one after it or the last one."""
    return intervals(cable.time_s, slack_mask(cable, slack_threshold_n))


def intervals(time_s: Array, mask: np.ndarray) -> list[tuple[float, float]]:
    """First time of each run of samples in a mask (T,), and the time after it or the last one."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    times = time_s[np.minimum(edges, len(mask) - 1)].tolist()
    return list(zip(times[::2], times[1::2], strict=True))


# ---------- Largest tensions: in flight, at snaps, at take-up and touch-down

SNAP_S = 0.5
"""A tension so soon after a cable was slack belongs to its snap, which is a train of jerks."""

DOWN_S = 0.3
"""Half as long before the load comes down, and as long after it, a tension is one of touch-down."""

AIRBORNE_S = 1.0
"""A load that was up for a shorter time has bounced: it does not come down from a flight."""

LOW_M = 0.02
"""A load that is not higher above where it stood counts as standing."""

TAKE_UP = frozenset({"spool_up", "take_off", "form_up", "tension", "lift"})
TOUCH_DOWN = frozenset({"lower", "slacken", "spread", "land", "disarmed"})

PEAK_PLACES = {
    "in_flight": "in flight",
    "snap": "at snaps",
    "take_up": "at take-up",
    "touch_down": "at touch-down",
}
"""Names for people, in the order in which they are shown."""


@dataclass(frozen=True)
class Peak:
    """The largest tension of one sort."""

    max_n: float
    cable: str
    time_s: float
    stage: str


def named_peaks(recording: Recording, slack_threshold_n: float) -> dict[str, dict[str, Any]]:
    """The largest tension of each sort that the flight had, by the keys of `PEAK_PLACES`."""
    best: dict[str, Peak] = {}
    for name, cable in recording.cables.items():
        if not len(cable.time_s):
            continue
        time_s, tension = cable.largest()
        ends = [end for _, end in slack_intervals(cable, slack_threshold_n)]
        snaps = _soon_after(time_s, np.array(ends))
        landed = _touching_down(recording, time_s)
        for stage in recording.stages:
            inside = recording.stage_mask(stage, time_s)
            for where, mask in _masks_by_place(stage.name, inside, snaps, landed):
                if not mask.any():
                    continue
                row = int(np.argmax(np.where(mask, tension, -np.inf)))
                if where not in best or tension[row] > best[where].max_n:
                    best[where] = Peak(float(tension[row]), name, float(time_s[row]), stage.name)
    return {where: asdict(best[where]) for where in PEAK_PLACES if where in best}


def _masks_by_place(
    stage: str, inside: np.ndarray, snaps: np.ndarray, landed: np.ndarray
) -> list[tuple[str, np.ndarray]]:
    phase = without_number(stage)
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
    last = np.searchsorted(ends_s, time_s + 0.1, side="right") - 1
    since = time_s - ends_s[np.maximum(last, 0)]
    return np.asarray((last >= 0) & (since < SNAP_S))


def _touching_down(recording: Recording, time_s: Array) -> np.ndarray:
    """Whether the load comes down to where it stood before the flight, (T,)."""
    near_touchdown = np.zeros(len(time_s), bool)
    standing_m = standing_height_m(recording)
    if standing_m is None:
        return near_touchdown
    load = recording.bodies[LOAD]
    change = np.diff((load.position_enu_m[:, 2] < standing_m + LOW_M).astype(np.int8))
    up_s, down_s = (load.time_s[1:][change == way] for way in (-1, 1))
    for at_s in down_s:
        if at_s - up_s[up_s < at_s].max(initial=-np.inf) > AIRBORNE_S:
            near_touchdown |= (time_s > at_s - DOWN_S) & (time_s < at_s + 2.0 * DOWN_S)
    return near_touchdown


STIFF = "of chains that do not stretch, a rope jerks less"


def of_a_chain(summary: Mapping[str, Any], where: str) -> bool:
    """Whether a peak is of a jerk that a rope, which stretches, would soften."""
    return where != "in_flight" and bool(summary.get("inextensible"))


def sentence(summary: Mapping[str, Any]) -> str:
    """The peaks in words: "6.3 N in flight (circle), 61.2 N at touch-down"."""
    phrases: dict[bool, list[str]] = {False: [], True: []}
    for where, peak in summary["tension"].items():
        stage = f" ({peak['stage'].replace('_', ' ')})" if where in ("in_flight", "snap") else ""
        words = f"{peak['max_n']:.1f} N {PEAK_PLACES[where]}{stage}"
        phrases[of_a_chain(summary, where)].append(words)
    own, chain = (", ".join(parts) for parts in phrases.values())
    return "; ".join(filter(None, [own, chain and f"{chain} ({STIFF})"]))


# ---------- What makes a flight invalid

HIGH_M = 0.1
"""A load whose set-point is this high above where it stood is to be in the air."""

ON_GROUND_S = 1.5
"""A load that is low for so long, in a stage that has it in the air, lies or drags."""

TENSION_SHARE = 5.0
"""Largest tension of a cable in flight over what all cables of the drones carry together; take-up
and touch-down are not counted."""

WARNING_EVENTS = {"rotors_overlap": "", "collision": "collision", "doubtful": "doubtful"}
"""Kinds of events that say so, and the first word of the warning; none where the event says it."""

GRID_S = 0.2
"""Times at which set-points are looked at: as often as they change."""

FAST_SHARE = 0.1
"""Share of a stage in which set-points may be faster than a drone can fly."""

TURNED_DEG = 90.0
"""Mean angle of a load that several drones carry to its set-point: it does not follow at all."""

ANNOUNCED_S = 1.0
"""Time after an event of the scenario (a cut cable, a failed motor) in which tensions are high."""

SAMPLE_S = 0.05
"""Times of peaks are those of samples, which may lie a little before the event."""

CARRIED_PERCENTILE = 90.0
"""Percentile of the summed tensions over a flight that stands for the load in the air, without
jerks."""


def flight_warnings(
    recording: Recording, parameters: Mapping[str, float] | None = None
) -> list[str]:
    """Why a flight with these parameters of PX4 is not representative, a line each."""
    return [
        *_warning_events(recording),
        *_upside_down(recording),
        *_too_fast(recording, parameters or {}),
        *_turned_away(recording),
        *_load_on_ground(recording),
        *_tension(recording),
    ]


def _lost(recording: Recording) -> list[str]:
    """Drones that the scenario lets fall."""
    losses = [event for event in recording.events if event.kind == "drone_lost"]
    return [event.what.partition(":")[0] for event in losses]


def _warning_events(recording: Recording) -> Iterator[str]:
    falls = tuple(f"{name} and ground" for name in _lost(recording))
    timed_lines = []
    for kind, word in WARNING_EVENTS.items():
        of_kind = [event for event in recording.events if event.kind == kind]
        matches = [event for event in of_kind if not event.what.startswith(falls)]
        if matches:
            more = f" (and {len(matches) - 1} more)" if len(matches) > 1 else ""
            when = f"at {matches[0].time_s:.1f} s"
            what = matches[0].what
            line = f"{word} {when}: {what}{more}" if word else f"{what} {when}{more}"
            timed_lines.append((matches[0].time_s, line))
    yield from (line for _, line in sorted(timed_lines))


def close_pass(separation: Mapping[str, Any] | None) -> str:
    """Whether drones came much closer than planned, in words; empty if not, or if they touched."""
    if separation is None:
        return ""
    tips_m = separation["tips_m"]
    planned_m = separation.get("planned_tips_m")
    limit_m = CLOSE_M if planned_m is None else max(CLOSE_M, CLOSE_SHARE * planned_m)
    if not 0.0 <= tips_m < limit_m:
        return ""
    one, other = separation["pair"]
    plan_text = "" if planned_m is None else f"; {planned_m:.2f} m were planned"
    return (
        f"close pass: rotor tips of drones {one} and {other} within {tips_m:.2f} m at "
        f"{separation['time_s']:.1f} s{plan_text}"
    )


def _upside_down(recording: Recording) -> Iterator[str]:
    for name in recording.drones:
        if name in _lost(recording):
            continue
        pose = recording.bodies[name]
        x, y = pose.orientation_wxyz[:, 1], pose.orientation_wxyz[:, 2]
        over = 1.0 - 2.0 * (x * x + y * y) < 0.0  # its z axis points down
        if over.any():
            yield f"{name} tilted by more than 90 degrees at {pose.time_s[np.argmax(over)]:.1f} s"


def _paths(
    recording: Recording, names: Iterable[str]
) -> Iterator[tuple[str, RecordedStage, Array, Array]]:
    """Bodies, main stages, times (T,) and what is asked of a body there (T, 3)."""
    for name in names:
        track = recording.references.get(name, recording.setpoints[name])
        for stage in main_stages(recording.stages):
            time_s = np.arange(stage.start_s, stage.end_s, GRID_S)
            if len(time_s) > 2:
                yield name, stage, time_s, _held_outside(track, time_s)


def _too_fast(recording: Recording, parameters: Mapping[str, float]) -> Iterator[str]:
    """A set-point that moves faster, or turns harder, than the autopilot lets a drone fly."""
    tilt_max, speed_max = (
        parameters.get(name, PX4_PARAMETERS[name].default)
        for name in ("MPC_TILTMAX_AIR", "MPC_XY_VEL_MAX")
    )
    for name, stage, time_s, path in _paths(recording, recording.setpoints):
        velocity = np.gradient(path, time_s, axis=0)
        specific_force = np.gradient(velocity, time_s, axis=0) + [0.0, 0.0, STANDARD_GRAVITY_M_S2]
        tilt = np.degrees(
            np.arctan2(np.hypot(specific_force[:, 0], specific_force[:, 1]), specific_force[:, 2])
        )
        speed = np.hypot(velocity[:, 0], velocity[:, 1])
        for values, most, what in ((tilt, tilt_max, "degrees"), (speed, speed_max, "m/s")):
            if np.mean(values > most) > FAST_SHARE:
                yield (
                    f"the set-point of {name} asks for {np.percentile(values, 90):.0f} {what} in "
                    f"{stage.name.replace('_', ' ')}, drones fly with {most:g} at most"
                )
                return


def _turned_away(recording: Recording) -> Iterator[str]:
    main = {stage.name for stage in main_stages(recording.stages)}
    for row in error_table(recording) if len(recording.drones) > 1 else ():
        if row.body == LOAD and row.stage in main and row.geodesic_error_deg > TURNED_DEG:
            yield (
                f"set-points faster than the drones: the load is turned by "
                f"{row.geodesic_error_deg:.0f} degrees from them in {row.stage.replace('_', ' ')}"
            )
            return


def _load_on_ground(recording: Recording) -> Iterator[str]:
    load = recording.bodies.get(LOAD)
    setpoints = recording.setpoints.get(LOAD)
    if load is None or setpoints is None:
        return
    standing_m = standing_height_m(recording)
    if standing_m is None:
        standing_m = _lying_m(recording, load)
    if standing_m is None:
        return
    above_m = setpoints.held_at(load.time_s).position_enu_m[:, 2] - standing_m
    low = (load.position_enu_m[:, 2] < standing_m + LOW_M) & (above_m > HIGH_M)
    for stage in main_stages(recording.stages):
        if without_number(stage.name) in PHASES:  # given up before its mission: it was not lifted
            return
        for begin_s, end_s in intervals(
            load.time_s, low & recording.stage_mask(stage, load.time_s)
        ):
            if end_s - begin_s > ON_GROUND_S:
                yield (
                    f"the load is on the ground at {begin_s:.1f} s, in "
                    f"{stage.name.replace('_', ' ')}"
                )
                return


def _lying_m(recording: Recording, load: PoseTrack) -> float | None:
    """Lowest height of a load that sank with its drones and is carried by something else there.

    Of a flight that begins in the air, which does not say how high the load stands.
    """
    height_m = load.position_enu_m[:, 2]
    low_s = load.time_s[height_m < height_m.min() + LOW_M]
    for name in recording.drones:
        track = recording.bodies[name]
        setpoints = recording.setpoints.get(name)
        if setpoints is None:
            return None
        above_m = setpoints.held_at(track.time_s).position_enu_m[:, 2] - track.position_enu_m[:, 2]
        if np.median(np.interp(low_s, track.time_s, above_m)) < HIGH_M:
            return None
    pull_n = float(np.median(_pull_n(recording, low_s)))
    return float(height_m.min()) if pull_n < 0.5 * _carried_n(recording) else None


def _tension(recording: Recording) -> Iterator[str]:
    if not recording.drones or not recording.cables:
        return
    announced_s = [e.time_s for e in recording.events if e.kind not in AUTOMATIC_KINDS]
    unannounced = {name: _without(cable, announced_s) for name, cable in recording.cables.items()}
    peaks = named_peaks(replace(recording, cables=unannounced), 0.0)
    candidates = [peaks[where] for where in ("in_flight", "snap") if where in peaks]
    carried_n = _carried_n(recording, lowest=False)
    peak = max(candidates, key=lambda its: its["max_n"], default=None)
    if peak is not None and peak["max_n"] > TENSION_SHARE * carried_n:
        yield (
            f"{peak['cable']} is pulled with {peak['max_n']:.0f} N at {peak['time_s']:.1f} s; all "
            f"cables together carry {carried_n:.1f} N"
        )


def _without(cable: CableTrack, events_s: Sequence[float]) -> CableTrack:
    """The cable without its largest tensions shortly after events."""
    time_s, peak_n = cable.largest()
    outside = np.ones(len(time_s), bool)
    for event_s in events_s:
        outside &= (time_s < event_s - SAMPLE_S) | (time_s > event_s + ANNOUNCED_S)
    return replace(cable, peak_time_s=time_s, peak_n=np.where(outside, peak_n, 0.0))


def _pull_n(recording: Recording, time_s: Array, *, lowest: bool = True) -> Array:
    """Sum of the tensions of all cables at times, (T,): at their first ends, or the larger ones."""
    cables = [cable for cable in recording.cables.values() if len(cable.time_s)]
    pulls = [(k.time_s, k.tension_n[:, 0] if lowest else k.tension_n.max(axis=1)) for k in cables]
    each = [np.interp(time_s, *pull) for pull in pulls]
    return np.sum(each, axis=0) if each else np.zeros(len(time_s))


def _carried_n(recording: Recording, *, lowest: bool = True) -> float:
    """Sum of the tensions of all cables while they carry the load, see `_pull_n`."""
    times_s = [cable.time_s for cable in recording.cables.values() if len(cable.time_s)]
    pull_n = _pull_n(recording, times_s[0], lowest=lowest) if times_s else np.zeros(1)
    return float(np.percentile(pull_n, CARRIED_PERCENTILE))


# ---------- The summary


def summarise(
    recording: Recording,
    *,
    slack_threshold_n: float = DEFAULT_SLACK_THRESHOLD_N,
    controller: str = "",
    parameters: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Summarise a recording in numbers that fit into JSON, with the keys in the module's docstring.

    `controller` is the kind that flew, `parameters` those of PX4 that are not at their default.
    """
    cables = {
        name: _cable(recording, track, slack_threshold_n)
        for name, track in recording.cables.items()
        if len(track.time_s)
    }
    batteries = {name: _battery(track) for name, track in recording.batteries.items()}
    return {
        "warnings": flight_warnings(recording, parameters),
        "errors": error_table(recording).by_body(),
        "explanations": explanations(recording, controller),
        "oscillations": list(oscillations(recording)),
        **({"entanglement": near} if (near := entanglement(recording.cables)) else {}),
        "cables": cables,
        "tension": named_peaks(recording, slack_threshold_n),
        **({"batteries": batteries} if batteries else {}),
        "slack_threshold_n": float(slack_threshold_n),
        "stages": [asdict(stage) for stage in recording.stages],
    }


def _battery(battery: SignalTrack) -> dict[str, float]:
    time_s = battery.time_s
    power_w = battery.power_w
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


def _cable(recording: Recording, cable: CableTrack, slack_threshold_n: float) -> dict[str, Any]:
    slack = slack_mask(cable, slack_threshold_n)
    peak_s, peak_n = cable.largest()
    stages = {}
    for stage in recording.stages:
        mask = recording.stage_mask(stage, cable.time_s)
        if mask.any():
            between = peak_n[recording.stage_mask(stage, peak_s)].max(initial=0.0)
            stages[stage.name] = {
                "max_tension_n": float(max(cable.tension_n[mask].max(), between)),
                "mean_tension_n": float(cable.tension_n[mask, 0].mean()),
                "slack_fraction": float(slack[mask].mean()),
            }
    return {
        "max_tension_n": float(max(cable.tension_n.max(), peak_n.max(initial=0.0))),
        "slack_fraction": float(slack.mean()),
        "stages": stages,
    }


def facts(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and text of what a flight adds to the summary of its recording."""
    if acts := [event for event in summary.get("events") or () if event["kind"] == "guard"]:
        yield "not as planned", f"the guard, at {acts[-1]['time_s']:.1f} s: {acts[-1]['what']}"
    if closest := summary.get("separation"):
        i, j = closest["pair"]
        yield (
            "closest drones",
            f"{i} and {j} at {closest['time_s']:.1f} s: rotor tips {closest['tips_m']:.2f} m "
            f"apart, centres {closest['centres_m']:.2f} m",
        )
    for near in summary.get("obstacles") or ():
        where = f"{near['body']} at {near['time_s']:.1f} s: {near['distance_m']:.2f} m"
        yield f"closest to {near['obstacle']}", where
    for swing in summary.get("oscillations") or ():
        yield (
            f"the load oscillates in {swing['stage'].replace('_', ' ')}",
            f"{swing['frequency_hz']:.2f} Hz, {1e3 * swing['amplitude_m']:.0f} mm to each side; it "
            + ("grows" if swing.get("grows") else "does not die out"),
        )
    if crossed := list(entanglement_told(summary.get("entanglement") or {})):
        yield "cables pass through each other, which is not modelled", "; ".join(crossed)
    if check := summary.get("check"):
        yield "before the flight", check["sentence"]


def numbers_by_path(node: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Numbers of a summary by their path in it, "errors.load.circle.translational_error_m"."""
    if isinstance(node, (int, float)):
        yield path, node
    elif isinstance(node, (Mapping, list)):
        for key, below in node.items() if isinstance(node, Mapping) else enumerate(node):
            yield from numbers_by_path(below, f"{path}.{key}" if path else str(key))
