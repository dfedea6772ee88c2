"""Share of the load's error in the engagement by cycle-to-cycle scatter and by the model.

    .venv/bin/python benchmarks/engagement_cycles.py CYCLES --imperfections FILE --simulated FOLDER

The paper's Table III compares the mean of all recorded cycles (14 engagements of five flights) with
the mean of all simulated ones (15). One recorded cycle has its own deviation from that mean in its
error. CYCLES is a folder with several engagements, each a file `*_engage.csv` of the format of
`../shared/flights`; a second folder may hold another program's simulated ones. Printed are the
distances (12) and angles (13) of the cycles from each other, of the other simulation, and of ours,
flown from where the load stood before each cycle with the slack cables lying otherwise each time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from engagement_starts import drawn_at

from musls_analysis.comparison.compare import CompareOptions, compare_stage
from musls_analysis.comparison.cycles import CutStage, cut
from musls_analysis.paper.flights import some_cycles
from musls_analysis.recordings.recording import LOAD
from musls_bringup.api import fly
from musls_bringup.shipped import find_scenario
from musls_description.rotations import roll_pitch_yaw

STAGE = "engage"
SURE_M, SURE_RAD = 0.005, 0.01
"""The recording says where the load stood and how it was turned; about so well."""


def main() -> None:
    """Read, fly and print."""
    options = arguments()
    real = some_cycles([options.cycles])[STAGE]
    print(f"| {len(real)} recorded cycles | load | drones |\n|---|---|---|")
    for i, one in enumerate(real):
        others = [other for k, other in enumerate(real) if k != i]
        if others:
            row(f"cycle {i + 1} from the mean of the others", others, [one])
        for k in range(i + 1, len(real)):
            row(f"cycle {i + 1} from cycle {k + 1}", [real[k]], [one])
    if options.simulated:
        theirs = some_cycles([options.simulated])[STAGE]
        rows(f"{options.simulated.name}, {len(theirs)} cycles, from", real, theirs)
    point = {LOAD: [float(x) for x in options.offset.split(",")]}
    flown = [
        cut(fly(find_scenario(STAGE, overrides)), STAGE)
        for seed in range(options.samples)
        for overrides in starts(real, seed, options)
    ]
    rows(f"musls, {len(flown)} cycles, from", real, flown, point)
    for k, its in enumerate(flown[: len(real)]):
        row(f"musls, one cycle, from cycle {k + 1}, whose start it has", [real[k]], [its], point)


def arguments() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cycles", type=Path)
    parser.add_argument("--simulated", type=Path)
    parser.add_argument("--imperfections", default="")
    parser.add_argument("--offset", default="-0.0285,0.0067,-0.06", help="recorded point [m]")
    parser.add_argument("--samples", type=int, default=4, help="flights for each recorded cycle")
    parser.add_argument("--set", action="append", default=[], help="more key=value")
    return parser.parse_args()


def starts(real: Sequence[CutStage], seed: int, options: argparse.Namespace) -> list[list[str]]:
    """Overrides of one flight for each recorded cycle, from where its load stood."""
    plain = ["system.cables.links=5", *options.set]
    if options.imperfections:
        plain.append(f"imperfections={options.imperfections}")
    lengths_m = [cable.length_m for cable in find_scenario(STAGE, plain).system.cables]
    found = []
    for k, one in enumerate(real):
        track = one.recording.bodies[LOAD]
        stood = (*track.position_enu_m[0, :2], roll_pitch_yaw(track.orientation_wxyz[:1])[0, 2])
        causes = ("place", "cables' lay", "wind")
        start = drawn_at(stood, (SURE_M, SURE_RAD), causes, len(real) * seed + k, lengths_m)
        found.append([*plain, *start.overrides])
    return found


def rows(
    name: str,
    real: Sequence[CutStage],
    sims: Sequence[CutStage],
    point: dict[str, Sequence[float]] | None = None,
) -> None:
    """Rows of the table: simulated cycles against each recorded one, and against their mean."""
    for k, one in enumerate(real):
        row(f"{name} cycle {k + 1}", [one], sims, point)
    row(f"{name} the mean of the {len(real)}", real, sims, point)


def row(
    name: str,
    real: Sequence[CutStage],
    sims: Sequence[CutStage],
    point: dict[str, Sequence[float]] | None = None,
) -> None:
    """A row of the table, printed at once."""
    errors = compare_stage(STAGE, real, sims, CompareOptions(offsets_m=point or {})).errors
    texts = {
        body: f"{1e3 * e.translational_error_m:.1f} mm, {e.geodesic_error_deg:.1f} deg"
        for body, e in errors.items()
    }
    print(f"| {name} | {texts.pop(LOAD)} | {'; '.join(texts.values())} |", flush=True)


if __name__ == "__main__":
    main()
