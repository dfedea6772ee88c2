"""Flights in text files: CSV excerpts, and the log files of the seed paper's flights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musls_analysis.recordings.cleaning import Notes, ReadOptions, cleaned, repeats
from musls_analysis.recordings.recording import (
    LOAD,
    PoseTrack,
    Recording,
    Stage,
    stages_from_changes,
)
from musls_control.formation import Cone, drone_poses
from musls_description.errors import ConfigError
from musls_description.rotations import from_roll_pitch_yaw

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
