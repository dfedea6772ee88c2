"""Recordings of any kind, of others too: finds out what it is and reads it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from musls_analysis.recordings.bag import (
    STORAGE_SUFFIXES,
    Topic,
    keys_of_topics,
    read_messages,
    recording_of_bag,
    storage_in,
)
from musls_analysis.recordings.capture import Capture, cleaned, joined, recording_of
from musls_analysis.recordings.formats.columns import (
    ASK,
    is_airsim,
    is_columns,
    is_echo,
    is_numbers,
    read_airsim,
    read_columns,
    read_echo,
)
from musls_analysis.recordings.formats.flight_log import is_flight_log, read_flight_log
from musls_analysis.recordings.formats.mocap import (
    is_motive,
    is_qualisys,
    is_vicon,
    read_motive,
    read_qualisys,
    read_vicon,
)
from musls_analysis.recordings.formats.topics import POSES, TF_TYPE, capture_of, transforms_of
from musls_analysis.recordings.formats.trajectory import (
    is_euroc,
    is_kitti,
    is_tum,
    read_euroc,
    read_kitti,
    read_tum,
)
from musls_analysis.recordings.formats.ulog import SUFFIX as ULOG
from musls_analysis.recordings.formats.ulog import (
    is_topic_beside,
    is_ulog,
    is_ulog_csv,
    read_ulog,
    read_ulog_csv,
)
from musls_analysis.recordings.options import ReadOptions, with_kept
from musls_analysis.recordings.recording import Recording
from musls_description.config.errors import ConfigError, near_names
from musls_description.config.registry import Registry, user_code
from musls_description.config.schema import build
from musls_description.config.strict_yaml import parse_yaml, read_text, shown
from musls_description.config.text_tables import naming, read_lines
from musls_description.system.obstacles import AnyObstacle, WorldSpec

__all__ = ["READERS", "ReadOptions", "Reader", "folder_of_run", "read_recording"]

# ---------- Bags: ours and Gazebo's (poses on topics of their own), or TF, or topics of poses

_MOVING = (TF_TYPE, "/tf")
_STATIC = (TF_TYPE, "/tf_static")
_TF_TYPES = (TF_TYPE, "tf2_msgs/TFMessage", "tf/msg/tfMessage")


def _read_bag(path: Path, options: ReadOptions) -> Recording:
    """Read a bag: ours, else TF or topics of poses; names in the options choose these."""

    def choose(topics: Mapping[str, str]) -> Mapping[str, Topic]:
        poses = {t: (msgtype, t) for t, msgtype in topics.items() if msgtype in POSES}
        if poses and any(name.startswith("/") for name in options.bodies.values()):
            return poses
        ours = keys_of_topics(topics)
        if any(kind == "pose" for _, kind in ours.values()) and not options.bodies:
            return ours
        keys = {
            topic: _STATIC if topic.endswith("tf_static") else _MOVING
            for topic, msgtype in topics.items()
            if msgtype in _TF_TYPES
        }
        if _MOVING not in keys.values() and poses:
            return poses
        if _MOVING not in keys.values():
            names = ", ".join(sorted(topics)[:8])
            raise ConfigError(
                f"neither /load/pose nor /tf nor topics of poses in the bag; it has {names}"
            )
        return keys

    if options.columns:
        raise ConfigError("--columns is for tables, not for bags")
    bag = read_messages(path, choose)
    types = {msgtype for msgtype, _ in bag.logs}
    if not types & {TF_TYPE, *POSES}:
        if not bag.logs:
            raise ConfigError("no poses in the bag")
        return _cleaned_recording(recording_of_bag(bag))
    static = transforms_of({_STATIC: bag.logs[_STATIC]}) if _STATIC in bag.logs else None
    moving = {key: log for key, log in bag.logs.items() if key != _STATIC}
    if not moving:
        raise ConfigError("no messages on /tf in the bag")
    read = recording_of(capture_of(transforms_of(moving), static, "bag"), options)
    return replace(read, warnings=(*bag.warnings, *read.warnings))


def _cleaned_recording(recording: Recording) -> Recording:
    """Simulated bodies at rest repeat their poses, so nothing is taken for stale."""
    notes = list(recording.warnings)
    bodies = {b: cleaned(track, b, notes) for b, track in recording.bodies.items()}
    setpoints = {
        b: cleaned(track, f"{b}'s set-points", notes) for b, track in recording.setpoints.items()
    }
    return replace(recording, bodies=bodies, setpoints=setpoints, warnings=tuple(notes))


# ---------- Any kind

_HEAD_BYTES = 65536


@dataclass(frozen=True)
class Reader:
    """Reads one kind of file.

    Attributes:
        what: Description of such a file, for people.
        recognises: Whether its first lines (without empty ones) are those of this kind.
        read: Reads a file: a `Capture` in the file's units and axes, or the finished recording.
        suffix: End of the names of files that are no text, such as ".ulg"; empty for text.
    """

    what: str
    recognises: Callable[[list[str]], bool]
    read: Callable[[Path, ReadOptions], Capture | Recording]
    suffix: str = ""


READERS: Registry[Reader] = Registry(
    "reader",
    "musls.readers",
    {
        "vicon": Reader("CSV of Vicon Tracker or Nexus", is_vicon, read_vicon),
        "motive": Reader("CSV of OptiTrack Motive", is_motive, read_motive),
        "qualisys": Reader("6D TSV of Qualisys QTM", is_qualisys, read_qualisys),
        "euroc": Reader("CSV of EuRoC, one body a file", is_euroc, read_euroc),
        "tum": Reader("TUM trajectory, one body a file", is_tum, read_tum),
        "kitti": Reader("KITTI poses, one body a file", is_kitti, read_kitti),
        "ulog": Reader("log of a PX4, one drone a file", is_ulog, read_ulog, ULOG),
        "ulog_csv": Reader("local position by ulog2csv", is_ulog_csv, read_ulog_csv),
        "echo": Reader("topic of ROS 1 or 2 as text, one a file", is_echo, read_echo),
        "airsim": Reader("airsim_rec.txt of AirSim", is_airsim, read_airsim),
        "csv": Reader("table with columns such as load_x", is_columns, read_columns),
        "flight_log": Reader("35 + 20 n columns", is_flight_log, read_flight_log),
    },
)
"""Readers of files by name; bags are recognised by their folder or suffix."""


@user_code()
def read_recording(path: Path | str, options: ReadOptions | None = None) -> Recording:
    """Read a flight, see `musls.read_recording`."""
    path = Path(path)
    # os.path, because Path raises for names that are too long.
    if not os.path.exists(path):
        raise ConfigError(f"{shown(str(path), 200)}: no such file or folder")
    options = with_kept(path, options)
    with naming(path):
        read = _read(path, options)
    obstacles = _obstacles_beside(path)
    return replace(read, source=str(path), obstacles=obstacles)


def folder_of_run(path: Path) -> Path:
    """The folder that `musls fly` wrote a recording into; the path itself of other recordings."""
    folder = Path(os.path.realpath(path))  # resolve() raises for links in a circle
    if folder.suffix in STORAGE_SUFFIXES:
        folder = folder.parent
    return folder.parent if folder.name == "bag" else folder


def _obstacles_beside(path: Path) -> Sequence[AnyObstacle]:
    """Obstacles of the scenario that was saved with a recording."""
    scenario = folder_of_run(path) / "scenario.yaml"
    data = parse_yaml(read_text(scenario), str(scenario)) if scenario.is_file() else {}
    world = data.get("world") if isinstance(data, Mapping) else None
    if not (isinstance(world, Mapping) and (world.get("obstacles") or world.get("ground"))):
        return ()
    return build(WorldSpec, world, str(scenario)).surfaces


def _read(path: Path, options: ReadOptions) -> Recording:
    if os.path.isdir(path):
        if (storage := _bag_in(path)) is not None:
            return _read_bag(storage, options)
        return recording_of(_captures_in(path, options), options)
    if path.suffix in STORAGE_SUFFIXES:
        return _read_bag(path, options)
    read = _reader_of(path, options).read(path, options)
    return recording_of(read, options) if isinstance(read, Capture) else read


def _reader_of(path: Path, options: ReadOptions) -> Reader:
    """The reader of a file: as it was named, by its suffix, or by its first lines."""
    if options.format is not None:
        if options.format not in READERS:
            raise ConfigError(
                f"no format '{shown(options.format)}': {near_names(options.format, READERS)}"
            )
        reader = READERS[options.format]
        if options.columns and reader.read is not read_columns:
            raise ConfigError(f"--columns is for tables (csv), not for {shown(options.format)}")
        return reader
    for reader in READERS.values():
        if reader.suffix and path.suffix.lower() == reader.suffix:
            if options.columns:
                raise ConfigError(f"--columns is for tables, not for a {reader.what}")
            return reader
    first_lines = _first_lines(path)
    if options.columns:
        return READERS["csv"]
    for reader in READERS.values():
        if reader.recognises(first_lines):
            return reader
    if is_numbers(first_lines):
        raise ConfigError(f"a table of numbers that nothing names: {ASK} (- for one left out)")
    choices = "; ".join(f"{name} ({reader.what})" for name, reader in READERS.items())
    raise ConfigError(f"not a recording: neither a bag nor one of {choices}")


def _captures_in(folder: Path, options: ReadOptions) -> Capture:
    """Captures of the files in a folder, where each holds one body."""
    captures = []
    notes = []
    for file in sorted(f for f in folder.iterdir() if f.is_file() and not is_topic_beside(f)):
        try:
            reader = _reader_of(file, options)
        except ConfigError:
            continue  # a note or a picture beside the recordings
        try:
            read = reader.read(file, options)
        except ConfigError as error:
            notes.append(f"{shown(file.name)} left out: {error}")
            continue
        if isinstance(read, Capture) and read.alone:
            captures.append(read)
    if not captures:
        raise ConfigError(
            "not a recording (no metadata.yaml and no bag/ in it, and no files of one body each)"
            + "".join(f"; {note}" for note in notes[:1])
        )
    whole = joined(captures)
    return replace(whole, notes=[*whole.notes, *notes])


def _bag_in(folder: Path) -> Path | None:
    """The bag that a folder is or holds."""
    for candidate in (folder, folder / "bag"):
        if storage := storage_in(candidate):
            return storage
    if any(f.suffix in STORAGE_SUFFIXES for f in folder.iterdir()):
        raise ConfigError("not a recording (several storage files in it)")
    return None


def _first_lines(path: Path) -> list[str]:
    lines = [line for line in read_lines(path, _HEAD_BYTES) if line.strip()]
    if not lines:
        raise ConfigError("the file is empty")
    return [line.rstrip("\r\n") for line in lines[:20]]
