"""`musls new`: commented templates to start from."""

from __future__ import annotations

from typing import Annotated

import typer

EXAMPLE = "musls new scenario my_first --system my_system.yaml"


def run(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="system, scenario, controller or sweep.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new file.")],
    system: Annotated[
        str, typer.Option(help="System that the new scenario flies: a shipped one or a file.")
    ] = "x500_trio",
) -> None:
    """Writes a commented template that works as it is; never replaces a file."""
    from pathlib import Path

    from musls_bringup.templates import write_new
    from musls_description.errors import ConfigError
    from musls_description.library import system_path

    if system != "x500_trio" and kind != "scenario":
        raise ConfigError("--system belongs to `musls new scenario`")
    folder = Path(name).parent
    if kind == "scenario":
        system_path(system, relative_to=folder)  # its file counts from the scenario's folder
    path, uses = write_new(kind, name, system)
    typer.echo(f"{path} written. Next:")
    for use in uses:
        typer.echo(f"    {use}")
