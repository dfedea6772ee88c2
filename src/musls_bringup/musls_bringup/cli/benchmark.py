"""`musls benchmark`: controllers on the same flights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.cli.options import Overwrite, path_of, worker_count
from musls_bringup.cli.terminal import ProgressDisplay, new_console, new_table


def run(
    controllers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND|FILE.py:CLASS]...", help="Controllers; default formation and payload."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three tasks with three drones.")] = False,
    workers: Annotated[int | None, worker_count("as many as there are cores")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=path_of,
            metavar="FOLDER",
            help="Write results.json, results.csv, table.html, table.tex.",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Compares controllers on a fixed set of flights, all with rigid links and motion capture."""
    from musls_analysis.sweep.run import available_cores
    from musls_bringup import benchmark as bench
    from musls_description.errors import MuslsError

    if out is not None and (out / "results.json").exists() and not overwrite:
        raise MuslsError(f"{out} holds older results; --overwrite replaces them")
    with ProgressDisplay("benchmark") as display:
        rows = bench.benchmark(
            tuple(controllers or bench.BASELINES),
            quick=quick,
            workers=workers or available_cores(),
            progress=display.count,
        )
    heads, cells = bench.table(rows)
    console = new_console()
    console.print(new_table(*heads, title=f"benchmark {bench.TASKS.stem}", rows=cells))
    for row in rows:
        if not row["success"]:
            tell = f"{row['task']}, {row['drones']} drones, {row['controller']}"
            console.print(f"failed: {tell}, seed {row['seed']}: {row['reason']}", markup=False)
    console.print(f"digest {bench.digest(rows)}")
    if out is not None:
        console.print(", ".join(str(path) for path in bench.write(rows, out)))
