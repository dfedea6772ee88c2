"""The bytes of all messages of one row, and where its numbers stand in them.

For given frame names and array sizes every message has a fixed layout, so all rows of a flight
differ only in numbers. The layout is not derived from the rules of CDR but probed: one row with
distinctive random numbers goes through the real serialiser, and each number is looked for in the
result. Whatever builds the messages stays plain code, and a number may land in several messages.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_sim.recording import messages as msg
from musls_sim.recording.topics import Columns, Messages, RowMessages

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
