"""Tables in one piece of memory are seen by compiled code as NumPy sees them."""

import numpy as np

from musls_description.compiled import compiled
from musls_description.compiled_memory import block_of, layout_row, row_of, scratch, table_of


@compiled()
def change(memory, layout, found):
    """Change an element of each table, and read others through views of them."""
    row, table = row_of(memory, layout[0]), table_of(memory, layout[1])
    block = block_of(memory, layout[2])
    room = scratch(2, 3)
    room[:] = 1.0
    room[1, 2] = table[2, 1]
    found[0] = room.sum()
    row[-1] = room[1][2]
    table[1:, 0] = 7.0
    block[1, 0, 3] += block[0][1][2]


def test_tables_lie_where_their_layout_says_and_nowhere_else():
    arrays = [np.arange(5.0), np.arange(6.0).reshape(3, 2), np.arange(24.0).reshape(2, 3, 4)]
    gap = np.full(3, -1.0)
    memory = np.concatenate([gap, *(part for a in arrays for part in (a.ravel(), gap))])
    places, at = [], 3
    for array in arrays:
        places.append(layout_row(at, array))
        at += array.size + 3
    row, table, block = (array.copy() for array in arrays)
    found = np.zeros(1)
    change(memory, np.array(places), found)
    row[-1], table[1:, 0] = 5.0, 7.0
    block[1, 0, 3] += block[0, 1, 2]
    wanted = np.concatenate(
        [gap, *(part for a in (row, table, block) for part in (a.ravel(), gap))]
    )
    assert found[0] == 5.0 + 5.0
    assert np.array_equal(memory, wanted)
