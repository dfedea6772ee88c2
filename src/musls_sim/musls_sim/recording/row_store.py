"""Rows of numbers in contiguous arrays that grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_FIRST_ROWS = 64


Scalar = TypeVar("Scalar", bound=np.generic)


class RowStore:
    """Copies rows of numbers as they come.

    Attributes:
        rows: Number of rows.
    """

    def __init__(self, columns: Mapping[str, tuple[int, ...]]) -> None:
        """Allocate room for the first rows.

        Args:
            columns: Name and shape of the arrays of a row, in the order of `append`.
        """
        self.rows = 0
        self._capacity = _FIRST_ROWS
        self._stamps = np.zeros(_FIRST_ROWS, np.int64)
        self._columns = {name: np.zeros((_FIRST_ROWS, *shape)) for name, shape in columns.items()}
        self._arrays = tuple(self._columns.values())

    def append(self, stamp_ns: int, *values: NDArray[np.float64]) -> None:
        """Copy a row.

        Args:
            stamp_ns: Time of the row.
            values: One per column.
        """
        row = self.rows
        if row == self._capacity:
            self._grow()
        self._stamps[row] = stamp_ns
        for column, value in zip(self._arrays, values, strict=True):
            column[row] = value
        self.rows = row + 1

    def stamps_ns(self, first: int = 0) -> NDArray[np.int64]:
        """Times of the rows from `first` on, a view (rows - first,)."""
        return self._stamps[first : self.rows]

    def columns(self, first: int = 0) -> dict[str, NDArray[np.float64]]:
        """Columns of the rows from `first` on, views (rows - first, ...)."""
        return {name: column[first : self.rows] for name, column in self._columns.items()}

    def forget(self) -> None:
        """Drop all rows; the memory is used again."""
        self.rows = 0

    @property
    def nbytes(self) -> int:
        """Memory that the rows take."""
        row_bytes: int = 8 + sum(array[0].nbytes for array in self._arrays)
        return self.rows * row_bytes

    def _grow(self) -> None:
        self._capacity *= 2
        self._stamps = _longer(self._stamps, self._capacity)
        self._columns = {k: _longer(column, self._capacity) for k, column in self._columns.items()}
        self._arrays = tuple(self._columns.values())


def _longer(array: NDArray[Scalar], rows: int) -> NDArray[Scalar]:
    longer: NDArray[Scalar] = np.empty((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
