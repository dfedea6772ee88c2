"""ROS messages that every flight records, defined here: a store of all of ROS 2 takes 0.15 s.

The definitions are those of Jazzy, the distribution that the workspace targets; a test compares
them with the store of all.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rosbags.interfaces import Typesdict
    from rosbags.typesys.store import Typestore

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
