"""Step times of the same system in Gazebo's physics and in the embedded plant, on one machine.

Gazebo's DART plugin (Debian's ignition-physics5, without Gazebo's server, rendering and sensors)
steps the SDF file; the embedded plant flies the system with rotors and cable tensions; bare DART
steps the plant's skeleton alone. Rounds of all three follow each other, so that a noisy machine
slows all.

    .venv/bin/python benchmarks/gazebo_physics.py
    .venv/bin/python benchmarks/gazebo_physics.py --links 15 --rounds 20
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT / "src" / package / "test") for package in ("musls_description", "musls_sim")
]

from gazebo_engine import fly, rotor_wrenches  # noqa: E402
from plant_helpers import advance, hovering_plant, with_cables, without_drag  # noqa: E402

from musls_description.system.system_files import load_system  # noqa: E402
from musls_sim.plants.dart.skeleton import bare_step_us  # noqa: E402

STEP_S, STEPS = 0.002, 200  # short enough for 100 links


def measure(links: int, rounds: int) -> dict[str, np.ndarray]:
    """Time Gazebo, plant and bare DART in turns, hovering; median step of each round [us]."""
    system = without_drag(with_cables(load_system("x500_trio"), links=links))
    times: dict[str, list[float]] = {"gazebo": [], "plant": [], "bare": []}
    for _ in range(rounds):
        plant, trim, rest = hovering_plant(system, physics_step_s=STEP_S, ground_height_enu_m=None)
        pushes = rotor_wrenches(system, lambda _, trim=trim: trim, trim, STEP_S, STEPS)
        gazebo = fly(system, rest.configuration, pushes, STEP_S, STEPS)
        times["gazebo"].append(np.median(gazebo.step_us))
        advance(plant, trim)  # compiles
        durations = []
        for _ in range(STEPS // plant.substeps):
            begin = perf_counter()
            advance(plant, trim)
            durations.append((perf_counter() - begin) / plant.substeps)
        times["plant"].append(1e6 * np.median(durations))
        mechanism = (plant.system, plant.tree, plant.positions)
        times["bare"].append(bare_step_us(*mechanism, STEP_S, STEPS // 5, batch=5))
    return {key: np.array(values) for key, values in times.items()}


def main() -> None:
    """Print a table over the number of links."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", type=int, nargs="*", default=[5, 15, 29, 60, 100])
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    print(f"x500_trio, one step of {1e3 * STEP_S:g} ms; medians [10 %, 90 %] over", given.rounds)
    print("rounds of the median of", STEPS, "steps; us")
    print(
        "links  Gazebo's physics      embedded plant        bare DART             Gazebo/plant"
        "        Gazebo/bare"
    )
    for links in given.links:
        t = measure(links, given.rounds)
        cells = [
            *(_spread(t[key], 1) for key in ("gazebo", "plant", "bare")),
            _spread(t["gazebo"] / t["plant"], 2),
            _spread(t["gazebo"] / t["bare"], 2),
        ]
        print(f"{links:5d}  " + "".join(f"{c:22s}" for c in cells[:3]) + "  ".join(cells[3:]))


def _spread(values: np.ndarray, digits: int) -> str:
    low, middle, high = np.percentile(values, [10, 50, 90])
    return f"{middle:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


if __name__ == "__main__":
    main()
