"""All arrays of a plant or controller in one piece of memory, as its compiled step takes them.

A call into compiled code costs some 0.1 us for every array of numbers and more for every array of
records. So they keep all arrays in one, and the compiled code, which gets the address alone, cuts
the views out of it, which costs a tenth: `x = memory_at(address, size)`, then
`x[begin[0] : begin[1]].view(DTYPE)`, with a `reshape` for two dimensions. The views own no memory,
so that no references are counted; the caller keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from musls_description.arrays import Array
from musls_description.compiled import compiled


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


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def pointer(typing_context, address):
    """The number of an address as a pointer."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), generate


@compiled()
def memory_at(address, size):
    """An array of floats at an address (`array.ctypes.data`); see the module's text."""
    return carray(pointer(address), (size,), np.float64)


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
