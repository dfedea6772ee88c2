"""`musls reproduce`, `fit-drones`, `paper`: what papers show, and the seed paper's real flights."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from musls_bringup.cli import options
from musls_bringup.cli.recorded.reading import reads
from musls_bringup.cli.terminal import new_console, new_table
from musls_bringup.flight.progress import ProgressDisplay
from musls_bringup.flight.results import chosen_folder, result_folder
from musls_description.config.errors import ConfigError


@reads("flights", "fit_on")
def run(
    flights: options.RealFlights,
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="Shipped system or file. Each one given becomes a column.",
            show_default="x500_trio, x500_trio_swivel",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Flights per system.")] = 5,
    settings: options.Settings = None,
    offset: options.SimulatedPoints = None,
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
    workers: Annotated[int | None, options.worker_count("one per core")] = None,
    out: Annotated[Path | None, options.out_path("runs/reproduce_DATE_TIME")] = None,
    overwrite: options.Overwrite = False,
    *,
    reading: Any,
) -> None:
    """Flies the paper's missions several times and compares them with its real flights."""
    from musls_bringup.papers.reproduce import TABLE, ReproduceOptions, reproduce, table

    folder = chosen_folder(out, "reproduce", overwrite=overwrite)
    if fit_on and leave_stage_out:
        raise ConfigError("--fit-on, --leave-stage-out: choose one of the two")
    command = _command(
        "reproduce",
        *map(str, flights),
        seeds=[seeds],
        system=system,
        set=settings,
        offset=offset,
        fit_on=fit_on,
    )
    reproduce_options = ReproduceOptions(
        systems=system or ["x500_trio", "x500_trio_swivel"],
        seeds=seeds,
        workers=workers,
        overrides=settings or [],
        offsets_m=options.offsets_m(offset),
        reading=reading,
        command=command + " --leave-stage-out" * leave_stage_out,
        fit_on=fit_on or (),
        leave_stage_out=leave_stage_out,
    )
    with ProgressDisplay("flights") as display:
        columns = reproduce(
            flights, folder, reproduce_options, overwrite=overwrite, progress=display.count
        )
    print(table(columns, reproduce_options))
    typer.echo(f"results in {folder}, the table in {TABLE}", err=True)


@reads("flights")
def fit(
    flights: options.RealFlights,
    system: Annotated[str, typer.Option(help="Shipped system or file.")] = "x500_trio_swivel",
    settings: options.Settings = None,
    out: Annotated[Path | None, options.out_path("runs/fit-drones_DATE_TIME")] = None,
    overwrite: options.Overwrite = False,
    *,
    reading: Any,
) -> None:
    """Identifies the imperfections of real drones: tilts, delay, with 90 % intervals.

    Writes imperfections.yaml, for --set imperfections=FILE of any scenario, and posterior.yaml, for
    musls montecarlo --vary FILE: what another flight may have.
    """
    from musls_analysis.estimation.drones import summary_of, write_fit
    from musls_analysis.paper.flights import some_cycles
    from musls_bringup.papers.reproduce import fit_drones

    folder = chosen_folder(out, "fit-drones", overwrite=overwrite)
    real = some_cycles(flights, reading)
    overrides = [f"system={system}", *(settings or ())]
    with ProgressDisplay("flights") as display:
        drone_fit = fit_drones(real, overrides, progress=display.count)
    with result_folder(folder, overwrite=overwrite) as work:
        write_fit(
            drone_fit,
            work,
            _command("fit-drones", *map(str, flights), system=[system], set=settings),
            overrides,
        )
    print("\n".join(summary_of(drone_fit)))
    typer.echo(f"results in {folder}: --set imperfections={folder}/imperfections.yaml", err=True)


def _command(*words: str, **options: Sequence[Any] | None) -> str:
    """The command that was given, with each value of its options."""
    from musls_bringup.flight.fly import program

    for name, values in options.items():
        words += tuple(w for v in values or () for w in (f"--{name.replace('_', '-')}", str(v)))
    return shlex.join((program(), *words))


# ---------- `musls paper`


def paper(
    name: Annotated[
        str,
        typer.Argument(
            help="000, 001, 002, 003, 004, or a YAML file like theirs.", metavar="PAPER"
        ),
    ],
    flights: Annotated[
        list[Path] | None,
        typer.Argument(help="Recordings of the seed paper (000), for its Table III."),
    ] = None,
    out: Annotated[Path | None, options.out_path("runs/paper_NAME_DATE_TIME")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Flies what a paper shows: its numbers beside ours, and what differs."""
    from musls_analysis.report.report import number
    from musls_bringup.papers.paper import reproduce_paper

    folder = chosen_folder(out, f"paper_{Path(name).stem}", overwrite=overwrite)
    with ProgressDisplay("flights") as display:
        results = reproduce_paper(
            name, folder, flights or (), overwrite=overwrite, progress=display.count
        )
    console = new_console(markup=False)
    for group in dict.fromkeys(result.group for result in results):
        rows = [
            (
                r.row.what,
                r.row.unit,
                number(r.row.paper),
                "-" if r.ours is None else number(r.ours),
                "-" if r.ratio is None else f"{r.ratio:.2f}",
            )
            for r in results
            if r.group == group
        ]
        console.print(new_table(group, "unit", "paper", "ours", "ours / paper", rows=rows))
        console.print()
    typer.echo(f"results in {folder}: open report.html", err=True)
