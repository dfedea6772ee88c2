"""All numbers of a controller in one piece of memory.

A compiled call with 15 arrays spends more time on looking at its arguments than on the law.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled_memory import layout_row

Array = NDArray[np.float64]
Layout = NDArray[np.int64]


def pack(arrays: Mapping[str, Array]) -> tuple[Array, Layout, dict[str, Array]]:
    """Put arrays of up to three dimensions behind each other.

    Returns:
        The memory; begin and shape of each array in it, (len(arrays), 4), missing dimensions 1;
        and views of the memory by name.
    """
    memory = np.concatenate([np.ravel(array) for array in arrays.values()]).astype(np.float64)
    rows, views, at = [], {}, 0
    for name, array in arrays.items():
        rows.append(layout_row(at, array))
        views[name] = memory[at : at + array.size].reshape(array.shape)
        at += array.size
    return memory, np.array(rows, np.int64), views
