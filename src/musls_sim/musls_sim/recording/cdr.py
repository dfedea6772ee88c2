"""CDR bytes of a message, by the field definitions of rosbags (little-endian, XCDR1 of DDS-XTypes).

rosbags' own serialiser is quicker, but it writes and compiles twelve functions for every message
type before the first message: 50 ms for the types of a flight, which needs some thirty messages of
them to know where its numbers go. A test compares the two byte for byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys.store import Typestore

_ENCAPSULATION = b"\x00\x01\x00\x00"

_BYTES = {"byte": "uint8", "char": "uint8", "octet": "uint8"}
"""Names of ROS for a byte."""


def to_cdr(message: Any, store: Typestore) -> bytes:
    """Serialise a message, with the encapsulation header.

    Args:
        message: Of a class of `store.types`.
        store: Knows the fields of the message and of all messages in it.
    """
    out = bytearray()
    _write_fields(out, message, message.__msgtype__, store)
    return _ENCAPSULATION + bytes(out)


def _write_fields(out: bytearray, message: Any, name: str, store: Typestore) -> None:
    for field, description in store.fielddefs[name][1]:
        _write(out, getattr(message, field), description, store)


def _write(out: bytearray, value: Any, description: Any, store: Typestore) -> None:
    """Append a field; every number stands at a multiple of its size."""
    kind, what = description
    if kind == Nodetype.NAME:
        _write_fields(out, value, what, store)
    elif kind == Nodetype.BASE and what[0] == "string":
        data = value.encode() + b"\x00"
        _write_numbers(out, len(data), "uint32")
        out += data
    elif kind == Nodetype.BASE:
        _write_numbers(out, value, what[0])
    else:
        part, _ = what
        if kind == Nodetype.SEQUENCE:
            _write_numbers(out, len(value), "uint32")
        if part[0] == Nodetype.BASE and part[1][0] != "string":
            _write_numbers(out, value, part[1][0])
        else:
            for item in value:
                _write(out, item, part, store)


def _write_numbers(out: bytearray, values: Any, kind: str) -> None:
    numbers = np.asarray(values, np.dtype(_BYTES.get(kind, kind)).newbyteorder("<"))
    if numbers.size:
        out += bytes(-len(out) % numbers.itemsize)
        out += numbers.tobytes()
