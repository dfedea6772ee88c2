"""Recorded drones against a simulated flight, linear in what is wrong with each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_analysis.comparison.cycles import CutStage
from musls_analysis.comparison.mean_cycle import Slices, phases, slices
from musls_analysis.imperfections.estimate import Unit, units_of
from musls_analysis.imperfections.response import displacements
from musls_analysis.imperfections.turning_frame import drones_of
from musls_analysis.recordings.recording import DEFAULT_GAP_LIMIT_S, bridged_s, resample
from musls_description.rotations import relative, yaw_of

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
