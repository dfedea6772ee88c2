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

from musls_description.config.errors import ConfigError, check_regular
from musls_description.config.strict_yaml import shown

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SEPARATORS = "\t;,"
"""In the order in which they are tried; a comma may be a decimal one."""
_LINES_TRIED = 20
_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?\s*")


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Begin the errors of what is read inside with the path of the file."""
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
    """A row of a table: the number of its line, counted from 1, and its cells."""

    line: int
    cells: list[str]


def rows_of(lines: Sequence[str]) -> Iterator[TextRow]:
    """Rows of a table; empty lines are left out, decimal commas become points.

    The separator is that of Excel's line `sep=;`, or the first of tab, semicolon and comma by which
    most of the first lines have an equal number of cells.
    """
    first = lines[0].strip().strip('"') if lines else ""
    given = first[4:5] if first.startswith("sep=") and len(first) <= 5 else ""
    skipped = 1 if first.startswith("sep=") else 0
    separator = (given or "\t") if skipped else separator_of(lines)
    decimal_comma = separator != ","
    reader = csv.reader(lines[skipped:], delimiter=separator)
    try:
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            if decimal_comma:
                cells = [c.replace(",", ".") if _DECIMAL_COMMA.fullmatch(c) else c for c in cells]
            yield TextRow(reader.line_num + skipped, [cell.strip() for cell in cells])
    except csv.Error as error:
        raise ConfigError(f"line {reader.line_num + skipped}: no table ({error})") from None


def separator_of(lines: Sequence[str]) -> str:
    """Tab, semicolon or comma."""
    sample = [line for line in lines if line.strip()][:_LINES_TRIED]
    for separator in _SEPARATORS:
        counts = Counter(line.count(separator) for line in sample)
        if any(count and 2 * times > len(sample) for count, times in counts.most_common(1)):
            return separator
    return ","
