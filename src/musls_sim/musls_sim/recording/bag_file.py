"""A rosbag2 folder (MCAP) into which whole chunks of messages go, rendered many rows at once.

The file is written by the `mcap` package's `Writer` (https://mcap.dev/spec), whose bytes go to the
disk all or not at all; `benchmarks/flight_loop.py bag` prints the cost.

For given frame names and array sizes every message has a fixed layout, so all rows of a flight
differ only in numbers. The layout is not derived from the rules of CDR but probed: one row with
distinctive random numbers goes through the real serialiser, and each number is looked for in the
result. Whatever builds the messages stays plain code, and a number may land in several messages.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from mcap.well_known import MessageEncoding, Profile, SchemaEncoding
from numpy.typing import NDArray
from rosbags.rosbag2.metadata import dump_qos_v9

from musls_description.config.errors import MuslsError
from musls_description.config.schema import to_yaml
from musls_sim.recording.messages import serialize
from musls_sim.recording.messages import types as message_types
from musls_sim.recording.signals import Columns, Row, qos

if TYPE_CHECKING:
    from mcap.writer import Writer

NANOSECONDS = 1_000_000_000

_STAMP = {"sec": "<i4", "nanosec": "<u4"}
"""Time of a row, as the two parts of a ROS stamp."""


class Spot(NamedTuple):
    """Place of a number: number of a flattened column, byte of the row."""

    column: str
    number: int
    offset: int
    dtype: np.dtype[Any]


class Rendered(NamedTuple):
    """Messages as CDR bytes, one after another.

    Attributes:
        stamps_ns: Time of each message, (n,).
        channels: Channel of each message, (n,).
        sizes: Bytes of each message, (n,).
    """

    data: memoryview
    stamps_ns: NDArray[np.int64]
    channels: NDArray[np.int64]
    sizes: NDArray[np.int64]


class RowTemplate:
    """One row as CDR bytes of its messages, and where its numbers belong.

    Attributes:
        topics: Topic of each message.
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
        records = [serialize(message) for _, message in messages]
        self.topics = [topic for topic, _ in messages]
        data = b"".join(records)
        self._data = np.frombuffer(data, np.uint8)
        self._sizes = np.array([*map(len, records)])
        self._channels = np.array([channel_of[topic] for topic in self.topics])
        time = {"sec": sec, "nanosec": nanosec}
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
        values |= {"sec": sec[:, None], "nanosec": nanosec[:, None]}
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
    """Join single messages (time [ns], channel, CDR bytes), each a row of its own."""
    stamps, channels = (np.array([m[k] for m in messages], np.int64) for k in (0, 1))
    sizes = np.array([len(data) for _, _, data in messages], np.int64)
    return Rendered(memoryview(b"".join([m[2] for m in messages])), stamps, channels, sizes)


def in_order(parts: Sequence[Rendered]) -> list[tuple[int, int, bytes]]:
    """Time [ns], channel and bytes of messages by time; those of the same time keep their order."""
    messages = [
        (stamp_ns, channel, bytes(part.data[a:b]))
        for part in parts
        for stamp_ns, channel, (a, b) in zip(
            part.stamps_ns.tolist(), part.channels.tolist(),
            pairwise([0, *np.cumsum(part.sizes).tolist()]), strict=True,
        )
    ]  # fmt: skip
    return sorted(messages, key=lambda message: message[0])


class RecordingError(MuslsError):
    """A bag cannot be created or written; the message names the path and the reason."""


MAGIC = b"\x89MCAP0\r\n"
"""First and last bytes of an MCAP file (`mcap.writer` has it, too, but loads compressors)."""

METADATA_VERSION = 9
"""Of metadata.yaml: that of ROS 2 Jazzy."""


CHUNK_SIZE = 16384
"""Bytes of messages after which a chunk is written; the writer keeps an index of all in memory."""


class _Held:
    """Stream of what the writer gave and the file does not have yet."""

    def __init__(self) -> None:
        self.data, self.before = bytearray(), 0

    def write(self, data: bytes) -> int:
        """Take what the writer gives."""
        self.data += data
        return len(data)

    def tell(self) -> int:
        """Byte of the file that comes next."""
        return self.before + len(self.data)


class BagFile:
    """A bag under construction; complete after `close`, and readable from its beginning before."""

    def __init__(self, folder: Path, types: Mapping[str, str]) -> None:
        """Create the folder, which must not exist, with an empty bag.

        `types`: message type of each topic; the channels are numbered from 1 in this order.
        """
        from mcap.writer import CompressionType, Writer  # loads compressors

        self.folder = folder
        self._types = dict(types)
        self._counts = Counter({channel: 0 for channel in range(1, 1 + len(types))})
        self._start_ns, self._end_ns = 0, 0
        made: list[Path] = []
        try:
            made += [path for path in (folder, *folder.parents) if not path.exists()]
            if folder not in made:
                raise FileExistsError(None, "it exists already, choose another folder")
            folder.mkdir(parents=True)
            self._name = f"{folder.name}.mcap"
            self._file: int | None = os.open(
                folder / self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644
            )
            self._held = _Held()
            stream: Any = self._held
            self._writer = Writer(stream, chunk_size=CHUNK_SIZE, compression=CompressionType.NONE)
            self._writer.start(profile=Profile.ROS2, library="musls")
            _register(self._writer, self._types)
            self._commit()
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

    def write(self, parts: Sequence[Rendered]) -> None:
        """Append messages in the order of time; whole chunks are with the operating system then.

        Raises:
            RecordingError: The disk does not take them. The file ends with its last whole chunk,
                without a summary: readers mend that.
        """
        if self._file is None:  # Ctrl-C came while a chunk was made
            return
        given = False
        try:
            for stamp_ns, channel, data in in_order(parts):
                if not self.messages:
                    self._start_ns = stamp_ns
                self._end_ns = max(self._end_ns, stamp_ns)
                self._counts[channel] += 1
                self._writer.add_message(channel, stamp_ns, data, stamp_ns)
            given = True
            self._commit()
        except OSError as error:
            self._close_file()
            raise self._error("write", error) from error
        finally:
            if not given:
                self._close_file()

    def close(self) -> None:
        """Write the rest, summary and metadata.yaml; does nothing after an error.

        Raises:
            RecordingError: The disk does not take them.
        """
        if self._file is None:
            return
        information = to_yaml(self._information())
        try:
            self._writer.add_metadata("rosbag2", {"serialized_metadata": information})
            self._writer.finish()
            self._commit()
            text = f"rosbag2_bagfile_information:\n{indent(information, '  ')}"
            half = self.folder / "metadata.yaml.tmp"
            try:
                half.write_text(text, encoding="utf-8")
                half.replace(self.folder / "metadata.yaml")
            except OSError:
                half.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise self._error("finish", error) from error
        finally:
            self._close_file()

    def _commit(self) -> None:
        """Write all that is held or nothing: nothing half-written stays."""
        if self._file is None:
            raise OSError(None, "it is closed")
        left = memoryview(bytes(self._held.data))
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except BaseException:
            os.ftruncate(self._file, self._held.before)
            os.lseek(self._file, self._held.before, os.SEEK_SET)
            raise
        self._held.before = self._held.tell()
        self._held.data.clear()

    def _close_file(self) -> None:
        descriptor, self._file = self._file, None
        if descriptor is not None:
            os.close(descriptor)

    def _information(self) -> dict[str, Any]:
        start, end = self._start_ns, self._end_ns
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
        return RecordingError(text)


def _register(writer: Writer, types: Mapping[str, str]) -> None:
    """Give a writer the schemas and channels of topics."""
    schemas: dict[str, int] = {}
    for topic, msgtype in types.items():
        if msgtype not in schemas:
            definition, _ = message_types().generate_msgdef(msgtype, ros_version=2)
            schemas[msgtype] = writer.register_schema(
                msgtype, SchemaEncoding.ROS2, definition.encode()
            )
        metadata = {
            "offered_qos_profiles": to_yaml(dump_qos_v9([qos(topic)])),
            "topic_type_hash": _type_hash(msgtype),
        }
        writer.register_channel(topic, MessageEncoding.CDR, schemas[msgtype], metadata)


@cache
def _type_hash(msgtype: str) -> str:
    text: str = message_types().hash_rihs01(msgtype)
    return text
