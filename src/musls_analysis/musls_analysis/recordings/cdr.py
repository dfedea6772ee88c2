"""Decodes many CDR messages of one ROS type at once, as columns of a byte matrix.

A bag holds tens of thousands of small messages whose layout differs only by the length of their
strings and sequences. Messages of equal length are stacked to a matrix; the type's definition is
then walked once, and each field of all messages read with one slice. Where a length inside the
messages differs, the stack is split by that length and walked again, so the result is right for any
input.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
from rosbags.interfaces import Nodetype

from musls_sim.recording.messages import types

ENCAPSULATION = 4
"""Bytes before the data: representation identifier (the second byte is 1 for little endian)."""


class _UnevenError(Exception):
    """The messages of a stack differ in the length of a string or sequence."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.lengths = lengths  # (n,)


class CdrStack:
    """`size` messages of equal length, read field by field from front to back."""

    def __init__(self, rows: np.ndarray) -> None:
        """Start at the first field of raw messages with header (n, bytes), of one byte order."""
        self.size = len(rows)
        self._rows = rows
        self._order: Literal["<", ">"] = "<" if rows[0, 1] & 1 else ">"
        self._at = ENCAPSULATION

    def numbers(self, dtype: str, count: int = 1) -> np.ndarray:
        """Read numbers from every message, (n, count); the type is without byte order, "f8".

        Raises:
            ValueError: The messages end before.
        """
        if count == 0:
            return np.empty((self.size, 0), dtype)
        width = np.dtype(dtype).itemsize
        start = ENCAPSULATION + -(-(self._at - ENCAPSULATION) // width) * width  # aligned
        return np.ascontiguousarray(self._take(start, width * count)).view(
            np.dtype(dtype).newbyteorder(self._order)
        )

    def length(self) -> int:
        """Read the length of a string or sequence, the same in all messages of the stack."""
        lengths = self.numbers("u4")[:, 0]
        if np.any(lengths != lengths[0]):
            raise _UnevenError(lengths)
        return int(lengths[0])

    def string(self) -> np.ndarray:
        """Read a string from every message: UTF-8 bytes without the closing zero (n,)."""
        length = self.length()
        if length == 0:
            return np.full(self.size, b"")
        raw = np.ascontiguousarray(self._take(self._at, length))
        return raw.view(f"S{length}")[:, 0]  # "S" drops trailing zeros

    def _take(self, start: int, width: int) -> np.ndarray:
        end = start + width
        if end > self._rows.shape[1]:
            raise ValueError(f"a message of {self._rows.shape[1]} bytes ends too early")
        self._at = end
        return self._rows[:, start:end]


Fields = dict[str, Any]
"""Fields of a message type by name: arrays with one row per message, in a message within the
message again such a dictionary, and lists of what sequences of unlike parts hold. Messages of
numbers of one type are arrays (n, k): vectors x, y, z; quaternions w, x, y, z."""


def _read(stack: CdrStack, msgtype: str) -> Fields:
    return {name: _field(stack, *field) for name, field in types().fielddefs[msgtype][1]}


def _field(stack: CdrStack, kind: Nodetype, what: Any) -> Any:
    if kind == Nodetype.NAME:
        return _reordered(what, _numbers(stack, what, 1)) if _number(what) else _read(stack, what)
    if kind == Nodetype.BASE:
        return stack.string() if what[0] == "string" else stack.numbers(_dtype(what[0]))[:, 0]
    (part_kind, part), count = what
    count = count if kind == Nodetype.ARRAY else stack.length()
    if part_kind == Nodetype.NAME and _number(part):
        numbers = _numbers(stack, part, count)
        return _reordered(part, numbers.reshape(stack.size, count, -1 if count else 1))
    if part_kind == Nodetype.BASE and part[0] != "string":
        return stack.numbers(_dtype(part[0]), count)
    return [_field(stack, part_kind, part) for _ in range(count)]


@cache
def _number(msgtype: str) -> tuple[str, int] | None:
    """Type and count of the numbers that a message consists of; None for another message."""
    fields: list[Any] = [field for _, field in types().fielddefs[msgtype][1]]
    kinds = {what[0] if kind == Nodetype.BASE else "string" for kind, what in fields}
    return None if len(kinds) != 1 or "string" in kinds else (_dtype(kinds.pop()), len(fields))


def _numbers(stack: CdrStack, msgtype: str, count: int) -> np.ndarray:
    dtype, each = _number(msgtype) or ("", 0)
    return stack.numbers(dtype, each * count)


def _reordered(msgtype: str, numbers: np.ndarray) -> np.ndarray:
    wxyz = msgtype == "geometry_msgs/msg/Quaternion"
    return numbers[..., [3, 0, 1, 2]] if wxyz else numbers


def _dtype(name: str) -> str:
    return {"byte": "uint8", "char": "uint8", "octet": "uint8"}.get(name, name)


def decode(messages: Sequence[bytes], msgtype: str) -> list[tuple[np.ndarray, Fields]]:
    """Decode serialised messages of one type, e.g. "geometry_msgs/msg/PoseStamped".

    Raises:
        ValueError: A message is too short for its type.
    """
    lengths = np.fromiter(map(len, messages), np.int64, len(messages))
    pending = []
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        if length < ENCAPSULATION:
            raise ValueError(f"a message of {length} bytes is not CDR")
        raw = b"".join([messages[i] for i in chosen.tolist()])
        rows = np.frombuffer(raw, np.uint8).reshape(len(chosen), length)
        little = (rows[:, 1] & 1) == 1
        pending += [(chosen[m], rows[m]) for m in (little, ~little) if m.any()]
    found = []
    while pending:
        chosen, rows = pending.pop()
        try:
            found.append((chosen, _read(CdrStack(rows), msgtype)))
        except _UnevenError as uneven:
            for value in np.unique(uneven.lengths):
                mask = uneven.lengths == value
                pending.append((chosen[mask], rows[mask]))
    return found


def decode_columns(
    messages: Sequence[bytes], msgtype: str, fields: Sequence[str]
) -> list[np.ndarray | list[np.ndarray]]:
    """Decode chosen fields, e.g. "pose.position", of serialised messages, at least one.

    Each field of all messages comes in their order: as an array, or if its shape is not the same in
    all of them, as a list.

    Raises:
        ValueError: A message is too short for its type.
    """
    stacks = decode(messages, msgtype)
    order = np.argsort(np.concatenate([chosen for chosen, _ in stacks]), kind="stable")
    columns: list[np.ndarray | list[np.ndarray]] = []
    for field in fields:
        parts = [_part(stack, field) for _, stack in stacks]
        if len({part.shape[1:] for part in parts}) == 1:
            columns.append(np.concatenate(parts)[order])
        else:
            rows = [row for part in parts for row in part]
            columns.append([rows[k] for k in order.tolist()])
    return columns


def _part(fields: Fields, name: str) -> np.ndarray:
    found: Any = fields
    for word in name.split("."):
        found = found[word]
    part: np.ndarray = found
    return part
