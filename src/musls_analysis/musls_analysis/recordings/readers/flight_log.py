"""Reads the log files of the seed paper's flights (repository `musls_cable_modeling`).

35 + 20 n columns for n drones (95 for three), separated by spaces: 0 time [s]; 1-6 set-point of
the load (x y z [m], roll pitch yaw [rad]); 7-12 its measured pose; then per drone i (from 0) from
column 35 + 20 i: 6 set-point, 6 measured. The rest (differences, distances, an estimate) is not
read.

Lines `MISSION_STAGE n NAME` and `PHASE_NAME` stand between the rows. The clock restarts at such a
line (stage 1). Its clock is kept as the recording's; what was logged before lies at negative times.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musls_analysis.recordings.readers.clean import Notes
from musls_analysis.recordings.readers.options import ReadOptions
from musls_analysis.recordings.readers.table import number_rows, table_recording, text_lines
from musls_analysis.recordings.recording import LOAD, Recording, Stage, stages_from_changes
from musls_description.errors import ConfigError

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

    Args:
        path: The file.
        options: Whether stale rows stay.

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
    """Join what was logged on several clocks.

    Args:
        path: File, for messages.
        time_s: Logged times (T,).
        index: Number of each row among all rows of the log (T,).
        markers: Lines between the rows.

    Returns:
        Times on the clock of stage 1 (T,), and the time of each marker.
    """
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
