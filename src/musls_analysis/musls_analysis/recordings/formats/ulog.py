"""Logs of PX4 (ULog), one drone a file: estimated local position and attitude."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.recordings.capture import Capture, RawTrack, name_in
from musls_analysis.recordings.options import ReadOptions
from musls_analysis.recordings.recording import PoseTrack, resample
from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.config.errors import ConfigError, install_command

SUFFIX = ".ulg"
_POSITION, _ATTITUDE = "vehicle_local_position", "vehicle_attitude"


def is_ulog(first_lines: Sequence[str]) -> bool:
    """Never from the text: a binary file is known by its suffix."""
    return False


def read_ulog(path: Path, options: ReadOptions) -> Capture:
    """Read `vehicle_local_position` and `vehicle_attitude`, NED and FRD, as ENU and FLU.

    Positions count from where the PX4 was started, see `ReadOptions.origins_m`.
    """
    log = open_ulog(path, [_POSITION, _ATTITUDE])
    position, attitude = (_columns(log, name) for name in (_POSITION, _ATTITUDE))
    time_s = _time_s(position)
    place = world_enu_ned(np.column_stack([position[axis] for axis in "xyz"]))
    turn = orientation_enu_ned(np.column_stack([attitude[f"q[{k}]"] for k in range(4)]))
    turns = PoseTrack(_time_s(attitude), np.zeros((len(turn), 3)), turn)
    turn = resample(turns, time_s, np.inf).orientation_wxyz
    name = name_in(path.stem)
    return Capture(
        {name: RawTrack(time_s, place, turn)},
        stated=frozenset({"length", "time", "axes"}),
        format="ULog",
        notes=[f"positions of {name} count from where its PX4 was started (see --origin)"],
        alone=True,
    )


def open_ulog(path: Path, topics: Sequence[str]) -> Any:
    """Open a log by pyulog, with these topics.

    Raises:
        ConfigError: pyulog is not installed, or it is no whole log; without its name.
    """
    try:
        from pyulog import ULog
    except ImportError:
        raise ConfigError(
            f"logs of PX4 are read by pyulog, which is not installed: {install_command('pyulog')}"
        ) from None
    try:
        with path.open("rb") as file:
            return ULog(file, list(topics))
    except Exception as error:  # what pyulog and struct raise has no common base
        raise ConfigError(f"no whole ULog: {error or type(error).__name__}") from None


def _columns(log: Any, name: str) -> dict[str, np.ndarray]:
    try:
        return dict(log.get_dataset(name).data)
    except (KeyError, IndexError):
        raise ConfigError(f"no {name} in the log") from None


def _time_s(columns: dict[str, np.ndarray]) -> np.ndarray:
    stamp = columns.get("timestamp_sample", columns["timestamp"])
    return np.asarray(stamp, float) * 1e-6
