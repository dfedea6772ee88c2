"""The load in the engagement: what each candidate cause is worth, on two flights.

    .venv/bin/python benchmarks/engagement_causes.py ../shared/flights ../shared/flights_2044

The paper's mission is flown with one cause more from row to row, then with others on top. Drones
are those that the other flight tells without these causes, so nothing of a flight is known to its
prediction. Errors of the load: translational [mm] / geodesic [deg]. With --parts the error of its
place is split instead, see `parts`, beside what one recorded flight is off the other; then parts
that belong to the day are given to the prediction.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from musls_analysis.comparison.compare import (
    CompareOptions,
    MeanCycle,
    StageComparison,
    compare_stage,
)
from musls_analysis.comparison.cycles import CutStage, cut
from musls_analysis.paper.flights import FIRST_CYCLES_DROPPED, one_mission, some_cycles
from musls_analysis.recordings.recording import LOAD
from musls_bringup import api
from musls_bringup.papers.reproduce import faults_override, fit_drones, paper
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import rotate

POINT_M = (-0.0285, 0.0067, -0.06)
"""Recorded point of the load in its frame."""

INERTIA = "system.load.inertia_kg_m2"
TABLE_I = (
    f"{INERTIA}=[[0.0101956, 0.0003278, -0.000108], [0.0003278, 0.013750, -0.0003215], "
    "[-0.000108, -0.0003215, 0.020997]]"
)
ALL_AXES = (
    f"{INERTIA}=[[0.0111132, 0.0003573, -0.0001177], [0.0003573, 0.0149875, -0.0003504], "
    "[-0.0001177, -0.0003504, 0.0228867]]"
)
TWIST = "system.cables.twist_damping_n_m_s_rad={}"
FRICTION = "system.ground_friction={}"

BASE = ["system=x500_trio_flown", "system.cables.links=5"]
ONE_MORE = {
    "air drag alone": [TWIST.format(0.002), TABLE_I, FRICTION.format(0.8)],
    "damping of twist 0.0009 instead of 0.002 N m s/rad": [TABLE_I, FRICTION.format(0.8)],
    "yaw inertia of the load 1.09 times Table I's": [FRICTION.format(0.8)],
    "ground friction 0.3 instead of 0.8": [FRICTION.format(0.3)],
    "0.1": [],
}
OTHERS = {
    "ground friction 0.05": [FRICTION.format(0.05)],
    "inertia 1.09 times Table I's about all axes": [ALL_AXES],
    "joint damping 0.0002 instead of 0.002 N m s/rad": [
        "system.cables.joint.damping_n_m_s_rad=0.0002"
    ],
    "cable 2 20 mm shorter": ["system.cables.1.length_m=2.4"],
    "load stands on 12 x 12 cm": ["system.load.collision.size_m=[0.12, 0.12, 0.1]"],
    "elastic cables": ["cable_model=elastic"],
}

STAGE, DRONES = "engage", ("drone_1", "drone_2", "drone_3")
WINDOWS_S = ((0.0, 0.75), (0.75, 3.0), (3.0, 7.0), (7.0, 16.0), (16.0, 22.5))
"""On the ground, lift-off, the swing after it, set-point turning back, and after that."""
FROM_S, HANGS_S, SLOW_S = 1.0, 7.0, 3.0
"""In the air; hardly rising any more; width of the line through errors that leaves the swing."""


def parts(compared: StageComparison) -> dict[str, Array]:
    """Error of the load's place and what it consists of, each (rows, 3) [mm].

    Drones that are off by e_i move the load on taut cables along u_i by U^-1 (u_i . e_i), U the
    rows u_i. That takes the drones' mean place as it is, and their heights and places against one
    another through the pyramid of cables. The rest is how the load sits in the formation.
    """
    real, sim = compared.real, compared.sim
    recorded = np.array([real[name].position_enu_m for name in DRONES])
    off = 1e3 * (np.array([sim[name].position_enu_m for name in DRONES]) - recorded)
    along = recorded - real[LOAD].position_enu_m
    along /= np.linalg.norm(along, axis=2, keepdims=True)

    def moved(drones: Array) -> Array:
        rise = np.sum(along * drones, axis=2).T[..., None]
        return np.linalg.solve(np.moveaxis(along, 0, 1), rise)[..., 0]

    mean = off.mean(axis=0)
    across, up = np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    found = {
        "drones' mean place, across": mean * across,
        "drones' mean height": mean * up,
        "drones against one another, across": moved((off - mean) * across),
        "drones' heights against one another": moved((off - mean) * up),
    }
    load = 1e3 * (sim[LOAD].position_enu_m - real[LOAD].position_enu_m)
    return {"load": load, **found, "load in the formation": load - sum(found.values())}


def split(compared: StageComparison) -> dict[str, str]:
    """Cells of the table of parts: by time, then slow part and swing, and each slow part's."""
    time_s = compared.phase * compared.period_s
    its = parts(compared)
    known = np.isfinite(its["load"]).all(axis=1)
    cells = {}
    for begin, end in WINDOWS_S:
        then = known & (time_s >= begin) & (time_s < end)
        if then.any():
            high = its["drones' mean height"][then, 2].mean()
            cells[f"{begin:g} to {end:g} s"] = f"{_mean(its['load'][then]):.0f}; {high:.0f}"
        else:
            cells[f"{begin:g} to {end:g} s"] = "-"
    flown = known & (time_s > FROM_S)
    time_s = time_s[flown]
    smooth = smoothing(time_s)
    slow = {name: smooth @ x[flown] for name, x in its.items()}
    load = slow.pop("load")
    cells["load, in the air"] = f"{_mean(its['load'][flown]):.1f}"
    cells["swing"] = f"{_mean(its['load'][flown] - load):.1f}"
    cells["without swing"] = f"{_mean(load):.1f}"
    for name, x in slow.items():
        cells[f"- {name}"] = f"{_mean(x):.1f} ({_mean(load - x):.1f})"
    return cells


def smoothing(time_s: Array) -> Array:
    """Matrix (rows, rows): what a line through the rows of SLOW_S about each row has there."""
    weights = np.zeros((len(time_s), len(time_s)))
    for row, later_s in zip(weights, time_s - time_s[:, None], strict=True):
        near = np.abs(later_s) <= 0.5 * SLOW_S
        line = np.column_stack([np.ones(near.sum()), later_s[near]])
        row[near] = np.linalg.pinv(line)[0]
    return weights


def turning_point(load: MeanCycle, time_s: Array) -> Array:
    """Followed point x, y from the axis about which the load swings in yaw [mm].

    A point beside that axis swings with the yaw, much faster than anything else moves.
    """
    used = (time_s > FROM_S) & np.isfinite(load.position_enu_m).all(axis=1)
    fast = np.eye(used.sum()) - smoothing(time_s[used])
    q = load.orientation_wxyz[used]
    turned = [rotate(q, np.tile(axis, (len(q), 1))) for axis in np.eye(3)[:2]]
    columns = np.column_stack([(fast @ x)[:, :2].ravel() for x in turned])
    swing = (fast @ load.position_enu_m[used])[:, :2].ravel()
    return 1e3 * np.linalg.lstsq(columns, swing, rcond=None)[0]


def _mean(places: Array) -> float:
    return float(np.linalg.norm(places, axis=1).mean())


def heights(compared: StageComparison) -> list[str]:
    """Overrides that give each drone the height against the others that it had, hanging."""
    late = compared.phase * compared.period_s > HANGS_S
    z = [
        np.nanmean((compared.real[n].position_enu_m - compared.sim[n].position_enu_m)[late, 2])
        for n in DRONES
    ]
    return [
        f"imperfections.drones.{i}.mocap_offset_m=[0, 0, {np.mean(z) - its:.4f}]"
        for i, its in enumerate(z)
    ]


def print_parts(
    worlds: Mapping[str, tuple[Mapping[str, Sequence[CutStage]], list[str], list[str]]],
    how: CompareOptions,
) -> None:
    """Table of parts by flight, and of errors where parts of the day are known."""
    table, plain, points = {}, [], []
    rows = {day: "" for day in ("nothing", "delay", "heights", "delay, heights")}
    for name, (real, overrides, delay) in worlds.items():
        cuts = _flown(real, overrides)
        compared = compare_stage(STAGE, real[STAGE], [cuts[STAGE]], how)
        table[name] = split(compared)
        plain.append(cuts[STAGE])
        time_s = compared.phase * compared.period_s
        points.append([turning_point(its[LOAD], time_s) for its in (compared.real, compared.sim)])
        high = heights(compared)
        for day, more in zip(rows, ([], delay, high, [*delay, *high]), strict=True):
            cuts = _flown(real, [*overrides, *more]) if more else cuts
            errors = [compare_stage(k, its, [cuts[k]], how).errors[LOAD] for k, its in real.items()]
            rows[day] += ", ".join(f"{1e3 * e.translational_error_m:.1f}" for e in errors) + " | "
    one, other = (real[STAGE] for real, *_ in worlds.values())
    table["mean of both"] = split(compare_stage(STAGE, [*one, *other], plain, how))
    as_they_are = CompareOptions()
    table["one recorded from the other"] = split(compare_stage(STAGE, one, other, as_they_are))
    print("| mm |", " | ".join(table), "|\n|---" + "|---" * len(table) + "|")
    for row in next(iter(table.values())):
        print(f"| {row} |", " | ".join(cells[row] for cells in table.values()), "|")
    for name, told in zip(worlds, points, strict=True):
        recorded, simulated = (f"{x:.0f}, {y:.0f}" for x, y in told)
        print(f"\nrecorded point of the load told by its swing in yaw, {name}: x, y {recorded} mm")
        print(f"(the same of the simulated flight: {simulated} mm)")
    stages = ", ".join(next(iter(worlds.values()))[0])
    print(f"\n| known of the day ({stages}) |", " | ".join(worlds), "|")
    print("|---" * (1 + len(worlds)) + "|")
    for day, cells in rows.items():
        print(f"| {day} | {cells.strip()}")


def _flown(real: Mapping[str, Sequence[CutStage]], overrides: list[str]) -> dict[str, CutStage]:
    sim = api.fly(paper([*BASE, *overrides]))
    return {stage: cut(sim, stage, FIRST_CYCLES_DROPPED[stage]) for stage in real}


def main() -> None:
    """Fly and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights", type=Path, nargs=2)
    parser.add_argument("--parts", action="store_true", help="split the error of the place")
    options = parser.parse_args()
    places = options.flights
    first, second = (some_cycles([place]) for place in places)
    how = CompareOptions(offsets_m={LOAD: POINT_M})
    if options.parts:
        found = [fit_drones(real, BASE).imperfections for real in (first, second)]
        print_parts(
            {
                place.name: (
                    real,
                    [*one_mission(real, paper(BASE), BASE).overrides, faults_override(told)],
                    [f"imperfections.setpoint_delay_s={own.setpoint_delay_s}"],
                )
                for place, real, own, told in zip(
                    places[::-1], (second, first), found[::-1], found, strict=True
                )
            },
            how,
        )
        return
    known = [*BASE, *ONE_MORE["air drag alone"]]
    worlds = []
    for real, other in ((second, first), (first, second)):
        flown = one_mission(real, paper(known), known)
        faults = fit_drones(other, known).imperfections
        worlds.append((flown, [*flown.overrides, faults_override(faults)]))
    heads = [
        f"{place.name}, {stage}"
        for place, (flown, _) in zip(places[::-1], worlds, strict=True)
        for stage in flown.real
    ]
    print("| |", " | ".join(heads), "|")
    print("|---" * (1 + len(heads)) + "|")
    for name, changes in {**ONE_MORE, **OTHERS}.items():
        cells = []
        for flown, overrides in worlds:
            sim = api.fly(paper([*BASE, *changes, *overrides]))
            for stage, real in flown.real.items():
                one = cut(sim, stage, FIRST_CYCLES_DROPPED[stage])
                load = compare_stage(stage, real, [one], how).errors[LOAD]
                cells.append(
                    f"{1e3 * load.translational_error_m:.1f} / {load.geodesic_error_deg:.1f}"
                )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
