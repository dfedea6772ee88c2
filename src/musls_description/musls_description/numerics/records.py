"""All arrays of a plant or controller in one piece of memory, as its compiled step takes them.

A call into compiled code costs some 0.1 us for every array of numbers and more for every array of
records. So they keep all arrays in one, and the compiled code, which gets the address alone, cuts
the views out of it, which costs a tenth: `x = memory_at(address, size)`, then
`x[begin[0] : begin[1]].view(DTYPE)`, with a `reshape` for two dimensions. The views own no memory,
so that no references are counted; the caller keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import DTypeLike, NDArray

from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled


def pack(arrays: Mapping[str, NDArray[Any]]) -> tuple[Array, NDArray[np.int64], dict[str, Any]]:
    """Put arrays of eight-byte numbers, or of records of them, behind each other.

    Returns the memory; where each array begins in it, and its end, (len(arrays) + 1,); and views of
    the memory with the arrays' values by their names.
    """
    sizes = [array.nbytes // 8 for array in arrays.values()]
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    memory = np.zeros(begin[-1])
    views = {}
    for (name, array), low, high in zip(arrays.items(), begin[:-1], begin[1:], strict=True):
        views[name] = memory[low:high].view(array.dtype).reshape(array.shape)
        views[name][...] = array
    return memory, begin, views


class TiedToMemory:
    """Base of what keeps addresses of its own memory: a copy would work on that of the original."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse `copy` and `pickle` (raises ConfigError)."""
        raise ConfigError(
            f"a {type(self).__name__} cannot be copied or pickled: build another one from the "
            "same scenario"
        )


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def pointer(typing_context, address):
    """The number of an address as a pointer."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def call_at(typing_context, function, address):
    """Call the `CompiledStage` that is at an address, with the address of a record."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kind), [arguments[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@compiled()
def memory_at(address, size):
    """An array of floats at an address (`array.ctypes.data`); see the module's text."""
    return carray(pointer(address), (size,), np.float64)


@compiled()
def vector_at(address):
    """Three numbers."""
    return carray(pointer(address), (3,), np.float64)


@compiled()
def grid_at(address, rows, columns):
    """A table of numbers, (rows, columns)."""
    return carray(pointer(address), (rows, columns), np.float64)


# ---------- Tables that a record of the system knows the places of
#
# The compiled functions of a plant take this record alone, a mere pointer, and open the tables out
# of it where they need them: `bodies_of(t)`, `table_at(t.speed)`. It has a `PLACE` for each.

PLACE = np.dtype([("address", np.int64), ("rows", np.int64), ("columns", np.int64)])
"""Address of a table, its rows, and the numbers or records in each of them."""


def pack_tables(arrays: Mapping[str, NDArray[Any]]) -> tuple[Array, dict[str, Any]]:
    """Pack arrays, and note in the record `system`, (1,), which is one of them, where they are."""
    memory, _, views = pack(arrays)
    system = views["system"][0]
    for name, table in views.items():
        if name != "system":
            system[name] = table.ctypes.data, len(table), math.prod(table.shape[1:])
    return memory, views


def opener(name: str, dtype: DTypeLike) -> Callable[[Any], Any]:
    """Compiled function that opens a table of records out of the record of the system."""

    @compiled()
    def records(t):
        return carray(pointer(t[name].address), (t[name].rows,), dtype)

    return records


def grid_opener(name: str, dtype: DTypeLike) -> Callable[[Any], Any]:
    """The same for a table of two dimensions."""

    @compiled()
    def grid(t):
        return carray(pointer(t[name].address), (t[name].rows, t[name].columns), dtype)

    return grid


@compiled()
def record_at(address, dtype):
    """The record at an address, such as that of the system."""
    return carray(pointer(address), (1,), dtype)[0]


@compiled()
def numbers_at(place):
    """Numbers at a place, (rows,)."""
    return carray(pointer(place.address), (place.rows,), np.float64)


@compiled()
def table_at(place):
    """Table of numbers at a place, (rows, columns)."""
    return carray(pointer(place.address), (place.rows, place.columns), np.float64)


@compiled()
def copy_numbers(out, values):
    """Copy an array of numbers, (n,); `out[:] = values` takes seconds to compile."""
    for i in range(values.shape[0]):
        out[i] = values[i]


@compiled()
def copy_table(out, values):
    """Copy a table of numbers, (n, m)."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = values[i, j]
