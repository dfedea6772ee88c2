"""Tables in text files as programs write them: comma, semicolon or tab, decimal comma, any Unicode.

Excel writes a byte-order mark, semicolons with decimal commas, `sep=;` or UTF-16; others quote
their names. All tables of the project are opened here.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_description.config.errors import ConfigError, check_regular, near_names
from musls_description.config.schema import LARGEST
from musls_description.config.strict_yaml import shown

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SEPARATORS = "\t;,"
"""Separators in the order in which they are tried; a comma may be a decimal one."""
_LINES_TRIED = 20
_THOUSANDS = "'\u2019 \u00a0\u2009\u202f"
"""Characters that separate thousands, besides the mark that is not the decimal one."""


def _numbers(decimal: str, other: str) -> re.Pattern[str]:
    """Numbers with this decimal mark; thousands may be separated."""
    groups = rf"[1-9][0-9]{{0,2}}(?:[{other}{_THOUSANDS}][0-9]{{3}})+(?:{decimal}[0-9]*)?"
    plain = rf"(?:[0-9]+(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][-+]?[0-9]+)?"
    return re.compile(rf"[-+]?(?:{groups}|{plain})")


_NUMBERS = {".": _numbers(r"\.", ","), ",": _numbers(",", r"\.")}
_SEPARATED = {mark: re.compile(f"[{_THOUSANDS}{',' if mark == '.' else '.'}]") for mark in ".,"}


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Context in which errors begin with the path of the file."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{shown(str(path), 200)}: {error}") from error


def decoded(data: bytes) -> str:
    """Text of a file: UTF-8 or UTF-16 by its byte-order mark, else UTF-8, else Windows' Latin.

    Raises:
        ConfigError: It holds zero bytes, as no text does.
    """
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data:
        raise ConfigError("not a text file (binary)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def read_lines(path: Path, end: int | None = None) -> list[str]:
    """Lines of a text file, or of its first bytes, with their ends.

    Raises:
        ConfigError: It cannot be read, or is no text; without its name.
    """
    try:
        check_regular(path)
        with path.open("rb") as file:
            data = file.read(-1 if end is None else end)
    except (FileNotFoundError, ValueError):  # or a NUL in the name
        raise ConfigError("no such file") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}") from None
    return decoded(data).splitlines(keepends=True)


class TextRow(NamedTuple):
    """A row of a table: the number of its line, from 1, and its cells."""

    line: int
    cells: list[str]


def rows_of(lines: Sequence[str]) -> Iterator[TextRow]:
    """Rows of a table as programs read numbers: with decimal points, thousands not separated.

    A table has one decimal mark, which the first number tells that has but one reading.

    Raises:
        ConfigError: No number tells it, and 4,000 or 4.000 may be four or four thousand.
    """
    rows = list(cells_of(lines))
    if separator_of(lines) == "," and not any('"' in line for line in lines):
        yield from rows  # its commas are none of numbers
        return
    mark = _decimal_mark(rows)
    for line, cells in rows:
        yield TextRow(line, [_with_point(cell, mark) for cell in cells])


def read_table(
    path: str, columns: Sequence[str], optional: Sequence[str] = ()
) -> NDArray[np.float64]:
    """Read columns of a CSV file, (rows, columns), the time first; lines with # are left out.

    Columns that are `optional` follow, 0 where the file has none of that name. A file that may
    leave columns out has at least one of them, and no others: a misspelt one would be one that was
    left out.
    """
    with naming(path):
        lines = [row for row in rows_of(read_lines(Path(path))) if not row.cells[0].startswith("#")]
    if not lines:
        raise ConfigError(f"{path}: the file is empty")
    names = lines[0].cells
    for column in columns:
        if column not in names:
            raise ConfigError(f"{path}: no column '{shown(column)}': {near_names(column, names)}")
    if optional and not set(optional) & set(names):
        raise ConfigError(f"{path}: no column of {', '.join(optional)}: one at least is needed")
    columns = [*columns, *optional]
    for name in names if optional else ():
        if name not in columns:
            raise ConfigError(f"{path}: column '{shown(name)}': {near_names(name, columns)}")
    places = [names.index(column) if column in names else -1 for column in columns]
    table = np.empty((len(lines) - 1, len(columns)))
    for row, (number, cells) in enumerate(lines[1:]):
        try:
            table[row] = [0.0 if place < 0 else float(cells[place]) for place in places]
        except (ValueError, IndexError):
            raise ConfigError(
                f"{path}, line {number}: numbers are needed in the columns {', '.join(columns)}"
            ) from None
        if not (np.abs(table[row]) <= LARGEST).all():
            raise ConfigError(
                f"{path}, line {number}: a number is not finite, or beyond {LARGEST:g}"
            )
        if row and table[row, 0] <= table[row - 1, 0]:
            raise ConfigError(
                f"{path}, line {number}: time {table[row, 0]:g} s is not after "
                f"{table[row - 1, 0]:g} s; times must ascend"
            )
    return table


def _decimal_mark(rows: Sequence[TextRow]) -> str:
    """Decimal mark of a table, a point if none of its numbers has one."""
    doubtful: tuple[int, str, str, str] | None = None
    for line, cells in rows:
        for cell in cells:
            if "," not in cell and "." not in cell:
                continue
            point, comma = (_reading(cell, mark) for mark in ".,")
            if point is None or comma is None:
                if point != comma:
                    return "." if comma is None else ","
            elif float(point) != float(comma) and doubtful is None:
                doubtful = line, cell, point, comma
    if doubtful is not None:
        line, cell, point, comma = doubtful
        raise ConfigError(
            f"line {line}: {cell} is {float(point):.12g} with a decimal point or "
            f"{float(comma):.12g} with a decimal comma, and no other number tells which: write it "
            "without a separator of thousands, or with another number of decimals"
        )
    return "."


def _reading(cell: str, mark: str) -> str | None:
    """A number as Python writes it, if it is one with this decimal mark."""
    if not _NUMBERS[mark].fullmatch(cell):
        return None
    return _SEPARATED[mark].sub("", cell).replace(",", ".")


def _with_point(cell: str, mark: str) -> str:
    if mark == "." and cell.isascii() and not set(cell) & {",", "'", " "}:
        return cell
    return _reading(cell, mark) or _reading(cell, ",") or cell


def cells_of(lines: Sequence[str]) -> Iterator[TextRow]:
    """Rows of a table as they are written; empty lines are left out.

    The separator is that of Excel's line `sep=;`, or the first of tab, semicolon and comma by which
    most of the first lines have an equal number of cells.
    """
    first = lines[0].strip().strip('"') if lines else ""
    own_separator = first[4:5] if first.startswith("sep=") and len(first) <= 5 else ""
    n_skipped = 1 if first.startswith("sep=") else 0
    separator = (own_separator or "\t") if n_skipped else separator_of(lines)
    reader = csv.reader(lines[n_skipped:], delimiter=separator)
    try:
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            yield TextRow(reader.line_num + n_skipped, [cell.strip() for cell in cells])
    except csv.Error as error:
        raise ConfigError(f"line {reader.line_num + n_skipped}: no table ({error})") from None


def separator_of(lines: Sequence[str]) -> str:
    """Tab, semicolon or comma."""
    sample = [line for line in lines if line.strip()][:_LINES_TRIED]
    for separator in _SEPARATORS:
        counts = Counter(line.count(separator) for line in sample)
        if any(count and 2 * times > len(sample) for count, times in counts.most_common(1)):
            return separator
    return ","
