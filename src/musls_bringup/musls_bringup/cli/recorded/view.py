"""`musls view`, `figures`, `studio`: look at a recording in 3-D, in figures and in a browser."""

from __future__ import annotations

import os
from dataclasses import replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from musls_bringup.catalogue.shipped import SCENARIOS, find_scenario, names_in
from musls_bringup.cli import options
from musls_bringup.cli.recorded.reading import read, reads, tell_of
from musls_bringup.cli.terminal import tell
from musls_bringup.flight.progress import ProgressDisplay
from musls_description.config.errors import (
    ConfigError,
    MuslsError,
    install_command,
    whole_file,
    writing,
)
from musls_description.config.strict_yaml import read_json

if TYPE_CHECKING:
    from musls_analysis.scene import Subject
    from musls_analysis.view.film import FilmOptions
    from musls_analysis.view.picture import PictureOptions

LONGEST_TRAIL_S = 86400.0
LARGEST_SHIFT_S = 1e10
"""Largest time; the clock of a recording may begin in 1970."""

GIF_FPS = 20.0
MP4_FPS = 30.0


@reads("recording")
def run(
    recording: Annotated[
        Path,
        typer.Argument(
            help="Result folder, bag, flight log or CSV; a scenario shows its set-points.",
            metavar="RUN",
        ),
    ],
    other: Annotated[
        Path | None, typer.Option("--with", metavar="OTHER", help="Lay this recording over RUN.")
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Show this stage only, and align OTHER by it."),
    ] = None,
    shift: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Time by which OTHER is moved [s].",
            show_default="so that the stages coincide",
        ),
    ] = None,
    skip_with: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Number of cycles to leave out at the start of OTHER."
        ),
    ] = 0,
    png: Annotated[
        float | None,
        typer.Option(metavar="T", help="Write a picture of the flight at this time [s]."),
    ] = None,
    gif: Annotated[bool, typer.Option("--gif", help="Write an animated GIF.")] = False,
    mp4: Annotated[bool, typer.Option("--mp4", help="Write a film (H.264).")] = False,
    save: Annotated[
        Path | None,
        options.out_path(True, "Write a file for rerun's viewer.", "FILE.rrd"),
    ] = None,
    html: Annotated[
        Path | None,
        options.out_path(
            help="Write one page with 3-D, curves and errors, for any browser, without network.",
            metavar="FILE.html",
        ),
    ] = None,
    web: Annotated[
        bool, typer.Option("--web", help="Show it in a browser instead of a window.")
    ] = False,
    out: Annotated[
        Path | None,
        options.out_path("RUN.png, .gif or .mp4", "Output file of the picture or film.", "FILE"),
    ] = None,
    fps: Annotated[
        float | None, typer.Option(help="Frames per second.", show_default="20 for gif, 30 for mp4")
    ] = None,
    speed: Annotated[
        float, typer.Option(help="Seconds of the flight in one second of the film.")
    ] = 1.0,
    azimuth: Annotated[
        float,
        typer.Option(
            metavar="DEG", help="Direction in which the camera stands, counter-clockwise from east."
        ),
    ] = -62.0,
    elevation: Annotated[
        float, typer.Option(metavar="DEG", help="Height of the camera above the horizon.")
    ] = 17.0,
    zoom: Annotated[float, typer.Option(help="Magnification; above 1 is closer.")] = 1.0,
    follow: Annotated[
        bool, typer.Option("--follow", help="The camera moves along with the load.")
    ] = False,
    trail: Annotated[
        float, typer.Option(metavar="S", min=0.0, help="Length of the trails [s].")
    ] = 3.0,
    narrow: Annotated[
        bool,
        typer.Option("--narrow", help="Layout for a phone or one column, with larger texts."),
    ] = False,
    system: Annotated[
        str | None,
        typer.Option(
            help="Shipped system or file: what load and drones look like.",
            show_default="the scenario's beside the recording, else x500_trio",
        ),
    ] = None,
    offset: options.RecordedPoints = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an older file.")] = False,
    *,
    reading: Any,
) -> None:
    """Shows load, drones, cables, set-points and tensions in 3-D over time."""
    kind = _kind(png, gif, mp4, save, html, web)
    options.within("--trail", trail, 0.0, LONGEST_TRAIL_S, " s")
    path = save or html or out or Path(f"{Path(os.path.realpath(recording)).stem}.{kind}")
    if kind not in ("viewer", "web"):
        _check_file(path, kind, overwrite)
    if out and kind not in ("png", "gif", "mp4"):
        raise ConfigError("--out is for --png, --gif and --mp4")
    if (fps is not None or speed != 1.0) and kind not in ("gif", "mp4"):
        raise ConfigError("--fps and --speed are for --gif and --mp4")
    if html and offset:
        raise ConfigError("--html shows the recorded points: --offset is not for it")
    if other is None and (shift is not None or skip_with):
        raise ConfigError("--shift and --skip-with are for --with OTHER")
    if shift is not None:
        options.within("--shift", shift, -LARGEST_SHIFT_S, LARGEST_SHIFT_S, " s")
    if kind in ("viewer", "web", "rrd"):
        from musls_analysis.view import rerun_log  # says, before the reading, what is missing
    first = _planned(recording, system)
    if first is None:
        from musls_analysis.scene import open_subject

        first = open_subject(recording, system, reading, options.offsets_m(offset))
    subjects = _laid_over(first, other, system, stage, shift, skip_with)
    if kind in ("viewer", "web"):
        _show(subjects, in_browser=web)
    elif kind == "rrd":
        rerun_log.save(subjects, path)
        typer.echo(f"written to {path}: open with rerun {path}")
    elif kind == "html":
        _write_page(subjects, path)
    else:
        from musls_analysis.view.film import FilmOptions
        from musls_analysis.view.picture import NARROW, WIDE, PictureOptions

        look = PictureOptions(azimuth, elevation, zoom, follow, trail, NARROW if narrow else WIDE)
        default_fps = GIF_FPS if gif else MP4_FPS
        moving = FilmOptions(default_fps if fps is None else fps, speed)
        _draw(subjects, stage, path, look, moving if png is None else png)


def _show(subjects: list[Subject], *, in_browser: bool) -> None:
    """Open rerun's viewer, or serve it to a browser until Ctrl-C."""
    from musls_analysis.view import rerun_log

    if not in_browser:
        return rerun_log.show(subjects)
    import threading
    import webbrowser

    with rerun_log.serve(subjects) as address:
        typer.echo(f"musls view: {address}; Ctrl-C ends it", err=True)
        webbrowser.open(address)
        threading.Event().wait()


def _write_page(subjects: list[Subject], path: Path) -> None:
    """Write one HTML page with 3-D and curves."""
    from musls_analysis.view.page import page_html

    names, recordings = zip(*((one.name, one.recording) for one in subjects), strict=True)
    with whole_file(path) as work:
        systems = [one.system for one in subjects]
        page = page_html(names, recordings, subjects[-1].shift_s, systems=systems)
        work.write_text(page, encoding="utf-8")
    typer.echo(f"page in {path}")


def _draw(
    subjects: list[Subject],
    stage: str | None,
    path: Path,
    look: PictureOptions,
    film_or_time: FilmOptions | float,
) -> None:
    """Write a film, or the picture of a time [s]."""
    from musls_analysis.scene import shown_window
    from musls_analysis.view import film

    window_s = shown_window(subjects, stage)
    if isinstance(film_or_time, film.FilmOptions):
        with ProgressDisplay(path.name) as display:
            film.write_film(subjects, window_s, path, look, film_or_time, display.share)
        typer.echo(f"film in {path}")
    else:
        film.write_png(subjects, window_s, film_or_time, path, look)
        typer.echo(f"picture in {path}")


def _kind(
    png: float | None, gif: bool, mp4: bool, save: Path | None, html: Path | None, web: bool
) -> str:
    """Kind of output: "viewer", "web", "rrd", "html", "png", "gif" or "mp4"."""
    flags = {
        "png": png is not None,
        "gif": gif,
        "mp4": mp4,
        "rrd": save is not None,
        "html": html is not None,
        "web": web,
    }
    kinds = [kind for kind, flag in flags.items() if flag]
    if len(kinds) > 1:
        names = " and ".join("--save" if kind == "rrd" else f"--{kind}" for kind in kinds)
        raise ConfigError(f"{names} exclude each other: choose one")
    return kinds[0] if kinds else "viewer"


def _check_file(path: Path, kind: str, overwrite: bool) -> None:
    """Refuse a file that cannot be written, before anything is read."""
    if path.suffix.lower() != f".{kind}":
        raise ConfigError(f"{path}: must end in .{kind}")
    if os.path.isdir(path):
        raise ConfigError(f"{path} is a folder")
    if os.path.lexists(path) and not overwrite:
        raise ConfigError(f"{path} exists; --overwrite replaces it")
    if not os.path.isdir(path.parent):
        raise ConfigError(f"{path}: no such folder {path.parent}")


def _planned(name: Path, system: str | None) -> Subject | None:
    """The set-points of a scenario; None for a recording."""
    is_file = name.suffix in (".yaml", ".yml") and os.path.isfile(name)
    if not is_file and (os.path.exists(name) or str(name) not in names_in(SCENARIOS)):
        return None
    from musls_bringup.before.planned import planned, prepare

    scenario = find_scenario(str(name), [f"system={system}"] if system else [])
    return planned(scenario, prepare(scenario, force=True))


def _laid_over(
    first: Subject,
    other: Path | None,
    system: str | None,
    stage: str | None,
    shift_s: float | None,
    skip: int,
) -> list[Subject]:
    """The first subject and the other recording, shifted; says what is doubtful about them."""
    subjects = [first]
    doubts: list[str] = []
    if other is not None:
        from musls_analysis.scene import aligning_shift_s, open_subject

        second = open_subject(other, system)
        if shift_s is None:
            shift_s, doubts = aligning_shift_s(first.recording, second.recording, stage, skip)
            typer.echo(f"{second.name} shifted by {shift_s:.3f} s", err=True)
        subjects.append(replace(second, shift_s=shift_s))
    for subject in subjects:
        tell_of(subject.recording)
    for line in doubts:
        tell("warning", line)
    return subjects


# ---------- `musls figures`

Format = Enum("Format", {"PDF": "pdf", "SVG": "svg", "PNG": "png"}, type=str)


def figures(
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
    font: Annotated[Literal["sans", "serif"], typer.Option(help="Kind of letters.")] = "sans",
    stage: Annotated[
        str | None, typer.Option(metavar="NAME", help="Draw this stage only.", show_default="all")
    ] = None,
    begin: Annotated[
        float | None, typer.Option("--from", metavar="S", help="Draw what follows this time [s].")
    ] = None,
    end: Annotated[
        float | None, typer.Option("--to", metavar="S", help="Draw what precedes this time [s].")
    ] = None,
    other: Annotated[
        Path | None,
        typer.Option(
            "--with", metavar="OTHER", help="Lay this recording over poses, paths and tensions."
        ),
    ] = None,
    out: Annotated[Path | None, options.out_path("figures in the RUN folder")] = None,
) -> None:
    """Draws the report's figures again, as PDF, SVG or PNG of a given width."""
    from musls_analysis.comparison.cycles import stage_windows
    from musls_analysis.comparison.summary import summarise
    from musls_analysis.figures.flight import write_for_paper

    options.within("--width", width, 60.0, 500.0, " mm")
    flight = read(recording)
    whole = flight
    if stage is not None:
        windows = stage_windows(flight, stage)
        flight = flight.between(windows[0].start_s, windows[-1].end_s)
    if begin is not None or end is not None:
        first_s = flight.start_s if begin is None else begin
        flight = flight.between(first_s, flight.end_s if end is None else end)
    file_summary: dict[str, Any] = {}
    if (recording / "summary.json").is_file():
        file_summary = read_json(recording / "summary.json")
    arguments = {k: v for k, v in file_summary.items() if k == "slack_threshold_n" and v}
    summary = summarise(flight, **arguments) | (file_summary if flight is whole else {})
    second = None
    if other is not None:
        from musls_analysis.scene import open_subject

        second = _laid_over(open_subject(recording), other, None, stage, None, 0)[1]
        begin_s, end_s = (time_s - second.shift_s for time_s in (flight.start_s, flight.end_s))
        second = replace(second, recording=second.recording.between(begin_s, end_s))
    folder = out or (recording if recording.is_dir() else Path()) / "figures"
    with writing(folder):
        suffixes = [one.value for one in formats or [Format.PDF]]
        paths = write_for_paper(
            flight, summary, folder, suffixes, names or (), width / 1000.0, font, second
        )
    for path in paths:
        typer.echo(path)


# ---------- `musls studio`


def studio(
    folder: Annotated[Path, typer.Argument(help="Folder of the runs.", metavar="RUNS")] = Path(
        "runs"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8050,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Fly scenarios, look at runs and compare two of them, in a browser on this machine."""
    import webbrowser

    try:
        from musls_bringup.studio.app import start
    except ModuleNotFoundError as error:
        if error.name != "dash":
            raise
        raise MuslsError(f"musls studio needs Dash: {install_command('dash')}") from None
    server, address = start(folder, port)
    typer.echo(f"musls studio: {address}; Ctrl-C ends it", err=True)
    with TemporaryDirectory(prefix="musls-studio-") as private:
        if browser:  # by a file that only this account reads: all see the words of a command
            page = Path(private) / "open.html"
            page.write_text(f'<meta http-equiv="refresh" content="0; url={address}">')
            webbrowser.open(page.as_uri())
        server.serve_forever()
