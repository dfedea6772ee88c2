"""Recorded drones against a simulated flight, linear in what is wrong with each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import cont2discrete, lfilter
from scipy.stats import t as student

from musls_analysis.comparison.cycles import CutStage
from musls_analysis.comparison.mean_cycle import Slices, phases, slices
from musls_analysis.paper.turning_frame import drones_of
from musls_analysis.recordings.recording import DEFAULT_GAP_LIMIT_S, bridged_s, resample
from musls_description.rotations import relative, yaw_of

# ---------- Weighted least squares over cycles, with intervals by bootstrap.

ENOUGH_CYCLES = 5
PARTS = 6
"""Of a cycle, where a stage has fewer cycles than that."""
CONFIDENCE = 0.9
DRAWS = 400
ALIKE = 0.95
"""Correlation from which two parameters are said to be hard to tell apart."""
UNKNOWN_SHARE = 0.8
"""Of the prior deviation: a parameter that the data leave so wide they do not tell."""


@dataclass(frozen=True)
class Unit:
    """What is drawn again as a whole: a cycle, or a part of one.

    Attributes:
        group: Stage; units are drawn among those of their own.
        sensitivity: (rows, p).
        residual: Recorded minus simulated, (rows,).
    """

    group: str
    sensitivity: Array
    residual: Array


@dataclass(frozen=True)
class Estimated:
    """Parameters with their uncertainty.

    Attributes:
        value: (p,).
        low: Lower end of the 90 % interval, (p,).
        high: Upper end, (p,).
        correlation: (p, p).
        units: How many units there were.
        left_m: Root-mean-square residual before and after.
    """

    value: Array
    low: Array
    high: Array
    correlation: Array
    units: int
    left_m: tuple[float, float]

    @property
    def deviation(self) -> Array:
        """Half the interval, (p,)."""
        half: Array = 0.5 * (self.high - self.low)
        return half


def units_of(group: str, sensitivity: Array, residual: Array) -> list[Unit]:
    """Units of a stage's cycles; samples that are NaN do not count.

    Args:
        group: Stage.
        sensitivity: Of a cycle, (M, k, p): M phases, k coordinates.
        residual: Of all cycles, (cycles, M, k).
    """
    p = sensitivity.shape[-1]
    parts = 1 if len(residual) >= ENOUGH_CYCLES else PARTS
    found = []
    for cycle in residual:
        for part in np.array_split(np.arange(len(sensitivity)), parts):
            rows, y = sensitivity[part].reshape(-1, p), cycle[part].ravel()
            good = np.isfinite(y)
            if good.any():
                found.append(Unit(group, rows[good], y[good]))
    return found


def estimate(units: Sequence[Unit], prior: Array, draws: int = DRAWS, seed: int = 0) -> Estimated:
    """Estimate the parameters.

    Every stage has the same weight, however many cycles it has: what is wrong with the model is the
    same in all of them.

    Args:
        units: Of all stages.
        prior: Standard deviation of each parameter before anything is seen, (p,); it holds those
            that the data say nothing about.
        draws: Of the bootstrap.
        seed: Of the draws.
    """
    groups = [[u for u in units if u.group == g] for g in dict.fromkeys(u.group for u in units)]
    normal = [
        np.array([_normal(u) for u in group]) / sum(len(u.residual) for u in group)
        for group in groups
    ]
    count = sum(len(u.residual) for u in units)
    value, hold = np.zeros(len(prior)), np.zeros((len(prior), len(prior) + 1))
    for _ in range(2):  # the noise is what is left, known only after a first solution
        noise = np.mean(
            [np.mean(np.concatenate([_left(u, value) for u in g]) ** 2) for g in groups]
        )
        hold[:, :-1] = np.diag(noise / (np.asarray(prior) ** 2 * max(len(units), 1)))
        value = _solved(hold + sum(part.sum(axis=0) for part in normal))
    generator = np.random.default_rng(seed)
    drawn = hold
    for part in normal:
        k = len(part)
        counts = generator.multinomial(k, np.full(k, 1.0 / k), size=draws)
        drawn = drawn + np.tensordot(counts, part, 1)
    drawn = _solved(drawn)
    fewest = min(len(part) for part in normal)
    # Of few units the spread is found too small, by (n - 1) / n, and is itself uncertain.
    wide = student.ppf(0.5 + 0.5 * CONFIDENCE, max(fewest - 1, 1)) * np.sqrt(
        fewest / max(fewest - 1, 1)
    )
    sigma = drawn.std(axis=0)
    spread = np.maximum(sigma, 1e-12)
    correlation = np.cov(drawn.T).reshape(len(value), -1) / np.outer(spread, spread)
    after = sum(float(np.sum(_left(u, value) ** 2)) for u in units)
    before = sum(float(np.sum(u.residual**2)) for u in units)
    rms = float(np.sqrt(before / count)), float(np.sqrt(after / count))
    return Estimated(
        value, value - wide * sigma, value + wide * sigma, correlation, len(units), rms
    )


def _left(unit: Unit, value: Array) -> Array:
    """Residual that parameters leave, (rows,)."""
    found: Array = unit.residual - unit.sensitivity @ value
    return found


def _solved(equations: Array) -> Array:
    """Solutions of normal equations (..., p, p + 1), (..., p)."""
    return np.asarray(np.linalg.solve(equations[..., :-1], equations[..., -1:])[..., 0])


def _normal(unit: Unit) -> Array:
    """Matrix and right side of the normal equations, (p, p + 1)."""
    rows = unit.sensitivity
    found: Array = rows.T @ np.column_stack([rows, unit.residual])
    return found


def alike(names: Sequence[str], found: Estimated) -> list[str]:
    """Pairs of parameters whose effects are nearly the same, one line each."""
    lines = []
    for i in range(len(names)):
        for j in range(i):
            r = found.correlation[i, j]
            if abs(r) > ALIKE:
                lines.append(f"{names[j]} and {names[i]} are hard to tell apart ({r:+.2f})")
    return lines


# ---------- Answer of a drone in PX4's position loop to a push that turns with it, linearised.


def displacements(
    time_s: Array, yaw_rad: Array, gains: Mapping[str, float], airborne_s: float
) -> Array:
    """Horizontal displacements by an acceleration of 1 m/s2 along the body's x and y axes.

    Args:
        time_s: Evenly spaced times, (T,).
        yaw_rad: Heading of the drone, (T,).
        gains: PX4's parameters by name.
        airborne_s: When it took off; before that nothing moves.

    Returns:
        Along the world's x and y, for each body axis, (2 axes, T, 2) [m per m/s2].
    """
    kx, kv = gains["MPC_XY_P"], gains["MPC_XY_VEL_P_ACC"]
    ki, kd = gains["MPC_XY_VEL_I_ACC"], gains["MPC_XY_VEL_D_ACC"]
    step_s = float(time_s[1] - time_s[0])
    loop = ([1.0, 0.0], [1.0 + kd, kv, kv * kx + ki, ki * kx])
    forward, back, _ = cont2discrete(loop, step_s, "bilinear")
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    pushes = np.array([[c, s], [-s, c]]) * (time_s >= airborne_s)
    found: Array = np.moveaxis(lfilter(np.ravel(forward), back, pushes), 1, 2)
    return found


Array = NDArray[np.float64]

GRID = 90
"""Phases of a cycle."""
STEP_S = 0.04
AIRBORNE_M = 0.15


@dataclass(frozen=True)
class StageModel:
    """One stage of all drones.

    Attributes:
        stage: Name.
        push: Displacement by accelerations of 1 m/s2 along each drone's x and y,
            (n, 2 axes, M, 2) [m].
        late: Displacement by a second of delay, (n, M, 2) [m].
        simulated: Mean cycle, (n, M, 2) [m].
        off: Recorded minus simulated, (cycles, n, M, 2) [m].
        above: Recorded minus simulated height, (cycles, n, M, 1) [m].
        lean: Recorded relative to simulated attitude, about the body's x and y,
            (cycles, n, M, 2) [rad].
    """

    stage: str
    push: Array
    late: Array
    simulated: Array
    off: Array
    above: Array
    lean: Array

    def position_units(self, factor: float) -> list[Unit]:
        """Units whose parameters are all pushes, drone by drone, then the delay."""
        n, m = len(self.late), self.late.shape[1]
        rows = np.zeros((m, n, 2, 2 * n + 1))
        for i in range(n):
            rows[:, i, :, 2 * i : 2 * i + 2] = factor * np.moveaxis(self.push[i], 0, -1)
            rows[:, i, :, -1] = self.late[i]
        off = np.moveaxis(self.off, 1, 2)
        return units_of(self.stage, rows.reshape(m, 2 * n, -1), off.reshape(len(off), m, 2 * n))

    def height_units(self) -> list[Unit]:
        """Units whose parameters are the heights of the reported points, drone by drone."""
        n, m = len(self.late), self.late.shape[1]
        above = np.moveaxis(self.above, 1, 2).reshape(len(self.above), m, n)
        return units_of(self.stage, np.tile(-np.eye(n), (m, 1, 1)), above)

    def attitude_units(self) -> list[Unit]:
        """Units whose parameters are the tilts of the rotors, drone by drone."""
        n, m = len(self.late), self.late.shape[1]
        lean = np.moveaxis(self.lean, 1, 2).reshape(len(self.lean), m, 2 * n)
        return units_of(self.stage, np.tile(-np.eye(2 * n), (m, 1, 1)), lean)


def stage_model(
    stage: str, real: Sequence[CutStage], sim: CutStage, gains: Mapping[str, float]
) -> StageModel:
    """Compare a stage and work out its sensitivities.

    Args:
        stage: Name.
        real: The same stage of one or more real flights.
        sim: Of the simulated one.
        gains: PX4's parameters by name.
    """
    drones = drones_of(real[0].recording.bodies)
    phase = phases(GRID, sim.periodic)
    cycles = [(c.start_s, c.end_s) for c in sim.cycles]
    gap_s = bridged_s(one.recording.time_s for one in real)
    push, late, simulated, off, above, lean = [], [], [], [], [], []
    for drone in drones:
        its = slices([sim], drone, phase, DEFAULT_GAP_LIMIT_S)
        recorded = slices(real, drone, phase, gap_s)
        mean = np.nanmean(its.position_enu_m[..., :2], axis=0)
        answer = _answer(sim, drone, gains)
        push.append([_mean_over(*answer, axis, cycles, phase) for axis in range(2)])
        late.append(-_rate(mean, sim.period_s, sim.periodic))
        simulated.append(mean)
        off.append(recorded.position_enu_m[..., :2] - mean)
        height = np.nanmean(its.position_enu_m[..., 2:], axis=0)
        above.append(recorded.position_enu_m[..., 2:] - height)
        lean.append(_lean(its.orientation_wxyz[len(its.orientation_wxyz) // 2], recorded))
    return StageModel(
        stage,
        np.array(push),
        np.array(late),
        np.array(simulated),
        np.stack(off, axis=1),
        np.stack(above, axis=1),
        np.stack(lean, axis=1),
    )


def _answer(sim: CutStage, drone: str, gains: Mapping[str, float]) -> tuple[Array, Array]:
    """Times (T,) and displacements (2 axes, T, 2) of a drone over the whole flight."""
    track = sim.recording.bodies[drone]
    time_s = np.arange(track.time_s[0], track.time_s[-1], STEP_S)
    pose = resample(track, time_s, np.inf)
    yaw = np.unwrap(yaw_of(pose.orientation_wxyz))
    height = pose.position_enu_m[:, 2]
    up = np.flatnonzero(height > height[0] + AIRBORNE_M)
    start_s = float(time_s[up[0]]) if len(up) else float(time_s[0])
    return time_s, displacements(time_s, yaw, gains, start_s)


def _mean_over(
    time_s: Array,
    answer: Array,
    axis: int,
    cycles: Sequence[tuple[float, float]],
    phase: Array,
) -> Array:
    """Mean over cycles on the phases, (M, 2)."""
    found = [
        [np.interp(start + phase * (end - start), time_s, answer[axis, :, k]) for k in range(2)]
        for start, end in cycles
    ]
    mean: Array = np.mean(found, axis=0).T
    return mean


def _rate(path: Array, period_s: float, periodic: bool) -> Array:
    """Velocity along a mean cycle, (M, 2) [m/s]."""
    if periodic:
        around = np.concatenate([path[-1:], path, path[:1]])
        rate: Array = (around[2:] - around[:-2]) / (2.0 * period_s / len(path))
        return rate
    return np.asarray(np.gradient(path, period_s / (len(path) - 1), axis=0))


def _lean(simulated: Array, recorded: Slices) -> Array:
    """Small rotation from simulated to recorded attitudes, body x and y, (cycles, M, 2)."""
    q = relative(recorded.orientation_wxyz, simulated)
    lean: Array = 2.0 * q[..., 1:3] * np.sign(q[..., :1])
    return lean
