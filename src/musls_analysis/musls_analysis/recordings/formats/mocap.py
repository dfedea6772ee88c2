"""Motion capture's tables: OptiTrack Motive, Vicon's Tracker and Nexus, Qualisys QTM.

Motive has seven header rows, rigid bodies, y up, quaternions or Euler angles; Vicon sections of
objects or segments, millimetres, sub-frames; Qualisys rows of names and values, millimetres,
rotation matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from musls_analysis.recordings.capture import (
    Capture,
    RawTrack,
    note,
    numbers_of,
    quaternions_of,
    whole_lines,
    whole_rows,
)
from musls_analysis.recordings.options import FACTORS, ReadOptions, unit_named
from musls_description.config.errors import ConfigError
from musls_description.config.text_tables import cells_of, rows_of

# ---------- Motive

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
    axis = cells[names_at]
    quantity = cells[names_at - 1]
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
    if absent_columns := [p for body in places.values() for p in parts if p not in body]:
        raise ConfigError(f"a rigid body lacks the column {absent_columns[0]}")
    column_places = [1, *(body[part] for body in places.values() for part in parts)]
    rows_of_numbers = [_with_empty_cells(row, len(axis)) for row in cells[names_at + 1 :]]
    table, _ = numbers_of(rows_of_numbers, len(axis), column_places, notes)
    width = len(parts)
    tracks = {}
    for k, name in enumerate(places):
        values = table[:, 1 + k * width : 1 + (k + 1) * width]
        turn = values[:, 3:] if order == "wxyz" else _quaternions_of(values[:, 3:], rotation)
        tracks[name] = RawTrack(table[:, 0], values[:, :3], turn)
    length = "" if options.unit("length") else about.get("length units", "")
    units = {"length": unit_named(length, "length")} if length else {}
    known_quantities = frozenset({"time", *units})
    return Capture(
        tracks,
        units=units,
        stated=known_quantities,
        axes="y-up",
        format="OptiTrack Motive",
        notes=notes,
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
_HEAD = ["frame", "sub frame"]
_GLOBAL = "Global Angle"


def is_vicon(first_lines: Sequence[str]) -> bool:
    """Whether a row of column names begins with Frame, Sub Frame."""
    rows = [[cell.lower() for cell in row.cells[:2]] for row in cells_of(first_lines)]
    return _HEAD in rows


def read_vicon(path: Path, options: ReadOptions) -> Capture:
    """Read the section with rotations and translations of bodies.

    A section is its name, the rate of its rows [Hz], a row of names ("Global Angle load:load"), one
    of columns (Frame, Sub Frame, RX, RY, RZ, TX, TY, TZ), one of units, and the rows. A body's
    rotations and translations may stand below names of their own. Rotations are helical (axis times
    angle) or Euler angles about the turned axes x, y, z: Vicon does not say. A section may be
    headed again where its rows go on.
    """
    notes: list[str] = []
    rows = whole_rows(path, notes)
    cells = [row.cells for row in rows]
    heads = [k for k, row in enumerate(cells) if [c.lower() for c in row[:2]] == _HEAD]
    body_heads = [head for head in heads if head > 0 and not _is_number(cells[head - 1][0])]
    sections = [(head, bodies) for head in body_heads if (bodies := _bodies(cells, head))]
    if not sections:
        raise ConfigError("no bodies with TX, TY, TZ and RX, RY, RZ in it")
    head, bodies = sections[0]
    columns = len(cells[head])
    places = [place for body in bodies.values() for place in body]
    units: dict[str, str] = {}
    tables = [_section(cells, head, heads, columns, places, notes)]
    _to_one_unit(tables[0], cells[head + 1 : head + 2], cells[head], places, options, units)
    sections += [(k, bodies) for k in heads if k > head and _is_number(cells[k - 1][0])]
    for again, others in sorted(sections[1:], key=lambda section: section[0]):
        table = _section(cells, again, heads, columns, places, []) if others == bodies else None
        if table is not None and not _goes_on(tables, table):
            where = f"below line {rows[again].line}, another header,"
            note(notes, len(table), f"row{{s}} {where} left out")
        elif table is not None:
            row_of_units = cells[again + 1 : again + 2]
            _to_one_unit(table, row_of_units, cells[head], places, options, units)
            tables.append(table)
    table = np.vstack(tables)
    time_s = _times(table[:, 0], table[:, 1], _rate(cells[:head]), notes)
    tracks = {}
    start = 2
    for name, body in bodies.items():
        values = table[:, start : start + len(body)]
        start += len(body)
        values[(values == 0.0).all(axis=1)] = np.nan  # so a body is written that was not seen
        turn = values[:, 3:] if len(body) == 6 else values[:, [6, 3, 4, 5]]
        tracks[name] = RawTrack(time_s, values[:, :3], turn)
    return Capture(
        tracks,
        units=units,
        stated=frozenset({*units, "time"}),
        angles=None,
        format="Vicon",
        notes=notes,
    )


def _section(
    cells: Sequence[Sequence[str]],
    head: int,
    heads: Sequence[int],
    columns: int,
    places: Sequence[int],
    notes: list[str],
) -> np.ndarray:
    """Frames, sub-frames and numbers below a row of column names, (rows, 2 + places)."""
    end = next((h for h in heads if h > head), len(cells))
    if end < len(cells):  # the name, rate and names of the next section are above its columns
        while end > head + 2 and not all(_is_number(cell) for cell in [*cells[end - 1], ""][:2]):
            end -= 1
    below = [_with_empty_cells([*row], columns) for row in cells[head + 2 : end]]
    return numbers_of(below, columns, [0, 1, *places], notes)[0]


def _goes_on(tables: Sequence[np.ndarray], table: np.ndarray) -> bool:
    """Whether the frames of a section come after those before it."""
    if not len(table) or not any(map(len, tables)):
        return False
    return bool(np.nanmin(table[:, 0]) >= max(np.nanmax(t[:, 0]) for t in tables if len(t)))


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _bodies(cells: Sequence[Sequence[str]], head: int) -> dict[str, list[int]]:
    """Columns TX, TY, TZ, RX, RY, RZ (, RW) of each body by its name."""
    columns = cells[head]
    names: list[str] = []
    for above in range(head - 1, max(head - 4, -1), -1):  # Global Angle may stand alone between
        names = [cell.removeprefix(_GLOBAL).strip() for cell in cells[above]]
        if any(names[2:]):
            break
    starts = [k for k in range(2, min(len(columns), len(names))) if names[k]]
    bodies: dict[str, dict[str, int]] = {}
    for start, end in zip(starts, [*starts[1:], len(columns)], strict=True):
        body = bodies.setdefault(names[start], {})
        for k in range(start, end):
            body.setdefault(columns[k].upper(), k)
    whole = {}
    for name, body in bodies.items():
        turn = {column for column in body if column.startswith("R")}
        if set(_PLACE) <= set(body) and turn in _ROTATIONS:
            whole[name] = [body[column] for column in (*_PLACE, *sorted(turn, key=_axis))]
    return _short_names(whole)


def _axis(name: str) -> int:
    return "XYZW".index(name[1])


def _short_names(bodies: dict[str, list[int]]) -> dict[str, list[int]]:
    """Names without the segment where a subject has but one."""
    parts = [name.partition(":")[::2] for name in bodies]
    subjects = [subject for subject, _ in parts]
    short = [
        subject if subjects.count(subject) == 1 else f"{subject}:{segment}"
        for subject, segment in parts
    ]
    return dict(zip(short, bodies.values(), strict=True))


def _rate(above: Sequence[Sequence[str]]) -> float:
    """Rate [Hz] of the rows of a section, which stands alone in a row above its names."""
    for row in reversed(above[-5:]):
        if _is_number(row[0]) and not any(row[1:]) and 0.0 < float(row[0]) < 1e6:
            return float(row[0])
    raise ConfigError("no rate [Hz] above the names of the bodies")


def _to_one_unit(
    table: np.ndarray,
    unit_rows: Sequence[Sequence[str]],
    columns: Sequence[str],
    places: Sequence[int],
    options: ReadOptions,
    units: dict[str, str],
) -> None:
    """Bring the columns of places to one unit each of length and angle, in place.

    To those in `units`, which takes those of the first body; mm and deg where none stand.
    """
    row = unit_rows[0] if unit_rows else []
    for k, place in enumerate(places):
        axes = columns[place].upper()
        quantity, usual = ("length", "mm") if axes in _PLACE else ("angle", "deg")
        if options.unit(quantity) or axes == "RW":
            continue
        text = _cell(row, place)
        unit = unit_named(text, quantity) if text else units.get(quantity, usual)
        first = units.setdefault(quantity, unit)
        table[:, 2 + k] *= FACTORS[quantity][unit] / FACTORS[quantity][first]


def _times(
    frame: np.ndarray, sub_frame: np.ndarray, rate_hz: float, notes: list[str]
) -> np.ndarray:
    """Times [s] from the first frame on; the rate is that of rows, sub-frames counted.

    A sub-frame that is seen far less often than others is a damaged one: its time is NaN.
    """
    if not len(frame):
        raise ConfigError("no rows below the column names")
    kinds, counts = np.unique(sub_frame[np.isfinite(sub_frame)], return_counts=True)
    good = kinds[(counts >= 0.5 * np.median(counts)) & (kinds >= 0.0) & (kinds == np.floor(kinds))]
    if len(good) == 0:
        good = np.zeros(1)
    odd = ~np.isin(sub_frame, good)
    note(notes, int(odd.sum()), "row{s} of a sub-frame that others do not have dropped")
    per_frame = 1 + int(good.max())
    first = frame[np.isfinite(frame)][:1]
    time_s = ((frame - first) * per_frame + sub_frame) / rate_hz if len(first) else frame
    return np.where(odd, np.nan, time_s)


# ---------- Qualisys


def is_qualisys(first_lines: Sequence[str]) -> bool:
    """Whether the first line is that of an export of QTM."""
    return first_lines[0].startswith("NO_OF_FRAMES")


_QTM_COLUMNS = ["X", "Y", "Z", *(f"Rot[{k}]" for k in range(9))]


def read_qualisys(path: Path, options: ReadOptions) -> Capture:
    """Read a 6D export: rows of a name and values, one of column names, and the frames.

    A body has X, Y, Z [mm], angles whose way the project says (not read), a residual, and its
    rotation matrix column by column. One that was not seen is written as zeros.
    """
    notes: list[str] = []
    lines = [line for line in whole_lines(path, notes) if line.strip()]
    heads = [[cell.strip() for cell in line.split("\t")] for line in lines[:30]]
    about = {row[0].upper(): row[1:] for row in heads if not _is_number(row[0])}
    if (kind := (about.get("DATA_INCLUDED") or [""])[0]) != "6D":
        raise ConfigError(f"an export of {kind or 'unknown data'}; export 6D data of rigid bodies")
    head = next((k for k, row in enumerate(heads) if {"X", "Rot[0]"} <= _last_words(row)), None)
    bodies = [name for name in about.get("BODY_NAMES", []) if name]
    if head is None or not bodies:
        raise ConfigError("no row BODY_NAMES, or none of column names X, Y, Z, ..., Rot[8]")
    names = [name for name in heads[head] if name]
    starts = [k for k, name in enumerate(names) if name.split()[-1] == "X"]
    if len(starts) != len(bodies):
        raise ConfigError(f"{len(bodies)} names of bodies, and {len(starts)} columns X")
    ends = [*starts[1:], len(names)]
    places = []
    for body, start, end in zip(bodies, starts, ends, strict=True):
        columns = {name.split()[-1]: k for k, name in enumerate(names[start:end], start)}
        if absent_columns := [name for name in _QTM_COLUMNS if name not in columns]:
            raise ConfigError(f"{body} lacks the column {absent_columns[0]}")
        places += [columns[name] for name in _QTM_COLUMNS]
    below = [row.cells[: len(names)] for row in rows_of(lines[head + 1 :])]
    timed = names[:2] == ["Frame", "Time"]
    column_places = [1, *places] if timed else places
    table, index = numbers_of(below, len(names), column_places, notes)
    if not len(table):
        raise ConfigError("no frames below the column names")
    if timed:
        time_s = table[:, 0]
        table = table[:, 1:]
    else:
        rate = (about.get("FREQUENCY") or [""])[0]
        if not _is_number(rate) or float(rate) <= 0.0:
            raise ConfigError("no FREQUENCY [Hz] of its frames")
        time_s = index / float(rate)
    tracks = {}
    for body, values in zip(bodies, np.split(table, len(bodies), axis=1), strict=True):
        values[(values == 0.0).all(axis=1)] = np.nan
        by_rows = values[:, 3:].reshape(-1, 3, 3).transpose(0, 2, 1).reshape(-1, 9)
        tracks[body] = RawTrack(time_s, values[:, :3], quaternions_of(by_rows))
    length = options.unit("length")
    return Capture(
        tracks,
        units={} if length else {"length": "mm"},
        stated=frozenset({"time"} if length else {"time", "length"}),
        format="Qualisys",
        notes=notes,
    )


def _last_words(cells: Sequence[str]) -> set[str]:
    return {cell.split()[-1] for cell in cells if cell}
