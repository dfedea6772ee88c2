"""ROS messages from arrays: one small function per message type of the bag.

Arrays keep the workspace's order (quaternions [w, x, y, z]); this is where ROS order begins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from musls_description.propulsion import Battery
from musls_sim.recording.cdr import to_cdr

if TYPE_CHECKING:
    from rosbags.interfaces import Typesdict
    from rosbags.typesys.store import Typestore


# ---------- Definitions: a store of all of ROS 2 takes 0.15 s

_DEFINITIONS = """
builtin_interfaces/Time: int32 sec, uint32 nanosec
builtin_interfaces/Duration: int32 sec, uint32 nanosec
std_msgs/Header: builtin_interfaces/Time stamp, string frame_id
std_msgs/String: string data
std_msgs/Float64: float64 data
std_msgs/ColorRGBA: float32 r, float32 g, float32 b, float32 a
geometry_msgs/Vector3: float64 x, float64 y, float64 z
geometry_msgs/Point: float64 x, float64 y, float64 z
geometry_msgs/Quaternion: float64 x, float64 y, float64 z, float64 w
geometry_msgs/Pose: geometry_msgs/Point position, geometry_msgs/Quaternion orientation
geometry_msgs/PoseStamped: std_msgs/Header header, geometry_msgs/Pose pose
geometry_msgs/Twist: geometry_msgs/Vector3 linear, geometry_msgs/Vector3 angular
geometry_msgs/TwistStamped: std_msgs/Header header, geometry_msgs/Twist twist
geometry_msgs/Accel: geometry_msgs/Vector3 linear, geometry_msgs/Vector3 angular
geometry_msgs/AccelStamped: std_msgs/Header header, geometry_msgs/Accel accel
geometry_msgs/Wrench: geometry_msgs/Vector3 force, geometry_msgs/Vector3 torque
geometry_msgs/WrenchStamped: std_msgs/Header header, geometry_msgs/Wrench wrench
geometry_msgs/Transform: geometry_msgs/Vector3 translation, geometry_msgs/Quaternion rotation
geometry_msgs/TransformStamped: std_msgs/Header header, string child_frame_id, \
geometry_msgs/Transform transform
tf2_msgs/TFMessage: geometry_msgs/TransformStamped[] transforms
rosgraph_msgs/Clock: builtin_interfaces/Time clock
sensor_msgs/JointState: std_msgs/Header header, string[] name, float64[] position, \
float64[] velocity, float64[] effort
sensor_msgs/BatteryState: uint8 POWER_SUPPLY_STATUS_UNKNOWN=0, uint8 \
POWER_SUPPLY_STATUS_CHARGING=1, uint8 POWER_SUPPLY_STATUS_DISCHARGING=2, uint8 \
POWER_SUPPLY_STATUS_NOT_CHARGING=3, uint8 POWER_SUPPLY_STATUS_FULL=4, uint8 \
POWER_SUPPLY_HEALTH_UNKNOWN=0, uint8 POWER_SUPPLY_HEALTH_GOOD=1, uint8 \
POWER_SUPPLY_HEALTH_OVERHEAT=2, uint8 POWER_SUPPLY_HEALTH_DEAD=3, uint8 \
POWER_SUPPLY_HEALTH_OVERVOLTAGE=4, uint8 POWER_SUPPLY_HEALTH_UNSPEC_FAILURE=5, uint8 \
POWER_SUPPLY_HEALTH_COLD=6, uint8 POWER_SUPPLY_HEALTH_WATCHDOG_TIMER_EXPIRE=7, uint8 \
POWER_SUPPLY_HEALTH_SAFETY_TIMER_EXPIRE=8, uint8 POWER_SUPPLY_TECHNOLOGY_UNKNOWN=0, uint8 \
POWER_SUPPLY_TECHNOLOGY_NIMH=1, uint8 POWER_SUPPLY_TECHNOLOGY_LION=2, uint8 \
POWER_SUPPLY_TECHNOLOGY_LIPO=3, uint8 POWER_SUPPLY_TECHNOLOGY_LIFE=4, uint8 \
POWER_SUPPLY_TECHNOLOGY_NICD=5, uint8 POWER_SUPPLY_TECHNOLOGY_LIMN=6, uint8 \
POWER_SUPPLY_TECHNOLOGY_TERNARY=7, uint8 POWER_SUPPLY_TECHNOLOGY_VRLA=8, std_msgs/Header header, \
float32 voltage, float32 temperature, float32 current, float32 charge, float32 capacity, float32 \
design_capacity, float32 percentage, uint8 power_supply_status, uint8 power_supply_health, uint8 \
power_supply_technology, bool present, float32[] cell_voltage, float32[] cell_temperature, string \
location, string serial_number
sensor_msgs/CompressedImage: std_msgs/Header header, string format, uint8[] data
visualization_msgs/UVCoordinate: float32 u, float32 v
visualization_msgs/MeshFile: string filename, uint8[] data
visualization_msgs/Marker: int32 ARROW=0, int32 CUBE=1, int32 SPHERE=2, int32 CYLINDER=3, \
int32 LINE_STRIP=4, int32 LINE_LIST=5, int32 CUBE_LIST=6, int32 SPHERE_LIST=7, int32 POINTS=8, \
int32 TEXT_VIEW_FACING=9, int32 MESH_RESOURCE=10, int32 TRIANGLE_LIST=11, int32 ARROW_STRIP=12, \
int32 ADD=0, int32 MODIFY=0, int32 DELETE=2, int32 DELETEALL=3, std_msgs/Header header, string ns, \
int32 id, int32 type, int32 action, geometry_msgs/Pose pose, geometry_msgs/Vector3 scale, \
std_msgs/ColorRGBA color, builtin_interfaces/Duration lifetime, bool frame_locked, \
geometry_msgs/Point[] points, std_msgs/ColorRGBA[] colors, string texture_resource, \
sensor_msgs/CompressedImage texture, visualization_msgs/UVCoordinate[] uv_coordinates, \
string text, string mesh_resource, visualization_msgs/MeshFile mesh_file, \
bool mesh_use_embedded_materials
"""


@cache
def jazzy() -> Typestore:
    """All messages of ROS 2 Jazzy."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


@cache
def _definitions() -> dict[str, str]:
    """Fields of the messages that are defined here, by full name."""
    definitions = {}
    for line in _DEFINITIONS.strip().splitlines():
        name, _, fields = line.partition(": ")
        definitions[name.replace("/", "/msg/")] = fields.replace(", ", "\n")
    return definitions


@cache
def recorded() -> Typestore:
    """The messages that `message_type` was asked for, and what they consist of."""
    # Imported here, because recording in memory needs none of it.
    from rosbags.typesys.store import Typestore

    return Typestore()


def message_type(name: str) -> Any:
    """Class of a message, e.g. "std_msgs/msg/String"; one that is not defined here is added."""
    store = recorded()
    if name in store.types:
        return store.types[name]
    if name in _definitions():
        store.register(_parsed(name))
    else:
        everything = jazzy()
        store.types = everything.types | store.types
        store.fielddefs = everything.fielddefs | store.fielddefs
    return store.types[name]


def _parsed(name: str) -> Typesdict:
    """A definition with those of the messages in it that are not known yet.

    Parsing all that stand here takes 20 ms.
    """
    from rosbags.typesys import get_types_from_msg

    parsed = get_types_from_msg(_definitions()[name], name)
    words = re.findall(r"\w+/\w+", _definitions()[name])
    for part in dict.fromkeys(word.replace("/", "/msg/") for word in words):
        if part not in parsed and part not in recorded().types:
            parsed |= _parsed(part)
    return parsed


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
