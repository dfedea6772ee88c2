"""Prints RotorTM's Table III: position error of the load of our closed loop beside the paper's.

python benchmarks/rotortm.py [--noise 1e-3] [--payload] [--set key=value ...] [single cables rods]
"""

from __future__ import annotations

import argparse

import numpy as np

import musls

PATHS = ("slalom13", "slalom20", "circle6", "circle10")
PAPER_M = {
    "single": ((0.0407, 0.0124, 0.115, 0.0309), (0.0397, 0.0123, 0.110, 0.0334)),
    "cables": ((0.0114, 0.00539, 0.0439, 0.0166), (0.0429, 0.0343, 0.0711, 0.0656)),
    "rods": ((0.0426, 0.0122, 0.148, 0.0462), (0.0414, 0.0126, 0.155, 0.0436)),
}
"""Without and with noise of 1e-3."""

SPEED = {"single": 1.0, "cables": 1.2, "rods": 1.0}
"""`gains.speed` with --payload; tuned for cables, as the scenario files say."""


def errors(name: str, overrides: list[str]) -> tuple[float, float]:
    """Root mean square of the load's distance [m] and of its angle to the reference [deg]."""
    scenario = musls.load_scenario(name, overrides)
    stage, begin_s = scenario.mission.stages[0], scenario.mission.settle_s
    far, turned = [], []
    with musls.Session(scenario) as session:
        while session.time_s < begin_s + stage.duration_s:
            session.advance(1)
            if session.time_s < begin_s:
                continue
            reference = session.reference
            far.append(session.state.position_enu_m[0] - reference.position_enu_m)
            w, x, y, z = session.state.orientation_wxyz[0]
            up = [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]
            front = [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)]
            turn = np.column_stack([front, np.cross(up, front), up])
            cosine = 0.5 * (np.trace(reference.rotation.T @ turn) - 1.0)
            turned.append(np.arccos(np.clip(cosine, -1.0, 1.0)))
    distance = np.sqrt(np.mean(np.sum(np.square(far), axis=1)))
    return float(distance), float(np.degrees(np.sqrt(np.mean(np.square(turned)))))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("links", nargs="*", default=list(PAPER_M), help="single, cables, rods")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--payload", action="store_true", help="flown by the payload controller")
    parser.add_argument("--set", action="append", default=[], help="override of all scenarios")
    options = parser.parse_args()
    print("system   path       error m  (paper)   angle deg")
    for links in options.links:
        overrides = [f"estimation.noise={options.noise!r}", *options.set]
        if options.payload:
            gains = f"{{speed: {SPEED[links]}}}"
            overrides.insert(0, f"controller={{kind: payload, output: direct, gains: {gains}}}")
        for path, paper in zip(PATHS, PAPER_M[links][options.noise > 0.0], strict=True):
            distance, angle = errors(f"rotortm_{links}_{path}", overrides)
            print(f"{links:8} {path:9} {distance:8.5f}  ({paper:.5f})  {angle:8.4f}", flush=True)


if __name__ == "__main__":
    main()
