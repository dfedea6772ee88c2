"""The built-in autopilot against real PX4s: the same missions, compared at equal times.

For each mission both fly with the same seed. Printed are, over the flown stage, the mean error of
each to the held set-points and the rms difference of their paths, and how fast they flew. Needs a
px4, see docs/px4.md.

    PX4_BIN=.../bin/px4 .venv/bin/python benchmarks/px4_against_builtin.py
    PX4_BIN=.../bin/px4 .venv/bin/python benchmarks/px4_against_builtin.py shm --set seed=3
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from musls_analysis.comparison.errors import geodesic_error_rad, translational_error_m
from musls_analysis.recordings.bag import read_bag
from musls_analysis.recordings.recording import PoseTrack, Recording
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.flight.fly import FlyOptions, fly

KINDS = ("builtin", "px4")


def flown(recording: Recording, body: str, name: str) -> PoseTrack:
    """The part of a body's track that belongs to a stage."""
    (stage,) = (stage for stage in recording.stages if stage.name == name)
    track = recording.bodies[body]
    mask = recording.stage_mask(stage, track.time_s)
    return PoseTrack(track.time_s[mask], track.position_enu_m[mask], track.orientation_wxyz[mask])


def rms_difference(one: PoseTrack, other: PoseTrack) -> str:
    """Root mean square of distance [mm] and angle [deg] at equal times."""
    np.testing.assert_allclose(one.time_s, other.time_s, atol=1e-9)
    distance = translational_error_m(one.position_enu_m, other.position_enu_m)
    angle = geodesic_error_rad(one.orientation_wxyz, other.orientation_wxyz)
    return _cell(1e3 * _rms(distance), np.rad2deg(_rms(angle)))


def main() -> None:
    """Fly and print a table, a row for each body of each mission."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("missions", nargs="*", default=["circle", "shm", "engage"])
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    print(
        "| mission, body | error, built-in | error, PX4 | rms difference |",
        "|---" * 4 + "|",
        sep="\n",
    )
    speeds = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.missions:
            summaries, recordings = {}, {}
            for kind in KINDS:
                scenario = find_scenario(name, [*given.settings, f"autopilot.kind={kind}"])
                out = Path(folder) / f"{name}_{kind}"
                summaries[kind] = fly(scenario, out, FlyOptions(report=False))
                recordings[kind] = read_bag(out / "bag")
            for body in recordings["px4"].bodies:
                errors = (summaries[kind]["errors"][body][name] for kind in KINDS)
                cells = [
                    _cell(1e3 * e["translational_error_m"], e["geodesic_error_deg"]) for e in errors
                ]
                apart = rms_difference(*(flown(recordings[kind], body, name) for kind in KINDS))
                print(
                    f"| {name}, {body.replace('_', ' ')}",
                    *cells,
                    f"{apart} |",
                    sep=" | ",
                    flush=True,
                )
            factors = (f"{kind} {summaries[kind]['real_time_factor']:.1f}" for kind in KINDS)
            speeds.append(f"{name}: {', '.join(factors)}")
    print("\ntimes real time:", "; ".join(speeds))


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _cell(millimetres: float, degrees: float) -> str:
    return f"{millimetres:.0f} mm, {degrees:.1f} deg"


if __name__ == "__main__":
    main()
