"""`musls studio`: fly and look in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from musls_description.errors import MuslsError, install_command


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of the runs.", metavar="RUNS")] = Path(
        "runs"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8050,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Fly scenarios, look at runs and compare two of them, in a browser on this machine."""
    try:
        from musls_bringup.studio import start
    except ModuleNotFoundError as error:
        if error.name != "dash":
            raise
        raise MuslsError(f"musls studio needs Dash: {install_command('dash')}") from None
    server = start(folder, port)
    address = f"http://{server.host}:{server.port}"
    typer.echo(f"musls studio: {address}; Ctrl-C ends it", err=True)
    if browser:
        webbrowser.open(address)
    server.serve_forever()
