"""All arrays of one system in one piece of memory, as the compiled step takes them.

All numbers lie in one array, all integers in another (see `compiled_memory`), and compiled code
makes the tables of them; Python has the same tables as views. What a step changes for good lies at
the front, so that one copy keeps it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.compiled_memory import block_of, borrowed, layout_row, row_of, table_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tables(NamedTuple):
    """State, constants and work space; columns in `columns`.

    Attributes:
        kinds: Integers of the cables, (n_cables, CABLE_INTEGERS).
        cables: Numbers of the cables, (n_cables, CABLE_COLUMNS).
        laws: Rows of all tabulated axial laws, (k, LAW_COLUMNS).
        nodes: (n_nodes, NODE_COLUMNS).
        segments: (n_segments, SEGMENT_COLUMNS).
        breaks: How and when segments break, (n_segments, BREAK_COLUMNS).
        bodies: (n_bodies, BODY_COLUMNS).
        numbers: Integers of the bodies, (n_bodies, BODY_INTEGERS).
        motion: Motion of the bodies in the columns of `plants.bodies`, (n_bodies, 27).
        corners: Corners of all boxes, (k, CORNER_COLUMNS).
        path: Motion of the bodies within a period where prescribed, (n_bodies, 2, 18).
        rotors: From `rotor_table`, (n_drones, n_rotors, 8).
        speed: Rotor speeds, (n_drones, n_rotors).
        stage_speed: The same within a stage.
        parameters: Numbers of the whole system, (PARAMETERS,).
        band: See `blocks`.
        border: See `blocks`.
        right: See `blocks`.
        corner: Border of each cable with itself, (n_cables, WIDEST_BORDER, WIDEST_BORDER).
        edge: Its right-hand side, (n_cables, WIDEST_BORDER).
        small: Tail and border of each cable after elimination, (n_cables, SMALL, SMALL).
        small_right: Its right-hand side, (n_cables, SMALL).
        matrix: Matrix of the bodies, room for 6 rows each.
        envelope: First column of each of its rows, one per row of the matrix.
        counts: Rows of the matrix of the bodies in use, (1,).
        unknown: Right-hand side and solution of the bodies.
        sums: Energy sums and counts, (SUMS,).
        old_sums: The same at the begin of the period.
        losses: Powers at the end of the last step, see `stage.solve_stage`, (5,).
        work: Work space, (96,).
        own: Work space, (6, 6).
        blocks: Work space, (3, 3, 3).
        shown: State of the bodies in the columns of `PlantState.motion`, (n_bodies, 16).
        force: Forces at the ends of the cables, see `output`, (n_cables, 2, 3).
        peak: Largest tension of each cable within the period, (n_cables,).
        shafts: Winches, then wheels, (n_shafts, SHAFT_COLUMNS).
        turning: Their integers, (n_shafts, SHAFT_INTEGERS).
    """

    kinds: Integers
    cables: Array
    laws: Array
    nodes: Array
    segments: Array
    breaks: Array
    bodies: Array
    numbers: Integers
    motion: Array
    corners: Array
    path: Array
    rotors: Array
    speed: Array
    stage_speed: Array
    parameters: Array
    band: Array
    border: Array
    right: Array
    corner: Array
    edge: Array
    small: Array
    small_right: Array
    matrix: Array
    envelope: Integers
    counts: Integers
    unknown: Array
    sums: Array
    old_sums: Array
    losses: Array
    work: Array
    own: Array
    blocks: Array
    shown: Array
    force: Array
    peak: Array
    shafts: Array
    turning: Integers


class Drive(NamedTuple):
    """What acts in a period.

    Attributes:
        period: Its length [s].
        command: Rotor commands, (n_drones, n_rotors) [rad/s].
        wind: Air velocity, (3,).
        wrench_body: Moment and force on every body, its frame, (n_bodies, 6).
        wrench_enu: The same in the world frame, (n_bodies, 6).
    """

    period: float
    command: Array
    wind: Array
    wrench_body: Array
    wrench_enu: Array


CHANGING = (
    "nodes",
    "segments",
    "breaks",
    "cables",
    "bodies",
    "motion",
    "corners",
    "speed",
    "sums",
    "losses",
    "shafts",
)
"""What a step changes for good."""

INTEGERS = ("kinds", "numbers", "envelope", "counts", "turning")


class Memory(NamedTuple):
    """The arrays behind a `Tables`.

    Attributes:
        numbers: All numbers.
        integers: All integers.
        layout: Place and shape of each table in them, in the order of `Tables`, (fields, 4).
        kept: Room for copies of what changes: begin of the period, begin of a step, (2, k).
    """

    numbers: Array
    integers: Integers
    layout: Integers
    kept: Array


def packed(tables: Tables) -> tuple[Memory, Tables]:
    """Move all tables into one piece of memory.

    Returns:
        The memory, and the tables as views of it.
    """
    named = tables._asdict()
    order = [*CHANGING, *(n for n in named if n not in CHANGING and n not in INTEGERS)]
    places = {}
    views = {}
    for names in (order, list(INTEGERS)):
        arrays = [np.ascontiguousarray(named[name]) for name in names]
        memory = np.concatenate([a.ravel() for a in arrays])
        at = 0
        for name, array in zip(names, arrays, strict=True):
            views[name] = memory[at : at + array.size].reshape(array.shape)
            places[name] = layout_row(at, array)
            at += array.size
            if name == CHANGING[-1]:
                kept = np.zeros((2, at))
        if names is order:
            numbers = memory
    layout = np.array([places[name] for name in Tables._fields], np.int64)
    return Memory(numbers, memory, layout, kept), Tables(**views)


@compiled()
def unpack(x, n, p):
    """Make the tables of the memory."""
    x, n = borrowed(x), borrowed(n)
    return Tables(
        table_of(n, p[0]),  # kinds
        table_of(x, p[1]),  # cables
        table_of(x, p[2]),  # laws
        table_of(x, p[3]),  # nodes
        table_of(x, p[4]),  # segments
        table_of(x, p[5]),  # breaks
        table_of(x, p[6]),  # bodies
        table_of(n, p[7]),  # numbers
        table_of(x, p[8]),  # motion
        table_of(x, p[9]),  # corners
        block_of(x, p[10]),  # path
        block_of(x, p[11]),  # rotors
        table_of(x, p[12]),  # speed
        table_of(x, p[13]),  # stage_speed
        row_of(x, p[14]),  # parameters
        table_of(x, p[15]),  # band
        table_of(x, p[16]),  # border
        row_of(x, p[17]),  # right
        block_of(x, p[18]),  # corner
        table_of(x, p[19]),  # edge
        block_of(x, p[20]),  # small
        table_of(x, p[21]),  # small_right
        table_of(x, p[22]),  # matrix
        row_of(n, p[23]),  # envelope
        row_of(n, p[24]),  # counts
        row_of(x, p[25]),  # unknown
        row_of(x, p[26]),  # sums
        row_of(x, p[27]),  # old_sums
        row_of(x, p[28]),  # losses
        row_of(x, p[29]),  # work
        table_of(x, p[30]),  # own
        block_of(x, p[31]),  # blocks
        table_of(x, p[32]),  # shown
        block_of(x, p[33]),  # force
        row_of(x, p[34]),  # peak
        table_of(x, p[35]),  # shafts
        table_of(n, p[36]),  # turning
    )
