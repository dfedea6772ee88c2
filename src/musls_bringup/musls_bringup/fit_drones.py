"""Identifies the imperfections of real drones from their recorded flights: `musls fit-drones`.

The paper's flight is simulated with ideal drones; what the recorded drones do else is explained by
an acceleration fixed in each drone and a common delay of set-points (`imperfections.linearised`).
Another flight with what was found corrects the linear model's factor and what is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.cycles import CutStage, cut, of_one_length
from musls_analysis.comparison.paper import FIRST_CYCLES_DROPPED
from musls_analysis.imperfections.estimate import (
    CONFIDENCE,
    UNKNOWN_SHARE,
    Estimated,
    alike,
    estimate,
)
from musls_analysis.imperfections.linearised import StageModel, stage_model
from musls_analysis.recordings.recording import Recording
from musls_bringup.api import fly
from musls_bringup.fly import find_scenario
from musls_bringup.recorded_flights import SCENARIO, Mission, missions
from musls_control.px4_cascade.parameters import PX4_PARAMETERS
from musls_description.errors import ConfigError
from musls_description.schema import to_data, to_yaml
from musls_sim.imperfections import (
    LARGEST_OFFSET_M,
    LARGEST_TILT_RAD,
    DroneImperfections,
    Imperfections,
)

Array = NDArray[np.float64]

FLIGHTS = 2
"""Simulated flights of a fit, for each mission that was recorded."""
PRIOR_ACCELERATION_M_S2, PRIOR_DELAY_S, PRIOR_TILT_RAD, PRIOR_HEIGHT_M = 0.5, 0.1, 0.05, 0.1
GRAVITY_M_S2 = 9.80665
_NORMAL_90 = 1.645

NOT_SEEN = (
    "thrust_scale and motor_spread leave no trace in poses: PX4's estimate of the hover thrust and "
    "its integrators take them up",
    "mocap_offset_m: only the height at which a drone is recorded above its set-point is told, be "
    "it its motion capture's or its estimator's; sideways it is not told from the formation",
    "setpoint_jitter_s acts as half of it in delay; command_latency_s is too short to be seen",
    "thrust_tilt_rad is told from a tilt of the recorded frame by nothing here: it is what the "
    "recorded attitudes lean by",
)
"""What recorded drones cannot tell."""


@dataclass(frozen=True)
class DroneFit:
    """What was identified.

    Attributes:
        imperfections: For a scenario.
        push: Accelerations fixed in the drones, x and y of each, then the delay,
            (2 n + 1) [m/s2, s].
        lean: Tilts of the rotors, x and y of each, (2 n) [rad].
        height: Of the point that each drone brings to its set-point, above the recorded one,
            (n,) [m].
        factor: By which the linear answer is smaller or larger than the simulated one.
        stages: From which stages, with their real cycles.
        notes: What is doubtful.
    """

    imperfections: Imperfections
    push: Estimated
    lean: Estimated
    height: Estimated
    factor: float
    stages: Mapping[str, int]
    notes: Sequence[str] = field(default_factory=tuple)


def fit_drones(
    real: Mapping[str, Sequence[CutStage]],
    overrides: Sequence[str] = (),
    *,
    ideal: Recording | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> DroneFit:
    """Identify the imperfections.

    Args:
        real: Cycles by stage, of one or more flights.
        overrides: More `key=value` for the simulated flights.
        ideal: The flight with these overrides and ideal drones, if it was flown before; taken
            for recordings of the scenario's own stages.
        progress: Told how many simulated flights are done.

    Raises:
        ConfigError: The scenario does not fit the recordings.
        MuslsError: A simulated flight failed.
    """
    gains = _gains(overrides)
    n = len(find_scenario(SCENARIO, list(overrides)).system.drones)
    flown = missions(real, overrides, whole=ideal is not None)
    total = FLIGHTS * len(flown)
    done = 0

    def models(faults: Imperfections | None = None) -> list[StageModel]:
        nonlocal done
        found: list[StageModel] = []
        for mission in flown:
            progress(done, total)
            known = ideal if faults is None and not mission.overrides else None
            sim = known or simulate([*overrides, *mission.overrides], faults)
            found += _models(mission.real, sim, gains)
            done += 1
        progress(done, total)
        return found

    first = models()
    push, lean, height = _estimate(first, 1.0, n)
    factor = 1.0
    faults = imperfections_of(push.value, lean.value, height.value)
    for _ in range(1, FLIGHTS):
        again = models(faults)
        factor = _factor(first, again, push.value, factor)
        push, lean, height = (
            _moved(more, about)
            for more, about in zip(_estimate(again, factor, n), _flown(faults), strict=True)
        )
        faults = imperfections_of(push.value, lean.value, height.value)
    notes = [*_notes(push, n), *(line for mission in flown for line in said_of(mission))]
    stages = {stage: sum(len(c.cycles) for c in cuts) for stage, cuts in real.items()}
    return DroneFit(faults, push, lean, height, factor, stages, tuple(dict.fromkeys(notes)))


def said_of(mission: Mission) -> list[str]:
    """What a mission took from the recordings, and what is doubtful about these."""
    cuts = [cut for cuts in mission.real.values() for cut in cuts]
    lines = [*mission.notes, *(line for cut in cuts for line in cut.warnings)]
    if mission.taken:
        source = cuts[0].recording.source
        lines.append(f"{source}: flown with {', '.join(mission.taken)}, as it was recorded")
    return lines


def simulate(overrides: Sequence[str], faults: Imperfections | None = None) -> Recording:
    """Fly the paper's mission in memory."""
    more = [] if faults is None else [faults_override(faults)]
    return fly(find_scenario(SCENARIO, [*overrides, *more]))


def faults_override(faults: Imperfections) -> str:
    """The `key=value` that gives a scenario imperfections."""
    return f"imperfections={json.dumps(to_data(faults))}"


def names_of(n: int) -> list[str]:
    """Names of the parameters of `DroneFit.push`."""
    axes = [f"drone_{i + 1} {axis}" for i in range(n) for axis in ("forward", "left")]
    return [*axes, "delay"]


def imperfections_of(push: Array, lean: Array, height_m: Array) -> Imperfections:
    """Imperfections with given accelerations, delay, tilts of the rotors and heights.

    A thrust axis that is turned by e and a board that is turned by l push a drone by
    g (e_y - l_y) forward and by g (l_x - e_x) to the left.
    """
    drones = []
    for (ahead, left), (x, y), z in zip(
        push[:-1].reshape(-1, 2), lean.reshape(-1, 2), height_m, strict=True
    ):
        level = _safe((x + left / GRAVITY_M_S2, y - ahead / GRAVITY_M_S2))
        point = (0.0, 0.0, round(float(np.clip(z, -LARGEST_OFFSET_M, LARGEST_OFFSET_M)), 4))
        drones.append(
            DroneImperfections(
                thrust_tilt_rad=_safe((x, y)), level_tilt_rad=level, mocap_offset_m=point
            )
        )
    delay_s = round(float(np.clip(push[-1], 0.0, 2.0)), 4)
    return Imperfections(drones=tuple(drones), setpoint_delay_s=delay_s)


def _safe(tilt: tuple[float, float]) -> tuple[float, float]:
    x, y = np.clip(tilt, -LARGEST_TILT_RAD, LARGEST_TILT_RAD).round(5).tolist()
    return (x, y)


def _flown(faults: Imperfections) -> tuple[Array, Array, Array]:
    """Accelerations and delay, tilts of the rotors, and heights that imperfections stand for."""
    push = []
    for drone in faults.drones:
        (ex, ey), (lx, ly) = drone.thrust_tilt_rad, drone.level_tilt_rad
        push += [GRAVITY_M_S2 * (ey - ly), GRAVITY_M_S2 * (lx - ex)]
    return (
        np.array([*push, faults.setpoint_delay_s]),
        np.array([drone.thrust_tilt_rad for drone in faults.drones]).ravel(),
        np.array([drone.mocap_offset_m[2] for drone in faults.drones]),
    )


def _gains(overrides: Sequence[str]) -> dict[str, float]:
    chosen = find_scenario(SCENARIO, list(overrides)).autopilot.parameters
    names = ("MPC_XY_P", *(f"MPC_XY_VEL_{k}_ACC" for k in "PID"))
    return {name: chosen.get(name, PX4_PARAMETERS[name].default) for name in names}


def _models(
    real: Mapping[str, Sequence[CutStage]], sim: Recording, gains: Mapping[str, float]
) -> list[StageModel]:
    models = []
    for stage, cuts in real.items():
        flown = cut(sim, stage, FIRST_CYCLES_DROPPED.get(stage, 0))
        *equal, flown = of_one_length([*cuts, flown])
        for one in equal if flown.periodic else ():
            if abs(np.log(flown.period_s / one.period_s)) > 0.1:  # of stages given with --set
                raise ConfigError(
                    f"{one.recording.source}: a cycle of '{stage}' lasts {one.period_s:.2f} s, in "
                    f"scenario {SCENARIO} {flown.period_s:.2f} s: give its mission with --set"
                )
        models.append(stage_model(stage, equal, flown, gains))
    return models


def _estimate(
    models: Sequence[StageModel], factor: float, n: int
) -> tuple[Estimated, Estimated, Estimated]:
    prior = np.array([PRIOR_ACCELERATION_M_S2] * 2 * n + [PRIOR_DELAY_S])
    return (
        estimate([u for m in models for u in m.position_units(factor)], prior),
        estimate([u for m in models for u in m.attitude_units()], np.full(2 * n, PRIOR_TILT_RAD)),
        estimate([u for m in models for u in m.height_units()], np.full(n, PRIOR_HEIGHT_M)),
    )


def _moved(found: Estimated, about: Array) -> Estimated:
    """An estimate of what is still to be added, with what was flown."""
    return Estimated(
        found.value + about, found.low + about, found.high + about, found.correlation,
        found.units, found.left_m,
    )  # fmt: skip


def _factor(
    before: Sequence[StageModel], after: Sequence[StageModel], push: Array, factor: float
) -> float:
    """How much larger the simulated answer is than the linear one, over all drones and stages."""
    expected, seen = [], []
    for old, new in zip(before, after, strict=True):
        for i in range(len(old.late)):
            linear = np.tensordot(push[2 * i : 2 * i + 2], old.push[i], 1)
            expected.append(linear.ravel())
            moved = new.simulated[i] - old.simulated[i] - push[-1] * old.late[i]
            seen.append(moved.ravel())
    x, y = np.concatenate(expected), np.concatenate(seen)
    good = np.isfinite(x) & np.isfinite(y)
    found = float(x[good] @ y[good] / max(float(x[good] @ x[good]), 1e-12))
    return float(np.clip(found, 0.3, 2.0)) if np.any(x[good]) else factor


def _notes(push: Estimated, n: int) -> list[str]:
    names = names_of(n)
    prior = np.array([PRIOR_ACCELERATION_M_S2] * 2 * n + [PRIOR_DELAY_S])
    wide = push.deviation > UNKNOWN_SHARE * _NORMAL_90 * prior
    notes = [
        f"{name}: these recordings do not tell" for name, w in zip(names, wide, strict=True) if w
    ]
    if push.value[-1] < 0.0:
        notes.append(f"the delay came out as {push.value[-1]:.3f} s; taken as 0")
    return [*notes, *alike(names, push), *NOT_SEEN]


def write_fit(fit: DroneFit, folder: Path, command: str) -> None:
    """Write imperfections.yaml, which a scenario takes, and summary.json.

    Args:
        fit: What was identified.
        folder: Exists.
        command: What the user typed.
    """
    lines = [f"# {command}", *(f"# {line}" for line in summary_of(fit))]
    text = "\n".join(lines) + "\n" + to_yaml(fit.imperfections)
    (folder / "imperfections.yaml").write_text(text, encoding="utf-8")
    data: dict[str, Any] = {
        "command": command,
        "stages": dict(fit.stages),
        "factor": fit.factor,
        "confidence": CONFIDENCE,
        "rms_m": list(fit.push.left_m),
        "parameters": {
            name: {"value": float(v), "low": float(a), "high": float(b)}
            for name, v, a, b in _all(fit)
        },
        "correlation": fit.push.correlation.round(3).tolist(),
        "notes": list(fit.notes),
    }
    (folder / "summary.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _all(fit: DroneFit) -> list[tuple[str, float, float, float]]:
    """Name, value and interval of everything."""
    n = len(fit.imperfections.drones)
    pushes = [*(f"{name} m/s2" for name in names_of(n)[:-1]), "delay s"]
    leans = [f"drone_{i + 1} thrust_tilt_{axis} rad" for i in range(n) for axis in "xy"]
    heights = [f"drone_{i + 1} mocap_offset_z m" for i in range(n)]
    found: list[tuple[str, float, float, float]] = []
    for names, its in ((pushes, fit.push), (leans, fit.lean), (heights, fit.height)):
        for name, *row in zip(names, its.value, its.low, its.high, strict=True):
            value, low, high = map(float, row)
            found.append((name, value, low, high))
    return found


def summary_of(fit: DroneFit) -> list[str]:
    """The result for people: values with 90 % intervals."""
    stages = ", ".join(f"{stage} ({cycles} cycles)" for stage, cycles in fit.stages.items())
    before, after = (1e3 * rms for rms in fit.push.left_m)
    lines = [f"from {stages}; values with {100 * CONFIDENCE:.0f} % intervals"]
    lines += [f"{name}: {v:+.3f} [{low:+.3f}, {high:+.3f}]" for name, v, low, high in _all(fit)]
    lines.append(
        f"left of the last flight: {before:.0f} mm rms, {after:.0f} mm by the linear model"
    )
    return [*lines, *fit.notes]
