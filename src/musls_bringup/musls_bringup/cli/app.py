"""The `musls` command: its subcommands, loaded when named, and one boundary for errors.

A subcommand is a function in a module of this folder and a line in `COMMANDS`. Typer makes options
from the function's annotations, its docstring is the help, and an integer it returns is the exit
code. In the place of the function there may be a typer group with subcommands of its own. The
module imports the standard library, typer and the errors at its top; what is slow to import (numba,
dartpy, matplotlib) belongs inside the function, so that `--help` is quick.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from musls_bringup.catalogue.shipped import VERSION
from musls_bringup.cli.terminal import tell
from musls_bringup.flight import results
from musls_description import ONE_THREAD
from musls_description.config.errors import MuslsError, check_present_folder, near_names


class Stream(io.TextIOWrapper):
    """Standard stream that drops what cannot be written: a flight outlives its terminal.

    `failure` is why something was dropped. `sign` stands on the terminal until the first text.
    """

    failure: OSError | None = None
    sign = ""

    def write(self, text: str) -> int:
        """Write a text, if it can be."""
        if sign := Stream.sign:
            Stream.sign = ""
            sys.stderr.write(f"\r{' ' * len(sign)}\r")
            sys.stderr.flush()
        try:
            return super().write(text)
        except OSError as error:
            self._drop(error)
            return len(text)

    def flush(self) -> None:
        """Write what is left, if it can be."""
        try:
            super().flush()
        except OSError as error:
            self._drop(error)

    def _drop(self, error: OSError) -> None:
        self.failure = self.failure or error
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


def protect_streams() -> None:
    """Replace the standard streams by ones that cannot fail, also those that are closed."""
    for name in ("stdin", "stdout", "stderr"):  # a file that is opened gets the lowest free number
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, "r" if name == "stdin" else "w")  # noqa: SIM115
        if name != "stdin":
            options = {
                "line_buffering": stream.line_buffering,
                "write_through": stream.write_through,  # PYTHONUNBUFFERED
            }
            stream = Stream(stream.detach(), stream.encoding, "replace", **options)
        setattr(sys, name, stream)


COMMANDS = {
    "fly": ("fly:run", "fly circle --set system.cables.links=29 --seed 3"),
    "check": ("check:run", "check circle --set system.load.mass_kg=2 --out checks/circle"),
    "formation": ("check:formation", "formation x500_trio --drones 5 --out formations/five"),
    "design": (
        "recorded.design:run",
        "design --shape plate --size 1.2,0.8 --mass 4 --wind 6 --gusts 3 --drones x500,typhoon",
    ),
    "modes": ("check:modes", "modes circle --set cable_model=massless --out modes/circle"),
    "draw": ("check:draw_system", "draw x500_quad --out quad.png"),
    "recordings": (
        "recorded.recordings:run",
        "recordings take_1.csv --bodies load=box,drone_1=cf5 --png take_1.png",
    ),
    "compare": (
        "recorded.compare:run",
        "compare real_flight.csv runs/shm --stage shm --skip-sim 2",
    ),
    "replay": (
        "recorded.replay:run",
        "replay flight_2136_shm.csv --offset load=0,0,-0.07 --fit damping,load_com",
    ),
    "identify": (
        "recorded.replay:identify",
        "identify flights_2136/ flights_2044/ --offset load=0,0,-0.07 --out runs/identified",
    ),
    "benchmark": ("recorded.sweep:benchmark", "benchmark payload my.py:MyController --quick"),
    "sweep": ("recorded.sweep:run", "sweep joint_damping --workers 4"),
    "montecarlo": ("recorded.sweep:montecarlo", "montecarlo hold --vary spread.yaml --worlds 1000"),
    "studio": ("recorded.view:studio", "studio runs"),
    "view": ("recorded.view:run", "view flight.csv --with runs/circle --gif"),
    "figures": (
        "recorded.view:figures",
        "figures runs/mine pose_load tensions --format pdf --width 181 --font serif",
    ),
    "paper": ("recorded.reproduce:paper", "paper 004 --out runs/rotortm"),
    "reproduce": (
        "recorded.reproduce:run",
        "reproduce flights/ --seeds 5 --system x500_trio_swivel",
    ),
    "fit-drones": ("recorded.reproduce:fit", "fit-drones flights/ --out runs/drones"),
    "model": ("model:run", "model x500_trio --format world --out worlds"),
    "ros": ("ros:app", "ros fly circle"),
    "new": ("new:app", "new system --load beam --length 2 --drones 5 --cable 2"),
    "import": ("new:import_body", "import crate.urdf --attach hook_1,hook_2,hook_3 --cable 2"),
    "list": ("describe:list_shipped", "list systems"),
    "describe": ("describe:run", "describe mission.stages.circle"),
    "compile": ("compile:run", "compile --target x86-64-v3 --into compiled"),
    "test": ("test:run", "test -k catenary"),
}
"""Module of each subcommand and the example that its help shows."""

SECTIONS = {
    "Start here": {
        "fly": "Flies a scenario and reports on it.",
        "view": "Shows a flight in 3-D over time.",
        "list": "Lists what is shipped.",
        "describe": "Explains a key: meaning, unit, default, range.",
        "new": "Writes a commented file of a system, scenario, controller, ...",
        "studio": "Flies scenarios and compares runs, in a browser.",
    },
    "Build a system": {
        "design": "Chooses drones, cone and cables for a load and a wind.",
        "check": "Checks whether a scenario can be flown: margins, flight time.",
        "formation": "Proposes places for the drones of a system.",
        "draw": "Draws a system at rest from above and from the side.",
        "modes": "Shows the modes of load, cables and drones around a state.",
        "import": "Makes a system or an airframe of a URDF, SDF or MJCF file.",
        "model": "Writes a system's models for Gazebo (SDF) and ROS (Xacro, URDF).",
    },
    "Compare with real flights": {
        "recordings": "Shows what is in a recording: bodies, rates, gaps, units.",
        "compare": "Compares flights by the errors of the paper's Table III.",
        "replay": "Moves the drones as recorded and predicts the load.",
        "identify": "Identifies a system from recordings, with 90 % intervals.",
        "fit-drones": "Identifies the imperfections of real drones: tilts, delay.",
        "reproduce": "Flies the paper's missions and compares them with its flights.",
    },
    "Studies and papers": {
        "sweep": "Runs a parameter study.",
        "montecarlo": "Flies many worlds drawn from distributions: percentiles, worst.",
        "benchmark": "Compares controllers on a fixed set of flights.",
        "figures": "Draws the report's figures as PDF, SVG or PNG of a given width.",
        "paper": "Flies what a paper shows: its numbers beside ours.",
    },
    "ROS 2, installation and tests": {
        "ros": "Sets up ROS 2 and flies scenarios through its graph of nodes.",
        "compile": "Compiles what flights need, also for other machines.",
        "test": "Runs the test suite.",
    },
}
"""Subcommands as the help shows them, each with its line."""

EXIT_FAILURE = 1
EXIT_BAD_INPUT = 2


class SectionedCommand(TyperCommand):
    """A command whose help shows options in sections, which their `rich_help_panel` names."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and options, those without a section first."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:  # hidden
                continue
            title = getattr(parameter, "rich_help_panel", None) or "Options"
            is_argument = parameter.param_type_name == "argument"
            sections.setdefault("Arguments" if is_argument else title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class LazyGroup(TyperGroup):
    """A command group that imports a subcommand when it is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the subcommands."""
        return [name for names in SECTIONS.values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the subcommands in sections."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([*names.items()], col_max=12)

    def get_command(self, ctx: Any, name: str) -> Any:
        """Imports a subcommand and makes the typer command from it."""
        if name not in COMMANDS:
            return None
        (module, _, function) = COMMANDS[name][0].partition(":")
        example = COMMANDS[name][1]
        entry = getattr(import_module(f"musls_bringup.cli.{module}"), function)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        if not isinstance(entry, typer.Typer):
            # What is no option of `musls test` goes to pytest.
            settings = {"ignore_unknown_options": name == "test"}
            single.command(name, cls=SectionedCommand, context_settings=settings)(entry)
            entry = single
        command = typer.main.get_command(entry)
        command.epilog = f"\b\nExample:\n  musls {example}"
        return command

    def invoke(self, ctx: Any) -> Any:
        """Runs the subcommand; a signal that ended it gives the exit code."""
        try:
            return super().invoke(ctx)
        except results.StopRequested as stop:
            if stop.kept:
                print(f"musls: {stop}", file=sys.stderr)
            raise typer.Exit(stop.exit_code) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the subcommand; an unknown one ends with the names that are near."""
        if args[0] not in COMMANDS:
            raise MuslsError(f"no such command {args[0]!r}; {near_names(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=LazyGroup, add_completion=True, rich_markup_mode=None)


def print_version(show: bool) -> None:
    """Prints the installed version and ends."""
    if show:
        typer.echo(f"musls {VERSION}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  musls fly circle",
)
def root(
    ctx: typer.Context,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Show the traceback of an error. Can stand anywhere in the command."
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    """Simulates several quadrotors that carry one slung load by flexible cables."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code.

    `argv` are the words after `musls`; None takes the process's own, and signals and standard
    streams with them.
    """
    if argv is not None:
        return run(argv)
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    results.catch()
    protect_streams()
    show_sign_of_life(sys.argv[1:])
    status = run(sys.argv[1:])
    gc.freeze()  # all of it ends with the process; Python would look it through for 0.4 s
    sys.stderr.write("")
    sys.stdout.flush()
    failure = getattr(sys.stdout, "failure", None)
    if failure is None:
        return status
    if failure.errno != errno.EPIPE:  # else the reader has just gone, such as `head`
        tell("error", f"standard output cannot be written: {failure.strerror}")
    return status or EXIT_FAILURE


def show_sign_of_life(args: Sequence[str]) -> None:
    """Says on a terminal that something is done: what most commands import takes a second."""
    works = [name for names in SECTIONS.values() for name in names if "ros" not in names]
    if sys.stderr.isatty() and args and args[0] in works and "--quiet" not in args:
        sys.stderr.write("musls ...")
        sys.stderr.flush()
        Stream.sign = "musls ..."


def run(argv: Sequence[str]) -> int:
    """Runs the command line within this process and returns the exit code."""
    args, debug = split_debug(argv)
    command = typer.main.get_command(app)
    try:
        check_present_folder()
        with warnings.catch_warnings():
            warnings.showwarning = show_warning  # type: ignore[assignment]
            status = command.main(args, prog_name="musls", standalone_mode=False)
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # `musls ros` alone; typer hides the class
            typer.echo(error.message)
            return 0
        return report(usage_message(error), debug)
    except MuslsError as error:
        return report(str(error), debug)
    return status if isinstance(status, int) else 0


def show_warning(message: Warning | str, *_: object) -> None:
    """Prints a warning as one line, in the place of `warnings.showwarning`."""
    tell("warning", message)


def split_debug(args: Sequence[str]) -> tuple[list[str], bool]:
    """Takes `--debug` out, wherever it stands before a `--`."""
    end = args.index("--") if "--" in args else len(args)
    rest = [arg for arg in args[:end] if arg != "--debug"]
    return [*rest, *args[end:]], len(rest) < end


def usage_message(error: typer.TyperException) -> str:
    """Puts a usage error and the help that answers it on one line."""
    message = error.format_message().rstrip(".").replace("Value error, ", "")  # of pydantic
    ctx = getattr(error, "ctx", None)
    return f"{message[:1].lower()}{message[1:]} (see {ctx.command_path if ctx else 'musls'} --help)"


def report(message: str, debug: bool) -> int:
    """Prints an error as one line, in debug mode after its traceback."""
    if debug:
        traceback.print_exc()
    tell("error", " ".join(message.split()))
    return EXIT_BAD_INPUT
