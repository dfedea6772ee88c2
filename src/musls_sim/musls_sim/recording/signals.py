"""The topics of a bag and what goes into them.

Everything is seen in the world frame (ENU): poses, and both parts of a twist, so that the linear
velocity is the plant's own to the last bit and is the derivative of the pose's position (a
TwistStamped is expressed in its `frame_id`; only Odometry's twist is in the child frame). The
body rates are R(orientation_wxyz)^T times the recorded angular velocity.

A rig has anchors behind the drones: `/anchor_i/pose`, `/anchor_i/twist`, and in `/anchor_i/wrench`
the force and moment that hold, move or push it. `/load` of a rig without a load is what its plant
shows in row 0. `/cable_i/free_length` is there where winches or wheels change it.

`/cable_i/tension` carries two messages per time: the cut at the load (`cable_i/load_end`), then at
the drone (`cable_i/drone_end`); in a rig these are the ends 1 and 2 of the cable. Each is the force
of the upper side on the lower side in the frame of the link there, so x is the tension (positive:
pull) and y, z act across. Both frames are in /tf, beside the shapes and as often as they.

`/drone_i/battery` says how the battery of a drone that has one (`propulsion.battery`) is: voltage,
current (negative: it gives), charge [A h] and its share of the capacity.

`/drone_i/setpoint_accel` is the acceleration that a controller asks of a drone's autopilot (PX4's
acceleration set-point, gravity not in it), from when it asks on; it comes while one asks only.

`/events` carries what happens suddenly, as text `kind: what`, e.g. `cable_broken: cable_2`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

from musls_description.rotations import from_matrix, rotate
from musls_description.system import RigSystem
from musls_sim.plants.interface import Plant, PlantState
from musls_sim.recording import messages as msg

# ---------- Frames at the ends of the cables, in which their forces are given

UPRIGHT = 1e-9
"""Horizontal share below which a segment has no heading."""


def end_turns(plant: Plant, nodes: Sequence[Array]) -> Array:
    """Orientation of the frames in which `PlantState.cable_force_n` is given.

    x runs along the end link or segment from end 1 (the load) to end 2 (the drone). Rigid links
    tell y and z; a segment of a cable without twist has y horizontal, left of its heading.

    Args:
        plant: Has the cables.
        nodes: Their nodes from end 1 to end 2, world, (nodes, 3) each.

    Returns:
        [w, x, y, z] of the frames at end 1 and 2 to the world, (n_cables, 2, 4).
    """
    ends = [plant.cable_end_rotations(i) for i in range(len(nodes))]
    if ends and ends[0] is not None:
        turns = np.array(ends)
    else:
        turns = _of_segments(np.array([(n[1] - n[0], n[-1] - n[-2]) for n in nodes]))
    return from_matrix(turns).reshape(-1, 2, 4)


def _of_segments(along: Array) -> Array:
    """Rotation matrices of segments that run along vectors, (..., 3) to (..., 3, 3)."""
    length = np.linalg.norm(along, axis=-1, keepdims=True)
    up = np.array([0.0, 0.0, 1.0])
    x = np.where(length > 0.0, along / np.where(length > 0.0, length, 1.0), up)
    flat = np.hypot(x[..., 0], x[..., 1])
    upright = flat <= UPRIGHT
    scale = np.where(upright, 1.0, flat)
    cosine = np.where(upright, 1.0, x[..., 0] / scale)
    sine = np.where(upright, 0.0, x[..., 1] / scale)
    y = np.stack([-sine, cosine, np.zeros_like(sine)], axis=-1)
    turns: Array = np.stack([x, y, np.cross(x, y)], axis=-1)
    return turns


Array = NDArray[np.float64]
Columns = Mapping[str, tuple[int, ...]]
"""Name and shape of the arrays that make a row."""
Row = Mapping[str, Array]
Messages = list[tuple[str, Any]]
"""Topic and message, in the order of the file."""
RowMessages = Callable[[Any, Row], Messages]
"""All messages that one row becomes, from its stamp and its arrays."""

STAGE = "/mission/stage"
EVENTS = "/events"

MODEL_PREFIX = "model/"
"""Of the frames of robot_state_publisher, because load and drones have their parent already."""

_FOREVER = QosTime(9223372036, 854775807)


def body_names(system: RigSystem) -> list[str]:
    """Frames of the bodies: load, drone_1, drone_2 ..., anchor_1 ..."""
    anchors = (f"anchor_{i + 1}" for i in range(len(system.anchors)))
    return [*flown_names(system), *anchors]


def flown_names(system: RigSystem) -> list[str]:
    """Frames of the bodies that have set-points: load, drone_1, drone_2 ..."""
    return ["load", *(f"drone_{i + 1}" for i in range(system.n_drones))]


def reels(system: RigSystem) -> bool:
    """Whether free lengths of cables change."""
    return bool(system.winches or system.wheels)


def state_columns(system: RigSystem) -> Columns:
    """Arrays of a row of state as it is recorded, row 0 of the first four the load."""
    n, anchors = system.n_drones, len(system.anchors)
    rows = 1 + n + anchors
    columns: dict[str, tuple[int, ...]] = {
        "position_enu_m": (rows, 3),
        "orientation_wxyz": (rows, 4),
        "velocity_enu_m_s": (rows, 3),
        "omega_body_rad_s": (rows, 3),
        "rotor_speed_rad_s": (n, system.n_rotors),
        "cable_force_n": (system.n_cables, 2, 3),
    }
    if anchors:
        columns["anchor_wrench_n"] = (anchors, 6)
    if reels(system):
        columns["free_length_m"] = (system.n_cables,)
    return columns


def state_values(state: PlantState) -> list[Array]:
    """What stands in the columns of `state_columns`, in their order; rows of more are left out."""
    values = [
        state.position_enu_m, state.orientation_wxyz, state.velocity_enu_m_s,
        state.omega_body_rad_s, state.rotor_speed_rad_s, state.cable_force_n,
    ]  # fmt: skip
    if len(state.anchor_motion):
        anchors = state.anchor_motion
        parts = (anchors[:, 0:3], anchors[:, 6:10], anchors[:, 3:6], anchors[:, 10:13])
        values[:4] = [np.concatenate(pair) for pair in zip(values, parts, strict=False)]
        values.append(state.anchor_wrench_n)
    if state.reels:
        values.append(state.free_length_m)
    return values


def published_columns(system: RigSystem) -> Columns:
    """Arrays of a row of state as `state_messages` takes it: body rates seen in the world."""
    columns = dict(state_columns(system))
    columns["omega_enu_rad_s"] = columns.pop("omega_body_rad_s")
    return columns


def published(state: Row) -> Row:
    """Turn rows of recorded state into what `state_messages` takes."""
    row = dict(state)
    row["omega_enu_rad_s"] = rotate(row["orientation_wxyz"], row.pop("omega_body_rad_s"))
    return row


def state_messages(system: RigSystem) -> RowMessages:
    """Clock, transforms, poses, twists, tensions and rotor speeds."""
    bodies, drones = body_names(system), flown_names(system)[1:]
    anchors = bodies[1 + len(drones) :]

    def build(time: Any, row: Row) -> Messages:
        position, orientation = row["position_enu_m"], row["orientation_wxyz"]
        out = [
            ("/clock", msg.clock(time)),
            ("/tf", msg.transforms(time, bodies, position, orientation)),
        ]
        for k, body in enumerate(bodies):
            velocity, omega = row["velocity_enu_m_s"][k], row["omega_enu_rad_s"][k]
            out.append((f"/{body}/pose", msg.pose_stamped(time, position[k], orientation[k])))
            out.append((f"/{body}/twist", msg.twist_stamped(time, velocity, omega)))
        for i, force in enumerate(row["cable_force_n"]):
            for end, frame in enumerate(cable_end_frames(i + 1)):
                wrench = msg.wrench_stamped(time, frame, force[end])
                out.append((f"/cable_{i + 1}/tension", wrench))
        for drone, speed in zip(drones, row["rotor_speed_rad_s"], strict=True):
            out.append((f"/{drone}/rotors", msg.rotor_speeds(time, drone, speed)))
        for anchor, wrench in zip(anchors, row.get("anchor_wrench_n", ()), strict=True):
            pair = wrench[:3], wrench[3:]
            out.append((f"/{anchor}/wrench", msg.wrench_stamped(time, msg.WORLD, *pair)))
        for i, length in enumerate(row.get("free_length_m", ()), start=1):
            out.append((f"/cable_{i}/free_length", msg.number(length)))
        return out

    return build


NODES = "nodes_{}_enu_m"
"""Name of the column with the joints of a cable (from 1)."""
CABLE_ENDS = "cable_end_wxyz"


def shape_columns(system: RigSystem) -> Columns:
    """Arrays of a row of cable shapes: each cable's joints and its end links' turns, world."""
    columns: dict[str, tuple[int, ...]] = {
        NODES.format(i): (cable.links + 1, 3) for i, cable in enumerate(system.cables, start=1)
    }
    return columns | {CABLE_ENDS: (system.n_cables, 2, 4)}


def shape_values(plant: Plant, system: RigSystem) -> list[Array]:
    """What stands in the columns of `shape_columns`, in their order."""
    nodes = [plant.cable_nodes_enu_m(i) for i in range(system.n_cables)]
    return [*nodes, end_turns(plant, nodes)]


def cable_end_frames(index: int) -> tuple[str, str]:
    """Frames of a cable (from 1) at its ends 1 and 2."""
    return f"cable_{index}/load_end", f"cable_{index}/drone_end"


def shape_messages(system: RigSystem) -> RowMessages:
    """The cables as lines, and the frames at their ends."""
    numbers = range(1, system.n_cables + 1)
    frames = [frame for i in numbers for frame in cable_end_frames(i)]

    def build(time: Any, row: Row) -> Messages:
        nodes = [row[NODES.format(i)] for i in numbers]
        ends = [end for joints in nodes for end in (joints[0], joints[-1])]
        return [
            *(
                (f"/cable_{i}/shape", msg.line_strip(time, i, 2.0 * cable.radius_m, joints))
                for i, cable, joints in zip(numbers, system.cables, nodes, strict=True)
            ),
            ("/tf", msg.transforms(time, frames, ends, row[CABLE_ENDS].reshape(-1, 4))),
        ]

    return build


def setpoint_columns(system: RigSystem) -> Columns:
    """Arrays of a row of set-points, row 0 the load."""
    n = system.n_drones
    return {"position_enu_m": (1 + n, 3), "orientation_wxyz": (1 + n, 4)}


def setpoint_messages(system: RigSystem) -> RowMessages:
    """The set-points of load and drones, in the order of the rows."""
    bodies = flown_names(system)

    def build(time: Any, row: Row) -> Messages:
        poses = zip(bodies, row["position_enu_m"], row["orientation_wxyz"], strict=True)
        return [(f"/{body}/setpoint", msg.pose_stamped(time, p, q)) for body, p, q in poses]

    return build


def acceleration_columns(system: RigSystem) -> Columns:
    """Arrays of a row of acceleration set-points."""
    return {"acceleration_enu_m_s2": (system.n_drones, 3)}


def acceleration_messages(system: RigSystem) -> RowMessages:
    """The acceleration set-points of the drones."""

    def build(time: Any, row: Row) -> Messages:
        return [
            (f"/drone_{i}/setpoint_accel", msg.accel_stamped(time, acceleration))
            for i, acceleration in enumerate(row["acceleration_enu_m_s2"], start=1)
        ]

    return build


class RowKind(NamedTuple):
    """Messages that are made of rows of one kind.

    Attributes:
        build: Makes the messages of a row.
        columns: Arrays of a row that it takes.
    """

    build: RowMessages
    columns: Columns


def battery_rows(system: RigSystem) -> list[int]:
    """Drones that have a battery, from 0."""
    return [
        i for i, drone in enumerate(system.drones) if drone.propulsion and drone.propulsion.battery
    ]


def battery_columns(system: RigSystem) -> Columns:
    """Arrays of a row of batteries: voltage, negative current, charge [A h], share of charge."""
    return {msg.SINGLE: (len(battery_rows(system)), 4)}


def battery_messages(system: RigSystem) -> RowMessages:
    """The batteries of the drones that have one."""
    batteries = [(i, system.drones[i].propulsion) for i in battery_rows(system)]

    def build(time: Any, row: Row) -> Messages:
        return [
            (f"/drone_{i + 1}/battery", msg.battery(time, f"drone_{i + 1}", p.battery, values))
            for (i, p), values in zip(batteries, row[msg.SINGLE], strict=True)
            if p is not None and p.battery is not None
        ]

    return build


def battery_kind(system: RigSystem) -> RowKind | None:
    """Batteries; None where no drone has one."""
    if not battery_rows(system):
        return None
    return RowKind(battery_messages(system), battery_columns(system))


def acceleration_kind(system: RigSystem) -> RowKind | None:
    """Acceleration set-points; None where there are no drones."""
    if not system.n_drones:
        return None
    return RowKind(acceleration_messages(system), acceleration_columns(system))


def row_kinds(system: RigSystem) -> tuple[RowKind, RowKind, RowKind]:
    """State, cable shapes and set-points."""
    return (
        RowKind(state_messages(system), published_columns(system)),
        RowKind(shape_messages(system), shape_columns(system)),
        RowKind(setpoint_messages(system), setpoint_columns(system)),
    )


def recorded_topics(system: RigSystem) -> dict[str, str]:
    """Topics of a bag and their message types, in the order of the channels."""
    time = msg.stamp(0, 0)
    messages = [
        pair
        for kind in (*row_kinds(system), acceleration_kind(system), battery_kind(system))
        if kind is not None
        for pair in kind.build(time, {name: np.zeros(size) for name, size in kind.columns.items()})
    ]
    messages += [(STAGE, msg.string("")), (EVENTS, msg.string(""))]
    return {topic: message.__msgtype__ for topic, message in messages}


def event_text(kind: str, what: str) -> str:
    """Text of an event on `/events`."""
    return f"{kind}: {what}"


def qos(topic: str) -> Qos:
    """Profile with which `ros2 bag play` shall offer a topic: reliable everywhere.

    What is sent at changes only is latched (transient local), so that a late subscriber gets it.
    """
    latched = topic in (STAGE, EVENTS) or topic.endswith("/setpoint")
    depth = {"/tf": 100, "/clock": 1, EVENTS: 100}.get(topic, 1 if latched else 10)
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
