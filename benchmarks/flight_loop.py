"""Cost of the flight loop and of the plant in it against the bare DART step, in one process.

The full loop is mission, controller, autopilot at 250 Hz, motion-capture estimate, plant with
tensions, and recording at 50 Hz. It is timed in turns with the skeleton of the paper's trio with 15
links stepped alone, so that a noisy machine slows both; the ratio is the figure to quote. The loop
is measured in processor time, the bare step by the median of short batches: neither counts the time
in which other programs have the processor. The plant's share is wall time: only an idle machine
tells it. Steps are of 4 ms.

    .venv/bin/python benchmarks/flight_loop.py
    .venv/bin/python benchmarks/flight_loop.py --models elastic massless --drones 3 --links 15 60
    .venv/bin/python benchmarks/flight_loop.py --models --rigs crane --rounds 100

With `--whole` shipped scenarios are flown from begin to end, ground included:

    .venv/bin/python benchmarks/flight_loop.py --whole circle hexa --rounds 3

With `--start` scenarios are read and their sessions built, up to the first period:

    .venv/bin/python benchmarks/flight_loop.py --start circle hexa
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from time import process_time

import numpy as np

from musls_bringup.shipped import SCENARIOS
from musls_sim.recording.recorder import MemoryRecorder
from musls_sim.scenario.physics import CONTROL_PERIOD_S
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

FLOWN = {1: "solo", 3: "circle", 6: "hexa"}
"""Scenarios by their number of drones."""

RIGS = ("crane", "cdpr_pick_and_place")
TURN = 125  # control periods per turn, half a second of flight


def new_session(name: str, overrides: Sequence[str] = ()) -> Session:
    """A session that records into memory."""
    scenario = load_scenario(SCENARIOS / f"{name}.yaml", list(overrides))
    recorder = MemoryRecorder(scenario.system, step_period_s=CONTROL_PERIOD_S)
    return Session(scenario, observers=[recorder])


class Yardstick:
    """The bare DART step of the paper's trio with 15 links per cable."""

    def __init__(self) -> None:
        self._session = new_session("circle", ["start=air"])

    def step_us(self, repetitions: int = 15) -> float:
        """Median time of a step."""
        time_us = self._session.plant.bare_step_us(repetitions=repetitions)
        assert time_us is not None, "DART is not installed"
        return time_us


def measure(name: str, overrides: Sequence[str], rounds: int, bare: Yardstick) -> np.ndarray:
    """Time of loop, of the plant in it, and of the bare step, us per 4 ms, (rounds, 3).

    A scenario shorter than all turns is flown again.
    """
    times: list[list[float]] = []
    while len(times) < rounds:
        with new_session(name, overrides) as session:
            session.advance(2 * TURN)
            turns = int(session.guidance.planned_s / session.plant.period_s) // TURN - 3
            for _ in range(min(rounds - len(times), max(turns, 1))):
                plant_s, begin = session.plant_s, process_time()
                session.advance(TURN)
                loop_us = 1e6 * (process_time() - begin) / TURN
                plant_us = 1e6 * (session.plant_s - plant_s) / TURN
                times.append([loop_us, plant_us, bare.step_us()])
    return np.array(times)


def measure_whole(name: str, rounds: int, bare: Yardstick) -> tuple[np.ndarray, np.ndarray]:
    """Time flights in turns with the bare step; microseconds per 4 ms, (rounds,) each."""
    loop, steps = [], []
    for _ in range(1 + rounds):  # the first one compiles
        with new_session(name) as session:
            begin = process_time()
            session.run()
            loop.append(1e6 * (process_time() - begin) / session.tick)
        steps.append(bare.step_us(40))
    return np.array(loop[1:]), np.array(steps[1:])


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


def cases(given: argparse.Namespace) -> Iterator[tuple[str, str, list[str]]]:
    """Name, scenario and overrides of the rows of the table."""
    for model in given.models:
        for drones in given.drones:
            for links in given.links if model != "massless" else [0]:
                overrides = ["start=air", f"cable_model={model}", "physics.step_size_s=0.004"]
                overrides += [f"system.cables.links={links}"] if links else []
                yield f"{model}, {drones} x {links}", FLOWN[drones], overrides
    yield from ((name, name, []) for name in given.rigs)


def main() -> None:
    """Print a table over cable models, drones and links."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models = ["rigid_links", "elastic", "massless"]
    parser.add_argument("--models", nargs="*", default=models, choices=models)
    parser.add_argument("--drones", type=int, nargs="*", default=[1, 3, 6], choices=FLOWN)
    parser.add_argument("--links", type=int, nargs="*", default=[5, 15, 29, 60])
    parser.add_argument("--rigs", nargs="*", default=RIGS)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--whole", nargs="*", default=[], help="scenarios flown to their end")
    parser.add_argument("--start", nargs="*", default=[], help="scenarios read and built only")
    given = parser.parse_args()
    for name in given.start:
        read, build = measure_start(name, given.rounds).T
        print(f"{name:24} read {_spread(read, 1)} ms, session {_spread(build, 1)} ms", flush=True)
    if given.start:
        return
    bare = Yardstick()
    for name in given.whole:
        loop, step = measure_whole(name, given.rounds, bare)
        print(
            f"{name:24} {np.median(loop):6.1f} us, bare DART {np.median(step):.1f} us, loop/bare "
            f"{_spread(loop / step, 2)}, {4000.0 / np.median(loop):.1f} x real time",
            flush=True,
        )
    if given.whole:
        return
    print("step 4 ms; medians [10 %, 90 %] over", given.rounds, "turns of", TURN, "periods")
    titles = ("loop us", "plant us", "bare DART us", "loop/bare", "plant/bare")
    print(f"{'case':24}" + "".join(f"{title:21}" for title in titles) + "x real time")
    for name, scenario, overrides in cases(given):
        loop, plant, step = measure(scenario, overrides, given.rounds, bare).T
        columns = (loop, 1), (plant, 1), (step, 1), (loop / step, 2), (plant / step, 2)
        cells = "".join(f"{_spread(values, digits):21}" for values, digits in columns)
        print(f"{name:24}{cells}{4000.0 / np.median(loop):6.1f}", flush=True)


def _spread(values: np.ndarray, digits: int) -> str:
    low, middle, high = np.percentile(values, [10, 50, 90])
    return f"{middle:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


if __name__ == "__main__":
    main()
