"""Errors in the time step: what `--verify` says of the shipped scenarios, as CSV.

Each flies with its step, half of it and a quarter of it. All of them take some half an hour.

    python benchmarks/verify_scenarios.py [SCENARIO ...] > benchmarks/verify_scenarios.csv
"""

from __future__ import annotations

import csv
import sys

from musls_analysis.comparison.summary import PEAK_PLACES
from musls_analysis.figures.convergence import Convergence
from musls_analysis.recordings.recording import main_stages
from musls_bringup.api import load_scenario
from musls_bringup.fly import Flight
from musls_bringup.shipped import SCENARIOS, names_in
from musls_bringup.verify import fly_once, verify
from musls_description.config.errors import MuslsError

HEADS = ("scenario, step", "load's error", *PEAK_PLACES.values(), "farthest body", "warnings")


def _row(name: str) -> list[str]:
    """Cells of a scenario."""
    scenario = load_scenario(name)
    first = fly_once(scenario)
    found = verify(scenario, first)
    off = found.distance_m[0]
    return [
        f"{name}, {1e3 * found.step_size_s:.3g} ms",
        ", ".join(_load_errors(first, found)),
        *(_tension(found, where) for where in PEAK_PLACES),
        f"{found.body.replace('_', ' ')}, {1e3 * off.max():.2g} mm",
        "; ".join(first[1]["warnings"]),
    ]


def _load_errors(first: Flight, found: Convergence) -> list[str]:
    """The load's mean error of each main stage."""
    names = dict.fromkeys(stage.name for stage in main_stages(first[0].stages))
    its = {name: found.figures.get(f"errors.load.{name}.translational_error_m") for name in names}
    return [f"{error.text('mm', 1e3)} ({name})" for name, error in its.items() if error is not None]


def _tension(found: Convergence, where: str) -> str:
    """A largest tension; nothing if the flight has none of this sort."""
    its = found.figures.get(f"tension.{where}.max_n")
    return "" if its is None else its.text("N")


def main() -> None:
    """Print a row as soon as it is known."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(HEADS)
    for name in sys.argv[1:] or names_in(SCENARIOS):
        try:
            cells = _row(name)
        except MuslsError as error:
            cells = [name, str(error), *[""] * (len(HEADS) - 2)]
        table.writerow(cells)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
