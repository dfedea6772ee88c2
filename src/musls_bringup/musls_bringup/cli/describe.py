"""`musls describe`: what the keys of scenarios, systems and sweeps mean."""

from __future__ import annotations

from typing import Annotated

import typer

EXAMPLE = "musls describe mission.stages.circle"


def run(
    key: Annotated[
        str | None,
        typer.Argument(
            help="A key, or a part of its name; keys of sweeps begin with `sweep.`.",
            show_default="all top keys",
        ),
    ] = None,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print a JSON schema for editors, of a scenario or of the file named as KEY: "
            "scenario, system, sweep.",
        ),
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference of all keys as Markdown.")
    ] = False,
) -> None:
    """Explains a key of a scenario, a system or a sweep: meaning, unit, default, range."""
    import json

    from musls_bringup.cli.imports import quick_imports
    from musls_description.errors import ConfigError

    with quick_imports():
        from musls_bringup.key_reference import file_schema, reference_page, tell

    if schema and markdown:
        raise ConfigError("--schema and --markdown exclude each other")
    if schema:
        typer.echo(json.dumps(file_schema(key or "scenario"), indent=1))
    elif markdown:
        if key is not None:
            raise ConfigError("--markdown prints all keys: leave KEY out")
        typer.echo(reference_page())
    else:
        tell(key or "")
