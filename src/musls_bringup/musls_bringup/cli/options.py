"""Options that several commands have, and what reads NAME=VALUE texts."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from musls_bringup.catalogue.shipped import SCENARIOS, names_in
from musls_description.config.deprecation import Deprecation
from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import shown


def _scenario_names(incomplete: str) -> list[str]:
    """Shipped scenarios and files of this folder, for the shell's completion."""
    names = names_in(SCENARIOS) + [path.name for path in Path().glob("*.yaml")]
    return sorted(name for name in names if name.startswith(incomplete))


ScenarioName = Annotated[
    str,
    typer.Argument(
        help="A shipped scenario (see musls list scenarios), a YAML file or a result folder.",
        autocompletion=_scenario_names,
    ),
]


MAX_PROCESSES = 1024
"""Largest number that an option may ask for."""

LARGEST_OFFSET_M = 100.0
"""Largest distance of a point of a body from its centre of mass."""


FILES = "Files"
PRINTED = "What is printed"
READING = "What the recording does not say of itself"
"""Sections of the help in which several commands have options."""


def path_of(text: str) -> Path:
    """Path to write to, from a text of the command line."""
    if not text.strip():
        raise typer.BadParameter("it is empty: name a folder or a file")
    return Path(text)


def out_path(
    default: str | bool = True, help: str | None = "Output folder.", metavar: str = "DIR"
) -> Any:
    """The option of what a command writes; `default` says in words what it is without one."""
    return typer.Option(
        parser=path_of, metavar=metavar, help=help, show_default=default, rich_help_panel=FILES
    )


def worker_count(default: str, help: str = "Number of worker processes.") -> Any:
    """The option of a number of processes; `default` says which it is without one."""
    return typer.Option(min=1, max=MAX_PROCESSES, help=help, show_default=default)


FlightFolder = Annotated[Path | None, out_path("runs/SCENARIO_DATE_TIME")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the scenario; may be repeated.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Replace the result of an earlier run.", rich_help_panel=FILES
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON document instead of tables and sentences.",
        rich_help_panel=PRINTED,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        help="Print nothing but warnings, errors and where results are.",
        rich_help_panel=PRINTED,
    ),
]
FlyOnce = Annotated[
    bool,
    typer.Option("--fly", help="Lift a metre, hold and land with it, in memory: takes seconds."),
]
Report = Annotated[
    bool,
    typer.Option("--report/--no-report", help="Write report.html.", rich_help_panel=FILES),
]


Seed = Annotated[int | None, typer.Option(help="Seed of all random numbers.")]
Autopilot = Annotated[
    Literal["builtin", "px4"] | None,
    typer.Option(
        help="Flight stack: builtin, or px4 for one real PX4 (SITL) per drone.",
        show_default="scenario's",
    ),
]
OwnController = Annotated[
    str | None,
    typer.Option(
        metavar="KIND|FILE.py:CLASS|FILE.onnx",
        help="A kind of controller (see musls list controllers), a class of your own or a policy.",
        show_default="scenario's",
    ),
]
AllowInvalid = Annotated[
    bool,
    typer.Option("--allow-invalid", help="Exit code 0, not 3, for an invalid flight."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Fly even if the rotors cannot lift the load.")
]


RecordedPoints = Annotated[
    list[str] | None,
    typer.Option(
        metavar="BODY=X,Y,Z",
        help="Recorded point of a body in its own frame, from its centre of mass [m]; "
        "BODY is load, drone_1, ... or drones; may be repeated.",
        rich_help_panel=READING,
    ),
]
RealFlights = Annotated[
    list[Path],
    typer.Argument(
        metavar="FLIGHTS",
        help="Real recording, or folder with *_circle.csv, *_shm.csv, *_engage.csv or some of "
        "them; the cycles of several are pooled.",
    ),
]
SimulatedPoints = Annotated[
    list[str] | None,
    typer.Option(
        metavar="BODY=X,Y,Z",
        help="Compare this point of a simulated body, in its frame, from its origin [m]; "
        "may be repeated.",
    ),
]


def offsets_m(texts: Sequence[str] | None) -> dict[str, tuple[float, float, float]]:
    """Points by body from texts BODY=X,Y,Z."""
    pairs = [
        numbers(text, 3, "--offset", "BODY=X,Y,Z, such as load=0,0,-0.07") for text in texts or ()
    ]
    offsets = {body: (x, y, z) for body, (x, y, z) in pairs}
    for body, values in offsets.items():
        if max(map(abs, values)) > LARGEST_OFFSET_M:
            raise ConfigError(
                f"--offset {body}={','.join(f'{v:g}' for v in values)}: a point of a body is at "
                f"most {LARGEST_OFFSET_M:g} m away from its centre of mass"
            )
    return offsets


def within(option: str, value: float, low: float, high: float, unit: str = "") -> float:
    """A number of the command line, if it is in its range."""
    if not low <= value <= high:
        text = (
            f"{value:g}" if abs(value) < 1e15 else shown(str(value))
        )  # no float holds all integers
        raise ConfigError(f"{option} is {text}{unit}, must be from {low:g} to {high:g}{unit}")
    return value


def numbers(text: str, count: int, option: str, form: str) -> tuple[str, tuple[float, ...]]:
    """Name and numbers of a text NAME=NUMBER,NUMBER,..."""
    name, value = pair(text, option, form)
    try:
        values = tuple(float(number) for number in value.split(","))
    except ValueError:
        values = ()
    if len(values) != count or not all(map(isfinite, values)):
        raise ConfigError(f"{option} {shown(text)}: must be {form}")
    return name, values


def pair(text: str, option: str, form: str) -> tuple[str, str]:
    """Name and value of a text NAME=VALUE."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise ConfigError(f"{option} {shown(text)}: must be {form}")
    return name, value


# ---------- Old options

OLD_OPTIONS = {
    (command, option): Deprecation(f"musls {command} {option}", new, "0.2")
    for command, option, new in (
        ("view", "--save", "--out FILE.rrd"),
        ("view", "--html", "--out FILE.html"),
        ("view", "--azimuth", "--camera AZ,EL,ZOOM"),
        ("view", "--elevation", "--camera AZ,EL,ZOOM"),
        ("view", "--zoom", "--camera AZ,EL,ZOOM"),
        ("view", "--skip-with", "--shift S"),
    )
}
"""Options that still work for one more release, and warn, by command and option."""


def warn_of_old(command: str, **options: object) -> None:
    """Warn of the old options that were given, that is, which are not None."""
    for name, value in options.items():
        if value is not None:
            OLD_OPTIONS[command, f"--{name.replace('_', '-')}"].warn(3)
