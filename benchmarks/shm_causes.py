"""Signature of each candidate cause in the SHM: amplitude and phase of drones and load.

    .venv/bin/python benchmarks/shm_causes.py ../shared/flights ../shared/flights_2044

The paper's mission is flown with one cause more, drones as the first flight identifies them with
that cause, and the swing along y is compared with both recorded flights: mean amplitude of the
drones, and load over drones (complex, at the period of the set-point). A cause that is right moves
both to the recorded values; the error of the load alone cannot tell causes apart.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from musls_analysis.comparison.compare import CompareOptions, compare_stage
from musls_analysis.comparison.cycles import CutStage, cut
from musls_analysis.paper.flights import FIRST_CYCLES_DROPPED, drones_of, some_cycles
from musls_analysis.recordings.recording import LOAD
from musls_bringup import api
from musls_bringup.papers.reproduce import faults_override, fit_drones, paper
from musls_description.config.schema import to_data
from musls_description.numerics.rotations import rotate

STAGE = "shm"
BASE = [
    "system=x500_trio_swivel", "system.cables.links=5",
    "mission.stages.1.repetitions=1", "mission.stages.2.repetitions=4",
]  # fmt: skip
POINT_M = (-0.0285, 0.0067, -0.06)
"""Recorded point of the load in its frame."""


def rotors(**factors: float) -> str:
    """Override that scales numbers of the rotors."""
    data = to_data(paper(BASE).system.drones[0].rotors)
    scaled = [{k: v * factors[k] if k in factors else v for k, v in its.items()} for its in data]
    return f"system.drones.rotors={json.dumps(scaled)}"


def causes() -> dict[str, list[str]]:
    """Overrides by cause."""
    lag = {"time_constant_up_s": 4.8, "time_constant_down_s": 2.4}
    return {
        "as it is": [],
        "load: 0.5 N s/m": ["system.load.drag_n_s_m=[0.5, 0.5, 0.5]"],
        "joint damping x 20": ["system.cables.joint.damping_n_m_s_rad=0.04"],
        "rotor drag x 3 (0.75 N s/m)": [rotors(drag_n_s2_m_rad=3.0)],
        "drones: 0.37 N s/m, load: 0.35 N s/m": ["system=x500_trio_flown"],
        "no rotor drag": [rotors(drag_n_s2_m_rad=0.0)],
        "rotor lag 60 ms": [rotors(**lag)],
        "rotors 4 % weaker (battery)": [rotors(thrust_coefficient_n_s2=0.96)],
        "rotors 40 % stronger": [rotors(thrust_coefficient_n_s2=1.4)],
    }


def swing(stage: CutStage, body: str, point_m: Sequence[float] = (0.0, 0.0, 0.0)) -> complex:
    """Complex amplitude along y over the cycles [m], sine real."""
    track = stage.recording.bodies[body]
    moved = np.broadcast_to(point_m, track.position_enu_m.shape)
    y = (track.position_enu_m + rotate(track.orientation_wxyz, moved))[:, 1]
    first, last = stage.cycles[0].start_s, stage.cycles[-1].end_s
    inside = (track.time_s >= first) & (track.time_s < last) & np.isfinite(y)
    phase = 2.0 * np.pi * (track.time_s[inside] - first) / stage.period_s
    columns = np.column_stack([np.sin(phase), np.cos(phase), np.ones_like(phase)])
    sine, cosine, _ = np.linalg.lstsq(columns, y[inside], rcond=None)[0]
    return complex(sine, cosine)


def signature(stage: CutStage, point_m: Sequence[float] = (0.0, 0.0, 0.0)) -> str:
    """Cells of the table: drones' amplitude, load over drones."""
    drones = np.mean([swing(stage, name) for name in drones_of(stage.recording.bodies)])
    gain = swing(stage, LOAD, point_m) / drones
    return f"{1e3 * abs(drones):.0f} mm | {abs(gain):.2f}, {np.degrees(np.angle(gain)):.1f} deg"


def main() -> None:
    """Fly and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights", type=Path, nargs="+", help="the first one is fitted")
    flights = [some_cycles([place]) for place in parser.parse_args().flights]
    print("| | drones | load / drones | load's error, flight by flight |\n|---|---|---|---|")
    for real in flights:
        print(f"| {real[STAGE][0].recording.source} | {signature(real[STAGE][0])} | |")
    how = CompareOptions(offsets_m={LOAD: POINT_M})
    for name, overrides in causes().items():
        scenario = [*BASE, *overrides]
        faults = fit_drones(flights[0], scenario).imperfections
        flown = api.fly(paper([*scenario, faults_override(faults)]))
        sim = cut(flown, STAGE, FIRST_CYCLES_DROPPED[STAGE])
        errors = [compare_stage(STAGE, r[STAGE], [sim], how).errors[LOAD] for r in flights]
        mm = ", ".join(f"{1e3 * its.translational_error_m:.0f} mm" for its in errors)
        print(f"| {name} | {signature(sim, POINT_M)} | {mm} |", flush=True)


if __name__ == "__main__":
    main()
