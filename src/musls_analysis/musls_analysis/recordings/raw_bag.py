"""Takes serialised messages out of rosbag2 bags (MCAP or SQLite): a folder or one storage file.

An MCAP file whose end is missing, because its recorder was killed, is read up to there.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from musls_description.errors import ConfigError
from musls_description.strict_yaml import shown

STORAGE_SUFFIXES = (".mcap", ".db3")
"""A storage file reads without the metadata.yaml beside it, e.g. when a recorder was killed."""

_MCAP_MAGIC = b"\x89MCAP0\r\n"
_SMALLEST_END = 37
"""Bytes of an MCAP file's footer and closing magic."""

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

    Args:
        path: Folder of the bag, or its storage file.
        choose: Which messages.

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
    from mcap.records import Channel, Message, Schema

    schemas: dict[int, str] = {}
    channels: dict[int, Channel] = {}
    messages: list[Message] = []
    for record in _records_to_the_cut(file):
        if isinstance(record, Schema):
            schemas[record.id] = record.name
        elif isinstance(record, Channel):
            channels[record.id] = record
        elif isinstance(record, Message):
            messages.append(record)
    if not messages:
        raise ValueError("it ends before its first messages")
    keys = choose({c.topic: schemas.get(c.schema_id, "") for c in channels.values()})
    logs: dict[Key, Log] = defaultdict(lambda: Log([], []))
    for message in sorted(messages, key=lambda m: m.log_time):
        topic = channels[message.channel_id].topic
        if topic in keys:
            log = logs[keys[topic]]
            log.time_ns.append(message.log_time)
            log.data.append(message.data)
    span_s = (max(m.log_time for m in messages) - min(m.log_time for m in messages)) * 1e-9
    warning = f"the bag was cut before its end (recorder killed?): {span_s:.1f} s of it were read"
    return RawBag(dict(logs), (warning,))


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
