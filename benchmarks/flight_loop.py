"""Cost of the whole flight loop against the bare DART step, in one process.

The full loop is mission, formation, autopilot at 250 Hz, motion-capture estimate, plant with
tensions, and recording at 50 Hz, on the paper's circle in flight. It is timed in turns with the
same skeleton stepped alone, so that a noisy machine slows both; the ratio is the figure to quote.
The loop is measured in processor time, the bare step by the median of short batches: neither counts
the time in which other programs have the processor.

    .venv/bin/python benchmarks/flight_loop.py
    .venv/bin/python benchmarks/flight_loop.py --links 15 --drones 3 --rounds 100

With `--whole` shipped scenarios are flown from begin to end, ground included, over the bare step of
the paper's trio with 15 links:

    .venv/bin/python benchmarks/flight_loop.py --whole circle hexa --rounds 3

With `--start` scenarios are read and their sessions built, up to the first period:

    .venv/bin/python benchmarks/flight_loop.py --start circle hexa
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from musls_bringup.shipped import SCENARIOS
from musls_sim.recording import BagRecorder
from musls_sim.recording.recorder import MemoryRecorder
from musls_sim.scenario.physics import CONTROL_PERIOD_S
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

CASES = {1: ("solo", []), 3: ("circle", []), 6: ("hexa", [])}
TURN = 125  # control periods per turn, half a second of flight


def measure(drones: int, links: int, rounds: int, folder: Path) -> dict[str, np.ndarray]:
    """Time loop, plant and bare step in turns; microseconds per 4 ms, (rounds,) each."""
    name, settings = CASES[drones]
    overrides = [
        *settings,
        "start=air",
        f"system.cables.links={links}",
        "physics.step_size_s=0.004",
    ]
    scenario = load_scenario(SCENARIOS / f"{name}.yaml", overrides)
    recorder = BagRecorder(folder, scenario.system, step_period_s=CONTROL_PERIOD_S)
    times: dict[str, list[float]] = {"loop": [], "bare": []}
    with Session(scenario, observers=[recorder]) as session:
        session.advance(2 * TURN)
        for _ in range(rounds):
            begin = process_time()
            session.advance(TURN)
            times["loop"].append((process_time() - begin) / TURN)
            times["bare"].append(session.plant.bare_step_us(repetitions=15) * 1e-6)
    return {key: 1e6 * np.array(values) for key, values in times.items()}


def measure_whole(name: str, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Time flights in turns with the bare step; microseconds per 4 ms, (rounds,) each."""
    scenario = load_scenario(SCENARIOS / f"{name}.yaml", [])
    loop, bare = [], []
    with Session(load_scenario(SCENARIOS / "circle.yaml", ["start=air"])) as yardstick:
        for _ in range(1 + rounds):  # the first one compiles
            recorder = MemoryRecorder(scenario.system, step_period_s=CONTROL_PERIOD_S)
            with Session(scenario, observers=[recorder]) as session:
                begin = process_time()
                session.run()
                loop.append(1e6 * (process_time() - begin) / session.tick)
            bare.append(yardstick.plant.bare_step_us(repetitions=40))
    return np.array(loop[1:]), np.array(bare[1:])


def measure_start(name: str, rounds: int) -> np.ndarray:
    """Time to read a scenario and to build its session [ms], (rounds, 2)."""
    times = []
    for _ in range(1 + rounds):  # the first one loads what is compiled
        begin = process_time()
        scenario = load_scenario(SCENARIOS / f"{name}.yaml")
        read = process_time()
        with Session(scenario):
            times.append([read - begin, process_time() - read])
    return 1e3 * np.array(times[1:])


def main() -> None:
    """Print a table over drones and links."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drones", type=int, nargs="*", default=[1, 3, 6], choices=CASES)
    parser.add_argument("--links", type=int, nargs="*", default=[5, 15, 29, 60])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--whole", nargs="*", default=[], help="scenarios flown to their end")
    parser.add_argument("--start", nargs="*", default=[], help="scenarios read and built only")
    given = parser.parse_args()
    for name in given.start:
        read, build = measure_start(name, given.rounds).T
        print(f"{name:24} read {_spread(read, 1)} ms, session {_spread(build, 1)} ms", flush=True)
    for name in given.whole:
        loop, bare = measure_whole(name, given.rounds)
        print(
            f"{name:24} {np.median(loop):6.1f} us, bare DART {np.median(bare):.1f} us, loop/bare "
            f"{_spread(loop / bare, 2)}, {4000.0 / np.median(loop):.1f} x real time",
            flush=True,
        )
    if given.whole or given.start:
        return
    print("step 4 ms; medians [10 %, 90 %] over", given.rounds, "turns of", TURN, "periods")
    print(
        "drones links   loop us              bare DART us         loop/bare            x real time"
    )
    with tempfile.TemporaryDirectory() as folder:
        for drones in given.drones:
            for links in given.links:
                bag = Path(folder) / f"{drones}_{links}"
                t = measure(drones, links, given.rounds, bag)
                cells = [
                    _spread(t["loop"], 1),
                    _spread(t["bare"], 1),
                    _spread(t["loop"] / t["bare"], 2),
                ]
                factor = 4000.0 / np.median(t["loop"])
                print(
                    f"{drones:6d} {links:5d}   "
                    + " ".join(f"{cell:20s}" for cell in cells)
                    + f"{factor:6.1f}",
                    flush=True,
                )


def _spread(values: np.ndarray, digits: int) -> str:
    low, middle, high = np.percentile(values, [10, 50, 90])
    return f"{middle:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


if __name__ == "__main__":
    main()
