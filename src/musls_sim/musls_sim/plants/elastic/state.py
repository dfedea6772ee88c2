"""Records of everything that the compiled step works on: nodes, segments, cables, bodies, shafts.

A node is a lump of cable, a segment the massless spring between two nodes, a body a rigid body with
six degrees of freedom (or prescribed motion). The first and last node of a cable are fixed to
bodies. World frame unless said otherwise, SI units.

`stage` is the stage that is being solved, `known_...` what it knows from before (x = known_x +
d h v); plain names are the state at the end of the last
step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.records import PLACE, grid_opener, opener
from musls_description.system.obstacles import SOLID
from musls_sim.plants.elastic.cables.line import AXIAL, LAW, MEMORY
from musls_sim.plants.rigid_body import MOTION, ROTOR, WRENCH

VECTOR = ("f8", (3,))
MATRIX = ("f8", (3, 3))


def _record(*fields: tuple, numbers: str = "", integers: str = "") -> np.dtype:  # type: ignore[type-arg]
    """Record of fields (name, type[, shape]), then single numbers, then integers."""
    single = [(name, "f8") for name in numbers.split()] + [
        (name, "i8") for name in integers.split()
    ]
    return np.dtype([*fields, *single], align=True)


def _vectors(names: str) -> list[tuple[str, str, tuple[int]]]:
    return [(name, *VECTOR) for name in names.split()]


POINT = _record(*_vectors("position velocity acceleration"))

NODE = _record(
    *_vectors("position velocity acceleration"),
    ("stage", POINT),
    *_vectors("known_position known_velocity"),
    ("shift", *VECTOR),  # by the last linear solution
    ("linear_acceleration", *VECTOR),  # of an end node by the linear solution
    numbers="mass",
)

SEGMENT = _record(
    ("direction", *VECTOR),
    ("memory", MEMORY),
    numbers="""rest_length inverse_rest_length length length_rate tension stiffness
    geometric_stiffness alive taut peak_tension"""
    # Tension at which it breaks, share of the period at which it is to be cut, tension at the begin
    # of the step and in its first stage, whether it breaks at the end of the step; what happened:
    # share of the period at which it broke (-1: did not), its tension and energy then.
    " break_force cut_at begin_tension first_tension marked broken_at broken_tension broken_energy",
)

BAND = 8
"""Half the band width of a cable that bends, without the diagonal."""
BORDER = 8
ENDS = 14

ROW = _record(("band", "f8", (1 + BAND,)), ("border", "f8", (BORDER,)), numbers="right")
"""Row of the equations of a cable, see `solver`."""

CABLE = _record(
    # At its two ends.
    ("point", "f8", (2, 3)),  # in the frame of the body
    ("axis", "f8", (2, 3)),  # direction of a clamp from end 1 towards end 2, likewise
    ("axis_world", "f8", (2, 3)),
    ("axis_rate", "f8", (2, 3)),
    ("force", "f8", (2, 3)),  # on the body
    ("moment", "f8", (2, 3)),  # the same about the body's centre of mass
    ("twist", "f8", (2, 3)),  # moment on the body of what twists the cable, not in the former
    ("clamp_factor", "f8", (2,)),
    ("stored", "f8", (2,)),  # length on the winch
    ("out_rate", "f8", (2,)),  # rate at which free length comes out
    ("out_acceleration", "f8", (2,)),
    ("reel_torque", "f8", (2,)),  # on the shaft
    ("ratio", "f8", (2,)),  # length per angle of the shaft
    ("axial", AXIAL),
    ("body", "i8", (2,)),
    ("clamped", "i8", (2,)),
    ("reel", "i8", (2,)),  # shaft, -1 for none
    # What the elimination leaves, see `solver`.
    ("unknown", "i8", (ENDS,)),  # of the bodies and shafts at the ends, -1 for none
    ("ends", "f8", (ENDS, ENDS)),
    ("ends_right", "f8", (ENDS,)),
    ("end_shift", "f8", (ENDS,)),
    numbers="""bending_stiffness bending_damping drag_across
    drag_along rest_length rest_length_rate bending_energy start_length linear_density
    shortest_length length_shift stop_stiffness stop_force stop_slope""",
    # Where its equations are, see `solver`: first row, that of node 0, from node to node, rows that
    # are eliminated, columns of the border, size of what is left, end (0 or 1) at which it begins,
    # whether a leaf is there.
    integers="""first_node segments first_segment bends reels
    first_row row_0 row_step begin end low high size first_end leaf"""
    # Corners of its inner nodes, those of a node behind each other, and their number.
    " first_corner surfaces",
)

RIGID = _record(
    *MOTION,
    *_vectors("acceleration turn turn_rate angular_momentum torque"),
    ("angular_acceleration", *VECTOR),  # of a prescribed body
    ("inertia", *MATRIX),  # world
)
"""A body in a stage; `turn` is the rotation vector since the begin of the step, `torque` the rate
of the angular momentum about the centre of mass."""

BODY = _record(
    ("inertia", *MATRIX),
    ("inverse_inertia", *MATRIX),
    ("drag", *VECTOR),
    *MOTION,
    *_vectors("acceleration angular_momentum torque"),
    ("stage", RIGID),
    *_vectors("known_position known_velocity known_turn known_angular_momentum"),
    ("external", WRENCH),  # rotors, air, inputs
    *_vectors("force moment"),  # right-hand side
    *_vectors("shift spin"),  # solution: translation, turn
    ("reaction", WRENCH),  # what a prescribed body needs
    ("reference_rotation", *MATRIX),  # of a prescribed body at the begin of the period
    ("path", "f8", (2, 18)),  # motion of a prescribed body at begin and end of the period
    ("own_matrix", "f8", (6, 6)),  # of translation and turn, without cables
    # Of the cable ends on it: what they lack of momentum, and so of acceleration.
    *_vectors("lump_momentum lump_acceleration"),
    # At the end of the step as begin and first stage foretell; `hardest` is the larger acceleration
    # of those two.
    *_vectors("position_ahead velocity_ahead turn_ahead omega_ahead"),
    numbers="mass radius lump_mass gyration hardest",
    # First row in the matrix of the bodies, -1 for prescribed bodies and leaves (see `solver`); row
    # of its rotors; whether the ground pushed in the last solution.
    integers="dof drone first_corner corners free pressed",
)

CORNER = _record(
    ("place", *VECTOR),
    ("force", *VECTOR),
    ("anchor", *VECTOR),
    numbers="stiffness damping rounding set_in normal_force slope active slipping touched",
    integers="surface",
)
"""Corner of a body, or node of a cable, that can touch a surface; one for each."""

FEED = 0
DRUM = 1
PULLEY = 2

SHAFT = _record(
    ("drive", "f8", (2,)),  # at begin and end of the period
    ("last_drive", "f8", (2,)),  # in the last period
    ("axis", *VECTOR),  # in the frame of the body
    ("axis_world", *VECTOR),
    ("cable", "i8", (2,)),
    ("end", "i8", (2,)),
    numbers="""angle rate acceleration stage_angle stage_rate stage_acceleration known_angle
    known_rate begin_angle brake last_brake by_rate inertia radius
    lowest_angle highest_angle"""
    # Cable out per angle, its slope, cable out and its rates; right-hand side and solution; torques
    # of the drive and of friction, its limit and slope by the angle, where it sticks; direction in
    # which it slides, 0 if it sticks.
    """ ratio ratio_slope out out_rate out_acceleration right torque friction friction_limit
    friction_slope stuck_angle sliding bearing viscous capstan efficiency extra_wrap layer
    layer_angle wound_angle wound halted stop_torque stop_stiffness
    was_halted stopped brake_torque""",
    integers="body dof kind",
)
"""A winch or pulley, with cable and end (0 or 1) of its sides; a winch has one, the other is -1."""

SUMS = _record(
    numbers="""work absolute_work loss_cables loss_ground loss_air iterations euler_steps
    loss_breaks"""
)

LOSSES = _record(numbers="cables ground air drives switched")
"""Powers in a stage, and how many segments and corners began or ceased to carry."""

PROGRESS = _record(
    # Begin and end of the present step (shares of the period), and how much of it implicit Euler
    # steps have covered; how far the bodies' motion has bent in the period; powers switched in the
    # step; energy before its implicit Euler steps, and what these may make.
    numbers="at now euler bend switched before allowed",
    # What is solved next, see `step`; of so many steps this one, halved so often, of at most
    # `refinements`; trials of a step that ends at a break. Whether accelerations are sought alone,
    # first, or again; whether something may break, steps are chosen for their accuracy, a stage
    # was rough. Segments that parted.
    integers="""mode step steps level refinements trial finding start again fragile accurate rough
    parted""",
)
"""Progress within a control period, of which `SYSTEM` may be rewound meanwhile."""

NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Symmetric matrix of zeros, (xx, xy, xz, yy, yz, zz)."""

UNKNOWN = _record(numbers="value", integers="first")
"""Unknown of the bodies and shafts, and the first column of its row that is not zero."""


class RigTables(NamedTuple):
    """State, constants and work space; a step changes those up to `speed` for good.

    Attributes:
        nodes: `NODE`, those of a cable behind each other from end 1 to end 2.
        segments: `SEGMENT`, likewise.
        cables: `CABLE`.
        bodies: `BODY`.
        corners: `CORNER` of all bodies, then of all cables.
        shafts: `SHAFT`, winches, then pulleys.
        system: `SYSTEM`, (1,).
        speed: Rotor speeds, (n_drones, n_rotors) [rad/s].
        solids: `SOLID` of ground and obstacles.
        laws: `LAW` of all tabulated axial laws.
        rows: `ROW` of all cables.
        matrix: Matrix of the bodies and shafts, lower triangle.
        unknowns: `UNKNOWN`, one per row of the matrix.
        rotors: Rotors from `rotor_records`, (n_drones, n_rotors).
        stage_speed: Rotor speeds within a stage.
        shown: State of the bodies in the columns of `PlantState.motion`, (n_bodies, 16).
        force: Forces at the ends of the cables, see `output.collect`, (n_cables, 2, 3).
        peak: Largest tension of each cable within the period, (n_cables,).
        held: Force and moment that hold or push each body, world, (n_bodies, 6).
        free_length: Free length of each cable, (n_cables,).
        command: Rotor commands, (n_drones, n_rotors) [rad/s].
        wrench_body: Moment and force on every body, its frame, (n_bodies, 6).
        wrench_enu: Inputs in the world frame, (n_bodies, 6).
        fastest: Largest speed of each body so far, its edge's by turning among it, (n_bodies, 1).
        kept: Room for what changes at the begin of the period and at the begin of a step, (2, n).
        progress: `PROGRESS`, (1,).
    """

    nodes: Records
    segments: Records
    cables: Records
    bodies: Records
    corners: Records
    shafts: Records
    system: Records
    speed: Array
    solids: Records
    laws: Records
    rows: Records
    matrix: Array
    unknowns: Records
    rotors: Records
    stage_speed: Array
    shown: Array
    force: Array
    peak: Array
    held: Array
    free_length: Array
    command: Array
    wrench_body: Array
    wrench_enu: Array
    fastest: Array
    kept: Array
    progress: Records


SYSTEM = _record(
    ("sums", SUMS),
    ("old_sums", SUMS),  # at the begin of the step
    ("losses", LOSSES),  # at the end of the last step
    ("stage_losses", LOSSES),
    ("wind", *VECTOR),
    ("bracket", "f8", (4,)),  # of the time of a break
    *((table, PLACE) for table in RigTables._fields if table != "system"),
    # `can_break` is not 0 if a segment has a break force or is to be cut in this period; `since` is
    # the time from the begin of the step to the stage [s]; below `soft_below` there may be soft
    # ground [m]; `turn2` is the square of the phase of a
    # swing that a step may take, 0 for any.
    numbers="""gravity soft_below ground_friction tolerance energy_tolerance can_break period since
    turn2""",
    # So many numbers of the memory, from its begin, are what a step changes for good. `level`: how
    # often the steps of the next period are halved to begin with. `refined`: periods with finer
    # steps than the usual. `middle`: node that is shown as body 0, -1 for none.
    integers="n_dofs changing level refined middle",
)


nodes_of = opener("nodes", NODE)
segments_of = opener("segments", SEGMENT)
cables_of = opener("cables", CABLE)
bodies_of = opener("bodies", BODY)
corners_of = opener("corners", CORNER)
shafts_of = opener("shafts", SHAFT)
solids_of = opener("solids", SOLID)
laws_of = opener("laws", LAW)
rows_of = opener("rows", ROW)
unknowns_of = opener("unknowns", UNKNOWN)
progress_of = opener("progress", PROGRESS)
rotors_of = grid_opener("rotors", ROTOR)
