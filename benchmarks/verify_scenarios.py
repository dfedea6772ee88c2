"""Errors in the time step: what `--verify` says of the shipped scenarios, as CSV.

Each flies with its step, half of it and a quarter of it. All of them take some half an hour. With
`--sixteenth` each flies with a sixteenth, too, which takes three times as long: the last column is
then the share of the bands that hold its figures, and the last row that of all scenarios.

    python benchmarks/verify_scenarios.py [--sixteenth] [NAME ...] > benchmarks/verify_scenarios.csv
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass

from musls_analysis.comparison.summary import PEAK_PLACES, numbers_by_path
from musls_analysis.figures.convergence import Convergence
from musls_analysis.recordings.recording import main_stages
from musls_bringup.catalogue.scenarios import load_scenario
from musls_bringup.catalogue.shipped import SCENARIOS, names_in
from musls_bringup.flight.fly import Flight
from musls_bringup.flight.verify import finer_scenario, fly_once, verify
from musls_description.config.errors import MuslsError
from musls_sim.scenario.scenario import Scenario

HEADS = (
    "scenario, step", "load's error", *PEAK_PLACES.values(), "farthest body", "warnings",
    "figures with a band", "bands that hold h/16",
)  # fmt: skip


@dataclass
class Bands:
    """Numbers of figures, of those with a band, of bands that were tried and of those that held."""

    figures: int = 0
    known: int = 0
    tried: int = 0
    held: int = 0

    @classmethod
    def of(cls, scenario: Scenario, found: Convergence, *, sixteenth: bool) -> Bands:
        """Count the bands of a flight, and fly it again with a sixteenth of its step."""
        known = {name: f for name, f in found.figures.items() if f.error is not None}
        made = cls(len(found.figures), len(known))
        if not sixteenth:
            return made
        _, summary = fly_once(finer_scenario(scenario, found.step_size_s, 16))
        finest = dict(numbers_by_path(summary))
        off = [
            abs(f.values[0] - finest[name]) <= f.error
            for name, f in known.items()
            if f.error is not None and name in finest
        ]
        made.tried, made.held = len(off), sum(off)
        return made

    def add(self, other: Bands) -> None:
        """Count those of another flight, too."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)

    @property
    def cells(self) -> list[str]:
        """Shares in words; nothing where none was tried."""
        shares = (self.known, self.figures), (self.held, self.tried)
        return [f"{100.0 * n / of:.1f} % of {of}" if of else "" for n, of in shares]


def _row(name: str, total: Bands, *, sixteenth: bool) -> list[str]:
    """Cells of a scenario; its bands are added to the total."""
    scenario = load_scenario(name)
    first = fly_once(scenario)
    found = verify(scenario, first)
    bands = Bands.of(scenario, found, sixteenth=sixteenth)
    total.add(bands)
    off = found.distance_m[0]
    return [
        f"{name}, {1e3 * found.step_size_s:.3g} ms",
        ", ".join(_load_errors(first, found)),
        *(_tension(found, where) for where in PEAK_PLACES),
        f"{found.body.replace('_', ' ')}, {1e3 * off.max():.2g} mm",
        "; ".join(first[1]["warnings"]),
        *bands.cells,
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--sixteenth", action="store_true")
    options = parser.parse_args()
    table, total = csv.writer(sys.stdout, lineterminator="\n"), Bands()
    table.writerow(HEADS)
    for name in options.scenarios or names_in(SCENARIOS):
        try:
            cells = _row(name, total, sixteenth=options.sixteenth)
        except MuslsError as error:
            cells = [name, str(error), *[""] * (len(HEADS) - 2)]
        table.writerow(cells)
        sys.stdout.flush()
    table.writerow(["all", *[""] * (len(HEADS) - 3), *total.cells])


if __name__ == "__main__":
    main()
