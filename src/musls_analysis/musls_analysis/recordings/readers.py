"""Recordings of any kind, of others too: finds out what it is and reads it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musls_analysis.recordings.bag import (
    STORAGE_SUFFIXES,
    Log,
    Topic,
    decode,
    decode_columns,
    keys_of_topics,
    naming,
    read_messages,
    recording_of_bag,
    storage_in,
)
from musls_analysis.recordings.recording import (
    LOAD,
    PoseTrack,
    Recording,
    Stage,
    in_order,
    stages_from_changes,
)
from musls_description.config.errors import ConfigError, check_regular
from musls_description.config.registry import Registry, user_code
from musls_description.config.schema import build
from musls_description.config.strict_yaml import parse_yaml, read_text, shown
from musls_description.hanging.cone import Cone
from musls_description.numerics.rotations import from_roll_pitch_yaw, product, rotate
from musls_description.system.obstacles import AnyObstacle, WorldSpec


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading a recording.

    Attributes:
        frames: TF frame or topic of poses of a body, e.g. {"load": "payload_mocap"} or {"load":
            "/vrpn/box/pose"}; others are guessed.
        formation: Where the drones' set-points lie if only the load's were recorded; the default
            is the virtual cone of the paper's flights (radius 1.0 m, height 2.2962 m).
        drop_stale: Leave out samples that repeat the one before: the logger wrote an old value
            again, so its time is wrong. Applies to measurements, never to set-points.
        delays_s: By how much the stamps of a body's measured poses are too late.
    """

    frames: Mapping[str, str] = field(default_factory=dict)
    formation: Cone = field(default_factory=Cone)
    drop_stale: bool = True
    delays_s: Mapping[str, float] = field(default_factory=dict)


FARTHEST_M = 1e8
"""Largest recorded position; a larger number is none, squares and sums of it would overflow. Frames
with the origin in the centre of the Earth stay."""


SAME_TIME_S = 1e-9
"""Samples that are nearer in time are of one time: stamps count nanoseconds."""


def _note(notes: list[str], number: int, what: str) -> None:
    """Note a number of things that were dropped, with {s} for the plural; nothing if none was."""
    if number:
        notes.append(f"{number} {what.format(s='' if number == 1 else 's')}")


def _cleaned(track: PoseTrack, name: str, notes: list[str], drop_stale: bool = False) -> PoseTrack:
    """Poses at strictly increasing times, without samples that are no poses.

    Times may come in any order, and quaternions need not be units. With `drop_stale` samples that
    repeat the one before in every value are dropped too. The notes take the counts.
    """
    n = len(track.time_s)
    values = np.column_stack([track.time_s, track.position_enu_m, track.orientation_wxyz])
    norm = np.linalg.norm(values[:, 4:], axis=1)
    good = np.isfinite(values).all(axis=1) & (norm > 1e-6)
    good &= (np.abs(np.nan_to_num(values[:, 1:4])) <= FARTHEST_M).all(axis=1)
    _note(notes, n - int(good.sum()), f"sample{{s}} of {name} without a finite pose dropped")
    values = values[good]
    values[:, 4:] /= norm[good, None]
    backward = int(np.count_nonzero(np.diff(values[:, 0]) < 0.0))
    _note(notes, backward, f"step{{s}} back in time in {name}: sorted")
    values = values[np.argsort(values[:, 0], kind="stable")]
    again = np.concatenate([np.diff(values[:, 0]) < SAME_TIME_S, [False]])[
        : len(values)
    ]  # last counts
    _note(notes, int(again.sum()), f"sample{{s}} of {name} at the time of another dropped")
    values = values[~again]
    if drop_stale:
        stale = _repeats(values[:, 1:])
        _note(notes, int(stale.sum()), f"stale sample{{s}} of {name} (repeats the last) dropped")
        values = values[~stale]
    if len(values) == 0:
        raise ConfigError(f"no usable pose of {name}")
    return PoseTrack(values[:, 0], values[:, 1:4], values[:, 4:])


def _repeats(values: np.ndarray) -> np.ndarray:
    """Rows (T, k) that repeat the one before (T,); new measurements differ in their last digits."""
    same = np.zeros(len(values), bool)
    same[1:] = np.all(values[1:] == values[:-1], axis=1)
    return same


# ---------- Frames of the bodies

_ENDING = (
    r"(?:[_/](?:base_link|base|link|body|marker|pose|odom|odometry|transform|gt|mocap|measured))*"
)
_DESIRED = r"[_/](?:des|desired|sp|setpoint|ref|reference|target)"
_LOAD = re.compile(rf"(?:slung_?)?(?:load|payload)_?1?{_ENDING}(?P<desired>{_DESIRED})?")
_DRONE = re.compile(
    r"(?:drone|px4|uav|quad|quadrotor|quadcopter|copter|vehicle|mav|x500|cf|agent)[_/]?"
    rf"(?P<number>[0-9]{{1,9}}){_ENDING}(?P<desired>{_DESIRED})?"
)


def _bodies_of_frames(
    parents: Mapping[str, str], given: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Frame by body, measured and set-points, in order: `given` ones, others by their names.

    `parents` holds the parent of each frame that moves.
    """
    what, option = _called(parents)
    for body, frame in given.items():
        if not (body == LOAD or re.fullmatch(r"drone_[1-9][0-9]{0,8}", body)):
            raise ConfigError(f"'{body}' is no body; bodies are load, drone_1, drone_2, ...")
        if frame not in parents:
            raise ConfigError(f"no {what} '{frame}' (for {body}); it has {_few(parents)}")
    measured, wanted = _guesses(set(parents) - set(given.values()))
    measured = {body: frames for body, frames in measured.items() if body not in given}
    chosen = {body: _one(body, frames, parents) for body, frames in measured.items()}
    chosen |= given
    if LOAD not in chosen or len(chosen) < 2:
        body = "drone_1" if LOAD in chosen else LOAD
        raise ConfigError(
            f"no {what} looks like {body}; name it with {option} {body}=NAME: "
            f"it has {_few(parents)}"
        )
    setpoints = {body: _one(body, frames, parents) for body, frames in wanted.items()}
    bodies = in_order(chosen)
    return {b: chosen[b] for b in bodies}, {b: setpoints[b] for b in bodies if b in setpoints}


def _called(frames: Iterable[str]) -> tuple[str, str]:
    """Word of a message for such names, and the option that chooses one."""
    topics = all(frame.startswith("/") for frame in frames)
    return ("topic of poses", "--topic") if topics else ("TF frame", "--frames")


def _guesses(frames: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Frames that look like each body, measured and set-points; drones counted from 1."""
    found: list[tuple[int | None, bool, str]] = []  # None: the load
    for frame in sorted(frames):
        for name in _without_namespaces(frame):
            if match := _LOAD.fullmatch(name):
                found.append((None, bool(match["desired"]), frame))
                break
            if match := _DRONE.fullmatch(name):
                found.append((int(match["number"]), bool(match["desired"]), frame))
                break
    shift = 1 if any(key == 0 for key, _, _ in found) else 0
    measured: dict[str, list[str]] = {}
    wanted: dict[str, list[str]] = {}
    for key, desired, frame in found:
        body = LOAD if key is None else f"drone_{key + shift}"
        (wanted if desired else measured).setdefault(body, []).append(frame)
    return measured, wanted


def _without_namespaces(frame: str) -> list[str]:
    """Names to try: a frame's, and of a topic such as /vrpn/payload/pose also payload/pose."""
    parts = frame.strip("/").lower().split("/")
    return ["/".join(parts[k:]) for k in range(len(parts) if frame.startswith("/") else 1)]


def _one(body: str, frames: list[str], parents: Mapping[str, str]) -> str:
    """The frame of a body; of a chain such as drone_1 -> drone_1/base_link its root."""
    roots = [frame for frame in frames if parents[frame] not in frames]
    if len(roots) != 1:
        what, option = _called(frames)
        raise ConfigError(
            f"{what}s {_few(frames)} all look like {body}; name one with {option} {body}=NAME"
        )
    return roots[0]


def _few(names: Iterable[str]) -> str:
    names = sorted(names)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


# ---------- Their poses


class _Transforms(NamedTuple):
    """Transforms of all frames.

    Attributes:
        time_s: Stamps (T,).
        parent: Frames as bytes (T,).
        child: Frames as bytes (T,).
        position_m: In the parent (T, 3).
        orientation_wxyz: To the parent (T, 4).
    """

    time_s: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    position_m: np.ndarray
    orientation_wxyz: np.ndarray


def _read_transforms(tf: _Transforms, fixed: _Transforms | None, options: ReadOptions) -> Recording:
    """Make a recording of transforms that move, and of those that do not."""
    pairs = set(zip(tf.child.tolist(), tf.parent.tolist(), strict=True))
    parents = {child.decode(): parent.decode() for child, parent in sorted(pairs, reverse=True)}
    measured, wanted = _bodies_of_frames(parents, options.frames)
    notes: list[str] = []
    roots: dict[str, str] = {}

    def track(frame: str, name: str, drop_stale: bool = False) -> PoseTrack:
        found, roots[name] = _track(tf, fixed, frame)
        if len({root.strip("/") for root in roots.values()}) > 1:
            which = ", ".join(f"{body} in {root}" for body, root in roots.items())
            _, option = _called(parents)
            raise ConfigError(f"poses in different frames: {which}; name others with {option}")
        return _cleaned(found, name, notes, drop_stale)

    bodies = {body: track(frame, body, options.drop_stale) for body, frame in measured.items()}
    setpoints = {b: track(frame, f"{b}'s set-points").changes() for b, frame in wanted.items()}
    return Recording(bodies, setpoints, stages=(_whole(bodies),), warnings=tuple(notes))


def _whole(bodies: Mapping[str, PoseTrack]) -> Stage:
    """The one stage of a recording that names none."""
    first = min(track.time_s[0] for track in bodies.values())
    last = max(track.time_s[-1] for track in bodies.values())
    return Stage("flight", float(first), float(last))


def _decoded(log: Log) -> _Transforms:
    parts: list[tuple[np.ndarray, ...]] = []
    try:
        for _, fields in decode(log.data, "tf2_msgs/msg/TFMessage"):
            for one in fields["transforms"]:
                header, pose = one["header"], one["transform"]
                stamp_ns = header["stamp"]["sec"].astype(np.int64) * 1_000_000_000
                time_s = (stamp_ns + header["stamp"]["nanosec"]) / 1e9
                frames = header["frame_id"], one["child_frame_id"]
                parts.append((time_s, *frames, pose["translation"], pose["rotation"]))
    except ValueError as error:
        raise ConfigError(f"TF messages cannot be decoded: {error}") from error
    if not parts:
        raise ConfigError("no transforms in the TF messages")
    return _in_time_order(parts)


def _in_time_order(parts: Iterable[tuple[np.ndarray, ...]]) -> _Transforms:
    columns = _Transforms(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.argsort(columns.time_s, kind="stable")
    return _Transforms(*(column[order] for column in columns))


_POSE_FIELDS = {
    "geometry_msgs/msg/PoseStamped": ("pose.position", "pose.orientation"),
    "geometry_msgs/msg/PoseWithCovarianceStamped": ("pose.pose.position", "pose.pose.orientation"),
    "geometry_msgs/msg/TransformStamped": ("transform.translation", "transform.rotation"),
    "nav_msgs/msg/Odometry": ("pose.pose.position", "pose.pose.orientation"),
}
"""Fields of position and orientation in a message of one body."""


def _decoded_topics(logs: Mapping[Topic, Log]) -> _Transforms:
    """Poses of topics as transforms of the frames /TOPIC; logs by type and topic."""
    parts = []
    for (msgtype, topic), log in logs.items():
        stamp = ("header.stamp.sec", "header.stamp.nanosec", "header.frame_id")
        try:
            columns = decode_columns(log.data, msgtype, [*stamp, *_POSE_FIELDS[msgtype]])
        except ValueError as error:
            raise ConfigError(f"{topic} cannot be decoded: {error}") from error
        sec, nanosec, parent, position, q = map(np.asarray, columns)
        time_s = (sec.astype(np.int64) * 1_000_000_000 + nanosec) / 1e9
        parts.append((time_s, parent, np.full(len(sec), topic.encode()), position, q))
    return _in_time_order(parts)


def _track(tf: _Transforms, fixed: _Transforms | None, frame: str) -> tuple[PoseTrack, str]:
    """Poses of a frame in its root, and the root."""
    rows = tf.child == frame.encode()
    parents = np.unique(tf.parent[rows])
    if len(parents) > 1:
        names = ", ".join(p.decode() for p in parents)
        raise ConfigError(f"{_called([frame])[0]} {frame} has several parents: {names}")
    position, q = tf.position_m[rows], tf.orientation_wxyz[rows]
    parent = parents[0]
    seen = {frame.encode()}
    while fixed is not None and np.any(fixed.child == parent) and parent not in seen:
        seen.add(parent)
        k = int(np.flatnonzero(fixed.child == parent)[-1])
        turn = np.broadcast_to(fixed.orientation_wxyz[k], q.shape)
        position, q = fixed.position_m[k] + rotate(turn, position), product(turn, q)
        parent = fixed.parent[k]
    return PoseTrack(tf.time_s[rows], position, q), parent.decode()


STEEPEST_RAD = 1.6
"""Largest recorded pitch, which ends at a quarter turn."""
LONGEST_RECORDING_S = 864_000.0
"""Longer ones have times that are none, or are not in seconds."""


def _text_lines(path: Path, notes: list[str]) -> list[str]:
    """Lines without blank ones; a last one that is not ended may be cut in a number: dropped."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError("not a text file") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from None
    lines = [line.strip() for line in text.splitlines()]
    if lines and not text.endswith(("\n", "\r")):
        _note(notes, 1, "unended last line dropped")
        lines.pop()
    return [line for line in lines if line]


def _number_rows(
    lines: list[str], delimiter: str | None, columns: int, wanted: list[int], notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (rows, wanted) of rows of text, and the index of each row's line (rows,).

    Rows of another length than `columns` or with other text are dropped and counted.
    """
    pick = itemgetter(*wanted)
    rows, index, other_length = [], [], 0
    for k, line in enumerate(lines):
        fields = line.split(delimiter)
        if len(fields) != columns:
            other_length += 1
            continue
        with suppress(ValueError):
            rows.append([*map(float, pick(fields))])
            index.append(k)
    _note(notes, other_length, f"row{{s}} without {columns} columns dropped")
    _note(notes, len(lines) - other_length - len(rows), "row{s} without numbers dropped")
    return np.array(rows).reshape(-1, len(wanted)), np.array(index, int)


def _stale_free(
    time_s: np.ndarray, measured: Mapping[str, np.ndarray], options: ReadOptions, notes: list[str]
) -> np.ndarray:
    """Which rows are not in all bodies (T, 6) as the row before; the notes count the others."""
    stale = _repeats(np.hstack(list(measured.values())))
    if not options.drop_stale or not stale.any():
        return np.ones(len(time_s), bool)
    times = ", ".join(f"{t:g}" for t in time_s[stale][:3])
    more = ", ..." if stale.sum() > 3 else ""
    what = f"stale row{{s}} (repeats the last in all bodies) at {times}{more} s dropped"
    _note(notes, int(stale.sum()), what)
    return ~stale


def _table_recording(
    time_s: np.ndarray,
    measured: Mapping[str, np.ndarray],
    setpoints: Mapping[str, np.ndarray],
    stages: tuple[Stage, ...],
    options: ReadOptions,
    notes: list[str],
) -> Recording:
    """Recording of columns by body (T, 6): x, y, z [m], extrinsic roll, pitch, yaw [rad].

    Without stages the whole is one stage "flight".
    """
    if len(time_s) < 2:
        raise ConfigError("fewer than two usable rows")
    finite = time_s[np.isfinite(time_s)]
    if len(finite) and finite.min() == finite.max():
        raise ConfigError(f"all rows are of one time, {finite[0]:g} s")
    if len(finite) and finite.max() - finite.min() > LONGEST_RECORDING_S:
        raise ConfigError(
            f"times from {finite.min():g} to {finite.max():g} s: a recording lasts at most "
            f"{LONGEST_RECORDING_S:g} s (ten days); is the time in seconds?"
        )
    for name, rows in measured.items():
        _check_angles(name, rows[np.isfinite(rows).all(axis=1)], notes)
    fresh = _stale_free(time_s, measured, options, notes)
    bodies = {
        name: _cleaned(_poses(time_s[fresh], rows[fresh]), name, notes)
        for name, rows in measured.items()
    }
    held = {
        name: _cleaned(_poses(time_s, rows), f"{name}'s set-points", notes).changes()
        for name, rows in setpoints.items()
    }
    stages = stages or (_whole(bodies),)
    return Recording(bodies, held, stages=stages, warnings=tuple(notes), sampled_setpoints=True)


def _check_angles(name: str, rows: np.ndarray, notes: list[str]) -> None:
    """Refuse or note angles that look like degrees; rows without NaN (k, 6)."""
    if not len(rows):
        return
    steepest = float(np.quantile(np.abs(rows[:, 4]), 0.99))
    if steepest > STEEPEST_RAD:
        raise ConfigError(
            f"pitch of {name} up to {steepest:.3g}: angles are in radians; of a CSV file in "
            "degrees the columns are called roll_deg, pitch_deg, yaw_deg"
        )
    if np.ptp(rows[:, 5]) > 2.1 * np.pi:
        low, high = rows[:, 5].min(), rows[:, 5].max()
        notes.append(f"yaw of {name} from {low:.3g} to {high:.3g}: taken for radians")


def _poses(time_s: np.ndarray, rows: np.ndarray) -> PoseTrack:
    return PoseTrack(time_s, rows[:, :3], from_roll_pitch_yaw(rows[:, 3:]))


# ---------- CSV excerpts

POSE = ("x", "y", "z", "roll", "pitch", "yaw")
_DRONE_SETPOINT = ("des_x", "des_y", "des_z", "des_yaw")
SETPOINT = tuple(f"load_{part}" for part in _DRONE_SETPOINT)


def _is_excerpt(first_lines: list[str]) -> bool:
    """Whether a file's first line is the header of such a table."""
    return "load_x" in [name.strip() for name in first_lines[0].split(",")[1:]]


def _read_excerpt(path: Path, options: ReadOptions) -> Recording:
    """Read a CSV excerpt.

    Columns: `t` [s]; `load_des_x,y,z` [m], `load_des_yaw` [rad]: set-point of the load;
    `load_x,y,z,roll,pitch,yaw`, `d1_x,...`, `d2_x,...`: measured poses, ENU, extrinsic x-y-z
    angles; in degrees where a column's name ends in `_deg`. Set-points of the drones may be there,
    `d1_des_x,y,z,yaw` and so on of all; else they follow from `options.formation`.
    """
    notes: list[str] = []
    lines = _text_lines(path, notes)
    if len(lines) < 2:
        raise ConfigError("no rows below the header")
    header = [name.strip() for name in lines[0].split(",")]
    numbers = sorted(int(m[1]) for name in header if (m := re.fullmatch(r"d([0-9]{1,4})_x", name)))
    columns = {LOAD: "load", **{f"drone_{i}": f"d{i}" for i in numbers or [1]}}
    needed = ["t", *(f"{prefix}_{part}" for prefix in columns.values() for part in POSE)]
    has_setpoint = any(name in header for name in SETPOINT)
    needed += SETPOINT if has_setpoint else ()
    of_drones = [f"d{i}_{part}" for i in numbers for part in _DRONE_SETPOINT]
    if has_setpoint and set(of_drones) & set(header):
        needed += of_drones
    names = [name.removesuffix("_deg") for name in header]
    missing = [name for name in needed if name not in names]
    if missing:
        raise ConfigError(f"column {missing[0]} is missing")
    if len(set(names)) < len(names):
        raise ConfigError("a column comes twice")
    wanted = [names.index(name) for name in needed]
    rows, _ = _number_rows(lines[1:], ",", len(header), wanted, notes)
    in_degrees = [header[i].endswith("_deg") for i in wanted]
    rows[:, in_degrees] = np.radians(rows[:, in_degrees])
    values = dict(zip(needed, rows.T, strict=True))
    measured = {
        body: np.column_stack([values[f"{prefix}_{part}"] for part in POSE])
        for body, prefix in columns.items()
    }
    setpoints = _setpoints(values, numbers, options.formation) if has_setpoint else {}
    return _table_recording(rows[:, 0], measured, setpoints, (), options, notes)


def _setpoints(
    values: Mapping[str, np.ndarray], drones: list[int], cone: Cone
) -> dict[str, np.ndarray]:
    """Set-points of all bodies (T, 6) from columns (T,); of drones without columns the cone's."""
    load = np.column_stack([values[name] for name in SETPOINT])
    found = {LOAD: load}
    places, yaws = cone.poses(load[:, :3], load[:, 3], len(drones))
    for i, number in enumerate(drones):
        names = [f"d{number}_{part}" for part in _DRONE_SETPOINT]
        own = [values[name] for name in names if name in values]
        found[f"drone_{number}"] = np.column_stack(own or [places[:, i], yaws[:, i]])
    return {body: np.insert(at, [3, 3], 0.0, axis=1) for body, at in found.items()}


# ---------- Log files of the seed paper's flights (repository `musls_cable_modeling`)

STAGES: dict[int | None, str] = {
    0: "unassigned",
    1: "circle",
    2: "shm",
    3: "tension_engage",
    4: "yaw_engage",
    9: "hold",
}
"""Our names of the mission's stages."""

LARGEST_DISORDER_S = 1.0
"""Rows may be out of order by less; a greater step back is another clock."""
SEGMENT_GAP_S = 10.0
"""Put between what was logged on two clocks, whose true distance is unknown."""
_MARKER = re.compile(r"(MISSION_STAGE|PHASE_\w+)\b\s*(-?[0-9]{1,9}(?![0-9]))?\s*(\w+)?.*")


class _Marker(NamedTuple):
    """A line between the rows: the number of rows before it, the stage's name, its number."""

    row: int
    name: str
    number: int | None


def _is_flight_log(first_lines: list[str]) -> bool:
    """Whether a file's first lines are such a log's."""
    return any(
        _MARKER.fullmatch(line.strip()) or (_is_row(line) and _drones(len(line.split())))
        for line in first_lines
    )


def _is_row(line: str) -> bool:
    try:
        return all(np.isfinite(float(field)) for field in line.split()[:3])
    except ValueError:
        return False


def _drones(columns: int) -> int | None:
    n, rest = divmod(columns - 35, 20)
    return n if n >= 1 and rest == 0 else None


def _read_flight_log(path: Path, options: ReadOptions) -> Recording:
    """Read a log file.

    35 + 20 n columns for n drones (95 for three), separated by spaces: 0 time [s]; 1-6 set-point
    of the load (x y z [m], roll pitch yaw [rad]); 7-12 its measured pose; then per drone i (from 0)
    from column 35 + 20 i: 6 set-point, 6 measured. The rest (differences, distances, an estimate)
    is not read. Lines `MISSION_STAGE n NAME` and `PHASE_NAME` stand between the rows. The clock
    restarts at such a line (stage 1). Its clock is kept as the recording's; what was logged before
    lies at negative times.
    """
    notes: list[str] = []
    data, markers = _split(_text_lines(path, notes), notes)
    if not data:
        raise ConfigError("no rows in the log")
    ((columns, _),) = Counter(len(line.split()) for line in data[:99]).most_common(1)
    n = _drones(columns)
    if n is None:
        raise ConfigError(f"rows of {columns} columns, must be 35 + 20 per drone")
    bases = {LOAD: 1, **{f"drone_{i + 1}": 35 + 20 * i for i in range(n)}}
    wanted = [0, *(base + k for base in bases.values() for k in range(12))]
    rows, index = _number_rows(data, None, columns, wanted, notes)
    finite = np.isfinite(rows[:, 0])
    _note(notes, len(rows) - int(finite.sum()), "row{s} without a finite time dropped")
    rows, index = rows[finite], index[finite]
    time_s, starts_s = _one_clock(rows[:, 0], index, markers)
    setpoints = {b: rows[:, 1 + 12 * i : 7 + 12 * i] for i, b in enumerate(bases)}
    measured = {b: rows[:, 7 + 12 * i : 13 + 12 * i] for i, b in enumerate(bases)}
    stages = _stages(time_s, starts_s, markers)
    return _table_recording(time_s, measured, setpoints, stages, options, notes)


def _split(lines: list[str], notes: list[str]) -> tuple[list[str], list[_Marker]]:
    """Rows of numbers, and the lines between them; other text is counted."""
    data: list[str] = []
    markers: list[_Marker] = []
    for line in lines:
        if not line[0].isalpha() or line[:3].lower() in ("nan", "inf"):
            data.append(line)
        elif match := _MARKER.fullmatch(line):
            number = int(match[2]) if match[2] else None
            name = match[1].removeprefix("PHASE_").lower()
            if match[1] == "MISSION_STAGE":
                name = STAGES.get(number, (match[3] or "unknown").lower())
            markers.append(_Marker(len(data), name, number))
    _note(notes, len(lines) - len(data) - len(markers), "line{s} of other text left out")
    return data, markers


def _one_clock(
    time_s: np.ndarray, index: np.ndarray, markers: list[_Marker]
) -> tuple[np.ndarray, list[float]]:
    """Times on the clock of stage 1 (T,), of rows with a number in the log, and of the markers."""
    if len(time_s) == 0:
        return time_s, []
    back = 1 + np.flatnonzero(np.diff(time_s) < -LARGEST_DISORDER_S)
    for k in back.tolist():
        if not any(index[k - 1] < marker.row <= index[k] for marker in markers):
            raise ConfigError(
                f"the clock goes back from {time_s[k - 1]:g} to {time_s[k]:g} s in a stage"
            )
    first = next((m.row for m in markers if m.number == 1), 0)
    *starts, base_row = np.searchsorted(index, [*(m.row for m in markers), first])
    parts = np.split(time_s, back)
    steps_s = [a.max() + SEGMENT_GAP_S - b.min() for a, b in pairwise(parts)]
    shifts_s = np.cumsum([0.0, *steps_s])
    shifts_s -= shifts_s[np.searchsorted(back, base_row, side="right")]
    joined = np.concatenate([part + shift for part, shift in zip(parts, shifts_s, strict=True)])
    return joined, [float(joined[min(row, len(joined) - 1)]) for row in starts]


def _stages(time_s: np.ndarray, starts_s: list[float], markers: list[_Marker]) -> tuple[Stage, ...]:
    if not markers or len(time_s) == 0:
        return ()
    names = [marker.name for marker in markers]
    first_s, last_s = float(time_s.min()), float(time_s.max())
    if starts_s[0] > first_s:
        starts_s, names = [first_s, *starts_s], ["before", *names]
    return stages_from_changes(starts_s, names, first_s, last_s)


# ---------- Bags: ours and Gazebo's (poses on topics of their own), or TF only

_MOVING, _STATIC = ("tf", "moving"), ("tf", "static")
_TF_TYPES = ("tf2_msgs/msg/TFMessage", "tf2_msgs/TFMessage")


def _read_bag(path: Path, options: ReadOptions) -> Recording:
    """Read a bag: ours, else TF or topics of poses; names in the options choose these."""

    def choose(topics: Mapping[str, str]) -> Mapping[str, Topic]:
        poses = {t: (msgtype, t) for t, msgtype in topics.items() if msgtype in _POSE_FIELDS}
        if poses and any(name.startswith("/") for name in options.frames.values()):
            return poses
        ours = keys_of_topics(topics)
        if any(kind == "pose" for _, kind in ours.values()) and not options.frames:
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
            raise ConfigError(f"neither /load/pose nor /tf in the bag; it has {names}")
        return keys

    bag = read_messages(path, choose)
    if bag.logs and all(kind in _POSE_FIELDS for kind, _ in bag.logs):
        recording = _read_transforms(_decoded_topics(bag.logs), None, options)
    elif not {_MOVING, _STATIC} & set(bag.logs):
        return _cleaned_recording(recording_of_bag(bag))
    elif _MOVING in bag.logs:
        fixed = _decoded(bag.logs[_STATIC]) if _STATIC in bag.logs else None
        recording = _read_transforms(_decoded(bag.logs[_MOVING]), fixed, options)
    else:
        raise ConfigError("no messages on /tf in the bag")
    return replace(recording, warnings=(*bag.warnings, *recording.warnings))


def _cleaned_recording(recording: Recording) -> Recording:
    """Simulated bodies at rest repeat their poses, so nothing is taken for stale."""
    notes = list(recording.warnings)
    bodies = {b: _cleaned(track, b, notes) for b, track in recording.bodies.items()}
    setpoints = {
        b: _cleaned(track, f"{b}'s set-points", notes) for b, track in recording.setpoints.items()
    }
    return replace(recording, bodies=bodies, setpoints=setpoints, warnings=tuple(notes))


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
        "csv": Reader("CSV with a column load_x", _is_excerpt, _read_excerpt),
        "flight_log": Reader("35 + 20 n columns", _is_flight_log, _read_flight_log),
    },
)
"""Readers of text files by name; bags are recognised by their folder or suffix."""


@user_code()
def read_recording(path: Path | str, options: ReadOptions | None = None) -> Recording:
    """Read a flight, see `musls.read_recording`."""
    path, options = Path(path), options or ReadOptions()
    # os.path, because Path raises for names that are too long.
    if not os.path.exists(path):
        raise ConfigError(f"{shown(str(path), 200)}: no such file or folder")
    with naming(path):
        read = _read(path, options)
        bodies = dict(read.bodies)
        for body, delay_s in options.delays_s.items():
            if body not in bodies:
                raise ConfigError(f"'{body}' is not in it; it has {', '.join(bodies)}")
            bodies[body] = replace(bodies[body], time_s=bodies[body].time_s - delay_s)
    obstacles = _obstacles_beside(path)
    return replace(read, bodies=bodies, source=str(path), obstacles=obstacles)


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
    if not (isinstance(world, Mapping) and world.get("obstacles")):
        return ()
    return build(WorldSpec, world, str(scenario)).obstacles


def _read(path: Path, options: ReadOptions) -> Recording:
    if os.path.isdir(path):
        return _read_bag(_bag_in(path), options)
    if path.suffix in STORAGE_SUFFIXES:
        return _read_bag(path, options)
    first_lines = _first_lines(path)
    for reader in READERS.values():
        if reader.recognises(first_lines):
            return reader.read(path, options)
    known = "; ".join(f"{name} ({reader.what})" for name, reader in READERS.items())
    raise ConfigError(f"not a recording: neither a bag nor one of {known}")


def _bag_in(folder: Path) -> Path:
    """The bag that a folder is or holds."""
    for candidate in (folder, folder / "bag"):
        if found := storage_in(candidate):
            return found
    several = any(f.suffix in STORAGE_SUFFIXES for f in folder.iterdir())
    what = "several storage files in it" if several else "no metadata.yaml and no bag/ in it"
    raise ConfigError(f"not a recording ({what})")


def _first_lines(path: Path) -> list[str]:
    try:
        check_regular(path)
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from None
    if not head.strip():
        raise ConfigError("the file is empty")
    if b"\0" in head:
        raise ConfigError("not a recording (binary, but no .mcap or .db3)")
    lines = head.decode("utf-8", errors="replace").splitlines()
    return [line for line in lines if line.strip()][:20]
