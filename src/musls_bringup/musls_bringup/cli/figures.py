"""`musls figures`: figures of a recording for papers and talks."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from musls_bringup.cli.options import out_folder, within
from musls_description.errors import ConfigError

EXAMPLE = "musls figures runs/mine pose_load tensions --format pdf --width 181 --font serif"


class Format(str, Enum):
    """File formats."""

    PDF = "pdf"
    SVG = "svg"
    PNG = "png"


class Font(str, Enum):
    """Kinds of letters."""

    SANS = "sans"
    SERIF = "serif"


def run(
    recording: Annotated[
        Path, typer.Argument(metavar="RUN", help="Result folder, bag, flight log or CSV excerpt.")
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIGURE", help="Figures to draw, by name.", show_default="all"),
    ] = None,
    formats: Annotated[
        list[Format] | None,
        typer.Option("--format", help="File format; repeat for several.", show_default="pdf"),
    ] = None,
    width: Annotated[
        float,
        typer.Option(metavar="MM", help="Width: 181 fits a page of two columns, 88 one column."),
    ] = 181.0,
    font: Annotated[Font, typer.Option(help="Kind of letters.")] = Font.SANS,
    out: Annotated[Path | None, out_folder("figures in the RUN folder")] = None,
) -> None:
    """Draws the report's figures again, as PDF, SVG or PNG of a given width."""
    from musls_analysis.figures.flight import write_for_paper
    from musls_analysis.figures.style import Paper
    from musls_analysis.recordings.readers import read_recording
    from musls_analysis.report.summary import summarise

    within("--width", width, 60.0, 500.0, " mm")
    chosen = [one.value for one in formats or [Format.PDF]]
    flight = read_recording(recording)
    summary: dict[str, Any] = {}
    if (recording / "summary.json").is_file():
        summary = json.loads((recording / "summary.json").read_text(encoding="utf-8"))
    threshold = summary.get("slack_threshold_n")
    summary = {**summarise(flight, **({"slack_threshold_n": threshold} if threshold else {})),
               **summary}  # fmt: skip
    folder = out or (recording if recording.is_dir() else Path()) / "figures"
    paper = Paper(width_m=width / 1000.0, font=font.value)
    try:
        written = write_for_paper(flight, summary, folder, chosen, names or (), paper)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from None
    for path in written:
        typer.echo(path)
