"""`musls identify`: parameters of a system from several recordings, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.cli.options import (
    Frames,
    Overwrite,
    RealFlights,
    RecordedPoints,
    frames_of,
    offsets_m,
    out_folder,
    worker_count,
)
from musls_bringup.cli.terminal import ProgressDisplay, tell
from musls_description.errors import ConfigError


def run(
    flights: RealFlights,
    system: Annotated[
        str, typer.Option(help="Shipped system or file; cables free to twist are needed.")
    ] = "x500_trio_swivel",
    cable_model: Annotated[
        str, typer.Option(metavar="MODEL", help="Cable model (see musls list cable-models).")
    ] = "rigid_links:5",
    parameters: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Parameters among which is chosen (docs/replay.md); by default all that several "
            "recordings can tell apart.",
        ),
    ] = None,
    drones: Annotated[
        bool, typer.Option(help="Identify tilts and delay of the drones, too (as fit-drones).")
    ] = True,
    offset: RecordedPoints = None,
    frames: Frames = None,
    workers: Annotated[int | None, worker_count("one per core", "Processes.")] = None,
    out: Annotated[Path | None, out_folder("runs/identify_DATE_TIME")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Identifies a system from recordings: what they tell of it, with 90 % intervals.

    Keeps what predicts recordings better that it was not fitted to. Writes system.yaml to fly with,
    imperfections.yaml of the drones, identified.json and a figure.
    """
    from musls_analysis.paper.flights import some_cycles
    from musls_analysis.paper.imperfections import summary_of, write_fit
    from musls_analysis.recordings.readers import ReadOptions, read_recording
    from musls_analysis.replay import Replay, ReplaySpec
    from musls_analysis.replay.identify import identify, write_identified
    from musls_analysis.sweep.run import available_cores
    from musls_bringup.cli.replay import system_to_replay
    from musls_bringup.reproduce import fit_drones
    from musls_bringup.results import chosen_folder, result_folder

    folder = chosen_folder(out, "identify", overwrite=overwrite)
    chosen, options = system_to_replay(system), ReadOptions(frames=frames_of(frames))
    spec = ReplaySpec(offsets_m=offsets_m(offset))
    read = [read_recording(file, options) for file in _recordings(flights)]
    for warning in dict.fromkeys(w for recording in read for w in recording.warnings):
        tell("warning", warning)
    replays = [Replay(recording, spec) for recording in read]
    names = None if parameters is None else parameters.split(",")
    with result_folder(folder, overwrite=overwrite) as work:
        with ProgressDisplay("identifying", "compiles on first use") as shown:
            found = identify(
                replays, chosen, names, cable_model=cable_model,
                workers=workers or available_cores(), progress=shown.update,
            )  # fmt: skip
        write_identified(found, work)
        print(found)
        if drones:
            try:
                real = some_cycles(flights, frames_of(frames))
                with ProgressDisplay("flights") as shown:
                    fitted = fit_drones(real, [f"system={work}/system.yaml"], progress=shown.count)
            except ConfigError as error:
                tell("note", f"drones are not identified: {error}")
            else:
                write_fit(fitted, work, f"musls identify {' '.join(map(str, flights))}")
                print("\n".join(summary_of(fitted)))
    typer.echo(f"results in {folder}: --set system={folder}/system.yaml", err=True)


def _recordings(flights: Sequence[Path]) -> Iterator[Path]:
    """Each recording of its own; a folder with CSV files stands for these."""
    for place in flights:
        yield from sorted(place.glob("*.csv")) or [place]
