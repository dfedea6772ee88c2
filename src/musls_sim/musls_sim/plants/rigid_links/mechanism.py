"""Records of the rigid-link mechanism: its bodies, joint coordinates and what acts on them.

The tree of bodies is that of `musls_description.hanging.tree`, but for the joints of cables that
are free to twist: those are even (below), where the tree has universal joints. All records of a
plant lie in one piece of memory, which begins with a record of the system; compiled functions get
its address and find the other tables from it. Vectors are in the world frame where nothing else is
said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

import numpy as np
import scipy
from numba import types
from numpy.typing import NDArray

from musls_description.hanging.tree import Tree
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.layout import Field, Layout, Number, Tables
from musls_description.numerics.records import record_at
from musls_description.numerics.rotations import (
    from_matrix,
    from_rotation_vector,
    intrinsic_xyz,
    rotation_vector,
)
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    body_axes_in_world,
    column,
    cross,
    dot,
    increase,
    put,
    put_quaternion,
    quaternion_product,
    rotate,
    scale,
    sub,
    turned,
    write_matrix,
)
from musls_description.numerics.vectors import from_rotation_vector as turn_quaternion
from musls_description.system.drone import Drone
from musls_description.system.obstacles import SOLID, AnyObstacle
from musls_description.system.slung_system import Load, RigSystem
from musls_sim.plants.elastic.cables.line import line_of
from musls_sim.plants.rigid_body import (
    CONTACT,
    CORNER,
    MOTION,
    ROTOR,
    TOUCHING,
    WRENCH,
    corner_constants,
    corner_records,
    rotor_records,
    soft_below_m,
    surfaces_of,
)
from musls_sim.plants.rigid_links.step_control import JUMP_SHARE, LEVELS, LIMIT, Levels

Records = NDArray[np.void]

BODY = np.dtype(
    [
        *MOTION,
        *CONTACT,
        ("parent", np.int64),  # -1 for the first body of a piece
        ("first", np.int64),  # first coordinate
        ("freedom", np.int64),  # number of coordinates: 6 of a free body, else axes of the joint
        ("straight", np.int64),  # 1 if both rotations of the joint are identities
        ("even", np.int64),  # 1 if the joint has an attitude instead of angles
        ("turning", float, 3),  # angular velocity of the axes of such a joint
        ("swing", float, 3),  # what `omega` has more than with the rates at the begin of the step
        ("turning_swing", float, 3),  # the same of `turning`
        ("parent_turn", float, (3, 3)),  # joint frame in the parent's frame
        ("parent_place", float, 3),
        ("own_turn", float, (3, 3)),  # the same in this body's frame at zero angles
        ("own_place", float, 3),
        ("mass", float),
        ("com", float, 3),  # centre of mass
        ("inertia", float, (3, 3)),  # about it, body frame
        ("slender", np.int64),  # 1 if it is alike about all axes across x
        ("piece", np.int64),  # piece of the tree that the body belongs to
        ("drag", float, 3),
        ("lies", float),  # mass of cable that a body lays on soft ground
        ("slides", np.int64),  # cable whose first link this is and which slides, else -1
        ("cable", np.int64),  # cable of the joint, -1 for the load
        ("attitude", float, 4),  # unit quaternion of a free body, or of an even joint
        ("place", float, 3),  # of a free body's origin
        ("begin_attitude", float, 4),  # the same at the begin of the period
        ("begin_place", float, 3),
        ("begin_omega", float, 3),  # with the rates at the begin of the step
        ("begin_velocity", float, 3),
        ("wrench", WRENCH),  # from outside, about the origin
        ("joint", float, 3),  # place of the joint; a free body's is its origin
        ("arm", float, 3),  # from the parent's joint to it
        ("centripetal", float, 3),  # acceleration of it by the parent's angular velocity
        ("spin", float, 6),  # articulated inertia about the joint, see `articulated`
        ("coupling", float, 9),
        ("inert", float, 6),
        ("moment", float, 3),  # what is needed if nothing accelerates
        ("force", float, 3),
        ("angular", float, 3),  # acceleration of the body, and of its joint's place
        ("linear", float, 3),
        ("soft", np.int64),  # whether soft ground pushes
        ("soft_normal", float, 3),  # the plane that it is within the step: its normal, world,
        ("soft_level", float),  # its distance from the origin along that,
        ("soft_velocity", float, 3),  # and its velocity
    ],
    align=True,
)

COORDINATE = np.dtype(
    [
        ("damping", float),
        ("stiffness", float),
        ("friction", float),
        ("second", np.int64),  # 1 for the axis that has stops
        ("torque", float),  # of damper, spring, friction and stop at no acceleration
        ("felt", float),  # and what it loses by acceleration, as an inertia
        ("axis", float, 3),
        ("turning", float, 3),  # articulated inertia times the axis: moment, force
        ("pushing", float, 3),
        ("left", float),  # remaining torque
        ("inverse", float),  # one over the inertia that the coordinate feels
        ("drift", float, 3),  # angular acceleration by the rates
    ],
    align=True,
)
"""A coordinate of a joint. Those of a free body (angular, then linear velocity) use none of it."""

EDGE = np.dtype(
    [
        *CORNER.descr,
        ("share", float),  # of the sticking friction that there is, less than 1 if it slips
        ("pushes", np.int64),
        ("acted", float, 3),  # force of the last evaluation; `push` has the friction of the next
        ("begin_stuck", np.int64),  # at the begin of the period
        ("begin_anchor", float, 3),
        ("normal", float, 3),  # of the surface in this step, and its height along the normal
        ("level", float),
    ],
    align=True,
)
"""A corner of a body that may touch a surface."""

NONE, SLACK, STRETCHED = range(3)
"""States of the joint between the load and the first link of a cable."""

SLIDE = np.dtype(
    [
        ("state", np.int64),  # `NONE`, `SLACK` or `STRETCHED`
        ("length", float),  # by which the first link has slid into its joint; negative: stretched
        ("rate", float),
        ("rest", float),  # tension at length 0
        ("mean", float),  # of the tension about which it swings
        ("begin_state", np.int64),  # the same at the begin of the period
        ("begin_length", float),
        ("begin_rate", float),
        ("begin_rest", float),
        ("begin_mean", float),
        ("begin_before", float),
        ("begin_change", float),
        ("begin_slides", np.int64),  # `BODY.slides` of the first link
        ("middle_rate", float),  # rate in the middle of the step, an estimate
        ("change", float),  # acceleration
        ("tension", float),
        ("weight", float),  # of the cable: how hard it may push
        ("stiffness", float),  # force per stretch, and per its rate
        ("damping", float),
        ("stretches", np.int64),  # whether a jerk lets it stretch
        ("before", float),  # tension a moment ago, see `slack.MOMENT_S`
        ("jerk", float),  # such a rise of the tension since then
        ("link_mass", float),
        ("link_length", float),
        ("steadying", float),  # joint damping that this step needs, see `slack.steadying`
        ("beyond", float),  # inertia beyond the slide along it
        ("lightness", float),  # one over the mass that the spring moves
        ("gives", float),  # way per tension by which a cable gives way in a loop, see `closing`
        ("along", float, 3),  # direction of the slide, from the link into the joint
        ("turning", float, 3),  # as of other coordinates
        ("pushing", float, 3),
        ("left", float),
        ("inverse", float),
        ("drift", float, 3),  # acceleration by the rates
    ],
    align=True,
)
"""Slack and stretch of a cable, see `slack`."""

SECANT_JERKS = 20.0
"""Tension over `SLIDE.jerk` up to which the stiffness of a cable is taken, where it varies."""

GIVES = 1e-7
"""Strain of cables in loops under a drone's share of the carried weight: less than of any rope, and
more than what waves take of the distance of a taut chain's ends."""

PIECE_MOTION = np.dtype(
    [
        ("mass", float),
        ("centre", float, 3),  # mass times the way from the pivot to the centre of mass
        ("momentum", float, 3),
        ("angular_momentum", float, 3),  # about the pivot, as the inertia
        ("inertia", float, 6),
        ("kinetic", float),  # energy
    ],
    align=True,
)
"""Sums over the bodies of a piece."""

PIECE = np.dtype(
    [
        ("first", np.int64),  # its first body
        ("pivot", float, 3),  # place of that before the step
        ("centre", float, 3),  # those of `PIECE_MOTION` that it has to have after the step
        ("momentum", float, 3),
        ("angular_momentum", float, 3),
        ("now", PIECE_MOTION),  # those that it has
        ("shift", float, 3),  # what gives it the former: of all places,
        ("turn", float, 3),  # of all angular velocities,
        ("push", float, 3),  # and of its first body's velocity,
        ("place", float, 3),  # which is here
    ],
    align=True,
)
"""A piece of the tree: bodies that hang together, see `momentum`."""

CLOSING = np.dtype(
    [
        ("link", np.int64),  # last link of the cable
        ("point", float, 3),  # its end in the link's frame
        ("body", np.int64),  # that holds it, -1 for what does not move
        ("place", float, 3),  # where, in the frame of that body, or in the world
        ("open", np.int64),  # 1 if it has let go
        ("arm", float, 3),  # from the joint of the link to its end
        ("far_arm", float, 3),  # from the joint of the body to the place
        ("force", float, 3),  # on the end of the link; its opposite acts on the body there
        ("begin_force", float, 3),  # the same at the begin of the period
    ],
    align=True,
)
"""The end of a cable that closes a loop of a rig, see `closing`."""

LEDGER = np.dtype(
    [
        ("energy", float),  # mechanical energy now
        ("balance", float),  # energy minus the work of all forces
        ("low", float),  # its lowest value so far
        ("spurious", float),  # its largest rise above that
        ("high", float),  # its highest value so far
        ("lost", float),  # its largest fall below that
        ("exchanged", float),  # work so far, without regard to sign
        ("kinetic", float),  # largest kinetic energy
        ("now_kinetic", float),  # kinetic energy now
        ("recent", float),  # rise of the balance and exchange of about the last second
        ("recent_exchanged", float),
        ("recent_impulse", float, 3),  # without a source, of about the last second [N s]
    ],
    align=True,
)
"""Energy balance [J], see `period.account`."""


ROTORS = ("n_drones", "n_rotors")
PER_COORDINATE = ("n_coordinates",)

LAYOUT = Layout(
    [
        Number("gravity", float, "[m/s2]"),
        Number("soft_below", float, "height below which soft ground may be under cables [m]"),
        Number("friction", float, "coefficient of surfaces"),
        Number("ahead", float, "time for which the ground is looked for [s]"),
        Number("now", float, "time since the begin of the period [s]"),
        Number("last_step", float, "length of the last step [s]"),
        Number("earlier_step", float, "length of the one before"),
        Number("begin_last_step", float, "the same at the begin of the period"),
        Number("begin_earlier_step", float, "likewise"),
        Number("begin_fresh", int, "likewise"),
        Number("fresh", int, "1 if there are no steps to carry on from"),
        Number("near", int, "whether anything may touch the ground"),
        Number("touches", int, "whether anything does"),
        Number("evaluations", int, "so far"),
        Number("wind", (float, 3), "velocity of the air [m/s]"),
        Number("guided", int, "whether drones are moved along paths"),
        Number("stopped", int, "first body whose joint was at its stop, 0 if none was"),
        Number("jump", float, "largest change of a tension within a step of the period [N]"),
        Number("stiff", float, "largest squared frequency of a stretched cable [1/s2]"),
        Number("air", float, "power of the air on the bodies [W]"),
        Number("work", float, "work of the other outside forces in the period [J]"),
        Number("absolute_work", float, "the same without regard to sign"),
        Number("loss", float, "energy lost to joints, air and ground [J]"),
        Number("made", (float, 3), "impulse that `momentum` gave the pieces in the period [N s]"),
        Number("exchanged", float, "work and losses without regard to sign [J]"),
        Number("ledger", LEDGER, "energy balance"),
        Number("begin_ledger", LEDGER, "the same at the begin of the period"),
    ],
    [
        Field("bodies", ("n_bodies",), BODY, "in the order of the tree: parents before children"),
        Field("coordinates", PER_COORDINATE, COORDINATE, "coordinates of joints"),
        Field("edges", ("n_edges",), EDGE, "edges of each body for each surface"),
        Field("slacks", ("n_cables",), SLIDE, "slack of all cables"),
        Field(
            "pieces", ("n_pieces",), PIECE, "pieces of the tree, one if all bodies hang together"
        ),
        Field("rotors", ROTORS, ROTOR, "rotors of the drones"),
        Field("speed", ROTORS, float, "their speeds [rad/s]"),
        Field("begin_speed", ROTORS, float, "the same at the begin of the period"),
        Field("command", ROTORS, float, "speeds that are commanded"),
        Field("angle", PER_COORDINATE, float, "angles of joints, 0 for free bodies"),
        Field("rate", PER_COORDINATE, float, "rates of all coordinates"),
        Field("change", PER_COORDINATE, float, "accelerations in this step"),
        Field("last_change", PER_COORDINATE, float, "accelerations in the last step"),
        Field("earlier_change", PER_COORDINATE, float, "accelerations in the step before it"),
        Field("middle_rate", PER_COORDINATE, float, "rates in the middle of the step, an estimate"),
        Field("begin", (4, *PER_COORDINATE), float, "angles, rates, changes at the period's begin"),
        Field("selected", ("n_selected",), int, "body index of load and drones"),
        Field("first_links", ("n_cables",), int, "body index of each cable's first link"),
        Field("last_links", ("n_cables",), int, "body index of each cable's last link"),
        Field("beyond", ("n_cables",), int, "`Tree.beyond`: what holds the end of the last link"),
        Field("backwards", ("n_cables",), int, "1 for cables whose first link is at their end 2"),
        Field("anchors", ("n_anchors",), int, "body index of anchors, -1 for one that is still"),
        Field("closings", ("n_closings",), CLOSING, "ends of cables that close loops"),
        Field("mobility", ("n_closed", "n_closed"), float, "accelerations by forces there"),
        Field("missing", ("n_closed",), float, "accelerations that are missing there"),
        Field("gaps", ("n_closed",), float, "accelerations there by a slide"),
        Field("pulls", ("n_cables",), float, "tension of each cable at its first link"),
        Field("effects", ("n_closed", "n_cables"), float, "tensions by unit forces there"),
        Field("wrench_body", ("n_selected", 6), float, "inputs, see `PlantInputs`"),
        Field("wrench_enu", ("n_selected", 6), float, "inputs in the world frame"),
        Field("guide", ("n_drones", 6), float, "moment and force that move prescribed drones"),
        Field("target", ("n_drones", 7), float, "their poses in the middle of the next step"),
        Field(
            "compliance", ("n_forced", "n_forced"), float, "accelerations by them, or the inverse"
        ),
        Field("begin_force", ("n_cables", 2, 3), float, "`force` at the begin of the period"),
        Field("shown", ("n_shown", 16), float, "`PlantState.motion`, anchors behind"),
        Field("force", ("n_cables", 2, 3), float, "`PlantState.cable_force_n`"),
        Field("peak", ("n_cables",), float, "`PlantState.tension_peak_n`"),
        Field("solids", ("n_solids",), SOLID, "surfaces: ground and obstacles"),
        Field("levels", (), LEVELS, "levels of refinement"),
        Field("limits", ("n_levels", "n_cables"), LIMIT, "of a step of each level"),
    ],
)
SYSTEM = LAYOUT.record

bodies_of = LAYOUT.opener("bodies")
coordinates_of = LAYOUT.opener("coordinates")
edges_of = LAYOUT.opener("edges")
slacks_of = LAYOUT.opener("slacks")
pieces_of = LAYOUT.opener("pieces")
rotors_of = LAYOUT.opener("rotors")
speed_of = LAYOUT.opener("speed")
begin_speed_of = LAYOUT.opener("begin_speed")
own_command_of = LAYOUT.opener("command")
angle_of = LAYOUT.opener("angle")
rate_of = LAYOUT.opener("rate")
change_of = LAYOUT.opener("change")
last_change_of = LAYOUT.opener("last_change")
earlier_change_of = LAYOUT.opener("earlier_change")
middle_rate_of = LAYOUT.opener("middle_rate")
begin_of = LAYOUT.opener("begin")
selected_of = LAYOUT.opener("selected")
first_links_of = LAYOUT.opener("first_links")
last_links_of = LAYOUT.opener("last_links")
beyond_of = LAYOUT.opener("beyond")
backwards_of = LAYOUT.opener("backwards")
anchors_of = LAYOUT.opener("anchors")
closings_of = LAYOUT.opener("closings")
mobility_of = LAYOUT.opener("mobility")
missing_of = LAYOUT.opener("missing")
gaps_of = LAYOUT.opener("gaps")
pulls_of = LAYOUT.opener("pulls")
effects_of = LAYOUT.opener("effects")
own_wrench_body_of = LAYOUT.opener("wrench_body")
own_wrench_enu_of = LAYOUT.opener("wrench_enu")
guide_of = LAYOUT.opener("guide")
target_of = LAYOUT.opener("target")
compliance_of = LAYOUT.opener("compliance")
begin_force_of = LAYOUT.opener("begin_force")
shown_of = LAYOUT.opener("shown")
force_of = LAYOUT.opener("force")
peak_of = LAYOUT.opener("peak")
solids_of = LAYOUT.opener("solids")
levels_of = LAYOUT.opener("levels")
limits_of = LAYOUT.opener("limits")


# ---------- Records of a system


def build_records(
    system: RigSystem,
    tree: Tree,
    *,
    gravity_m_s2: float,
    ground_height_enu_m: float | None,
    ahead_s: float,
    obstacles: Sequence[AnyObstacle] = (),
    contact: Collection[str] = TOUCHING,
    inextensible: bool = False,
    even: bool = True,
    levels: Levels | None = None,
) -> tuple[Array, Tables]:
    """Records of a tree with all angles and rates 0: their memory and views of it.

    The memory begins with the record of the system. The ground and obstacles are looked
    for `ahead_s` ahead; a height of None means no ground. `contact` and `inextensible`: as those
    of `physics`; `even`: whether cables that are free to twist have even joints.
    """
    assert system.load is not None  # checked before
    bodies = tree_bodies(tree)
    selected = np.array([0, *tree.drone])
    parts: list[Load | Drone] = [system.load, *system.drones]
    points = [np.zeros((0, 3))] * len(bodies)  # that touch surfaces
    kinds = ["load", *["drones"] * system.n_drones]
    for row, part, kind in zip(selected, parts, kinds, strict=True):
        bodies["drag"][row] = part.drag_n_s_m
        bodies["stiffness"][row], bodies["damping"][row] = corner_constants(part.mass_kg)
        if kind in contact:
            points[row] = part.collision.corners_m
            bodies["radius"][row] = np.linalg.norm(points[row], axis=1).max()
    for row, anchor in zip(tree.anchors.tolist(), system.anchors, strict=True):
        if row >= 0 and anchor.collision is not None and "load" in contact:
            bodies["stiffness"][row], bodies["damping"][row] = corner_constants(anchor.mass_kg or 0)
            if anchor.inertia_kg_m2 is None:  # a knot lies as a ball: it does not turn there
                points[row] = np.zeros((1, 3))
                bodies["rounding"][row] = -anchor.collision.bottom_m
            else:
                points[row] = anchor.collision.corners_m
                bodies["radius"][row] = np.linalg.norm(points[row], axis=1).max()
    hard = corner_constants(bodies["mass"].sum())
    bodies["cable"] = -1
    last_links = tree.first_link + [cable.links - 1 for cable in system.cables]
    ends = np.where(tree.beyond >= 0, tree.beyond, last_links)
    for i, (first, last, end, cable) in enumerate(
        zip(tree.first_link, last_links, ends, system.cables, strict=True)
    ):
        links = slice(first, last + 1)
        bodies["cable"][first : end + 1] = i
        if even:  # a hook that was closed turns about three axes in any case
            joints = bodies[first : end + 1]
            joints["even"] = (joints["freedom"] == 3) | (cable.twist == "free")
            joints["even"] &= joints["parent"] >= 0
        bodies["lies"][links] = cable.link_mass_kg
        bodies["slender"][links] = 1
        if "cables" in contact:
            points[links] = [np.zeros((1, 3))] * cable.links
            bodies["stiffness"][links], bodies["damping"][links] = hard
            bodies["rounding"][links] = cable.radius_m
    bodies["slides"] = -1
    solids = surfaces_of(ground_height_enu_m, obstacles)
    edges = corner_records(points, len(solids), EDGE)
    bodies["corners"] = [len(solids) * len(place) for place in points]
    bodies["first_corner"] = np.cumsum(bodies["corners"]) - bodies["corners"]
    slacks = np.zeros(system.n_cables, SLIDE)
    slacks["weight"] = [gravity_m_s2 * cable.mass_kg for cable in system.cables]
    slacks["stretches"] = not inextensible
    scale_m_s2 = gravity_m_s2 or STANDARD_GRAVITY_M_S2  # without gravity jerks need a scale, too
    share_kg = system.carried_mass_kg / max(system.n_drones, 1)
    slacks["jerk"] = JUMP_SHARE * scale_m_s2 * share_kg
    for row, cable in zip(slacks, system.cables, strict=True):
        line = line_of(cable)
        row["gives"] = GIVES * cable.length_m / (scale_m_s2 * share_kg)
        tension = SECANT_JERKS * row["jerk"]
        row["stiffness"] = tension / line.strain(tension) / cable.length_m
        row["damping"] = line.damping_n_s / cable.length_m
        row["link_mass"] = cable.link_mass_kg
        row["link_length"] = cable.link_length_m
    motion = np.zeros((1 + system.n_drones + len(system.anchors), 16))
    motion[:, 6] = 1.0
    return LAYOUT.build(
        {
            "gravity": gravity_m_s2,
            "friction": system.ground_friction,
            "soft_below": -np.inf if "cables" in contact else soft_below_m(solids),
            "ahead": ahead_s,
            "fresh": 1,
            "bodies": bodies,
            "coordinates": tree_coordinates(tree, bodies),
            "edges": edges,
            "slacks": slacks,
            "pieces": tree_pieces(bodies),
            "rotors": rotor_records(system),
            "selected": selected,
            "first_links": np.array(tree.first_link),
            "last_links": last_links,
            "beyond": tree.beyond,
            "backwards": tree.backwards,
            "anchors": tree.anchors,
            "closings": tree_closings(tree),
            "mobility": np.zeros(2 * (3 * len(tree.closings),)),
            "shown": motion,
            "solids": solids,
            **({"n_levels": 1} if levels is None else levels.tables),
        }
    )


OF_TREE = {
    "parent": "parent",
    "freedom": "freedom",
    "parent_turn": "joint_in_parent_rotation",
    "own_turn": "joint_in_child_rotation",
    "parent_place": "joint_in_parent_position_m",
    "own_place": "joint_in_child_position_m",
    "mass": "mass_kg",
    "com": "com_m",
    "inertia": "inertia_kg_m2",
}
"""Fields of `BODY` that a body of the tree has, and their names there."""


def tree_bodies(tree: Tree) -> Records:
    """Bodies and joints of a tree at no place yet, (b,) of `BODY`."""
    bodies = np.zeros(len(tree.bodies), BODY)
    bodies["first"] = tree.first_coordinate
    for name, attribute in OF_TREE.items():
        bodies[name] = [getattr(body, attribute) for body in tree.bodies]
    turns = bodies["parent_turn"], bodies["own_turn"]
    bodies["straight"] = np.all([turn == np.eye(3) for turn in turns], axis=(0, 2, 3))
    bodies["attitude"][:, 0] = 1.0
    return bodies


def tree_pieces(bodies: Records) -> Records:
    """Pieces of a tree; writes into each body to which it belongs."""
    roots: list[int] = []
    piece: list[int] = []
    for k, parent in enumerate(bodies["parent"].tolist()):
        if parent < 0:
            roots.append(k)
        piece.append(len(roots) - 1 if parent < 0 else piece[parent])
    bodies["piece"] = piece
    pieces = np.zeros(len(roots), PIECE)
    pieces["first"] = roots
    return pieces


def tree_closings(tree: Tree) -> Records:
    """Ends of cables that close the loops of a tree, (k,) of `CLOSING`."""
    rows = np.zeros(len(tree.closings), CLOSING)
    for row, closing in zip(rows, tree.closings, strict=True):
        row["link"] = closing.link
        row["point"] = closing.point_m
        row["body"] = closing.body
        row["place"] = closing.place_m
    return rows


def tree_coordinates(tree: Tree, bodies: Records) -> Records:
    """Joints' coordinates of a tree, (c,) of `COORDINATE`."""
    rows = np.zeros(tree.n_coordinates, COORDINATE)
    joints = [
        (k, body, axis)
        for body, first in zip(tree.bodies, tree.first_coordinate.tolist(), strict=True)
        for k, axis in enumerate(body.axes, first)
    ]
    places = [k for k, _, _ in joints]
    rows["damping"][places] = [body.axis_damping_n_m_s_rad(axis) for _, body, axis in joints]
    rows["friction"][places] = [body.friction_n_m for _, body, _ in joints]
    # A rope resists bending, not turning about itself.
    stiffness = [0.0 if axis == "x" else body.stiffness_n_m_rad for _, body, axis in joints]
    rows["stiffness"][places] = stiffness
    has_axes = np.array([bool(body.axes) for body in tree.bodies])
    rows["second"][bodies["first"][has_axes & (bodies["even"] == 0)] + 1] = 1
    return rows


def take_over(t: Tables, old: Tables) -> None:
    """Copy all that is not motion from the records of another tree of the same bodies."""
    for name in ("mass", "inertia", "slides"):
        t.bodies[name] = old.bodies[name]
    t.edges[:] = old.edges
    t.closings[:] = old.closings
    t.command[:] = old.command
    t.slacks[:] = old.slacks


SHOWN = "rotors", "speed", "shown", "force", "peak", "levels", "limits", "compliance"
"""Tables that stay where they are when another tree takes over."""


def share_shown(t: Tables, old: Tables) -> Tables:
    """Share the memory of the shown state with another set of records."""
    shown = {name: getattr(old, name) for name in SHOWN}
    LAYOUT.fill(t.system, shown)
    return t.replaced(**shown)


def set_positions(t: Tables, positions: Array) -> None:
    """Set coordinates of the tree: rotation vector and place of free bodies, joint angles."""
    if t.bodies["even"].any():
        rotations = np.empty((len(t.bodies), 3, 3))
        for freedom, axes in ((2, "YZ"), (3, "XYZ"), (6, "")):
            alike = np.flatnonzero(t.bodies["freedom"] == freedom)
            q = positions[t.bodies["first"][alike][:, None] + np.arange(min(freedom, 3))]
            turns = (
                scipy.spatial.transform.Rotation.from_euler(axes, q)
                if axes
                else scipy.spatial.transform.Rotation.from_rotvec(q)
            )
            rotations[alike] = turns.as_matrix()
        frames = zip(t.bodies["parent"], t.bodies["parent_turn"], t.bodies["own_turn"], strict=True)
        for k, (parent, parent_turn, own_turn) in enumerate(frames):
            if parent >= 0:
                rotations[k] = rotations[parent] @ parent_turn @ rotations[k] @ own_turn.T
        positions = joint_coordinates(t, positions, rotations, evenly_bent)
    set_own_positions(t, positions)


def set_rotations(t: Tables, rotations: Array, places_enu_m: Array) -> None:
    """Set attitudes of bodies with even joints, (b, 3, 3), and places of the free ones, (b, 3).

    Of links only the x axis counts: they turn about it as their joints ask for.
    """
    positions = joint_coordinates(t, np.zeros(len(t.angle)), rotations, evenly_bent)
    for k in np.flatnonzero(t.bodies["parent"] < 0):
        first = t.bodies["first"][k]
        positions[first + 3 : first + 6] = places_enu_m[k]
    set_own_positions(t, positions)


def positions_of(t: Tables) -> Array:
    """Coordinates of the tree, the inverse of `set_positions`, (c,)."""
    own = own_positions_of(t)
    if not t.bodies["even"].any():
        return own
    return joint_coordinates(t, own, t.bodies["rotation"], universally_bent)


def set_own_positions(t: Tables, positions: Array) -> None:
    """Enter coordinates in which even joints have rotation vectors: of a bend its y and z, (c,)."""
    t.angle[:] = positions
    for bodies, places in _with_attitudes(t):
        q = positions[places]
        bend = q.shape[1] == 2
        turns = np.column_stack([np.zeros(len(q)), q]) if bend else q[:, :3]
        t.bodies["attitude"][bodies] = from_rotation_vector(turns)
        if q.shape[1] == 6:
            t.bodies["place"][bodies] = q[:, 3:]
        t.angle[places] = 0.0


def own_positions_of(t: Tables) -> Array:
    """Coordinates with rotation vectors, the inverse of `set_own_positions`, (c,)."""
    positions: Array = t.angle.copy()
    for bodies, places in _with_attitudes(t):
        turns = rotation_vector(t.bodies["attitude"][bodies])
        all_six = np.column_stack([turns, t.bodies["place"][bodies]])
        freedom = places.shape[1]
        positions[places] = turns[:, 1:] if freedom == 2 else all_six[:, :freedom]
    return positions


def _with_attitudes(t: Tables) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Free bodies and those beyond even joints, with their coordinates: (k,), (k, freedom)."""
    freedom = t.bodies["freedom"]
    with_attitude = (t.bodies["parent"] < 0) | (t.bodies["even"] == 1)
    for size in (2, 3, 6):
        if len(bodies := np.flatnonzero(with_attitude & (freedom == size))):
            yield bodies, t.bodies["first"][bodies][:, None] + np.arange(size)


# ---------- Joints of cables that are free to twist
#
# What such a cable holds does not depend on how its links are turned about themselves: it twists
# at the load alone. Even joints bend alike in all directions, without a stop: between links, and to
# the drone, R = exp(b) with a rotation vector b across the cable (a constant-velocity joint), kept
# as a quaternion (w, 0, y, z); any rotation at the load. The relative angular velocity is
# u1 a1 + u2 a2 along the y and z axes of the frame that is bent half as far, in which
#
#     dw/dt = -u.s / 2,   ds/dt = (u - (u.s) s / (1 + w)) / 2,   s = (y, z),
#
# and this frame turns by half the bend and by -(y u2 - z u1) / (2 (1 + w)) about its own x axis.
# At the load the axes are those of the link. `hanging.tree`, Gazebo and DART have universal joints.


def joint_coordinates(
    t: Tables,
    positions: Array,
    rotations: Array,
    bend: Callable[[Array, Array], tuple[Array, Array]],
) -> Array:
    """Coordinates of even joints from attitudes of drones and directions of links, (c,).

    From the drones downwards each link is turned about itself as its upper joint asks for: `bend`
    gives the rotation of this joint, and its coordinates, from its frame and the direction of the
    link below.
    """
    positions = positions.copy()
    rotations = np.array(rotations)
    evenly = bend is evenly_bent
    names = "parent", "first", "freedom", "even"
    places = zip(*(t.bodies[name].tolist() for name in names), strict=True)
    parent_turn = t.bodies["parent_turn"]
    own_turn = t.bodies["own_turn"]
    for k, (up, first, freedom, even) in reversed(list(enumerate(places))):
        q = positions[first : first + freedom]
        frame = rotations[k] @ own_turn[k]
        if up < 0:
            q[:3] = rotation_vector(from_matrix(rotations[k]))
        elif even and len(q) == 3:
            turn = (rotations[up] @ parent_turn[k]).T @ frame
            q[:] = rotation_vector(from_matrix(turn)) if evenly else intrinsic_xyz(turn)
        elif even:
            turn, q[:] = bend(frame, rotations[up][:, 0])
            rotations[up] = frame @ turn.T
    return positions


def evenly_bent(frame: Array, below: Array) -> tuple[Array, Array]:
    """Rotation of a joint that bends without twist, (3, 3), and its vector's y and z, (2,)."""
    way = below @ frame  # its y and z axes are those of the frame below, turned back
    x, y, z = (way / np.sqrt(way @ way)).tolist()  # else rounding doubles from link to link
    if x < 1e-12 - 1.0:
        return np.diag([-1.0, -1.0, 1.0]), np.array([0.0, np.pi])
    k = 1.0 / (1.0 + x)
    sine = np.hypot(y, z)
    turn = np.array(
        [[x, y, z], [-y, 1.0 - k * y * y, -k * y * z], [-z, -k * y * z, 1.0 - k * z * z]]
    )
    angle = np.arctan2(sine, x) / sine if sine > 1e-9 else 1.0
    return turn, angle * np.array([z, -y])


def universally_bent(frame: Array, below: Array) -> tuple[Array, Array]:
    """Rotation of a universal joint whose second angle is within 90 degrees, and its angles."""
    x, y, z = below @ frame
    first = np.arcsin(np.clip(z, -1.0, 1.0))
    second = np.arctan2(-y, x)
    if x < 0.0:
        first = np.pi - first
        second = np.arctan2(y, -x)
    turn = scipy.spatial.transform.Rotation.from_euler("YZ", [first, second]).as_matrix()
    return turn, np.array([np.arctan2(turn[0, 2], turn[2, 2]), np.arctan2(turn[1, 0], turn[1, 1])])


@compiled(inlined=True)
def bend_on(q, u1, u2, h):
    """Attitude of a joint that bends without twist a time later, at rates u; to second order."""
    w = q[0]
    y = q[2]
    z = q[3]
    k = 0.5 / (1.0 + q[0])
    along = u1 * y + u2 * z
    wt = -0.5 * along
    yt = 0.5 * u1 - k * along * y
    zt = 0.5 * u2 - k * along * z
    turns = u1 * yt + u2 * zt  # rate of `along`
    more = turns + k * along * along
    wtt = -0.5 * turns
    ytt = -k * (more * y + along * yt)
    ztt = -k * (more * z + along * zt)
    w = w + h * (wt + 0.5 * h * wtt)
    y = y + h * (yt + 0.5 * h * ytt)
    z = z + h * (zt + 0.5 * h * ztt)
    size = 1.5 - 0.5 * (w * w + y * y + z * z)  # one over the length, which is nearly one
    return w * size, 0.0, y * size, z * size


@compiled()
def unwind(t):
    """Count bends beyond 180 degrees as bends the other way: at 360 the axes would be singular.

    The frame that is bent half as far then turns by 180 degrees about the axis of the bend.
    """
    bodies = bodies_of(t)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        q = body.attitude
        if body.even == 0 or body.freedom != 2 or q[0] >= 0.0:
            continue
        share = 2.0 / (q[2] * q[2] + q[3] * q[3])
        for numbers in (rate_of(t), last_change_of(t), earlier_change_of(t)):
            i = body.first
            along = share * (q[2] * numbers[i] + q[3] * numbers[i + 1])
            numbers[i] = along * q[2] - numbers[i]
            numbers[i + 1] = along * q[3] - numbers[i + 1]
        put_quaternion(q, (-q[0], 0.0, -q[2], -q[3]))


# ---------- Motion of all bodies from coordinates and rates


@compiled()
def drift(t, h):
    """Move positions on with the rates."""
    bodies = bodies_of(t)
    angle = angle_of(t)
    rate = rate_of(t)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        i = bodies[k].first
        if body.parent < 0:
            turn = turn_quaternion((h * rate[i], h * rate[i + 1], h * rate[i + 2]))
            put_quaternion(body.attitude, unit_quaternion(quaternion_product(turn, body.attitude)))
            increase(body.place, (h * rate[i + 3], h * rate[i + 4], h * rate[i + 5]))
        elif body.even == 0:
            for d in range(i, i + body.freedom):
                angle[d] += h * rate[d]
        elif body.freedom == 2:
            put_quaternion(body.attitude, bend_on(body.attitude, rate[i], rate[i + 1], h))
        else:
            turn = h * rate[i], h * rate[i + 1], h * rate[i + 2]
            put_quaternion(body.attitude, turned(body.attitude, turn))


@compiled()
def unit_quaternion(q):
    """Quaternion of length one."""
    size = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return q[0] / size, q[1] / size, q[2] / size, q[3] / size


@compiled()
def turned_about(angle, a, b):
    """Two unit vectors a, b after a turn by an angle about the third, a x b."""
    c, s = math.cos(angle), math.sin(angle)
    return (
        (c * a[0] + s * b[0], c * a[1] + s * b[1], c * a[2] + s * b[2]),
        (c * b[0] - s * a[0], c * b[1] - s * a[1], c * b[2] - s * a[2]),
    )


@compiled()
def combined(r, m):
    """Columns of the product of two rotations, nine numbers."""
    x, y, z = rotate(r, column(m, 0)), rotate(r, column(m, 1)), rotate(r, column(m, 2))
    return x, y, z


@CompiledStage
def place_bodies(address):
    """Rotation and place of all bodies, and the axes of their joints."""
    t = record_at(address, SYSTEM)
    bodies = bodies_of(t)
    rows = coordinates_of(t)
    angle = angle_of(t)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        if body.parent < 0:
            write_matrix(body.rotation, body_axes_in_world(body.attitude))
            put(body.position, body.place)
            put(body.joint, body.place)
            continue
        up = bodies[body.parent]
        d = body.first + body.freedom - 2
        r = up.rotation
        x, y, z = column(r, 0), column(r, 1), column(r, 2)
        if body.straight == 0:
            x, y, z = combined(r, body.parent_turn)
        if body.even != 0:
            x, y, z = place_even(body, rows, angle, x, y, z)
        else:
            if body.freedom == 3:
                put(rows[d - 1].axis, x)
                y, z = turned_about(angle[d - 1], y, z)
            put(rows[d].axis, y)
            z, x = turned_about(angle[d], z, x)
            put(rows[d + 1].axis, z)
            x, y = turned_about(angle[d + 1], x, y)
        joint = add(up.position, rotate(r, body.parent_place))
        if body.straight == 0:
            # Child frame = joint frame times the transpose of the joint frame seen from the child.
            own = body.own_turn
            x, y, z = beyond(own[0], x, y, z), beyond(own[1], x, y, z), beyond(own[2], x, y, z)
        write_matrix(body.rotation, (*x, *y, *z))
        put(body.joint, joint)
        put(body.arm, sub(joint, up.joint))
        put(body.position, sub(joint, rotate(body.rotation, body.own_place)))
        if body.slides >= 0:
            row = slacks_of(t)[body.slides]
            put(row.along, scale(-1.0, column(body.rotation, 0)))
            increase(body.position, scale(row.length, row.along))


@compiled(inlined=True)
def place_even(body, rows, angle, x, y, z):
    """Frame of an even joint beyond it, from that before; writes its axes, and angles of springs.

    A spring pulls against the bend along its axis: these are the bend's parts along y and z.
    """
    q = body.attitude
    d = body.first + body.freedom - 2
    if body.freedom == 3:
        a, b, c = turned_axes(q, x, y, z)
        put(rows[d - 1].axis, a)
        put(rows[d].axis, b)
        put(rows[d + 1].axis, c)
        if rows[d].stiffness > 0.0:
            size = math.acos(min(max(dot(x, a), -1.0), 1.0))
            share = size / math.sin(size) if size > 1e-6 else 1.0
            angle[d] = share * dot(x, c)
            angle[d + 1] = -share * dot(x, b)
        return a, b, c
    w = q[0]
    s = q[2]
    r = q[3]
    k = 1.0 / (1.0 + w)
    half = add(add(scale(w, x), scale(r, y)), scale(-s, z))  # x bent half as far
    to = add(x, half)
    on = add_scaled(scale(2.0 * w, half), -1.0, x)
    a, b = add_scaled(y, -k * r, to), add_scaled(z, k * s, to)
    put(rows[d].axis, a)
    put(rows[d + 1].axis, b)
    if rows[d].stiffness > 0.0:
        size = math.sqrt(s * s + r * r)
        share = 2.0 * math.atan2(size, w) / size if size > 1e-9 else 2.0
        angle[d] = share * s
        angle[d + 1] = share * r
    to = add(half, on)
    return on, add_scaled(a, -k * r, to), add_scaled(b, k * s, to)


@compiled()
def turned_axes(q, x, y, z):
    """Axes of a frame after a rotation in it: the columns of F R, with F = (x, y, z), R of q."""
    a1, a2, a3, b1, b2, b3, c1, c2, c3 = body_axes_in_world(q)
    return (
        add(add(scale(a1, x), scale(a2, y)), scale(a3, z)),
        add(add(scale(b1, x), scale(b2, y)), scale(b3, z)),
        add(add(scale(c1, x), scale(c2, y)), scale(c3, z)),
    )


@compiled()
def turning_of(body, rows, first, second, omega):
    """Angular velocity of the axes of an even joint, from that of the body beyond it.

    `first` and `second` are the rates about its axes across the cable.
    """
    if body.freedom == 3:
        return omega
    q = body.attitude
    a, b = rows[body.first].axis, rows[body.first + 1].axis
    half = add(scale(0.5 * first, a), scale(0.5 * second, b))
    about = -0.5 * (q[2] * second - q[3] * first) / (1.0 + q[0])
    return add_scaled(sub(omega, half), about, cross(a, b))


@compiled()
def beyond(row, x, y, z):
    """A row of a matrix times axes: an axis of a frame that is turned back by it."""
    return add(add(scale(row[0], x), scale(row[1], y)), scale(row[2], z))


@partial(CompiledStage, takes=(types.boolean,))
def move_bodies(address, middle):
    """Velocities of all bodies, and their swing; `middle`: at the rates amid the step."""
    t = record_at(address, SYSTEM)
    bodies = bodies_of(t)
    rows = coordinates_of(t)
    rate = middle_rate_of(t) if middle else rate_of(t)
    begin = rate_of(t)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        i = bodies[k].first
        if body.parent < 0:
            omega = rate[i], rate[i + 1], rate[i + 2]
            put(body.omega, omega)
            put(body.swing, sub(omega, (begin[i], begin[i + 1], begin[i + 2])))
            put(body.velocity, (rate[i + 3], rate[i + 4], rate[i + 5]))
            continue
        up = bodies[body.parent]
        omega = (up.omega[0], up.omega[1], up.omega[2])
        swing = (up.swing[0], up.swing[1], up.swing[2])
        velocity = add(up.velocity, cross(omega, sub(body.joint, up.position)))
        for d in range(i, i + body.freedom):
            omega = add_scaled(omega, rate[d], rows[d].axis)
            swing = add_scaled(swing, rate[d] - begin[d], rows[d].axis)
        if body.even != 0:
            first = rate[i]
            second = rate[i + 1]
            put(body.turning, turning_of(body, rows, first, second, omega))
            first = first - begin[i]
            second = second - begin[i + 1]
            put(body.turning_swing, turning_of(body, rows, first, second, swing))
        put(body.omega, omega)
        put(body.swing, swing)
        put(body.velocity, add(velocity, cross(omega, sub(body.position, body.joint))))
        if body.slides >= 0:
            row = slacks_of(t)[body.slides]
            slide = row.middle_rate if middle else row.rate
            increase(body.velocity, scale(slide, row.along))


# ---------- Jacobians and the joint-space inertia, where they are wanted once


def jacobians(t: Tables) -> Array:
    """Angular and linear velocity of each body's origin by the coordinates' rates, (b, 6, c).

    In the present places.
    """
    bodies = t.bodies
    jacobian = np.zeros((len(bodies), 6, len(t.rate)))
    for k, body in enumerate(bodies):
        first, last = body["first"], body["first"] + body["freedom"]
        if body["parent"] < 0:
            jacobian[k][:, first:last] = np.eye(6)
            continue
        up = body["parent"]
        jacobian[k] = shifted(jacobian[up], body["position"] - bodies["position"][up])
        axes = t.coordinates["axis"][first:last].T
        jacobian[k][:3, first:last] = axes
        jacobian[k][3:, first:last] = np.cross(axes.T, body["position"] - body["joint"]).T
    return jacobian


def shifted(jacobian: Array, arm: Array) -> Array:
    """The Jacobian of a point at an arm from that of another point of the body, (6, c)."""
    linear = jacobian[3:] + np.cross(jacobian[:3].T, arm).T
    at_arm: Array = np.vstack([jacobian[:3], linear])
    return at_arm


def of_centres(t: Tables) -> tuple[Array, Array]:
    """Jacobians of the centres of mass, (b, 6, c), and inertias in the world, (b, 6, 6)."""
    centre = np.zeros((len(t.bodies), 6, len(t.rate)))
    inertia = np.zeros((len(t.bodies), 6, 6))
    for k, (body, jacobian) in enumerate(zip(t.bodies, jacobians(t), strict=True)):
        turn = body["rotation"]
        centre[k] = shifted(jacobian, turn @ body["com"])
        inertia[k, :3, :3] = turn @ body["inertia"] @ turn.T
        inertia[k, 3:, 3:] = body["mass"] * np.eye(3)
    return centre, inertia


def joint_space_inertia(t: Tables) -> Array:
    """Inertia matrix of all coordinates, (c, c)."""
    centre, inertia = of_centres(t)
    total: Array = np.einsum("kia,kij,kjb->ab", centre, inertia, centre, optimize=True)
    return total
