"""Several kinds of rows put into one order of time: an MCAP chunk with its message indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_sim.recording.row_renderer import Rendered


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
