"""Tables with a column for each number of a pose: our excerpts, PlotJuggler's CSV and others.

A column's name is that of a body and of a component: `load_x`, `d1_roll`, `cf5_qw`,
`/vrpn/box/pose/pose/position/x`. Columns without a body's name (`p_x`, `quat w`, `z`) are of one
body, named as the file. Velocities and the like are left out. Units may follow: `load_x_mm`,
`load_yaw_deg`, `load_x [mm]`. The time's column is called t, time, timestamp, ... Angles are
extrinsic x-y-z (roll, pitch, yaw).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from musls_analysis.recordings.capture import Capture, RawTrack, body_of, numbers_of, whole_rows
from musls_analysis.recordings.options import FACTORS, ReadOptions
from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import shown
from musls_description.config.text_tables import cells_of

POSITION, QUATERNION, ANGLES = ("x", "y", "z"), ("qw", "qx", "qy", "qz"), ("roll", "pitch", "yaw")
DESIRED = ("des_x", "des_y", "des_z", "des_yaw")

_TIME = re.compile(r"(?:__)?(?:t|time|timestamp|stamp|elapsed(?: time)?)")
_SEPARATOR = r"[_./ ]"
_UNIT = re.compile(rf"(?:{_SEPARATOR}(?P<a>mm|cm|m|rad|deg|s|ms|us|ns)|\s*[\[(](?P<b>\w*)[\])])$")
_COMPONENTS = [
    (rf"(?P<des>des){_SEPARATOR}(?P<axis>x|y|z|yaw)", "des_"),
    (
        rf"(?:pose{_SEPARATOR})*(?:position|pos|translation|trans|p|t){_SEPARATOR}?(?P<axis>[xyz])",
        "",
    ),
    (
        rf"(?:pose{_SEPARATOR})*(?:orientation|quaternion|quat|rotation|rot|q){_SEPARATOR}?"
        r"(?P<axis>[wxyz])",
        "q",
    ),
    (rf"(?:(?:euler|rpy|orientation|rot){_SEPARATOR})?(?P<axis>roll|pitch|yaw)", ""),
    (r"(?P<axis>[xyz])", ""),
]
_PATTERNS = [
    (re.compile(rf"(?:(?P<body>.*\S){_SEPARATOR})?(?:{text})", re.IGNORECASE), prefix)
    for text, prefix in _COMPONENTS
]
_NO_BODY = re.compile(
    rf"(?:.*{_SEPARATOR})?(?:v|vel|velocity|linear|a|acc|accel|acceleration|w|omega|angular|rates?|"
    "imu|gyro|mag|f|force|m|moment|torque)",
    re.IGNORECASE,
)
"""Names of what has an x, too, but no attitude."""


_Places = dict[str, int]
"""Place in a row of each component of one body."""


def _unit_of(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit or an empty text."""
    match = _UNIT.search(name)
    unit = (match["a"] or match["b"] or "") if match else ""
    return (name[: match.start()], unit) if match else (name, "")


def _read_header(names: Sequence[str]) -> tuple[int | None, dict[str, _Places]]:
    """Place of the time, and of the components of each body."""
    time, bodies = None, dict[str, _Places]()
    for place, text in enumerate(names):
        name, _ = _unit_of(text)
        if time is None and _TIME.fullmatch(name.lower()):
            time = place
            continue
        for pattern, prefix in _PATTERNS:
            if match := pattern.fullmatch(name):
                body = bodies.setdefault(match["body"] or "", {})
                component = prefix + match["axis"].lower()
                if component in body:
                    raise ConfigError(f"column {shown(text)} comes twice")
                body[component] = place
                break
    return time, {name: body for name, body in bodies.items() if not _is_rate(name, body)}


def _is_rate(name: str, body: _Places) -> bool:
    """Whether columns are of a velocity, a force or the like."""
    return bool(_NO_BODY.fullmatch(name)) and not {*QUATERNION, *ANGLES} & set(body)


def is_columns(first_lines: Sequence[str]) -> bool:
    """Whether the first line is the header of such a table."""
    try:
        header = next(cells_of(first_lines)).cells
        _, bodies = _read_header([header[0].lstrip("#% "), *header[1:]])
    except (ConfigError, StopIteration):
        return False
    return any("x" in body for body in bodies.values())


def read_columns(path: Path, options: ReadOptions) -> Capture:
    """Read such a table."""
    notes: list[str] = []
    rows = whole_rows(path, notes)
    header = [rows[0].cells[0].lstrip("#% "), *rows[0].cells[1:]] if rows else []
    time, bodies = _read_header(header)
    if len(rows) < 2:
        raise ConfigError("no rows below the header")
    if time is None:
        raise ConfigError("column t is missing")
    if "" in bodies:
        bodies[path.stem] = bodies.pop("")
    _check_complete(bodies)
    whole = {name: body for name, body in bodies.items() if "x" in body}
    cells = [row.cells for row in rows[1:]]
    wanted = [time, *(place for body in whole.values() for place in body.values())]
    table, _ = numbers_of(cells, len(header), wanted, notes)
    stated = _in_si(header, wanted, table, options)
    columns = dict(zip(wanted, table.T, strict=True))
    by_row = not _sparse(table)
    tracks, setpoints = {}, {}
    for name, body in whole.items():
        values = {part: columns[place] for part, place in body.items()}
        rotation = QUATERNION if "qw" in values else ANGLES
        tracks[name] = _track(columns[time], values, [*POSITION, *rotation], by_row)
        if DESIRED[0] in values:
            zero = np.zeros(len(table))
            level = {**values, "roll": zero, "pitch": zero}
            parts = [*DESIRED[:3], "roll", "pitch", DESIRED[3]]
            setpoints[name] = _track(columns[time], level, parts, by_row)
    return Capture(
        tracks,
        setpoints,
        stated=stated,
        format="table of columns",
        notes=notes,
        by_row=by_row,
        alone=len(whole) == 1,
    )


def _sparse(table: np.ndarray) -> bool:
    """Whether most rows lack numbers, as where a row is a message of one topic."""
    return len(table) > 0 and bool(np.isnan(table).any(axis=1).mean() > 0.5)


def _track(
    time: np.ndarray, values: Mapping[str, np.ndarray], parts: Sequence[str], by_row: bool
) -> RawTrack:
    """Poses of a body; of a sparse table the rows that hold one."""
    poses = np.column_stack([values[part] for part in parts])
    kept = slice(None) if by_row else np.isfinite(poses).all(axis=1)
    return RawTrack(time[kept], poses[kept, :3], poses[kept, 3:])


def _check_complete(bodies: Mapping[str, _Places]) -> None:
    """Refuse a body of which a column is missing, by the column's name."""
    if not any("x" in body for body in bodies.values()):
        raise ConfigError("no column looks like a position, such as load_x")
    for name, body in bodies.items():
        if "x" not in body:
            continue
        needed = [*POSITION]
        needed += QUATERNION if any(part in body for part in QUATERNION) else ANGLES
        needed += DESIRED if any(part in body for part in DESIRED) else ()
        missing = [part for part in needed if part not in body]
        if missing:
            raise ConfigError(f"column {shown(name)}_{missing[0]} is missing")
    desired = {name for name, body in bodies.items() if DESIRED[0] in body}
    drones = [name for name in bodies if "x" in bodies[name] and _is_drone(name)]
    if "load" in desired and len(desired) > 1:
        missing = [name for name in drones if name not in desired]
        if missing:
            raise ConfigError(f"column {missing[0]}_{DESIRED[0]} is missing")


def _is_drone(name: str) -> bool:
    body = body_of(name)
    return body is not None and body[0] == "drone"


def _in_si(
    header: Sequence[str], wanted: Sequence[int], table: np.ndarray, options: ReadOptions
) -> frozenset[str]:
    """Bring columns whose names say a unit to SI, in place; the quantities that all of them say."""
    said: dict[str, list[bool]] = {quantity: [] for quantity in FACTORS}
    for k, place in enumerate(wanted):
        name, unit = _unit_of(header[place])
        quantity = _quantity(name)
        if quantity is None:
            continue
        known = unit in FACTORS[quantity]
        said[quantity].append(known)
        if not known:
            continue
        if options.unit(quantity):
            raise ConfigError(
                f"column {shown(header[place])} says its unit; leave --units of {quantity} out"
            )
        table[:, k] *= FACTORS[quantity][unit]
    return frozenset(quantity for quantity, known in said.items() if known and all(known))


def _quantity(name: str) -> str | None:
    """Quantity of a column: "time", "length" or "angle"; None for a quaternion."""
    if _TIME.fullmatch(name.lower()):
        return "time"
    for pattern, prefix in _PATTERNS:
        if match := pattern.fullmatch(name):
            if prefix == "q":
                return None
            return "length" if match["axis"].lower() in POSITION else "angle"
    return None
