"""Cost of flying on massless cables against the bare DART step, in one process.

The whole loop of the paper's circle in flight on massless cables (mission, controller, autopilot
at 250 Hz, motion-capture estimate, plant with events) and its plant alone are timed in turns with
the bare DART step of the paper's trio with 15 links per cable, so that a noisy machine slows all.
Nothing is recorded. Then the plant alone with other numbers of drones.

    .venv/bin/python benchmarks/massless.py
    .venv/bin/python benchmarks/massless.py --controller formation --rounds 100
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time

import numpy as np
from elastic import TURN, bare_dart, circle_of

from musls_bringup.shipped import SCENARIOS
from musls_description.hanging.equilibrium import hanging_equilibrium, on_massless_cables
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import Motion, PlantInputs
from musls_sim.plants.massless.plant import MasslessPlant
from musls_sim.plants.rigid_links.dart_plant import DartPlant
from musls_sim.plants.trim import trim_speeds_rad_s
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session


def loop(rounds: int, controller: str, dart: DartPlant) -> dict[str, np.ndarray]:
    """Times of the loop, of its plant and of the bare step, in turns; us per 4 ms, (rounds,)."""
    overrides = ["cable_model=massless", "start=air", f"controller={controller}"]
    times: dict[str, list[float]] = {"loop": [], "plant in it": [], "bare": []}
    with Session(load_scenario(SCENARIOS / "circle.yaml", overrides)) as session:
        session.advance(2 * TURN)
        for _ in range(rounds):
            before, begin = session.plant_s, process_time()
            session.advance(TURN)
            times["loop"].append((process_time() - begin) / TURN)
            times["plant in it"].append((session.plant_s - before) / TURN)
            times["bare"].append(dart.bare_step_us(repetitions=15) * 1e-6)
    return {key: 1e6 * np.array(values) for key, values in times.items()}


def plant_alone(name: str, rounds: int, dart: DartPlant) -> dict[str, np.ndarray]:
    """Time of a period of the plant with a swinging load, and of the bare step."""
    system = load_system(name)
    chains = hanging_equilibrium(system, circle_of(system.n_drones))
    rest = on_massless_cables(chains, STANDARD_GRAVITY_M_S2)
    motion = Motion.at_rest(*rest.bodies)
    speeds = trim_speeds_rad_s(system, rest)
    plant = MasslessPlant(system, motion, rotor_speed_rad_s=speeds)
    begin_state = plant.memory.copy()
    inputs = PlantInputs.zeros(system)
    inputs.rotor_command_rad_s[:] = speeds
    inputs.wrench_enu[0, 3] = 0.3
    times: dict[str, list[float]] = {"plant": [], "bare": []}
    for _ in range(rounds):
        plant.memory[:] = begin_state
        begin = perf_counter()
        for _ in range(TURN):
            plant.step(inputs)
        times["plant"].append((perf_counter() - begin) / TURN)
        times["bare"].append(dart.bare_step_us(repetitions=15) * 1e-6)
    assert plant.taut.all()
    return {key: 1e6 * np.array(values) for key, values in times.items()}


def shown(times: dict[str, np.ndarray]) -> str:
    """Medians with spread and ratios to the bare step, a line each."""
    bare = times["bare"]
    lines = []
    for name, x in times.items():
        low, high = np.quantile(x, [0.1, 0.9])
        lines.append(
            f"  {name:12s} {np.median(x):7.1f} us [{low:.1f}, {high:.1f}]   "
            f"over bare: {np.median(x / bare):.2f}, fastest turns {x.min() / bare.min():.2f}   "
            f"{4000.0 / np.median(x):.0f} x real time"
        )
    return "\n".join(lines)


def main() -> None:
    """Print medians, spreads and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--controller", default="formation")
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    dart = bare_dart()
    print("steps of 4 ms; medians [10 %, 90 %]; bare: DART, x500_trio with 15 links per cable")
    print(f"whole loop, 3 drones, circle, controller {given.controller}:")
    print(shown(loop(given.rounds, given.controller, dart)), flush=True)
    for name in ("x500_solo", "x500_trio", "x500_hexa"):
        print(f"plant alone, {name}:")
        print(shown(plant_alone(name, given.rounds, dart)), flush=True)


if __name__ == "__main__":
    main()
