"""Steps per second of the Gymnasium environment, next to the bare DART step of the same system.

.venv/bin/python benchmarks/transport_env.py
.venv/bin/python benchmarks/transport_env.py --links 15 --level rotor_speeds
"""

from __future__ import annotations

import argparse
from time import process_time

import gymnasium
import numpy as np

import musls.envs  # noqa: F401 (makes the environment known)


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", type=int, default=15)
    parser.add_argument("--level", default="forces")
    parser.add_argument("--steps", type=int, default=400)
    given = parser.parse_args()
    env = gymnasium.make(
        "musls/Transport-v0",
        level=given.level,
        overrides={"system.cables.links": given.links, "physics.step_size_s": 0.004},
        duration_s=1e3,
    )
    env.reset(seed=0)
    action = np.zeros(env.action_space.shape)
    env.step(action)
    begin = process_time()
    for _ in range(given.steps):
        _, _, terminated, _, _ = env.step(action)
        if terminated:
            env.reset(seed=0)
    step_us = (process_time() - begin) / given.steps * 1e6
    periods = env.unwrapped._periods
    bare_us = env.unwrapped.session.plant.bare_step_us()
    print(
        f"{1e6 / step_us:.0f} steps/s of {periods} control periods (4 ms) each, "
        f"{step_us / periods:.1f} us a period: {step_us / periods / bare_us:.2f} x the bare DART "
        f"step ({bare_us:.1f} us); real-time factor {4000.0 * periods / step_us:.0f}"
    )


if __name__ == "__main__":
    main()
