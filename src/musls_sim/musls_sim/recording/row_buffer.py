"""A buffer of rows that turns into the bytes of their messages all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_sim.recording.row_template import RowTemplate, Run
from musls_sim.recording.topics import Columns

NANOSECONDS = 1_000_000_000


class Rendered(NamedTuple):
    """Rows as bytes of MCAP message records.

    Attributes:
        data: All records, row after row.
        stamps_ns: Time of each row, (rows,).
        bounds: Where each row starts in the data, and the end, (rows + 1,).
        channels: Channel of each record, (n,).
        rows: Row of each record, (n,).
        offsets: Start of each record in the data, (n,).
    """

    data: memoryview
    stamps_ns: NDArray[np.int64]
    bounds: NDArray[np.int64]
    channels: NDArray[np.int64]
    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]


class RowBuffer:
    """Copies rows of numbers as they come; all memory is allocated at the start."""

    def __init__(self, template: RowTemplate, columns: Columns, capacity: int) -> None:
        """Allocate.

        Args:
            template: Layout of a row's messages.
            columns: Arrays of a row, in the order of `append`.
            capacity: Largest number of rows.
        """
        self.capacity = capacity
        self.rows = 0
        self.stamps_ns = np.zeros(capacity, np.int64)
        self.columns = {name: np.zeros((capacity, *shape)) for name, shape in columns.items()}
        self._template = template
        self._arrays = tuple(self.columns.values())
        self._flat = {name: c.reshape(capacity, -1) for name, c in self.columns.items()}
        self._bytes = np.tile(template.data, (capacity, 1))
        self._places = [(run, self._place(run)) for run in template.runs]

    def append(self, stamp_ns: int, *values: NDArray[np.float64]) -> None:
        """Copy a row; there must be room for it.

        Args:
            stamp_ns: Time of the row.
            values: One per column.
        """
        row = self.rows
        self.stamps_ns[row] = stamp_ns
        for column, value in zip(self._arrays, values, strict=True):
            column[row] = value
        self.rows = row + 1

    def render(
        self,
        wanted: NDArray[np.bool_] | None = None,
        derived: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> Rendered:
        """Turn the rows into bytes and empty the buffer.

        The result may share memory with the buffer: use it before the next call.

        Args:
            wanted: Which messages of which row to keep, (rows, n_messages); None keeps all.
            derived: Columns to take instead of what was copied, (rows, numbers in a row) each.
        """
        rows, self.rows = self.rows, 0
        stamps = self.stamps_ns[:rows]
        sec, nanosec = np.divmod(stamps, NANOSECONDS)
        times = {"stamp_ns": stamps[:, None], "sec": sec[:, None], "nanosec": nanosec[:, None]}
        values = {**self._flat, **times, **(derived or {})}
        for run, place in self._places:
            place[:rows] = values[run.column][:rows, run.first : run.first + run.count]

        bounds, channels = self._template.bounds, self._template.channels
        data = self._bytes[:rows]
        if wanted is None:
            wanted = np.ones((rows, len(channels)), bool)
            data = data.reshape(-1)
        else:
            data = data[np.repeat(wanted, np.diff(bounds), axis=1)]
        sizes = np.where(wanted, np.diff(bounds), 0).ravel()
        ends = np.concatenate([[0], np.cumsum(sizes)])
        row, message = np.nonzero(wanted)
        return Rendered(
            memoryview(data), stamps, ends[:: len(channels)], channels[message], row,
            ends[:-1][wanted.ravel()],
        )  # fmt: skip

    def _place(self, run: Run) -> NDArray:
        """View of one run of numbers in the bytes of all rows, (capacity, count)."""
        return np.ndarray(
            (self.capacity, run.count), run.dtype, self._bytes, run.offset,
            (self._bytes.strides[0], run.dtype.itemsize),
        )  # fmt: skip
