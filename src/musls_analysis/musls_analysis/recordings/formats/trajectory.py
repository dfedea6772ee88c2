"""Trajectories of one body: TUM (as evo reads them), EuRoC and KITTI; named as the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from musls_analysis.recordings.capture import (
    Capture,
    RawTrack,
    name_in,
    numbers_of,
    quaternions_of,
    whole_lines,
    whole_rows,
)
from musls_analysis.recordings.options import FACTORS, ReadOptions
from musls_description.config.errors import ConfigError
from musls_description.config.text_tables import cells_of

_TUM = ("time", "x", "y", "z", "qx", "qy", "qz", "qw")
_EUROC = ("timestamp", "p_rs_r_x", "p_rs_r_y", "p_rs_r_z", "q_rs_w", "q_rs_x", "q_rs_y", "q_rs_z")


def is_tum(first_lines: Sequence[str]) -> bool:
    """Whether the rows are eight numbers, the last four a unit quaternion."""
    rows = [line.split() for line in first_lines if not line.startswith(("#", "%"))]
    try:
        numbers = np.array(rows, float)
    except ValueError:
        return False
    return numbers.shape[1:] == (8,) and bool(
        np.allclose(np.linalg.norm(numbers[:, 4:], axis=1), 1.0, atol=0.01)
    )


def read_tum(path: Path, options: ReadOptions) -> Capture:
    """Read time [s], x, y, z [m], quaternion x, y, z, w, separated by spaces."""
    notes: list[str] = []
    lines = [line for line in whole_lines(path, notes) if line.strip()]
    rows = [line.split() for line in lines if not line.startswith(("#", "%"))]
    table, _ = numbers_of(rows, len(_TUM), range(len(_TUM)), notes)
    return _capture(path, table[:, :4], table[:, [7, 4, 5, 6]], "TUM", {}, notes)


def is_euroc(first_lines: Sequence[str]) -> bool:
    """Whether the first line is EuRoC's header."""
    header = next(cells_of(first_lines)).cells
    return [name.lower().lstrip("#").split("[")[0].strip() for name in header[:8]] == [*_EUROC]


def read_euroc(path: Path, options: ReadOptions) -> Capture:
    """Read time [ns], x, y, z [m], quaternion w, x, y, z, and what may follow."""
    notes: list[str] = []
    header, *rows = whole_rows(path, notes)
    cells = [row.cells for row in rows]
    table, _ = numbers_of(cells, len(header.cells), range(len(_EUROC)), notes)
    units = {} if options.unit("time") else {"time": "ns"}
    return _capture(path, table[:, :4], table[:, 4:], "EuRoC", units, notes)


_KITTI = 12


def is_kitti(first_lines: Sequence[str]) -> bool:
    """Whether the rows are the first three rows of homogeneous matrices, twelve numbers."""
    try:
        numbers = np.array([line.split() for line in first_lines], float)
    except ValueError:
        return False
    if numbers.shape[1:] != (_KITTI,):
        return False
    turns = numbers.reshape(-1, 3, 4)[:, :, :3].reshape(-1, 9)
    return bool(np.isfinite(quaternions_of(turns)).all())


def read_kitti(path: Path, options: ReadOptions) -> Capture:
    """Read matrices [R | p], row by row; their times [s] are a line each in times.txt beside it.

    The dataset's own axes are a camera's (z ahead, y down); others write the world's.
    """
    notes: list[str] = []
    table, _ = numbers_of([line.split() for line in whole_lines(path, notes)], 12, range(12), notes)
    beside = path.with_name("times.txt")
    if not beside.is_file():
        raise ConfigError(
            f"poses of KITTI hold no times: put {beside.name} beside the file, a time [s] a line, "
            "or the times before each row and say --columns 't r11 r12 r13 x r21 r22 r23 y r31 "
            "r32 r33 z'"
        )
    time_s, _ = numbers_of([line.split() for line in whole_lines(beside, notes)], 1, [0], notes)
    if len(time_s) != len(table):
        raise ConfigError(f"{len(table)} poses, and {len(time_s)} times in {beside.name}")
    m = table.reshape(-1, 3, 4)
    if options.axes is None:
        notes.append("axes of KITTI's poses are not said: taken for z up (--axes)")
    poses = np.column_stack([time_s, m[:, :, 3]])
    return _capture(path, poses, quaternions_of(m[:, :, :3].reshape(-1, 9)), "KITTI", {}, notes)


def _capture(
    path: Path,
    poses: np.ndarray,
    q_wxyz: np.ndarray,
    format: str,
    units: dict[str, str],
    notes: list[str],
) -> Capture:
    if not len(poses):
        raise ConfigError("no rows in the file")
    track = RawTrack(poses[:, 0], poses[:, 1:], q_wxyz)
    return Capture(
        {name_in(path.stem): track},
        units=units,
        stated=frozenset({q for q in FACTORS if q in units}),
        format=format,
        notes=notes,
        alone=True,
    )
