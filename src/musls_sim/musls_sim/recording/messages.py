"""ROS messages as objects: made empty, filled by the names of their fields, serialised.

Arrays keep the workspace's order (quaternions [w, x, y, z]); this is where ROS order begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from rosbags.interfaces import Nodetype

from musls_description.numerics.arrays import Array

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

WORLD = "world"
STRING = "std_msgs/msg/String"

_COMPONENTS = {
    "geometry_msgs/msg/Vector3": "xyz",
    "geometry_msgs/msg/Point": "xyz",
    "geometry_msgs/msg/Quaternion": "wxyz",
    "std_msgs/msg/ColorRGBA": "rgba",
}
"""Messages that hold the numbers of one small array."""

_BYTES = ("byte", "char", "octet")


@cache
def types() -> Typestore:
    """All messages of ROS 2 Jazzy, the distribution that the workspace targets."""
    # Imported here, because recording in memory needs none of it.
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


def has_header(msgtype: str) -> bool:
    """Whether messages of a type carry a stamp and a frame."""
    return any(name == "header" for name, _ in types().fielddefs[msgtype][1])


def empty(msgtype: str) -> Any:
    """A message of zeros, empty strings and empty sequences, e.g. of "std_msgs/msg/String"."""
    fields = types().fielddefs[msgtype][1]
    return types().types[msgtype](**{name: _empty_field(*field) for name, field in fields})


def _empty_field(kind: Nodetype, what: Any) -> Any:
    if kind == Nodetype.NAME:
        return empty(what)
    if kind == Nodetype.BASE:
        return {"string": "", "bool": False}.get(what[0], 0)
    (part_kind, part), count = what
    if part_kind == Nodetype.BASE and part[0] != "string":
        dtype = "uint8" if part[0] in _BYTES else part[0]
        return np.zeros(count if kind == Nodetype.ARRAY else 0, dtype)
    return [_empty_field(part_kind, part) for _ in range(count if kind == Nodetype.ARRAY else 0)]


def put(message: Any, field: str, value: Any) -> None:
    """Set a field of a message.

    `field`: e.g. "pose.position".
    `value`: what it becomes; vectors, quaternions [w, x, y, z] and colours from arrays, lists of
    points from (n, 3).
    """
    *path, last = field.split(".")
    for name in path:
        message = getattr(message, name)
    fields: dict[str, Any] = dict(types().fielddefs[message.__msgtype__][1])
    kind, what = fields[last]
    if kind == Nodetype.NAME:
        value = _small_array(what, value)
    elif kind == Nodetype.SEQUENCE and what[0][0] == Nodetype.NAME:
        value = [_small_array(what[0][1], row) for row in value]
    setattr(message, last, value)


def _small_array(msgtype: str, values: Any) -> Any:
    if msgtype not in _COMPONENTS:
        return values
    return types().types[msgtype](**dict(zip(_COMPONENTS[msgtype], values, strict=True)))


def stamped(msgtype: str, stamp_ns: int, frame: str, **fields: Any) -> Any:
    """A message with a header; dots in the names of its fields are double underscores."""
    message = empty(msgtype)
    message.header.stamp = stamp(stamp_ns)
    message.header.frame_id = frame
    for name, value in fields.items():
        put(message, name.replace("__", "."), value)
    return message


def stamp(stamp_ns: int) -> Any:
    """builtin_interfaces/Time."""
    sec, nanosec = divmod(stamp_ns, 1_000_000_000)
    return types().types["builtin_interfaces/msg/Time"](sec, nanosec)


def clock(time_ns: int) -> Any:
    """rosgraph_msgs/Clock."""
    return types().types["rosgraph_msgs/msg/Clock"](stamp(time_ns))


def string(text: str) -> Any:
    """std_msgs/String."""
    return types().types[STRING](text)


def transforms(
    stamp_ns: int, frames: Sequence[str], positions_enu_m: Array, orientations_wxyz: Array
) -> Any:
    """tf2_msgs/TFMessage from the world to bodies, from (n, 3) and (n, 4)."""
    message = empty("tf2_msgs/msg/TFMessage")
    for frame, position, turn in zip(frames, positions_enu_m, orientations_wxyz, strict=True):
        one = stamped(
            "geometry_msgs/msg/TransformStamped",
            stamp_ns,
            WORLD,
            child_frame_id=frame,
            transform__translation=position,
            transform__rotation=turn,
        )
        message.transforms.append(one)
    return message


def serialize(message: Any) -> bytes:
    """CDR bytes of a message (little-endian, with encapsulation header)."""
    return bytes(types().serialize_cdr(message, message.__msgtype__))
