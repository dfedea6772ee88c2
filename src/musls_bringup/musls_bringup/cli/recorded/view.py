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

ENDINGS = ("png", "gif", "mp4", "html", "rrd")
"""Endings of the files that `musls view` writes."""

LOOK = "The picture"
"""Section of the help."""

DEFAULT_CAMERA = (-62.0, 17.0, 1.0)
"""Azimuth, counter-clockwise from east [deg], elevation [deg] and zoom of the camera."""

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
    web: Annotated[
        bool, typer.Option("--web", help="Show it in a browser instead of a window.")
    ] = False,
    out: Annotated[
        Path | None,
        options.out_path(
            True,
            "Write a file instead, which its ending chooses: a picture (.png), a film (.gif, "
            ".mp4), a page with 3-D, curves and errors (.html), a file for rerun's viewer (.rrd). "
            "--png T, --gif and --mp4 alone write RUN.png, RUN.gif, RUN.mp4.",
            "FILE",
        ),
    ] = None,
    at: Annotated[
        float | None,
        typer.Option(metavar="T", help="Time of the picture [s].", rich_help_panel=options.FILES),
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option(
            help="Frames per second of a film.",
            show_default="20 for gif, 30 for mp4",
            rich_help_panel=options.FILES,
        ),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(
            help="Seconds of the flight in one second of the film.", rich_help_panel=options.FILES
        ),
    ] = 1.0,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace an older file.", rich_help_panel=options.FILES),
    ] = False,
    camera: Annotated[
        str | None,
        typer.Option(
            metavar="AZ,EL[,ZOOM]",
            help="Where the camera stands: degrees counter-clockwise from east and above the "
            "horizon; ZOOM above 1 is closer.",
            show_default="-62,17,1",
            rich_help_panel=LOOK,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="The camera moves along with the load.", rich_help_panel=LOOK
        ),
    ] = False,
    trail: Annotated[
        float,
        typer.Option(metavar="S", min=0.0, help="Length of the trails [s].", rich_help_panel=LOOK),
    ] = 3.0,
    narrow: Annotated[
        bool,
        typer.Option(
            "--narrow",
            help="Layout for a phone or one column, with larger texts.",
            rich_help_panel=LOOK,
        ),
    ] = False,
    system: Annotated[
        str | None,
        typer.Option(
            help="Shipped system or file: what load and drones look like.",
            show_default="the scenario's beside the recording, else x500_trio",
            rich_help_panel=options.READING,
        ),
    ] = None,
    offset: options.RecordedPoints = None,
    png: Annotated[float | None, typer.Option(hidden=True)] = None,
    gif: Annotated[bool, typer.Option("--gif", hidden=True)] = False,
    mp4: Annotated[bool, typer.Option("--mp4", hidden=True)] = False,
    save: Annotated[Path | None, typer.Option(hidden=True, parser=options.path_of)] = None,
    html: Annotated[Path | None, typer.Option(hidden=True, parser=options.path_of)] = None,
    azimuth: Annotated[float | None, typer.Option(hidden=True)] = None,
    elevation: Annotated[float | None, typer.Option(hidden=True)] = None,
    zoom: Annotated[float | None, typer.Option(hidden=True)] = None,
    skip_with: Annotated[int, typer.Option(min=0, hidden=True)] = 0,
    *,
    reading: Any,
) -> None:
    """Shows load, drones, cables, set-points and tensions in 3-D over time."""
    options.warn_of_old("view", html=html, save=save, skip_with=skip_with or None)
    options.warn_of_old("view", azimuth=azimuth, elevation=elevation, zoom=zoom)
    asks = {"png": png is not None, "gif": gif, "mp4": mp4, "rrd": save, "html": html, "web": web}
    kind, path = _output(recording, [k for k, v in asks.items() if v], save or html or out)
    time_s = at if png is None else png
    options.within("--trail", trail, 0.0, LONGEST_TRAIL_S, " s")
    if path is not None:
        _check_file(path, kind, overwrite)
    if (time_s is not None) != (kind == "png"):
        raise ConfigError("--at T is the time of a picture: give both, or neither of them")
    if (fps is not None or speed != 1.0) and kind not in ("gif", "mp4"):
        raise ConfigError("--fps and --speed are for films, --gif and --mp4")
    if kind == "html" and offset:
        raise ConfigError("a page shows the recorded points: --offset is not for it")
    if other is None and (shift is not None or skip_with):
        raise ConfigError("--shift is for --with OTHER")
    if shift is not None:
        options.within("--shift", shift, -LARGEST_SHIFT_S, LARGEST_SHIFT_S, " s")
    if kind in ("viewer", "web", "rrd"):
        from musls_analysis.view import rerun_log  # says, before the reading, what is missing
    first = _planned(recording, system)
    if first is None:
        from musls_analysis.view.opened import open_subject

        first = open_subject(recording, system, reading, options.offsets_m(offset))
    subjects = _laid_over(first, other, system, stage, shift, skip_with)
    if path is None:
        _show(subjects, in_browser=web)
    elif kind == "rrd":
        rerun_log.save(subjects, path)
        typer.echo(f"written to {path}: open with rerun {path}")
    elif kind == "html":
        _write_page(subjects, path)
    else:
        from musls_analysis.view.film import FilmOptions
        from musls_analysis.view.picture import NARROW, WIDE, PictureOptions

        view = _camera(camera, azimuth, elevation, zoom)
        look = PictureOptions(*view, follow, trail, NARROW if narrow else WIDE)
        default_fps = GIF_FPS if kind == "gif" else MP4_FPS
        moving = FilmOptions(default_fps if fps is None else fps, speed)
        _draw(subjects, stage, path, look, moving if time_s is None else time_s)


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


def _output(recording: Path, kinds: list[str], out: Path | None) -> tuple[str, Path | None]:
    """Kind of output, "viewer", "web" or the ending of a file, and the file.

    `kinds`: those that options ask for, "web" or endings; none leaves it to the ending of `out`.
    """
    if out and kinds == ["web"]:
        kinds = ["web", "out"]
    if len(kinds) > 1:
        names = " and ".join("--save" if kind == "rrd" else f"--{kind}" for kind in kinds)
        raise ConfigError(f"{names} exclude each other: choose one")
    if out is None and kinds in ([], ["web"]):
        return kinds[0] if kinds else "viewer", None
    kind = kinds[0] if kinds else str(out).lower().rpartition(".")[2]
    if kind not in ENDINGS:
        endings = ", ".join(f".{ending}" for ending in ENDINGS)
        raise ConfigError(f"--out {out}: must end in one of {endings}")
    return kind, out or Path(f"{Path(os.path.realpath(recording)).stem}.{kind}")


def _camera(
    text: str | None, azimuth: float | None, elevation: float | None, zoom: float | None
) -> tuple[float, float, float]:
    """Azimuth [deg], elevation [deg] and zoom of the camera; the last three are old options."""
    values = [DEFAULT_CAMERA[0], DEFAULT_CAMERA[1], DEFAULT_CAMERA[2]]
    if text is not None:
        count = 3 if text.count(",") > 1 else 2
        _, numbers = options.numbers(f"camera={text}", count, "--camera", "AZ,EL or AZ,EL,ZOOM")
        values[:count] = numbers
    old = (azimuth, elevation, zoom)
    result = [now if before is None else before for before, now in zip(old, values, strict=True)]
    return result[0], result[1], result[2]


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
        from musls_analysis.scene import aligning_shift_s
        from musls_analysis.view.opened import open_subject

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
        from musls_analysis.view.opened import open_subject

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
