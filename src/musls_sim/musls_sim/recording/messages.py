"""ROS messages from arrays: one small function per message type of the bag.

Arrays keep the workspace's order (quaternions [w, x, y, z]); this is where ROS order begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_description.propulsion import Battery
from musls_sim.recording.cdr import to_cdr
from musls_sim.recording.message_types import message_type, recorded

Array = NDArray[np.float64]

WORLD = "world"

SINGLE = "single"
"""Name of a column whose numbers have single precision in their messages."""

_LINE_RGBA = (0.1, 0.1, 0.1, 1.0)
_LINE_WIDTH_MIN_M = 0.01
"""A rope of a few millimetres would not be seen in RViz."""


def _make(msgtype: str, *values: Any, **fields: Any) -> Any:
    package, name = msgtype.split("/")
    return message_type(f"{package}/msg/{name}")(*values, **fields)


def stamp(sec: int, nanosec: int) -> Any:
    """builtin_interfaces/Time."""
    return _make("builtin_interfaces/Time", sec, nanosec)


def header(time: Any, frame: str) -> Any:
    """std_msgs/Header."""
    return _make("std_msgs/Header", time, frame)


def vector(xyz: Array) -> Any:
    """geometry_msgs/Vector3 from (3,)."""
    return _make("geometry_msgs/Vector3", *xyz)


def point(xyz: Array) -> Any:
    """geometry_msgs/Point from (3,)."""
    return _make("geometry_msgs/Point", *xyz)


def quaternion(wxyz: Array) -> Any:
    """geometry_msgs/Quaternion from [w, x, y, z]."""
    w, x, y, z = wxyz
    return _make("geometry_msgs/Quaternion", x, y, z, w)


def clock(time: Any) -> Any:
    """rosgraph_msgs/Clock."""
    return _make("rosgraph_msgs/Clock", time)


def string(text: str) -> Any:
    """std_msgs/String."""
    return _make("std_msgs/String", text)


def pose_stamped(time: Any, position_enu_m: Array, orientation_wxyz: Array) -> Any:
    """geometry_msgs/PoseStamped of a body in the world, from (3,) and (4,)."""
    pose = _make("geometry_msgs/Pose", point(position_enu_m), quaternion(orientation_wxyz))
    return _make("geometry_msgs/PoseStamped", header(time, WORLD), pose)


def twist_stamped(time: Any, velocity_enu_m_s: Array, omega_enu_rad_s: Array) -> Any:
    """geometry_msgs/TwistStamped of a body, both parts seen in the world frame, from (3,), (3,)."""
    twist = _make("geometry_msgs/Twist", vector(velocity_enu_m_s), vector(omega_enu_rad_s))
    return _make("geometry_msgs/TwistStamped", header(time, WORLD), twist)


def accel_stamped(time: Any, acceleration_enu_m_s2: Array) -> Any:
    """geometry_msgs/AccelStamped in the world frame, without angular part, from (3,)."""
    accel = _make("geometry_msgs/Accel", vector(acceleration_enu_m_s2), vector(np.zeros(3)))
    return _make("geometry_msgs/AccelStamped", header(time, WORLD), accel)


def number(value: float) -> Any:
    """std_msgs/Float64."""
    return _make("std_msgs/Float64", float(value))


def wrench_stamped(time: Any, frame: str, force_n: Array, moment_n_m: Array | None = None) -> Any:
    """geometry_msgs/WrenchStamped in `frame`, without torque if none is given, from (3,), (3,)."""
    torque = vector(np.zeros(3) if moment_n_m is None else moment_n_m)
    wrench = _make("geometry_msgs/Wrench", vector(force_n), torque)
    return _make("geometry_msgs/WrenchStamped", header(time, frame), wrench)


def transforms(
    time: Any,
    frames: Sequence[str],
    positions_enu_m: Sequence[Array] | Array,
    orientations_wxyz: Array,
) -> Any:
    """tf2_msgs/TFMessage from the world to bodies, from (n, 3) and (n, 4)."""
    return _make("tf2_msgs/TFMessage", [
        _make(
            "geometry_msgs/TransformStamped", header(time, WORLD), frame,
            _make("geometry_msgs/Transform", vector(position), quaternion(orientation)),
        )
        for frame, position, orientation in zip(
            frames, positions_enu_m, orientations_wxyz, strict=True
        )
    ])  # fmt: skip


def rotor_speeds(time: Any, frame: str, speed_rad_s: Array) -> Any:
    """sensor_msgs/JointState with velocities only, names rotor_1 ..., from (n_rotors,)."""
    names = [f"rotor_{j + 1}" for j in range(len(speed_rad_s))]
    nothing = np.zeros(0)
    return _make(
        "sensor_msgs/JointState", header(time, frame), names, nothing, speed_rad_s, nothing
    )


def battery(time: Any, frame: str, spec: Battery, values: Array) -> Any:
    """sensor_msgs/BatteryState from voltage, current (< 0), charge [A h] and share of it, (4,).

    Args:
        time: Stamp.
        frame: The drone.
        spec: Which battery.
        values: The numbers.
    """
    kind: Any = message_type("sensor_msgs/msg/BatteryState")
    voltage, current, charge, share = values
    return kind(
        header=header(time, frame),
        voltage=voltage,
        temperature=np.nan,
        current=current,
        charge=charge,
        capacity=spec.capacity_ah,
        design_capacity=spec.capacity_ah,
        percentage=share,
        power_supply_status=kind.POWER_SUPPLY_STATUS_DISCHARGING,
        power_supply_health=kind.POWER_SUPPLY_HEALTH_GOOD,
        power_supply_technology=kind.POWER_SUPPLY_TECHNOLOGY_LIPO,
        present=True,
        cell_voltage=np.zeros(0, np.float32),
        cell_temperature=np.zeros(0, np.float32),
        location="",
        serial_number="",
    )


def line_strip(time: Any, number: int, width_m: float, points_enu_m: Array) -> Any:
    """visualization_msgs/Marker: a line through points of the world, from (n, 3).

    Args:
        time: Stamp.
        number: Marker id within the namespace "cable".
        width_m: Width of the line, raised to what can be seen.
        points_enu_m: Points of the line.
    """
    kind: Any = message_type("visualization_msgs/msg/Marker")
    width = max(width_m, _LINE_WIDTH_MIN_M)
    no_bytes = np.zeros(0, np.uint8)
    origin = _make("geometry_msgs/Pose", point(np.zeros(3)), quaternion(np.eye(4)[0]))
    return kind(
        header=header(time, WORLD),
        ns="cable",
        id=number,
        type=kind.LINE_STRIP,
        action=kind.ADD,
        pose=origin,
        scale=vector(np.array([width, 0.0, 0.0])),
        color=_make("std_msgs/ColorRGBA", *_LINE_RGBA),
        lifetime=_make("builtin_interfaces/Duration", 0, 0),
        frame_locked=False,
        points=[point(p) for p in points_enu_m],
        colors=[],
        texture_resource="",
        texture=_make("sensor_msgs/CompressedImage", header(stamp(0, 0), ""), "", no_bytes),
        uv_coordinates=[],
        text="",
        mesh_resource="",
        mesh_file=_make("visualization_msgs/MeshFile", "", no_bytes),
        mesh_use_embedded_materials=False,
    )


def serialize(message: Any) -> bytes:
    """CDR bytes of a message (little-endian, with encapsulation header)."""
    return to_cdr(message, recorded())
