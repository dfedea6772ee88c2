"""Rows of numbers in text files, with what is damaged counted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from musls_analysis.recordings.capture import note
from musls_description.config.text_tables import Row, read_lines, rows_of


def whole_lines(path: Path, notes: list[str]) -> list[str]:
    """Lines of a file; a last one that is not ended may be cut in a number: dropped."""
    lines = read_lines(path)
    if lines and not lines[-1].endswith(("\n", "\r")):
        note(notes, 1, "unended last line dropped")
        lines.pop()
    return lines


def whole_rows(path: Path, notes: list[str]) -> list[Row]:
    """Rows of a table in a file."""
    return list(rows_of(whole_lines(path, notes)))


def numbers_of(
    rows: Sequence[Sequence[str]], columns: int, wanted: Sequence[int], notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (rows, wanted) of rows of text, and which rows they are (rows,).

    Empty cells become NaN. Rows of another length than `columns`, without any number or with other
    text are dropped and counted.
    """
    table, index, other_length = [], [], 0
    for k, cells in enumerate(rows):
        if len(cells) != columns:
            other_length += 1
            continue
        with suppress(ValueError):
            table.append([float(cells[i]) if cells[i] else np.nan for i in wanted])
            index.append(k)
    note(notes, other_length, f"row{{s}} without {columns} columns dropped")
    note(notes, len(rows) - other_length - len(table), "row{s} without numbers dropped")
    return np.array(table).reshape(-1, len(wanted)), np.array(index, int)
