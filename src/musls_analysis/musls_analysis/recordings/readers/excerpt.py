"""Reads excerpts of flights as CSV.

Columns: `t` [s]; `load_des_x,y,z` [m], `load_des_yaw` [rad]: set-point of the load;
`load_x,y,z,roll,pitch,yaw`, `d1_x,...`, `d2_x,...`: measured poses, ENU, extrinsic x-y-z angles.
The drones' set-points were not recorded: they follow from the virtual cone.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from musls_analysis.recordings.readers.clean import Notes
from musls_analysis.recordings.readers.options import ReadOptions
from musls_analysis.recordings.readers.table import number_rows, table_recording, text_lines
from musls_analysis.recordings.recording import LOAD, Recording
from musls_control.formation import Cone, drone_poses
from musls_description.errors import ConfigError

POSE = ("x", "y", "z", "roll", "pitch", "yaw")
SETPOINT = ("load_des_x", "load_des_y", "load_des_z", "load_des_yaw")


def is_excerpt(first_line: str) -> bool:
    """Whether a file's first line is the header of such a table."""
    return "," in first_line and "load_x" in [name.strip() for name in first_line.split(",")]


def read_excerpt(path: Path, options: ReadOptions) -> Recording:
    """Read a CSV excerpt.

    Args:
        path: The file.
        options: Formation for the drones' set-points, and whether stale rows stay.

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
    measured = {
        body: rows[:, 1 + 6 * i : 7 + 6 * i] for i, body in enumerate(columns)
    }  # fmt: skip
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
