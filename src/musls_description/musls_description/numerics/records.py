"""Places in memory, as compiled code takes them.

A call into compiled code costs some 0.1 us for every array of numbers and more for every array of
records. So plants and controllers keep all arrays in one block, and the compiled code gets the
address alone of a record in it, which says where the arrays are (see `layout`): in bytes from
itself, so that a copy of the block works on itself. The views that it opens cost a tenth, and own
no memory, so that no references are counted; the caller keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from musls_description.config.errors import ConfigError
from musls_description.numerics.compiled import compiled


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


def distance(begin: NDArray[Any], array: NDArray[Any]) -> int:
    """Bytes from the begin of an array to that of another one."""
    return int(array.ctypes.data - begin.ctypes.data)


def fill(record: NDArray[np.void], values: Mapping[str, Any]) -> None:
    """Write numbers into a record, (1,), and of arrays how many bytes they are from it."""
    for name, value in values.items():
        record[name] = distance(record, value) if isinstance(value, np.ndarray) else value


@compiled()
def record_at(address, dtype):
    """The record at an address, such as that of the system."""
    return array_at(pointer(address), (1,), dtype)[0]


@compiled()
def record_beyond(record, offset, dtype):
    """The record a number of bytes beyond another one."""
    return array_at(beyond(record, offset), (1,), dtype)[0]


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
