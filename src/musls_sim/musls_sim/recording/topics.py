"""The topics of a bag and what goes into them.

Everything is seen in the world frame (ENU): poses, and both parts of a twist, so that the linear
velocity is the plant's own to the last bit and is the derivative of the pose's position (a
TwistStamped is expressed in its `frame_id`; only Odometry's twist is in the child frame). The
body rates are R(orientation_wxyz)^T times the recorded angular velocity.

`/cable_i/tension` carries two messages per time: the cut at the load (`cable_i/load_end`), then at
the drone (`cable_i/drone_end`). Each is the force of the upper side on the lower side in the frame
of the link there, so x is the tension (positive: pull) and y, z act across. These two frames are
names only and not part of /tf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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

from musls_description.system import SlungLoadSystem
from musls_sim.recording import messages as msg

Array = NDArray[np.float64]
Columns = Mapping[str, tuple[int, ...]]
"""Name and shape of the arrays that make a row."""
Row = Mapping[str, Array]
Messages = list[tuple[str, Any]]
"""Topic and message, in the order of the file."""
RowMessages = Callable[[Any, Row], Messages]
"""All messages that one row becomes, from its stamp and its arrays."""

STAGE = "/mission/stage"

_FOREVER = QosTime(9223372036, 854775807)


def body_names(system: SlungLoadSystem) -> list[str]:
    """Frames of the bodies: load, drone_1, drone_2 ..."""
    return ["load", *(f"drone_{i + 1}" for i in range(system.n_drones))]


def state_columns(system: SlungLoadSystem) -> Columns:
    """Arrays of a row of state, row 0 of the first four the load."""
    n, rotors = system.n_drones, len(system.drones[0].rotors)
    return {
        "position_enu_m": (1 + n, 3),
        "orientation_wxyz": (1 + n, 4),
        "velocity_enu_m_s": (1 + n, 3),
        "omega_enu_rad_s": (1 + n, 3),
        "rotor_speed_rad_s": (n, rotors),
        "cable_force_n": (n, 2, 3),
    }


def state_messages(system: SlungLoadSystem) -> RowMessages:
    """Clock, transforms, poses, twists, tensions and rotor speeds."""
    bodies = body_names(system)

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
            cable = f"cable_{i + 1}"
            for end, frame in enumerate((f"{cable}/load_end", f"{cable}/drone_end")):
                out.append((f"/{cable}/tension", msg.wrench_stamped(time, frame, force[end])))
        for drone, speed in zip(bodies[1:], row["rotor_speed_rad_s"], strict=True):
            out.append((f"/{drone}/rotors", msg.rotor_speeds(time, drone, speed)))
        return out

    return build


def shape_columns(system: SlungLoadSystem) -> Columns:
    """Arrays of a row of cable shapes: the joints of each cable, world frame."""
    return {f"nodes_{i + 1}_enu_m": (c.links + 1, 3) for i, c in enumerate(system.cables)}


def shape_messages(system: SlungLoadSystem) -> RowMessages:
    """The cables as lines."""

    def build(time: Any, row: Row) -> Messages:
        return [
            (f"/cable_{i}/shape", msg.line_strip(time, i, 2.0 * cable.radius_m, nodes))
            for i, (cable, nodes) in enumerate(
                zip(system.cables, row.values(), strict=True), start=1
            )
        ]

    return build


def setpoint_columns(system: SlungLoadSystem) -> Columns:
    """Arrays of a row of set-points, row 0 the load."""
    n = system.n_drones
    return {"position_enu_m": (1 + n, 3), "orientation_wxyz": (1 + n, 4)}


def setpoint_messages(system: SlungLoadSystem) -> RowMessages:
    """The set-points of load and drones, in the order of the rows."""
    bodies = body_names(system)

    def build(time: Any, row: Row) -> Messages:
        poses = zip(bodies, row["position_enu_m"], row["orientation_wxyz"], strict=True)
        return [(f"/{body}/setpoint", msg.pose_stamped(time, p, q)) for body, p, q in poses]

    return build


def qos(topic: str) -> Qos:
    """Profile with which `ros2 bag play` shall offer a topic: reliable everywhere.

    What is sent at changes only is latched (transient local), so that who comes late sees it.
    """
    latched = topic == STAGE or topic.endswith("/setpoint")
    depth = {"/tf": 100, "/clock": 1}.get(topic, 1 if latched else 10)
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
