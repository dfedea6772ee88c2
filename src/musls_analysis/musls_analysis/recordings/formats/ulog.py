"""Logs of PX4 (ULog, or tables of it), one drone a file: estimated position and attitude."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.recordings.capture import (
    Capture,
    RawTrack,
    cleaned,
    name_in,
    numbers_of,
    whole_rows,
)
from musls_analysis.recordings.options import ReadOptions
from musls_analysis.recordings.recording import PoseTrack, resample
from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.config.errors import ConfigError, check_regular, install_command

SUFFIX = ".ulg"
_POSITION = "vehicle_local_position"
_ATTITUDE = "vehicle_attitude"


def is_ulog(first_lines: Sequence[str]) -> bool:
    """Never from the text: a binary file is known by its suffix."""
    return False


def read_ulog(path: Path, options: ReadOptions) -> Capture:
    """Read `vehicle_local_position` and `vehicle_attitude`, NED and FRD, as ENU and FLU.

    Positions are relative to the place where the PX4 was started, see `ReadOptions.origins_m`.
    """
    notes: list[str] = []
    log = open_ulog(path, [_POSITION, _ATTITUDE], notes)
    position = _columns(log, _POSITION, "xyz")
    attitude = _columns(log, _ATTITUDE, [f"q[{k}]" for k in range(4)])
    return _capture_of(name_in(path.stem), position, attitude, "ULog", notes)


def _capture_of(
    name: str,
    position: dict[str, np.ndarray],
    attitude: dict[str, np.ndarray],
    format: str,
    notes: list[str],
) -> Capture:
    """Poses of a drone: its local position, with the attitude between its samples."""
    time_s = _time_s(position)
    place = world_enu_ned(np.column_stack([position[axis] for axis in "xyz"]))
    turn = orientation_enu_ned(np.column_stack([attitude[f"q[{k}]"] for k in range(4)]))
    turns = PoseTrack(_time_s(attitude), np.zeros((len(turn), 3)), turn)
    turns = cleaned(turns, f"{name}'s attitude", notes)
    finite = np.isfinite(time_s)
    rotation = np.full((len(time_s), 4), np.nan)
    rotation[finite] = resample(turns, time_s[finite], np.inf).orientation_wxyz
    notes.append(
        f"positions of {name} are relative to the place where its PX4 was started (see --origin)"
    )
    return Capture(
        {name: RawTrack(time_s, place, rotation)},
        stated=frozenset({"length", "time", "axes"}),
        format=format,
        notes=notes,
        alone=True,
    )


# ---------- Tables that ulog2csv writes, one a topic


def is_ulog_csv(first_lines: Sequence[str]) -> bool:
    """Whether the first line is the header of `vehicle_local_position`."""
    names = first_lines[0].split(",")
    return names[0] == "timestamp" and {"x", "y", "z", "vx", "xy_valid"} <= set(names)


def is_topic_beside(path: Path) -> bool:
    """Whether a table is another topic of a log of which the local position is beside it."""
    if path.suffix != ".csv":
        return False
    words = path.stem.split("_")
    return any(
        path != beside and beside.is_file()
        for k in range(len(words))
        for beside in [path.with_name("_".join([*words[:k], _POSITION, "0.csv"]))]
    )


def read_ulog_csv(path: Path, options: ReadOptions) -> Capture:
    """Read the position, and the attitude in the table beside it, as of the log itself."""
    notes: list[str] = []
    position = _table(path, "xyz", notes)
    name = name_in(path.stem.partition(f"_{_POSITION}")[0])
    beside = path.with_name(path.name.replace(_POSITION, _ATTITUDE))
    if beside == path or not beside.is_file():
        raise ConfigError(
            f"the attitude lies in a table that is not beside it, {beside.name}; or read the .ulg "
            "itself, or its places alone by --columns"
        )
    attitude = _table(beside, [f"q[{k}]" for k in range(4)], notes)
    return _capture_of(name, position, attitude, "ulog2csv", notes)


def _table(path: Path, columns: Iterable[str], notes: list[str]) -> dict[str, np.ndarray]:
    rows = [row.cells for row in whole_rows(path, notes)]
    names = rows[0]
    selection = [*(n for n in ("timestamp", "timestamp_sample") if n in names), *columns]
    if absent_columns := [name for name in ["timestamp", *selection] if name not in names]:
        raise ConfigError(f"{path.name} has no column {absent_columns[0]}")
    places = [names.index(name) for name in selection]
    table, _ = numbers_of(rows[1:], len(names), places, notes)
    return dict(zip(selection, table.T, strict=True))


# ---------- Logs


def open_ulog(path: Path, topics: Sequence[str], notes: list[str]) -> Any:
    """Open a log by pyulog, with these topics; without its damaged bytes, which the notes tell.

    Raises:
        ConfigError: pyulog is not installed, or it is no log; without its name.
    """
    try:
        from pyulog import ULog
    except ImportError:
        raise ConfigError(
            f"logs of PX4 are read by pyulog, which is not installed: {install_command('pyulog')}"
        ) from None
    try:
        check_regular(path)
        data = whole_messages(path.read_bytes(), notes)
        with redirect_stdout(io.StringIO()):  # it prints what it thinks of the file
            log = ULog(io.BytesIO(data), list(topics))
    except Exception as error:  # what pyulog and struct raise has no common base
        raise ConfigError(f"no whole ULog: {error or type(error).__name__}") from None
    if log.file_corruption:
        notes.append("the log is damaged: parts of it may be lost or wrong")
    return log


_HEADER_BYTES = 16
_KINDS = frozenset(b"BFIMPQARDLCSO")
"""Length of a log's head, and the kinds of its messages."""

_RUN = 8
"""Number of valid messages in a row that cannot be chance."""


def whole_messages(data: bytes, notes: list[str]) -> bytes:
    """A log without bytes that are no messages; behind them reading begins anew.

    A message is its length, two bytes, its kind, one, and so many bytes; messages of one topic are
    equally long. One that is cut at the end of the file is left alone.
    """
    sizes: dict[int, int] = {}
    parts = []
    start = 0
    at = _HEADER_BYTES
    lost_bytes = 0
    first_lost = 0.0
    while at < len(data):
        after = _after_message(data, at, sizes)
        if after is not None:
            at = after
            continue
        again = next((k for k in range(at + 1, len(data)) if _is_run(data, k, sizes)), None)
        if again is None:
            break
        parts.append(data[start:at])
        first_lost = first_lost or at / len(data)
        lost_bytes += again - at
        start = at = again
    if lost_bytes:
        notes.append(
            f"{lost_bytes} bytes of the log are damaged, the first {100.0 * first_lost:.0f} % from "
            "its begin: left out"
        )
    return b"".join([*parts, data[start:]])


def _after_message(data: bytes, at: int, sizes: dict[int, int]) -> int | None:
    """End of the message at a byte offset; None if there is no message."""
    size = int.from_bytes(data[at : at + 2], "little")
    end = at + 3 + size
    if not size or end > len(data) or data[at + 2] not in _KINDS:
        return None
    if data[at + 2] == ord("D"):
        topic = int.from_bytes(data[at + 3 : at + 5], "little")
        if sizes.setdefault(topic, size) != size:
            return None
    return end


def _is_run(data: bytes, at: int, sizes: dict[int, int]) -> bool:
    """Whether messages follow each other from a place on, known ones among them, or to the end."""
    trial = dict(sizes)
    has_data = False
    for _ in range(_RUN):
        has_data = has_data or data[at + 2 : at + 3] == b"D"
        after = _after_message(data, at, trial)
        if after is None:
            return False
        at = after
        if at == len(data):
            break
    return has_data and trial.keys() == sizes.keys()


def _columns(log: Any, name: str, keys: Iterable[str]) -> dict[str, np.ndarray]:
    try:
        columns = dict(log.get_dataset(name).data)
    except (KeyError, IndexError):
        raise ConfigError(f"no {name} in the log") from None
    if absent_columns := [key for key in ("timestamp", *keys) if key not in columns]:
        raise ConfigError(f"{name} in the log has no {absent_columns[0]}")
    return columns


def _time_s(columns: dict[str, np.ndarray]) -> np.ndarray:
    stamp = columns.get("timestamp_sample", columns["timestamp"])
    return np.asarray(stamp, float) * 1e-6
