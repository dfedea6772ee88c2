"""Tables of a plant in one piece of memory, as its compiled step takes them.

A call into compiled code costs 0.2 us per array, so a plant keeps all its numbers in one array, and
the compiled code makes the tables of it. A layout row says where a table lies and its shape, filled
up with ones: place, rows, columns, depth.
"""

from __future__ import annotations

import numpy as np
from llvmlite.ir import Constant
from numba.extending import intrinsic
from numpy.typing import NDArray

from musls_description.compiled import compiled

Array = NDArray[np.float64]


def layout_row(place: int, array: Array) -> list[int]:
    """Row of a layout for an array of at most three dimensions at a place."""
    return [place, *array.shape, *[1] * (3 - array.ndim)]


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def borrowed(typing_context, array):
    """The same array without its owner, for compiled code.

    numba counts references with atomic additions whenever a view is made or passed on: with 40
    tables in a tuple that is half of a step's time. A view without an owner counts nothing; the
    caller of the compiled code keeps the memory.
    """

    def generate(context, builder, signature, arguments):
        view = context.make_array(array)(context, builder, value=arguments[0])
        for field in ("meminfo", "parent"):
            setattr(view, field, Constant(getattr(view, field).type, None))
        return view._getvalue()

    return array(array), generate


@compiled()
def row_of(memory, place):
    """A table of one dimension; see the module's text for its row of the layout."""
    return memory[place[0] : place[0] + place[1]]


@compiled()
def table_of(memory, place):
    """A table of two dimensions."""
    return memory[place[0] : place[0] + place[1] * place[2]].reshape((place[1], place[2]))


@compiled()
def block_of(memory, place):
    """A table of three dimensions."""
    end = place[0] + place[1] * place[2] * place[3]
    return memory[place[0] : end].reshape((place[1], place[2], place[3]))
