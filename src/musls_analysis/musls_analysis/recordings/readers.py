"""Recordings of any kind: finds out what it is and reads it."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from musls_analysis.recordings.bag import Topic, keys_of_topics, recording_of_bag
from musls_analysis.recordings.cleaning import Notes, ReadOptions, cleaned
from musls_analysis.recordings.raw_bag import STORAGE_SUFFIXES, RawBag, read_messages, storage_in
from musls_analysis.recordings.recording import Recording
from musls_analysis.recordings.tables import (
    is_excerpt,
    is_flight_log,
    read_excerpt,
    read_flight_log,
)
from musls_analysis.recordings.tf_bag import read_tf_bag
from musls_description.errors import ConfigError
from musls_description.registry import Registry
from musls_description.strict_yaml import shown

# ---------- Bags: ours and Gazebo's (poses on topics of their own), or TF only

_TF_TYPES = ("tf2_msgs/msg/TFMessage", "tf2_msgs/TFMessage")


def read_bag_of_any_kind(path: Path, options: ReadOptions) -> Recording:
    """Read a bag, MCAP or SQLite.

    Frames named in the options make it read TF even where there are poses.

    Raises:
        ConfigError: Damaged, empty, or with neither poses nor TF in it.
    """
    kinds: list[str] = []

    def choose(topics: Mapping[str, str]) -> Mapping[str, Hashable]:
        ours = keys_of_topics(path, topics)
        if any(kind == "pose" for _, kind in ours.values()) and not options.frames:
            kinds.append("poses")
            return ours
        keys = {
            topic: "static" if topic.endswith("tf_static") else "moving"
            for topic, msgtype in topics.items()
            if msgtype in _TF_TYPES
        }
        if "moving" not in keys.values():
            names = ", ".join(sorted(topics)[:8])
            raise ConfigError(f"{path}: neither /load/pose nor /tf in the bag; it has {names}")
        return keys

    bag = read_messages(path, choose)
    if kinds:
        return _cleaned(recording_of_bag(path, cast(RawBag[Topic], bag)))
    if "moving" not in bag.logs:
        raise ConfigError(f"{path}: no messages on /tf in the bag")
    recording = read_tf_bag(path, bag.logs["moving"], bag.logs.get("static"), options)
    return replace(recording, warnings=(*bag.warnings, *recording.warnings))


def _cleaned(recording: Recording) -> Recording:
    """Simulated bodies at rest repeat their poses, so nothing is taken for stale."""
    notes = Notes()
    bodies = {b: cleaned(t, b, recording.source, notes) for b, t in recording.bodies.items()}
    setpoints = {
        body: cleaned(track, f"{body}'s set-points", recording.source, notes)
        for body, track in recording.setpoints.items()
    }
    warnings = (*recording.warnings, *notes.lines)
    return replace(recording, bodies=bodies, setpoints=setpoints, warnings=warnings)


# ---------- Any kind

_HEAD_BYTES = 65536


@dataclass(frozen=True)
class Reader:
    """Reads one kind of text file.

    Attributes:
        what: What such a file looks like, for people.
        recognises: Whether its first lines (without empty ones) are those of this kind.
        read: Reads a file.
    """

    what: str
    recognises: Callable[[list[str]], bool]
    read: Callable[[Path, ReadOptions], Recording]


READERS: Registry[Reader] = Registry(
    "reader",
    "musls.readers",
    {
        "csv": Reader("CSV with a column load_x", lambda lines: is_excerpt(lines[0]), read_excerpt),
        "flight_log": Reader("35 + 20 n columns", is_flight_log, read_flight_log),
    },
)
"""Readers of text files by name; bags are recognised by their folder or suffix."""


def read_recording(path: Path | str, options: ReadOptions | None = None) -> Recording:
    """Read a flight, real or simulated.

    Args:
        path: Bag (folder or .mcap, .db3), result folder of `musls fly`, folder with one storage
            file, log file of the seed paper's flights, or CSV excerpt.
        options: What the recording does not say.

    Returns:
        The recording, its poses at strictly increasing times; what was dropped is in `warnings`.

    Raises:
        ConfigError: Missing, empty, damaged or of an unknown kind.
    """
    path, options = Path(path), options or ReadOptions()
    # os.path, because Path raises for names that are too long.
    if not os.path.exists(path):
        raise ConfigError(f"{shown(str(path), 200)}: no such file or folder")
    if os.path.isdir(path):
        recording = read_bag_of_any_kind(_bag_in(path), options)
        return replace(recording, source=str(path))
    if path.suffix in STORAGE_SUFFIXES:
        return read_bag_of_any_kind(path, options)
    first_lines = _first_lines(path)
    for reader in READERS.values():
        if reader.recognises(first_lines):
            return reader.read(path, options)
    known = "; ".join(f"{name} ({reader.what})" for name, reader in READERS.items())
    raise ConfigError(f"{path}: not a recording: neither a bag nor one of {known}")


def _bag_in(folder: Path) -> Path:
    """The bag that a folder is or holds."""
    for candidate in (folder, folder / "bag"):
        if found := storage_in(candidate):
            return found
    several = any(f.suffix in STORAGE_SUFFIXES for f in folder.iterdir())
    what = "several storage files in it" if several else "no metadata.yaml and no bag/ in it"
    raise ConfigError(f"{folder}: not a recording ({what})")


def _first_lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if not head.strip():
        raise ConfigError(f"{path}: the file is empty")
    if b"\0" in head:
        raise ConfigError(f"{path}: not a recording (binary, but no .mcap or .db3)")
    lines = head.decode("utf-8", errors="replace").splitlines()
    return [line for line in lines if line.strip()][:20]
