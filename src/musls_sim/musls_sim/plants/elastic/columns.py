"""Columns of the tables that the compiled functions of this package work on.

A node is a lump of cable, a segment the massless spring between two nodes, a body a rigid body with
six degrees of freedom (or prescribed motion). The first and last node of a cable are fixed to
bodies. Three columns each where a vector stands; everything in the world frame unless said
otherwise, SI units.

Names: plain letters are the state at the end of the last step, ...S the stage that is being solved,
...K what the stage knows from before (x_S = x_K + d h v_S), ...G the first stage of the step.
"""

from __future__ import annotations

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
