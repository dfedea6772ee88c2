"""Recorded points on the bodies and lengths of the cables, fitted to taut cables alone.

    .venv/bin/python benchmarks/load_point.py ../shared/flights

While the cables are taut the distance between their ends is their length. Where the recorded point
of the load is, how high those of the drones are above their centres of mass (one height for all),
and how the cables' lengths differ is found from that by least squares; the mean length is taken as
described, because it trades against the heights. No flight is simulated.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from musls_analysis.comparison.cycles import CutStage
from musls_analysis.paper.flights import some_cycles
from musls_analysis.recordings.recording import LOAD
from musls_bringup.shipped import find_scenario
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import rotate
from musls_description.system.slung_system import SlungLoadSystem

LIFTED_S = 3.0
"""After the step of an engagement; before, cables are slack."""
OUTLIER_M = 0.005
"""Rows that are further off count less: some are stale."""


def main() -> None:
    """Fit each stage and all together, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights", type=Path)
    parser.add_argument("--system", default="x500_trio")
    options = parser.parse_args()
    system = find_scenario("engage", [f"system={options.system}"]).system
    stages = some_cycles([options.flights])
    taut = {stage: [_rows(one, stage) for one in its] for stage, its in stages.items()}
    print("| rows of | load's point, m | drones' height, m | lengths - mean, mm | rows | rms, mm |")
    print("|---|---|---|---|---|---|")
    for name, rows in (*taut.items(), ("all", [r for its in taut.values() for r in its])):
        print(f"| {name} | {_fitted(rows, system)} |")


Rows = tuple[Array, Array, Array, Array]
"""Load's positions (T, 3), orientations (T, 4), and those of the drones (n, T, 3), (n, T, 4)."""


def _rows(one: CutStage, stage: str) -> Rows:
    bodies = one.recording.bodies
    load = bodies[LOAD]
    kept = load.time_s > load.time_s[0] + LIFTED_S * (stage == "engage")
    drones = [bodies[f"drone_{i}"] for i in range(1, len(bodies))]
    return (
        load.position_enu_m[kept],
        load.orientation_wxyz[kept],
        np.array([drone.position_enu_m[kept] for drone in drones]),
        np.array([drone.orientation_wxyz[kept] for drone in drones]),
    )


def _fitted(rows: Sequence[Rows], system: SlungLoadSystem) -> str:
    at_load_m = np.array(system.load.cable_attachments_m)
    at_drones_m = np.array([drone.cable_attachment_m for drone in system.drones])
    lengths_m = np.array([cable.length_m for cable in system.cables])
    n = len(lengths_m)

    def apart(found: Array) -> Array:
        point, height, longer = found[:3], np.array([0.0, 0.0, found[3]]), found[4:]
        longer = np.append(longer, -longer.sum())
        return np.concatenate([
            np.linalg.norm(
                places[i] + rotate(turns[i], _each(at_drones_m[i] - height, place))
                - place - rotate(turn, _each(at_load_m[i] - point, place)),
                axis=1,
            )
            - lengths_m[i] - longer[i]
            for place, turn, places, turns in rows
            for i in range(n)
        ])  # fmt: skip

    found = least_squares(apart, np.zeros(3 + n), loss="soft_l1", f_scale=OUTLIER_M).x
    longer_mm = 1e3 * np.append(found[4:], -found[4:].sum())
    cells = (
        ", ".join(f"{x:.3f}" for x in found[:3]),
        f"{found[3]:.3f}",
        ", ".join(f"{mm:+.0f}" for mm in longer_mm),
        f"{len(apart(found)) // n}",
        f"{1e3 * np.sqrt(np.mean(apart(found) ** 2)):.1f}",
    )
    return " | ".join(cells)


def _each(vector: Sequence[float] | Array, like: Array) -> Array:
    """The same vector (T, 3) for each row."""
    return np.broadcast_to(np.asarray(vector, float), (len(like), 3))


if __name__ == "__main__":
    main()
