"""Records of everything that the compiled step works on: nodes, segments, cables, bodies, shafts.

A node is a lump of cable, a segment the massless spring between two nodes, a body a rigid body with
six degrees of freedom (or prescribed motion). The first and last node of a cable are fixed to
bodies. World frame unless said otherwise, SI units.

`stage` is the stage that is being solved, `known_...` what it knows from before (x = known_x +
d h v); plain names are the state at the end of the last
step.
"""

from __future__ import annotations

import numpy as np

from musls_description.numerics.layout import Field, Layout, Number
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


ROTORS = ("n_drones", "n_rotors")
WRENCHES = ("n_bodies", 6)

LAYOUT = Layout(
    [
        Number("sums", SUMS, "work and losses since the start"),
        Number("old_sums", SUMS, "the same at the begin of the step"),
        Number("losses", LOSSES, "powers at the end of the last step"),
        Number("stage_losses", LOSSES, "the same in the stage"),
        Number("wind", VECTOR, "velocity of the air [m/s]"),
        Number("bracket", (float, 4), "of the time of a break"),
        Number("gravity", float, "[m/s2]"),
        Number("soft_below", float, "height below which there may be soft ground [m]"),
        Number("ground_friction", float, "coefficient of surfaces"),
        Number("tolerance", float, "of tensions [N]"),
        Number("energy_tolerance", float, "energy that a step may make [J]"),
        Number("can_break", float, "whether something has a break force or is to be cut now"),
        Number("period", float, "control period [s]"),
        Number("since", float, "time from the begin of the step to the stage [s]"),
        Number("turn2", float, "square of the phase of a swing in a step, 0 for any"),
        Number("n_dofs", int, "unknowns of bodies and shafts"),
        Number("changing", int, "numbers from here on that a step changes for good"),
        Number("level", int, "how often steps of the next period are halved to begin with"),
        Number("refined", int, "periods with finer steps than the usual"),
        Number("middle", int, "node that is shown as body 0, -1 for none"),
    ],
    [
        Field("nodes", ("n_nodes",), NODE, "of all cables, each from end 1 to end 2"),
        Field("segments", ("n_segments",), SEGMENT, "likewise"),
        Field("cables", ("n_cables",), CABLE, "cables"),
        Field("bodies", ("n_bodies",), BODY, "load, drones, anchors"),
        Field("corners", ("n_corners",), CORNER, "of all bodies, then of all cables"),
        Field("shafts", ("n_shafts",), SHAFT, "winches, then pulleys"),
        Field("speed", ROTORS, float, "of rotors [rad/s]; up to here a step changes it for good"),
        Field("solids", ("n_solids",), SOLID, "ground and obstacles"),
        Field("laws", ("n_laws",), LAW, "all tabulated axial laws"),
        Field("rows", ("n_rows",), ROW, "rows of the equations of all cables"),
        Field("matrix", ("n_unknowns", "n_unknowns"), float, "of these, lower triangle"),
        Field("unknowns", ("n_unknowns",), UNKNOWN, "of bodies and shafts, one per row"),
        Field("rotors", ROTORS, ROTOR, "rotors of the drones"),
        Field("stage_speed", ROTORS, float, "speeds of rotors within a stage"),
        Field("shown", ("n_bodies", 16), float, "bodies, columns as `PlantState.motion`"),
        Field("force", ("n_cables", 2, 3), float, "at the ends of cables, see `output.collect`"),
        Field("peak", ("n_cables",), float, "largest tensions within the period"),
        Field("held", WRENCHES, float, "force and moment that hold or push each body, world"),
        Field("free_length", ("n_cables",), float, "free lengths"),
        Field("command", ROTORS, float, "speeds that are commanded [rad/s]"),
        Field("wrench_body", WRENCHES, float, "moment and force on every body, its frame"),
        Field("wrench_enu", WRENCHES, float, "the same, world frame"),
        Field("fastest", ("n_bodies",), float, "largest speeds so far, edges' by turning included"),
        Field("kept", (2, "changing"), float, "what changes, at begin of period and step"),
        Field("progress", (), PROGRESS, "progress within the period"),
    ],
)
"""State, constants and work space of a rig."""

SYSTEM = LAYOUT.record

nodes_of = LAYOUT.opener("nodes")
segments_of = LAYOUT.opener("segments")
cables_of = LAYOUT.opener("cables")
bodies_of = LAYOUT.opener("bodies")
corners_of = LAYOUT.opener("corners")
shafts_of = LAYOUT.opener("shafts")
speed_of = LAYOUT.opener("speed")
solids_of = LAYOUT.opener("solids")
laws_of = LAYOUT.opener("laws")
rows_of = LAYOUT.opener("rows")
matrix_of = LAYOUT.opener("matrix")
unknowns_of = LAYOUT.opener("unknowns")
rotors_of = LAYOUT.opener("rotors")
stage_speed_of = LAYOUT.opener("stage_speed")
shown_of = LAYOUT.opener("shown")
force_of = LAYOUT.opener("force")
peak_of = LAYOUT.opener("peak")
held_of = LAYOUT.opener("held")
free_length_of = LAYOUT.opener("free_length")
own_command_of = LAYOUT.opener("command")
own_wrench_body_of = LAYOUT.opener("wrench_body")
own_wrench_enu_of = LAYOUT.opener("wrench_enu")
fastest_of = LAYOUT.opener("fastest")
kept_of = LAYOUT.opener("kept")
progress_of = LAYOUT.opener("progress")
