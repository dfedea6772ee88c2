"""Takes serialised messages out of rosbag2 bags (MCAP or SQLite): a folder or one storage file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import NamedTuple

from musls_description.errors import ConfigError

STORAGE_SUFFIXES = (".mcap", ".db3")
"""A storage file reads without the metadata.yaml beside it, e.g. when a recorder was killed."""


class Log(NamedTuple):
    """Messages of one key: log times [ns] and CDR bytes."""

    time_ns: list[int]
    data: list[bytes]


def read_messages(
    path: Path, choose: Callable[[Mapping[str, str]], Mapping[str, Hashable]]
) -> dict[Hashable, Log]:
    """Read the chosen messages in the order of their log times.

    Args:
        path: Folder of the bag, or its storage file.
        choose: Gets the message types of the topics, returns the key of each topic to read, under
            which its messages are filed; may raise ConfigError.

    Raises:
        ConfigError: No bag, damaged or empty; one line that names the path.
    """
    from rosbags.rosbag2 import Reader

    if path.is_dir():
        if not (path / "metadata.yaml").is_file():
            raise ConfigError(f"{path}: not a rosbag2 bag (no metadata.yaml in it)")
    elif not (path.is_file() and path.suffix in STORAGE_SUFFIXES):
        what = "unknown storage" if path.exists() else "no such folder"
        raise ConfigError(f"{path}: not a rosbag2 bag ({what})")
    logs: dict[Hashable, Log] = defaultdict(lambda: Log([], []))
    try:
        with Reader(path) as reader:
            if reader.message_count == 0:
                raise ConfigError(f"{path}: the bag is empty")
            keys = choose({c.topic: c.msgtype for c in reader.connections})
            chosen = [c for c in reader.connections if c.topic in keys]
            for connection, time_ns, data in reader.messages(chosen) if chosen else ():
                log = logs[keys[connection.topic]]
                log.time_ns.append(time_ns)
                log.data.append(data)
    except ConfigError:
        raise
    except Exception as error:  # what rosbags, struct, zstd and sqlite3 raise has no common base
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"{path}: the bag is damaged: {reason}") from error
    return dict(logs)
