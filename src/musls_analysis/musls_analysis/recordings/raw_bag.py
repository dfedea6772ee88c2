"""Serialised messages out of rosbag2 bags (MCAP or SQLite): a folder or one storage file."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, NamedTuple, TypeVar

from musls_description.errors import ConfigError
from musls_description.strict_yaml import shown
from musls_sim.recording.bag_file import BagFile
from musls_sim.recording.rows import merge, render_each

STORAGE_SUFFIXES = (".mcap", ".db3")
"""A storage file reads without the metadata.yaml beside it, e.g. when a recorder was killed."""

_MCAP_MAGIC = b"\x89MCAP0\r\n"
_SMALLEST_END = 37
"""Bytes of an MCAP file's footer and closing magic."""

_CHUNK_MESSAGES = 10_000

Key = TypeVar("Key")
Choose = Callable[[Mapping[str, str]], Mapping[str, Key]]
"""Gets the message types of the topics, returns the key of each topic to read, under which its
messages are filed; may raise ConfigError."""


class Log(NamedTuple):
    """Messages of one key: log times [ns] and CDR bytes."""

    time_ns: list[int]
    data: list[bytes]


@dataclass(frozen=True)
class RawBag(Generic[Key]):
    """What was taken out of a bag.

    Attributes:
        logs: Messages by key, in the order of their log times.
        warnings: What is missing, one line each.
    """

    logs: dict[Key, Log]
    warnings: tuple[str, ...] = ()


def storage_in(folder: Path) -> Path | None:
    """What to read of a folder: itself if it has a metadata.yaml, or else its only storage file."""
    if (folder / "metadata.yaml").is_file():
        return folder
    files = [f for suffix in STORAGE_SUFFIXES for f in sorted(folder.glob(f"*{suffix}"))]
    return files[0] if len(files) == 1 else None


def read_messages(path: Path, choose: Choose[Key]) -> RawBag[Key]:
    """Read the chosen messages in the order of their log times.

    Raises:
        ConfigError: No bag, damaged or empty; one line that names the path.
    """
    source = path
    # os.path, because Path raises for names that are too long.
    if os.path.isdir(path):
        found = storage_in(path)
        if found is None:
            raise ConfigError(f"{path}: not a rosbag2 bag (no metadata.yaml in it)")
        source = found
    elif not (os.path.isfile(path) and path.suffix in STORAGE_SUFFIXES):
        what = "unknown storage" if os.path.exists(path) else "no such folder"
        raise ConfigError(f"{shown(str(path), 200)}: not a rosbag2 bag ({what})")
    try:
        cut = _cut_file(source)
        bag = _read_whole(source, choose) if cut is None else _read_cut(cut, choose)
    except ConfigError:
        raise
    except Exception as error:  # what rosbags, struct, zstd and sqlite3 raise has no common base
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"{path}: the bag is damaged: {reason}") from error
    if bag is None:
        raise ConfigError(f"{path}: the bag is empty")
    return bag


def _read_whole(source: Path, choose: Choose[Key]) -> RawBag[Key] | None:
    """Read a finished bag; None if it is empty."""
    from rosbags.rosbag2 import Reader

    logs: dict[Key, Log] = defaultdict(lambda: Log([], []))
    with Reader(source) as reader:
        if reader.message_count == 0:
            return None
        keys = choose({c.topic: c.msgtype for c in reader.connections})
        chosen = [c for c in reader.connections if c.topic in keys]
        for connection, time_ns, data in reader.messages(chosen) if chosen else ():
            log = logs[keys[connection.topic]]
            log.time_ns.append(time_ns)
            log.data.append(data)
    return RawBag(dict(logs))


def _cut_file(source: Path) -> Path | None:
    """The storage file if it is an MCAP file that was begun and not finished."""
    if source.is_dir():
        files = list(source.glob("*.mcap"))
        if len(files) != 1:
            return None
        source = files[0]
    if source.suffix != ".mcap":
        return None
    with source.open("rb") as file:
        if file.read(len(_MCAP_MAGIC)) != _MCAP_MAGIC:
            return None
        size = file.seek(0, 2)
        file.seek(max(size - len(_MCAP_MAGIC), 0))
        whole = size > _SMALLEST_END and file.read() == _MCAP_MAGIC
    return None if whole else source


def _read_cut(file: Path, choose: Choose[Key]) -> RawBag[Key]:
    """Read an unfinished file up to its last whole record."""
    types, messages = _messages_to_the_cut(file)
    if not messages:
        raise ValueError("it ends before its first messages")
    keys = choose(types)
    logs: dict[Key, Log] = defaultdict(lambda: Log([], []))
    for time_ns, topic, data in messages:
        if topic in keys:
            log = logs[keys[topic]]
            log.time_ns.append(time_ns)
            log.data.append(data)
    span_s = (messages[-1][0] - messages[0][0]) * 1e-9
    warning = f"the bag was cut before its end (recorder killed?): {span_s:.1f} s of it were read"
    return RawBag(dict(logs), (warning,))


def _messages_to_the_cut(file: Path) -> tuple[dict[str, str], list[tuple[int, str, bytes]]]:
    """Message type of each topic; and time, topic and bytes of the messages, by time."""
    from mcap.records import Channel, Message, Schema

    schemas: dict[int, str] = {}
    channels: dict[int, Channel] = {}
    messages = []
    for record in _records_to_the_cut(file):
        if isinstance(record, Schema):
            schemas[record.id] = record.name
        elif isinstance(record, Channel):
            channels[record.id] = record
        elif isinstance(record, Message):
            messages.append((record.log_time, channels[record.channel_id].topic, record.data))
    types = {c.topic: schemas.get(c.schema_id, "") for c in channels.values()}
    return types, sorted(messages, key=lambda message: message[0])


def _records_to_the_cut(file: Path) -> Iterator[object]:
    """Records of an MCAP file and of its chunks, until one is not whole."""
    from mcap.records import Chunk
    from mcap.stream_reader import StreamReader, breakup_chunk

    with file.open("rb") as stream:
        records = StreamReader(stream, emit_chunks=True).records
        while True:
            try:
                record = next(records)
                inner = [record]
                if isinstance(record, Chunk):
                    inner = breakup_chunk(record, validate_crc=True)
            # Of a record that ends too early any field may be wrong, with any error as result.
            except Exception:
                return
            yield from inner


def mend_bag(folder: Path) -> None:
    """Make a bag of our recorder whole again whose process was killed.

    The new file, with all messages up to where the old one breaks off, takes its place at once.

    Args:
        folder: Of the bag; a bag that was finished is left alone.

    Raises:
        ConfigError: There is no file, or no message in it.
        MuslsError: The new bag cannot be written.
        OSError: Nor moved.
    """
    if (folder / "metadata.yaml").is_file():
        return
    storage = next(iter(sorted(folder.glob("*.mcap"))), None)
    if storage is None:
        raise ConfigError(f"{folder}: no MCAP file in it")
    types, messages = _messages_to_the_cut(storage)
    if not messages:
        raise ConfigError(f"{storage}: no message in it")
    channels = {topic: k for k, topic in enumerate(types, start=1)}
    with TemporaryDirectory(dir=folder) as work:
        bag = BagFile(Path(work) / folder.name, types)
        for k in range(0, len(messages), _CHUNK_MESSAGES):
            part = messages[k : k + _CHUNK_MESSAGES]
            if chunk := merge([render_each([(t, channels[topic], x) for t, topic, x in part])]):
                bag.write(chunk)
        bag.close()
        os.replace(bag.folder / f"{folder.name}.mcap", storage)
        os.replace(bag.folder / "metadata.yaml", folder / "metadata.yaml")
