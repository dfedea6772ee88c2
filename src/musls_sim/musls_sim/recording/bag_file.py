"""A rosbag2 folder (MCAP) into which whole chunks of messages go, rendered many rows at once.

All records are those of the `mcap` package (`mcap.records`, https://mcap.dev/spec). Its `Writer`
takes single messages, about a thousand for a second of flight, at several us each, and cannot take
back a chunk that did not fit on the disk; `benchmarks/recording.py` prints what both cost.

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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np
import yaml
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
from rosbags.interfaces import Qos

from musls_description.errors import MuslsError
from musls_sim.recording.messages import serialize
from musls_sim.recording.messages import types as message_types
from musls_sim.recording.signals import Columns, Row, qos

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
        self._sizes = np.array([*map(len, records)])
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
    records = [message_record(channel, stamp_ns, data) for stamp_ns, channel, data in messages]
    stamps, channels = (np.array([m[k] for m in messages], np.int64) for k in (0, 1))
    sizes = np.array([*map(len, records)], np.int64)
    return Rendered(memoryview(b"".join(records)), stamps, channels, sizes)


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


class BagFile:
    """A bag under construction; complete after `close`, and readable from its beginning before."""

    def __init__(self, folder: Path, types: Mapping[str, str], compress: bool = False) -> None:
        """Create the folder with an empty bag.

        `folder`: must not exist; folders above it are made.
        `types`: message type of each topic; the channels are numbered from 1 in this order.

        Raises:
            RecordingError: The folder exists or cannot be made; nothing is left behind.
        """
        self.folder = folder
        self._types = dict(types)
        self._compress = compress
        self._chunks: list[bytes] = []  # their entries in the summary
        self._start_ns, self._end_ns = 2**63 - 1, 0
        self._counts = {channel: 0 for channel in range(1, 1 + len(types))}
        made: list[Path] = []
        try:
            made += [path for path in (folder, *folder.parents) if not path.exists()]
            if folder not in made:
                raise FileExistsError(None, "it exists already, choose another folder")
            folder.mkdir(parents=True)
            self._file = _WholeWrites(folder / f"{folder.name}.mcap")
            self._schemas, self._channels = _schemas_and_channels(self._types)
            header = Header(Profile.ROS2, "musls")
            head = _bytes([header, *self._schemas, *self._channels])
            self._file.append(MAGIC + head)
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
            RecordingError: The disk does not take it. The bag is closed with what it had before.
        """
        try:
            index, data = self._records(chunk)
            self._file.append(data)
        except OSError as error:
            with suppress(RecordingError):
                self.close()
            raise self._error("write", error) from error
        self._chunks.append(_bytes([index]))
        self._start_ns = min(self._start_ns, chunk.start_ns)
        self._end_ns = max(self._end_ns, chunk.end_ns)
        for channel, entries in chunk.indexes.items():
            self._counts[channel] += len(entries)

    def close(self) -> None:
        """Write summary and metadata.yaml.

        Raises:
            RecordingError: The disk does not take them.
        """
        try:
            information = _yaml(self._information())
            self._file.append(self._end(information))
            self._file.close()
            text = f"rosbag2_bagfile_information:\n{indent(information, '  ')}"
            half = self.folder / "metadata.yaml.tmp"
            half.write_text(text, encoding="utf-8")
            half.replace(self.folder / "metadata.yaml")
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise self._error("finish", error) from error

    def _records(self, chunk: Chunk) -> tuple[ChunkIndex, bytes]:
        """Chunk and message index records, and their entry in the summary."""
        compression, data = "", chunk.data
        if self._compress:
            import zstandard

            compression, data = "zstd", zstandard.compress(chunk.data)
        builder = RecordBuilder()
        ChunkRecord(
            compression=compression, data=data, message_start_time=chunk.start_ns,
            message_end_time=chunk.end_ns, uncompressed_crc=zlib.crc32(chunk.data),
            uncompressed_size=len(chunk.data),
        ).write(builder)  # fmt: skip
        length, offsets = builder.count, {}
        for channel, entries in chunk.indexes.items():
            offsets[channel] = self._file.size + builder.count
            # As `mcap.records.MessageIndex`, which writes each number of each message by itself.
            builder.start_record(Opcode.MESSAGE_INDEX)
            builder.write2(channel)
            builder.write4(entries.nbytes)
            builder.write(entries.astype("<u8").tobytes())
            builder.finish_record()
        index = ChunkIndex(
            message_start_time=chunk.start_ns, message_end_time=chunk.end_ns,
            chunk_start_offset=self._file.size, chunk_length=length,
            message_index_offsets=offsets, message_index_length=builder.count - length,
            compression=compression, compressed_size=len(data), uncompressed_size=len(chunk.data),
        )  # fmt: skip
        return index, builder.end()

    def _end(self, information: str) -> bytes:
        """Everything after the last chunk."""
        start, end = self._span_ns()
        metadata = Metadata(name="rosbag2", metadata={"serialized_metadata": information})
        entry = MetadataIndex(self._file.size, len(_bytes([metadata])), metadata.name)
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
            Opcode.CHUNK_INDEX: b"".join(self._chunks),
            Opcode.METADATA_INDEX: _bytes([entry]),
        }
        summary_start = self._file.size + len(data)
        summary, offsets = b"", []
        for opcode, group in groups.items():
            offsets.append(SummaryOffset(opcode, summary_start + len(summary), len(group)))
            summary += group
        footer = Footer(summary_start, summary_start + len(summary), summary_crc=0)
        return data + summary + _bytes([*offsets, footer]) + MAGIC

    def _span_ns(self) -> tuple[int, int]:
        return (self._start_ns, self._end_ns) if self._chunks else (0, 0)

    def _information(self) -> dict[str, Any]:
        """Content of metadata.yaml."""
        start, end = self._span_ns()
        span = {
            "duration": {"nanoseconds": end - start},
            "starting_time": {"nanoseconds_since_epoch": start},
            "message_count": self.messages,
        }
        name = self._file.path.name
        return {
            "version": METADATA_VERSION,
            "storage_identifier": "mcap",
            "relative_file_paths": [name],
            **span,
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic,
                        "type": msgtype,
                        "serialization_format": MessageEncoding.CDR,
                        "offered_qos_profiles": [_qos_fields(qos(topic))],
                        "type_description_hash": _type_hash(msgtype),
                    },
                    "message_count": self._counts[channel],
                }
                for channel, (topic, msgtype) in enumerate(self._types.items(), start=1)
            ],
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": name, **span}],
            "custom_data": None,
            "ros_distro": "jazzy",
        }

    def _error(self, action: str, error: OSError) -> RecordingError:
        return RecordingError(f"cannot {action} bag {self.folder}: {error.strerror or error}")


class _WholeWrites:
    """A new file to which each write goes whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, 0
        self._descriptor: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)

    def append(self, data: bytes) -> None:
        """Write; nothing half-written stays, also not after Ctrl-C or on a full disk."""
        if self._descriptor is None:
            raise OSError(None, "it is closed")
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except BaseException:
            os.ftruncate(self._descriptor, self.size)
            os.lseek(self._descriptor, self.size, os.SEEK_SET)
            raise
        self.size += len(data)

    def close(self) -> None:
        """Close; further calls do nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


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
            "offered_qos_profiles": _qos_text(qos(topic)),
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
def _qos_text(profile: Qos) -> str:
    return _yaml([_qos_fields(profile)])


def _yaml(content: object) -> str:
    text: str = yaml.safe_dump(content, sort_keys=False)
    return text


@cache
def _type_hash(msgtype: str) -> str:
    text: str = message_types().hash_rihs01(msgtype)
    return text


def _qos_fields(profile: Qos) -> dict[str, Any]:
    """A QoS profile as rosbag2 writes it."""

    def time(value: Any) -> dict[str, int]:
        return {"sec": value.sec, "nsec": value.nsec}

    return {
        "history": profile.history.name.lower(),
        "depth": profile.depth,
        "reliability": profile.reliability.name.lower(),
        "durability": profile.durability.name.lower(),
        "deadline": time(profile.deadline),
        "lifespan": time(profile.lifespan),
        "liveliness": profile.liveliness.name.lower(),
        "liveliness_lease_duration": time(profile.liveliness_lease_duration),
        "avoid_ros_namespace_conventions": profile.avoid_ros_namespace_conventions,
    }
