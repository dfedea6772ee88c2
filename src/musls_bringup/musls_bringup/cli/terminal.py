"""Terminal output of the commands: notes and tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def tell(kind: str, text: object) -> None:
    """Write a line to standard error; `kind` is "warning", "note" or "error"."""
    print(f"musls: {kind}: {text}", file=sys.stderr)


def new_console(*, markup: bool = True, soft_wrap: bool = True) -> Console:
    """Standard output; wide where it is no terminal, so that tables keep their lines."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 140
    return Console(highlight=False, emoji=False, markup=markup, soft_wrap=soft_wrap, width=width)


def new_table(
    first: str = "",
    *numbers: str,
    title: str | None = None,
    rows: Iterable[Sequence[str]] = (),
) -> Table:
    """A table without lines; after the first column there are numbers."""
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
        padding=(0, 2, 0, 0),
    )
    if first:
        table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
