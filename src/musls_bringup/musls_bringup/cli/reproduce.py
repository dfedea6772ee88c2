"""`musls reproduce`: the seed paper's Table III from its real flights."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.cli.options import (
    Overwrite,
    RealFlights,
    Settings,
    SimulatedPoints,
    offsets_m,
    out_folder,
    worker_count,
)
from musls_bringup.cli.progress import WorkShown
from musls_description.errors import ConfigError

EXAMPLE = "musls reproduce flights/ --seeds 5 --system x500_trio_swivel"

_Systems = Annotated[
    list[str] | None,
    typer.Option(
        help="Shipped system or file. Each one given becomes a column.",
        show_default="x500_trio, x500_trio_swivel",
    ),
]


def run(
    flights: RealFlights,
    system: _Systems = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Flights per system.")] = 5,
    settings: Settings = None,
    offset: SimulatedPoints = None,
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
    from musls_bringup.fly import program
    from musls_bringup.reproduce import TABLE, ReproduceOptions, reproduce, table
    from musls_bringup.results import check_folder, default_folder

    folder = out or default_folder("reproduce")
    check_folder(folder, overwrite=overwrite)
    if fit_on and leave_stage_out:
        raise ConfigError("--fit-on, --leave-stage-out: choose one of the two")
    words = [program(), "reproduce", *map(str, flights), "--seeds", str(seeds)]
    fits = [str(flight) for flight in fit_on or ()]
    for option, values in (
        ("--system", system), ("--set", settings), ("--offset", offset), ("--fit-on", fits),
    ):  # fmt: skip
        words += [word for value in values or () for word in (option, value)]
    words += ["--leave-stage-out"] * leave_stage_out
    options = ReproduceOptions(
        systems=system or ["x500_trio", "x500_trio_swivel"],
        seeds=seeds,
        workers=workers or available_cores(),
        overrides=settings or [],
        offsets_m=offsets_m(offset),
        command=shlex.join(words),
        fit_on=fit_on or (),
        leave_stage_out=leave_stage_out,
    )
    with WorkShown("flights") as shown:

        def progress(done: int, total: int) -> None:
            shown.update(f"{done} of {total} done", done / total)

        columns = reproduce(flights, folder, options, overwrite=overwrite, progress=progress)
    print(table(columns, options))
    typer.echo(f"results in {folder}, the table in {TABLE}", err=True)
