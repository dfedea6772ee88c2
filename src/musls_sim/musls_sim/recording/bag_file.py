"""A rosbag2 folder (MCAP) into which whole chunks of messages go.

rosbags writes everything but the messages: folder, message definitions, channels with their QoS,
summary, metadata.yaml. One message through rosbags costs 4 us on top of 7 us for its
serialisation, about 200 us for the 20 messages of a record; finished chunks cost a fraction.
Format: https://mcap.dev/spec.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from struct import pack

import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.rosbag2.storage_mcap import McapWriter, write_record, write_string

from musls_sim.recording.chunk import Chunk
from musls_sim.recording.errors import RecordingError
from musls_sim.recording.messages import STORE
from musls_sim.recording.topics import qos

_CHUNK, _MESSAGE_INDEX = 0x06, 0x07


class BagFile:
    """A bag under construction; complete and readable after `close`."""

    def __init__(self, folder: Path, types: Mapping[str, str], compress: bool = False) -> None:
        """Create the folder with an empty bag.

        Args:
            folder: Must not exist; folders above it are made.
            types: Message type of each topic; the channels are numbered from 1 in this order.
            compress: Compress the chunks with zstd.

        Raises:
            RecordingError: The folder exists or cannot be made; nothing is left behind.
        """
        self.folder = folder
        made: list[Path] = []
        try:
            made += [path for path in (folder, *folder.parents) if not path.exists()]
            if folder not in made:
                raise FileExistsError(None, "it exists already, choose another folder")
            self._writer = _ChunkWriter(
                folder, version=Writer.VERSION_LATEST, storage_plugin=StoragePlugin.MCAP
            )
            if compress:
                self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
            self._writer.open()
            for topic, msgtype in types.items():
                self._writer.add_connection(
                    topic, msgtype, typestore=STORE, offered_qos_profiles=[qos(topic)]
                )
        except BaseException as error:
            if hasattr(self, "_writer"):
                self._writer.abort()
            if made:
                shutil.rmtree(made[-1], ignore_errors=True)
            if isinstance(error, OSError):
                raise self._error("create", error) from error
            raise

    @property
    def messages(self) -> int:
        """Number of messages written."""
        return sum(self._writer.counts.values())

    def write(self, chunk: Chunk) -> None:
        """Append a chunk.

        Raises:
            RecordingError: The disk does not take it. The bag is closed with what it had before.
        """
        try:
            self._writer.write_chunk(chunk)
        except OSError as error:
            with suppress(RecordingError):
                self.close()
            raise self._error("write", error) from error

    def close(self) -> None:
        """Write summary and metadata.yaml.

        Raises:
            RecordingError: The disk does not take them.
        """
        try:
            self._writer.close()
        except OSError as error:
            with suppress(OSError):
                self._writer.abort()
            raise self._error("finish", error) from error

    def _error(self, action: str, error: OSError) -> RecordingError:
        return RecordingError(f"cannot {action} bag {self.folder}: {error.strerror or error}")


class _ChunkStorage(McapWriter):
    """rosbags' MCAP storage that also takes finished chunks."""

    def write_chunk(self, chunk: Chunk) -> None:
        """Append a chunk and its message indexes, all or nothing."""
        # rosbags collects the definitions and channels here; they belong before the messages.
        head = self.chunk.bio.getvalue()
        start = self.bio.tell()
        try:
            summary = self._append(chunk, head)
            self.bio.flush()
        except BaseException:
            # Nothing half-written, also after Ctrl-C, so that the bag can be closed readable; on
            # a full disk this makes room for the summary.
            with suppress(OSError):
                self.bio.close()
            self.bio = self.path.open("r+b")
            self.bio.truncate(start)
            self.bio.seek(start)
            raise
        self.chunk.bio = BytesIO()
        self.chunks.append(summary)
        for channel, entries in chunk.index.items():
            self.channel_stats[channel] += len(entries)
        self.message_start_time = min(self.message_start_time, chunk.start_ns)
        self.message_end_time = max(self.message_end_time, chunk.end_ns)

    def _append(self, chunk: Chunk, head: bytes) -> BytesIO:
        """Write Chunk and Message Index records; returns the Chunk Index record."""
        data = head + chunk.data if head else chunk.data
        packed = self.compressor(data)
        times = pack("<QQ", chunk.start_ns, chunk.end_ns)
        record = BytesIO()
        record.write(times + pack("<QI", len(data), zlib.crc32(data)))
        write_string(record, self.compression)
        record.write(pack("<Q", len(packed)))
        start = self.bio.tell()
        self.bio.write(pack("<BQ", _CHUNK, record.tell() + len(packed)) + record.getvalue())
        self.bio.write(packed)
        end = self.bio.tell()

        offsets = b""
        for channel, entries in chunk.index.items():
            offsets += pack("<HQ", channel, self.bio.tell())
            index = entries + np.array([0, len(head)], np.uint64)
            record = BytesIO()
            record.write(pack("<HI", channel, index.nbytes) + index.astype("<u8").tobytes())
            write_record(self.bio, _MESSAGE_INDEX, record)

        summary = BytesIO()
        summary.write(times + pack("<QQI", start, end - start, len(offsets)) + offsets)
        summary.write(pack("<Q", self.bio.tell() - end))
        write_string(summary, self.compression)
        summary.write(pack("<QQ", len(packed), len(data)))
        return summary


class _ChunkWriter(Writer):
    """rosbags' bag writer with the storage above."""

    STORAGE_PLUGINS = {StoragePlugin.MCAP: _ChunkStorage}  # noqa: RUF012 (declared by rosbags)

    def write_chunk(self, chunk: Chunk) -> None:
        """Append a chunk, see `_ChunkStorage.write_chunk`."""
        self.storage.write_chunk(chunk)
        for channel, entries in chunk.index.items():
            self.counts[channel] += len(entries)
        self.min_timestamp = min(self.min_timestamp, chunk.start_ns)
        self.max_timestamp = max(self.max_timestamp, chunk.end_ns)
