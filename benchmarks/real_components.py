"""What only real components show: PX4s in process and on the graph, Gazebo's server.

To be run once before a release.

A row a flight goes to standard output as CSV; where a component is missing, the row says which and
why. A former CSV given by `--against` adds the column `before`, and the exit code is 1 where a
flight ended otherwise or its load erred by 15 % more. See docs/px4.md and docs/gazebo.md for what
each component needs.

    PX4_BIN=... MICRO_XRCE_AGENT=... python benchmarks/real_components.py [--against CSV]
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from musls_bringup.ros.workspace import check_ros
from musls_description.config.errors import MuslsError
from musls_sim.px4.install import find_px4
from musls_sim.px4.process import find_agent

MUSLS = "import sys; from musls_bringup.cli import main; sys.exit(main())"
COLUMNS = ("flight", "result", "exit_code", "landed", "load_mm", "load_deg", "first_line", "before")
WORSE = 1.15
"""Error over that of before from which a flight counts as changed."""

PX4_IN_PROCESS = ("fly", "--set=autopilot.kind=px4")
PX4_ON_GRAPH = ("ros", "fly", "--set=autopilot.kind=px4")
GAZEBO = ("fly", "--set=physics.engine=gazebo")
GAZEBO_PX4 = ("fly", "--set=autopilot.kind=px4", "--set=physics.engine=gazebo_px4")

SCENARIOS = ("circle", "engage", "shm", "hexa", "delivery")
OWN = {
    "hand_over": ("circle", '--set=controller={"kind": "payload", "output": "autopilot"}'),
    "own_duo": ("duo", "--set=system.load.mass_kg=1.0"),
    "own_light_quad": ("quad", "--set=system.load.mass_kg=0.8"),
}
"""Flights with settings of their own: a controller that takes over, and two other systems."""


def _gazebo() -> None:
    if find_spec("gz") is None:
        raise MuslsError("Gazebo Harmonic's Python bindings are missing")


@dataclass(frozen=True)
class Chain:
    """A way to fly with real components.

    Attributes:
        words: Command and settings.
        needs: Raise MuslsError where a component is missing.
        flights: Of `SCENARIOS` and `OWN`.
    """

    words: tuple[str, ...]
    needs: tuple[Callable[[], object], ...]
    flights: tuple[str, ...]


CHAINS = {
    "px4": Chain(PX4_IN_PROCESS, (find_px4,), (*SCENARIOS, *OWN)),
    "px4_graph": Chain(PX4_ON_GRAPH, (check_ros, find_px4, find_agent), (*SCENARIOS, *OWN)),
    "gazebo": Chain(GAZEBO, (_gazebo,), ("circle", "engage", "shm")),
    "gazebo_px4": Chain(GAZEBO_PX4, (_gazebo, find_px4), ("circle", "engage", "shm")),
}


def flights() -> Iterator[tuple[str, Chain, tuple[str, ...]]]:
    """Name, chain and scenario with settings of each flight."""
    for chain, of in CHAINS.items():
        for name in of.flights:
            yield f"{chain}/{name}", of, OWN.get(name, (name,))


def missing(chain: Chain) -> str:
    """Why a chain cannot be flown here; "" where it can."""
    for need in chain.needs:
        try:
            need()
        except MuslsError as error:
            return str(error)
    return ""


def flown(chain: Chain, scenario: tuple[str, ...], out: Path) -> dict[str, object]:
    """Fly once; its row without the name."""
    words = [*chain.words, *scenario, "--out", str(out), "--no-report"]
    run = subprocess.run(
        [sys.executable, "-c", MUSLS, *words], check=False, capture_output=True, text=True
    )
    said = (run.stdout + run.stderr).strip().splitlines() or [""]
    row: dict[str, object] = {"result": "failed", "exit_code": run.returncode}
    row["first_line"] = said[0] if run.returncode == 0 else said[-1]
    if not (out / "summary.json").exists():
        return row
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    row |= {"result": "flown", "landed": summary["landed"]}
    errors = list(summary["errors"].get("load", {}).values())
    if errors:
        worst = max(errors, key=lambda e: e["translational_error_m"])
        row["load_mm"] = round(1e3 * worst["translational_error_m"], 1)
        row["load_deg"] = round(worst["geodesic_error_deg"], 1)
    return row


def changed(row: dict[str, object], before: dict[str, str]) -> bool:
    """Whether a flight ended otherwise than before, or its load erred more."""
    if "skipped" in (row["result"], before["result"]):
        return False
    if str(row["exit_code"]) != before["exit_code"]:
        return True
    error_mm, before_mm = row.get("load_mm"), before["load_mm"]
    return bool(error_mm and before_mm) and float(str(error_mm)) > WORSE * float(before_mm)


def main() -> None:
    """Fly all that can be flown here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="flights whose names begin so, such as px4/")
    parser.add_argument("--against", type=Path, help="CSV of an earlier run")
    given = parser.parse_args()
    former = {}
    if given.against:
        with given.against.open(encoding="utf-8") as file:
            former = {row["flight"]: row for row in csv.DictReader(file)}
    out = csv.DictWriter(sys.stdout, COLUMNS)
    out.writeheader()
    worse = []
    with tempfile.TemporaryDirectory() as folder:
        for name, chain, scenario in flights():
            if not name.startswith(given.only):
                continue
            why = missing(chain)
            row: dict[str, object] = {"result": "skipped", "first_line": why}
            if not why:
                row = flown(chain, scenario, Path(folder, name.replace("/", "_")))
            if name in former:
                row["before"] = f"{former[name]['load_mm']} mm"
                worse += [name] * changed(row, former[name])
            out.writerow({"flight": name, **row})
            sys.stdout.flush()
    if worse:
        sys.exit(f"changed: {', '.join(worse)}")


if __name__ == "__main__":
    main()
