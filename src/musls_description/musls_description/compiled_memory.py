"""Tables of a plant or controller in one piece of memory, as its compiled step takes them.

A call into compiled code costs 0.2 us per array, so they keep all their numbers in one array, and
the compiled code makes the tables of it. A layout row says where a table lies and its shape, filled
up with ones: place, rows, columns, depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite.ir import ArrayType, Constant, DoubleType
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model
from numpy.typing import NDArray

from musls_description.compiled import compiled

Array = NDArray[np.float64]
Layout = NDArray[np.int64]


def layout_row(place: int, array: Array) -> list[int]:
    """Row of a layout for an array of at most three dimensions at a place."""
    return [place, *array.shape, *[1] * (3 - array.ndim)]


def pack(arrays: Mapping[str, Array]) -> tuple[Array, Layout, dict[str, Array]]:
    """Put arrays of up to three dimensions behind each other.

    Returns the memory; begin and shape of each array in it, (len(arrays), 4), missing dimensions 1;
    and views of the memory by name.
    """
    memory = np.concatenate([np.ravel(array) for array in arrays.values()]).astype(np.float64)
    rows, views, at = [], {}, 0
    for name, array in arrays.items():
        rows.append(layout_row(at, array))
        views[name] = memory[at : at + array.size].reshape(array.shape)
        at += array.size
    return memory, np.array(rows, np.int64), views


class BorrowedArray(types.Array):  # type: ignore[misc, unused-ignore]
    """Type of an array whose memory somebody else keeps; so are its views.

    numba counts references whenever a view is made or passed on. Without an owner nothing is
    counted, but the calls stay: with 37 tables in a tuple some 3700 in a step of the elastic plant,
    which took much of its time.
    """

    def __init__(
        self,
        dtype: Any,
        ndim: int,
        layout: str,
        readonly: bool = False,
        name: str | None = None,
        aligned: bool = True,
    ) -> None:
        super().__init__(dtype, ndim, layout, readonly, name, aligned)  # type: ignore[call-overload, unused-ignore]
        self.name = f"Borrowed{self.name}"

    def copy(  # type: ignore[override, unused-ignore]
        self,
        dtype: Any = None,
        ndim: int | None = None,
        layout: str | None = None,
        readonly: bool | None = None,
    ) -> BorrowedArray:
        """The type of a view of such an array."""
        return BorrowedArray(
            self.dtype if dtype is None else dtype,
            self.ndim if ndim is None else ndim,
            self.layout if layout is None else layout,
            not self.mutable if readonly is None else readonly,
            aligned=self.aligned,
        )


@register_model(BorrowedArray)  # type: ignore[untyped-decorator, unused-ignore]
class _BorrowedModel(models.StructModel):  # type: ignore[misc, unused-ignore]
    """numba's own layout of an array, with plain pointers in place of the owners."""

    def __init__(self, manager: Any, array: BorrowedArray) -> None:
        places = types.UniTuple(types.intp, array.ndim)
        members = [
            ("meminfo", types.voidptr),
            ("parent", types.voidptr),
            ("nitems", types.intp),
            ("itemsize", types.intp),
            ("data", types.CPointer(array.dtype)),
            ("shape", places),
            ("strides", places),
        ]
        super().__init__(manager, array, members)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def borrowed(typing_context, array):
    """The same array as a `BorrowedArray`; the caller of the compiled code keeps the memory."""
    view_type = BorrowedArray(
        array.dtype, array.ndim, array.layout, not array.mutable, aligned=array.aligned
    )

    def generate(context, builder, signature, arguments):
        array_value = context.make_array(array)(context, builder, value=arguments[0])
        view = context.make_array(view_type)(context, builder)
        for field in ("nitems", "itemsize", "data", "shape", "strides"):
            setattr(view, field, getattr(array_value, field))
        for field in ("meminfo", "parent"):
            setattr(view, field, Constant(getattr(view, field).type, None))
        return view._getvalue()

    return view_type(array), generate


def _view_at(context, builder, view_type, data, shape):  # type: ignore[no-untyped-def, unused-ignore]
    """A C-contiguous view of memory, from its address and the values of its shape."""
    size = context.get_abi_sizeof(context.get_data_type(view_type.dtype))
    whole = context.get_constant(types.intp, 1)
    strides = []
    for length in reversed(shape):
        strides.insert(0, builder.mul(whole, context.get_constant(types.intp, size)))
        whole = builder.mul(whole, length)
    view = context.make_array(view_type)(context, builder)
    view.data, view.nitems = data, whole
    view.itemsize = context.get_constant(types.intp, size)
    view.shape = cgutils.pack_array(builder, shape)
    view.strides = cgutils.pack_array(builder, strides)
    for field in ("meminfo", "parent"):
        setattr(view, field, Constant(getattr(view, field).type, None))
    return view._getvalue()


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def view_of(typing_context, memory, begin, shape):
    """A table of a shape (tuple of int64) in a memory of one dimension, from a place on.

    Nothing is checked. A slice with a `reshape` does the same with some 20 ns of calls.
    """
    view_type = BorrowedArray(memory.dtype, shape.count, "C", not memory.mutable)

    def generate(context, builder, signature, arguments):
        array_value = context.make_array(memory)(context, builder, value=arguments[0])
        data = builder.gep(array_value.data, [arguments[1]])
        lengths = cgutils.unpack_tuple(builder, arguments[2])
        return _view_at(context, builder, view_type, data, lengths)

    return view_type(memory, types.intp, types.UniTuple(types.intp, shape.count)), generate


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator, unused-ignore]
def scratch(typing_context, rows, columns):
    """An array (rows, columns) of undefined floats for the time of a call; both are literals.

    It lies on the stack: an array of NumPy's costs 50 ns and counted references, and the compiler
    cannot keep its numbers in registers. It must not be returned.
    """
    view_type = BorrowedArray(types.float64, 2, "C")
    lengths = rows.literal_value, columns.literal_value

    def generate(context, builder, signature, arguments):
        kind = ArrayType(DoubleType(), lengths[0] * lengths[1])
        place = cgutils.alloca_once(builder, kind)
        shape = [context.get_constant(types.intp, length) for length in lengths]
        data = builder.bitcast(place, DoubleType().as_pointer())
        return _view_at(context, builder, view_type, data, shape)

    return view_type(rows, columns), generate


@compiled()
def row_of(memory, place):
    """A table of one dimension; see the module's text for its row of the layout."""
    return view_of(memory, place[0], (place[1],))


@compiled()
def table_of(memory, place):
    """A table of two dimensions."""
    return view_of(memory, place[0], (place[1], place[2]))


@compiled()
def block_of(memory, place):
    """A table of three dimensions."""
    return view_of(memory, place[0], (place[1], place[2], place[3]))
