"""A rosbag2 folder (MCAP) into which whole chunks of messages go, rendered many rows at once.

All records are those of the `mcap` package (`mcap.records`, https://mcap.dev/spec). Its `Writer`
takes single messages, about a thousand for a second of flight, at several us each, and cannot take
back a chunk that did not fit on the disk; `benchmarks/flight_loop.py bag` prints the cost.

For given frame names and array sizes every message has a fixed layout, so all rows of a flight
differ only in numbers. The layout is not derived from the rules of CDR but probed: one row with
distinctive random numbers goes through the real serialiser, and each number is looked for in the
result. Whatever builds the messages stays plain code, and a number may land in several messages.
"""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from mcap.records import Chunk as ChunkRecord
from mcap.well_known import MessageEncoding, Profile, SchemaEncoding
from numpy.typing import NDArray
from rosbags.rosbag2.metadata import dump_qos_v9

from musls_description.config.errors import MuslsError, is_full_disk
from musls_description.config.schema import to_yaml
from musls_sim.recording.messages import serialize
from musls_sim.recording.messages import types as message_types
from musls_sim.recording.signals import Columns, Row, qos

NANOSECONDS = 1_000_000_000

_STAMP = {"stamp_ns": "<u8", "sec": "<i4", "nanosec": "<u4"}
"""Time of a row, as the MCAP records hold it and as the two parts of a ROS stamp."""

_MESSAGE_OPCODE = 0x05
_RECORD_HEAD = struct.Struct("<BQHIQQ")
RECORD_HEAD_SIZE = _RECORD_HEAD.size
_SIZE_COUNTS_FROM = 9
"""A record's size does not count its opcode and the size itself."""


def message_record(channel: int, stamp_ns: int, data: bytes) -> bytes:
    """One MCAP Message record, log and publish time both the simulated time."""
    size = _RECORD_HEAD.size - _SIZE_COUNTS_FROM + len(data)
    return _RECORD_HEAD.pack(_MESSAGE_OPCODE, size, channel, 0, stamp_ns, stamp_ns) + data


class Spot(NamedTuple):
    """Place of a number: number of a flattened column, byte of the row."""

    column: str
    number: int
    offset: int
    dtype: np.dtype[Any]


class Rendered(NamedTuple):
    """Messages as bytes of MCAP message records, one after another.

    Attributes:
        stamps_ns: Time of each record, (n,).
        channels: Channel of each record, (n,).
        sizes: Bytes of each record, (n,).
    """

    data: memoryview
    stamps_ns: NDArray[np.int64]
    channels: NDArray[np.int64]
    sizes: NDArray[np.int64]


class RowTemplate:
    """One row as bytes of MCAP message records, and where its numbers belong.

    Attributes:
        topics: Topic of each record.
    """

    def __init__(self, row: Row, channel_of: Mapping[str, int]) -> None:
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
        data = b"".join(records)
        self._data = np.frombuffer(data, np.uint8)
        self._sizes = np.array([*map(len, records)])
        self._channels = np.array([channel_of[topic] for topic in self.topics])
        time = {"stamp_ns": stamp_ns, "sec": sec, "nanosec": nanosec}
        numbers |= {name: np.array([time[name]], dtype) for name, dtype in _STAMP.items()}
        self._spots = [
            Spot(name, k, offset, column.dtype)
            for name, column in numbers.items()
            for k, number in enumerate(column.ravel())
            for offset in _occurrences(data, number.tobytes(), f"{name}[{k}]")
        ]

    def render(
        self,
        stamps_ns: NDArray[np.int64],
        columns: Columns,
        wanted: NDArray[np.bool_] | None = None,
    ) -> Rendered:
        """Fill the template with the numbers of many rows, arrays (rows, ...).

        `wanted`: which messages of which row to keep, (rows, n_messages); None keeps all.
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
        for column, number, offset, dtype in self._spots:
            there = np.ndarray((rows,), dtype, data, offset, data.strides[:1])
            there[:] = values[column][:, number]

        stamps, channels, sizes = (
            np.broadcast_to(part, (rows, len(self._sizes)))
            for part in (stamps_ns[:, None], self._channels, self._sizes)
        )
        if wanted is None:
            wanted = np.ones(sizes.shape, bool)
            data = data.reshape(-1)
        else:
            data = data[np.repeat(wanted, self._sizes, axis=1)]
        return Rendered(memoryview(data.data), stamps[wanted], channels[wanted], sizes[wanted])


def _occurrences(data: bytes, part: bytes, name: str) -> list[int]:
    found, start = [], data.find(part)
    while start >= 0:
        found.append(start)
        start = data.find(part, start + 1)
    if not found:
        raise AssertionError(f"no message of the row holds {name}")
    return found


def render_each(messages: Sequence[tuple[int, int, bytes]]) -> Rendered:
    """Make records of single messages (time [ns], channel, CDR bytes), each a row of its own."""
    records = [message_record(channel, stamp_ns, data) for stamp_ns, channel, data in messages]
    stamps, channels = (np.array([m[k] for m in messages], np.int64) for k in (0, 1))
    sizes = np.array([*map(len, records)], np.int64)
    return Rendered(memoryview(b"".join(records)), stamps, channels, sizes)


class Chunk(NamedTuple):
    """Contents of an MCAP chunk.

    Attributes:
        data: Message records in the order of time.
        indexes: By channel: time [ns] and offset in the data of each message, (n, 2) uint64.
    """

    data: bytes
    indexes: dict[int, NDArray[np.uint64]]
    start_ns: int
    end_ns: int


def merge(parts: Sequence[Rendered]) -> Chunk | None:
    """Sort records by time; those of the same time keep their order. None if empty."""
    stamps, channels, sizes = (
        np.concatenate([part[k] for part in parts]) for k in range(1, len(Rendered._fields))
    )
    if not len(stamps):
        return None
    records = [
        part.data[a:b] for part in parts for a, b in pairwise([0, *np.cumsum(part.sizes).tolist()])
    ]
    order = np.argsort(stamps, kind="stable")
    stamps, channels, sizes = stamps[order], channels[order], sizes[order]
    by_channel = np.argsort(channels, kind="stable")
    entries = np.column_stack([stamps, np.cumsum(sizes) - sizes])[by_channel].astype("<u8")
    numbers, counts = np.unique(channels, return_counts=True)
    groups = np.split(entries, np.cumsum(counts)[:-1])
    return Chunk(
        b"".join([records[k] for k in order.tolist()]),
        dict(zip(numbers.tolist(), groups, strict=True)), int(stamps[0]), int(stamps[-1]),
    )  # fmt: skip


class RecordingError(MuslsError):
    """A bag cannot be created or written; the message names the path and the reason."""


MAGIC = b"\x89MCAP0\r\n"
"""First and last bytes of an MCAP file (`mcap.writer` has it, too, but loads compressors)."""

METADATA_VERSION = 9
"""Of metadata.yaml: that of ROS 2 Jazzy."""


class _Written(NamedTuple):
    """A chunk in the file.

    Attributes:
        start: Byte of the file at which it begins.
        entry: Its part of the summary.
        counts: Number of messages by channel.
    """

    start: int
    entry: bytes
    start_ns: int
    end_ns: int
    counts: dict[int, int]


class BagFile:
    """A bag under construction; complete after `close`, and readable from its beginning before."""

    def __init__(self, folder: Path, types: Mapping[str, str]) -> None:
        """Create the folder, which must not exist, with an empty bag.

        `types`: message type of each topic; the channels are numbered from 1 in this order.
        """
        self.folder = folder
        self._types = dict(types)
        self._chunks: list[_Written] = []
        self._counts = Counter({channel: 0 for channel in range(1, 1 + len(types))})
        made: list[Path] = []
        try:
            made += [path for path in (folder, *folder.parents) if not path.exists()]
            if folder not in made:
                raise FileExistsError(None, "it exists already, choose another folder")
            folder.mkdir(parents=True)
            self._name, self._size = f"{folder.name}.mcap", 0
            self._file: int | None = os.open(
                folder / self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644
            )
            self._schemas, self._channels = _schemas_and_channels(self._types)
            header = Header(Profile.ROS2, "musls")
            self._append(MAGIC + _bytes([header, *self._schemas, *self._channels]))
        except BaseException as error:
            if made:
                shutil.rmtree(made[-1], ignore_errors=True)
            if isinstance(error, OSError):
                raise self._error("create", error) from error
            raise

    @property
    def messages(self) -> int:
        """Number of messages in the file."""
        return sum(self._counts.values())

    def write(self, chunk: Chunk) -> None:
        """Append a chunk; it is with the operating system when this returns.

        Raises:
            RecordingError: The disk does not take it. The bag is closed with what it had before;
                on a full disk without the last chunk, which leaves room for what ends a bag.
        """
        start, counts = self._size, {k: len(entries) for k, entries in chunk.indexes.items()}
        try:
            index, data = self._records(chunk)
            self._append(data)
        except OSError as error:
            if is_full_disk(error):
                self._take_back()
            with suppress(RecordingError):
                self.close()
            raise self._error("write", error) from error
        self._counts.update(counts)
        self._chunks.append(_Written(start, _bytes([index]), chunk.start_ns, chunk.end_ns, counts))

    def close(self) -> None:
        """Write summary and metadata.yaml; on a full disk chunks make room for them, last first.

        Raises:
            RecordingError: The disk does not take them, or only without the last chunks.
        """
        full: OSError | None = None
        while True:
            try:
                self._finish()
                break
            except OSError as error:
                if is_full_disk(error) and self._chunks:
                    full = error
                    self._take_back()
                    continue
                with suppress(OSError):
                    self._close_file()
                raise self._error("finish", error) from error
        if full is not None:
            raise self._error("finish", full) from full

    def _finish(self) -> None:
        information = to_yaml(self._information())
        self._append(self._end(information))
        text = f"rosbag2_bagfile_information:\n{indent(information, '  ')}"
        half = self.folder / "metadata.yaml.tmp"
        try:
            half.write_text(text, encoding="utf-8")
            half.replace(self.folder / "metadata.yaml")
        except OSError:
            half.unlink(missing_ok=True)
            raise
        self._close_file()

    def _take_back(self) -> None:
        """Take the last chunk and all behind it out of the file."""
        if self._chunks and self._file is not None:
            last = self._chunks.pop()
            self._counts.subtract(last.counts)
            self._cut(last.start)

    def _cut(self, size: int) -> None:
        """Shorten the file to a size."""
        assert self._file is not None
        os.ftruncate(self._file, size)
        os.lseek(self._file, size, os.SEEK_SET)
        self._size = size

    def _append(self, data: bytes) -> None:
        """Write all or nothing: nothing half-written stays, also not after Ctrl-C."""
        if self._file is None:
            raise OSError(None, "it is closed")
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except BaseException:
            self._cut(self._size)
            raise
        self._size += len(data)

    def _close_file(self) -> None:
        descriptor, self._file = self._file, None
        if descriptor is not None:
            os.close(descriptor)

    def _records(self, chunk: Chunk) -> tuple[ChunkIndex, bytes]:
        """Chunk and message index records, and their entry in the summary."""
        size, builder = len(chunk.data), RecordBuilder()
        ChunkRecord(
            compression="", data=chunk.data, message_start_time=chunk.start_ns,
            message_end_time=chunk.end_ns, uncompressed_crc=zlib.crc32(chunk.data),
            uncompressed_size=size,
        ).write(builder)  # fmt: skip
        length, offsets = builder.count, {}
        for channel, entries in chunk.indexes.items():
            offsets[channel] = self._size + builder.count
            # As `mcap.records.MessageIndex`, which writes each number of each message by itself.
            builder.start_record(Opcode.MESSAGE_INDEX)
            builder.write2(channel)
            builder.write4(entries.nbytes)
            builder.write(entries.astype("<u8").tobytes())
            builder.finish_record()
        index = ChunkIndex(
            message_start_time=chunk.start_ns, message_end_time=chunk.end_ns,
            chunk_start_offset=self._size, chunk_length=length,
            message_index_offsets=offsets, message_index_length=builder.count - length,
            compression="", compressed_size=size, uncompressed_size=size,
        )  # fmt: skip
        return index, builder.end()

    def _end(self, information: str) -> bytes:
        """Everything after the last chunk."""
        start, end = self._span_ns()
        metadata = Metadata(name="rosbag2", metadata={"serialized_metadata": information})
        entry = MetadataIndex(self._size, len(_bytes([metadata])), metadata.name)
        data = _bytes([metadata, DataEnd(data_section_crc=0)])
        statistics = Statistics(
            attachment_count=0, channel_count=len(self._channels), chunk_count=len(self._chunks),
            channel_message_counts=self._counts, message_count=self.messages, metadata_count=1,
            message_start_time=start, message_end_time=end, schema_count=len(self._schemas),
        )  # fmt: skip
        groups = {
            Opcode.SCHEMA: _bytes(self._schemas),
            Opcode.CHANNEL: _bytes(self._channels),
            Opcode.STATISTICS: _bytes([statistics]),
            Opcode.CHUNK_INDEX: b"".join(chunk.entry for chunk in self._chunks),
            Opcode.METADATA_INDEX: _bytes([entry]),
        }
        summary_start = self._size + len(data)
        summary, offsets = b"", []
        for opcode, group in groups.items():
            offsets.append(SummaryOffset(opcode, summary_start + len(summary), len(group)))
            summary += group
        footer = Footer(summary_start, summary_start + len(summary), summary_crc=0)
        return data + summary + _bytes([*offsets, footer]) + MAGIC

    def _span_ns(self) -> tuple[int, int]:
        starts, ends = ([getattr(c, key) for c in self._chunks] for key in ("start_ns", "end_ns"))
        return min(starts, default=0), max(ends, default=0)

    def _information(self) -> dict[str, Any]:
        start, end = self._span_ns()
        span = {
            "duration": {"nanoseconds": end - start},
            "starting_time": {"nanoseconds_since_epoch": start},
            "message_count": self.messages,
        }
        return {
            "version": METADATA_VERSION,
            "storage_identifier": "mcap",
            "relative_file_paths": [self._name],
            **span,
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic,
                        "type": msgtype,
                        "serialization_format": MessageEncoding.CDR,
                        "offered_qos_profiles": dump_qos_v9([qos(topic)]),
                        "type_description_hash": _type_hash(msgtype),
                    },
                    "message_count": self._counts[channel],
                }
                for channel, (topic, msgtype) in enumerate(self._types.items(), start=1)
            ],
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": self._name, **span}],
            "custom_data": None,
            "ros_distro": "jazzy",
        }

    def _error(self, action: str, error: OSError) -> RecordingError:
        text = f"cannot {action} bag {self.folder}: {error.strerror or error}"
        if self._chunks:
            text += f"; it ends at {self._span_ns()[1] / NANOSECONDS:.3f} s"
        return RecordingError(text)


def _bytes(records: Sequence[McapRecord]) -> bytes:
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    data: bytes = builder.end()
    return data


def _schemas_and_channels(types: Mapping[str, str]) -> tuple[list[Schema], list[Channel]]:
    schemas: dict[str, Schema] = {}
    channels = []
    for number, (topic, msgtype) in enumerate(types.items(), start=1):
        if msgtype not in schemas:
            definition, _ = message_types().generate_msgdef(msgtype, ros_version=2)
            schemas[msgtype] = Schema(
                id=1 + len(schemas), data=definition.encode(), encoding=SchemaEncoding.ROS2,
                name=msgtype,
            )  # fmt: skip
        metadata = {
            "offered_qos_profiles": to_yaml(dump_qos_v9([qos(topic)])),
            "topic_type_hash": _type_hash(msgtype),
        }
        channels.append(
            Channel(
                id=number,
                topic=topic,
                message_encoding=MessageEncoding.CDR,
                metadata=metadata,
                schema_id=schemas[msgtype].id,
            )
        )
    return list(schemas.values()), channels


@cache
def _type_hash(msgtype: str) -> str:
    text: str = message_types().hash_rihs01(msgtype)
    return text
