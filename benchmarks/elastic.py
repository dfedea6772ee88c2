"""Cost of the elastic plant against the bare DART step, in one process.

A whole control period of `ElasticPlant` (rotors, drag, cables, state, tensions; steps of 4 ms) is
timed in turns with the bare DART step of the paper's trio with 15 links per cable, so that a noisy
machine slows both. Every turn flies the same half second from a hovering start with a push on the
load. Then whole flight loops (mission, autopilot, estimation, plant, tensions; no recording) of
scenarios, in turns with the same yardstick.

    .venv/bin/python benchmarks/elastic.py
    .venv/bin/python benchmarks/elastic.py --system x500_hexa --segments 15 30 --rounds 100
    .venv/bin/python benchmarks/elastic.py --segments --loops cdpr_pick_and_place crane
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np

from musls_bringup.shipped import SCENARIOS
from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.system.slung_system import SlungLoadSystem
from musls_description.system.system_files import load_system
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.interface import PlantInputs
from musls_sim.plants.rigid_links.dart_plant import DartPlant
from musls_sim.plants.trim import trim_speeds_rad_s
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

TURN = 125  # control periods, half a second of flight
LOOPS = {"circle_elastic": ["start=air"], "cdpr_pick_and_place": [], "crane": []}


def circle_of(n: int) -> np.ndarray:
    """Places of n drones on a circle of 1 m (or above the load), (n, 3)."""
    azimuth = np.arange(n) * 2.0 * np.pi / n
    radius = 1.0 if n > 1 else 0.0
    return np.column_stack([radius * np.cos(azimuth), radius * np.sin(azimuth), np.full(n, 3.2)])


def start_of(system: SlungLoadSystem) -> dict:
    """Hovering start on a circle."""
    rest = hanging_equilibrium(system, circle_of(system.n_drones))
    speeds = trim_speeds_rad_s(system, rest)
    return {"start": rest.configuration, "rotor_speed_rad_s": speeds}


def bare_dart() -> DartPlant:
    """The yardstick: the paper's trio, 15 links per cable, hovering."""
    trio = load_system("x500_trio")
    return DartPlant(trio, physics_step_s=0.004, **start_of(trio))


def measure(name: str, segments: int, rounds: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Time per control period of the plant and of DART's bare step [us], (rounds,) each.

    Returns:
        Both, and the linear systems solved per stage.
    """
    system = load_system(name)
    plant = ElasticPlant(system, **start_of(system), segments=segments)
    dart = bare_dart()
    memory = plant.memory
    begin_state = memory.copy()
    inputs = PlantInputs.zeros(system)
    inputs.rotor_command_rad_s[:] = plant.state.rotor_speed_rad_s
    plant_us, bare_us = [], []
    for _ in range(rounds):
        memory[:] = begin_state
        begin = perf_counter()
        for k in range(TURN):
            inputs.wrench_enu[0, 3] = 0.5 * np.sin(0.02 * k)
            plant.step(inputs)
        plant_us.append(1e6 * (perf_counter() - begin) / TURN)
        bare_us.append(dart.bare_step_us(repetitions=15))
    solved = plant.sums["iterations"] / (2.0 * TURN)
    return np.array(plant_us), np.array(bare_us), float(solved)


def measure_loop(name: str, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Time per control period of a scenario's flight loop and of DART's bare step [us].

    A scenario shorter than all turns is flown again.
    """
    dart = bare_dart()
    scenario = load_scenario(SCENARIOS / f"{name}.yaml", LOOPS[name])
    loop_us: list[float] = []
    bare_us: list[float] = []
    while len(loop_us) < rounds:
        with Session(scenario) as session:
            session.advance(TURN)
            periods = int(min(session.guidance.planned_s, 1e3) / session.plant.period_s)
            for _ in range(min(rounds - len(loop_us), periods // TURN - 1)):
                begin = perf_counter()
                session.advance(TURN)
                loop_us.append(1e6 * (perf_counter() - begin) / TURN)
                bare_us.append(dart.bare_step_us(repetitions=15))
    return np.array(loop_us), np.array(bare_us)


def main() -> None:
    """Print a table over the number of segments, and one of flight loops."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--system", default="x500_trio")
    parser.add_argument("--segments", type=int, nargs="*", default=[1, 15, 30, 60, 100])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--loops", nargs="*", default=list(LOOPS), choices=LOOPS)
    given = parser.parse_args()
    print(f"{given.system}, step 4 ms; medians [10 %, 90 %] over {given.rounds} turns; bare: DART,")
    print("x500_trio with 15 links per cable; best: ratio of the fastest turns")
    print("segments   plant us              bare DART us          plant/bare  best  solves  x real")
    for segments in given.segments:
        plant, bare, solved = measure(given.system, segments, given.rounds)
        cells = [
            f"{np.median(x):6.1f} [{np.quantile(x, 0.1):.1f}, {np.quantile(x, 0.9):.1f}]"
            for x in (plant, bare)
        ]
        print(
            f"{segments:8d}   {cells[0]:21s} {cells[1]:21s} {np.median(plant / bare):10.2f} "
            f"{plant.min() / bare.min():5.2f} {solved:7.2f} {4000.0 / np.median(plant):7.0f}",
            flush=True,
        )
    print("flight loop            best us  median us  best/bare  median ratio  x real (best)")
    for name in given.loops:
        loop, bare = measure_loop(name, given.rounds)
        print(
            f"{name:21s} {loop.min():8.1f} {np.median(loop):10.1f} {loop.min() / bare.min():10.2f} "
            f"{np.median(loop / bare):13.2f} {4000.0 / loop.min():14.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
