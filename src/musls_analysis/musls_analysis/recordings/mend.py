"""Makes a bag whole again whose recorder was killed: its file ends somewhere, without an index."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from musls_description.errors import ConfigError


def mend_bag(folder: Path) -> None:
    """Write a bag of our recorder anew, with all messages up to where its file breaks off.

    Args:
        folder: Of the bag; a bag that was finished is left alone.

    Raises:
        ConfigError: There is no file, or no message in it.
        OSError: The new bag cannot be written.
    """
    if (folder / "metadata.yaml").is_file():
        return
    storage = next(iter(sorted(folder.glob("*.mcap"))), None)
    if storage is None:
        raise ConfigError(f"{folder}: no MCAP file in it")
    mended = folder.with_name(f".{folder.name}.mended")
    shutil.rmtree(mended, ignore_errors=True)
    try:
        _rewrite(storage, mended)
        shutil.rmtree(folder)
        # rosbag2 files are named after their folder.
        (mended / f"{mended.name}.mcap").rename(mended / f"{folder.name}.mcap")
        metadata = mended / "metadata.yaml"
        metadata.write_text(metadata.read_text().replace(mended.name, folder.name))
        mended.rename(folder)
    finally:
        shutil.rmtree(mended, ignore_errors=True)


def _rewrite(storage: Path, mended: Path) -> None:
    from mcap.records import Channel, Message, Schema
    from rosbags.rosbag2 import StoragePlugin, Writer

    from musls_sim.recording.messages import jazzy
    from musls_sim.recording.signals import qos

    schemas, connections, messages = {}, {}, 0
    with Writer(mended, version=Writer.VERSION_LATEST, storage_plugin=StoragePlugin.MCAP) as writer:
        for record in _records(storage):
            if isinstance(record, Schema):
                schemas[record.id] = record.name
            elif isinstance(record, Channel) and record.id not in connections:
                connections[record.id] = writer.add_connection(
                    record.topic,
                    schemas[record.schema_id],
                    typestore=jazzy(),
                    offered_qos_profiles=[qos(record.topic)],
                )
            elif isinstance(record, Message):
                writer.write(connections[record.channel_id], record.log_time, record.data)
                messages += 1
    if not messages:
        raise ConfigError(f"{storage}: no message in it")


def _records(storage: Path) -> Iterator[object]:
    """Records up to the first that is not whole."""
    from mcap.exceptions import McapError
    from mcap.stream_reader import StreamReader

    with storage.open("rb") as file:
        records = iter(StreamReader(file).records)
        while True:
            try:
                record = next(records)
            except (StopIteration, McapError, ValueError):
                return
            yield record
