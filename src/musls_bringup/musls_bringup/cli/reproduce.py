"""`musls reproduce` and `musls fit-drones`: the seed paper's Table III from its real flights."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from musls_bringup.cli.options import (
    Frames,
    Overwrite,
    RealFlights,
    Settings,
    SimulatedPoints,
    frames_of,
    offsets_m,
    out_folder,
    worker_count,
)
from musls_bringup.cli.terminal import ProgressDisplay
from musls_description.errors import ConfigError


def run(
    flights: RealFlights,
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="Shipped system or file. Each one given becomes a column.",
            show_default="x500_trio, x500_trio_swivel",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Flights per system.")] = 5,
    settings: Settings = None,
    offset: SimulatedPoints = None,
    frames: Frames = None,
    fit_on: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FLIGHTS",
            help="Identify the drones' imperfections from these flights; repeat for several.",
        ),
    ] = None,
    leave_stage_out: Annotated[
        bool,
        typer.Option(
            "--leave-stage-out", help="Identify them for each stage from the other stages."
        ),
    ] = False,
    workers: Annotated[int | None, worker_count("one per core")] = None,
    out: Annotated[Path | None, out_folder("runs/reproduce_DATE_TIME")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Flies the paper's missions several times and compares them with its real flights."""
    from musls_analysis.sweep.run import available_cores
    from musls_bringup.reproduce import TABLE, ReproduceOptions, reproduce, table
    from musls_bringup.results import chosen_folder

    folder = chosen_folder(out, "reproduce", overwrite=overwrite)
    if fit_on and leave_stage_out:
        raise ConfigError("--fit-on, --leave-stage-out: choose one of the two")
    command = _command(
        "reproduce", *map(str, flights), seeds=[seeds], system=system, set=settings, offset=offset,
        fit_on=fit_on, topic=frames,
    )  # fmt: skip
    options = ReproduceOptions(
        systems=system or ["x500_trio", "x500_trio_swivel"],
        seeds=seeds,
        workers=workers or available_cores(),
        overrides=settings or [],
        offsets_m=offsets_m(offset),
        frames=frames_of(frames),
        command=command + " --leave-stage-out" * leave_stage_out,
        fit_on=fit_on or (),
        leave_stage_out=leave_stage_out,
    )
    with ProgressDisplay("flights") as shown:
        columns = reproduce(flights, folder, options, overwrite=overwrite, progress=shown.count)
    print(table(columns, options))
    typer.echo(f"results in {folder}, the table in {TABLE}", err=True)


def fit(
    flights: RealFlights,
    system: Annotated[str, typer.Option(help="Shipped system or file.")] = "x500_trio_swivel",
    settings: Settings = None,
    frames: Frames = None,
    out: Annotated[Path | None, out_folder("runs/fit-drones_DATE_TIME")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Identifies the imperfections of real drones: tilts, delay, with 90 % intervals.

    Writes imperfections.yaml, for --set imperfections=FILE of any scenario.
    """
    from musls_analysis.paper.flights import some_cycles
    from musls_analysis.paper.imperfections import summary_of, write_fit
    from musls_bringup.reproduce import fit_drones
    from musls_bringup.results import chosen_folder, result_folder

    folder = chosen_folder(out, "fit-drones", overwrite=overwrite)
    real = some_cycles(flights, frames_of(frames))
    with ProgressDisplay("flights") as shown:
        found = fit_drones(real, [*(settings or ()), f"system={system}"], progress=shown.count)
    with result_folder(folder, overwrite=overwrite) as work:
        write_fit(
            found,
            work,
            _command("fit-drones", *map(str, flights), system=[system], set=settings, topic=frames),
        )
    print("\n".join(summary_of(found)))
    typer.echo(f"results in {folder}: --set imperfections={folder}/imperfections.yaml", err=True)


def _command(*words: str, **options: Sequence[Any] | None) -> str:
    """The command that was given, with each value of its options."""
    from musls_bringup.fly import program

    for name, values in options.items():
        words += tuple(w for v in values or () for w in (f"--{name.replace('_', '-')}", str(v)))
    return shlex.join((program(), *words))
