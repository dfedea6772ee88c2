"""Options of the commands that read recordings: what a file does not say of itself.

A command that is decorated with `reads` has these options and gets them as one argument `reading`;
what it was told of a file is kept beside it for the next command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from musls_bringup.cli import options
from musls_bringup.cli.terminal import tell
from musls_description.config.errors import ConfigError

if TYPE_CHECKING:
    from musls_analysis.recordings.options import ReadOptions
    from musls_analysis.recordings.recording import Recording

_Texts = list[str] | None


def _options(
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Format of the recording (see musls list readers).",
            rich_help_panel=options.READING,
        ),
    ] = None,
    units: Annotated[
        _Texts,
        typer.Option(
            metavar="UNIT,...",
            help="Units of the recording's numbers: m, cm, mm, in, ft; rad, deg; s, ms, us, ns.",
            rich_help_panel=options.READING,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="'NAME ...'",
            help="What the columns of a table are: t, body, x, y, z, qw to qz, roll, pitch, yaw, "
            "r11 to r33, - (left out); with units and bodies: t_ns, load_x.",
            rich_help_panel=options.READING,
        ),
    ] = None,
    axes: Annotated[
        Literal["z-up", "y-up", "ned"] | None,
        typer.Option(
            help="Which axis points up; ned is north, east, down.",
            rich_help_panel=options.READING,
        ),
    ] = None,
    angles: Annotated[
        Literal["roll-pitch-yaw", "helical", "euler-xyz"] | None,
        typer.Option(help="How three angles turn a body.", rich_help_panel=options.READING),
    ] = None,
    bodies: Annotated[
        _Texts,
        typer.Option(
            "--bodies",
            "--frames",
            "--topic",
            metavar="BODY=NAME,...",
            help="Name in the recording of load, drone_1, ...: a rigid body, TF frame or topic of "
            "poses, if it is not recognised.",
            rich_help_panel=options.READING,
        ),
    ] = None,
    origin: Annotated[
        _Texts,
        typer.Option(
            metavar="BODY=X,Y,Z",
            help="Where the origin of a body's recorded poses lies, ENU [m]; may be repeated.",
            rich_help_panel=options.READING,
        ),
    ] = None,
    clock: Annotated[
        _Texts,
        typer.Option(
            metavar="BODY=S",
            help="Added to a body's recorded times [s]; may be repeated.",
            rich_help_panel=options.READING,
        ),
    ] = None,
) -> Any:
    """Options of reading, from the texts of the command line."""
    from musls_analysis.recordings.options import LARGEST_CLOCK_S, ReadOptions

    clocks_s = {}
    for text in clock or ():
        body, (shift_s,) = options.numbers(text, 1, "--clock", "BODY=S, such as drone_2=-0.1")
        clocks_s[body] = options.within(
            f"--clock {body}", shift_s, -LARGEST_CLOCK_S, LARGEST_CLOCK_S, " s"
        )
    origins = [
        options.numbers(text, 3, "--origin", "BODY=X,Y,Z, such as drone_2=1,0,0")
        for text in origin or ()
    ]
    settings: dict[str, Any] = {
        "format": format,
        "units": [unit.strip() for text in units or () for unit in text.split(",")],
        "columns": (columns or "").replace(",", " ").split(),
        "axes": axes,
        "angles": angles,
        "bodies": dict(
            options.pair(part, "--bodies", "BODY=NAME,...")
            for text in bodies or ()
            for part in text.split(",")
        ),
        "origins_m": dict(origins),
        "clocks_s": clocks_s,
    }
    try:
        return ReadOptions(**settings)
    except ConfigError as error:
        raise ConfigError(f"--{str(error).removeprefix('ReadOptions: ')}") from None


def reads(*recordings: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of reading to a command, for its argument `reading`.

    `recordings` are the command's arguments that hold the paths of recordings to which they apply.
    """
    reading_parameters = inspect.signature(_options, eval_str=True).parameters

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command, eval_str=True)

        @wraps(command)
        def run(**values: Any) -> Any:
            reading = _options(**{name: values.pop(name) for name in reading_parameters})
            status = command(**values, reading=reading)
            for path in paths(values[name] for name in recordings):
                _keep(path, reading)
            return status

        own_parameters = [p for p in own.parameters.values() if p.name != "reading"]
        parameters = [*own_parameters, *reading_parameters.values()]
        parameters.sort(key=lambda p: p.default is not inspect.Parameter.empty)
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        del run.__wrapped__
        return run

    return decorate


def paths(arguments: Iterable[Path | Sequence[Path] | None]) -> Iterator[Path]:
    """Recordings that arguments name; a folder of tables stands for these."""
    for argument in arguments:
        for path in [argument] if isinstance(argument, Path) else argument or ():
            yield from sorted(path.glob("*.csv")) or [path]


def _keep(path: Path, reading: ReadOptions) -> None:
    from musls_analysis.recordings.options import keep_options, kept_options

    try:
        before = kept_options(path)
        if (file := keep_options(path, reading)) is not None:
            now = kept_options(path)
            other = ", ".join(name for name in before if now[name] != before[name])
            replaced = f" (it said another {other} before)" if other else ""
            tell("note", f"{file} keeps how {path.name} is read{replaced}")
    except OSError as error:
        tell("note", f"how {path.name} is read is not kept beside it: {error.strerror}")


def read(path: Path, reading: ReadOptions | None = None) -> Recording:
    """Read a recording; say how its bodies were recognised, and what is doubtful."""
    from musls_analysis.recordings.readers import read_recording

    recording = read_recording(path, reading)
    tell_of(recording)
    return recording


def tell_of(recording: Recording) -> None:
    """Say how a recording was read, and what is doubtful about it."""
    if recording.notation:
        tell("note", f"{recording.source}: {recording.notation}")
    for line in recording.warnings:
        tell("warning", f"{recording.source}: {line}")
