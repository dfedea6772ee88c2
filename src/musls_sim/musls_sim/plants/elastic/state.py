"""Columns of the tables that the compiled functions of this package work on.

A node is a lump of cable, a segment the massless spring between two nodes, a body a rigid body with
six degrees of freedom (or prescribed motion). The first and last node of a cable are fixed to
bodies. Three columns each where a vector stands; everything in the world frame unless said
otherwise, SI units.

Names: plain letters are the state at the end of the last step, ...S the stage that is being solved,
...K what the stage knows from before (x_S = x_K + d h v_S), ...G the first stage of the step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.compiled_memory import block_of, borrowed, layout_row, row_of, table_of

# Nodes.
X, V, A = 0, 3, 6
XS, VS, AS = 9, 12, 15
XK, VK = 18, 21
VG, AG = 24, 27
MASS = 30
DELTA = 31
LINEAR = 34  # acceleration of an end node by the linear solution
NODE_COLUMNS = 37

# Segments. TENSION belongs to the linearised stage, ELASTIC is its part without damping.
REST, DIRECTION, LENGTH, TENSION, ELASTIC = 0, 1, 4, 5, 6
STIFFNESS, GEOMETRIC, RATE, ALIVE, PEAK, INVERSE_REST, TAUT = 7, 8, 9, 10, 11, 12, 13
SEGMENT_COLUMNS = 14

# Breaks, a row per segment: force at which it breaks, share of the period at which it is to be cut,
# tension at the begin of the step and in its first stage, whether it breaks at the end of the step;
# what happened: share of the period at which it broke, its tension and energy then.
LIMIT, CUT_AT, T_BEGIN, T_FIRST, DOOMED, BROKE_AT, BROKE_TENSION, BROKE_ENERGY = range(8)
BREAK_COLUMNS = 8

# Bodies. PSI is the rotation vector since the begin of the step, PSD its rate, L the angular
# momentum about the centre of mass, TAU its rate, EXTERNAL force and moment of air, rotors and
# inputs, RIGHT the right-hand side and the solution (translation, then rotation).
B_MASS, B_INERTIA, B_INVERSE, B_DRAG = 0, 1, 10, 19
BX, BV, BR, BW, BA, BTAU, BL = 22, 25, 28, 37, 40, 43, 46
BXS, BVS, BAS, BXK, BVK = 49, 52, 55, 58, 61
PSI, PSD, PSIK, BLS, BLK, BTAUS = 64, 67, 70, 73, 76, 79
BVG, BAG, PSDG, BTAUG = 82, 85, 88, 91
EXTERNAL, RIGHT, IW = 94, 100, 106
BWS = 115
B_RADIUS, B_CONTACT_STIFFNESS, B_CONTACT_DAMPING = 118, 119, 120
REACTION = 121  # force and moment that a prescribed body needs
BREF = 127  # rotation of a prescribed body at the begin of the period
SCRATCH = 136
# A leaf is a free body with one cable, eliminated with it: inverse of its matrix (6, 6), that
# inverse times P^T (6, 3), the 3x3 matrix of its point, its own displacement and that of the point.
LEAF_INVERSE, LEAF_G, LEAF_POINT, LEAF_FREE, LEAF_SHIFT = 145, 181, 199, 208, 214
B_LUMPS = 217  # mass of the cable ends on a body
BODY_COLUMNS = 218

# Integers of a body.
# B_DOF is the first row in the matrix of the bodies, -1 for leaves and prescribed bodies.
# B_INDEX is the row itself.
B_DOF, B_DRONE, B_FIRST_CORNER, B_CORNERS, B_FREE, B_INDEX = 0, 1, 2, 3, 4, 5
BODY_INTEGERS = 6

# Corners that can touch the ground.
C_PLACE, C_ANCHOR, C_ACTIVE, C_BODY, C_FORCE, C_TRIAL, C_TOUCHED = 0, 3, 5, 6, 7, 10, 11
CORNER_COLUMNS = 12

# Cables: integers and numbers.
FIRST_NODE, SEGMENTS, FIRST_SEGMENT, FIRST_ROW, BODY_A, BODY_B = 0, 1, 2, 3, 4, 5
CLAMP_A, CLAMP_B, BENDS, SLACK, TABLE_FIRST, TABLE_ROWS, BORDER, TAIL = 6, 7, 8, 9, 10, 11, 12, 13
FOLD = 14
REEL_A, REEL_B, REELS = 15, 16, 17  # shafts at the ends, -1 for none, and how many
CABLE_INTEGERS = 18
BORDERED, FROM_PRESCRIBED, FROM_LEAF = 0, 1, 2  # values of FOLD: how end A is treated
EA, DAMPING, EI, BENDING_DAMPING = 0, 1, 2, 3
POINT_A, POINT_B, AXIS_A, AXIS_B = 4, 7, 10, 13
CLAMP_FACTOR_A, CLAMP_FACTOR_B = 16, 17
DRAG_ACROSS, DRAG_ALONG = 18, 19
REST_LENGTH, REST_RATE = 21, 22
AXIS_WORLD_A, AXIS_WORLD_B, AXIS_RATE_A, AXIS_RATE_B = 23, 26, 29, 32
MOMENT_A, MOMENT_B = 35, 38
END_FORCE_A, END_FORCE_B = 41, 44
# A cable of changing length: its length at the start, mass per length, shortest length, what is
# wound up at its ends, rates at which it comes out at A and B and their rates, change of the length
# by the last solution, bending energy, force on what comes out at the ends, cable length per angle
# of the shafts there, stiffness of the stop at the shortest length, its force and the
# slope of that.
START_LENGTH, LINEAR_DENSITY, SHORTEST_LENGTH = 47, 48, 49
STORED_A, STORED_B, OUT_A, OUT_B, OUT_RATE_A, OUT_RATE_B = 50, 51, 52, 53, 54, 55
LENGTH_SHIFT, BENT, REEL_FORCE_A, REEL_FORCE_B, RATIO_A, RATIO_B = 56, 57, 58, 59, 60, 61
STOP_STIFFNESS, STOP_FORCE, STOP_SLOPE = 62, 63, 64
CABLE_COLUMNS = 65

# Shafts of winches and wheels: angle, its rates, and the same in a stage (as the nodes); angle at
# the begin of the period; drive at its begin and end; brake.
Y, YV, YA, YS, YVS, YAS, YK, YVK, YVG, YAG, Y_BEGIN = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
DRIVE, BRAKE, BY_RATE, TURN_INERTIA, RADIUS = 11, 13, 14, 15, 16
SPIN_AXIS, SPIN_WORLD = 17, 20  # in the frame of the body, in the world
# Angles at which a winch stops, cable out per angle, its slope, cable out, its rate and rate of the
# rate, right-hand side and solution, torque of the drive, of friction, its limit, the slope of
# friction by the angle, where friction sticks; SLIDES: direction in which it slides, 0 sticks.
Y_LOW, Y_HIGH, RATIO, RATIO_SLOPE, OUT, PACE, PACE_RATE, TURN_RIGHT = 23, 24, 25, 26, 27, 28, 29, 30
TORQUE, RUB, RUB_LIMIT, RUB_SLOPE, STUCK = 31, 32, 33, 34, 35
BEARING, VISCOUS, CAPSTAN, SHEAVE, EXTRA_WRAP = 36, 37, 38, 39, 40
LAYER, LAYER_ANGLE, WOUND_ANGLE, WOUND = 41, 42, 43, 44
HALTED, PUSH, PUSH_STIFFNESS, SLIDES = 45, 46, 47, 48
SHAFT_COLUMNS = 49

# Integers of a shaft: body, row in the matrix, kind, cable and end of side 1 and (wheel) of side 2.
S_BODY, S_DOF, S_KIND, S_CABLE, S_END, S_CABLE_2, S_END_2 = 0, 1, 2, 3, 4, 5, 6
SHAFT_INTEGERS = 7
FEED, DRUM, WHEEL = 0, 1, 2

# Rows of the table of an axial law: strain where it begins, force and slope there, coefficients of
# the cubic, energy up to there.
L_STRAIN, L_C0, L_C1, L_C2, L_C3, L_ENERGY = 0, 1, 2, 3, 4, 5
LAW_COLUMNS = 6

# Numbers that hold for the whole system.
# FRAGILE is not 0 if a segment has a break force or is to be cut in this period.
GRAVITY, GROUND, FRICTION, TOLERANCE_N, MADE_J, FRAGILE = 0, 1, 2, 3, 4, 5
JUMPED = 6  # 1 if a drive jumped at the begin of this period
PARAMETERS = 7

# What the compiled step counts and sums.
WORK, ABSOLUTE_WORK, LOSS_CABLES, LOSS_GROUND, LOSS_AIR, ITERATIONS, EULER = 0, 1, 2, 3, 4, 5, 6
LOSS_BREAK = 7  # strain energy of segments that broke
SUMS = 8

BAND = 8  # half the band width of a cable that bends, without the diagonal
WIDEST_BORDER = 8
SMALL = 14  # tail and border of a cable together

# ---------- All arrays of one system in one piece of memory, as the compiled step takes them.

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
        motion: Motion of the bodies in the columns of `plants.rigid_body`, (n_bodies, 27).
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
