"""Recordings of what our recorders recorded: from a bag (MCAP or SQLite), or still in memory.

Both become samples of the signals of `musls_sim.recording.signals`, and these a `Recording`; so do
bags from Gazebo. Messages with a header count at its stamp. Mission stages, events and free lengths
have none: the difference between stamp and log time of the load's poses places them on its clock.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from rosbags.interfaces import Nodetype

from musls_analysis.recordings.recording import (
    ANCHOR,
    LOAD,
    CableTrack,
    PoseTrack,
    RecordedEvent,
    Recording,
    SignalTrack,
    TwistTrack,
    in_order,
    resample,
    stages_from_changes,
)
from musls_control.mission.phase_end import PHASE
from musls_description.config.errors import ConfigError, check_regular
from musls_description.config.text_tables import naming
from musls_description.numerics.rotations import rotate
from musls_sim.recording.bag_file import MAGIC
from musls_sim.recording.messages import STRING, has_header, types
from musls_sim.recording.recorder import BagRecorder, MemoryRecorder
from musls_sim.recording.signals import EVENTS, SIGNALS, STAGE, Rate

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

STORAGE_SUFFIXES = (".mcap", ".db3", ".bag")
"""A storage file reads without the metadata.yaml beside it, e.g. when a recorder was killed; a .bag
is one of ROS 1."""

_SMALLEST_END = 37
"""Bytes of an MCAP file's footer and closing magic."""

Topic = tuple[str, str]
"""Owner and name of a signal, e.g. ("load", "pose"); ("mission", "stage"); ("", "events")."""
Choose = Callable[[Mapping[str, str]], Mapping[str, Topic]]
"""Gets the message types of the topics, returns what each topic to read is filed under; may raise
ConfigError."""


class Log(NamedTuple):
    """Log times [ns] and CDR bytes of messages."""

    time_ns: list[int]
    data: list[bytes]


class RawBag(NamedTuple):
    """Messages of a bag in the order of their log times; what is missing, one line each."""

    logs: Mapping[Topic, Log]
    warnings: tuple[str, ...] = ()


def storage_in(folder: Path) -> Path | None:
    """Bag in a folder: itself if it has a metadata.yaml, or else its only storage file."""
    if (folder / "metadata.yaml").is_file():
        return folder
    files = [f for suffix in STORAGE_SUFFIXES for f in sorted(folder.glob(f"*{suffix}"))]
    return files[0] if len(files) == 1 else None


def read_messages(path: Path, choose: Choose) -> RawBag:
    """Read the chosen messages in the order of their log times."""
    # os.path, because Path raises for names that are too long.
    source = storage_in(path) if os.path.isdir(path) else path
    if source is None:
        raise ConfigError("not a rosbag2 bag (no metadata.yaml in it)")
    if os.path.exists(source):
        check_regular(source)
    file = os.path.isfile(source) and source.suffix in STORAGE_SUFFIXES
    if not (file or os.path.isdir(source)):
        what = "unknown storage" if os.path.exists(source) else "no such folder"
        raise ConfigError(f"not a rosbag2 bag ({what})")
    try:
        cut_file = _cut_file(source)
        return _read_whole(source, choose) if cut_file is None else _read_cut(cut_file, choose)
    except ConfigError:
        raise
    except Exception as error:  # what rosbags, struct, zstd and sqlite3 raise has no common base
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"the bag is damaged: {reason}") from error


def _filed(
    messages: Iterable[tuple[int, str, bytes]], keys: Mapping[str, Topic]
) -> Mapping[Topic, Log]:
    """Messages (time, topic, bytes) of the topics that have a key, by it."""
    logs: dict[Topic, Log] = defaultdict(lambda: Log([], []))
    for time_ns, topic, data in messages:
        if topic in keys:
            log = logs[keys[topic]]
            log.time_ns.append(time_ns)
            log.data.append(data)
    return dict(logs)


def _read_whole(source: Path, choose: Choose) -> RawBag:
    if source.suffix == ".bag":
        from rosbags.rosbag1 import Reader
    else:
        from rosbags.rosbag2 import Reader  # type: ignore[assignment]

    with Reader(source) as reader:
        if reader.message_count == 0:
            raise ConfigError("the bag is empty")
        keys = choose({c.topic: c.msgtype for c in reader.connections})
        connections = [c for c in reader.connections if c.topic in keys]
        for connection in connections:
            _learn(types(), connection.msgtype, connection.msgdef.data)
        as_cdr = _from_ros1(connections) if source.suffix == ".bag" else _as_it_is
        messages = reader.messages(connections) if connections else ()
        return RawBag(
            _filed(((t, c.topic, as_cdr(c.msgtype, data)) for c, t, data in messages), keys)
        )


def _learn(store: Typestore, msgtype: str, definition: str) -> None:
    """Add types to a store that it does not know, from a definition that a bag carries."""
    from rosbags.typesys import get_types_from_msg

    if msgtype not in store.fielddefs:
        if not definition:
            raise ConfigError(f"the bag does not say what {msgtype} is made of")
        new_types = get_types_from_msg(definition, msgtype)
        store.register(
            {name: what for name, what in new_types.items() if name not in store.fielddefs}
        )


def _as_it_is(msgtype: str, data: bytes) -> bytes:
    return data


def _from_ros1(connections: Iterable[Any]) -> Callable[[str, bytes], bytes]:
    """Converter of messages of ROS 1 to those of ROS 2, whose headers do not count."""
    from rosbags.typesys import Stores, get_typestore

    former = get_typestore(Stores.ROS1_NOETIC)
    for connection in connections:
        _learn(former, connection.msgtype, connection.msgdef.data)

    def converted(msgtype: str, data: bytes) -> bytes:
        return bytes(types().serialize_cdr(former.deserialize_ros1(data, msgtype), msgtype))

    return converted


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


def _read_cut(file: Path, choose: Choose) -> RawBag:
    """Read an unfinished file up to its last whole record."""
    types, messages = _messages_to_the_cut(file)
    if not messages:
        raise ValueError("it ends before its first messages")
    span_s = (messages[-1][0] - messages[0][0]) * 1e-9
    warning = f"the bag was cut before its end (recorder killed?): {span_s:.1f} s of it were read"
    return RawBag(_filed(messages, choose(types)), (warning,))


def _messages_to_the_cut(file: Path) -> tuple[dict[str, str], list[tuple[int, str, bytes]]]:
    """Message type of each topic; and time, topic and bytes of the messages, by time."""
    from mcap.records import Channel, Message, Schema
    from mcap.stream_reader import StreamReader

    schemas: dict[int, str] = {}
    channels: dict[int, Channel] = {}
    messages = []
    # Of a record or chunk that ends too early any field may be wrong, with any error as result.
    with file.open("rb") as stream, suppress(Exception):
        for record in StreamReader(stream, validate_crcs=True).records:
            if isinstance(record, Schema):
                schemas[record.id] = record.name
            elif isinstance(record, Channel):
                channels[record.id] = record
            elif isinstance(record, Message):
                messages.append((record.log_time, channels[record.channel_id].topic, record.data))
    types = {c.topic: schemas.get(c.schema_id, "") for c in channels.values()}
    return types, sorted(messages, key=lambda message: message[0])


# ---------- CDR: many messages of one type at once, as columns of a byte matrix
#
# A bag holds tens of thousands of small messages whose layout differs only by the length of their
# strings and sequences. Messages of equal length are stacked to a matrix; the type's definition is
# then walked once, and each field of all messages read with one slice. Where a length inside the
# messages differs, the stack is split by that length and walked again, so the result is right for
# any input.

ENCAPSULATION = 4
"""Bytes before the data: representation identifier (the second byte is 1 for little endian)."""


class _UnevenError(Exception):
    """The messages of a stack differ in the length of a string or sequence."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.lengths = lengths  # (n,)


class CdrStack:
    """`size` messages of equal length, read field by field from front to back."""

    def __init__(self, rows: np.ndarray) -> None:
        """Start at the first field of raw messages with header (n, bytes), of one byte order."""
        self.size = len(rows)
        self._rows = rows
        self._order: Literal["<", ">"] = "<" if rows[0, 1] & 1 else ">"
        self._at = ENCAPSULATION

    def numbers(self, dtype: str, count: int = 1) -> np.ndarray:
        """Read numbers from every message, (n, count); the type is without byte order, "f8"."""
        if count == 0:
            return np.empty((self.size, 0), dtype)
        width = np.dtype(dtype).itemsize
        start = ENCAPSULATION + -(-(self._at - ENCAPSULATION) // width) * width  # aligned
        return np.ascontiguousarray(self._take(start, width * count)).view(
            np.dtype(dtype).newbyteorder(self._order)
        )

    def length(self) -> int:
        """Read the length of a string or sequence, the same in all messages of the stack."""
        lengths = self.numbers("u4")[:, 0]
        if np.any(lengths != lengths[0]):
            raise _UnevenError(lengths)
        return int(lengths[0])

    def string(self) -> np.ndarray:
        """Read a string from every message: UTF-8 bytes without the closing zero (n,)."""
        length = self.length()
        if length == 0:
            return np.full(self.size, b"")
        raw = np.ascontiguousarray(self._take(self._at, length))
        return raw.view(f"S{length}")[:, 0]  # "S" drops trailing zeros

    def _take(self, start: int, width: int) -> np.ndarray:
        end = start + width
        if end > self._rows.shape[1]:
            raise ValueError(f"a message of {self._rows.shape[1]} bytes ends too early")
        self._at = end
        return self._rows[:, start:end]


Fields = dict[str, Any]
"""Fields of a message type by name: arrays with one row per message, in a message within the
message again such a dictionary, and lists of what sequences of unlike parts hold. Messages of
numbers of one type are arrays (n, k): vectors x, y, z; quaternions w, x, y, z."""


def _read(stack: CdrStack, msgtype: str) -> Fields:
    return {name: _field(stack, *field) for name, field in types().fielddefs[msgtype][1]}


def _field(stack: CdrStack, kind: Nodetype, what: Any) -> Any:
    if kind == Nodetype.NAME:
        return _numbers(stack, what, 1)[:, 0] if _number(what) else _read(stack, what)
    if kind == Nodetype.BASE:
        return stack.string() if what[0] == "string" else stack.numbers(_dtype(what[0]))[:, 0]
    (part_kind, part), count = what
    count = count if kind == Nodetype.ARRAY else stack.length()
    if part_kind == Nodetype.NAME and _number(part):
        return _numbers(stack, part, count)
    if part_kind == Nodetype.BASE and part[0] != "string":
        return stack.numbers(_dtype(part[0]), count)
    return [_field(stack, part_kind, part) for _ in range(count)]


@cache
def _number(msgtype: str) -> tuple[str, int] | None:
    """Type and count of the numbers that a message consists of; None for another message."""
    fields: list[Any] = [field for _, field in types().fielddefs[msgtype][1]]
    kinds = {what[0] if kind == Nodetype.BASE else "string" for kind, what in fields}
    return None if len(kinds) != 1 or "string" in kinds else (_dtype(kinds.pop()), len(fields))


def _numbers(stack: CdrStack, msgtype: str, count: int) -> np.ndarray:
    """Numbers of consecutive messages of a type, (n, count, k)."""
    dtype, each = _number(msgtype) or ("", 0)
    numbers = stack.numbers(dtype, each * count).reshape(stack.size, count, each)
    return numbers[..., [3, 0, 1, 2]] if msgtype == "geometry_msgs/msg/Quaternion" else numbers


def _dtype(name: str) -> str:
    return {"byte": "uint8", "char": "uint8", "octet": "uint8"}.get(name, name)


def decode(messages: Sequence[bytes], msgtype: str) -> list[tuple[np.ndarray, Fields]]:
    """Decode serialised messages of one type, e.g. "geometry_msgs/msg/PoseStamped"."""
    lengths = np.fromiter(map(len, messages), np.int64, len(messages))
    pending = []
    for length in np.unique(lengths):
        indices = np.flatnonzero(lengths == length)
        if length < ENCAPSULATION:
            raise ValueError(f"a message of {length} bytes is not CDR")
        raw = b"".join([messages[i] for i in indices.tolist()])
        rows = np.frombuffer(raw, np.uint8).reshape(len(indices), length)
        little = (rows[:, 1] & 1) == 1
        pending += [(indices[m], rows[m]) for m in (little, ~little) if m.any()]
    stacks = []
    while pending:
        indices, rows = pending.pop()
        try:
            stacks.append((indices, _read(CdrStack(rows), msgtype)))
        except _UnevenError as uneven:
            for value in np.unique(uneven.lengths):
                mask = uneven.lengths == value
                pending.append((indices[mask], rows[mask]))
    return stacks


def decode_columns(
    messages: Sequence[bytes], msgtype: str, fields: Sequence[str]
) -> list[np.ndarray | list[np.ndarray]]:
    """Decode chosen fields, e.g. "pose.position", of serialised messages, in their order.

    Each is an array or, if its shape is not the same in all messages, a list.
    """
    stacks = decode(messages, msgtype)
    order = np.argsort(np.concatenate([indices for indices, _ in stacks]), kind="stable")
    columns: list[np.ndarray | list[np.ndarray]] = []
    for field in fields:
        parts: list[Any] = [reduce(getitem, field.split("."), stack) for _, stack in stacks]
        if len({part.shape[1:] for part in parts}) == 1:
            columns.append(np.concatenate(parts)[order])
        else:
            rows = [row for part in parts for row in part]
            columns.append([rows[k] for k in order.tolist()])
    return columns


# ---------- From a bag

Samples = Mapping[Topic, SignalTrack]
Texts = Sequence[tuple[float, str]]
"""Time [s] and words."""

_TEXTS: dict[str, Topic] = {STAGE: ("mission", "stage"), EVENTS: ("", "events")}
_TOPIC = re.compile(r"/(load|(?:drone|anchor|cable|sensor)_\d+)/(\w+)")
_OWN_TRACKS = {
    "pose",
    "twist",
    "setpoint",
    "tension",
    "shape",
    "free_length",
    "rotors",
    "battery",
    "wrench",
    "setpoint_accel",
    "reference",
    "tension_peak",
}
"""Signals that stand in a recording under names of their own."""


def read_bag(path: Path) -> Recording:
    """Read a bag with the topics of this project."""
    with naming(path):
        return replace(recording_of_bag(read_messages(path, keys_of_topics)), source=str(path))


def keys_of_topics(topics: Mapping[str, str]) -> dict[str, Topic]:
    """Owner and signal, e.g. ("load", "pose"), of each topic of this project, given their types."""
    keys = {}
    for topic, msgtype in topics.items():
        if topic in _TEXTS:
            key = _TEXTS[topic]
            message_type = STRING
        else:
            match = _TOPIC.fullmatch(topic)
            if match is None or match[2] not in SIGNALS:
                continue
            key = (match[1], match[2])
            message_type = SIGNALS[match[2]].type
        if msgtype != message_type:
            raise ConfigError(f"{topic} has type {msgtype}, must be {message_type}")
        keys[topic] = key
    return keys


def recording_of_bag(bag: RawBag) -> Recording:
    """Make a recording of the messages of a bag."""
    logs = bag.logs
    bodies = {n for n, _ in logs if n.startswith(("drone_", ANCHOR))} or {"drone_1"}
    for name in [LOAD, *sorted(bodies)]:
        if (name, "pose") not in logs:
            raise ConfigError(f"the bag has no messages on /{name}/pose")
    samples: dict[Topic, SignalTrack] = {}
    for key in sorted(logs, key=lambda key: key != (LOAD, "pose")):  # it is everybody's clock
        if key not in _TEXTS.values():
            samples[key] = _decoded(key, logs, samples)
    stages, events = (_texts(topic, logs, samples) for topic in (STAGE, EVENTS))
    return _recording(samples, stages, events, warnings=bag.warnings)


def _decoded(key: Topic, logs: Mapping[Topic, Log], samples: Samples) -> SignalTrack:
    signal = SIGNALS[key[1]]
    messages = logs[key].data
    columns = [column for column in signal.columns if column.field]
    stamped = has_header(signal.type)
    header = ["header.stamp.sec", "header.stamp.nanosec", "header.frame_id"] if stamped else []
    fields = [*(column.field for column in columns), *header]
    try:
        parts: list[Any] = decode_columns(messages, signal.type, fields)
        if signal.rate is not Rate.SHAPE and any(isinstance(part, list) for part in parts):
            raise ValueError("messages of different sizes")
        values = dict(zip((c.name for c in columns), parts, strict=False))
        if stamped:
            sec, nanosec, frame = parts[len(columns) :]
            time_s = _seconds(np.asarray(sec, np.int64) * 1_000_000_000 + nanosec)
        else:
            time_s = _on_clock(logs[key], logs, samples)
        if signal.ends:
            return _both_ends(time_s, frame, values, signal.ends)
    except ValueError as error:
        raise ConfigError(f"/{key[0]}/{key[1]} cannot be decoded: {error}") from error
    order = np.argsort(time_s, kind="stable")
    return SignalTrack(time_s[order], {name: _picked(v, order) for name, v in values.items()})


def _picked(values: Any, order: np.ndarray) -> Any:
    is_list = isinstance(values, list)
    return [values[k] for k in order.tolist()] if is_list else values[order].astype(float)


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


def _texts(topic: str, logs: Mapping[Topic, Log], samples: Samples) -> Texts:
    key = _TEXTS[topic]
    if key not in logs:
        return []
    try:
        (texts,) = decode_columns(logs[key].data, STRING, ["data"])
    except ValueError as error:
        raise ConfigError(f"{topic} cannot be decoded: {error}") from error
    times_s = _on_clock(logs[key], logs, samples).tolist()
    return [(t, text.decode(errors="replace")) for t, text in zip(times_s, texts, strict=True)]


def _on_clock(log: Log, logs: Mapping[Topic, Log], samples: Samples) -> np.ndarray:
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
    """Copy all that was recorded, so that the recorder may go on; the source is for people."""
    if isinstance(recorder, BagRecorder):
        source = source or str(recorder.folder)
    recorder.evaluate_references()
    samples: dict[Topic, SignalTrack] = {}
    for rate, row in recorder.layouts.items():
        columns = row.written(recorder.rows[rate].columns())
        masks = row.kept(columns, row.nothing())
        time_s = _seconds(recorder.rows[rate].stamps_ns())
        for k, (signal, owner, i, end) in enumerate(row.places):
            mask = np.ones(len(time_s), bool) if masks is None else masks[:, k]
            if end == 0 and mask.any():
                parts = {
                    column.name: row.of_owner(columns, signal, column, i)[mask].astype(float)
                    for column in signal.columns
                    if column.field
                }
                samples[owner, signal.name] = SignalTrack(time_s[mask], parts)
    stages, events = (
        [(stamp_ns / 1e9, text) for stamp_ns, text in recorder.texts[topic]]
        for topic in (STAGE, EVENTS)
    )
    return _recording(samples, stages, events, source or "memory")


# ---------- From samples


def _recording(
    samples: Samples, stages: Texts, events: Texts, source: str = "", warnings: Sequence[str] = ()
) -> Recording:
    names = in_order({name for name, _ in samples})

    def of(signal: str) -> dict[str, SignalTrack]:
        return {name: samples[name, signal] for name in names if (name, signal) in samples}

    poses = {name: PoseTrack(its.time_s, *its.parts) for name, its in of("pose").items()}
    bodies = {n: poses[n] for n in sorted(poses, key=lambda n: n.startswith(ANCHOR))}
    start_s = min((float(track.time_s[0]) for track in poses.values()), default=0.0)
    end_s = max((float(track.time_s[-1]) for track in poses.values()), default=0.0)
    pairs = [(time_s, text.partition(":")) for time_s, text in events]
    all_events = [RecordedEvent(t, kind.strip(), what.strip()) for t, (kind, _, what) in pairs]
    others: dict[str, dict[str, SignalTrack]] = {}
    for (name, signal), its in samples.items():
        if signal not in _OWN_TRACKS:
            others.setdefault(name, {})[signal] = its
    return Recording(
        bodies,
        setpoints={n: PoseTrack(its.time_s, *its.parts) for n, its in of("setpoint").items()},
        cables={n: _cable(n, samples) for n in names if n.startswith("cable_")},
        rotors=of("rotors"),
        stages=stages_from_changes(
            [time_s for time_s, _ in stages],
            [name for _, name in stages],
            start_s,
            end_s,
            [(event.time_s, event.what) for event in all_events if event.kind == PHASE],
        ),
        source=source,
        warnings=tuple(warnings),
        twists={n: _twist(its, poses[n]) for n, its in of("twist").items()},
        events=tuple(event for event in all_events if event.kind != PHASE),
        batteries={n: _battery(its) for n, its in of("battery").items()},
        wrenches=of("wrench"),
        setpoint_accelerations=of("setpoint_accel"),
        signals=others,
        references={n: PoseTrack(t.time_s, *t.parts) for n, t in of("reference").items()},
    )


def _battery(track: SignalTrack) -> SignalTrack:
    """ROS counts the current into a battery."""
    current_a = -track.current_a
    more = {"current_a": current_a, "power_w": track.voltage_v * current_a}
    return SignalTrack(track.time_s, {**track.columns, **more})


def _cable(name: str, samples: Samples) -> CableTrack:
    nothing = SignalTrack(np.empty(0), {})
    tension, shape, free, peak = (
        samples.get((name, signal), nothing)
        for signal in ("tension", "shape", "free_length", "tension_peak")
    )
    along = tension.force_n[:, :, 0] if tension.columns else np.empty((0, 2))
    (nodes,) = shape.parts or ([],)
    (length_m,) = free.parts or (np.empty(0),)
    peak_n = peak.force_n[:, 0] if peak.columns else np.empty(0)
    return CableTrack(
        tension.time_s, along, shape.time_s, list(nodes), free.time_s, length_m, peak.time_s, peak_n
    )


def _twist(twist: SignalTrack, pose: PoseTrack) -> TwistTrack:
    """See the angular velocity in the body's frame; where no pose is known, drop it."""
    time_s = twist.time_s
    velocity = twist.velocity_enu_m_s
    omega = twist.omega_enu_rad_s
    orientation = pose.orientation_wxyz
    if not np.array_equal(time_s, pose.time_s):
        inside = (time_s >= pose.time_s[0]) & (time_s <= pose.time_s[-1])
        time_s = time_s[inside]
        velocity = velocity[inside]
        omega = omega[inside]
        strictly = np.concatenate([np.diff(pose.time_s) > 0.0, [True]])
        orientation = resample(pose.part(strictly), time_s, np.inf).orientation_wxyz
    inverse = orientation * np.array([1.0, -1.0, -1.0, -1.0])
    return TwistTrack(time_s, velocity, rotate(inverse, omega))
