"""Prints the load's mean error of recorded flights against both of its set-points.

`musls fly` compares with the set-point that is held from one message to the next (5 Hz), which a
motion of 2 m/s leaves by up to 0.4 m. The controller follows the continuous reference; it is
rebuilt here by a spline through the messages. Compare flights by the same of the two.

    python benchmarks/payload_errors.py FLIGHT [FLIGHT ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from musls_analysis.recordings.readers import read_recording
from musls_analysis.recordings.recording import main_stages

TRANSIENT_S = 4.0


def errors_mm(flight: Path) -> dict[str, tuple[float, float, float]]:
    """Mean errors of each main stage: held, continuous, continuous after the transient [mm]."""
    recording = read_recording(flight)
    body, asked = recording.bodies["load"], recording.setpoints["load"]
    found = {}
    for stage in main_stages(recording.stages):
        inside = recording.stage_mask(stage, body.time_s)
        time_s, place = body.time_s[inside], body.position_enu_m[inside]
        told = recording.stage_mask(stage, asked.time_s)
        smooth = CubicSpline(asked.time_s[told], asked.position_enu_m[told])(time_s)
        held = np.linalg.norm(asked.held_at(time_s).position_enu_m - place, axis=1)
        error = np.linalg.norm(smooth - place, axis=1)
        late = time_s > time_s[0] + TRANSIENT_S
        found[stage.name] = tuple(1e3 * x.mean() for x in (held, error, error[late]))
    return found


def main() -> None:
    """Print a line for each stage of each flight."""
    print(f"{'flight':32} {'stage':8} held mm  continuous mm  after {TRANSIENT_S:g} s")
    for flight in map(Path, sys.argv[1:]):
        for stage, (held, error, late) in errors_mm(flight).items():
            print(f"{flight.name:32} {stage:8} {held:7.0f} {error:14.0f} {late:10.0f}")


if __name__ == "__main__":
    main()
