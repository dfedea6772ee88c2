"""What killed runs left in a folder: their recordings are kept, the rest is deleted."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def keep_killed_runs(out: Path) -> None:
    """Look for remains of killed runs beside an output folder and say what became of them.

    Args:
        out: Folder that a new run is about to write.
    """
    from musls_bringup.results import leftovers, put_aside

    try:
        for work, name in leftovers(out.absolute().parent):
            kept = put_aside(work, name)
            what = f"kept in {kept}: {_finished(kept)}" if kept else "nothing was recorded"
            print(f"musls: note: run {name} was killed; {what}", file=sys.stderr)
    except OSError as error:
        print(f"musls: warning: remains of a killed run: {error}", file=sys.stderr)


def _finished(folder: Path) -> str:
    """Write the summary that the killed run could not; returns what the folder holds."""
    from musls_analysis.recordings.bag import read_bag
    from musls_analysis.recordings.raw_bag import mend_bag
    from musls_analysis.report.summary import summarise
    from musls_bringup.fly import slack_threshold_n
    from musls_description.errors import MuslsError
    from musls_sim.scenario.scenario import load_scenario

    try:
        scenario = load_scenario(folder / "scenario.yaml", [])
        mend_bag(folder / "bag")
        recording = read_bag(folder / "bag")
        summary = {
            "scenario": scenario.name,
            "sim_time_s": recording.end_s - recording.start_s,
            "interrupted": True,
            "killed": True,
            **summarise(recording, slack_threshold_n=slack_threshold_n(scenario)),
        }
        text = json.dumps(summary, indent=2, allow_nan=False)
        (folder / "summary.json").write_text(text + "\n", encoding="utf-8")
    except (MuslsError, ValueError) as error:
        return " ".join(f"its bag cannot be read ({error})".split())
    return f"{recording.end_s - recording.start_s:.1f} s of flight"
