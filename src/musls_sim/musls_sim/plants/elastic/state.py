"""Records of everything that the compiled step works on: nodes, segments, cables, bodies, shafts.

A node is a lump of cable, a segment the massless spring between two nodes, a body a rigid body with
six degrees of freedom (or prescribed motion). The first and last node of a cable are fixed to
bodies. World frame unless said otherwise, SI units.

`stage` is the stage that is being solved, `known_...` what it knows from before (x = known_x +
d h v), `first_...` the first stage of the step; plain names are the state at the end of the last
step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.records import pointer
from musls_sim.plants.rigid_body import MOTION, ROTOR, WRENCH, Records

Array = NDArray[np.float64]

VECTOR = ("f8", (3,))
MATRIX = ("f8", (3, 3))


def _record(*fields: tuple, numbers: str = "", integers: str = "") -> np.dtype:  # type: ignore[type-arg]
    """Record of fields (name, type[, shape]), then single numbers, then integers."""
    single = [(name, "f8") for name in numbers.split()] + [
        (name, "i8") for name in integers.split()
    ]
    return np.dtype([*fields, *single])


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
    # `tension` belongs to the linearised stage, `elastic_tension` is its part without damping.
    numbers="""rest_length inverse_rest_length length length_rate tension elastic_tension stiffness
    geometric_stiffness alive taut peak_tension"""
    # Tension at which it breaks, share of the period at which it is to be cut, tension at the begin
    # of the step and in its first stage, whether it breaks at the end of the step; what happened:
    # share of the period at which it broke (-1: did not), its tension and energy then.
    " break_force cut_at begin_tension first_tension marked broken_at broken_tension broken_energy",
)

LAW = _record(("coefficients", "f8", (4,)), numbers="strain energy")
"""Piece of a tabulated axial law: strain where it begins, cubic of the force, energy up to it."""

BAND = 8
"""Half the band width of a cable that bends, without the diagonal."""
WIDEST_BORDER = 8
ENDS = 14
"""Tail and border of a cable together."""

ROW = _record(("band", "f8", (1 + BAND,)), ("border", "f8", (WIDEST_BORDER,)), numbers="right")
"""Row of the equations of a cable, see `solver`."""

BORDERED, FROM_PRESCRIBED, FROM_LEAF = 0, 1, 2
"""How end 1 of a cable is treated (`fold`): by a border; as a prescribed motion; together with its
free body, which has no other cable (a leaf)."""

CABLE = _record(
    # At its two ends.
    ("point", "f8", (2, 3)),  # in the frame of the body
    (
        "axis",
        "f8",
        (2, 3),
    ),  # direction of a clamp from end 1 towards end 2, in the frame of the body
    ("axis_world", "f8", (2, 3)),
    ("axis_rate", "f8", (2, 3)),
    ("moment", "f8", (2, 3)),  # conjugate to the direction of a clamp
    ("force", "f8", (2, 3)),  # on the body
    ("clamp_factor", "f8", (2,)),
    ("stored", "f8", (2,)),  # length on the winch
    ("out_rate", "f8", (2,)),  # rate at which free length comes out
    ("out_acceleration", "f8", (2,)),
    ("reel_force", "f8", (2,)),  # on what comes out
    ("ratio", "f8", (2,)),  # length per angle of the shaft
    ("body", "i8", (2,)),
    ("clamped", "i8", (2,)),
    ("reel", "i8", (2,)),  # shaft, -1 for none
    # Border with itself and its right-hand side; tail and border after the elimination.
    ("corner", "f8", (WIDEST_BORDER, WIDEST_BORDER)),
    ("edge", "f8", (WIDEST_BORDER,)),
    ("ends", "f8", (ENDS, ENDS)),
    ("ends_right", "f8", (ENDS,)),
    ("end_shift", "f8", (ENDS,)),
    numbers="""axial_stiffness axial_damping bending_stiffness bending_damping drag_across
    drag_along rest_length rest_length_rate bending_energy start_length linear_density
    shortest_length length_shift stop_stiffness stop_force stop_slope""",
    integers="""first_node segments first_segment first_row bends slack law_first law_rows border
    tail fold reels""",
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
    *_vectors("first_velocity first_acceleration first_turn_rate first_torque"),
    ("external", WRENCH),  # rotors, air, inputs
    *_vectors("force moment"),  # right-hand side
    *_vectors("shift spin"),  # solution: translation, turn
    ("reaction", "f8", (6,)),  # force and moment that a prescribed body needs
    ("reference_rotation", *MATRIX),  # of a prescribed body at the begin of the period
    ("path", "f8", (2, 18)),  # motion of a prescribed body at begin and end of the period
    # A leaf: inverse S^-1 of its matrix, S^-1 P^T, the matrix of its point, its own displacement
    # without the cable and that of its point.
    ("leaf_inverse", "f8", (6, 6)),
    ("leaf_arm", "f8", (6, 3)),
    ("leaf_stiffness", *MATRIX),
    ("leaf_free", "f8", (6,)),
    ("leaf_shift", *VECTOR),
    numbers="mass radius contact_stiffness contact_damping lump_mass",
    # First row in the matrix of the bodies, -1 for leaves and prescribed bodies; row of its rotors.
    integers="dof drone first_corner corners free",
)

CORNER = _record(
    ("place", *VECTOR),
    ("force", *VECTOR),
    ("anchor", "f8", (2,)),
    numbers="active slipping touched",
)
"""Corner of a body that can touch the ground."""

FEED, DRUM, PULLEY = 0, 1, 2

SHAFT = _record(
    ("drive", "f8", (2,)),  # at begin and end of the period
    ("axis", *VECTOR),  # in the frame of the body
    ("axis_world", *VECTOR),
    ("cable", "i8", (2,)),
    ("end", "i8", (2,)),
    numbers="""angle rate acceleration stage_angle stage_rate stage_acceleration known_angle
    known_rate first_rate first_acceleration begin_angle brake by_rate inertia radius lowest_angle
    highest_angle"""
    # Cable out per angle, its slope, cable out and its rates; right-hand side and solution; torques
    # of the drive and of friction, its limit and slope by the angle, where it sticks; direction in
    # which it slides, 0 if it sticks.
    """ ratio ratio_slope out out_rate out_acceleration right torque friction friction_limit
    friction_slope stuck_angle sliding bearing viscous capstan efficiency extra_wrap layer
    layer_angle wound_angle wound halted stop_torque stop_stiffness""",
    integers="body dof kind",
)
"""A winch or pulley, with cable and end (0 or 1) of its sides; a winch has one, the other is -1."""

SUMS = _record(
    numbers="""work absolute_work loss_cables loss_ground loss_air iterations euler_steps
    loss_breaks"""
)

LOSSES = _record(numbers="cables ground air drives switched")
"""Powers in a stage, and how many segments and corners began or ceased to carry."""

SYSTEM = _record(
    ("sums", SUMS),
    ("old_sums", SUMS),  # at the begin of the step
    ("losses", LOSSES),  # at the end of the last step
    ("stage_losses", LOSSES),
    ("wind", *VECTOR),
    ("bracket", "f8", (4,)),  # of the time of a break
    ("address", "i8", (17,)),  # of the tables, in the order of `Tables`
    ("rows", "i8", (17,)),  # how many each has
    # `can_break` is not 0 if a segment has a break force or is to be cut in this period, `jumped`
    # if a drive jumped at its begin.
    numbers="gravity ground ground_friction tolerance energy_tolerance can_break jumped",
    # All tables are in one memory; so many numbers of it are what a step changes for good.
    integers="n_dofs n_rotors memory changing",
)

UNKNOWN = _record(numbers="value", integers="first")
"""Unknown of the bodies and shafts, and the first column of its row that is not zero."""


class Tables(NamedTuple):
    """State, constants and work space.

    Attributes:
        nodes: `NODE`, those of a cable behind each other from end 1 to end 2.
        segments: `SEGMENT`, likewise.
        cables: `CABLE`.
        bodies: `BODY`.
        corners: `CORNER` of all bodies.
        shafts: `SHAFT`, winches, then pulleys.
        system: `SYSTEM`, (1,).
        speed: Rotor speeds, (n_drones, n_rotors) [rad/s].
        laws: `LAW` of all tabulated axial laws.
        rows: `ROW` of all cables.
        matrix: Matrix of the bodies and shafts, lower triangle.
        unknowns: `UNKNOWN`, one per row of the matrix.
        rotors: From `rotor_records`, (n_drones, n_rotors).
        stage_speed: Rotor speeds within a stage.
        shown: State of the bodies in the columns of `PlantState.motion`, (n_bodies, 16).
        force: Forces at the ends of the cables, see `output.collect`, (n_cables, 2, 3).
        peak: Largest tension of each cable within the period, (n_cables,).
    """

    nodes: Records
    segments: Records
    cables: Records
    bodies: Records
    corners: Records
    shafts: Records
    system: Records
    speed: Array
    laws: Records
    rows: Records
    matrix: Array
    unknowns: Records
    rotors: Records
    stage_speed: Array
    shown: Array
    force: Array
    peak: Array


class Drive(NamedTuple):
    """What acts in a period.

    Attributes:
        period: Its length [s].
        command: Rotor commands, (n_drones, n_rotors) [rad/s].
        wrench_body: Moment and force on every body, its frame, (n_bodies, 6).
        wrench_enu: The same in the world frame, (n_bodies, 6).
    """

    period: float
    command: Array
    wrench_body: Array
    wrench_enu: Array


CHANGING = 8
"""So many of the tables, the first ones, are what a step changes for good."""


# ---------- The tables in compiled code
#
# A step takes the record of the system alone, a mere pointer, and opens the tables out of it where
# it needs them. Nobody owns these views: a tuple of arrays would be counted in every call.


def note_tables(tables: Tables, memory: Array) -> None:
    """Note in the record of the system where the tables are in their memory."""
    system = tables.system[0]
    system["memory"] = memory.ctypes.data
    system["changing"] = sum(table.nbytes // 8 for table in tables[:CHANGING])
    system["address"] = [table.ctypes.data for table in tables]
    system["n_rotors"] = tables.speed.shape[1]
    system["rows"] = [len(table) for table in tables]


@compiled()
def system_at(address):
    """The record of the system at its address."""
    return carray(pointer(address), (1,), SYSTEM)[0]


@compiled()
def nodes_of(t):
    """See `Tables.nodes`."""
    return carray(pointer(t.address[0]), (t.rows[0],), NODE)


@compiled()
def segments_of(t):
    """See `Tables.segments`."""
    return carray(pointer(t.address[1]), (t.rows[1],), SEGMENT)


@compiled()
def cables_of(t):
    """See `Tables.cables`."""
    return carray(pointer(t.address[2]), (t.rows[2],), CABLE)


@compiled()
def bodies_of(t):
    """See `Tables.bodies`."""
    return carray(pointer(t.address[3]), (t.rows[3],), BODY)


@compiled()
def corners_of(t):
    """See `Tables.corners`."""
    return carray(pointer(t.address[4]), (t.rows[4],), CORNER)


@compiled()
def shafts_of(t):
    """See `Tables.shafts`."""
    return carray(pointer(t.address[5]), (t.rows[5],), SHAFT)


@compiled()
def speed_of(t):
    """See `Tables.speed`."""
    return carray(pointer(t.address[7]), (t.rows[7], t.n_rotors), np.float64)


@compiled()
def laws_of(t):
    """See `Tables.laws`."""
    return carray(pointer(t.address[8]), (t.rows[8],), LAW)


@compiled()
def rows_of(t):
    """See `Tables.rows`."""
    return carray(pointer(t.address[9]), (t.rows[9],), ROW)


@compiled()
def matrix_of(t):
    """See `Tables.matrix`."""
    return carray(pointer(t.address[10]), (t.rows[10], t.rows[10]), np.float64)


@compiled()
def unknowns_of(t):
    """See `Tables.unknowns`."""
    return carray(pointer(t.address[11]), (t.rows[11],), UNKNOWN)


@compiled()
def rotors_of(t):
    """See `Tables.rotors`."""
    return carray(pointer(t.address[12]), (t.rows[12], t.n_rotors), ROTOR)


@compiled()
def stage_speed_of(t):
    """See `Tables.stage_speed`."""
    return carray(pointer(t.address[13]), (t.rows[13], t.n_rotors), np.float64)


@compiled()
def shown_of(t):
    """See `Tables.shown`."""
    return carray(pointer(t.address[14]), (t.rows[14], 16), np.float64)


@compiled()
def force_of(t):
    """See `Tables.force`."""
    return carray(pointer(t.address[15]), (t.rows[15], 2, 3), np.float64)


@compiled()
def peak_of(t):
    """See `Tables.peak`."""
    return carray(pointer(t.address[16]), (t.rows[16],), np.float64)
