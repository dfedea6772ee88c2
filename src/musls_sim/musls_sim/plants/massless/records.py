"""Columns of the tables of the massless cables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.compiled_memory import block_of, borrowed, layout_row, row_of, table_of

X, Q, V, W = 0, 3, 7, 10
"""State of a body: position (3), quaternion wxyz (4), velocity (3), body rate in its frame (3)."""

STATE = 13

MASS, INVERSE_MASS, INERTIA, INVERSE, DRAG = 0, 1, 2, 11, 20
"""Constants of a body: mass, 1 / mass (0 if prescribed), inertia and its inverse (9), drag (3)."""

STIFFNESS, DAMPING, RADIUS, FIRST_CORNER, CORNERS = 23, 24, 25, 26, 27
"""Contact of a corner; radius of all, first and number of the corners."""

FREE, NEAR = 28, 29
"""1 if not prescribed; 1 if the ground is within reach."""

BODY = 30

LENGTH, POINT_LOAD, POINT_DRONE = 0, 1, 4
"""Constants of a cable: length, its end on the load and on the drone (body frames, 3)."""

TAUT, TENSION, GAP, RATE, FREE_ACCELERATION, ALONG = 7, 8, 9, 10, 11, 12
"""1 if taut; tension; distance of the ends over the length (d - l), its rate, its second derivative
without tensions; direction from load to drone (3)."""

LOAD_ARM, LOAD_TURN, DRONE_TURN = 15, 18, 21
"""Moment of a unit tension about the load's centre, load frame (3); angular acceleration that it
gives to load and drone, body frames (3, 3)."""

OWN = 24
"""Effect of a unit tension on the cable's own distance through its drone [1/kg]."""

PEAK, MIDDLE, THRESHOLD = 25, 26, 27
"""Largest tension in the period; least one in the middle of the step; gap that is an event."""

GAP_BEGIN, RATE_BEGIN, GAP_LOW, GAP_HIGH, FORCE_SUM = 28, 29, 30, 31, 32
"""Gap and rate at the begin of the step; event function at the ends of a bracket; impulse of the
cable on the load within the period (3) [N s]."""

BEFORE, VALUE, FORCE_BEGIN = 35, 36, 37
"""Whether the cable was taut before it was decided anew; its event function after a trial; its
force on the load at the begin of the step (3)."""

LOAD_SPIN, DRONE_SPIN = 40, 41
"""Squared frequency per tension with which load and drone can turn about the cable's ends."""

CABLE = 42

PLACE, ANCHOR, STUCK, PUSH = 0, 3, 5, 6
"""A corner: place in the body (3), where it stuck (2), whether it sticks, last force (3)."""

CORNER = 9

GRAVITY, GROUND, FRICTION, RESTITUTION, STEP, CONTACT_STEP, TENSION_NOISE = 0, 1, 2, 3, 4, 5, 6
"""Parameters: ground NaN for none, steps in the air and on the ground, tension that counts as 0."""

PARAMETERS = 7

WORK, LOSS, ABSOLUTE_WORK, JERK_LOSS, REFINED = 0, 1, 2, 3, 4
"""Sums: work of rotors, inputs and prescribed drones, losses to air and ground, absolute work,
energy lost in jerks, and whether the last period was refined."""

SUMS = 5

EVENT_TIME, EVENT_KIND, EVENT_CABLE, EVENT_IMPULSE, EVENT_LOSS = 0, 1, 2, 3, 4
"""An event: time since the begin of the period, kind, cable from 0, impulse and energy lost."""

SLACKENED, TIGHTENED, JERKED = 0, 1, 2
"""Kinds: a cable went slack, a slack one taut; a taut one was jerked by the others' jerk."""

EVENT, MOST_EVENTS = 5, 512

# ---------- All arrays of one system with massless cables in one piece of memory, see `compiled_memory`.

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
        motion: Motion in the columns of `plants.rigid_body`, (1 + n, 18).
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
