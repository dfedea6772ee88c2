"""The bytes of all messages of one row, and where its numbers stand in them.

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

from musls_sim.recording import messages as msg
from musls_sim.recording.signals import Columns, Messages, RowMessages

STAMP_COLUMNS: dict[str, np.dtype[Any]] = {
    "stamp_ns": np.dtype("<u8"),
    "sec": np.dtype("<i4"),
    "nanosec": np.dtype("<u4"),
}
"""What a row's time becomes: time of the MCAP records, and the two parts of a ROS stamp."""

_MESSAGE_OPCODE = 0x05
_RECORD_HEAD = struct.Struct("<BQHIQQ")
RECORD_HEAD_SIZE = _RECORD_HEAD.size
_SIZE_COUNTS_FROM = 9
"""A record's size does not count its opcode and the size itself."""


class Run(NamedTuple):
    """Numbers that follow each other both in a column and in the bytes.

    Attributes:
        column: Name of the column.
        first: Index of the first number in the flattened column.
        length: How many.
        offset: Byte at which the first stands in the row.
        dtype: Of one number.
    """

    column: str
    first: int
    length: int
    offset: int
    dtype: np.dtype


class RowTemplate(NamedTuple):
    """One row as bytes of MCAP message records.

    Attributes:
        data: The bytes, (size,) uint8.
        bounds: Where each record starts, and the end, (n_messages + 1,).
        channels: Channel of each record, (n_messages,).
        runs: Where the numbers belong.
    """

    data: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    channels: NDArray[np.int64]
    runs: tuple[Run, ...]


def message_record(channel: int, stamp_ns: int, data: bytes) -> bytes:
    """One MCAP Message record, log and publish time both the simulated time."""
    size = _RECORD_HEAD.size - _SIZE_COUNTS_FROM + len(data)
    return _RECORD_HEAD.pack(_MESSAGE_OPCODE, size, channel, 0, stamp_ns, stamp_ns) + data


def probe_row(build: RowMessages, columns: Columns) -> tuple[Messages, dict[str, np.ndarray]]:
    """Build the messages of a row of distinctive random numbers.

    Returns:
        The messages, and the numbers by column, stamps included.
    """
    rng = np.random.default_rng(20250101)
    ranges = {"stamp_ns": (2**62, 2**63 - 1), "sec": (2**30, 2**31 - 1),
              "nanosec": (2**30, 2**32 - 1)}  # fmt: skip
    values: dict[str, np.ndarray] = {
        name: rng.integers(*ranges[name], 1).astype(dtype) for name, dtype in STAMP_COLUMNS.items()
    }
    row: dict[str, NDArray[Any]] = {
        name: rng.uniform(1.0, 2.0, shape).astype(np.float32 if name == msg.SINGLE else np.float64)
        for name, shape in columns.items()
    }
    time = msg.stamp(int(values["sec"][0]), int(values["nanosec"][0]))
    return build(time, row), values | row


def row_template(
    build: RowMessages, columns: Columns, channel_of: Mapping[str, int]
) -> RowTemplate:
    """Probe the layout of a row.

    Args:
        build: Makes the messages of a row.
        columns: Arrays of a row.
        channel_of: Channel number of each topic.
    """
    messages, values = probe_row(build, columns)
    stamp_ns = int(values["stamp_ns"][0])
    records = [message_record(channel_of[t], stamp_ns, msg.serialize(m)) for t, m in messages]
    data = b"".join(records)
    return RowTemplate(
        np.frombuffer(data, np.uint8),
        np.cumsum([0, *map(len, records)]),
        np.array([channel_of[topic] for topic, _ in messages]),
        tuple(_runs(data, values)),
    )


def _runs(data: bytes, values: Mapping[str, np.ndarray]) -> list[Run]:
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
        if last and _follows(last, place):
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


def _follows(run: Run, place: Run) -> bool:
    return (
        place.column == run.column
        and place.first == run.first + run.length
        and place.offset == run.offset + run.length * run.dtype.itemsize
    )


# ---------- Turns rows of numbers into the bytes of their messages, all rows at once.

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


# ---------- Several kinds of rows in one order of time: an MCAP chunk


class Chunk(NamedTuple):
    """What an MCAP chunk holds.

    Attributes:
        data: Message records in the order of time.
        indexes: By channel: time [ns] and offset in the data of each message, (n, 2) uint64.
        start_ns: Earliest time.
        end_ns: Latest time.
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
