"""OptiTrack Motive's CSV: seven header rows, rigid bodies, y up, quaternions or Euler angles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from musls_analysis.recordings.capture import Capture, RawTrack, numbers_of, whole_rows
from musls_analysis.recordings.options import ReadOptions
from musls_description.config.errors import ConfigError

_LENGTHS = {"meters": "m", "millimeters": "mm", "centimeters": "cm"}
_BODY = "rigid body"


def is_motive(first_lines: Sequence[str]) -> bool:
    """Whether the first line is Motive's."""
    return first_lines[0].lower().startswith(("format version", '"format version'))


def read_motive(path: Path, options: ReadOptions) -> Capture:
    """Read an export; single markers are left out.

    Its first row says units and the way of rotations; above the column names stand, row by row,
    what a column belongs to, its name and whether it is a rotation or a position.
    """
    notes: list[str] = []
    rows = whole_rows(path, notes)
    cells = [row.cells for row in rows]
    about = {k.lower(): v for k, v in zip(cells[0][::2], cells[0][1::2], strict=False)}
    names_at = next((k for k, row in enumerate(cells) if row[0].lower() == "frame"), None)
    if names_at is None or names_at < 2:
        raise ConfigError("no row of column names that begins with Frame")
    above = cells[1:names_at]
    head = {row[1].lower(): row for row in above if len(row) > 1 and row[1]}
    types = [k for k, row in enumerate(above) if _BODY in (cell.lower() for cell in row)]
    if types and not {"type", "name"} <= set(head):  # older exports have the rows without labels
        head |= {"type": above[types[0]], "name": above[types[0] + 1]}
    if not {"type", "name"} <= set(head):
        raise ConfigError("no header rows Type and Name")
    axis, quantity = cells[names_at], cells[names_at - 1]
    places: dict[str, dict[str, int]] = {}
    for k in range(2, len(axis)):
        if _cell(head["type"], k).lower() == _BODY and _cell(quantity, k):
            body = places.setdefault(_cell(head["name"], k), {})
            body[f"{_cell(quantity, k)} {axis[k]}".lower()] = k
    if not places:
        raise ConfigError("no rigid bodies in it; export them, not markers alone")
    rotation = about.get("rotation type", "Quaternion")
    order = "wxyz" if rotation.lower() == "quaternion" else "xyz"
    parts = [*(f"position {a}" for a in "xyz"), *(f"rotation {a}" for a in order)]
    if missing := [p for body in places.values() for p in parts if p not in body]:
        raise ConfigError(f"a rigid body lacks the column {missing[0]}")
    wanted = [1, *(body[part] for body in places.values() for part in parts)]
    rows_of_numbers = [_filled(row, len(axis)) for row in cells[names_at + 1 :]]
    table, _ = numbers_of(rows_of_numbers, len(axis), wanted, notes)
    width = len(parts)
    tracks = {}
    for k, name in enumerate(places):
        values = table[:, 1 + k * width : 1 + (k + 1) * width]
        turn = values[:, 3:] if order == "wxyz" else _quaternions(values[:, 3:], rotation)
        tracks[name] = RawTrack(table[:, 0], values[:, :3], turn)
    length = about.get("length units", "").lower()
    units = {"length": _LENGTHS[length]} if length in _LENGTHS else {}
    stated = frozenset({"time", *units})
    return Capture(
        tracks, units=units, stated=stated, axes="y-up", format="OptiTrack Motive", notes=notes
    )


def _cell(row: Sequence[str], k: int) -> str:
    return row[k] if k < len(row) else ""


def _filled(row: list[str], columns: int) -> list[str]:
    """A row with the empty cells that were left out where bodies were lost."""
    return row + [""] * (columns - len(row))


def _quaternions(angles_deg: np.ndarray, order: str) -> np.ndarray:
    """Quaternions [w, x, y, z] of angles [deg] about the body's axes in an order such as XYZ."""
    from scipy.spatial.transform import Rotation

    if sorted(order.upper()) != ["X", "Y", "Z"]:
        raise ConfigError(f"rotation type {order}: must be Quaternion or an order such as XYZ")
    q = np.full((len(angles_deg), 4), np.nan)
    good = np.isfinite(angles_deg).all(axis=1)
    columns = ["XYZ".index(axis) for axis in order.upper()]
    turns = Rotation.from_euler(order.upper(), angles_deg[good][:, columns], degrees=True)
    q[good] = turns.as_quat()[:, [3, 0, 1, 2]]
    return q
