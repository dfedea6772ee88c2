"""Recordings of what our recorders recorded: from a bag (MCAP or SQLite), or still in memory.

Both become samples of the signals of `musls_sim.recording.signals`, and these a `Recording`; so do
bags from Gazebo. Messages with a header count at its stamp. Mission stages, events and free lengths
have none: the difference between stamp and log time of the load's poses places them on its clock.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from musls_analysis.recordings.cdr import decode_columns
from musls_analysis.recordings.recording import (
    ANCHOR,
    LOAD,
    AccelerationTrack,
    BatteryTrack,
    CableTrack,
    Event,
    PoseTrack,
    Recording,
    RotorTrack,
    SignalTrack,
    TwistTrack,
    WrenchTrack,
    resample,
    stages_from_changes,
)
from musls_description.errors import ConfigError
from musls_description.rotations import rotate
from musls_description.strict_yaml import shown
from musls_sim.recording.bag_file import MAGIC, BagFile, merge, render_each
from musls_sim.recording.messages import STRING, has_header
from musls_sim.recording.recorder import BagRecorder, MemoryRecorder
from musls_sim.recording.signals import EVENTS, SIGNALS, STAGE, Rate

STORAGE_SUFFIXES = (".mcap", ".db3")
"""A storage file reads without the metadata.yaml beside it, e.g. when a recorder was killed."""

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


def _filed(messages: Iterable[tuple[int, str, bytes]], keys: Mapping[str, Key]) -> dict[Key, Log]:
    """Messages (time, topic, bytes) of the topics that have a key, by it."""
    logs: dict[Key, Log] = defaultdict(lambda: Log([], []))
    for time_ns, topic, data in messages:
        if topic in keys:
            log = logs[keys[topic]]
            log.time_ns.append(time_ns)
            log.data.append(data)
    return dict(logs)


def _read_whole(source: Path, choose: Choose[Key]) -> RawBag[Key] | None:
    """Read a finished bag; None if it is empty."""
    from rosbags.rosbag2 import Reader

    with Reader(source) as reader:
        if reader.message_count == 0:
            return None
        keys = choose({c.topic: c.msgtype for c in reader.connections})
        chosen = [c for c in reader.connections if c.topic in keys]
        messages = reader.messages(chosen) if chosen else ()
        return RawBag(_filed(((t, c.topic, data) for c, t, data in messages), keys))


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
        if file.read(len(MAGIC)) != MAGIC:
            return None
        size = file.seek(0, 2)
        file.seek(max(size - len(MAGIC), 0))
        whole = size > _SMALLEST_END and file.read() == MAGIC
    return None if whole else source


def _read_cut(file: Path, choose: Choose[Key]) -> RawBag[Key]:
    """Read an unfinished file up to its last whole record."""
    types, messages = _messages_to_the_cut(file)
    if not messages:
        raise ValueError("it ends before its first messages")
    logs = _filed(messages, choose(types))
    span_s = (messages[-1][0] - messages[0][0]) * 1e-9
    warning = f"the bag was cut before its end (recorder killed?): {span_s:.1f} s of it were read"
    return RawBag(logs, (warning,))


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


Topic = tuple[str, str]
"""Owner and name of a signal, e.g. ("load", "pose"); ("mission", "stage"); ("", "events")."""
Samples = Mapping[Topic, SignalTrack]
Texts = Sequence[tuple[float, str]]
"""Time [s] and words."""
_Logs = Mapping[Topic, Log]

_TEXTS: dict[str, Topic] = {STAGE: ("mission", "stage"), EVENTS: ("", "events")}
_TOPIC = re.compile(r"/(load|drone_\d+|anchor_\d+|cable_\d+)/(\w+)")
_OWN_TRACKS = {
    "pose", "twist", "setpoint", "tension", "shape", "free_length", "rotors", "battery", "wrench",
    "setpoint_accel",
}  # fmt: skip
"""Signals that stand in a recording under names of their own."""


# ---------- From a bag


def read_bag(path: Path) -> Recording:
    """Read a bag with the topics of this project.

    Raises:
        ConfigError: No bag, damaged, empty, or without the poses of the load and of a drone.
    """
    return recording_of_bag(path, read_messages(path, lambda t: keys_of_topics(path, t)))


def keys_of_topics(path: Path, topics: Mapping[str, str]) -> dict[str, Topic]:
    """Owner and signal, e.g. ("load", "pose"), of each topic of this project.

    The topics come with their message types; the path is for messages.

    Raises:
        ConfigError: One of them has another type.
    """
    keys = {}
    for topic, msgtype in topics.items():
        if topic in _TEXTS:
            key, wanted = _TEXTS[topic], STRING
        else:
            match = _TOPIC.fullmatch(topic)
            if match is None or match[2] not in SIGNALS:
                continue
            key, wanted = (match[1], match[2]), SIGNALS[match[2]].type
        if msgtype != wanted:
            raise ConfigError(f"{path}: {topic} has type {msgtype}, must be {wanted}")
        keys[topic] = key
    return keys


def recording_of_bag(path: Path, bag: RawBag[Topic]) -> Recording:
    """Make a recording of the messages of a bag; the path is for messages.

    Raises:
        ConfigError: The poses of the load or of a drone are missing, or a message is damaged.
    """
    logs = bag.logs
    bodies = {n for n, _ in logs if n.startswith(("drone_", ANCHOR))} or {"drone_1"}
    for name in [LOAD, *sorted(bodies)]:
        if (name, "pose") not in logs:
            raise ConfigError(f"{path}: the bag has no messages on /{name}/pose")
    samples: dict[Topic, SignalTrack] = {}
    for key in sorted(logs, key=lambda key: key != (LOAD, "pose")):  # it is everybody's clock
        if key not in _TEXTS.values():
            samples[key] = _decoded(path, key, logs, samples)
    stages, events = (_texts(path, topic, logs, samples) for topic in (STAGE, EVENTS))
    return _recording(samples, stages, events, str(path), bag.warnings)


def _decoded(path: Path, key: Topic, logs: _Logs, samples: Samples) -> SignalTrack:
    signal, messages = SIGNALS[key[1]], logs[key].data
    columns = [column for column in signal.columns if column.field]
    stamped = has_header(signal.type)
    header = ["header.stamp.sec", "header.stamp.nanosec", "header.frame_id"] if stamped else []
    fields = [*(column.field for column in columns), *header]
    try:
        found: list[Any] = decode_columns(messages, signal.type, fields)
        if signal.rate is not Rate.SHAPE and any(isinstance(part, list) for part in found):
            raise ValueError("messages of different sizes")
        values = dict(zip((c.name for c in columns), found, strict=False))
        if stamped:
            sec, nanosec, frame = found[len(columns) :]
            time_s = _seconds(np.asarray(sec, np.int64) * 1_000_000_000 + nanosec)
        else:
            time_s = _on_clock(logs[key], logs, samples)
        if signal.ends:
            return _both_ends(time_s, frame, values, signal.ends)
    except ValueError as error:
        raise ConfigError(f"{path}: /{key[0]}/{key[1]} cannot be decoded: {error}") from error
    order = np.argsort(time_s, kind="stable")
    return SignalTrack(time_s[order], {name: _picked(v, order) for name, v in values.items()})


def _picked(values: Any, order: np.ndarray) -> Any:
    listed = isinstance(values, list)
    return [values[k] for k in order.tolist()] if listed else values[order].astype(float)


def _both_ends(
    time_s: np.ndarray,
    frame: np.ndarray,
    values: Mapping[str, np.ndarray],
    ends: tuple[str, ...],
) -> SignalTrack:
    """Samples where both ends have one, (T, 2, ...)."""
    first, second = (np.char.endswith(frame, f"/{end}".encode()) for end in ends)
    if not np.all(first | second):
        raise ValueError(f"frame_id must end in {' or '.join(f'/{end}' for end in ends)}")
    both, *at = np.intersect1d(time_s[first], time_s[second], return_indices=True)
    columns = {
        name: np.stack([of[first][at[0]], of[second][at[1]]], axis=1) for name, of in values.items()
    }
    return SignalTrack(both, columns)


def _texts(path: Path, topic: str, logs: _Logs, samples: Samples) -> Texts:
    key = _TEXTS[topic]
    if key not in logs:
        return []
    try:
        (texts,) = decode_columns(logs[key].data, STRING, ["data"])
    except ValueError as error:
        raise ConfigError(f"{path}: {topic} cannot be decoded: {error}") from error
    times_s = _on_clock(logs[key], logs, samples).tolist()
    return [(t, text.decode(errors="replace")) for t, text in zip(times_s, texts, strict=True)]


def _on_clock(log: Log, logs: _Logs, samples: Samples) -> np.ndarray:
    """Times of messages without a stamp, on the clock of the stamps [s]."""
    logged_s = _seconds(np.array(logs[LOAD, "pose"].time_ns))
    lag_s = samples[LOAD, "pose"].time_s - logged_s
    announced_s = _seconds(np.array(log.time_ns))
    times_s: np.ndarray = announced_s + np.interp(announced_s, logged_s, lag_s)
    return times_s


def _seconds(time_ns: np.ndarray) -> np.ndarray:
    """One formula for stamps and log times, so that equal times stay equal."""
    return time_ns / 1e9


# ---------- From memory


def recording_from(recorder: MemoryRecorder, source: str = "") -> Recording:
    """Copy all that was recorded, so that the recorder may go on.

    A `BagRecorder` whose memory was too small is closed, and its bag is read. The source is for
    people; its default is the bag's folder, or "memory".

    Raises:
        ConfigError: Nothing was recorded.
    """
    if isinstance(recorder, BagRecorder):
        source = source or str(recorder.folder)
        if not recorder.whole:
            recorder.close()
            return read_bag(recorder.folder)
    samples: dict[Topic, SignalTrack] = {}
    for rate, row in recorder.layouts.items():
        columns = row.written(recorder.rows[rate].columns())
        kept = row.kept(columns, row.nothing())
        time_s = _seconds(recorder.rows[rate].stamps_ns())
        for k, (signal, owner, i, end) in enumerate(row.places):
            chosen = np.ones(len(time_s), bool) if kept is None else kept[:, k]
            if end == 0 and chosen.any():
                parts = {
                    column.name: row.of_owner(columns, signal, column, i)[chosen].astype(float)
                    for column in signal.columns
                    if column.field
                }
                samples[owner, signal.name] = SignalTrack(time_s[chosen], parts)
    stages = [(stage.stamp_ns / 1e9, stage.text) for stage in recorder.stages]
    events = [(e.stamp_ns / 1e9, f"{e.kind}: {e.what}") for e in recorder.events]
    return _recording(samples, stages, events, source or "memory")


# ---------- From samples


def _recording(
    samples: Samples, stages: Texts, events: Texts, source: str, warnings: Sequence[str] = ()
) -> Recording:
    names = sorted({name for name, _ in samples}, key=lambda n: (n != LOAD, len(n), n))

    def of(signal: str) -> dict[str, SignalTrack]:
        return {name: samples[name, signal] for name in names if (name, signal) in samples}

    poses = {name: PoseTrack(track.time_s, *track.parts) for name, track in of("pose").items()}
    bodies = {n: poses[n] for n in sorted(poses, key=lambda n: n.startswith(ANCHOR))}
    span = [(track.time_s[0], track.time_s[-1]) for track in poses.values()]
    start_s, end_s = (float(min(span)[0]), float(max(e for _, e in span))) if span else (0.0, 0.0)
    parted = [(time_s, text.partition(":")) for time_s, text in events]
    others: dict[str, dict[str, SignalTrack]] = {}
    for (name, signal), track in samples.items():
        if signal not in _OWN_TRACKS:
            others.setdefault(name, {})[signal] = track
    return Recording(
        bodies,
        setpoints={n: PoseTrack(t.time_s, *t.parts) for n, t in of("setpoint").items()},
        cables={n: _cable(n, samples) for n in names if n.startswith("cable_")},
        rotors={n: RotorTrack(t.time_s, *t.parts) for n, t in of("rotors").items()},
        stages=stages_from_changes(
            [time_s for time_s, _ in stages], [name for _, name in stages], start_s, end_s
        ),
        source=source,
        warnings=tuple(warnings),
        twists={n: _twist(t, poses[n]) for n, t in of("twist").items()},
        events=tuple(Event(t, kind.strip(), what.strip()) for t, (kind, _, what) in parted),
        batteries={n: _battery(track) for n, track in of("battery").items()},
        wrenches={n: WrenchTrack(t.time_s, *t.parts) for n, t in of("wrench").items()},
        setpoint_accelerations={
            n: AccelerationTrack(t.time_s, *t.parts) for n, t in of("setpoint_accel").items()
        },
        signals=others,
    )


def _battery(track: SignalTrack) -> BatteryTrack:
    of = track.columns
    return BatteryTrack(track.time_s, of["voltage_v"], -of["current_a"], of["charge"])


def _cable(name: str, samples: Samples) -> CableTrack:
    nothing = SignalTrack(np.empty(0), {})
    tension, shape, free = (
        samples.get((name, signal), nothing) for signal in ("tension", "shape", "free_length")
    )
    along = tension.columns["force_n"][:, :, 0] if tension.columns else np.empty((0, 2))
    (nodes,) = shape.parts or ([],)
    (length_m,) = free.parts or (np.empty(0),)
    return CableTrack(tension.time_s, along, shape.time_s, list(nodes), free.time_s, length_m)


def _twist(twist: SignalTrack, pose: PoseTrack) -> TwistTrack:
    """See the angular velocity in the body's frame; where no pose is known, drop it."""
    time_s, (velocity, omega) = twist.time_s, twist.parts
    orientation = pose.orientation_wxyz
    if not np.array_equal(time_s, pose.time_s):
        known = (time_s >= pose.time_s[0]) & (time_s <= pose.time_s[-1])
        time_s, velocity, omega = time_s[known], velocity[known], omega[known]
        strictly = np.concatenate([np.diff(pose.time_s) > 0.0, [True]])
        kept = PoseTrack(*(part[strictly] for part in (
            pose.time_s, pose.position_enu_m, pose.orientation_wxyz
        )))  # fmt: skip
        orientation = resample(kept, time_s, np.inf).orientation_wxyz
    inverse = orientation * np.array([1.0, -1.0, -1.0, -1.0])
    return TwistTrack(time_s, velocity, rotate(inverse, omega))
