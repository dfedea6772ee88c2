"""Tables with a column for each number of a pose: our excerpts, PlotJuggler's CSV and others.

A column's name is that of a body and of a component: `load_x`, `d1_roll`, `cf5_qw`,
`/vrpn/box/pose/pose/position/x`. Columns without a body's name (`p_x`, `quat w`, `z`) are of one
body, named as the file, or of those that another column names: one row a body. Velocities and the
like are left out. Units may follow: `load_x_mm`, `load_yaw_deg`, `load_x [mm]`. The time's column
is called t, time, timestamp, ..., or there are two, sec and nanosec. Angles are extrinsic x-y-z
(roll, pitch, yaw); a rotation matrix is r11 to r33. A body without any of them is a place, whose
attitude is unknown.

`ReadOptions.columns` are names of this kind for a table that has none, or others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from musls_analysis.recordings.capture import (
    Capture,
    RawTrack,
    body_of,
    name_in,
    numbers_of,
    quaternions_of,
    whole_lines,
)
from musls_analysis.recordings.options import FACTORS, ReadOptions
from musls_control.px4.frames import orientation_enu_ned, world_enu_ned
from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import shown
from musls_description.config.text_tables import TextRow, cells_of, rows_of
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import rotate

POSITION = ("x", "y", "z")
QUATERNION = ("qw", "qx", "qy", "qz")
ANGLES = ("roll", "pitch", "yaw")
MATRIX = tuple(f"r{i}{j}" for i in "123" for j in "123")
DESIRED = ("des_x", "des_y", "des_z", "des_yaw")
LEFT_OUT = "-"
"""Name of a column that is not read."""

_TIME = re.compile(r"(?:__)?(?:t|time|timestamp|(?:header[_.])?stamp|elapsed(?: time)?)")
_SECONDS, _NANOSECONDS = (
    re.compile(rf"(?:(?:header[_.])?(?:time)?stamp[_.])?(?:{text})")
    for text in ("secs?|seconds", "nsecs?|nanosecs?|nanoseconds")
)
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
    (r"r(?P<axis>[123][123])", "r"),
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

_FIELDS = re.compile(r"(?:(?:field|pose|transform|point)(?:[._/]|$))+")
"""Fields of a message of ROS, which name no body."""

_CARRIER = r"(?:drone|uav|quad|quadrotor|copter|vehicle|mav|cf|agent|robot)"
_BODY_COLUMN = re.compile(
    rf"(?:(?:body|object|rigid_?body|subject|marker|model|{_CARRIER})(?:[_ ]?(?:id|name))?|id|name|"
    "child_frame_id)"
)
_DRONE_COLUMN = re.compile(rf"{_CARRIER}(?:[_ ]?(?:id|name))?")

_Places = dict[str, int]
"""Place in a row of each component of one body."""


@dataclass(frozen=True)
class _Header:
    """Places of columns in a row.

    Attributes:
        times: Columns of one time each, in their order.
        seconds: Columns sec and nanosec of one time; None without both.
        body: Column that names the body of a row, by its name.
        bodies: Components of each body, by its name; the empty one is of the file or row.
    """

    times: Sequence[int]
    seconds: tuple[int, int] | None
    body: int | None
    bodies: Mapping[str, _Places]


def _unit_of(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit or an empty text."""
    match = _UNIT.search(name)
    unit = (match["a"] or match["b"] or "") if match else ""
    return (name[: match.start()], unit) if match else (name, "")


def _component(name: str) -> tuple[str, str] | None:
    """Body and component that a column is of; None for other columns."""
    for pattern, prefix in _PATTERNS:
        if match := pattern.fullmatch(name):
            body = match["body"] or ""
            inside = _FIELDS.fullmatch(body)
            return "" if inside else body, prefix + match["axis"].lower()
    return None


def _read_header(names: Sequence[str]) -> _Header:
    times = list[int]()
    parts = dict[str, int]()
    body_columns = list[int]()
    bodies = dict[str, _Places]()
    for place, text in enumerate(names):
        name, _ = _unit_of(text)
        plain = name.lower().removeprefix("field.")
        if _TIME.fullmatch(plain):
            times.append(place)
        elif component := _component(name):
            body, part = component
            if part in bodies.setdefault(body, {}):
                raise ConfigError(f"column {shown(text)} comes twice")
            bodies[body][part] = place
        elif _SECONDS.fullmatch(plain):
            parts.setdefault("sec", place)
        elif _NANOSECONDS.fullmatch(plain):
            parts.setdefault("nanosec", place)
        elif _BODY_COLUMN.fullmatch(plain):
            body_columns.append(place)
    return _Header(
        times,
        (parts["sec"], parts["nanosec"]) if len(parts) == 2 else None,
        min(body_columns, key=lambda k: names[k] != "body", default=None),
        {name: body for name, body in bodies.items() if not _is_rate(name, body)},
    )


def _is_rate(name: str, body: _Places) -> bool:
    """Whether columns are of a velocity, a force or the like."""
    return bool(_NO_BODY.fullmatch(name)) and not {*QUATERNION, *ANGLES, *MATRIX} & set(body)


# ---------- Rows of text


def _rows(lines: Sequence[str]) -> list[TextRow]:
    """Rows of a table; blanks separate where nothing else does."""
    rows = list(rows_of(lines))
    if all(len(row.cells) == 1 for row in rows):
        return [TextRow(row.line, row.cells[0].split()) for row in rows]
    return rows


def _names(cells: Sequence[str]) -> list[str]:
    """Names of a header, without the sign of a comment."""
    first = cells[0].lstrip("#% ")
    return [first, *cells[1:]] if first else [*cells[1:]]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def is_columns(first_lines: Sequence[str]) -> bool:
    """Whether the first line is the header of such a table."""
    try:
        cells = next(cells_of(first_lines)).cells
        header = _read_header(_names(cells[0].split() if len(cells) == 1 else cells))
    except (ConfigError, StopIteration, IndexError):
        return False
    return any("x" in body for body in header.bodies.values())


def is_numbers(first_lines: Sequence[str]) -> bool:
    """Whether most of the last of the first lines are four numbers and more, whatever they are."""
    try:
        rows = _rows(first_lines)[-10:]
    except ConfigError:
        return False
    long = [row for row in rows if sum(_number(cell) is not None for cell in row.cells) >= 4]
    return len(long) > 0.5 * len(rows)


ASK = "say what its columns are, such as --columns 't x y z qw qx qy qz'"
"""Advice for tables that are not understood."""


def read_columns(path: Path, options: ReadOptions) -> Capture:
    """Read such a table, by its header or by `ReadOptions.columns`."""
    notes: list[str] = []
    rows = _rows(whole_lines(path, notes))
    if options.columns:
        names, below = _said(options.columns, rows)
        capture = read_table(path, names, below, options, notes)
        _check_lengths(capture)
        notes += _doubts_of_order(capture)
        return replace(capture, format="table of columns as said")
    names = _names(rows[0].cells) if rows else []
    return read_table(path, names, rows[1:], options, notes)


def _said(columns: Sequence[str], rows: Sequence[TextRow]) -> tuple[list[str], Sequence[TextRow]]:
    """Names of all columns, of which the first were said, and the rows without a header."""
    header = _read_header(columns)
    places = [k for body in header.bodies.values() for k in body.values()]
    places += [*header.times, *(header.seconds or ())]
    places += [k for k, name in enumerate(columns) if name in (LEFT_OUT, "body")]
    if unknown := [name for k, name in enumerate(columns) if k not in places]:
        raise ConfigError(
            f"--columns: {shown(unknown[0])} is no column: t (or sec and nanosec), body, x, y, z, "
            f"qw to qz, roll, pitch, yaw, r11 to r33, - (left out); with units (t_ns) and bodies "
            "(load_x)"
        )
    if header.body is not None and set(header.bodies) != {""}:
        raise ConfigError("--columns: with body the other columns must not name bodies")
    marks = [place for place in places if place in {*header.times, *(header.seconds or ())}]
    start = 0
    while start < len(rows) and not _begins(rows[start].cells, marks):
        start += 1
    below = rows[start:]
    if not below:
        raise ConfigError("no row has a number where --columns says the time is")
    ((width, _),) = Counter(len(row.cells) for row in below).most_common(1)
    if width < len(columns):
        raise ConfigError(f"rows of {width} columns, --columns says {len(columns)}")
    return [*columns, *[LEFT_OUT] * (width - len(columns))], below


def _begins(cells: Sequence[str], marks: Sequence[int]) -> bool:
    """Whether a row has numbers at the places of the time."""
    return all(k < len(cells) and _number(cells[k]) is not None for k in marks)


LONGEST_OFF = 0.05
"""Share by which quaternions differ from unit length that are some other columns."""


def _check_lengths(capture: Capture) -> None:
    """Refuse quaternions that are none, by columns that were said."""
    for name, track in capture.tracks.items():
        q = track.rotation[np.isfinite(track.rotation).all(axis=1)]
        length = float(np.median(np.linalg.norm(q, axis=1))) if len(q) else 1.0
        if q.shape[1] == 4 and abs(length - 1.0) > LONGEST_OFF:
            raise ConfigError(
                f"quaternions of {name} have the length {length:.3g}, not 1: are the columns as "
                "--columns says?"
            )


STEEP_DEG = 45.0
"""Tilt of a body for half of a flight that another order of its quaternion explains better."""


def _doubts_of_order(capture: Capture) -> Iterator[str]:
    """Bodies that stand upright only with the scalar of their quaternions at the other end."""
    for name, track in capture.tracks.items():
        if track.rotation.shape[1] != 4:
            continue
        orders = ([0, 1, 2, 3], [1, 2, 3, 0], [3, 0, 1, 2])
        tilt_deg, *others = (_tilt_deg(track.rotation[:, order]) for order in orders)
        if tilt_deg > STEEP_DEG > min(others):
            yield (
                f"{name} is tilted by {tilt_deg:.0f} deg for half of the flight, by "
                f"{min(others):.0f} deg with qw at the other end of its quaternion: are the "
                "columns as --columns says?"
            )


def _tilt_deg(q: Array) -> float:
    """Median tilt of a body's z axis; NaN without attitude."""
    up = rotate(q, np.array([0.0, 0.0, 1.0]))[:, 2]
    up = up[np.isfinite(up)]
    return float(np.degrees(np.arccos(np.clip(np.median(up), -1.0, 1.0)))) if len(up) else np.nan


def read_table(
    path: Path,
    names: Sequence[str],
    rows: Sequence[TextRow],
    options: ReadOptions,
    notes: list[str],
    stamps: bool = False,
) -> Capture:
    """Read rows whose columns have these names.

    With `stamps` the last of several columns of time that changes is taken, else the first.
    """
    header = _read_header(names)
    if not rows:
        raise ConfigError("no rows below the header")
    if not header.times and header.seconds is None:
        raise ConfigError(f"column t is missing; {ASK}")
    _check_complete(header.bodies)
    whole = {name: body for name, body in header.bodies.items() if "x" in body}
    cells = [row.cells for row in rows]
    # Other programs write the time of logging first, whose cells every row has.
    times = list(header.times) if stamps else list(header.times[:1])
    times = times or list(header.seconds or ())
    column_places = [*times, *(place for body in whole.values() for place in body.values())]
    table, index = numbers_of(cells, len(names), column_places, notes)
    if not len(table):
        raise ConfigError(f"no rows of numbers; {ASK}")
    known_quantities = _in_si(names, column_places, table, options)
    columns = dict(zip(column_places, table.T, strict=True))
    if header.times:
        time = next((columns[k] for k in reversed(times) if np.ptp(columns[k]) > 0.0), None)
        time = columns[times[0]] if time is None else time
    else:
        if options.unit("time"):
            raise ConfigError("columns sec and nanosec say their unit; leave --units of time out")
        known_quantities = known_quantities | {"time"}
        time = columns[times[0]] + 1e-9 * columns[times[1]]
    by_row = not _sparse(table)
    if "" in whole:
        texts = [cells[k] for k in index]
        own = path.stem if path.stem in options.bodies.values() else name_in(path.stem)
        if set(whole) == {""}:
            labels = _labels(own, names, header.body, texts)
            if len(set(labels)) > 1:
                tracks = dict(_by_label(labels, time, columns, whole[""]))
                kind = "table of one row a body"
                return Capture(tracks, stated=known_quantities, format=kind, notes=notes)
            own = labels[0]
            _refuse_mixed(names, texts, time, columns, whole[""])
        whole = {name or own: body for name, body in whole.items()}
    tracks = {}
    setpoints = {}
    for name, body in whole.items():
        values = {part: columns[place] for part, place in body.items()}
        tracks[name] = _track(time, values, by_row)
        if DESIRED[0] in values:
            places = np.column_stack([values[part] for part in DESIRED[:3]])
            zero = np.zeros(len(table))
            level = np.column_stack([zero, zero, values[DESIRED[3]]])
            setpoints[name] = _kept(RawTrack(time, places, level), by_row)
    return Capture(
        tracks,
        setpoints,
        stated=known_quantities,
        format="table of columns",
        notes=notes,
        by_row=by_row,
        alone=len(whole) == 1,
    )


# ---------- One row a body


def _labels(
    own: str, names: Sequence[str], column: int | None, cells: Sequence[Sequence[str]]
) -> list[str]:
    """Name of the body of each row: of its column, else the file's own."""
    column = _naming_column(cells) if column is None else column
    if column is None:
        return [own] * len(cells)
    labels = [row[column] for row in cells]
    counts = Counter(labels)
    if len(counts) == len(labels):  # a number of the row
        return [own] * len(cells)
    if len(counts) == 1 and (body_of(own) or not body_of(labels[0])) and names[column] != "body":
        return [own] * len(cells)
    if _DRONE_COLUMN.fullmatch(names[column].lower()):
        return [f"drone_{int(text)}" if text.isdigit() else text for text in labels]
    return labels


def _naming_column(cells: Sequence[Sequence[str]]) -> int | None:
    """The column of several names of which one looks like a body."""
    for k, first in enumerate(cells[0]):
        if _number(first) is not None:
            continue
        labels = {row[k] for row in cells}
        if 1 < len(labels) <= MOST_BODIES and any(body_of(label) for label in labels):
            return k
    return None


def _by_label(
    labels: Sequence[str], time: Array, columns: Mapping[int, Array], body: _Places
) -> Iterator[tuple[str, RawTrack]]:
    label_of_row = np.array(labels)
    for label in dict.fromkeys(labels):
        which = label_of_row == label
        yield label, _track(time[which], {p: columns[k][which] for p, k in body.items()}, True)


MIXED_SHARE = 0.4
MIXED_REACH = 0.2
"""Rows at the time of another, and how far they are from it, as a share of all places' extent,
from which a table seems to hold several bodies."""

MOST_BODIES = 100
ROWS_TRIED = 4000


def _refuse_mixed(
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    time: Array,
    columns: Mapping[int, Array],
    body: _Places,
) -> None:
    """Refuse rows of several bodies: at one time, or on smooth paths by some other column."""
    place = np.column_stack([columns[body[axis]] for axis in POSITION])
    good = np.isfinite(place).all(axis=1) & np.isfinite(time)
    rows = np.flatnonzero(good)[np.argsort(time[good], kind="stable")][:ROWS_TRIED]
    time = time[rows]
    place = place[rows]
    steps = np.linalg.norm(np.diff(place, axis=0), axis=1)
    again = np.diff(time) == 0.0
    if not len(steps):
        return
    far = MIXED_REACH * np.linalg.norm(place.std(axis=0))
    together = again.mean() > MIXED_SHARE and np.median(steps[again]) > far
    column = _dividing_column([cells[k] for k in rows], columns, place, float(np.median(steps)))
    if not together and column is None:
        return
    if column is None:
        raise ConfigError(
            f"{len(time) / (len(time) - again.sum()):.2g} rows at one time, as of several bodies, "
            "and no column tells which: write a file for each"
        )
    example = [names[k] if k in columns else LEFT_OUT for k in range(max(*columns, column) + 1)]
    example[column] = "body"
    raise ConfigError(
        f"column {shown(names[column])} divides the rows into several smooth paths: if it names "
        f"their bodies, say --columns '{' '.join(example)}'"
    )


def _dividing_column(
    cells: Sequence[Sequence[str]], columns: Mapping[int, Array], place: Array, usual: float
) -> int | None:
    """The column by whose few texts the rows (T, 3) part into paths of far smaller steps."""
    for k in range(len(cells[0])):
        texts = np.array([row[k] for row in cells])
        kinds = np.unique(texts)
        if k in columns or not 1 < len(kinds) <= min(MOST_BODIES, len(texts) / 4):
            continue
        parts = [np.diff(place[texts == kind], axis=0) for kind in kinds]
        if np.median(np.linalg.norm(np.vstack(parts), axis=1)) < MIXED_REACH * usual:
            return k
    return None


# ---------- One body


def _sparse(table: np.ndarray) -> bool:
    """Whether most rows lack numbers, as where a row is a message of one topic."""
    return len(table) > 0 and bool(np.isnan(table).any(axis=1).mean() > 0.5)


def _rotation_parts(body: Mapping[str, object]) -> Sequence[str]:
    """Components of a body's attitude; none of a place without attitude."""
    return next((p for p in (QUATERNION, ANGLES, MATRIX) if any(part in body for part in p)), ())


def _track(time: np.ndarray, values: Mapping[str, np.ndarray], by_row: bool) -> RawTrack:
    """Poses of a body; of a sparse table the rows that hold one."""
    place = np.column_stack([values[part] for part in POSITION])
    parts = _rotation_parts(values)
    if not parts:
        rows = slice(None) if by_row else np.isfinite(place).all(axis=1)
        return RawTrack.of_place(time[rows], place[rows])
    rotation = np.column_stack([values[part] for part in parts])
    if parts == MATRIX:
        rotation = quaternions_of(rotation)
    return _kept(RawTrack(time, place, rotation), by_row)


def _kept(track: RawTrack, by_row: bool) -> RawTrack:
    finite = np.isfinite(track.position).all(axis=1) & np.isfinite(track.rotation).all(axis=1)
    return track if by_row else RawTrack(*(column[finite] for column in track))


def _check_complete(bodies: Mapping[str, _Places]) -> None:
    """Refuse a body of which a column is missing, by the column's name."""
    if not any("x" in body for body in bodies.values()):
        raise ConfigError(f"no column looks like a position, such as load_x; {ASK}")
    for name, body in bodies.items():
        if "x" not in body:
            continue
        parts = [*POSITION, *_rotation_parts(body)]
        parts += DESIRED if any(part in body for part in DESIRED) else ()
        absent = [part for part in parts if part not in body]
        if absent:
            whose = f"{shown(name)}_" if name else ""
            raise ConfigError(f"column {whose}{absent[0]} is missing")
    desired = {name for name, body in bodies.items() if DESIRED[0] in body}
    drones = [name for name in bodies if "x" in bodies[name] and _is_drone(name)]
    if "load" in desired and len(desired) > 1:
        absent = [name for name in drones if name not in desired]
        if absent:
            raise ConfigError(f"column {absent[0]}_{DESIRED[0]} is missing")


def _is_drone(name: str) -> bool:
    body = body_of(name)
    return body is not None and body[0] == "drone"


def _in_si(
    header: Sequence[str], places: Sequence[int], table: np.ndarray, options: ReadOptions
) -> frozenset[str]:
    """Bring columns whose names say a unit to SI, in place; the quantities that all of them say."""
    unit_flags: dict[str, list[bool]] = {quantity: [] for quantity in FACTORS}
    for k, place in enumerate(places):
        name, unit = _unit_of(header[place])
        quantity = _quantity(name)
        if quantity is None:
            continue
        has_unit = unit in FACTORS[quantity]
        unit_flags[quantity].append(has_unit)
        if not has_unit:
            continue
        if options.unit(quantity):
            raise ConfigError(
                f"column {shown(header[place])} says its unit; leave --units of {quantity} out"
            )
        table[:, k] *= FACTORS[quantity][unit]
    return frozenset(quantity for quantity, flags in unit_flags.items() if flags and all(flags))


def _quantity(name: str) -> str | None:
    """Quantity of a column: "time", "length" or "angle"; None for quaternions and matrices."""
    if _TIME.fullmatch(name.lower().removeprefix("field.")):
        return "time"
    component = _component(name)
    if component is None:
        return None
    part = component[1].removeprefix("des_")
    if part in POSITION:
        return "length"
    return "angle" if part in ANGLES else None


# ---------- Topics of ROS as text, one a file

_OF_ECHO = {
    6: "x y z",  # PointStamped
    10: "x y z qx qy qz qw",  # PoseStamped
    11: "- x y z qx qy qz qw",  # TransformStamped
    46: "x y z qx qy qz qw",  # PoseWithCovarianceStamped
    89: "- x y z qx qy qz qw",  # Odometry
}
"""Columns behind sec, nanosec and frame_id, by the number of all, as `topic echo --csv` writes."""


def is_echo(first_lines: Sequence[str]) -> bool:
    """Whether it is of `rostopic echo -p`, or rows of seconds, nanoseconds and a frame."""
    if first_lines[0].startswith("%time,field."):
        return is_columns(first_lines)
    rows = [row.cells for row in cells_of(first_lines)]
    return len(rows) > 1 and all(_is_stamped(cells) for cells in rows[:-1])


def _is_stamped(cells: Sequence[str]) -> bool:
    if len(cells) < 6 or not (cells[0].isdigit() and cells[1].isdigit()):
        return False
    return int(cells[1]) < 10**9 and bool(cells[2]) and _number(cells[2]) is None


def read_echo(path: Path, options: ReadOptions) -> Capture:
    """Read one topic, which the file's name tells.

    `rostopic echo -p` writes times in ns, the time of logging first; `ros2 topic echo --csv` no
    header.
    """
    notes: list[str] = []
    rows = _rows(whole_lines(path, notes))
    if rows[0].cells[0].startswith("%"):
        names = _names(rows[0].cells)
        capture = read_table(path, names, rows[1:], options, notes, stamps=True)
        units = {} if options.unit("time") else {"time": "ns"}
        known_quantities = capture.stated | {q for q in FACTORS if q in units}
        return replace(capture, units=units, stated=known_quantities, format="rostopic echo -p")
    ((width, _),) = Counter(len(row.cells) for row in rows).most_common(1)
    if width not in _OF_ECHO:
        raise ConfigError(
            f"a topic of {width} columns, no stamped pose; {ASK} with sec and nanosec for t"
        )
    names = ["sec", "nanosec", LEFT_OUT, *_OF_ECHO[width].split()]
    names += [LEFT_OUT] * (width - len(names))
    return replace(read_table(path, names, rows, options, notes), format="ros2 topic echo --csv")


# ---------- AirSim


def is_airsim(first_lines: Sequence[str]) -> bool:
    """Whether the first line is the header of AirSim's recording."""
    names = set(first_lines[0].split("\t"))
    return {"TimeStamp", "POS_X", "POS_Y", "POS_Z", "Q_W", "Q_X", "Q_Y", "Q_Z"} <= names


def read_airsim(path: Path, options: ReadOptions) -> Capture:
    """Read airsim_rec.txt: ms, NED and FRD, converted; one row a vehicle."""
    notes: list[str] = []
    rows = _rows(whole_lines(path, notes))
    names = {"VehicleName": "body", "TimeStamp": "t_ms"}
    header = [names.get(name, name) for name in rows[0].cells]
    capture = read_table(path, header, rows[1:], options, notes)
    tracks = {
        name: RawTrack(t.time, world_enu_ned(t.position), orientation_enu_ned(t.rotation))
        for name, t in capture.tracks.items()
    }
    notes.append("positions of AirSim are relative to the start of each vehicle (see --origin)")
    known_quantities = frozenset({"length", "time", "axes"})
    return replace(
        capture, tracks=tracks, stated=known_quantities, format="AirSim", notes=notes, alone=True
    )
