"""`musls ros`: ROS 2 without a ROS installation."""

from __future__ import annotations

from typing import Annotated

import typer

from musls_bringup.cli.options import FlightFolder, Overwrite, Report, ScenarioName, Settings
from musls_bringup.cli.progress import WorkShown

app = typer.Typer(
    name="ros",
    help="Sets up ROS 2 and flies scenarios through its graph of nodes.",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    epilog="\b\nExample:\n  musls ros fly circle",
)


@app.command("setup", epilog="\b\nExample:\n  ./musls ros setup")
def setup() -> None:
    """Builds the message packages that the ROS 2 wheels lack (./musls installs the wheels)."""
    from musls_bringup.ros.interfaces import px4_interface
    from musls_bringup.ros.workspace import set_up

    with WorkShown("ros setup") as shown:

        def say(text: str) -> None:
            shown.note(f"musls: {text}")
            shown.update(text)

        built = set_up(say)
    release = px4_interface().px4_release
    typer.echo(f"built: {', '.join(built)} (PX4 {release})" if built else "ROS 2 is set up")


@app.command("fly", epilog="\b\nExample:\n  musls ros fly circle --realtime")
def fly(
    scenario: ScenarioName,
    out: FlightFolder = None,
    settings: Settings = None,
    overwrite: Overwrite = False,
    realtime: Annotated[
        bool, typer.Option("--realtime", help="Fly in real time instead of in lockstep.")
    ] = False,
    controller: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Kind of controller: formation, payload.",
            show_default="scenario's",
        ),
    ] = None,
    report: Report = True,
) -> int:
    """Flies a scenario with simulator, formation, offboard and recorder as ROS 2 nodes."""
    from musls_bringup.cli.fly import conclude, controller_overrides
    from musls_bringup.cli.killed import keep_killed_runs
    from musls_bringup.fly import FlyOptions, find_scenario
    from musls_bringup.results import check_folder, default_folder
    from musls_bringup.ros.fly import fly_through_graph

    asked = [] if controller is None else controller_overrides(controller)
    chosen = find_scenario(scenario, [*(settings or []), *asked])
    folder = out or default_folder(f"{chosen.name}_ros")
    check_folder(folder, overwrite=overwrite)
    keep_killed_runs(folder)
    options = FlyOptions(overwrite=overwrite, realtime=realtime, report=report)
    with WorkShown(chosen.name, "starting the nodes (compiles on first use)") as shown:

        def progress(sim_s: float, wall_s: float, stage: str) -> None:
            factor = sim_s / max(wall_s, 1e-9)
            shown.update(f"{sim_s:6.1f} s  {factor:4.1f}x real time  {stage.replace('_', ' ')}")

        summary = fly_through_graph(chosen, folder, options, progress, shown.update)
    return conclude(summary, folder)
