"""The `musls` command: its subcommands, loaded when named, and one boundary for errors.

A subcommand is a module of this folder with

- `run`: the function; typer makes options from its annotations, its docstring is the help, and an
  integer it returns is the exit code;
- `EXAMPLE`: the command line that its `--help` shows;
- optionally `CONTEXT_SETTINGS` for typer,
- or `app`, a typer group with subcommands of its own,

and a line in `COMMANDS`. The module imports the standard library, typer and the errors at its top;
what is slow to import (numba, dartpy, matplotlib) belongs inside `run`, so that `--help` is quick.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from musls_bringup import results
from musls_description import ONE_THREAD
from musls_description.errors import MuslsError, near_names


class Stream(io.TextIOWrapper):
    """Standard stream that drops what cannot be written: a flight outlives its terminal.

    `failure` is why something was dropped.
    """

    failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text, if it can be."""
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
            buffered = stream.line_buffering
            stream = Stream(stream.detach(), stream.encoding, "replace", line_buffering=buffered)
        setattr(sys, name, stream)


COMMANDS = {
    "fly": "musls_bringup.cli.fly",
    "check": "musls_bringup.cli.check",
    "compare": "musls_bringup.cli.compare",
    "replay": "musls_bringup.cli.replay",
    "sweep": "musls_bringup.cli.sweep",
    "view": "musls_bringup.cli.view",
    "figures": "musls_bringup.cli.figures",
    "reproduce": "musls_bringup.cli.reproduce",
    "fit-drones": "musls_bringup.cli.fit_drones",
    "model": "musls_bringup.cli.model",
    "ros": "musls_bringup.cli.ros",
    "new": "musls_bringup.cli.new",
    "list": "musls_bringup.cli.list_command",
    "describe": "musls_bringup.cli.describe",
    "test": "musls_bringup.cli.test_command",
}
"""Module of each subcommand, in the order in which the help lists them."""

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}

EXIT_FAILURE = 1
EXIT_BAD_INPUT = 2


def load_command(name: str) -> Any:
    """Imports a subcommand's module and makes the typer command from it."""
    module = import_module(COMMANDS[name])
    if hasattr(module, "app"):
        return typer.main.get_command(module.app)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(
        name,
        epilog=f"\b\nExample:\n  {module.EXAMPLE}",
        context_settings=HELP_OPTIONS | getattr(module, "CONTEXT_SETTINGS", {}),
    )(module.run)
    return typer.main.get_command(single)


class LazyCommands(Mapping):
    """The subcommands by name; looking one up imports its module."""

    def __getitem__(self, name: str) -> Any:
        return load_command(name)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class LazyGroup(TyperGroup):
    """A command group that imports a subcommand when it is named."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        commands: Any = LazyCommands()  # typer only reads them
        self.commands = commands

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the subcommand; an unknown one ends with the names that are near."""
        if args[0] not in COMMANDS:
            raise MuslsError(f"no such command {args[0]!r}; {near_names(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=LazyGroup, add_completion=True, rich_markup_mode=None)


def print_version(wanted: bool) -> None:
    """Prints the installed version and ends."""
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("musls")
    except PackageNotFoundError:  # built by colcon, package by package
        installed = version("musls_bringup")
    typer.echo(f"musls {installed}")
    raise typer.Exit


@app.callback(
    invoke_without_command=True,
    context_settings=HELP_OPTIONS,
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
    gc.set_threshold(100_000)  # next to nothing is garbage; the default looks for it for 0.4 s
    results.catch()
    protect_streams()
    status = run(sys.argv[1:])
    sys.stdout.flush()
    failure = getattr(sys.stdout, "failure", None)
    if failure is None:
        return status
    if failure.errno != errno.EPIPE:  # else the reader has just gone, such as `head`
        report_line(f"standard output cannot be written: {failure.strerror}")
    return status or EXIT_FAILURE


def run(argv: Sequence[str]) -> int:
    """Runs the command line within this process and returns the exit code."""
    args, debug = split_debug(argv)
    command = typer.main.get_command(app)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning  # type: ignore[assignment]
            status = command.main(args, prog_name="musls", standalone_mode=False)
    except results.EndAsked as ended:
        return ended.exit_code
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # `musls ros` alone; typer hides the class
            typer.echo(error.message)
            return 0
        return report(usage_message(error), debug)
    except MuslsError as error:
        return report(str(error), debug)
    return status if isinstance(status, int) else 0


def show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Prints a warning as one line, in the place of `warnings.showwarning`."""
    kind = "note" if issubclass(category, FutureWarning) else "warning"
    print(f"musls: {kind}:", message, file=sys.stderr)


def split_debug(args: Sequence[str]) -> tuple[list[str], bool]:
    """Takes `--debug` out, wherever it stands before a `--`."""
    end = args.index("--") if "--" in args else len(args)
    kept = [arg for arg in args[:end] if arg != "--debug"]
    return [*kept, *args[end:]], len(kept) < end


def usage_message(error: typer.TyperException) -> str:
    """Puts a usage error and the help that answers it on one line."""
    message = error.format_message().rstrip(".")
    ctx = getattr(error, "ctx", None)
    return f"{message[:1].lower()}{message[1:]} (see {ctx.command_path if ctx else 'musls'} --help)"


def report(message: str, debug: bool) -> int:
    """Prints an error as one line, in debug mode after its traceback."""
    if debug:
        traceback.print_exc()
    report_line(message)
    return EXIT_BAD_INPUT


def report_line(message: str) -> None:
    """Prints an error as one line."""
    print("musls: error:", " ".join(message.split()), file=sys.stderr)
