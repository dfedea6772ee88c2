"""Cost of rigs with winches and pulleys against real time and the bare DART step, in one process.

The crane (70 segments, 6 pulleys, 1 winch) drives its trolley, the motion suspension rig (57
segments, 4 winches, 4 pulleys) changes its torques; in turns with the bare DART step of the paper's
trio, so that a noisy machine slows all of them.

    .venv/bin/python benchmarks/elastic_machines.py
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from elastic import bare_dart

from musls_sim.plants.elastic.engine import Engine

sys.path.insert(0, str(Path(__file__).parents[1] / "src/musls_sim/test"))
from elastic_machines import crane_engine, gravity_rig

TURN = 50  # control periods


def main() -> None:
    """Print medians and the best turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    crane = crane_engine()[0]
    rig = Engine(gravity_rig()[0])
    dart = bare_dart()
    steps = [("crane", crane.step), ("gravity rig", rig.step), ("bare DART", dart.world.step)]
    times = np.empty((rounds, len(steps)))
    for k in range(rounds):
        rig.feed[:] = -4.0 if k < rounds / 2 else -8.0
        for i, (_, step) in enumerate(steps):
            begin = perf_counter()
            for _ in range(TURN):
                step()
            times[k, i] = (perf_counter() - begin) / TURN
    for i, (name, _) in enumerate(steps):
        median, best = np.median(times[:, i]), times[:, i].min()
        over = np.median(times[:, i] / times[:, -1])
        print(
            f"{name:12s} {1e6 * median:7.1f} us (best {1e6 * best:7.1f}) a period of 4 ms, "
            f"{0.004 / median:6.1f} x real time (best {0.004 / best:6.1f}), {over:5.2f} x bare DART"
        )


if __name__ == "__main__":
    main()
