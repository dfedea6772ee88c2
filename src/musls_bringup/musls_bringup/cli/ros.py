"""`musls ros`: ROS 2 without a ROS installation."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.catalogue.overrides import flight_overrides
from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import options
from musls_bringup.flight.progress import ProgressDisplay
from musls_bringup.flight.results import chosen_folder

app = typer.Typer(
    name="ros",
    help="Sets up ROS 2 and flies scenarios through its graph of nodes.",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
)


@app.command("setup", epilog="\b\nExample:\n  ./musls ros setup --px4 v1.18")
def setup(
    px4: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE",
            help="PX4 whose messages are built: v1.15 to v1.18, or the folder of its sources.",
            show_default="what is installed, else v1.17",
        ),
    ] = None,
) -> None:
    """Builds what the ROS 2 wheels lack (./musls installs the wheels)."""
    from musls_bringup.ros.workspace import installed_px4, set_up

    with ProgressDisplay("ros setup") as display:

        def say(text: str) -> None:
            display.note(f"musls: {text}")
            display.update(text)

        packages = set_up(say, px4)
    what = f"built: {', '.join(packages)}" if packages else "ROS 2 is set up"
    release = installed_px4()
    typer.echo(f"{what} (messages of PX4 {release})" if release else what)


@app.command("fly", epilog="\b\nExample:\n  musls ros fly circle --realtime")
def fly(
    scenario: options.ScenarioName,
    out: options.FlightFolder = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    autopilot: options.Autopilot = None,
    overwrite: options.Overwrite = False,
    realtime: Annotated[
        bool, typer.Option("--realtime", help="Fly in real time instead of in lockstep.")
    ] = False,
    controller: options.OwnController = None,
    force: options.Force = False,
    report: options.Report = True,
) -> int:
    """Flies a scenario as a graph of ROS 2 nodes.

    Simulator, formation, offboard and recorder.
    """
    from musls_bringup.cli.fly import conclude
    from musls_bringup.flight.fly import FlyOptions
    from musls_bringup.ros.graph_flight import fly_through_graph

    flight_scenario = find_scenario(
        scenario, flight_overrides(settings, seed, autopilot, controller)
    )
    folder = chosen_folder(out, f"{flight_scenario.name}_ros", overwrite=overwrite)
    flight_options = FlyOptions(overwrite=overwrite, realtime=realtime, force=force, report=report)
    with ProgressDisplay(
        flight_scenario.name, "starting the nodes (compiles on first use)"
    ) as display:

        def progress(sim_s: float, wall_s: float, stage: str) -> None:
            factor = sim_s / max(wall_s, 1e-9)
            display.update(f"{sim_s:6.1f} s  {factor:4.1f}x real time  {stage.replace('_', ' ')}")

        summary = fly_through_graph(
            flight_scenario, folder, flight_options, progress, display.update, display.note
        )
    return conclude(summary, folder)


def _list_faults(asked: bool) -> None:
    """Name the faults of a rehearsal and end; no scenario is needed for it."""
    if not asked:
        return
    from musls_bringup.ros.rehearsal import FAULTS

    for fault in FAULTS.values():
        typer.echo(f"{fault.name:12} {fault.what.format(drone='a drone', other='another')}")
    raise typer.Exit


@app.command("rehearse", epilog="\b\nExample:\n  musls ros rehearse circle --faults frozen,swapped")
def rehearse(
    scenario: options.ScenarioName,
    out: Annotated[Path | None, options.out_path("runs/SCENARIO_rehearsal_DATE_TIME")] = None,
    faults: Annotated[
        str, typer.Option(metavar="all|NAME,NAME", help="Faults, one a flight: see --list.")
    ] = "all",
    settings: options.Settings = None,
    domain: Annotated[
        int,
        typer.Option(min=0, max=232, help="ROS domain, on which no real drone may listen."),
    ] = 87,
    force: Annotated[
        str, typer.Option(metavar="REASON", help="Fly in spite of what speaks against it.")
    ] = "",
    overwrite: options.Overwrite = False,
    lists: Annotated[
        bool,
        typer.Option(
            "--list", help="Name the faults and end.", is_eager=True, callback=_list_faults
        ),
    ] = False,
) -> int:
    """Flies the nodes of a real flight with one fault after another, in real time.

    A simulated hall with motion capture and stand-ins for PX4s. Writes rehearsal.csv and
    rehearsal.md; the exit code is 1 if a limit is broken.
    """
    from musls_bringup.ros.rehearsal import Row, cells_of, chosen_faults
    from musls_bringup.ros.rehearsal import rehearse as fly_all

    fault_list = chosen_faults(faults)
    flight_scenario = find_scenario(scenario, settings or [])
    folder = chosen_folder(out, f"{flight_scenario.name}_rehearsal", overwrite=overwrite)
    shutil.rmtree(folder, ignore_errors=True)
    with ProgressDisplay(f"rehearse {flight_scenario.name}") as display:

        def done(row: Row) -> None:
            fault, _, seen_by, within, farthest, shift_m, _, outcome, limits = cells_of(row)
            display.note(
                f"{fault}: {seen_by[:60]}, within {within or '-'} s, farthest drone {farthest} m, "
                f"load moved {shift_m} m; {outcome}; limits {limits}"
            )

        rows = fly_all(
            flight_scenario, fault_list, folder, display.update, done, domain=domain, force=force
        )
    broken = [row.fault for row in rows if row.broken]
    typer.echo((folder / "rehearsal.md").read_text(encoding="utf-8"))
    typer.echo(f"{len(rows)} flights, limits broken in {', '.join(broken) or 'none'}: {folder}")
    return 1 if broken else 0


@app.command("ask", epilog="\b\nExample:\n  musls ros ask resume")
def ask(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="start, pause, resume, abort or land.")
    ],
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="ROS namespace of the nodes, such as hall1.")
    ] = "",
) -> int:
    """Asks a running flight for something, prints its answer.

    It needs no ros2 command.
    """
    from musls_bringup.ros.workspace import check_ros
    from musls_control.nodes.ask_flight import ask_flight

    check_ros()
    success, answer = ask_flight(what, namespace)
    typer.echo(answer)
    return 0 if success else 1


@app.command("stop", epilog="\b\nExample:\n  musls ros stop")
def stop(
    everything: Annotated[
        bool, typer.Option("--all", help="Also nodes whose flight or launch still runs.")
    ] = False,
) -> int:
    """Ends nodes that an earlier run has left behind, and names them."""
    from musls_bringup.ros.processes import end, running_nodes

    nodes = [node for node in running_nodes() if everything or node.orphan]
    if not nodes:
        typer.echo("no node is left of an earlier run")
        return 0
    killed = {node.pid for node in end(nodes)}
    for node in nodes:
        how = "killed" if node.pid in killed else "ended"
        typer.echo(f"{how}: {node.name} (process {node.pid})")
    return 0
