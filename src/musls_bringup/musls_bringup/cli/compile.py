"""`musls compile`: compile what flights need before anybody flies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.flight.progress import ProgressDisplay


def run(
    target: Annotated[
        str,
        typer.Option(
            metavar="PROCESSOR",
            help="native, or x86-64-v2, -v3 or -v4: for other machines that can do as much.",
        ),
    ] = "native",
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="New folder, which MUSLS_COMPILED names where it is used.",
            show_default="the cache of this account",
        ),
    ] = None,
    wheel: Annotated[
        bool,
        typer.Option("--wheel", help="Also write the wheel musls-compiled, beside the folder."),
    ] = False,
) -> int:
    """Compiles what flights, checks, replays, studies and environments need.

    The first flight starts at once then. Code in a folder also serves other machines: with the
    same version of Python and numba, and a processor that can do what the target says.
    """
    from musls_bringup.flight.precompile import WORK, Done, precompile, write_wheel
    from musls_description.config.errors import ConfigError, near_names
    from musls_description.numerics.code_cache import NATIVE, TARGETS

    names = [NATIVE, *TARGETS]
    if target not in names:
        raise ConfigError(f"--target {target}: {near_names(target, names)}")
    if wheel and into is None:
        raise ConfigError("--wheel needs --into: the wheel is made of that folder")
    count = 0
    with ProgressDisplay("compile") as display:

        def done(work: Done) -> None:
            nonlocal count
            count += 1
            display.note(
                f"{count}/{len(WORK)} {work.what}: {work.compiled} functions, {work.seconds:.0f} s"
            )

        display.update(f"{len(WORK)} pieces of work, some minutes")
        made_for = precompile(target, into, done)
    where = f"{into}: set MUSLS_COMPILED to it" if into else "the cache of this account"
    if wheel and into is not None:
        typer.echo(f"written: {write_wheel(into, into.absolute().parent)}")
    typer.echo(f"compiled for {made_for.processor}, {made_for.python}, in {where}")
    return 0
