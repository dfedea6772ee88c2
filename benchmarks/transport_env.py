"""Steps per second of the environments, next to the bare batch and the bare DART step.

All of one core, by processor time, so that other programs do not count; 5 control periods a step.
The column batch is the share of the time that the physics takes, DART the time that DART alone
needs for a step of 15 links a cable over that of a control period here.

    .venv/bin/python benchmarks/transport_env.py
    .venv/bin/python benchmarks/transport_env.py --worlds 1 64 4096 --levels accelerations
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time

import numpy as np

from musls.envs import TransportVectorEnv
from musls_bringup.api import load_scenario
from musls_sim.session.session import Session

PERIODS = 5
"""Control periods of a step."""


def per_call_s(function: Callable[[], object], seconds: float) -> float:
    """Processor time of a call, of as many as fit into some seconds."""
    function()
    begin, calls = process_time(), 0
    while process_time() - begin < seconds:
        function()
        calls += 1
    return (process_time() - begin) / calls


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, nargs="*", default=[1, 64, 4096])
    parser.add_argument("--levels", nargs="*", default=["accelerations", "drone_setpoints"])
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    with Session(load_scenario("hold", {"system.cables.links": 15})) as session:
        dart_us = session.plant.bare_step_us() or float("nan")
    print(f"bare DART step {dart_us:.1f} us")
    print(f"{'level':16} {'worlds':>6} {'steps/s':>9} {'batch':>6} {'DART':>5} {'reset':>10}")
    for level in given.levels:
        for worlds in given.worlds:
            env = TransportVectorEnv(
                worlds, level=level, periods_per_step=PERIODS, threads=1, duration_s=1e4
            )
            env.reset(seed=0)
            action = np.zeros(env.action_space.shape)
            step = per_call_s(lambda e=env, a=action: e.step(a), given.seconds)
            batch = per_call_s(lambda e=env: e.batch.advance(PERIODS), given.seconds)
            reset = per_call_s(env.reset, 0.2) / worlds * 1e6
            rate, ratio = worlds / step, dart_us * 1e-6 * PERIODS * worlds / step
            share = f"{batch / step:6.0%}"
            print(
                f"{level:16} {worlds:6} {rate:9.0f} {share} {ratio:5.2f} {reset:7.1f} us",
                flush=True,
            )


if __name__ == "__main__":
    main()
