"""Attitude of the load in the engagement: what each candidate cause is worth, on two flights.

    .venv/bin/python benchmarks/engagement_causes.py ../shared/flights ../shared/flights_2044

The paper's mission is flown with one cause more from row to row, then with others on top. Drones
are those that the other flight tells without these causes, so nothing of a flight is known to its
prediction. Errors of the load: translational [mm] / geodesic [deg].
"""

from __future__ import annotations

import argparse
from pathlib import Path

from musls_analysis.comparison.compare import CompareOptions, compare_stage
from musls_analysis.comparison.cycles import cut
from musls_analysis.paper.flights import FIRST_CYCLES_DROPPED, one_mission, some_cycles
from musls_analysis.recordings.recording import LOAD
from musls_bringup import api
from musls_bringup.reproduce import faults_override, fit_drones, paper

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


def main() -> None:
    """Fly and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights", type=Path, nargs=2)
    places = parser.parse_args().flights
    first, second = (some_cycles([place]) for place in places)
    how = CompareOptions(offsets_m={LOAD: POINT_M})
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
