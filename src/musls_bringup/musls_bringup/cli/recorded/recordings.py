"""`musls recordings`: what is in a recording, a picture of it, and other formats."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from musls_bringup.cli import options
from musls_bringup.cli.recorded.reading import read, reads
from musls_bringup.cli.terminal import new_console, new_table
from musls_description.config.errors import ConfigError, whole_file, writing


@reads("recording")
def run(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Vicon, Motive, EuRoC, TUM or other CSV, ULog, bag of ROS 1 or 2, result folder, "
            "or a folder with files of one body each.",
        ),
    ],
    png: Annotated[
        Path | None,
        options.out_path(help="Draw paths and heights into this PNG file.", metavar="FILE"),
    ] = None,
    to: Annotated[
        Literal["mcap", "csv", "tum"] | None, typer.Option(help="Write it in another format.")
    ] = None,
    out: Annotated[
        Path | None,
        options.out_path("NAME.mcap, NAME.csv, NAME.tum", help="What --to writes.", metavar="PATH"),
    ] = None,
    *,
    reading: Any,
) -> None:
    """Shows what is in a recording: bodies, rates, gaps, heights, units as understood."""
    from musls_analysis.recordings.contents import contents, write

    if out is not None and to is None:
        raise ConfigError("--out is for --to")
    if png is not None and png.suffix.lower() != ".png":
        raise ConfigError(f"--png {png}: must end in .png")
    flight = read(recording, reading)
    numbers = (
        "samples",
        "Hz",
        "from (s)",
        "to (s)",
        "longest gap (s)",
        "z (m)",
        "m/s",
        "tilt (deg)",
    )
    table = new_table("body", *numbers, "set-points")
    for one in contents(flight):
        low, high = one.height_m
        table.add_row(
            one.body,
            str(one.samples),
            f"{one.rate_hz:.4g}",
            f"{one.start_s:.3f}",
            f"{one.end_s:.3f}",
            f"{one.longest_gap_s:.3g}",
            f"{low:.2f} to {high:.2f}",
            f"{one.fastest_m_s:.2f}",
            "unknown" if isnan(one.tilt_deg) else f"{one.tilt_deg:.1f}",
            "yes" if one.has_setpoint else "no",
        )
    console = new_console()
    console.print(table)
    stages = [f"{s.name} {s.start_s:.1f} to {s.end_s:.1f} s" for s in flight.stages]
    console.print(f"stages: {', '.join(stages)}")
    if png is not None:
        from musls_analysis.figures import style
        from musls_analysis.figures.space import contents_figure

        with style.styled(), whole_file(png) as work:
            style.save(contents_figure(flight), work)
        console.print(f"picture in {png}")
    if to is not None:
        target = out or Path(f"{recording.stem}.{to}")
        with writing(target):
            write(flight, to, target)
        console.print(f"written to {target}")
