"""Results in a terminal and a notebook: lines of text and tables with units."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

MAX_ROWS = 40
"""Rows of a table that are shown."""


@dataclass(frozen=True)
class Table:
    """Cells in words under headings that carry the units.

    Attributes:
        headings: One per column.
        rows: Cells of each row.
        names: Columns at the left that hold names, not numbers.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1

    @property
    def left_out(self) -> str:
        """Line that counts the rows that are not shown."""
        more = len(self.rows) - MAX_ROWS
        return f"... and {more} more" if more > 0 else ""

    def __str__(self) -> str:
        rows = [self.headings, *self.rows[:MAX_ROWS]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if k < self.names else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        lines = [line.rstrip() for line in lines]
        return "\n".join([*lines, *filter(None, [self.left_out])])

    def html(self) -> str:
        """A table of HTML."""

        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line(cells, "td") for cells in self.rows[:MAX_ROWS])
        note = f"<p>{self.left_out}</p>" if self.left_out else ""
        head = f"<thead>{line(self.headings, 'th')}</thead>"
        return f"<table>{head}<tbody>{body}</tbody></table>{note}"


class ShownResult:
    """Base class of results: text in a terminal, tables in a notebook."""

    def shown(self) -> Iterable[str | Table]:
        """Lines and tables; the arrays among the fields unless a class says better."""
        yield type(self).__name__
        yield arrays_of(vars(self))

    def __repr__(self) -> str:
        return "\n".join(map(str, self.shown()))

    def _repr_html_(self) -> str:
        return "".join(
            part.html() if isinstance(part, Table) else f"<p>{escape(part)}</p>"
            for part in self.shown()
        )


def arrays_of(fields: Mapping[str, Any]) -> Table:
    """Shape and range of arrays, whose names carry their units; other values in words."""
    rows = []
    for name, value in fields.items():
        if name.startswith("_") or value is None or isinstance(value, Mapping):
            continue
        if not isinstance(value, np.ndarray):
            several = isinstance(value, (list, tuple))
            text = "" if several else value if isinstance(value, str) else number(value)
            rows.append((name, f"{len(value)} parts" if several else text, "", ""))
        elif value.size:
            finite = value[np.isfinite(value)]
            ends = (number(finite.min()), number(finite.max())) if finite.size else ("-", "-")
            rows.append((name, str(value.shape), *ends))
    return Table(("", "shape or value", "least", "largest"), rows)


def number(value: Any) -> str:
    """Four digits of a number; anything else in its own words."""
    real = isinstance(value, (float, np.floating))
    return f"{value:.4g}" if real else "" if value is None else str(value)


def vector(values: Any) -> str:
    """Numbers of a vector with three decimals."""
    return " ".join(f"{value:.3f}" for value in np.round(values, 3) + 0.0)


class Rows(ShownResult, tuple[T, ...]):
    """A sequence of alike records (dataclasses or mappings), shown as a table.

    Columns that are the same in all of several rows stand in one line above it.
    """

    def shown(self) -> Iterator[str | Table]:
        """The line of what all share, then the table."""
        records = [r if isinstance(r, Mapping) else _fields(r) for r in self]
        if not records:
            yield "none"
            return
        names = list(dict.fromkeys(name for record in records for name in record))
        cells = {name: [number(record.get(name)) for record in records] for name in names}
        same = [name for name in names[1:] if len(set(cells[name])) == 1 and len(records) > 1]
        texts = [f"{name} = {cells[name][0]}" for name in same if cells[name][0]]
        if texts:
            yield f"in all rows {', '.join(texts)}"
        rest = [name for name in names if name not in same]
        yield Table(rest, list(zip(*(cells[name] for name in rest), strict=True)))


def _fields(record: Any) -> dict[str, Any]:
    return {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
