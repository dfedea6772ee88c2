"""Vicon's CSV, of Tracker and Nexus: sections of objects or segments, millimetres, sub-frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from musls_analysis.recordings.capture import Capture, RawTrack, numbers_of, whole_lines
from musls_analysis.recordings.options import FACTORS, ReadOptions
from musls_description.config.errors import ConfigError
from musls_description.config.text_tables import rows_of

_ROTATIONS = ({"RX", "RY", "RZ"}, {"RX", "RY", "RZ", "RW"})
_PLACE = ("TX", "TY", "TZ")


def is_vicon(first_lines: Sequence[str]) -> bool:
    """Whether a row of column names begins with Frame, Sub Frame."""
    rows = [[cell.lower() for cell in row.cells[:2]] for row in rows_of(first_lines)]
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
    cells = [row + [""] * (columns - len(row)) for row in rows[head + 2 : end]]
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
