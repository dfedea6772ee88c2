"""`musls fit-drones`: imperfections of real drones, from their recorded flights."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.cli.options import Overwrite, RealFlights, Settings, out_folder
from musls_bringup.cli.progress import WorkShown

EXAMPLE = "musls fit-drones flights/ --out runs/drones"


def run(
    flights: RealFlights,
    system: Annotated[str, typer.Option(help="Shipped system or file.")] = "x500_trio_swivel",
    settings: Settings = None,
    out: Annotated[Path | None, out_folder("runs/fit-drones_DATE_TIME")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Identifies the imperfections of real drones: tilts, delay, with 90 % intervals.

    Writes imperfections.yaml, for --set imperfections=FILE of any scenario.
    """
    from musls_analysis.paper.flights import some_cycles
    from musls_analysis.paper.imperfections import summary_of, write_fit
    from musls_bringup.fly import program
    from musls_bringup.reproduce import fit_drones
    from musls_bringup.results import check_folder, default_folder, result_folder

    folder = out or default_folder("fit-drones")
    check_folder(folder, overwrite=overwrite)
    words = [program(), "fit-drones", *map(str, flights), "--system", system]
    words += [word for value in settings or () for word in ("--set", value)]
    real = some_cycles(flights)
    with WorkShown("flights") as shown:

        def progress(done: int, total: int) -> None:
            shown.update(f"{done} of {total} simulated", done / total)

        fit = fit_drones(real, [*(settings or ()), f"system={system}"], progress=progress)
    with result_folder(folder, overwrite=overwrite) as work:
        write_fit(fit, work, shlex.join(words))
    print("\n".join(summary_of(fit)))
    typer.echo(f"results in {folder}: --set imperfections={folder}/imperfections.yaml", err=True)
