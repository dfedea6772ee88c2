"""What the text formats share: tables of numbers, from columns to bodies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from musls_analysis.recordings.readers.clean import Notes, cleaned, repeats
from musls_analysis.recordings.readers.options import ReadOptions
from musls_analysis.recordings.recording import PoseTrack, Recording, Stage
from musls_description.errors import ConfigError
from musls_description.rotations import from_roll_pitch_yaw

LONGEST_RECORDING_S = 864_000.0
"""Longer ones have times that are none, or are not in seconds."""


def text_lines(path: Path, notes: Notes) -> list[str]:
    """Lines of a file without blank ones, stripped.

    A last line that is not ended may be cut inside a number, so it is dropped and counted.

    Args:
        path: The file.
        notes: Takes the count.

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
    """Parse rows of numbers; rows of another length or with other text are dropped and counted.

    Args:
        lines: Rows, stripped.
        separator: " " or ",".
        columns: Numbers in a whole row.
        wanted: Columns to return.
        notes: Takes the counts.

    Returns:
        Numbers (rows, wanted), and the index of each row's line (rows,).
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

    Args:
        time_s: Times (T,).
        measured: Measured values by body (T, 6).
        options: Whether to look.
        notes: Takes the count and the first times.
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

    Args:
        path: File, for messages.
        time_s: Times of the rows (T,).
        measured: x, y, z [m], extrinsic roll, pitch, yaw [rad] by body (T, 6).
        setpoints: The same of the set-points.
        stages: Stages, or none: the whole is one stage "flight".
        options: How to read.
        notes: What was dropped so far.

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
