"""A rosbag2 folder (MCAP) into which whole chunks of messages go, rendered many rows at once.

All records are those of the `mcap` package (`mcap.records`, https://mcap.dev/spec). Its `Writer`
takes single messages, 1200 for a second of flight, at 6 us each, more than the flight itself takes;
`benchmarks/flight_loop.py bag` prints the cost. The bytes of a write go to the disk all or not at
all.

For given frame names and array sizes every message has a fixed layout, so all rows of a flight
differ only in numbers. The layout is not derived from the rules of CDR but probed: one row with
distinctive random numbers goes through the real serialiser, and each number is looked for in the
result. Whatever builds the messages stays plain code, and a number may land in several messages.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import prod
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple, NoReturn

import numpy as np
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Message,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
)
from mcap.well_known import MessageEncoding, Profile, SchemaEncoding
from numpy.typing import NDArray

from musls_description.config.errors import MuslsError
from musls_description.config.schema import to_yaml
from musls_sim.recording.messages import serialize
from musls_sim.recording.messages import types as message_types
from musls_sim.recording.signals import Columns, Row, qos

NANOSECONDS = 1_000_000_000

_STAMP = {"stamp_ns": "<u8", "sec": "<i4", "nanosec": "<u4"}
"""Time of a row, as the records hold it and as the two parts of a ROS stamp."""

HEAD_SIZE = 31
"""Bytes of a message's record before its data."""


def _bytes(*records: McapRecord) -> bytes:
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    data: bytes = builder.end()
    return data


def message_record(channel: int, stamp_ns: int, data: bytes) -> bytes:
    """Record of a message, CDR bytes, logged and published at a simulated time."""
    return _bytes(Message(channel, stamp_ns, data, stamp_ns, sequence=0))


class Spot(NamedTuple):
    """Place of numbers that stand side by side: in a flattened column, and byte of the row."""

    column: str
    first: int
    end: int
    offset: int
    dtype: np.dtype[Any]


class Rendered(NamedTuple):
    """Records of messages, one after another.

    Attributes:
        stamps_ns: Time of each message, (n,).
        channels: Channel of each message, (n,).
        sizes: Bytes of each record, (n,).
    """

    data: bytes
    stamps_ns: NDArray[np.int64]
    channels: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def by_channel(self) -> dict[int, NDArray[np.uint64]]:
        """Time [ns] and place in the data of each message, (n, 2), by channel."""
        places = np.column_stack([self.stamps_ns, np.cumsum(self.sizes) - self.sizes])
        order = np.argsort(self.channels, kind="stable")
        channels, first = np.unique(self.channels[order], return_index=True)
        groups = np.split(places[order].astype("<u8"), first[1:])
        return dict(zip(channels.tolist(), groups, strict=True))


class RowTemplate:
    """One row as records of its messages, and where its numbers belong.

    Attributes:
        topics: Topic of each message.
    """

    def __init__(self, row: Row, channel_of: Mapping[str, int]) -> None:
        rng = np.random.default_rng(20250101)
        sec = int(rng.integers(2**30, 2**31 - 1))
        nanosec = int(rng.integers(2**29, NANOSECONDS))
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
        spots: dict[tuple[str, int, int], Spot] = {}  # by what would go on with them
        for name, column in numbers.items():
            for k, number in enumerate(column.ravel()):
                for offset in _occurrences(data, number.tobytes(), f"{name}[{k}]"):
                    spot = spots.pop((name, k, offset), Spot(name, k, k, offset, column.dtype))
                    next_one = name, k + 1, offset + column.dtype.itemsize
                    spots[next_one] = spot._replace(end=k + 1)
        self._spots = [*spots.values()]

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
        for column, first, end, offset, dtype in self._spots:
            strides = data.shape[1], dtype.itemsize
            there = np.ndarray((rows, end - first), dtype, data, offset, strides)
            there[:] = values[column][:, first:end]

        stamps, channels, sizes = (
            np.broadcast_to(part, (rows, len(self._sizes)))
            for part in (stamps_ns[:, None], self._channels, self._sizes)
        )
        if wanted is None:
            wanted = np.ones(sizes.shape, bool)
            data = data.reshape(-1)
        else:
            data = data[np.repeat(wanted, self._sizes, axis=1)]
        return Rendered(data.tobytes(), stamps[wanted], channels[wanted], sizes[wanted])


def _occurrences(data: bytes, part: bytes, name: str) -> list[int]:
    places = []
    start = data.find(part)
    while start >= 0:
        places.append(start)
        start = data.find(part, start + 1)
    if not places:
        raise AssertionError(f"no message of the row holds {name}")
    return places


def render_each(messages: Sequence[tuple[int, int, bytes]]) -> Rendered:
    """Join single messages (time [ns], channel, CDR bytes)."""
    records = [message_record(channel, stamp_ns, data) for stamp_ns, channel, data in messages]
    stamps, channels = (np.array([m[k] for m in messages], np.int64) for k in (0, 1))
    sizes = np.array([*map(len, records)], np.int64)
    return Rendered(b"".join(records), stamps, channels, sizes)


def in_order(parts: Sequence[Rendered]) -> Rendered:
    """Sort records by time; those of the same time keep their order."""
    data = b"".join([part.data for part in parts])
    stamps, channels, sizes = (np.concatenate([part[k] for part in parts]) for k in (1, 2, 3))
    order = np.argsort(stamps, kind="stable")
    ends = np.cumsum(sizes)
    # What stands side by side before and after is moved together.
    first = np.flatnonzero(np.diff(order, prepend=-2) != 1)
    last = np.flatnonzero(np.diff(order, append=-2) != 1)
    bounds = (ends - sizes)[order[first]].tolist(), ends[order[last]].tolist()
    pieces = [data[a:b] for a, b in zip(*bounds, strict=True)]
    return Rendered(b"".join(pieces), stamps[order], channels[order], sizes[order])


class RecordingError(MuslsError):
    """A bag cannot be created or written; the message names the path and the reason."""


MAGIC = b"\x89MCAP0\r\n"
"""First and last bytes of an MCAP file (`mcap.writer` has it, too, but loads compressors)."""

METADATA_VERSION = 9
"""Version of metadata.yaml: that of ROS 2 Jazzy."""


class _Written(NamedTuple):
    """Contents of a file up to the end of one of its chunks.

    Attributes:
        place: Record of where the chunk is.
        counts: Number of messages by channel, from 0.
        first_ns: Time of the first message.
        last_ns: Time of the last message.
        size: Bytes.
        mark: Any data of the writer about it.
    """

    place: bytes
    counts: NDArray[np.int64]
    first_ns: int
    last_ns: int
    size: int
    mark: Any


class BagFile:
    """A bag under construction; complete after `close`, and readable from its beginning before."""

    def __reduce__(self) -> NoReturn:
        """Refuse to be kept in a snapshot (raises TypeError)."""
        raise TypeError("a bag on disk cannot go back in time: record in memory")

    def __init__(self, folder: Path, types: Mapping[str, str]) -> None:
        """Create the folder, which must not exist, with an empty bag.

        `types`: message type of each topic; the channels are numbered from 1 in this order.
        """
        self.folder = folder
        self._types = dict(types)
        self._chunks = list[_Written]()
        self._before = _Written(b"", np.zeros(1 + len(types), np.int64), 0, 0, 0, None)
        new_folders: list[Path] = []
        try:
            new_folders += [path for path in (folder, *folder.parents) if not path.exists()]
            if folder not in new_folders:
                raise FileExistsError(None, "it exists already, choose another folder")
            folder.mkdir(parents=True)
            self._name = f"{folder.name}.mcap"
            self._file: int | None = os.open(
                folder / self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644
            )
            self._schemas, self._channels = _schemas_and_channels(self._types)
            header = Header(Profile.ROS2, "musls")
            head = MAGIC + _bytes(header, *self._schemas, *self._channels)
            self._commit(head)
            self._before = self._before._replace(size=len(head))
        except BaseException as error:
            if folder in new_folders:
                shutil.rmtree(folder, ignore_errors=True)
            for parent in new_folders[1:]:
                with suppress(OSError):  # others have put something into it
                    parent.rmdir()
            if isinstance(error, OSError):
                raise self._error("create", error) from error
            raise

    @property
    def _held(self) -> _Written:
        """Part of the file that is valid; it grows when the list of chunks grows."""
        return self._chunks[-1] if self._chunks else self._before

    @property
    def closed(self) -> bool:
        """Whether it takes no more: it is complete, or an error ended it."""
        return self._file is None

    @property
    def messages(self) -> int:
        """Number of messages in the file."""
        return int(self._held.counts.sum())

    @property
    def mark(self) -> Any:
        """Mark of the last chunk; None without one."""
        return self._held.mark

    def write(self, parts: Sequence[Rendered], mark: Any = None) -> None:
        """Append messages as a chunk, in the order of time; the operating system has it then.

        An interrupt leaves the chunk out, or in with its `mark`.

        Raises:
            RecordingError: The disk does not take them. The file ends with what it had before,
                without a summary: readers mend that.
        """
        messages = in_order(parts)
        if not messages.data:
            return
        content = self._held
        index, data = _chunk(messages, content.size)
        first_ns = index.message_start_time
        last_ns = index.message_end_time
        chunk = _Written(
            _bytes(index),
            content.counts + np.bincount(messages.channels, minlength=len(content.counts)),
            min(content.first_ns, first_ns) if self._chunks else first_ns,
            max(content.last_ns, last_ns),
            content.size + len(data),
            mark,
        )
        try:
            self._commit(data)
        except OSError as error:
            self._close_file()
            raise self._error("write", error) from error
        self._chunks.append(chunk)

    def close(self) -> None:
        """Write the rest, summary and metadata.yaml; does nothing after that or an error.

        After an interrupt another call goes on.

        Raises:
            RecordingError: The disk does not take them.
        """
        if self._file is None:
            return
        information = to_yaml(self._information())
        try:
            self._commit(self._end(information))
            text = f"rosbag2_bagfile_information:\n{indent(information, '  ')}"
            half = self.folder / "metadata.yaml.tmp"
            try:
                half.write_text(text, encoding="utf-8")
                half.replace(self.folder / "metadata.yaml")
            except OSError:
                half.unlink(missing_ok=True)
                raise
        except OSError as error:
            self._close_file()
            raise self._error("finish", error) from error
        self._close_file()

    def _commit(self, data: bytes) -> None:
        """Write all behind what counts, or nothing: nothing half-written stays after Ctrl-C."""
        if self._file is None:
            raise OSError(None, "it is closed")
        rest = memoryview(data)
        size = self._held.size
        try:
            os.ftruncate(self._file, size)  # what an interrupt left
            os.lseek(self._file, size, os.SEEK_SET)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except BaseException:
            os.ftruncate(self._file, size)
            raise

    def _close_file(self) -> None:
        descriptor = self._file
        self._file = None
        if descriptor is not None:
            os.close(descriptor)

    def _end(self, information: str) -> bytes:
        """Everything after the last chunk."""
        metadata = Metadata(name="rosbag2", metadata={"serialized_metadata": information})
        data = _bytes(metadata)
        content = self._held
        entry = MetadataIndex(content.size, len(data), metadata.name)
        data = data + _bytes(DataEnd(0))
        counts = dict(enumerate(content.counts.tolist()[1:], start=1))
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            chunk_count=len(self._chunks),
            channel_message_counts=counts,
            message_count=self.messages,
            metadata_count=1,
            message_start_time=content.first_ns,
            message_end_time=content.last_ns,
            schema_count=len(self._schemas),
        )
        summary = _bytes(*self._schemas, *self._channels, statistics, entry)
        footer = Footer(content.size + len(data), summary_offset_start=0, summary_crc=0)
        indices = [chunk.place for chunk in self._chunks]
        return b"".join([data, summary, *indices, _bytes(footer), MAGIC])

    def _information(self) -> dict[str, Any]:
        content = self._held
        span = {
            "duration": {"nanoseconds": content.last_ns - content.first_ns},
            "starting_time": {"nanoseconds_since_epoch": content.first_ns},
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
                        "offered_qos_profiles": _qos_profiles(topic),
                        "type_description_hash": _type_hash(msgtype),
                    },
                    "message_count": int(content.counts[channel]),
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
        return RecordingError(text)


def _chunk(messages: Rendered, start: int) -> tuple[ChunkIndex, bytes]:
    """Chunk with the index of its messages, from a byte of the file on, and its summary."""
    data = messages.data
    builder = RecordBuilder()
    offsets = dict[int, int]()
    size = len(data)
    times = messages.stamps_ns[[0, -1]].tolist()
    Chunk("", data, times[1], times[0], zlib.crc32(data), size).write(builder)
    length = builder.count
    for channel, entries in messages.by_channel().items():
        offsets[channel] = start + builder.count
        # As `mcap.records.MessageIndex`, which writes each number of each message by itself.
        builder.start_record(Opcode.MESSAGE_INDEX)
        builder.write2(channel)
        builder.write4(entries.nbytes)
        builder.write(entries.tobytes())
        builder.finish_record()
    index = ChunkIndex(
        message_start_time=times[0],
        message_end_time=times[1],
        chunk_start_offset=start,
        chunk_length=length,
        message_index_offsets=offsets,
        message_index_length=builder.count - length,
        compression="",
        compressed_size=size,
        uncompressed_size=size,
    )
    return index, builder.end()


def _qos_profiles(topic: str) -> list[Any]:
    """Profiles of a topic as rosbag2's metadata hold them."""
    from rosbags.rosbag2.metadata import dump_qos_v9  # brings readers of all kinds of storage

    return dump_qos_v9([qos(topic)])


def _schemas_and_channels(types: Mapping[str, str]) -> tuple[list[Schema], list[Channel]]:
    schemas = dict[str, Schema]()
    channels = list[Channel]()
    for number, (topic, msgtype) in enumerate(types.items(), start=1):
        if msgtype not in schemas:
            definition, _ = message_types().generate_msgdef(msgtype, ros_version=2)
            schemas[msgtype] = Schema(
                len(schemas) + 1, definition.encode(), SchemaEncoding.ROS2, msgtype
            )
        metadata = {
            "offered_qos_profiles": to_yaml(_qos_profiles(topic)),
            "topic_type_hash": _type_hash(msgtype),
        }
        channels.append(Channel(number, topic, MessageEncoding.CDR, metadata, schemas[msgtype].id))
    return [*schemas.values()], channels


@cache
def _type_hash(msgtype: str) -> str:
    text: str = message_types().hash_rihs01(msgtype)
    return text
