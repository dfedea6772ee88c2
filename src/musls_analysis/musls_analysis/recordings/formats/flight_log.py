"""Log files of the seed paper's flights (repository `musls_cable_modeling`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musls_analysis.recordings.capture import Capture, RawTrack, note, numbers_of, whole_lines
from musls_analysis.recordings.options import ReadOptions
from musls_analysis.recordings.recording import LOAD, RecordedStage, stages_from_changes
from musls_description.config.errors import ConfigError

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


def is_flight_log(first_lines: Sequence[str]) -> bool:
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


def read_flight_log(path: Path, options: ReadOptions) -> Capture:
    """Read a log file.

    35 + 20 n columns for n drones (95 for three), separated by spaces: 0 time [s]; 1-6 set-point
    of the load (x y z [m], roll pitch yaw [rad]); 7-12 its measured pose; then per drone i (from 0)
    from column 35 + 20 i: 6 set-point, 6 measured. The rest (differences, distances, an estimate)
    is not read. Lines `MISSION_STAGE n NAME` and `PHASE_NAME` stand between the rows. The clock
    restarts at such a line (stage 1). Its clock is kept as the recording's; what was logged before
    lies at negative times.
    """
    notes: list[str] = []
    lines = [line.strip() for line in whole_lines(path, notes) if line.strip()]
    data, markers = _split(lines, notes)
    if not data:
        raise ConfigError("no rows in the log")
    ((columns, _),) = Counter(len(line.split()) for line in data[:99]).most_common(1)
    n = _drones(columns)
    if n is None:
        raise ConfigError(f"rows of {columns} columns, must be 35 + 20 per drone")
    bases = {LOAD: 1, **{f"drone_{i + 1}": 35 + 20 * i for i in range(n)}}
    places = [0, *(base + k for base in bases.values() for k in range(12))]
    rows, index = numbers_of([line.split() for line in data], columns, places, notes)
    finite = np.isfinite(rows[:, 0])
    note(notes, len(rows) - int(finite.sum()), "row{s} without a finite time dropped")
    rows = rows[finite]
    index = index[finite]
    time_s, starts_s = _one_clock(rows[:, 0], index, markers)
    setpoints = {b: _track(time_s, rows, 1 + 12 * i) for i, b in enumerate(bases)}
    tracks = {b: _track(time_s, rows, 7 + 12 * i) for i, b in enumerate(bases)}
    return Capture(
        tracks,
        setpoints,
        stages=_stages(time_s, starts_s, markers),
        format="flight log",
        notes=notes,
        by_row=True,
    )


def _track(time_s: np.ndarray, rows: np.ndarray, first: int) -> RawTrack:
    return RawTrack(time_s, rows[:, first : first + 3], rows[:, first + 3 : first + 6])


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
    note(notes, len(lines) - len(data) - len(markers), "line{s} of other text left out")
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
    clock_s = np.concatenate([part + shift for part, shift in zip(parts, shifts_s, strict=True)])
    return clock_s, [float(clock_s[min(row, len(clock_s) - 1)]) for row in starts]


def _stages(
    time_s: np.ndarray, starts_s: list[float], markers: list[_Marker]
) -> tuple[RecordedStage, ...]:
    if not markers or len(time_s) == 0:
        return ()
    names = [marker.name for marker in markers]
    first_s, last_s = float(time_s.min()), float(time_s.max())
    if starts_s[0] > first_s:
        starts_s = [first_s, *starts_s]
        names = ["before", *names]
    return stages_from_changes(starts_s, names, first_s, last_s)
