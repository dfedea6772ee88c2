"""Places of the drones in axes that turn with their set-points: outward, forward, up.

In world axes a formation that turns hides what is fixed in a drone; averaged over drones, one hides
the others. Here each drone has its own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from musls_analysis.comparison.compare import StageComparison
from musls_analysis.comparison.cycles import CutStage
from musls_analysis.paper.flights import drones_of, turned_back
from musls_analysis.recordings.recording import Array


def turning_frame(drones_enu_m: Array, setpoints_enu_m: Array) -> Array:
    """Places (n, M, 3) of drones about their centroid, in axes that turn with their set-points.

    They are outward, forward (counter-clockwise), up [m].
    """
    own = drones_enu_m - drones_enu_m.mean(axis=0)
    wanted = setpoints_enu_m - setpoints_enu_m.mean(axis=0)
    return turned_back(own, np.arctan2(wanted[..., 1], wanted[..., 0]))


@dataclass(frozen=True)
class Turning:
    """Places of the drones of one stage in the turning frame: outward, forward, up [m].

    Attributes:
        drones: Names, in the order of the rows.
        phase: (M,).
        real: Recorded mean cycle, (n, M, 3).
        sim: Simulated mean cycle, (n, M, 3).
    """

    stage: str
    drones: tuple[str, ...]
    phase: Array
    real: Array
    sim: Array


def turning(comparison: StageComparison, sim: CutStage) -> Turning:
    """The drones of a compared stage in the turning frame of one of its simulated flights."""
    drones = drones_of(comparison.sim)
    cycle = sim.cycles[-1]
    time_s = cycle.start_s + comparison.phase * (cycle.end_s - cycle.start_s)
    wanted = np.array(
        [sim.recording.setpoints[drone].held_at(time_s).position_enu_m for drone in drones]
    )
    real, flown = (
        turning_frame(np.array([side[drone].position_enu_m for drone in drones]), wanted)
        for side in (comparison.real, comparison.sim)
    )
    return Turning(comparison.stage, tuple(drones), comparison.phase, real, flown)


def turning_rows(found: Turning) -> list[str]:
    """Rows of a Markdown table: recorded, simulated and their difference [mm]."""
    lines = []
    for i, drone in enumerate(found.drones):
        both = [1e3 * np.nanmean(side[i], axis=0) for side in (found.real, found.sim)]
        cells = [", ".join(f"{v:.0f}" for v in row) for row in (*both, both[1] - both[0])]
        lines.append(f"| {found.stage}, {drone.replace('_', ' ')} | {' | '.join(cells)} |")
    return lines
