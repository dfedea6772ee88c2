"""Motion capture's CSV: OptiTrack Motive, and Vicon's Tracker and Nexus.

Motive has seven header rows, rigid bodies, y up, quaternions or Euler angles; Vicon sections of
objects or segments, millimetres, sub-frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from musls_analysis.recordings.capture import Capture, RawTrack, numbers_of, whole_lines, whole_rows
from musls_analysis.recordings.options import FACTORS, ReadOptions
from musls_description.config.errors import ConfigError
from musls_description.config.text_tables import cells_of, rows_of

# ---------- Motive

_MOTIVE_LENGTHS = {"meters": "m", "millimeters": "mm", "centimeters": "cm"}
_MOTIVE_BODY = "rigid body"


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
    types = [k for k, row in enumerate(above) if _MOTIVE_BODY in (cell.lower() for cell in row)]
    if types and not {"type", "name"} <= set(head):  # older exports have the rows without labels
        head |= {"type": above[types[0]], "name": above[types[0] + 1]}
    if not {"type", "name"} <= set(head):
        raise ConfigError("no header rows Type and Name")
    axis, quantity = cells[names_at], cells[names_at - 1]
    places: dict[str, dict[str, int]] = {}
    for k in range(2, len(axis)):
        if _cell(head["type"], k).lower() == _MOTIVE_BODY and _cell(quantity, k):
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
    rows_of_numbers = [_with_empty_cells(row, len(axis)) for row in cells[names_at + 1 :]]
    table, _ = numbers_of(rows_of_numbers, len(axis), wanted, notes)
    width = len(parts)
    tracks = {}
    for k, name in enumerate(places):
        values = table[:, 1 + k * width : 1 + (k + 1) * width]
        turn = values[:, 3:] if order == "wxyz" else _quaternions_of(values[:, 3:], rotation)
        tracks[name] = RawTrack(table[:, 0], values[:, :3], turn)
    length = about.get("length units", "").lower()
    units = {"length": _MOTIVE_LENGTHS[length]} if length in _MOTIVE_LENGTHS else {}
    stated = frozenset({"time", *units})
    return Capture(
        tracks, units=units, stated=stated, axes="y-up", format="OptiTrack Motive", notes=notes
    )


def _cell(row: Sequence[str], k: int) -> str:
    return row[k] if k < len(row) else ""


def _with_empty_cells(row: list[str], columns: int) -> list[str]:
    """A row with the empty cells that were left out where bodies were lost."""
    return row + [""] * (columns - len(row))


def _quaternions_of(angles_deg: np.ndarray, order: str) -> np.ndarray:
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


# ---------- Vicon

_ROTATIONS = ({"RX", "RY", "RZ"}, {"RX", "RY", "RZ", "RW"})
_PLACE = ("TX", "TY", "TZ")


def is_vicon(first_lines: Sequence[str]) -> bool:
    """Whether a row of column names begins with Frame, Sub Frame."""
    rows = [[cell.lower() for cell in row.cells[:2]] for row in cells_of(first_lines)]
    return ["frame", "sub frame"] in rows


def read_vicon(path: Path, options: ReadOptions) -> Capture:
    """Read the section with rotations and translations of bodies.

    A section is its name, the rate of its rows [Hz], a row of names ("Global Angle load:load"), one
    of columns (Frame, Sub Frame, RX, RY, RZ, TX, TY, TZ), one of units, and the rows. Rotations are
    helical (axis times angle) or Euler angles about the turned axes x, y, z: Vicon does not say.
    """
    notes: list[str] = []
    lines = whole_lines(path, notes)
    rows = [row.cells for row in rows_of(lines)]
    heads = [
        k for k, row in enumerate(rows) if [c.lower() for c in row[:2]] == ["frame", "sub frame"]
    ]
    for head in heads:
        bodies = _bodies(rows[head - 1], rows[head])
        if bodies:
            break
    else:
        raise ConfigError("no bodies with TX, TY, TZ and RX, RY, RZ in it")
    rate_hz = _rate(rows[max(head - 2, 0)])
    end = next((h - 3 for h in heads if h > head), len(rows))
    columns = len(rows[head])
    wanted = [0, 1, *(place for body in bodies.values() for place in body)]
    cells = [_with_empty_cells(row, columns) for row in rows[head + 2 : end]]
    table, _ = numbers_of(cells, columns, wanted, notes)
    units = _units(rows[head + 1], [place for body in bodies.values() for place in body])
    time_s = _times(table[:, 0], table[:, 1], rate_hz)
    tracks, start = {}, 2
    for name, places in bodies.items():
        values = table[:, start : start + len(places)]
        start += len(places)
        values[(values == 0.0).all(axis=1)] = np.nan  # so a body is written that was not seen
        turn = values[:, 3:] if len(places) == 6 else values[:, [6, 3, 4, 5]]
        tracks[name] = RawTrack(time_s, values[:, :3], turn)
    return Capture(
        tracks,
        units=units,
        stated=frozenset({*units, "time"}),
        angles=None,
        format="Vicon",
        notes=notes,
    )


def _bodies(names: Sequence[str], columns: Sequence[str]) -> dict[str, list[int]]:
    """Columns TX, TY, TZ, RX, RY, RZ (, RW) of each body by its name."""
    starts = [k for k in range(2, len(columns)) if k < len(names) and names[k]]
    found = {}
    for start, end in zip(starts, [*starts[1:], len(columns)], strict=True):
        places = {columns[k].upper(): k for k in range(start, end)}
        turn = {name for name in places if name.startswith("R")}
        if set(_PLACE) <= set(places) and turn in _ROTATIONS:
            found[names[start]] = [places[name] for name in (*_PLACE, *sorted(turn, key=_axis))]
    return _short_names(found)


def _axis(name: str) -> int:
    return "XYZW".index(name[1])


def _short_names(bodies: dict[str, list[int]]) -> dict[str, list[int]]:
    """Names without "Global Angle", and without the segment where a subject has but one."""
    parts = [name.removeprefix("Global Angle").strip().partition(":")[::2] for name in bodies]
    subjects = [subject for subject, _ in parts]
    short = [
        subject if subjects.count(subject) == 1 else f"{subject}:{segment}"
        for subject, segment in parts
    ]
    return dict(zip(short, bodies.values(), strict=True))


def _rate(row: Sequence[str]) -> float:
    try:
        rate_hz = float(row[0])
    except ValueError:
        rate_hz = 0.0
    if not 0.0 < rate_hz < 1e6:
        raise ConfigError("no rate [Hz] above the names of the bodies")
    return rate_hz


def _units(row: Sequence[str], places: Sequence[int]) -> dict[str, str]:
    """Units of the columns of bodies, by quantity; mm and deg where none stand there."""
    names = {row[place].lower() for place in places if place < len(row)}
    return {
        "length": next((unit for unit in FACTORS["length"] if unit in names), "mm"),
        "angle": next((unit for unit in FACTORS["angle"] if unit in names), "deg"),
    }


def _times(frame: np.ndarray, sub_frame: np.ndarray, rate_hz: float) -> np.ndarray:
    """Times [s] from the first frame on; the rate is that of rows, sub-frames counted."""
    if not len(frame):
        raise ConfigError("no rows below the column names")
    per_frame = 1 + int(np.nanmax(sub_frame, initial=0.0))
    return np.asarray(((frame - frame[0]) * per_frame + sub_frame) / rate_hz)
