"""Recordings of any kind, of others too: finds out what it is and reads it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from musls_analysis.recordings.bag import (
    STORAGE_SUFFIXES,
    Log,
    RawBag,
    Topic,
    keys_of_topics,
    read_messages,
    recording_of_bag,
    storage_in,
)
from musls_analysis.recordings.cdr import decode
from musls_analysis.recordings.recording import (
    LOAD,
    PoseTrack,
    Recording,
    Stage,
    stages_from_changes,
)
from musls_control.formation import Cone, drone_poses
from musls_description.errors import ConfigError
from musls_description.registry import Registry
from musls_description.rotations import from_roll_pitch_yaw, product, rotate
from musls_description.strict_yaml import shown


@dataclass(frozen=True)
class ReadOptions:
    """How to read a recording.

    Attributes:
        frames: TF frame of a body, e.g. {"load": "payload_mocap"}; others are guessed.
        formation: Where the drones' set-points lie if only the load's were recorded; the default
            is the virtual cone of the paper's flights (radius 1.0 m, height 2.2962 m).
        drop_stale: Leave out samples that repeat the one before: the logger wrote an old value
            again, so its time is wrong. Applies to measurements, never to set-points.
    """

    frames: Mapping[str, str] = field(default_factory=dict)
    formation: Cone = field(default_factory=Cone)
    drop_stale: bool = True


FARTHEST_M = 1e8
"""Of a recorded position; a larger number is none, squares and sums of it would overflow. Frames
with the origin in the centre of the Earth stay."""


class Notes:
    """Collects what a reader dropped, as one line per kind."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def count(self, number: int, what: str) -> None:
        """Note a number of things, with {s} for the plural; nothing if there is none."""
        if number:
            self.lines.append(f"{number} {what.format(s='' if number == 1 else 's')}")


def cleaned(
    track: PoseTrack, name: str, source: str, notes: Notes, drop_stale: bool = False
) -> PoseTrack:
    """Poses at strictly increasing times, without samples that are no poses.

    Times may come in any order, and quaternions need not be units. With `drop_stale` samples that
    repeat the one before in every value are dropped too. The notes take the counts.

    Raises:
        ConfigError: Nothing is left.
    """
    n = len(track.time_s)
    values = np.column_stack([track.time_s, track.position_enu_m, track.orientation_wxyz])
    norm = np.linalg.norm(values[:, 4:], axis=1)
    good = np.isfinite(values).all(axis=1) & (norm > 1e-6)
    good &= (np.abs(np.nan_to_num(values[:, 1:4])) <= FARTHEST_M).all(axis=1)
    notes.count(n - int(good.sum()), f"sample{{s}} of {name} without a finite pose dropped")
    values = values[good]
    values[:, 4:] /= norm[good, None]
    backward = int(np.count_nonzero(np.diff(values[:, 0]) < 0.0))
    if backward:
        notes.count(backward, f"step{{s}} back in time in {name}: sorted")
        values = values[np.argsort(values[:, 0], kind="stable")]
    again = np.concatenate([np.diff(values[:, 0]) == 0.0, [False]])[: len(values)]  # last counts
    notes.count(int(again.sum()), f"sample{{s}} of {name} at the time of another dropped")
    values = values[~again]
    if drop_stale:
        stale = repeats(values[:, 1:])
        notes.count(int(stale.sum()), f"stale sample{{s}} of {name} (repeats the last) dropped")
        values = values[~stale]
    if len(values) == 0:
        raise ConfigError(f"{source}: no usable pose of {name}")
    return PoseTrack(values[:, 0], values[:, 1:4], values[:, 4:])


def repeats(values: np.ndarray) -> np.ndarray:
    """Which rows (T, k) equal the row before them in every value (T,); the first is False.

    Measurements carry noise in their last digits, so that an equal row is an old one.
    """
    same = np.zeros(len(values), bool)
    same[1:] = np.all(values[1:] == values[:-1], axis=1)
    return same


# ---------- Frames of the bodies

_ENDING = r"(?:[_/](?:base_link|base|link|body|marker|pose|gt|mocap|measured))*"
_DESIRED = r"[_/](?:des|desired|sp|setpoint|ref|reference|target)"
_LOAD = re.compile(rf"(?:slung_?)?(?:load|payload)_?1?{_ENDING}(?P<desired>{_DESIRED})?")
_DRONE = re.compile(
    r"(?:drone|px4|uav|quad|quadrotor|quadcopter|copter|vehicle|mav|x500|cf|agent)[_/]?"
    rf"(?P<number>[0-9]{{1,9}}){_ENDING}(?P<desired>{_DESIRED})?"
)


def bodies_of_frames(
    parents: Mapping[str, str], given: Mapping[str, str], source: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Frame by body, measured and set-points; the load first, then the drones in order.

    Frames are chosen by their names, `given` ones (frame by body) before any guess. `parents` holds
    the parent of each frame that moves.

    Raises:
        ConfigError: A given frame does not exist, several frames look like one body, or the load
            or all drones are missing.
    """
    for body, frame in given.items():
        if not (body == LOAD or re.fullmatch(r"drone_[1-9][0-9]{0,8}", body)):
            raise ConfigError(
                f"frames: '{body}' is no body; bodies are load, drone_1, drone_2, ..."
            )
        if frame not in parents:
            raise ConfigError(
                f"{source}: no TF frame '{frame}' (for {body}); it has {_few(parents)}"
            )
    measured, wanted = _guesses(set(parents) - set(given.values()))
    measured = {body: frames for body, frames in measured.items() if body not in given}
    chosen = {body: _one(body, frames, parents, source) for body, frames in measured.items()}
    chosen |= given
    if LOAD not in chosen or len(chosen) < 2:
        body = "drone_1" if LOAD in chosen else LOAD
        raise ConfigError(
            f"{source}: no TF frame looks like {body}; name it with --frames {body}=FRAME: "
            f"it has {_few(parents)}"
        )
    setpoints = {body: _one(body, frames, parents, source) for body, frames in wanted.items()}
    return _ordered(chosen), _ordered({b: f for b, f in setpoints.items() if b in chosen})


def _guesses(frames: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Frames that look like each body, measured and set-points; drones counted from 1."""
    found: list[tuple[int | None, bool, str]] = []  # None: the load
    for frame in sorted(frames):
        name = frame.strip("/").lower()
        if match := _LOAD.fullmatch(name):
            found.append((None, bool(match["desired"]), frame))
        elif match := _DRONE.fullmatch(name):
            found.append((int(match["number"]), bool(match["desired"]), frame))
    first = min((key for key, _, _ in found if key is not None), default=1)
    shift = 1 if first == 0 else 0
    measured: dict[str, list[str]] = {}
    wanted: dict[str, list[str]] = {}
    for key, desired, frame in found:
        body = LOAD if key is None else f"drone_{key + shift}"
        (wanted if desired else measured).setdefault(body, []).append(frame)
    return measured, wanted


def _one(body: str, frames: list[str], parents: Mapping[str, str], source: str) -> str:
    """The frame of a body; of a chain such as drone_1 -> drone_1/base_link its root."""
    roots = [frame for frame in frames if parents[frame] not in frames]
    if len(roots) != 1:
        raise ConfigError(
            f"{source}: TF frames {_few(frames)} all look like {body}; name one with "
            f"--frames {body}=FRAME"
        )
    return roots[0]


def _ordered(frames: dict[str, str]) -> dict[str, str]:
    def key(body: str) -> int:
        return 0 if body == LOAD else int(body.rsplit("_", 1)[1])

    return {body: frames[body] for body in sorted(frames, key=key)}


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


def read_tf_bag(path: Path, moving: Log, static: Log | None, options: ReadOptions) -> Recording:
    """Make a recording of the messages of /tf and /tf_static; the path is for messages.

    Raises:
        ConfigError: Frames are missing or ambiguous, or nothing usable is in them.
    """
    tf = _decoded(path, moving)
    fixed = _decoded(path, static) if static else None
    frames, inverse = np.unique(tf.child, return_inverse=True)
    parents = {}
    for k, frame in enumerate(frames):
        its = np.unique(tf.parent[inverse == k])
        parents[frame.decode()] = its[0].decode()
    measured, wanted = bodies_of_frames(parents, options.frames, str(path))
    rows = {frame.decode(): inverse == k for k, frame in enumerate(frames)}
    notes = Notes()
    bodies, roots = {}, {}
    for body, frame in measured.items():
        track, roots[body] = _track(path, tf, fixed, rows[frame], frame)
        bodies[body] = cleaned(track, body, str(path), notes, options.drop_stale)
    _same_root(path, roots)
    setpoints = {}
    for body, frame in wanted.items():
        track, root = _track(path, tf, fixed, rows[frame], frame)
        _same_root(path, {**roots, f"{body}'s set-point": root})
        setpoints[body] = cleaned(track, f"{body}'s set-points", str(path), notes).changes()
    first_s = float(min(track.time_s[0] for track in bodies.values()))
    last_s = float(max(track.time_s[-1] for track in bodies.values()))
    return Recording(
        bodies, setpoints, stages=stages_from_changes([], [], first_s, last_s), source=str(path),
        warnings=tuple(notes.lines),
    )  # fmt: skip


def _decoded(path: Path, log: Log) -> _Transforms:
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
        raise ConfigError(f"{path}: TF messages cannot be decoded: {error}") from error
    if not parts:
        raise ConfigError(f"{path}: no transforms in the TF messages")
    columns = _Transforms(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.argsort(columns.time_s, kind="stable")
    return _Transforms(*(column[order] for column in columns))


def _track(
    path: Path, tf: _Transforms, fixed: _Transforms | None, rows: np.ndarray, frame: str
) -> tuple[PoseTrack, str]:
    """Poses of a frame in its root, and the root."""
    parents = np.unique(tf.parent[rows])
    if len(parents) > 1:
        names = ", ".join(p.decode() for p in parents)
        raise ConfigError(f"{path}: TF frame {frame} has several parents: {names}")
    position, q = tf.position_m[rows], tf.orientation_wxyz[rows]
    parent = parents[0]
    seen = {frame.encode()}
    while fixed is not None and np.any(fixed.child == parent) and parent not in seen:
        seen.add(parent)
        k = int(np.flatnonzero(fixed.child == parent)[-1])
        turn, shift = fixed.orientation_wxyz[k], fixed.position_m[k]
        position = shift + rotate(np.broadcast_to(turn, q.shape), position)
        q = product(np.broadcast_to(turn, q.shape), q)
        parent = fixed.parent[k]
    return PoseTrack(tf.time_s[rows], position, q), parent.decode()


def _same_root(path: Path, roots: dict[str, str]) -> None:
    if len({root.strip("/") for root in roots.values()}) > 1:
        which = ", ".join(f"{body} in {root}" for body, root in roots.items())
        raise ConfigError(f"{path}: poses in different frames: {which}; name others with --frames")


LONGEST_RECORDING_S = 864_000.0
"""Longer ones have times that are none, or are not in seconds."""


def text_lines(path: Path, notes: Notes) -> list[str]:
    """Lines of a file without blank ones, stripped.

    A last line that is not ended may be cut inside a number, so it is dropped and counted.

    Raises:
        ConfigError: It cannot be read or is no text.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    lines = [line.strip() for line in text.splitlines()]
    if lines and not text.endswith(("\n", "\r")):
        notes.count(1, "unended last line dropped")
        lines.pop()
    return [line for line in lines if line]


def number_rows(
    lines: list[str], separator: str, columns: int, wanted: list[int], notes: Notes
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (rows, wanted) of rows of text, and the index of each row's line (rows,).

    Rows of another length than `columns` or with other text are dropped and counted in the notes.
    """
    whole = np.array(
        [
            line.count(separator) == columns - 1 or _fields(line, separator) == columns
            for line in lines
        ],
        bool,
    )
    index = np.flatnonzero(whole)
    notes.count(len(lines) - len(index), f"row{{s}} without {columns} columns dropped")
    kept = [lines[i] for i in index]
    delimiter = None if separator == " " else separator
    try:
        rows = np.loadtxt(kept, delimiter=delimiter, usecols=wanted, ndmin=2, comments=None)
    except ValueError:  # some text among the numbers: find it row by row
        rows = np.array([_row(line, delimiter, wanted) for line in kept])
        text = ~np.isfinite(rows[:, 0]) if len(rows) else np.empty(0, bool)
        notes.count(int(text.sum()), "row{s} without numbers dropped")
        rows, index = rows[~text], index[~text]
    return rows.reshape(-1, len(wanted)), index


def _fields(line: str, separator: str) -> int:
    return len(line.split() if separator == " " else line.split(separator))


def _row(line: str, delimiter: str | None, wanted: list[int]) -> list[float]:
    fields = line.split(delimiter)
    try:
        return [float(fields[i]) for i in wanted]
    except ValueError:
        return [np.nan] * len(wanted)


def stale_free(
    time_s: np.ndarray, measured: Mapping[str, np.ndarray], options: ReadOptions, notes: Notes
) -> np.ndarray:
    """Which rows hold new measurements: not all bodies as in the row before.

    The measured values are by body (T, 6); the notes take the count and the first times.
    """
    stale = repeats(np.hstack(list(measured.values())))
    if not options.drop_stale or not stale.any():
        return np.ones(len(time_s), bool)
    times = ", ".join(f"{t:g}" for t in time_s[stale][:3])
    more = ", ..." if stale.sum() > 3 else ""
    notes.count(
        int(stale.sum()),
        f"stale row{{s}} (repeats the last in all bodies) at {times}{more} s dropped",
    )
    return ~stale


def table_recording(
    path: Path,
    time_s: np.ndarray,
    measured: Mapping[str, np.ndarray],
    setpoints: Mapping[str, np.ndarray],
    stages: tuple[Stage, ...],
    options: ReadOptions,
    notes: Notes,
) -> Recording:
    """Make a recording from columns.

    By body (T, 6), measured and set-points alike: x, y, z [m], extrinsic roll, pitch, yaw [rad].
    Without stages the whole is one stage "flight". The path is for messages.

    Raises:
        ConfigError: Nothing usable in it.
    """
    if len(time_s) < 2:
        raise ConfigError(f"{path}: fewer than two usable rows")
    finite = time_s[np.isfinite(time_s)]
    if len(finite) and finite.min() == finite.max():
        raise ConfigError(f"{path}: all rows are of one time, {finite[0]:g} s")
    if len(finite) and finite.max() - finite.min() > LONGEST_RECORDING_S:
        raise ConfigError(
            f"{path}: times from {finite.min():g} to {finite.max():g} s: a recording lasts at most "
            f"{LONGEST_RECORDING_S:g} s (ten days); is the time in seconds?"
        )
    fresh = stale_free(time_s, measured, options, notes)
    bodies = {
        name: cleaned(_poses(time_s[fresh], rows[fresh]), name, str(path), notes)
        for name, rows in measured.items()
    }
    held = {
        name: cleaned(_poses(time_s, rows), f"{name}'s set-points", str(path), notes).changes()
        for name, rows in setpoints.items()
    }
    if not stages:
        first = min(track.time_s[0] for track in bodies.values())
        last = max(track.time_s[-1] for track in bodies.values())
        stages = (Stage("flight", float(first), float(last)),)
    return Recording(
        bodies,
        held,
        stages=stages,
        source=str(path),
        warnings=tuple(notes.lines),
        sampled_setpoints=True,
    )


def _poses(time_s: np.ndarray, rows: np.ndarray) -> PoseTrack:
    return PoseTrack(time_s, rows[:, :3], from_roll_pitch_yaw(rows[:, 3:]))


# ---------- CSV excerpts

POSE = ("x", "y", "z", "roll", "pitch", "yaw")
SETPOINT = ("load_des_x", "load_des_y", "load_des_z", "load_des_yaw")


def is_excerpt(first_line: str) -> bool:
    """Whether a file's first line is the header of such a table."""
    return "," in first_line and "load_x" in [name.strip() for name in first_line.split(",")]


def read_excerpt(path: Path, options: ReadOptions) -> Recording:
    """Read a CSV excerpt.

    Columns: `t` [s]; `load_des_x,y,z` [m], `load_des_yaw` [rad]: set-point of the load;
    `load_x,y,z,roll,pitch,yaw`, `d1_x,...`, `d2_x,...`: measured poses, ENU, extrinsic x-y-z
    angles. The drones' set-points were not recorded: they follow from `options.formation`.

    Raises:
        ConfigError: Columns are missing, or nothing usable is in it.
    """
    notes = Notes()
    lines = text_lines(path, notes)
    if len(lines) < 2:
        raise ConfigError(f"{path}: no rows below the header")
    header = [name.strip() for name in lines[0].split(",")]
    numbers = sorted(int(m[1]) for name in header if (m := re.fullmatch(r"d([0-9]{1,4})_x", name)))
    columns = {LOAD: "load", **{f"drone_{i}": f"d{i}" for i in numbers or [1]}}
    needed = ["t", *(f"{prefix}_{part}" for prefix in columns.values() for part in POSE)]
    has_setpoint = any(name in header for name in SETPOINT)
    needed += SETPOINT if has_setpoint else ()
    missing = [name for name in needed if name not in header]
    if missing:
        raise ConfigError(f"{path}: column {missing[0]} is missing")
    if len(set(header)) < len(header):
        raise ConfigError(f"{path}: a column comes twice")
    wanted = [header.index(name) for name in needed]
    rows, _ = number_rows(lines[1:], ",", len(header), wanted, notes)
    measured = {body: rows[:, 1 + 6 * i : 7 + 6 * i] for i, body in enumerate(columns)}
    setpoints = _setpoints(rows[:, -4:], numbers, options.formation) if has_setpoint else {}
    return table_recording(path, rows[:, 0], measured, setpoints, (), options, notes)


def _setpoints(load: np.ndarray, drones: list[int], cone: Cone) -> dict[str, np.ndarray]:
    """Set-points of all bodies (T, 6) from x, y, z, yaw of the load's (T, 4)."""
    level = np.zeros((len(load), 2))
    setpoints = {LOAD: np.column_stack([load[:, :3], level, load[:, 3]])}
    n = len(drones)
    places, yaws = drone_poses(load[:, :3], load[:, 3], cone.offsets_m(n), cone.azimuths_rad(n))
    for i, number in enumerate(drones):
        setpoints[f"drone_{number}"] = np.column_stack([places[:, i], level, yaws[:, i]])
    return setpoints


# ---------- Log files of the seed paper's flights (repository `musls_cable_modeling`)

STAGES = {0: "unassigned", 1: "circle", 2: "shm", 3: "tension_engage", 4: "yaw_engage", 9: "hold"}
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


def is_flight_log(first_lines: list[str]) -> bool:
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


def read_flight_log(path: Path, options: ReadOptions) -> Recording:
    """Read a log file.

    35 + 20 n columns for n drones (95 for three), separated by spaces: 0 time [s]; 1-6 set-point
    of the load (x y z [m], roll pitch yaw [rad]); 7-12 its measured pose; then per drone i (from 0)
    from column 35 + 20 i: 6 set-point, 6 measured. The rest (differences, distances, an estimate)
    is not read. Lines `MISSION_STAGE n NAME` and `PHASE_NAME` stand between the rows. The clock
    restarts at such a line (stage 1). Its clock is kept as the recording's; what was logged before
    lies at negative times.

    Raises:
        ConfigError: No such log, a clock that goes back in the middle of a stage, or nothing
            usable in it.
    """
    notes = Notes()
    data, markers = _split(text_lines(path, notes), notes)
    if not data:
        raise ConfigError(f"{path}: no rows in the log")
    ((columns, _),) = Counter(len(line.split()) for line in data[:99]).most_common(1)
    n = _drones(columns)
    if n is None:
        raise ConfigError(f"{path}: rows of {columns} columns, must be 35 + 20 per drone")
    bases = {LOAD: 1, **{f"drone_{i + 1}": 35 + 20 * i for i in range(n)}}
    wanted = [0, *(base + k for base in bases.values() for k in range(12))]
    rows, index = number_rows(data, " ", columns, wanted, notes)
    finite = np.isfinite(rows[:, 0])
    notes.count(len(rows) - int(finite.sum()), "row{s} without a finite time dropped")
    rows, index = rows[finite], index[finite]
    time_s, starts_s = _one_clock(path, rows[:, 0], index, markers)
    setpoints = {b: rows[:, 1 + 12 * i : 7 + 12 * i] for i, b in enumerate(bases)}
    measured = {b: rows[:, 7 + 12 * i : 13 + 12 * i] for i, b in enumerate(bases)}
    stages = _stages(time_s, starts_s, markers)
    return table_recording(path, time_s, measured, setpoints, stages, options, notes)


def _split(lines: list[str], notes: Notes) -> tuple[list[str], list[_Marker]]:
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
                name = STAGES.get(
                    -1 if number is None else number, str(match[3] or "unknown").lower()
                )
            markers.append(_Marker(len(data), name, number))
    strange = len(lines) - len(data) - len(markers)
    notes.count(strange, "line{s} of other text left out")
    return data, markers


def _one_clock(
    path: Path, time_s: np.ndarray, index: np.ndarray, markers: list[_Marker]
) -> tuple[np.ndarray, list[float]]:
    """Times on the clock of stage 1 (T,), of rows with a number in the log, and of the markers."""
    if len(time_s) == 0:
        return time_s, []
    back = 1 + np.flatnonzero(np.diff(time_s) < -LARGEST_DISORDER_S)
    for k in back.tolist():
        if not any(index[k - 1] < marker.row <= index[k] for marker in markers):
            raise ConfigError(
                f"{path}: the clock goes back from {time_s[k - 1]:g} to {time_s[k]:g} s in a stage"
            )
    edges = [0, *back.tolist(), len(time_s)]
    parts = [time_s[a:b] for a, b in pairwise(edges)]
    first = next((m.row for m in markers if m.number == 1), None)
    base = 0
    if first is not None:
        at = min(int(np.searchsorted(index, first)), len(time_s) - 1)
        base = int(np.searchsorted(edges, at, side="right")) - 1
    shifts = [0.0] * len(parts)
    for k in range(base + 1, len(parts)):
        last = parts[k - 1].max() + shifts[k - 1]
        shifts[k] = last + SEGMENT_GAP_S - parts[k].min()
    for k in range(base - 1, -1, -1):
        next_first = parts[k + 1].min() + shifts[k + 1]
        shifts[k] = next_first - SEGMENT_GAP_S - parts[k].max()
    joined = np.concatenate([part + shift for part, shift in zip(parts, shifts, strict=True)])
    rows = [min(int(np.searchsorted(index, m.row)), len(joined) - 1) for m in markers]
    return joined, [float(joined[row]) for row in rows]


def _stages(time_s: np.ndarray, starts_s: list[float], markers: list[_Marker]) -> tuple[Stage, ...]:
    if not markers or len(time_s) == 0:
        return ()
    names = [marker.name for marker in markers]
    first_s, last_s = float(time_s.min()), float(time_s.max())
    if starts_s[0] > first_s:
        starts_s, names = [first_s, *starts_s], ["before", *names]
    return stages_from_changes(starts_s, names, first_s, last_s)


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
