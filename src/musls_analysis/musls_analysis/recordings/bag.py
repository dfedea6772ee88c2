"""Reads our rosbag2 bags (MCAP or SQLite), from the embedded simulator and from Gazebo alike.

Messages with a header count at its stamp. Mission stages and events have none: the difference
between stamp and log time of the load's poses places them on the same clock.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from musls_analysis.recordings.cdr import CdrStack, decode, decode_columns
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
    Stage,
    TwistTrack,
    WrenchTrack,
    resample,
    stages_from_changes,
)
from musls_description.errors import ConfigError
from musls_description.rotations import rotate
from musls_description.strict_yaml import shown
from musls_sim.recording.signals import EVENTS

# ---------- Serialised messages out of a rosbag2 bag, MCAP or SQLite

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


Topic = tuple[str, str]
"""Name and kind of a topic, e.g. ("load", "pose")."""
_Logs = Mapping[Topic, Log]
_Result = TypeVar("_Result")

_EVENTS = ("events", "events")
_TYPES = {
    "pose": "geometry_msgs/msg/PoseStamped",
    "setpoint": "geometry_msgs/msg/PoseStamped",
    "setpoint_accel": "geometry_msgs/msg/AccelStamped",
    "tension": "geometry_msgs/msg/WrenchStamped",
    "shape": "visualization_msgs/msg/Marker",
    "rotors": "sensor_msgs/msg/JointState",
    "battery": "sensor_msgs/msg/BatteryState",
    "twist": "geometry_msgs/msg/TwistStamped",
    "wrench": "geometry_msgs/msg/WrenchStamped",
    "free_length": "std_msgs/msg/Float64",
    "stage": "std_msgs/msg/String",
    "events": "std_msgs/msg/String",
}
_TOPIC = re.compile(r"/(load|drone_\d+|anchor_\d+|cable_\d+|mission)/(\w+)")


def read_bag(path: Path) -> Recording:
    """Read a bag with the topics of this project.

    Args:
        path: Folder of the bag.

    Raises:
        ConfigError: No bag, damaged, empty, or without the poses of the load and of a drone.
    """
    return recording_of_bag(path, read_messages(path, lambda t: keys_of_topics(path, t)))


def recording_of_bag(path: Path, bag: RawBag[Topic]) -> Recording:
    """Make a recording of the messages of a bag.

    Args:
        path: Bag, for messages.
        bag: Its messages by name and kind.

    Raises:
        ConfigError: The poses of the load or of a drone are missing, or a message is damaged.
    """
    logs = bag.logs
    names = sorted({n for n, _ in logs}, key=lambda n: (len(n), n))
    drones = [n for n in names if n.startswith("drone_")]
    anchors = [n for n in names if n.startswith(ANCHOR)]
    bodies = [LOAD, *drones, *anchors]
    for name in [*bodies, *([] if drones or anchors else ["drone_1"])]:
        if (name, "pose") not in logs:
            raise ConfigError(f"{path}: the bag has no messages on /{name}/pose")
    poses = {n: _decoded(path, n, "pose", logs, _poses) for n in bodies}
    setpoints = {
        n: _decoded(path, n, "setpoint", logs, _poses)
        for n in [LOAD, *drones]
        if (n, "setpoint") in logs
    }
    cables = {n: _cable(path, n, logs, poses) for n in names if n.startswith("cable_")}
    rotors = {
        n: _decoded(path, n, "rotors", logs, _rotors) for n in drones if (n, "rotors") in logs
    }
    batteries = {
        n: _decoded(path, n, "battery", logs, _batteries) for n in drones if (n, "battery") in logs
    }
    twists = {
        n: _twist(_decoded(path, n, "twist", logs, _twists_enu), poses[n])
        for n in bodies
        if (n, "twist") in logs
    }
    wrenches = {
        n: _decoded(path, n, "wrench", logs, _wrenches) for n in anchors if (n, "wrench") in logs
    }
    accelerations = {
        n: _decoded(path, n, "setpoint_accel", logs, _accelerations)
        for n in drones
        if (n, "setpoint_accel") in logs
    }
    return Recording(
        poses, setpoints, cables, rotors, _stages(path, logs, poses), str(path), bag.warnings,
        twists, _events(path, logs, poses), batteries, wrenches,
        setpoint_accelerations=accelerations,
    )  # fmt: skip


def keys_of_topics(path: Path, topics: Mapping[str, str]) -> dict[str, Topic]:
    """Name and kind, e.g. ("load", "pose"), of each topic of this project.

    Args:
        path: Bag, for messages.
        topics: Message type by topic.

    Raises:
        ConfigError: One of them has another type.
    """
    keys = {}
    for topic, msgtype in topics.items():
        match = _TOPIC.fullmatch(topic)
        key = _EVENTS if topic == EVENTS else (match[1], match[2]) if match else ("", "")
        if key[1] not in _TYPES:
            continue
        if msgtype != _TYPES[key[1]]:
            raise ConfigError(f"{path}: {topic} has type {msgtype}, must be {_TYPES[key[1]]}")
        keys[topic] = key
    return keys


def _decoded(
    path: Path, name: str, kind: str, logs: _Logs, decoder: Callable[[list[bytes]], _Result]
) -> _Result:
    try:
        return decoder(logs[name, kind].data)
    except ValueError as error:
        raise ConfigError(f"{path}: /{name}/{kind} cannot be decoded: {error}") from error


def _header(stack: CdrStack) -> tuple[np.ndarray, np.ndarray]:
    """Stamp [s] and frame (n,)."""
    sec = stack.numbers("i4")[:, 0].astype(np.int64)
    nanosec = stack.numbers("u4")[:, 0]
    return _seconds(sec * 1_000_000_000 + nanosec), stack.string()


def _seconds(time_ns: np.ndarray) -> np.ndarray:
    """One formula for stamps and log times, so that equal times stay equal."""
    return time_ns / 1e9


def _poses(messages: list[bytes]) -> PoseTrack:
    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        return _header(stack)[0], stack.numbers("f8", 7)

    time_s, pose = decode_columns(messages, walk)
    order = np.argsort(time_s, kind="stable")
    return PoseTrack(time_s[order], pose[order, :3], pose[order][:, [6, 3, 4, 5]])


class _TwistsEnu(NamedTuple):
    """Velocities over time, both parts in the world frame."""

    time_s: np.ndarray  # (T,)
    linear_m_s: np.ndarray  # (T, 3)
    angular_rad_s: np.ndarray  # (T, 3)


def _twists_enu(messages: list[bytes]) -> _TwistsEnu:

    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        return _header(stack)[0], stack.numbers("f8", 6)

    time_s, twist = decode_columns(messages, walk)
    order = np.argsort(time_s, kind="stable")
    return _TwistsEnu(time_s[order], twist[order, :3], twist[order, 3:])


def _twist(enu: _TwistsEnu, pose: PoseTrack) -> TwistTrack:
    """See the angular velocity in the body's frame; where no pose is known, drop it."""
    time_s, velocity, omega = enu
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


def _rotors(messages: list[bytes]) -> RotorTrack:
    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        time_s, _ = _header(stack)
        for _ in range(stack.length()):
            stack.string()
        stack.numbers("f8", stack.length())
        return time_s, stack.numbers("f8", stack.length())

    return RotorTrack(*decode_columns(messages, walk))


def _wrenches(messages: list[bytes]) -> WrenchTrack:
    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        return _header(stack)[0], stack.numbers("f8", 6)

    time_s, wrench = decode_columns(messages, walk)
    return WrenchTrack(time_s, wrench[:, :3], wrench[:, 3:])


def _accelerations(messages: list[bytes]) -> AccelerationTrack:
    enu = _twists_enu(messages)  # the same layout
    return AccelerationTrack(enu.time_s, enu.linear_m_s)


def _numbers(messages: list[bytes]) -> np.ndarray:
    """Values of messages of one number (n,)."""
    values: np.ndarray = decode_columns(messages, lambda stack: (stack.numbers("f8"),))[0][:, 0]
    return values


def _batteries(messages: list[bytes]) -> BatteryTrack:
    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        return _header(stack)[0], stack.numbers("f4", 7).astype(float)

    time_s, values = decode_columns(messages, walk)
    return BatteryTrack(time_s, values[:, 0], -values[:, 2], values[:, 6])


def _tensions(messages: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Times (T,) and tensions at load and drone (T, 2) where both ends have a sample."""

    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        time_s, frame = _header(stack)
        at_drone = np.char.endswith(frame, b"/drone_end")
        if not np.all(at_drone | np.char.endswith(frame, b"/load_end")):
            raise ValueError("frame_id must end in /load_end or /drone_end")
        return time_s, at_drone, stack.numbers("f8", 6)[:, 0]

    time_s, at_drone, tension_n = decode_columns(messages, walk)
    both, load, drone = np.intersect1d(time_s[~at_drone], time_s[at_drone], return_indices=True)
    return both, np.stack([tension_n[~at_drone][load], tension_n[at_drone][drone]], axis=1)


def _shapes(messages: list[bytes]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Times (S,) and S arrays of points (points, 3)."""

    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        time_s, _ = _header(stack)
        stack.string()  # ns
        stack.numbers("i4", 3)  # id, type, action
        stack.numbers("f8", 10)  # pose, scale
        stack.numbers("f4", 4)  # colour
        stack.numbers("i4", 2)  # lifetime
        stack.numbers("u1")  # frame_locked
        count = stack.length()
        return time_s, stack.numbers("f8", 3 * count).reshape(-1, count, 3)

    _, results = decode(messages, walk)
    pairs = [(t, p) for times, points in results for t, p in zip(times, points, strict=True)]
    pairs.sort(key=lambda pair: pair[0])
    return np.array([t for t, _ in pairs]), [p for _, p in pairs]


def _cable(path: Path, name: str, logs: _Logs, poses: dict[str, PoseTrack]) -> CableTrack:
    tension = np.empty(0), np.empty((0, 2))
    shape: tuple[np.ndarray, list[np.ndarray]] = np.empty(0), []
    if (name, "tension") in logs:
        tension = _decoded(path, name, "tension", logs, _tensions)
    if (name, "shape") in logs:
        shape = _decoded(path, name, "shape", logs, _shapes)
    free = np.empty(0), np.empty(0)
    if (name, "free_length") in logs:
        lengths = _decoded(path, name, "free_length", logs, _numbers)
        free = np.array(_on_clock(logs[name, "free_length"], logs, poses)), lengths
    return CableTrack(*tension, *shape, *free)


def _stages(path: Path, logs: _Logs, poses: dict[str, PoseTrack]) -> tuple[Stage, ...]:
    start_s = float(min(track.time_s[0] for track in poses.values()))
    end_s = float(max(track.time_s[-1] for track in poses.values()))
    if ("mission", "stage") not in logs:
        return stages_from_changes([], [], start_s, end_s)
    return stages_from_changes(*_texts(path, ("mission", "stage"), logs, poses), start_s, end_s)


def _events(path: Path, logs: _Logs, poses: dict[str, PoseTrack]) -> tuple[Event, ...]:
    if _EVENTS not in logs:
        return ()
    parts = [
        (time_s, text.partition(":"))
        for time_s, text in zip(*_texts(path, _EVENTS, logs, poses), strict=True)
    ]
    return tuple(Event(time_s, kind.strip(), what.strip()) for time_s, (kind, _, what) in parts)


def _texts(
    path: Path, key: Topic, logs: _Logs, poses: dict[str, PoseTrack]
) -> tuple[list[float], list[str]]:
    """Times, on the clock of the stamps, and texts of messages without a stamp."""

    def walk(stack: CdrStack) -> tuple[np.ndarray, ...]:
        return (stack.string(),)

    def texts(messages: list[bytes]) -> list[str]:
        return [text.decode(errors="replace") for text in decode_columns(messages, walk)[0]]

    return _on_clock(logs[key], logs, poses), _decoded(path, *key, logs, texts)


def _on_clock(log: Log, logs: _Logs, poses: dict[str, PoseTrack]) -> list[float]:
    """Times of messages without a stamp, on the clock of the stamps [s]."""
    logged_s = _seconds(np.array(logs[LOAD, "pose"].time_ns))
    lag_s = poses[LOAD].time_s - logged_s
    announced_s = _seconds(np.array(log.time_ns))
    found: list[float] = (announced_s + np.interp(announced_s, logged_s, lag_s)).tolist()
    return found
