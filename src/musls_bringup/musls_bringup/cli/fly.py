"""`musls fly`: fly a scenario."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

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
    plan: Annotated[
        bool, typer.Option("--plan", help="Show phases and set-points instead of flying.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, but fly and write nothing.")
    ] = False,
) -> int:
    """Flies a scenario in the embedded simulator and reports on it."""
    from musls_bringup.cli.imports import quick_imports

    with quick_imports():
        from musls_bringup.cli.killed import keep_killed_runs
        from musls_bringup.fly import FlyOptions, find_scenario, fly
        from musls_bringup.results import check_folder, default_folder

    overrides = flight_overrides(settings, seed, autopilot, controller)
    chosen = find_scenario(scenario, overrides)
    if plan or dry_run:
        from musls_bringup.cli.plan import show_plan

        show_plan(chosen, out, force=force, overwrite=overwrite, table=plan)
        return 0
    folder = out or default_folder(chosen.name)
    check_folder(folder, overwrite=overwrite)
    keep_killed_runs(folder)
    options = FlyOptions(overwrite=overwrite, realtime=realtime, force=force, report=report)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # PYTHONWARNINGS does not change what a flight does
        warnings.showwarning = _warn
        summary = _with_progress(chosen.name, lambda o, s: fly(chosen, folder, options, o, s))
    return conclude(summary, folder)


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """In the place of `warnings.showwarning`."""
    print("musls: warning:", message, file=sys.stderr)


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
