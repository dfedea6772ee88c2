"""`musls paper`: what a paper shows, flown again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.cli.options import Overwrite, out_folder
from musls_bringup.cli.terminal import ProgressDisplay, new_console, new_table


def run(
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
    out: Annotated[Path | None, out_folder("runs/paper_NAME_DATE_TIME")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Flies what a paper shows: its numbers beside ours, and what differs."""
    from musls_analysis.report.report import number
    from musls_bringup.paper import reproduce_paper
    from musls_bringup.results import chosen_folder

    folder = chosen_folder(out, f"paper_{Path(name).stem}", overwrite=overwrite)
    with ProgressDisplay("flights") as shown:
        results = reproduce_paper(
            name, folder, flights or (), overwrite=overwrite, progress=shown.count
        )
    console = new_console(markup=False)
    for group in dict.fromkeys(result.group for result in results):
        rows = [
            (
                r.row.what, r.row.unit, number(r.row.paper),
                "-" if r.ours is None else number(r.ours),
                "-" if r.ratio is None else f"{r.ratio:.2f}",
            )
            for r in results if r.group == group
        ]  # fmt: skip
        console.print(new_table(group, "unit", "paper", "ours", "ours / paper", rows=rows))
        console.print()
    typer.echo(f"results in {folder}: open report.html", err=True)
