"""`musls fly`: fly a scenario."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musls_bringup.cli.options import (
    Autopilot,
    FlightFolder,
    Force,
    Overwrite,
    OwnController,
    Report,
    ScenarioName,
    Seed,
    Settings,
    flight_overrides,
)

if TYPE_CHECKING:
    from rich.table import Table

    from musls_bringup.check import Phase
    from musls_sim.scenario.scenario import Scenario
    from musls_sim.session.session import Session


EXAMPLE = "musls fly circle --set system.cables.links=29 --seed 3"


def run(
    scenario: ScenarioName,
    out: FlightFolder = None,
    settings: Settings = None,
    seed: Seed = None,
    autopilot: Autopilot = None,
    overwrite: Overwrite = False,
    realtime: Annotated[
        bool, typer.Option("--realtime", help="Fly no faster than real time.")
    ] = False,
    controller: OwnController = None,
    force: Force = False,
    report: Report = True,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Fly again with half and a quarter of the step: figures with errors."
        ),
    ] = False,
    verify_segments: Annotated[
        bool, typer.Option("--verify-segments", help="The same, with finer cables, too.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show phases and set-points instead of flying.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, but fly and write nothing.")
    ] = False,
) -> int:
    """Flies a scenario in the embedded simulator and reports on it."""
    from musls_bringup.fly import FlyOptions, find_scenario, fly
    from musls_bringup.results import check_folder, default_folder
    from musls_bringup.verify import check_verifiable, verify_result

    overrides = flight_overrides(settings, seed, autopilot, controller)
    chosen = find_scenario(scenario, overrides)
    if plan or dry_run:
        show_plan(chosen, out, force=force, overwrite=overwrite, table=plan)
        return 0
    verify |= verify_segments
    if verify:
        check_verifiable(chosen, segments=verify_segments)
    folder = out or default_folder(chosen.name)
    check_folder(folder, overwrite=overwrite)
    keep_killed_runs(folder)
    options = FlyOptions(overwrite=overwrite, realtime=realtime, force=force, report=report)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # PYTHONWARNINGS does not change what a flight does
        summary = _with_progress(chosen.name, lambda o, s: fly(chosen, folder, options, o, s))
    code = conclude(summary, folder)
    if verify and code == 0:
        found = verify_result(chosen, folder, summary, segments=verify_segments, force=force)
        print(f"verified: {found.sentence(_flown_stages(summary['errors']))}")
    return code


def _with_progress(name: str, work: Any) -> Any:
    """Run `work(observers, say)` and show how far it is."""
    from musls_bringup.cli.progress import WorkShown
    from musls_sim.session.loop import Progress

    with WorkShown(name, "preparing (compiles on first use)") as shown:

        def show(now: float, session: Session) -> None:
            planned = session.guidance.planned_s
            factor = now / max(session.elapsed_s, 1e-9)
            left = max(planned - now, 0.0) / max(factor, 1e-9)
            if not now:
                return  # the first period compiles: nothing can be said of its pace
            text = (
                f"{now:6.1f} / {planned:.0f} s  {factor:5.1f}x real time  {left:3.0f} s left"
                f"  {session.stage.replace('_', ' ')}"
            )
            shown.update(text, now / planned)

        return work([Progress(show)], lambda text: shown.update(text, 1.0))


MANY_DRONES = 4
"""With more drones than this the table gives their mean instead of a column each."""


def _flown_stages(errors: dict[str, dict[str, Any]]) -> list[str]:
    """Stages that the mission is about; all of them if the flight did not get that far."""
    from musls_control.phases import PHASES

    names = list(dict.fromkeys(stage for body in errors.values() for stage in body))
    flown = [name for name in names if name not in PHASES and name.rsplit("_", 1)[0] not in PHASES]
    return flown or names


def _error_table(errors: dict[str, dict[str, dict[str, float]]]) -> Any:
    """Mean translational (12) and geodesic (13) errors to the set-point, per stage and body.

    Take-off, transits and landing are left to the report.
    """
    from rich.table import Table

    groups = {body.replace("_", " "): [body] for body in errors}
    if len(errors) > MANY_DRONES:
        groups = {"load": ["load"], "drones (mean)": [b for b in errors if b != "load"]}
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("error to set-point")
    for name in groups:
        table.add_column(name, justify="right")
    for stage in _flown_stages(errors):
        cells = []
        for bodies in groups.values():
            entries = [errors[body][stage] for body in bodies if stage in errors[body]]
            if not entries:
                cells.append("-")
                continue
            distance = sum(e["translational_error_m"] for e in entries) / len(entries)
            angle = sum(e["geodesic_error_deg"] for e in entries) / len(entries)
            cells.append(f"{1e3 * distance:.0f} mm {angle:4.1f}\N{DEGREE SIGN}")
        table.add_row(stage.replace("_", " "), *cells)
    return table


def conclude(summary: dict[str, Any], folder: Path) -> int:
    """Print what the flight came to; returns the exit code."""
    import signal

    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    if any(summary["errors"].values()):
        console.print(_error_table(summary["errors"]))
    margin = summary["thrust_margin"]
    margin = "" if margin is None else f"; thrust margin {margin:.2f}"
    compile_s = summary.get("compile_s", 0.0)
    once = f" (and {compile_s:.0f} s of compiling, once)" if compile_s > 0.5 else ""
    console.print(
        f"{summary['sim_time_s']:.1f} s flown in {summary['wall_time_s'] - compile_s:.2f} s{once}: "
        f"[bold]{summary['real_time_factor']:.1f}x real time[/bold] at steps of "
        f"{1e3 * summary['step_size_s']:g} ms{margin}"
    )
    if summary["tension"]:
        from musls_analysis.report.summary import sentence

        console.print(f"largest cable tension: {sentence(summary['tension'])}")
    if summary.get("check"):
        console.print("before the flight: " + escape(summary["check"]["sentence"]))
    closest = summary.get("separation")
    if closest:
        console.print(
            f"closest: drone_{closest['pair'][0]} and drone_{closest['pair'][1]}, rotor tips "
            f"{closest['tips_m']:.2f} m apart at {closest['time_s']:.1f} s"
        )
    for name, battery in summary.get("batteries", {}).items():
        console.print(
            f"{name}: battery {100.0 * battery['charge_end']:.0f} % left, "
            f"{battery['mean_power_w']:.0f} W on average"
        )
    if summary["ended_by"]:
        kept = "what was flown" if summary["interrupted"] else "the flight"
        print(f"musls: ended by {summary['ended_by']}: {kept} is kept in {folder}", file=sys.stderr)
    elif summary["landed"] is False and summary["ends_on_ground"]:
        console.print("[yellow]the drones were not found landed at the end")
    report = (folder / "report.html").is_file()
    console.print(
        f"results in [bold]{escape(str(folder))}[/bold]" + (": open report.html" if report else "")
    )
    return 128 + signal.Signals[summary["ended_by"]] if summary["ended_by"] else 0


# ---------- `musls fly --plan` and `--dry-run`


def show_plan(
    scenario: Scenario, out: Path | None, *, force: bool, overwrite: bool, table: bool
) -> None:
    """Check a scenario and print what it would do; nothing is flown.

    Raises:
        ConfigError: It cannot be flown.
    """
    from rich.console import Console

    from musls_bringup.check import phases, prepare
    from musls_bringup.results import check_folder

    if out is not None:
        check_folder(out, overwrite=overwrite)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        parts = prepare(scenario, force=force)
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    if table:
        console.print(_table(phases(parts.plan)))
        places = scenario.formation
        drones = scenario.system.n_drones
        if parts.hover is not None and places.places_m is None:
            console.print(
                f"formation: {drones} drone{'' if drones == 1 else 's'} at radius "
                f"{places.radius_m:.2f} m, {places.height_m:.2f} m above the load's set-point, "
                f"drone 1 at {places.first_azimuth_rad:.2f} rad"
            )
    margin = "" if parts.hover is None else f", thrust margin {parts.hover.thrust_margin:.2f}"
    console.print(
        f"{scenario.name} can be flown: {parts.plan.duration_s:.1f} s{margin}; nothing was flown. "
        f"musls view SCENARIO --gif draws its set-points"
    )


def _table(found: list[Phase]) -> Table:
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    made.add_column("phase", no_wrap=True)
    for name, unit in (
        ("begins", "s"), ("lasts", "s"), ("load's set-point from", "m, deg"), ("to", "m, deg"),
        ("at most", "m/s"),
    ):  # fmt: skip
        made.add_column(f"{name}\n{unit}", justify="right", no_wrap=True)
    for phase in found:
        made.add_row(
            phase.name.replace("_", " "), f"{phase.start_s:.1f}", f"{phase.duration_s:.1f}",
            _pose(phase.first), _pose(phase.last), f"{phase.speed_m_s:.2f}",
        )  # fmt: skip
    return made


def _pose(pose: object) -> str:
    import numpy as np

    x, y, z, yaw_rad = np.asarray(pose, float)
    x, y, z = np.round([x, y, z], 2) + 0.0  # no minus before a zero
    return f"{x:.2f} {y:.2f} {z:.2f} {np.round(np.degrees(yaw_rad)) + 0.0:4.0f}"


# ---------- Remains of killed runs: their recordings are kept, the rest is deleted


def keep_killed_runs(out: Path) -> None:
    """Look for remains of killed runs beside an output folder and say what became of them."""
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
    from musls_analysis.recordings.bag import mend_bag, read_bag
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
