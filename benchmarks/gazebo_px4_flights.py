"""Flights in a row of real PX4s in Gazebo: did all of them end as they should?

Missions take turns, each flight is a `musls fly` of its own. A row per flight goes to a CSV file
and is printed; a run that was interrupted goes on where the file ends. A flight is upset when it
ended early, did not land, or a body was tilted by more than 45 degrees. Needs what
`physics.engine: gazebo_px4` needs, see docs/gazebo.md.

    PX4_BIN=.../bin/px4 .venv/bin/python benchmarks/gazebo_px4_flights.py runs/gz --flights 20
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from musls_analysis.recordings.bag import read_bag

MUSLS = "import sys; from musls_bringup.cli import main; sys.exit(main())"
UPSET_DEG = 45.0
COLUMNS = ["number", "mission", "seed", "settings", "result", "exit_code", "landed"]
COLUMNS += ["wall_s", "flown_s", "real_time_factor", "load_tilt_deg", "drone_tilt_deg"]
COLUMNS += ["max_tension_n", "take_up_n", "touch_down_n", "tips_m", "last_line"]


def main() -> None:
    """Fly what is missing; exit code 1 when any flight of the file was upset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flights", type=int, default=20)
    parser.add_argument("--missions", nargs="+", default=["circle", "shm", "engage"])
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    table = given.folder / "flights.csv"
    rows = list(csv.DictReader(table.open())) if table.exists() else []
    while len(rows) < given.flights:
        number = len(rows)
        mission = given.missions[number % len(given.missions)]
        row = flown(given.folder / f"{number + 1:02d}_{mission}", mission, number, given.settings)
        rows.append({"number": number + 1, **row})
        _append(table, rows[-1])
        print(*(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
    ended = sum(row["result"] == "ended" for row in rows)
    print(f"{ended} of {len(rows)} flights ended as they should")
    sys.exit(ended < len(rows))


def flown(out: Path, mission: str, seed: int, settings: list[str]) -> dict[str, object]:
    """Fly once; of a flight that ended as it should only the summary and the figures are kept.

    Args:
        out: Result folder.
        mission: Scenario.
        seed: Of the scenario; the noise of Gazebo's sensors does not follow it.
        settings: More of the scenario, KEY=VALUE.

    Returns:
        Its row without the number.
    """
    options = [f"--set={s}" for s in ("physics.engine=gazebo_px4", *settings)]
    command = [mission, "--autopilot", "px4", "--seed", str(seed), "--out", str(out), *options]
    begin = perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", MUSLS, "fly", *command, "--overwrite", "--no-report"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    row: dict[str, object] = {
        "mission": mission, "seed": seed, "settings": " ".join(settings), "result": "upset",
        "exit_code": run.returncode, "wall_s": round(perf_counter() - begin),
        "last_line": (run.stderr.strip().splitlines() or [""])[-1],
    }  # fmt: skip
    if not (out / "summary.json").exists():
        return row
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    row |= {
        "landed": summary["landed"], "flown_s": round(summary["sim_time_s"], 1),
        "real_time_factor": round(summary["real_time_factor"], 2),
    }  # fmt: skip
    places = {"in_flight": "max_tension_n", "take_up": "take_up_n", "touch_down": "touch_down_n"}
    for place, key in places.items():
        row[key] = round((summary["tension"].get(place) or {"max_n": 0.0})["max_n"], 1)
    if summary["separation"]:
        row["tips_m"] = round(summary["separation"]["tips_m"], 2)
    tilts = {name: tilt_deg(body.orientation_wxyz) for name, body in _bodies(out / "bag")}
    row["load_tilt_deg"] = round(tilts.pop("load"), 1)
    row["drone_tilt_deg"] = round(max(tilts.values()), 1)
    steady = max(row["load_tilt_deg"], row["drone_tilt_deg"]) < UPSET_DEG  # type: ignore[call-overload]
    for name, stages in summary["errors"].items():
        if mission in stages:
            row[f"{name}_mm"] = round(1e3 * stages[mission]["translational_error_m"])
            row[f"{name}_deg"] = round(stages[mission]["geodesic_error_deg"], 1)
    if run.returncode == 0 and summary["landed"] and steady:
        row["result"] = "ended"
        shutil.rmtree(out / "bag")
    return row


def tilt_deg(orientation_wxyz: np.ndarray) -> float:
    """Largest angle between a body's z axis and the vertical.

    Args:
        orientation_wxyz: (T, 4).
    """
    _, x, y, _ = orientation_wxyz.T
    return float(np.rad2deg(np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0))).max())


def _bodies(bag: Path) -> list:
    return list(read_bag(bag).bodies.items())


def _append(table: Path, row: dict[str, object]) -> None:
    new = not table.exists()
    bodies = ["load", "drone_1", "drone_2", "drone_3"]
    columns = COLUMNS + [f"{body}_{unit}" for body in bodies for unit in ("mm", "deg")]
    with table.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        if new:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    main()
