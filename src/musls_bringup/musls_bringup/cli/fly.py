"""`musls fly`: fly a scenario."""

from __future__ import annotations

import json
import signal
import sys
import threading
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musls_bringup.catalogue.overrides import flight_overrides
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import options
from musls_bringup.cli.terminal import new_console, new_table, tell
from musls_bringup.flight.progress import PREPARING, ProgressDisplay
from musls_bringup.flight.results import check_folder, chosen_folder

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from musls_analysis.figures.convergence import Convergence
    from musls_bringup.before.planned import PlannedPhase
    from musls_bringup.flight.fly import Flight, FlyOptions
    from musls_sim.scenario.scenario import Scenario
    from musls_sim.session.loop import Observer
    from musls_sim.session.session import Session


PACE = "While it flies"
ACCURACY = "How exact it is"
"""Sections of the help."""


def run(
    scenario: options.ScenarioName,
    out: options.FlightFolder = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    autopilot: options.Autopilot = None,
    overwrite: options.Overwrite = False,
    controller: options.OwnController = None,
    force: options.Force = False,
    allow_invalid: options.AllowInvalid = False,
    report: options.Report = True,
    realtime: Annotated[
        bool | None,
        typer.Option(
            "--realtime/--fast",
            help="Fly no faster than real time.",
            show_default="fast, but with --live",
            rich_help_panel=PACE,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Show the flight in 3-D while it flies: a window, or a page on this machine.",
            rich_help_panel=PACE,
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Fly again with half and a quarter of the step: figures with errors.",
            rich_help_panel=ACCURACY,
        ),
    ] = False,
    verify_segments: Annotated[
        bool,
        typer.Option(
            "--verify-segments",
            help="The same, with finer cables, too.",
            rich_help_panel=ACCURACY,
        ),
    ] = False,
    verify_levels: Annotated[
        int,
        typer.Option(
            "--verify-levels",
            min=3,
            max=6,
            help="Steps that --verify compares.",
            rich_help_panel=ACCURACY,
        ),
    ] = 3,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            "--dry-run",
            help="Check everything and show phases and set-points, but fly and write nothing.",
        ),
    ] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Flies a scenario in the embedded simulator and reports on it."""
    from musls_bringup.flight.fly import FlyOptions
    from musls_bringup.flight.verify import check_verifiable

    flight_scenario = find_scenario(
        scenario, flight_overrides(settings, seed, autopilot, controller)
    )
    if verify or verify_segments:
        check_verifiable(flight_scenario, segments=verify_segments, levels=verify_levels)
    if plan:
        show_plan(flight_scenario, out, force=force, overwrite=overwrite)
        return 0
    folder = chosen_folder(out, flight_scenario.name, overwrite=overwrite)
    flight_options = FlyOptions(
        overwrite=overwrite,
        realtime=live if realtime is None else realtime,
        force=force,
        report=report,
    )
    finer = {"segments": verify_segments, "levels": verify_levels, "force": force}
    with _live_view(flight_scenario) if live else nullcontext((None, None)) as (view, page):
        summary = _flown(
            flight_scenario,
            folder,
            flight_options,
            finer if verify or verify_segments else None,
            view,
            quiet=quiet,
        )
        if as_json:
            print(json.dumps({"folder": str(folder), **summary}, indent=2, allow_nan=False))
            code = exit_code(summary)
        else:
            code = conclude(summary, folder, quiet=quiet)
        if page and not summary["ended_by"] and sys.stdin.isatty():
            tell("note", f"{page} stays until Ctrl-C")
            with suppress(KeyboardInterrupt):
                threading.Event().wait()
    return 0 if allow_invalid and code == INVALID else code


def _flown(
    scenario: Scenario,
    folder: Path,
    flight_options: FlyOptions,
    finer: dict[str, Any] | None,
    view: Callable[[Session], Observer] | None,
    *,
    quiet: bool,
) -> dict[str, Any]:
    """Fly with a progress bar; returns the summary, also of a flight that was ended.

    `finer`: options of the flights with finer steps that follow; None for none.
    """
    from musls_bringup.flight.fly import FlightEnded, fly
    from musls_bringup.flight.verify import verify

    with ProgressDisplay(scenario.name, PREPARING, quiet=quiet) as display:

        def again(first: Flight) -> Convergence:
            return verify(
                scenario, first, observers=[display.flight("with finer steps")], **(finer or {})
            )

        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)  # whatever PYTHONWARNINGS says
            try:
                return fly(
                    scenario,
                    folder,
                    flight_options,
                    [display.flight()],
                    lambda text: display.update(text, 1.0),
                    verifier=again if finer else None,
                    live=view,
                )
            except FlightEnded as end:
                return end.summary


@contextmanager
def _live_view(scenario: Scenario) -> Iterator[tuple[Callable[[Session], Observer], str | None]]:
    """Open the viewer; gives what makes its observer, and the address of its page if it is one."""
    from musls_analysis.view.live import LiveView, open_viewer
    from musls_bringup.flight.fly import SLACK_SHARE, slack_threshold_n

    share_n = slack_threshold_n(scenario) / SLACK_SHARE
    with open_viewer(scenario.name, "preparing") as (stream, page):
        if page:
            tell("note", f"{page} shows the flight")
            webbrowser.open(page)
        yield lambda session: LiveView(session, stream, share_n), page


MANY_DRONES = 4
"""Number of drones above which the table shows their mean instead of a column each."""


def _error_table(errors: dict[str, dict[str, dict[str, float]]]) -> Table:
    """Mean translational (12) and geodesic (13) errors to the reference, per stage and body.

    Take-off, transits and landing are left to the report, unless the flight did not get farther.
    """
    from musls_analysis.recordings.recording import without_number
    from musls_control.mission.spec import PHASES

    groups = {body.replace("_", " "): [body] for body in errors}
    if len(errors) > MANY_DRONES:
        groups = {"load": ["load"], "drones (mean)": [b for b in errors if b != "load"]}
    names = list(dict.fromkeys(stage for body in errors.values() for stage in body))
    main_names = [name for name in names if without_number(name) not in PHASES]
    table = new_table("error to reference", *groups)
    for stage in main_names or names:
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


INVALID = 3
"""Exit code of an invalid flight."""


def exit_code(summary: dict[str, Any]) -> int:
    """Exit code of a flight."""
    if summary["ended_by"]:
        return 128 + signal.Signals[summary["ended_by"]]
    return INVALID if summary["warnings"] else 0


def conclude(summary: dict[str, Any], folder: Path, *, quiet: bool = False) -> int:
    """Print what the flight came to; returns the exit code."""
    from rich.markup import escape

    from musls_analysis.comparison.summary import close_pass
    from musls_control.mission.phase_end import was_cut_short

    console = new_console()
    for line in summary["warnings"]:
        console.print(f"[bold red]invalid flight:[/] {escape(line)}")
    if pass_text := close_pass(summary.get("separation")):
        console.print(f"[yellow]{escape(pass_text)}")
    if not quiet:
        _print_figures(console, summary)
    if summary["ended_by"]:
        what = "what was flown" if summary["interrupted"] else "the flight"
        print(f"musls: ended by {summary['ended_by']}: {what} is kept in {folder}", file=sys.stderr)
    elif summary["landed"] is False and summary["ends_on_ground"]:
        console.print("[yellow]the drones were not found landed at the end")
    for stage in summary["stages"]:
        if was_cut_short(stage["end_reason"]):
            when = f"not as planned, at {stage['end_s']:.1f} s"
            console.print(f"[yellow]{when}: {escape(stage['end_reason'])}")
    report = (folder / "report.html").is_file()
    console.print(
        f"results in [bold]{escape(str(folder))}[/bold]" + (": open report.html" if report else "")
    )
    if verified := summary.get("verification"):  # what was asked for, so last
        console.print(f"verified: {escape(verified['sentence'])}")
    return exit_code(summary)


def _print_figures(console: Console, summary: dict[str, Any]) -> None:
    """Errors, pace, tensions and what else a flight is known by."""
    from rich.markup import escape

    from musls_analysis.comparison.summary import facts, sentence

    if any(summary["errors"].values()):
        console.print(_error_table(summary["errors"]))
    compile_s = summary.get("compile_s", 0.0)
    once = f" (and {compile_s:.0f} s of compiling, once)" if compile_s > 0.5 else ""
    console.print(
        f"{summary['sim_time_s']:.1f} s flown in {summary['wall_time_s'] - compile_s:.2f} s{once}: "
        f"[bold]{summary['real_time_factor']:.1f}x real time[/bold] at steps of "
        f"{1e3 * summary['step_size_s']:g} ms"
    )
    if summary["tension"]:
        console.print(f"largest cable tension: {sentence(summary)}")
    for name, text in facts(summary):
        console.print(f"{name}: {escape(text)}")
    for name, battery in summary.get("batteries", {}).items():
        console.print(
            f"{name}: battery {100.0 * battery['charge_end']:.0f} % left, "
            f"{battery['mean_power_w']:.0f} W on average"
        )


# ---------- `musls fly --plan` and `--dry-run`


def show_plan(scenario: Scenario, out: Path | None, *, force: bool, overwrite: bool) -> None:
    """Check a scenario and print what it would do; nothing is flown."""
    from musls_bringup.before.planned import phases, prepare

    if out is not None:
        check_folder(out, overwrite=overwrite)
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        components = prepare(scenario, force=force)
    console = new_console()
    console.print(_table(phases(components.plan)))
    places = scenario.formation
    drones = scenario.system.n_drones
    if scenario.hanging is not None and places.places_m is None:
        console.print(
            f"formation: {drones} drone{'' if drones == 1 else 's'} at radius "
            f"{places.radius_m:.2f} m, {places.height_m:.2f} m above the load's set-point, "
            f"drone 1 at {places.first_azimuth_rad:.2f} rad"
        )
    margin = "" if scenario.hanging is None else f", {scenario.hanging.margin_sentence}"
    console.print(
        f"{scenario.name} can be flown by its plan: {components.plan.duration_s:.1f} s{margin}; "
        "nothing was flown (musls check flies it in memory, musls view --gif draws its set-points)"
    )


def _table(phases: list[PlannedPhase]) -> Table:
    units = {
        "begins": "s",
        "lasts": "s",
        "load's set-point from": "m, deg",
        "to": "m, deg",
        "at most": "m/s",
    }
    rows = [
        (
            phase.name.replace("_", " "),
            f"{phase.start_s:.1f}",
            f"{phase.duration_s:.1f}",
            _pose(phase.first),
            _pose(phase.last),
            f"{phase.speed_m_s:.2f}",
        )
        for phase in phases
    ]
    return new_table("phase", *(f"{name}\n{unit}" for name, unit in units.items()), rows=rows)


def _pose(pose: object) -> str:
    import numpy as np

    x, y, z, yaw_rad = np.asarray(pose, float)
    x, y, z = np.round([x, y, z], 2) + 0.0  # no minus before a zero
    return f"{x:.2f} {y:.2f} {z:.2f} {np.round(np.degrees(yaw_rad)) + 0.0:4.0f}"
