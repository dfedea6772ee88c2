"""Rows of numbers as the bytes of their messages, many rows at once, and chunks of an MCAP file.

For given frame names and array sizes every message has a fixed layout, so all rows of a flight
differ only in numbers. The layout is not derived from the rules of CDR but probed: one row with
distinctive random numbers goes through the real serialiser, and each number is looked for in the
result. Whatever builds the messages stays plain code, and a number may land in several messages.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_sim.recording.messages import serialize
from musls_sim.recording.signals import Columns, Row

NANOSECONDS = 1_000_000_000

_STAMP = {"stamp_ns": "<u8", "sec": "<i4", "nanosec": "<u4"}
"""What a row's time becomes: time of the MCAP records, and the two parts of a ROS stamp."""

_MESSAGE_OPCODE = 0x05
_RECORD_HEAD = struct.Struct("<BQHIQQ")
RECORD_HEAD_SIZE = _RECORD_HEAD.size
_SIZE_COUNTS_FROM = 9
"""A record's size does not count its opcode and the size itself."""


def message_record(channel: int, stamp_ns: int, data: bytes) -> bytes:
    """One MCAP Message record, log and publish time both the simulated time."""
    size = _RECORD_HEAD.size - _SIZE_COUNTS_FROM + len(data)
    return _RECORD_HEAD.pack(_MESSAGE_OPCODE, size, channel, 0, stamp_ns, stamp_ns) + data


class Run(NamedTuple):
    """Numbers that follow each other both in a column and in the bytes.

    Attributes:
        first: Index of the first number in the flattened column.
        offset: Byte at which the first stands in the row.
    """

    column: str
    first: int
    length: int
    offset: int
    dtype: np.dtype[Any]


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


class RowTemplate:
    """One row as bytes of MCAP message records, and where its numbers belong.

    Attributes:
        topics: Topic of each record.
    """

    def __init__(self, row: Row, channel_of: Mapping[str, int]) -> None:
        """Probe the layout of a row."""
        rng = np.random.default_rng(20250101)
        sec, nanosec = int(rng.integers(2**30, 2**31 - 1)), int(rng.integers(2**29, NANOSECONDS))
        stamp_ns = sec * NANOSECONDS + nanosec
        numbers: dict[str, NDArray[Any]] = {
            key: rng.uniform(1.0, 2.0, shape).astype(row.dtypes[key])
            for key, shape in row.shapes.items()
        }
        messages = row.messages(stamp_ns, numbers)
        records = [message_record(channel_of[t], stamp_ns, serialize(m)) for t, m in messages]
        self.topics = [topic for topic, _ in messages]
        self._data = np.frombuffer(b"".join(records), np.uint8)
        self._bounds = np.cumsum([0, *map(len, records)])
        self._channels = np.array([channel_of[topic] for topic in self.topics])
        time = {"stamp_ns": stamp_ns, "sec": sec, "nanosec": nanosec}
        numbers |= {name: np.array([time[name]], dtype) for name, dtype in _STAMP.items()}
        self._runs = _runs(b"".join(records), numbers)

    def render(
        self,
        stamps_ns: NDArray[np.int64],
        columns: Columns,
        wanted: NDArray[np.bool_] | None = None,
    ) -> Rendered:
        """Fill the template with the numbers of many rows.

        Args:
            stamps_ns: Times, (rows,).
            columns: Arrays by name, (rows, ...).
            wanted: Which messages of which row to keep, (rows, n_messages); None keeps all.
        """
        rows = len(stamps_ns)
        if rows == 0:
            return render_each([])
        values: dict[str, NDArray[Any]] = {
            name: column.reshape(rows, prod(column.shape[1:])) for name, column in columns.items()
        }
        sec, nanosec = np.divmod(stamps_ns, NANOSECONDS)
        values |= {"stamp_ns": stamps_ns[:, None], "sec": sec[:, None], "nanosec": nanosec[:, None]}
        data = np.tile(self._data, (rows, 1))
        for run in self._runs:
            strides = data.strides[0], run.dtype.itemsize
            place = np.ndarray((rows, run.length), run.dtype, data, run.offset, strides)
            place[:] = values[run.column][:, run.first : run.first + run.length]

        widths = np.diff(self._bounds)
        if wanted is None:
            wanted = np.ones((rows, len(widths)), bool)
            data = data.reshape(-1)
        else:
            data = data[np.repeat(wanted, widths, axis=1)]
        ends = np.concatenate([[0], np.cumsum(np.where(wanted, widths, 0))])
        row, message = np.nonzero(wanted)
        return Rendered(
            memoryview(data.data), stamps_ns, ends[:: len(widths)], self._channels[message], row,
            ends[:-1][wanted.ravel()],
        )  # fmt: skip


def _runs(data: bytes, values: Mapping[str, NDArray[Any]]) -> list[Run]:
    """Find every number of the probe in the bytes and join neighbours."""
    places = []
    for name, column in values.items():
        for index, number in enumerate(column.ravel()):
            found = _occurrences(data, number.tobytes())
            if not found:
                raise AssertionError(f"no message of the row holds {name}[{index}]")
            places += [Run(name, index, 1, offset, column.dtype) for offset in found]
    runs: list[Run] = []
    for place in sorted(places, key=lambda p: p.offset):
        last = runs[-1] if runs else None
        if last and (place.column, place.first, place.offset) == (
            last.column, last.first + last.length, last.offset + last.length * last.dtype.itemsize
        ):  # fmt: skip
            runs[-1] = last._replace(length=last.length + 1)
        else:
            runs.append(place)
    return runs


def _occurrences(data: bytes, part: bytes) -> list[int]:
    found, start = [], data.find(part)
    while start >= 0:
        found.append(start)
        start = data.find(part, start + 1)
    return found


def render_each(messages: Sequence[tuple[int, int, bytes]]) -> Rendered:
    """Make records of single messages (time [ns], channel, CDR bytes), each a row of its own."""
    n = len(messages)
    records = [message_record(channel, stamp_ns, data) for stamp_ns, channel, data in messages]
    bounds = np.cumsum([0, *map(len, records)])
    stamps, channels = (np.array([m[k] for m in messages], np.int64) for k in (0, 1))
    return Rendered(
        memoryview(b"".join(records)), stamps, bounds, channels, np.arange(n), bounds[:-1]
    )


class Chunk(NamedTuple):
    """What an MCAP chunk holds.

    Attributes:
        data: Message records in the order of time.
        indexes: By channel: time [ns] and offset in the data of each message, (n, 2) uint64.
    """

    data: bytes
    indexes: dict[int, NDArray[np.uint64]]
    start_ns: int
    end_ns: int


def merge(parts: Sequence[Rendered]) -> Chunk | None:
    """Sort rows by time; rows of the same time keep the order of the parts. None if empty."""
    first_row = np.cumsum([0, *(len(part.stamps_ns) for part in parts)])
    stamps = np.concatenate([part.stamps_ns for part in parts])
    sizes = np.concatenate([np.diff(part.bounds) for part in parts])
    order = np.argsort(stamps, kind="stable")

    starts = np.empty(len(order), np.int64)
    starts[order] = np.cumsum(sizes[order]) - sizes[order]
    rows = [
        part.data[a:b]
        for part in parts
        for a, b in zip(part.bounds[:-1].tolist(), part.bounds[1:].tolist(), strict=True)
    ]
    data = b"".join([rows[k] for k in order.tolist()])
    if not data:
        return None

    row = np.concatenate([part.rows + k for part, k in zip(parts, first_row[:-1], strict=True)])
    within = np.concatenate([part.offsets - part.bounds[part.rows] for part in parts])
    channels = np.concatenate([part.channels for part in parts])
    offsets = starts[row] + within
    # By channel, and within a channel in the order of the file: one key, a chunk is below 2^40.
    by_channel = np.argsort(channels << 40 | offsets)
    entries = np.column_stack([stamps[row], offsets])[by_channel].astype("<u8")
    numbers, counts = np.unique(channels, return_counts=True)
    groups = np.split(entries, np.cumsum(counts)[:-1])
    times = entries[:, 0]
    return Chunk(
        data, dict(zip(numbers.tolist(), groups, strict=True)), int(times.min()), int(times.max())
    )
