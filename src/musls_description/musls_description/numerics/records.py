"""All arrays of a plant or controller in one block of memory, as compiled code takes them.

A call into compiled code costs some 0.1 us for every array of numbers and more for every array of
records. So they keep all arrays in one, and the compiled code gets the address alone of a record
in it, which says where the arrays are: in bytes from itself, so that a copy of the block works on
itself. The views that it opens cost a tenth, and own no memory, so that no references are counted;
the caller keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import DTypeLike, NDArray

from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled


def pack(arrays: Mapping[str, NDArray[Any]]) -> tuple[Array, dict[str, Any]]:
    """Put arrays of eight-byte numbers, or of records of them, behind each other.

    Returns the memory, and views of it with the arrays' values by their names.
    """
    memory = np.zeros(sum(array.nbytes for array in arrays.values()) // 8)
    views = {}
    at = 0
    for name, array in arrays.items():
        views[name] = memory[at : at + array.nbytes // 8].view(array.dtype).reshape(array.shape)
        views[name][...] = array
        at += array.nbytes // 8
    return memory, views


class TiedToMemory:
    """Base of what keeps views of its own memory: a copy would work on that of the original."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse `copy` and `pickle` (raises ConfigError)."""
        raise ConfigError(
            f"a {type(self).__name__} cannot be copied or pickled: build another one from the "
            "same scenario; a session or batch gives a snapshot of its state"
        )


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def pointer(typing_context, address):
    """The number of an address as a pointer."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def beyond(typing_context, record, offset):
    """Pointer to a place a number of bytes beyond the begin of a record."""

    def generate(context, builder, signature, arguments):
        begin = builder.bitcast(arguments[0], context.get_value_type(types.voidptr))
        return builder.gep(begin, [arguments[1]])

    return types.voidptr(record, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def address_of(typing_context, record):
    """Address of a record in memory."""

    def generate(context, builder, signature, arguments):
        return builder.ptrtoint(arguments[0], ir.IntType(64))

    return types.intp(record), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def call_at(typing_context, function, address):
    """Call the `CompiledStage` that is at an address, with the address of a record."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kind), [arguments[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def load_word(builder: Any, record: Any, at: int) -> Any:
    """Code that reads the whole number that is some bytes behind the begin of a record."""
    place = cgutils.get_record_member(builder, record, at, ir.IntType(64))
    return builder.load(place, align=8)


def generate_view(
    context: Any, builder: Any, view: types.Array, pointer: Any, shape: Sequence[Any], apart: Any
) -> Any:
    """Code that makes an array of what is at a pointer; `apart`: numbers from row to row, or None.

    numba's `carray` is for processors only, and a function for cards cannot give an array back:
    what opens arrays is an intrinsic, which becomes part of its caller.
    """
    data_type = context.get_data_type(view.dtype)
    width = context.get_constant(types.intp, context.get_abi_sizeof(data_type))
    strides = [width]
    for size in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    if apart is not None:
        strides[0] = builder.mul(width, apart)
    array = context.make_array(view)(context, builder)
    context.populate_array(
        array,
        data=builder.bitcast(pointer, data_type.as_pointer()),
        shape=shape,
        strides=strides,
        itemsize=width,
        meminfo=None,
    )
    return array._getvalue()


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def array_at(typing_context, pointer, shape, dtype):
    """Array of a shape, a tuple, and a type at a pointer."""
    view = types.Array(dtype.dtype, len(shape), "C")

    def generate(context, builder, signature, arguments):
        sizes = cgutils.unpack_tuple(builder, arguments[1], len(shape))
        return generate_view(context, builder, view, arguments[0], sizes, None)

    return view(pointer, shape, dtype), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def memory_at(typing_context, address, size):
    """An array of floats at an address (`array.ctypes.data`); see the module's text."""
    view = types.Array(types.float64, 1, "C")

    def generate(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))
        return generate_view(context, builder, view, pointer, arguments[1:], None)

    return view(types.intp, types.intp), generate


# ---------- Tables that a record of the system knows the places of
#
# The compiled functions of a plant take this record alone, a mere pointer, and open the tables out
# of it where they need them: `bodies_of(t)`, `table_at(t.speed)`. It has a `PLACE` for each.

PLACE = np.dtype([("offset", np.int64), ("rows", np.int64), ("columns", np.int64)], align=True)
"""Place of a table, in bytes from this record itself; its rows, and numbers or records in each."""


def distance(begin: NDArray[Any], array: NDArray[Any]) -> int:
    """Bytes from the begin of an array to that of another one."""
    return int(array.ctypes.data - begin.ctypes.data)


def fill(record: NDArray[np.void], values: Mapping[str, Any]) -> None:
    """Write numbers into a record, (1,), and of arrays how many bytes they are from it."""
    for name, value in values.items():
        record[name] = distance(record, value) if isinstance(value, np.ndarray) else value


def lead_to(place: NDArray[Any], table: NDArray[Any]) -> None:
    """Write the distance to a table into a `PLACE`, (1,)."""
    place[0] = distance(place, table), len(table), math.prod(table.shape[1:])


def pack_tables(arrays: Mapping[str, NDArray[Any]]) -> tuple[Array, dict[str, Any]]:
    """Pack arrays, and note in the record `system`, (1,), which is one of them, where they are."""
    memory, views = pack(arrays)
    for name, table in views.items():
        if name != "system":
            lead_to(views["system"][name], table)
    return memory, views


def places_in(record: NDArray[np.void]) -> list[Any]:
    """All the places in a record, (1,), which say how its memory is laid out."""
    names = record.dtype.names or ()
    return [record[name].tolist() for name in names if record.dtype[name] == PLACE]


def _open_place(record: types.Record, at: int, item: types.Type, dimensions: int) -> Any:
    """Type of the table at a `PLACE` that stands in a record, and the code that opens it."""
    view = types.Array(item, dimensions, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        offset, rows, columns = (load_word(builder, arguments[0], at + word) for word in (0, 8, 16))
        begin = builder.bitcast(arguments[0], context.get_value_type(types.voidptr))
        beyond_record = builder.add(offset, context.get_constant(types.intp, at))
        pointer = builder.gep(begin, [beyond_record])
        shape = [rows, columns][:dimensions]
        return generate_view(context, builder, view, pointer, shape, None)

    return view(record), generate


def opener(name: str, dtype: DTypeLike, dimensions: int = 1) -> Any:
    """Function of the record of the system, for compiled code, that opens a table of records."""

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def records(typing_context, t):
        return _open_place(t, t.offset(name), from_dtype(np.dtype(dtype)), dimensions)

    return records


def grid_opener(name: str, dtype: DTypeLike) -> Any:
    """Variant of `opener` for a table of two dimensions."""
    return opener(name, dtype, 2)


@compiled()
def record_at(address, dtype):
    """The record at an address, such as that of the system."""
    return array_at(pointer(address), (1,), dtype)[0]


@compiled()
def record_beyond(record, offset, dtype):
    """The record a number of bytes beyond another one."""
    return array_at(beyond(record, offset), (1,), dtype)[0]


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def numbers_at(typing_context, place):
    """Numbers at a place, (rows,)."""
    return _open_place(place, 0, types.float64, 1)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def table_at(typing_context, place):
    """Table of numbers at a place, (rows, columns)."""
    return _open_place(place, 0, types.float64, 2)


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
