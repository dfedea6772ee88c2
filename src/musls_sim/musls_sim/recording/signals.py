"""The recorded signals, in one table for writers, recorders, publishers and readers.

A signal of `SIGNALS` becomes messages on `/{owner}/{name}` in a bag and on a ROS graph, rows of
numbers in memory, and from either a part of a `musls_analysis.recordings.recording.Recording`.

Everything is seen in the world frame (ENU): poses, and both parts of a twist, so that the linear
velocity is the plant's own to the last bit and is the derivative of the pose's position (a
TwistStamped is expressed in its `frame_id`; only Odometry's twist is in the child frame). The
body rates are R(orientation_wxyz)^T times the recorded angular velocity.

A rig has anchors behind the drones: `/anchor_i/pose`, `/anchor_i/twist`, and in `/anchor_i/wrench`
the force and moment that hold, move or push it. `/load` of a rig without a load is what its plant
shows in row 0. `/cable_i/free_length` is there where winches or pulleys change it,
and `/cable_i/tensions` where `recording.tensions` asks for it.

`/cable_i/tension` carries two messages per time: the cut at the load (`cable_i/load_end`), then at
the drone (`cable_i/drone_end`); in a rig these are the ends 1 and 2 of the cable. Each is the force
of the upper side on the lower side in the frame of the link there, so x is the tension (positive:
pull) and y, z act across. Both frames are in /tf, beside the shapes and as often as they.

docs/recordings.md has the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)

from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.rotations import from_roll_pitch_yaw, parts_of, rotate
from musls_description.numerics.vectors import from_matrix, put_quaternion
from musls_description.system.propulsion import Battery
from musls_description.system.slung_system import RigSystem
from musls_sim.recording import messages as msg

Columns = Mapping[str, Array]
"""Arrays by "signal.column": of one row, or of many with the rows first."""

CLOCK = "/clock"
TF = "/tf"
STAGE = "/mission/stage"
EVENTS = "/events"

MODEL_PREFIX = "model/"
"""Prefix of the frames of robot_state_publisher, because load and drones have their parent
already."""

_FOREVER = QosTime(9223372036, 854775807)
_LINE_RGBA = (0.1, 0.1, 0.1, 1.0)
_LINE_WIDTH_MIN_M = 0.01
"""A rope of a few millimetres would not be seen in RViz."""


class Rate(Enum):
    """Recording rate of a signal; all signals of a rate are recorded together, in one row."""

    STATE = "at the recorder's rate_hz"
    SHAPE = "at its shape_rate_hz"
    SETPOINT = "at each change"
    ACCELERATION = "as often as it is told, where it is not NaN"
    REFERENCE = "at the recorder's rate_hz, where the load has a reference over time"


@dataclass(frozen=True)
class Column:
    """Numbers of a signal.

    Attributes:
        name: Name with unit and frame.
        field: Field of the message, e.g. "pose.position" (vectors and quaternions as a
            whole); "" for nowhere but in /tf.
        shape: Shape of the numbers of one owner, or a function of system and owner (from 0).
        source: Numbers of all owners, from system and session; None for what the recorder
            is told (`on_setpoint`, `on_acceleration`, `on_reference`).
        written: Function that gives the numbers to write, from a system's rows; None for the same.
    """

    name: str
    field: str
    shape: tuple[int, ...] | Callable[[RigSystem, int], tuple[int, ...]]
    source: Callable[[RigSystem, Any], Array] | None = None
    written: Callable[[RigSystem, Columns], Array] | None = None
    dtype: str = "<f8"


@dataclass(frozen=True)
class Signal:
    """A recorded signal of bodies, cables or drones.

    Attributes:
        name: End of its topics, `/{owner}/{name}`.
        type: Type of its messages; one with a header is stamped.
        ends: Two messages a time, in the frames `{owner}/{end}`.
        frame: Frame of the messages; "" for the owner's.
        constants: Other fields of the message, from system and owner (from 0).
    """

    name: str
    type: str
    rate: Rate
    owners: Callable[[RigSystem], list[str]]
    columns: tuple[Column, ...]
    ends: tuple[str, ...] = ()
    frame: str = msg.WORLD
    constants: Callable[[RigSystem, int], Mapping[str, Any]] = lambda system, i: {}

    def key(self, column: Column) -> str:
        """Name of a column in a row."""
        return f"{self.name}.{column.name}"


# ---------- Owners: names of bodies and cables


def drone_names(system: RigSystem) -> list[str]:
    """drone_1, drone_2 ..."""
    return [f"drone_{i + 1}" for i in range(system.n_drones)]


def anchor_names(system: RigSystem) -> list[str]:
    """anchor_1 ..."""
    return [f"anchor_{i + 1}" for i in range(len(system.anchors))]


def flown_names(system: RigSystem) -> list[str]:
    """Bodies that have set-points: load, drone_1, drone_2 ..."""
    return ["load", *drone_names(system)]


def frame_names(system: RigSystem) -> list[str]:
    """Frames of the bodies: load, drone_1, drone_2 ..., anchor_1 ..."""
    return [*flown_names(system), *anchor_names(system)]


def cable_names(system: RigSystem) -> list[str]:
    """cable_1, cable_2 ..."""
    return [f"cable_{i + 1}" for i in range(system.n_cables)]


def _carried(system: RigSystem) -> list[str]:
    """The load, if there is one."""
    return ["load"] if system.load is not None else []


def _reeled(system: RigSystem) -> list[str]:
    """Cables, if their free lengths change."""
    return cable_names(system) if system.winches or system.pulleys else []


def _weighed(system: RigSystem) -> list[str]:
    """Cables with load cells."""
    return [f"cable_{i}" for i, cable in enumerate(system.cables, 1) if cable.load_cell]


def _batteries(system: RigSystem) -> dict[str, tuple[int, Battery]]:
    """Row and battery of the drones that have one."""
    return {
        f"drone_{i + 1}": (i, drone.propulsion.battery)
        for i, drone in enumerate(system.drones)
        if drone.propulsion and drone.propulsion.battery
    }


def _powered(system: RigSystem) -> list[str]:
    return list(_batteries(system))


# ---------- Where the numbers come from


def _motion(first: int, end: int) -> Callable[[RigSystem, Any], Array]:
    """Columns of `PlantState.motion` of the bodies, anchors last."""

    def motion(system: RigSystem, session: Any) -> Array:
        state = session.plant.state
        bodies: Array = state.motion[..., first:end]
        if system.anchors:
            return np.concatenate([bodies, state.anchor_motion[..., first:end]], axis=-2)
        return bodies

    return motion


def _omega_in_world(system: RigSystem, rows: Columns) -> Array:
    return rotate(rows["pose.orientation_wxyz"], rows["twist.omega_enu_rad_s"])


def _battery(number: int) -> Callable[[RigSystem, Any], Array]:
    """Voltage, current, charge [A h] or share of charge, from `Power.batteries`."""

    def values(system: RigSystem, session: Any) -> Array:
        rows, batteries = zip(*_batteries(system).values(), strict=True)
        now = session.power.batteries[list(rows)]
        capacity_ah = np.array([battery.capacity_ah for battery in batteries])
        charge: Array = now["charge"]
        return (now["voltage"], -now["current"], capacity_ah * charge, charge)[number]

    return values


def _nodes(system: RigSystem, session: Any) -> Array:
    """Positions from end 1 (the load) to end 2, cable after cable, (points, 3)."""
    nodes = [session.plant.cable_nodes_enu_m(i) for i in range(system.n_cables)]
    return np.concatenate(nodes, axis=-2)


def _segment_places(system: RigSystem, session: Any) -> Array:
    """Middles of all segments [m] from end 1 along the cable at rest, (segments,)."""
    state = session.plant.state
    cables = system.cables
    lengths_m = state.free_length_m if state.reels else [cable.length_m for cable in cables]
    shares = [(np.arange(cable.links) + 0.5) / cable.links for cable in cables]
    return np.concatenate([share * m for share, m in zip(shares, lengths_m, strict=True)])


def _segment_tensions(system: RigSystem, session: Any) -> Array:
    """Tensions from end 1 to end 2, cable after cable, (segments,)."""
    return np.concatenate([session.plant.segment_tensions_n(i) for i in range(system.n_cables)])


def _segment_names(system: RigSystem, index: int) -> dict[str, Any]:
    return {"name": [f"segment_{j + 1}" for j in range(system.cables[index].links)]}


def _ages_of_news(system: RigSystem, session: Any) -> Array:
    """Age of the news that each drone has of the others, (n, n - 1)."""
    ages_s: Array = session.flying.network.ages_s(session.time_s)
    n = system.n_drones
    return ages_s[~np.eye(n, dtype=bool)].reshape(n, n - 1)


def _other_drones(system: RigSystem, index: int) -> dict[str, Any]:
    return {"name": [name for i, name in enumerate(drone_names(system)) if i != index]}


def _rotor_names(system: RigSystem, index: int) -> dict[str, Any]:
    return {"name": [f"rotor_{j + 1}" for j in range(system.n_rotors)]}


def _battery_constants(system: RigSystem, index: int) -> dict[str, Any]:
    _, battery = list(_batteries(system).values())[index]
    kind: Any = msg.types().types["sensor_msgs/msg/BatteryState"]
    return {
        "temperature": np.nan,
        "capacity": battery.capacity_ah,
        "design_capacity": battery.capacity_ah,
        "power_supply_status": kind.POWER_SUPPLY_STATUS_DISCHARGING,
        "power_supply_health": kind.POWER_SUPPLY_HEALTH_GOOD,
        "power_supply_technology": kind.POWER_SUPPLY_TECHNOLOGY_LIPO,
        "present": True,
    }


def _line(system: RigSystem, index: int) -> dict[str, Any]:
    kind: Any = msg.types().types["visualization_msgs/msg/Marker"]
    width_m = max(2.0 * system.cables[index].radius_m, _LINE_WIDTH_MIN_M)
    return {
        "ns": "cable",
        "id": index + 1,
        "type": kind.LINE_STRIP,
        "action": kind.ADD,
        "pose.orientation": (1.0, 0.0, 0.0, 0.0),
        "scale": (width_m, 0.0, 0.0),
        "color": _LINE_RGBA,
    }


# ---------- Frames at the ends of the cables, in which their forces are given

ALONG = (1.0, 0.0, 0.0)
UPRIGHT = 1e-9
"""Horizontal share below which a segment has no heading."""


def _link_turns(system: RigSystem, session: Any) -> Array:
    """Rotations of the first and last rigid links; NaN where there are none."""
    ends = [session.plant.cable_end_rotations(i) for i in range(system.n_cables)]
    if not ends or ends[0] is None:
        return np.array(np.nan)
    return _turns_of(np.stack(ends, axis=-4).reshape(-1, 3, 3))


@compiled()
def _turns_of(rotations: Array) -> Array:
    """Quaternions of rotation matrices, (k, 3, 3), as (k, 4)."""
    turns = np.empty((len(rotations), 4))
    for k in range(len(rotations)):
        put_quaternion(turns[k], from_matrix(rotations[k]))
    return turns


def _end_turns(system: RigSystem, rows: Columns) -> Array:
    """Frames of `PlantState.cable_force_n` to the world, (rows, n_cables, 2, 4) [w, x, y, z].

    x runs along the end link or segment from end 1 (the load) to end 2 (the drone). Rigid links
    tell y and z; a segment of a cable without twist has y horizontal, left of its heading.
    """
    turns = rows["shape.ends_wxyz"]
    if not np.isnan(turns[:1]).any():
        return turns
    nodes = rows["shape.nodes_enu_m"].reshape(len(turns), -1, 3)
    first = np.cumsum([0, *(cable.links + 1 for cable in system.cables)])
    low = np.stack([first[:-1], first[1:] - 2], axis=1)  # of the end segments
    x, y, z = parts_of(nodes[:, low + 1] - nodes[:, low])
    flat = np.hypot(x, y)
    heading = np.where(flat > UPRIGHT * np.abs(z), np.arctan2(y, x), 0.0)
    return from_roll_pitch_yaw(np.stack([0.0 * flat, -np.arctan2(z, flat), heading], axis=-1))


# ---------- The table

SIGNALS: dict[str, Signal] = {
    signal.name: signal
    for signal in (
        Signal(
            "pose",
            "geometry_msgs/msg/PoseStamped",
            Rate.STATE,
            frame_names,
            (
                Column("position_enu_m", "pose.position", (3,), _motion(0, 3)),
                Column("orientation_wxyz", "pose.orientation", (4,), _motion(6, 10)),
            ),
        ),
        Signal(
            "twist",
            "geometry_msgs/msg/TwistStamped",
            Rate.STATE,
            frame_names,
            (
                Column("velocity_enu_m_s", "twist.linear", (3,), _motion(3, 6)),
                Column("omega_enu_rad_s", "twist.angular", (3,), _motion(10, 13), _omega_in_world),
            ),
        ),
        Signal(
            "tension",
            "geometry_msgs/msg/WrenchStamped",
            Rate.STATE,
            cable_names,
            (
                Column(
                    "force_n", "wrench.force", (3,), lambda system, s: s.plant.state.cable_force_n
                ),
            ),
            ends=("load_end", "drone_end"),
        ),
        Signal(
            "tension_peak",
            "geometry_msgs/msg/WrenchStamped",
            Rate.STATE,
            cable_names,
            (
                Column(
                    "force_n",
                    "wrench.force",
                    (3,),
                    lambda system, s: s.tension_peaks.recent_n[..., None] * ALONG,
                ),
            ),
        ),
        Signal(
            "tensions",
            "sensor_msgs/msg/JointState",
            Rate.STATE,
            cable_names,
            (
                Column(
                    "place_m",
                    "position",
                    lambda system, i: (system.cables[i].links,),
                    _segment_places,
                ),
                Column(
                    "tension_n",
                    "effort",
                    lambda system, i: (system.cables[i].links,),
                    _segment_tensions,
                ),
            ),
            frame="",
            constants=_segment_names,
        ),
        Signal(
            "load_cell",
            "geometry_msgs/msg/WrenchStamped",
            Rate.STATE,
            _weighed,
            (
                Column(
                    "force_n",
                    "wrench.force",
                    (3,),
                    lambda system, s: np.multiply.outer(s.load_cells.measured_n, ALONG),
                ),
            ),
            ends=("load_end", "drone_end"),
        ),
        Signal(
            "rotors",
            "sensor_msgs/msg/JointState",
            Rate.STATE,
            drone_names,
            (
                Column(
                    "speed_rad_s",
                    "velocity",
                    lambda system, i: (system.n_rotors,),
                    lambda system, s: s.plant.state.rotor_speed_rad_s,
                ),
            ),
            frame="",
            constants=_rotor_names,
        ),
        Signal(
            "reading",
            "sensor_msgs/msg/JointState",
            Rate.STATE,
            lambda system: [],  # belongs to the scenario's sensors, see `recorded_signals`
            (Column("value", "position", (), lambda system, s: s.readings),),
            frame="",
        ),
        Signal(
            "heard",
            "sensor_msgs/msg/JointState",
            Rate.STATE,
            drone_names,
            (
                Column(
                    "age_s",
                    "position",
                    lambda system, i: (system.n_drones - 1,),
                    _ages_of_news,
                ),
            ),
            frame="",
            constants=_other_drones,
        ),
        Signal(
            "wrench",
            "geometry_msgs/msg/WrenchStamped",
            Rate.STATE,
            anchor_names,
            (
                Column(
                    "force_enu_n",
                    "wrench.force",
                    (3,),
                    lambda system, s: s.plant.state.anchor_wrench_n[..., :3],
                ),
                Column(
                    "moment_enu_n_m",
                    "wrench.torque",
                    (3,),
                    lambda system, s: s.plant.state.anchor_wrench_n[..., 3:],
                ),
            ),
        ),
        Signal(
            "free_length",
            "std_msgs/msg/Float64",
            Rate.STATE,
            _reeled,
            (Column("length_m", "data", (), lambda system, s: s.plant.state.free_length_m),),
        ),
        Signal(
            "battery",
            "sensor_msgs/msg/BatteryState",
            Rate.STATE,
            _powered,
            (
                Column("voltage_v", "voltage", (), _battery(0), dtype="<f4"),
                Column("current_a", "current", (), _battery(1), dtype="<f4"),
                Column("charge_ah", "charge", (), _battery(2), dtype="<f4"),
                Column("charge", "percentage", (), _battery(3), dtype="<f4"),
            ),
            frame="",
            constants=_battery_constants,
        ),
        Signal(
            "shape",
            "visualization_msgs/msg/Marker",
            Rate.SHAPE,
            cable_names,
            (
                Column(
                    "nodes_enu_m",
                    "points",
                    lambda system, i: (system.cables[i].links + 1, 3),
                    _nodes,
                ),
                Column("ends_wxyz", "", (2, 4), _link_turns, _end_turns),
            ),
            constants=_line,
        ),
        Signal(
            "setpoint",
            "geometry_msgs/msg/PoseStamped",
            Rate.SETPOINT,
            flown_names,
            (
                Column("position_enu_m", "pose.position", (3,)),
                Column("orientation_wxyz", "pose.orientation", (4,)),
            ),
        ),
        Signal(
            "setpoint_accel",
            "geometry_msgs/msg/AccelStamped",
            Rate.ACCELERATION,
            drone_names,
            (Column("acceleration_enu_m_s2", "accel.linear", (3,)),),
        ),
        Signal(
            "reference",
            "geometry_msgs/msg/PoseStamped",
            Rate.REFERENCE,
            _carried,
            (
                Column("position_enu_m", "pose.position", (3,)),
                Column("orientation_wxyz", "pose.orientation", (4,)),
            ),
        ),
    )
}
"""Signals by name. A new signal is an entry here, and a source of its numbers that the session
reaches."""


ROWS = {"pose", "twist", "tension", "tension_peak", "load_cell", "rotors", "wrench", "free_length"}
"""Signals of which a session keeps rows in compiled code."""

# ---------- A row: all signals of one rate


class TopicPlace(NamedTuple):
    """A message of a row: signal, name and row (from 0) of its owner, end (from 0)."""

    signal: Signal
    owner: str
    row: int
    end: int

    @property
    def topic(self) -> str:
        """Topic."""
        return f"/{self.owner}/{self.signal.name}"

    @property
    def frame(self) -> str:
        """Frame in which the signal's numbers are given."""
        if self.signal.ends:
            return f"{self.owner}/{self.signal.ends[self.end]}"
        return self.signal.frame or self.owner


class Asked(NamedTuple):
    """Signals that are recorded only on request.

    Attributes:
        readings: Names of the numbers of each of the scenario's own sensors.
        tensions: Whether it has the tensions of all segments of the cables.
        heard: Whether it has the ages of the drones' news from each other.
    """

    readings: Sequence[Sequence[str]] = ()
    tensions: bool = False
    heard: bool = False


NOTHING = Asked()


def recorded_signals(extra: Asked) -> list[Signal]:
    """The signals of the table that a recording may have."""
    reading = SIGNALS["reading"]
    (column,) = reading.columns
    of_sensors = replace(
        reading,
        owners=lambda system: [f"sensor_{k}" for k, names in enumerate(extra.readings, 1) if names],
        columns=(replace(column, shape=lambda system, i: (len(reading_names[i]),)),),
        constants=lambda system, i: {"name": [*reading_names[i]]},
    )
    reading_names = [names for names in extra.readings if names]
    signals = SIGNALS | {reading.name: of_sensors}
    on_request = {"tensions": extra.tensions, "heard": extra.heard}
    return [s for name, s in signals.items() if on_request.get(name, True)]


class Row:
    """Layout of a row of numbers of a system, and its messages.

    Attributes:
        shapes: Shapes of the columns, by "signal.column"; owners of unequal size follow each other.
        places: Messages of the signals, in their order in the file.
    """

    def __init__(self, system: RigSystem, rate: Rate, asked: Asked = NOTHING) -> None:
        self.rate = rate
        self._system = system
        self._signals = [s for s in recorded_signals(asked) if s.rate is rate and s.owners(system)]
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}
        self._parts: dict[str, list[tuple[slice, tuple[int, ...]]]] = {}
        self._columns = {s.key(column): column for s in self._signals for column in s.columns}
        for signal in self._signals:
            for column in signal.columns:
                self._lay_out(signal, column)
        # Owner by owner, with all signals of the same owners.
        kinds = dict.fromkeys(signal.owners for signal in self._signals)
        self.places = [
            TopicPlace(signal, owner, i, end)
            for owners in kinds
            for i, owner in enumerate(owners(system))
            for signal in self._signals
            if signal.owners is owners
            for end in range(len(signal.ends) or 1)
        ]

    def _lay_out(self, signal: Signal, column: Column) -> None:
        n = len(signal.owners(self._system))
        key = signal.key(column)
        shape = column.shape
        each = [shape(self._system, i) if callable(shape) else shape for i in range(n)]
        ends = (len(signal.ends),) if signal.ends else ()
        each = [(*ends, *size) for size in each]
        bounds = np.cumsum([0, *(prod(size) for size in each)]).tolist()
        self._parts[key] = [
            (slice(a, b), size) for a, b, size in zip(bounds, bounds[1:], each, strict=False)
        ]
        same = len(set(each)) == 1
        self.shapes[key] = (n, *each[0]) if same else (sum(e[0] for e in each), *each[0][1:])
        self.dtypes[key] = column.dtype

    @property
    def topics(self) -> dict[str, str]:
        """Message type of each topic, in the order of the file."""
        topics = {place.topic: place.signal.type for place in self.places}
        if self.rate is Rate.STATE:
            return {CLOCK: "rosgraph_msgs/msg/Clock", TF: "tf2_msgs/msg/TFMessage", **topics}
        return topics | ({TF: "tf2_msgs/msg/TFMessage"} if self.rate is Rate.SHAPE else {})

    @property
    def signals(self) -> set[str]:
        """Names of the signals."""
        return {signal.name for signal in self._signals}

    def values(self, session: Any, *times: int) -> list[Array]:
        """The numbers now, in the order of the columns; of many times if arrays begin with them."""
        arrays = []
        for key, column in self._columns.items():
            if column.source:
                values = column.source(self._system, session)
                shape = times + self.shapes[key]
                arrays.append(values.reshape(shape) if values.ndim else np.full(shape, values))
        return arrays

    def written(self, columns: Columns) -> dict[str, Array]:
        """Turn rows of recorded columns into what is written."""
        return {
            key: column.written(self._system, columns) if column.written else columns[key]
            for key, column in self._columns.items()
        }

    def of_owner(self, columns: Columns, signal: Signal, column: Column, index: int) -> Array:
        """Numbers of one owner in many rows, (rows, ...)."""
        values = columns[signal.key(column)]
        part, shape = self._parts[signal.key(column)][index]
        flat = values.reshape(len(values), prod(values.shape[1:]))
        return flat[:, part].reshape(len(values), *shape)

    def messages(self, stamp_ns: int, row: Columns) -> list[tuple[str, Any]]:
        """Topic and message of all that one row, as written, becomes."""
        rows = {key: values[None] for key, values in row.items()}
        names = frame_names(self._system)
        out = []
        if self.rate is Rate.STATE:
            poses = row["pose.position_enu_m"], row["pose.orientation_wxyz"]
            out = [(CLOCK, msg.clock(stamp_ns)), (TF, msg.transforms(stamp_ns, names, *poses))]
        out += [(place.topic, self._message(place, stamp_ns, rows)) for place in self.places]
        if self.rate is Rate.SHAPE:
            out.append((TF, self._cable_ends(stamp_ns, rows)))
        return out

    def _message(self, place: TopicPlace, stamp_ns: int, rows: Columns) -> Any:
        signal = place.signal
        index = place.row
        message = msg.empty(signal.type)
        if msg.has_header(signal.type):
            message.header.stamp = msg.stamp(stamp_ns)
            message.header.frame_id = place.frame
        for field, value in signal.constants(self._system, index).items():
            msg.put(message, field, value)
        for column in signal.columns:
            if column.field:
                value = self.of_owner(rows, signal, column, index)[0]
                msg.put(message, column.field, value[place.end] if signal.ends else value[()])
        return message

    def _cable_ends(self, stamp_ns: int, rows: Columns) -> Any:
        shape = SIGNALS["shape"]
        tension = SIGNALS["tension"]
        places = []
        turns = []
        for i in range(self._system.n_cables):
            nodes, ends = (self.of_owner(rows, shape, c, i)[0] for c in shape.columns)
            places += [nodes[0], nodes[-1]]
            turns += list(ends)
        frames = [f"{c}/{end}" for c in cable_names(self._system) for end in tension.ends]
        return msg.transforms(stamp_ns, frames, np.array(places), np.array(turns))

    def nothing(self) -> dict[str, Array]:
        """A row from which every other one differs."""
        return {key: np.full((1, *shape), np.nan) for key, shape in self.shapes.items()}

    def kept(self, columns: Columns, before: Columns) -> NDArray[np.bool_] | None:
        """Mask of the messages that are recorded, (rows, places); None for all.

        Args:
            columns: Rows as written.
            before: The row before them, (1, ...) each.
        """
        if not self.places:  # a rig without drones has no set-points
            return None
        if self.rate is Rate.SETPOINT:
            both = {key: np.concatenate([before[key], columns[key]]) for key in columns}
            numbers = [self._numbers(both, place) for place in self.places]
            masks = [(n[1:] != n[:-1]).any(axis=1) for n in numbers]
        elif self.rate is Rate.ACCELERATION:
            numbers = [self._numbers(columns, place) for place in self.places]
            masks = [np.isfinite(n).all(axis=1) for n in numbers]
        else:
            return None
        return np.column_stack(masks)

    def _numbers(self, columns: Columns, place: TopicPlace) -> Array:
        """All numbers of an owner, (rows, numbers)."""
        parts = [
            self.of_owner(columns, place.signal, column, place.row)
            for column in place.signal.columns
        ]
        return np.column_stack([part.reshape(len(part), prod(part.shape[1:])) for part in parts])


def recorded_topics(system: RigSystem, extra: Asked = NOTHING) -> dict[str, str]:
    """Topics of a bag and their message types, in the order of the channels."""
    rows = (Row(system, rate, extra).topics for rate in Rate)
    message_types = {topic: msgtype for topics in rows for topic, msgtype in topics.items()}
    return message_types | {STAGE: msg.STRING, EVENTS: msg.STRING}


FAULT = "fault"
"""Kind of the event that ended a flight through the graph: a node, PX4 or agent is gone."""


def event_text(kind: str, what: str) -> str:
    """Text of an event on `/events`."""
    return f"{kind}: {what}"


def qos(topic: str) -> Qos:
    """Profile with which `ros2 bag play` shall offer a topic: reliable everywhere.

    What is sent at changes only is latched (transient local), so that a late subscriber gets it.
    """
    latched = topic in (STAGE, EVENTS) or topic.endswith("/setpoint")
    depth = {"/tf": 100, "/clock": 1, STAGE: 100, EVENTS: 100}.get(topic, 1 if latched else 10)
    return Qos(
        QosHistory.KEEP_LAST,
        depth,
        QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        _FOREVER,
        _FOREVER,
        QosLiveliness.AUTOMATIC,
        _FOREVER,
        avoid_ros_namespace_conventions=False,
    )
