"""Control periods per second of many worlds, next to single flights and the bare DART step.

All close the loop with the cascade, 3 drones in the air on the paper's circle. Per core is by
processor time, so that other programs do not count. The column DART is the time that DART alone
needs for a step of 15 links a cable over that of a period of a batch. A run of a sweep is recorded.

    .venv/bin/python benchmarks/batch.py
    .venv/bin/python benchmarks/batch.py --worlds 4096 --threads 1 2 4 --models massless
"""

from __future__ import annotations

import argparse
import os
import resource
from time import perf_counter, process_time

from musls_bringup.shipped import SCENARIOS
from musls_sim.batch.batch import Batch
from musls_sim.recording.recorder import MemoryRecorder
from musls_sim.scenario.scenario import Scenario, load_scenario
from musls_sim.session.session import Session

MODELS = {
    "massless": ["cable_model=massless"],
    "massless, truth": ["cable_model=massless", "estimation={kind: truth}"],
    "massless, payload": ["cable_model=massless", "controller=payload"],
    "rigid_links 15": ["cable_model=rigid_links", "system.cables.links=15"],
    "elastic 15": ["cable_model=elastic", "system.cables.links=15"],
}


def single(scenario: Scenario, periods: int) -> float:
    """Control periods per second of processor time of one flight."""
    with Session(scenario) as session:
        session.advance(50)
        begin = process_time()
        session.advance(periods)
        return periods / (process_time() - begin)


def run_of_a_sweep(scenario: Scenario) -> float:
    """Control periods per second of processor time of a whole flight in compiled code."""
    with Session(scenario) as session:
        recorder = MemoryRecorder(
            scenario.system, step_period_s=session.plant.period_s, shape_rate_hz=None
        )
        session.observe_with(recorder)
        session.advance(1)  # compiles
        begin = process_time()
        session.run()
        return session.tick / (process_time() - begin)


def batched(scenario: Scenario, worlds: int, threads: int, periods: int) -> tuple[float, float]:
    """Control periods per second of all worlds: of processor time, and on the clock."""
    batch = Batch(scenario, worlds, threads=threads)
    batch.advance(5)
    clock, begin = perf_counter(), process_time()
    batch.advance(periods)
    spent, passed = process_time() - begin, perf_counter() - clock
    return worlds * periods / spent, worlds * periods / passed


def bare_dart_us() -> float:
    """Time DART alone takes for a step of 15 links a cable [us]."""
    scenario = load_scenario(SCENARIOS / "circle.yaml", ["start=air", "system.cables.links=15"])
    with Session(scenario) as session:
        return session.plant.bare_step_us() or float("nan")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--periods", type=int, default=100)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, os.cpu_count() or 1])
    parser.add_argument("--models", nargs="*", default=[*MODELS], choices=MODELS)
    given = parser.parse_args()
    dart_us = bare_dart_us()
    print(f"{given.worlds} worlds, {given.periods} periods; bare DART step {dart_us:.1f} us")
    heads = f"{'one flight':>12} {'in a sweep':>12} {'per core':>12} {'DART':>6}"
    print(f"{'':17} {heads}  on the clock, by threads")
    for name in given.models:
        scenario = load_scenario(SCENARIOS / "circle.yaml", ["start=air", *MODELS[name]])
        alone, swept = single(scenario, 10 * given.periods), run_of_a_sweep(scenario)
        cells, per_core = [], 0.0
        for threads in given.threads:
            core, clock = batched(scenario, given.worlds, threads, given.periods)
            per_core = core if threads == given.threads[0] else per_core
            cells.append(f"{threads}: {clock:.0f}/s")
        ratio = dart_us * 1e-6 * per_core
        figures = f"{alone:10.0f}/s {swept:10.0f}/s {per_core:10.0f}/s {ratio:6.1f}"
        print(f"{name:17} {figures}  {', '.join(cells)}", flush=True)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(f"largest memory of the process {peak_mb:.0f} MB")


if __name__ == "__main__":
    main()
