"""Decodes many CDR messages of one ROS type at once, as columns of a byte matrix.

A bag holds tens of thousands of small messages whose layout differs only by the length of their
strings and sequences. Messages of equal length are stacked to a matrix; a walk over the type's
fields then reads each field of all messages with one slice. Where a length inside the messages
differs, the stack is split by that length and walked again, so the result is right for any input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

ENCAPSULATION = 4
"""Bytes before the data: representation identifier (the second byte is 1 for little endian)."""


class _UnevenError(Exception):
    """The messages of a stack differ in the length of a string or sequence."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.lengths = lengths  # (n,)


class CdrStack:
    """Messages of equal length, read field by field from front to back.

    Attributes:
        size: Number of messages n.
    """

    def __init__(self, rows: np.ndarray) -> None:
        """Start at the first field.

        Args:
            rows: Raw messages with their encapsulation header (n, bytes), one byte order.
        """
        self.size = len(rows)
        self._rows = rows
        self._order = "<" if rows[0, 1] & 1 else ">"
        self._at = ENCAPSULATION

    def numbers(self, dtype: str, count: int = 1) -> np.ndarray:
        """Read an array of numbers from every message.

        Args:
            dtype: NumPy type without byte order, e.g. "f8".
            count: Numbers per message.

        Returns:
            Numbers (n, count).

        Raises:
            ValueError: The messages end before.
        """
        if count == 0:
            return np.empty((self.size, 0), dtype)
        width = np.dtype(dtype).itemsize
        start = ENCAPSULATION + -(-(self._at - ENCAPSULATION) // width) * width  # aligned
        return np.ascontiguousarray(self._take(start, width * count)).view(self._order + dtype)

    def length(self) -> int:
        """Read the length of a string or sequence, the same in all messages of the stack."""
        lengths = self.numbers("u4")[:, 0]
        if np.any(lengths != lengths[0]):
            raise _UnevenError(lengths)
        return int(lengths[0])

    def string(self) -> np.ndarray:
        """Read a string from every message.

        Returns:
            UTF-8 bytes without the closing zero (n,).
        """
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


Walk = Callable[[CdrStack], tuple[np.ndarray, ...]]
"""Reads the fields of a type; every array has one row per message."""


def decode(
    messages: Sequence[bytes], walk: Walk
) -> tuple[list[np.ndarray], list[tuple[np.ndarray, ...]]]:
    """Decode messages of one type.

    Args:
        messages: Serialised messages.
        walk: Reads the wanted fields from a stack.

    Returns:
        Per stack the indices of its messages, and per stack the result of the walk.

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
    indices, results = [], []
    while pending:
        chosen, rows = pending.pop()
        try:
            results.append(walk(CdrStack(rows)))
            indices.append(chosen)
        except _UnevenError as uneven:
            for value in np.unique(uneven.lengths):
                mask = uneven.lengths == value
                pending.append((chosen[mask], rows[mask]))
    return indices, results


def decode_columns(messages: Sequence[bytes], walk: Walk) -> tuple[np.ndarray, ...]:
    """Decode messages whose fields have the same shape in all messages.

    Args:
        messages: Serialised messages, at least one.
        walk: Reads the wanted fields from a stack.

    Returns:
        The walk's arrays, rows in the order of the messages.

    Raises:
        ValueError: A message is too short, or the shapes differ.
    """
    indices, results = decode(messages, walk)
    order = np.argsort(np.concatenate(indices), kind="stable")
    return tuple(np.concatenate(parts)[order] for parts in zip(*results, strict=True))
