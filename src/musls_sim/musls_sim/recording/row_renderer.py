"""Turns rows of numbers into the bytes of their messages, all rows at once."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_sim.recording.row_template import RowTemplate, message_record

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


def render_rows(
    template: RowTemplate,
    stamps_ns: NDArray[np.int64],
    columns: Mapping[str, NDArray[np.float64]],
    wanted: NDArray[np.bool_] | None = None,
) -> Rendered:
    """Fill a row's template with the numbers of many rows.

    Args:
        template: Layout of a row's messages.
        stamps_ns: Times, (rows,).
        columns: Arrays by name, (rows, ...).
        wanted: Which messages of which row to keep, (rows, n_messages); None keeps all.
    """
    rows = len(stamps_ns)
    if rows == 0:
        return render_each(0, [])
    values: dict[str, NDArray[Any]] = {
        name: column.reshape(rows, prod(column.shape[1:])) for name, column in columns.items()
    }
    sec, nanosec = np.divmod(stamps_ns, NANOSECONDS)
    values |= {"stamp_ns": stamps_ns[:, None], "sec": sec[:, None], "nanosec": nanosec[:, None]}
    data = np.tile(template.data, (rows, 1))
    for run in template.runs:
        place = np.ndarray(
            (rows, run.length), run.dtype, data, run.offset, (data.strides[0], run.dtype.itemsize)
        )
        place[:] = values[run.column][:, run.first : run.first + run.length]

    widths, channels = np.diff(template.bounds), template.channels
    if wanted is None:
        wanted = np.ones((rows, len(channels)), bool)
        data = data.reshape(-1)
    else:
        data = data[np.repeat(wanted, widths, axis=1)]
    ends = np.concatenate([[0], np.cumsum(np.where(wanted, widths, 0))])
    row, message = np.nonzero(wanted)
    return Rendered(
        memoryview(data.data), stamps_ns, ends[:: len(channels)], channels[message], row,
        ends[:-1][wanted.ravel()],
    )  # fmt: skip


def render_each(channel: int, stamped: list[tuple[int, bytes]]) -> Rendered:
    """Make records of single messages of one channel, each a row of its own.

    Args:
        channel: Their channel.
        stamped: Time [ns] and CDR bytes of each.
    """
    n = len(stamped)
    records = [message_record(channel, stamp_ns, data) for stamp_ns, data in stamped]
    bounds = np.cumsum([0, *map(len, records)])
    return Rendered(
        memoryview(b"".join(records)), np.array([stamp_ns for stamp_ns, _ in stamped], np.int64),
        bounds, np.full(n, channel), np.arange(n), bounds[:-1],
    )  # fmt: skip
