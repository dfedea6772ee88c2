"""Imperfections of real drones, identified from their recorded flights.

The paper's flight is simulated with ideal drones; what the recorded drones do else is explained by
an acceleration fixed in each drone and a common delay of set-points, to which the flight answers
linearly. Another flight with what was found corrects the linear model's factor and what is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import cont2discrete, lfilter

from musls_analysis.comparison.compare import phases, slices
from musls_analysis.comparison.cycles import CutStage, cut, of_one_length
from musls_analysis.estimation.estimator import (
    CONFIDENCE,
    UNKNOWN_SHARE,
    LinearFit,
    fitted_linear,
    units_of,
)
from musls_analysis.paper.flights import FIRST_CYCLES_DROPPED, SCENARIO, Mission, drones_of
from musls_analysis.recordings.recording import Recording, interpolated, resample
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_data, to_yaml
from musls_description.config.strict_yaml import parse_yaml
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import relative, yaw_of
from musls_sim.specs.imperfections import (
    LARGEST_OFFSET_M,
    LARGEST_TILT_RAD,
    DroneImperfections,
    Imperfections,
)

PRIOR_ACCELERATION_M_S2 = 0.5
PRIOR_DELAY_S = 0.1
PRIOR_TILT_RAD = 0.05
PRIOR_HEIGHT_M = 0.1

UNOBSERVABLE = (
    "thrust_scale and motor_spread leave no trace in poses as long as the rotors have thrust left: "
    "PX4's estimate of the hover thrust and its integrators take them up",
    "mocap_offset_m: only the height at which a drone is recorded above its set-point is told, be "
    "it its motion capture's or its estimator's; sideways it is not told from the formation",
    "setpoint_jitter_s acts as half of it in delay; command_latency_s is too short to be seen",
    "thrust_tilt_rad is told from a tilt of the recorded frame by nothing here: it is what the "
    "recorded attitudes lean by",
)
"""Imperfections that recorded poses cannot tell."""


@dataclass(frozen=True)
class DroneFit:
    """Identified imperfections.

    Attributes:
        push: Accelerations fixed in the drones, x and y of each, then the delay,
            (2 n + 1) [m/s2, s].
        lean: Tilts of the rotors, x and y of each, (2 n) [rad].
        height: Height of the point that each drone brings to its set-point, above the recorded one,
            (n,) [m].
        between: Standard deviations of the three from one recording to another, see
            `between_recordings`; of the delay also `from_day_to_day`.
        factor: Ratio of the linear response to the simulated one.
        stages: Stages used, with their real cycles.
        notes: Doubts, for people.
    """

    imperfections: Imperfections
    push: LinearFit
    lean: LinearFit
    height: LinearFit
    between: tuple[Array, Array, Array]
    factor: float
    stages: Mapping[str, int]
    notes: Sequence[str] = field(default_factory=tuple)


def identify(
    flown: Sequence[Mission],
    gains: Mapping[str, float],
    held_s: float,
    simulate: Callable[[Mission, Imperfections | None], Recording],
) -> DroneFit:
    """Identify the imperfections from recorded cycles and the missions that fly them again.

    `gains`: PX4's parameters; `held_s`: how long a set-point is held; `simulate` flies a mission,
    with ideal drones if given None.
    """

    def models(faults: Imperfections | None) -> list[StageModel]:
        return [m for mission in flown for m in _models(mission, simulate(mission, faults), gains)]

    first = models(None)
    fit = _estimate(first, 1.0)
    carry = heights_that_carry_over(first)
    faults = imperfections_of(fit[0].value, fit[1].value, fit[2].value * carry)
    again = models(faults)
    factor = _factor(first, again, fit[0].value)
    more = _estimate(again, factor)
    still = replace(more[2], value=np.where(carry, more[2].value, -_values_of(faults)[2]))
    between = between_recordings(again, factor, (*more[:2], still))
    between[0][-1] = np.hypot(between[0][-1], from_day_to_day(held_s))
    push, lean, height = (
        replace(more, value=more.value + about)
        for more, about in zip(more, _values_of(faults), strict=True)
    )
    carried = replace(height.uncertainty, std=height.std * carry)
    height = replace(height, value=height.value * carry, uncertainty=carried)
    drone_names = ", ".join(f"drone_{i + 1}" for i in np.flatnonzero(~carry))
    notes = [f"heights of {drone_names}: no help on recordings left out, taken as 0"] * bool(
        drone_names
    )
    notes += [*_notes(push), *(line for mission in flown for line in mission.remarks)]
    stages: dict[str, int] = {}
    for mission in flown:
        for stage, cuts in mission.real.items():
            stages[stage] = stages.get(stage, 0) + sum(len(c.cycles) for c in cuts)
    faults = imperfections_of(push.value, lean.value, height.value)
    return DroneFit(
        faults, push, lean, height, between, factor, stages, tuple(dict.fromkeys(notes))
    )


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
        level = _safe((x + left / STANDARD_GRAVITY_M_S2, y - ahead / STANDARD_GRAVITY_M_S2))
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


def _values_of(faults: Imperfections) -> tuple[Array, Array, Array]:
    """Accelerations and delay, tilts of the rotors, and heights that imperfections stand for."""
    push = []
    for drone in faults.drones:
        (ex, ey) = drone.thrust_tilt_rad
        (lx, ly) = drone.level_tilt_rad
        push += [STANDARD_GRAVITY_M_S2 * (ey - ly), STANDARD_GRAVITY_M_S2 * (lx - ex)]
    return (
        np.array([*push, faults.setpoint_delay_s]),
        np.array([drone.thrust_tilt_rad for drone in faults.drones]).ravel(),
        np.array([drone.mocap_offset_m[2] for drone in faults.drones]),
    )


def _models(mission: Mission, sim: Recording, gains: Mapping[str, float]) -> list[StageModel]:
    models = []
    for stage, cuts in mission.real.items():
        sim_cut = cut(sim, stage, FIRST_CYCLES_DROPPED.get(stage, 0))
        *equal, sim_cut = of_one_length([*cuts, sim_cut])
        for one in equal if sim_cut.periodic else ():
            if abs(np.log(sim_cut.period_s / one.period_s)) > 0.1:  # of stages given with --set
                raise ConfigError(
                    f"{one.recording.source}: a cycle of '{stage}' lasts {one.period_s:.2f} s, in "
                    f"scenario {SCENARIO} {sim_cut.period_s:.2f} s: give its mission with --set"
                )
        models.append(stage_model(stage, equal, sim_cut, gains))
    return models


def _prior(n: int) -> Array:
    return np.array([PRIOR_ACCELERATION_M_S2] * 2 * n + [PRIOR_DELAY_S])


def _estimate(models: Sequence[StageModel], factor: float) -> tuple[LinearFit, ...]:
    """Accelerations and delay, tilts of the rotors, heights."""
    n = len(models[0].late)

    def of_constants(kind: str, deviation: float) -> LinearFit:
        residuals = [(m.stage, getattr(m, kind)) for m in models]
        units = [u for stage, y in residuals for u in units_of(stage, -np.eye(y.shape[-1]), y)]
        return fitted_linear(units, np.full(residuals[0][1].shape[-1], deviation))

    pushes = [u for m in models for u in units_of(m.stage, m.sensitivity(factor), m.off)]
    return (
        fitted_linear(pushes, _prior(n)),
        of_constants("lean", PRIOR_TILT_RAD),
        of_constants("above", PRIOR_HEIGHT_M),
    )


def between_recordings(
    models: Sequence[StageModel], factor: float, about: Sequence[LinearFit]
) -> tuple[Array, Array, Array]:
    """Standard deviations of pushes and delay, tilts, heights from one recording to another.

    Each recording, a stage of a flight, is fitted alone and compared with the estimate for all.
    """
    alone = [_estimate([one], factor) for model in models for one in model.recordings()]
    push, lean, height = (
        excess_deviation(
            np.array([its.value - reference.value for its in each]),
            np.array([np.maximum(its.std, 1e-9) for its in each]),
        )
        for reference, *each in zip(about, *alone, strict=True)
    )
    return push, lean, height


def excess_deviation(off: Array, deviation: Array) -> Array:
    """Standard deviation of what k values (k, p) are off beyond their own deviations, (p,).

    By the method of moments, sqrt(max(0, (sum (off / s)^2 - k) / sum 1 / s^2)) (DerSimonian and
    Laird, Controlled Clinical Trials 7, 1986; here about a value that is known).
    """
    weight = deviation**-2.0
    excess = (np.sum(weight * off**2, axis=0) - len(off)) / weight.sum(axis=0)
    return np.asarray(np.sqrt(np.maximum(excess, 0.0)))


def from_day_to_day(held_s: float) -> float:
    """Standard deviation of the delay of one day's flight about that of another [s].

    Assumed: who plans, who sends and who records set-points have clocks of one period and, since
    their start that day, any phase. So a set-point waits for anything up to a period, evenly
    distributed, with a variance of held_s^2 / 12; the difference of two days has twice that.
    """
    return held_s / 6.0**0.5


def heights_that_carry_over(models: Sequence[StageModel]) -> NDArray[np.bool_]:
    """Drones whose height helps on recordings from which it was not learnt, (n,).

    Each recording, a stage of a flight, is left out once and predicted by the mean of the others. A
    height is kept if that lowers the mean square error by more than its standard error (Breiman et
    al., Classification and Regression Trees, 1984, section 3.4.3). One recording cannot tell.
    """
    every = [one.above for model in models for one in model.recordings()]
    if len(every) < 2:
        return np.ones(every[0].shape[-1], bool)
    means = np.array([np.nanmean(above, axis=(0, 1)) for above in every])
    others = (means.sum(axis=0) - means) / (len(every) - 1)
    gain = means**2 - (means - others) ** 2
    carry: NDArray[np.bool_] = gain.mean(axis=0) > gain.std(axis=0, ddof=1) / np.sqrt(len(every))
    return carry


def _factor(before: Sequence[StageModel], after: Sequence[StageModel], push: Array) -> float:
    """Ratio of the simulated answer to the linear one, over all drones and stages."""
    pushes = push[:-1].reshape(-1, 2)
    linear = [np.einsum("na,namk->nmk", pushes, old.push) for old in before]
    answers = [
        new.simulated - old.simulated - push[-1] * old.late
        for old, new in zip(before, after, strict=True)
    ]
    x, y = (np.concatenate([part.ravel() for part in parts]) for parts in (linear, answers))
    good = np.isfinite(x) & np.isfinite(y)
    slope = float(x[good] @ y[good] / max(float(x[good] @ x[good]), 1e-12))
    return float(np.clip(slope, 0.3, 2.0)) if np.any(x[good]) else 1.0


def _notes(push: LinearFit) -> list[str]:
    n = len(push.value) // 2
    names = names_of(n)
    wide = push.std > UNKNOWN_SHARE * _prior(n)
    notes = [
        f"{name}: these recordings do not tell" for name, w in zip(names, wide, strict=True) if w
    ]
    if push.value[-1] < 0.0:
        notes.append(f"the delay came out as {push.value[-1]:.3f} s; taken as 0")
    same = [[names[i] for i in group] for group in push.uncertainty.alike]
    return [*notes, *(f"hard to tell apart: {', '.join(group)}" for group in same), *UNOBSERVABLE]


def write_fit(fit: DroneFit, folder: Path, command: str, overrides: Sequence[str] = ()) -> None:
    """Write imperfections.yaml, which a scenario takes, posterior.yaml and summary.json.

    Worlds drawn from the posterior have `overrides`.
    """
    lines = [f"# {command}", *(f"# {line}" for line in summary_of(fit))]
    text = "\n".join(lines) + "\n" + to_yaml(fit.imperfections)
    (folder / "imperfections.yaml").write_text(text, encoding="utf-8")
    posterior_text = to_yaml(posterior(fit, overrides))
    (folder / "posterior.yaml").write_text(f"# {command}\n{posterior_text}", encoding="utf-8")
    data: dict[str, Any] = {
        "command": command,
        "stages": dict(fit.stages),
        "factor": fit.factor,
        "confidence": CONFIDENCE,
        "rms_m": list(fit.push.residual_rms),
        "parameters": {
            name: {"value": value, "low": low, "high": high} for name, value, low, high in _all(fit)
        },
        "correlation": fit.push.uncertainty.correlation.round(3).tolist(),
        "notes": list(fit.notes),
    }
    (folder / "summary.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def posterior(fit: DroneFit, overrides: Sequence[str]) -> dict[str, Any]:
    """Uncertainty of the drones in another flight, as `musls montecarlo --vary` takes it.

    Normal distributions about the imperfections: how well they are known, and how they differ from
    one recording to another. A rotor's tilt moves the tilt of the board with it, see
    `imperfections_of`. All worlds have `overrides`.
    """
    push, lean, height = (
        np.hypot(np.maximum(its.std, 1e-9), more)
        for its, more in zip((fit.push, fit.lean, fit.height), fit.between, strict=True)
    )
    parameters: dict[str, Any] = {}
    correlations = []
    for i, drone in enumerate(fit.imperfections.drones):
        key = f"imperfections.drones.{i}."
        for k in range(2):
            tilt = float(lean[2 * i + k])
            board = float(np.hypot(tilt, push[2 * i + 1 - k] / STANDARD_GRAVITY_M_S2))
            keys = [f"{key}thrust_tilt_rad.{k}", f"{key}level_tilt_rad.{k}"]
            means = drone.thrust_tilt_rad[k], drone.level_tilt_rad[k]
            for name, mean, std in zip(keys, means, (tilt, board), strict=True):
                parameters[name] = _normal(mean, std, LARGEST_TILT_RAD)
            correlations.append({"keys": keys, "value": round(min(tilt / board, 0.999), 4)})
        point = f"{key}mocap_offset_m.2"
        parameters[point] = _normal(drone.mocap_offset_m[2], height[i], LARGEST_OFFSET_M)
    delay = _normal(fit.imperfections.setpoint_delay_s, push[-1], 2.0)
    parameters["imperfections.setpoint_delay_s"] = delay | {"min": 0.0}
    settings: dict[str, Any] = dict(text.split("=", 1) for text in overrides)
    settings = {key: parse_yaml(value, key) for key, value in settings.items()}
    settings["imperfections"] = to_data(fit.imperfections)
    return {
        "parameters": parameters,
        "correlations": correlations,
        "set": settings,
        "keep": "bag",
    }


def _normal(mean: float, std: float, limit: float) -> dict[str, float]:
    return {"mean": mean + 0.0, "std": round(max(float(std), 1e-6), 6), "min": -limit, "max": limit}


def _all(fit: DroneFit) -> list[tuple[str, float, float, float]]:
    """Name, value and interval of every estimated number of a fit."""
    n = len(fit.imperfections.drones)
    pushes = [*(f"{name} m/s2" for name in names_of(n)[:-1]), "delay s"]
    leans = [f"drone_{i + 1} thrust_tilt_{axis} rad" for i in range(n) for axis in "xy"]
    heights = [f"drone_{i + 1} mocap_offset_z m" for i in range(n)]
    return [
        (name, float(value), float(low), float(high))
        for names, its in ((pushes, fit.push), (leans, fit.lean), (heights, fit.height))
        for name, value, low, high in zip(names, its.value, its.low, its.high, strict=True)
    ]


def summary_of(fit: DroneFit) -> list[str]:
    """The result for people: values with 90 % intervals."""
    stages = ", ".join(f"{stage} ({cycles} cycles)" for stage, cycles in fit.stages.items())
    before, after = (1e3 * rms for rms in fit.push.residual_rms)
    lines = [f"from {stages}; values with {100 * CONFIDENCE:.0f} % intervals"]
    lines += [f"{name}: {v:+.3f} [{low:+.3f}, {high:+.3f}]" for name, v, low, high in _all(fit)]
    lines.append(
        f"left of the last flight: {before:.0f} mm rms, {after:.0f} mm by the linear model"
    )
    return [*lines, *fit.notes]


# ---------- Recorded drones against a simulated flight, linear in what is wrong with each of them

GRID = 90
"""Phases of a cycle."""
STEP_S = 0.04
AIRBORNE_M = 0.15


@dataclass(frozen=True)
class StageModel:
    """One stage of all drones, in M phases of its cycles.

    Attributes:
        push: Displacement by accelerations of 1 m/s2 along each drone's x and y,
            (n, 2 axes, M, 2) [m].
        late: Displacement by a second of delay, (n, M, 2) [m].
        simulated: Mean cycle, (n, M, 2) [m].
        off: Recorded minus simulated, x and y of each drone, (cycles, M, 2 n) [m].
        above: Recorded minus simulated height, (cycles, M, n) [m].
        lean: Recorded relative to simulated attitude, about each body's x and y,
            (cycles, M, 2 n) [rad].
        recording: Number of the recording that a cycle is from, (cycles,).
    """

    stage: str
    push: Array
    late: Array
    simulated: Array
    off: Array
    above: Array
    lean: Array
    recording: Array

    def recordings(self) -> list[StageModel]:
        """Estimate of each recording alone."""
        rows = [self.recording == k for k in np.unique(self.recording)]
        return [
            replace(
                self,
                off=self.off[its],
                above=self.above[its],
                lean=self.lean[its],
                recording=self.recording[its],
            )
            for its in rows
        ]

    def sensitivity(self, factor: float) -> Array:
        """Derivatives of `off` by all pushes, drone by drone, then the delay, (M, 2 n, 2 n + 1)."""
        n, m = self.late.shape[:2]
        rows = np.zeros((m, n, 2, 2 * n + 1))
        for i in range(n):
            rows[:, i, :, 2 * i : 2 * i + 2] = factor * np.moveaxis(self.push[i], 0, -1)
            rows[:, i, :, -1] = self.late[i]
        return rows.reshape(m, 2 * n, -1)


def stage_model(
    stage: str, real: Sequence[CutStage], sim: CutStage, gains: Mapping[str, float]
) -> StageModel:
    """Compare a stage of real flights with a simulated one and work out its sensitivities."""
    drones = drones_of(real[0].recording.bodies)
    phase = phases(GRID, sim.periodic)
    push = []
    late = []
    simulated = []
    off = []
    above = []
    lean = []
    for drone in drones:
        its = slices([sim], drone, phase)
        poses = slices(real, drone, phase)
        mean = np.nanmean(its.position_enu_m, axis=0)
        push.append(_answer(sim, drone, phase, gains))
        late.append(-_rate(mean[:, :2], sim.period_s, sim.periodic))
        simulated.append(mean[:, :2])
        away = poses.position_enu_m - mean
        off.append(away[..., :2])
        above.append(away[..., 2:])
        middle = its.orientation_wxyz[len(its.orientation_wxyz) // 2]
        q = relative(poses.orientation_wxyz, middle)
        lean.append(2.0 * q[..., 1:3] * np.sign(q[..., :1]))
    return StageModel(
        stage,
        np.array(push),
        np.array(late),
        np.array(simulated),
        np.concatenate(off, axis=-1),
        np.concatenate(above, axis=-1),
        np.concatenate(lean, axis=-1),
        np.repeat(np.arange(len(real)), [len(one.cycles) for one in real]),
    )


def _answer(sim: CutStage, drone: str, phase: Array, gains: Mapping[str, float]) -> Array:
    """Mean displacement of a drone over the simulated cycles, (2 axes, M, 2)."""
    track = sim.recording.bodies[drone]
    time_s = np.arange(track.time_s[0], track.time_s[-1], STEP_S)
    pose = resample(track, time_s, np.inf)
    yaw = np.unwrap(yaw_of(pose.orientation_wxyz))
    height = pose.position_enu_m[:, 2]
    up = np.flatnonzero(height > height[0] + AIRBORNE_M)
    answer = displacements(time_s, yaw, gains, float(time_s[up[0] if len(up) else 0]))
    wanted_s = [c.start_s + phase * (c.end_s - c.start_s) for c in sim.cycles]
    return np.array(
        [np.mean([interpolated(t, time_s, axis) for t in wanted_s], axis=0) for axis in answer]
    )


def _rate(path: Array, period_s: float, periodic: bool) -> Array:
    """Velocity along a mean cycle, (M, 2) [m/s]."""
    if not periodic:
        return np.asarray(np.gradient(path, period_s / (len(path) - 1), axis=0))
    rate: Array = np.roll(path, -1, axis=0) - np.roll(path, 1, axis=0)
    return rate / (2.0 * period_s / len(path))


# ---------- Answer of a drone in PX4's position loop to a push that turns with it, linearised
#
# PX4's horizontal position and velocity loops on a double integrator give, from an acceleration b
# to the displacement,
#
#     s / ((1 + Kd) s^3 + Kv s^2 + (Kv Kx + Ki) s + Ki Kx)
#
# with MPC_XY_P = Kx and MPC_XY_VEL_P_ACC, I, D = Kv, Ki, Kd. The zero is the integrator, which
# takes up what stands still in the world. A tilt is fixed in the drone: b = R(yaw) b_body. Cables
# stiffen this by up to a third; the fit corrects the common factor by flying.


def displacements(
    time_s: Array, yaw_rad: Array, gains: Mapping[str, float], airborne_s: float
) -> Array:
    """Horizontal displacements by an acceleration of 1 m/s2 along the body's x and y axes.

    They are along the world's x and y, for each body axis, (2 axes, T, 2) [m per m/s2], at evenly
    spaced times (T,), for a drone's heading (T,) and PX4's parameters by name. Before it is
    airborne nothing moves.
    """
    kx = gains["MPC_XY_P"]
    kv = gains["MPC_XY_VEL_P_ACC"]
    ki = gains["MPC_XY_VEL_I_ACC"]
    kd = gains["MPC_XY_VEL_D_ACC"]
    step_s = float(time_s[1] - time_s[0])
    loop = ([1.0, 0.0], [1.0 + kd, kv, kv * kx + ki, ki * kx])
    forward, back, _ = cont2discrete(loop, step_s, "bilinear")
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    pushes = np.array([[c, s], [-s, c]]) * (time_s >= airborne_s)
    return np.moveaxis(lfilter(np.ravel(forward), back, pushes), 1, 2)
