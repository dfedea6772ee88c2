"""All arrays of one system with massless cables in one piece of memory, see `compiled_memory`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.compiled_memory import block_of, borrowed, layout_row, row_of, table_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tables(NamedTuple):
    """State, constants and work space; columns in `columns`. n drones, k corners.

    Attributes:
        state: (1 + n, STATE).
        begin: The same at the begin of the step.
        first: Derivatives at the begin of the step; only columns used are defined.
        rate: Derivatives of a stage.
        total: Weighted sum of derivatives.
        bodies: (1 + n, BODY).
        motion: Motion in the columns of `plants.bodies`, (1 + n, 18).
        cables: (n, CABLE).
        corners: (k, CORNER).
        rotors: From `rotor_table`, (n, n_rotors, 8).
        speed: Rotor speeds now, (n, n_rotors).
        speed_begin: The same at the begin of the period.
        speed_middle: The same in the middle of the step.
        speed_end: The same at its end.
        path: Cubic path of each prescribed drone in the period, see `bodies.follow`, (n, 10, 3).
        matrix: Effect of tensions on the second derivatives of the distances, of the cables
            at their length, (n, n).
        factor: Cholesky factor of a part of it, (n, n).
        right: (n,).
        solution: (n,).
        spare: (n,).
        who: Cables of the rows of `matrix`, then their number, as floats, (n + 1,).
        basis: Which of them the complementarity problem has active, (n,).
        parameters: (PARAMETERS,).
        sums: (SUMS,).
        power: Power of drives and of losses in a stage, their means, and those of the
            first stage, (6,).
        events: (MOST_EVENTS, EVENT).
        held: Wind and wrenches of the last period, to see whether they changed.
        wrench: Work space, (6,).
        shown: Columns of `PlantState.motion`, (1 + n, 16).
        force: `PlantState.cable_force_n` as (n, 6).
        peak: Largest tension of each cable in the period, (n,).
    """

    state: Array
    begin: Array
    first: Array
    rate: Array
    total: Array
    bodies: Array
    motion: Array
    cables: Array
    corners: Array
    rotors: Array
    speed: Array
    speed_begin: Array
    speed_middle: Array
    speed_end: Array
    path: Array
    matrix: Array
    factor: Array
    right: Array
    solution: Array
    spare: Array
    who: Array
    basis: Array
    parameters: Array
    sums: Array
    power: Array
    events: Array
    held: Array
    wrench: Array
    shown: Array
    force: Array
    peak: Array


FIELDS = len(Tables._fields)


def packed(tables: Tables) -> tuple[Array, Integers, Tables]:
    """Move all tables into one piece of memory.

    Returns:
        The memory; place and shape of each table in it, (fields, 4), followed by rows with the
        numbers of the bodies; and views of the memory.
    """
    arrays = [np.ascontiguousarray(table, float) for table in tables]
    memory = np.concatenate([array.ravel() for array in arrays])
    at, places, views = 0, [], []
    for array in arrays:
        views.append(memory[at : at + array.size].reshape(array.shape))
        places.append(layout_row(at, array))
        at += array.size
    n = len(tables.state)
    numbers = np.resize(np.arange(n), (-(-n // 4), 4))
    return memory, np.vstack([places, numbers]).astype(np.int64), Tables(*views)


@compiled()
def body_numbers(p, n):
    """Numbers of n bodies, from the end of the layout: no memory is taken for them in a step."""
    return p[FIELDS:].reshape(-1)[:n]


@compiled()
def unpack(x, p):
    """Make the tables of the memory and its layout."""
    x = borrowed(x)
    return Tables(
        table_of(x, p[0]),  # state
        table_of(x, p[1]),  # begin
        table_of(x, p[2]),  # first
        table_of(x, p[3]),  # rate
        table_of(x, p[4]),  # total
        table_of(x, p[5]),  # bodies
        table_of(x, p[6]),  # motion
        table_of(x, p[7]),  # cables
        table_of(x, p[8]),  # corners
        block_of(x, p[9]),  # rotors
        table_of(x, p[10]),  # speed
        table_of(x, p[11]),  # speed_begin
        table_of(x, p[12]),  # speed_middle
        table_of(x, p[13]),  # speed_end
        block_of(x, p[14]),  # path
        table_of(x, p[15]),  # matrix
        table_of(x, p[16]),  # factor
        row_of(x, p[17]),  # right
        row_of(x, p[18]),  # solution
        row_of(x, p[19]),  # spare
        row_of(x, p[20]),  # who
        row_of(x, p[21]),  # basis
        row_of(x, p[22]),  # parameters
        row_of(x, p[23]),  # sums
        row_of(x, p[24]),  # power
        table_of(x, p[25]),  # events
        row_of(x, p[26]),  # held
        row_of(x, p[27]),  # wrench
        table_of(x, p[28]),  # shown
        table_of(x, p[29]),  # force
        row_of(x, p[30]),  # peak
    )
