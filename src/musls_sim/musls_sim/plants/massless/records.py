"""Records of load, drones and massless cables, made of a system in its start.

Compiled functions find all of them from one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from musls_control.estimate import BodyMotion
from musls_description.hanging.rig_places import Incidence
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.layout import Field, Layout, Number, Tables
from musls_description.system.drone import Drone
from musls_description.system.obstacles import SOLID, AnyObstacle
from musls_description.system.slung_system import Anchor, Load, RigSystem
from musls_sim.plants.rigid_body import (
    CONTACT,
    CORNER,
    RIGID_BODY,
    ROTOR,
    WRENCH,
    collect_state,
    contact_step_s,
    corner_records,
    feet_constants,
    impact_constants,
    rotor_records,
    surfaces_of,
)

STATE = np.dtype(
    [
        ("position", float, 3),
        ("attitude", float, 4),  # quaternion wxyz, body to world
        ("velocity", float, 3),
        ("omega", float, 3),  # body frame
    ],
    align=True,
)
"""State of a body, or its rate of change."""

BODY = np.dtype(
    [
        *RIGID_BODY.descr,
        *CONTACT,
        ("free", np.int64),  # 0 for a prescribed drone; its inverses are then zero
        ("inverse_mass", float),
        ("state", STATE),
        ("rate", STATE),  # its derivative
        ("begin", STATE),  # state and derivative at the begin of the step
        ("first", STATE),
        ("total", STATE),  # weighted sum of derivatives
        ("wrench", WRENCH),
        ("in_body", float, 6),  # inputs as in `PlantInputs`: moment and force
        ("in_world", float, 6),
        ("path", float, (4, 3)),  # cubic of a prescribed drone's position in the period,
        ("turning", float, (4, 3)),  # of its rotation vector (world) since the begin,
        ("attitude", float, 4),  # and its attitude there
        ("place", float, 3),  # place and attitude in a rigid structure
        ("beside", float, (3, 3)),
    ],
    align=True,
)

CABLE = np.dtype(
    [
        ("length", float),
        ("load_point", float, 3),  # its ends in the frames of load and drone
        ("drone_point", float, 3),
        ("load_spin", float),  # squared frequency per tension with which load and drone
        ("drone_spin", float),  # can turn about the cable's ends
        ("taut", np.int64),
        ("was_taut", np.int64),  # before it was decided anew
        ("tension", float),
        ("gap", float),  # distance of the ends over the length, d - l
        ("rate", float),  # d'
        ("free_acceleration", float),  # d'' without tensions
        ("along", float, 3),  # direction from load to drone
        ("drone_turn", float, 3),  # angular acceleration of the drone by a unit tension, its frame
        # The problem of the taut cables, see `cables`.
        ("own", float),  # effect of a tension on the cable's own distance by the drone, E [1/kg]
        ("lever", float, 6),  # and by the load, a row of G
        ("active", np.int64),  # whether the complementarity problem has it active
        ("right", float),
        ("left", float),  # of the right-hand side
        ("solution", float),  # tension or impulse, 0 if it is not active
        ("peak", float),  # largest tension in the period
        ("least", float),  # least tension in the middle of the step
        ("threshold", float),  # gap that is an event
        ("begin_gap", float),  # at the begin of the step
        ("begin_rate", float),
        ("begin_force", float, 3),
        ("value", float),  # event function after a trial, and at both ends of a bracket
        ("value_low", float),
        ("value_high", float),
        ("impulse", float, 3),  # on the load within the period [N s]
    ],
    align=True,
)

RIG_END = np.dtype(
    [
        ("body", np.int64),  # its row
        ("point", float, 3),  # in the body's frame
        ("arm", float, 3),  # moment of a unit tension, its frame
        ("turn", float, 3),  # and the angular acceleration by it
    ],
    align=True,
)
"""One of the two ends of a cable of a rig."""

LOAD = np.dtype(
    [
        ("linear", float),  # one over the root of its mass
        ("angular", float, (3, 3)),  # root R of its inverse inertia, R R^T = J^-1, load frame
        ("factor", float, (6, 6)),  # of I + G^T E^-1 G over the active cables, Cholesky's
        ("soft", np.int64),  # 1 if drones are prescribed, see `cables.SOFT`
        ("right", float, 6),
        ("pull", float, 6),  # of all cables, G^T z
    ],
    align=True,
)
"""Load in the problem of the taut cables, see `cables`."""

EVENT = np.dtype(
    [
        ("time", float),  # since the begin of the period
        ("kind", np.int64),
        ("cable", np.int64),
        ("impulse", float),
        ("loss", float),
    ],
    align=True,
)

SLACKENED = 0
TIGHTENED = 1
IMPACT = 2
"""Kinds: a cable went slack, a slack one taut; a taut one took part in the others' impact."""

MAX_EVENTS = 64
"""Events of a period that are told; the others are counted."""


LAYOUT = Layout(
    [
        Number("gravity", float, "[m/s2]"),
        Number("friction", float, "coefficient of surfaces"),
        Number("restitution", float, "see `MasslessPlant`"),
        Number("step", float, "longest step in the air [s]"),
        Number("contact_step", float, "longest step near surfaces [s]"),
        Number("impact_step", float, "longest step where a corner can be deep in one [s]"),
        Number("tension_noise", float, "tension that counts as none [N]"),
        Number("wind", (float, 3), "velocity of the air [m/s]"),
        Number("happened", int, "events in the period"),
        Number("driven", float, "power of drives in a stage [W]"),
        Number("lost", float, "power of losses in a stage"),
        Number("first_driven", float, "the same in the first stage"),
        Number("first_lost", float, "likewise"),
        Number("mean_driven", float, "means of the stages"),
        Number("mean_lost", float, "likewise"),
        Number("work", float, "work of rotors, inputs and prescribed drones [J]"),
        Number("absolute_work", float, "the same without regard to sign"),
        Number("loss", float, "energy lost to air and ground [J]"),
        Number("impact_loss", float, "energy lost in impacts [J]"),
        Number("refined", int, "periods with more steps than usual"),
        Number("load", LOAD, "load in the problem of the taut cables"),
        Number("rigid", int, "1 for rods: the whole moves, and its parts with it"),
    ],
    [
        Field("bodies", ("n_bodies",), BODY, "load, drones, anchors"),
        Field("whole", (), BODY, "load and drones joined by rigid rods"),
        Field("moving", ("n_moving",), BODY, "bodies that are integrated", "bodies"),
        Field("cables", ("n_cables",), CABLE, "cables or rods"),
        Field("ends", ("n_rig_cables", 2), RIG_END, "their ends, of a rig"),
        Field(
            "coupling",
            (2, "n_rig_cables", "n_rig_cables"),
            float,
            "effect of tensions on distances, of a rig, and room for its factor",
        ),
        Field("corners", ("n_corners",), CORNER, "eight a body and surface"),
        Field("rotors", ("n_drones", "n_rotors"), ROTOR, "rotors of the drones"),
        Field("events", (MAX_EVENTS,), EVENT, "events of the period"),
        Field("speed", ("n_drones", "n_rotors"), float, "of rotors at the period's begin [rad/s]"),
        Field("middle_speed", ("n_drones", "n_rotors"), float, "in the middle of the step"),
        Field("end_speed", ("n_drones", "n_rotors"), float, "at its end"),
        Field("shown", ("n_bodies", 16), float, "`PlantState.motion`, then `anchor_motion`"),
        Field("force", ("n_cables", 2, 3), float, "`PlantState.cable_force_n`"),
        Field("command", ("n_drones", "n_rotors"), float, "speeds that are commanded"),
        Field("solids", ("n_solids",), SOLID, "ground and obstacles"),
    ],
)
SYSTEM = LAYOUT.record

bodies_of = LAYOUT.opener("bodies")
whole_of = LAYOUT.opener("whole")
moving_of = LAYOUT.opener("moving")
cables_of = LAYOUT.opener("cables")
ends_of = LAYOUT.opener("ends")
coupling_of = LAYOUT.opener("coupling")
corners_of = LAYOUT.opener("corners")
rotors_of = LAYOUT.opener("rotors")
events_of = LAYOUT.opener("events")
speed_of = LAYOUT.opener("speed")
middle_speed_of = LAYOUT.opener("middle_speed")
end_speed_of = LAYOUT.opener("end_speed")
shown_of = LAYOUT.opener("shown")
force_of = LAYOUT.opener("force")
own_command_of = LAYOUT.opener("command")
solids_of = LAYOUT.opener("solids")


@compiled()
def keep_inputs(t, wind, in_body, in_world):
    """Write the inputs into the records; whether wind or wrenches differ from those before."""
    old_wind = t.wind
    changed = False
    bodies = bodies_of(t)
    for k in range(3):
        changed |= old_wind[k] != wind[k]
        old_wind[k] = wind[k]
    for i in range(in_body.shape[0]):
        body = bodies[i]
        for k in range(6):
            changed |= body.in_body[k] != in_body[i, k] or body.in_world[k] != in_world[i, k]
            body.in_body[k] = in_body[i, k]
            body.in_world[k] = in_world[i, k]
    return changed


@compiled()
def show_bodies(t, period):
    """Write `PlantState.motion`."""
    bodies = bodies_of(t)
    motion = shown_of(t)
    for i in range(len(bodies)):
        collect_state(bodies[i], period, motion[i])


# ---------- The records of a system in its start

NOISE = 1e-12
"""Tension that counts as none, over the weight of everything."""


def build_records(
    system: RigSystem,
    start: BodyMotion,
    *,
    held: Collection[int] = (),
    gravity_m_s2: float,
    ground_height_enu_m: float | None,
    step_s: float,
    restitution: float,
    obstacles: Sequence[AnyObstacle],
) -> tuple[Array, Tables]:
    """Records of a system in its start: their memory, and the tables of `LAYOUT` there.

    Of the cables only the lengths count. `held` are the anchors, from 1, that do not move;
    `step_s` is the longest step, a ground height of None means no ground; for `restitution` see
    `MasslessPlant`.
    """
    assert system.load is not None  # checked before
    parts: list[Load | Drone | Anchor] = [system.load, *system.drones, *system.anchors]
    shared = system.n_cables if system.formation is None else 0
    solids = surfaces_of(ground_height_enu_m, obstacles)
    corners_m = [_corners_m(part) for part in parts]
    standing = [
        (part.mass_kg or 0.0, _turning(part), own_m)
        for part, own_m in zip(parts, corners_m, strict=True)
        if len(own_m)
    ]
    corners = corner_records(corners_m, len(solids))
    bodies = np.zeros(len(parts), BODY)
    first = 0
    for body, part, own_m in zip(bodies, parts, corners_m, strict=True):
        _write_body(body, part, own_m, first, len(own_m) * len(solids))
        first += len(own_m) * len(solids)
    state = bodies["state"]
    state["position"] = start.position_enu_m
    state["velocity"] = start.velocity_enu_m_s
    state["attitude"] = start.orientation_wxyz
    state["omega"] = start.omega_body_rad_s
    for number in held:
        _hold(bodies[system.n_drones + number])
    memory, t = LAYOUT.build(
        {
            "gravity": gravity_m_s2,
            "friction": system.ground_friction,
            "restitution": restitution,
            "step": step_s,
            "contact_step": min(contact_step_s(*part) for part in standing),
            "impact_step": min(impact_constants(*part)[1] for part in standing),
            "tension_noise": NOISE * bodies["mass"].sum() * gravity_m_s2,
            "wind": np.nan,
            "bodies": bodies,
            "cables": _cables(system, parts),
            "ends": _rig_ends(system) if shared else np.zeros((0, 2), RIG_END),
            "coupling": np.zeros((2, shared, shared)),
            "corners": corners,
            "rotors": rotor_records(system),
            "solids": solids,
        }
    )
    load = t.system["load"]
    load["linear"] = 1.0 / np.sqrt(system.load.mass_kg)
    if bodies["inertia"][0].any():
        load["angular"] = np.linalg.cholesky(bodies["inverse_inertia"][0])
    return memory, t


def _corners_m(part: Load | Drone | Anchor) -> Array:
    """Corners with which a part touches things, (8, 3); an anchor may have none, (0, 3)."""
    return np.zeros((0, 3)) if part.collision is None else part.collision.corners_m


def _write_body(
    body: np.void, part: Load | Drone | Anchor, corners_m: Array, first_corner: int, corners: int
) -> None:
    inertia = np.array(part.inertia_kg_m2 or np.zeros((3, 3)))
    mass_kg = part.mass_kg or 1.0  # of an anchor that is held
    body["mass"] = mass_kg
    body["inverse_mass"] = 1.0 / mass_kg
    body["free"] = 1
    body["inertia"] = inertia
    if not isinstance(part, Anchor):
        body["drag"] = part.drag_n_s_m
    if inertia.any():  # a point mass does not turn
        body["inverse_inertia"] = np.linalg.inv(inertia)
    if len(corners_m):
        turning = _turning(part)
        body["stiffness"], body["damping"] = feet_constants(mass_kg, turning, corners_m)
        body["impact_damping"], _ = impact_constants(mass_kg, turning, corners_m)
    body["radius"] = np.linalg.norm(corners_m, axis=1).max(initial=0.0)
    body["first_corner"] = first_corner
    body["corners"] = corners


def _hold(body: np.void) -> None:
    """Make an anchor stay where it is."""
    body["free"] = 0
    body["inverse_mass"] = 0.0
    body["inverse_inertia"] = 0.0
    body["corners"] = 0
    body["path"][0] = body["state"]["position"]
    body["attitude"] = body["state"]["attitude"]


def _cables(system: RigSystem, parts: list[Load | Drone | Anchor]) -> Records:
    rows = np.zeros(system.n_cables, CABLE)
    least = [float(np.linalg.eigvalsh(_turning(p))[0]) for p in parts]
    incidence = Incidence.of(system)
    for i, (row, cable) in enumerate(zip(rows, system.cables, strict=True)):
        (first, second) = incidence.row[i]
        ends = incidence.point_m[i]
        row["length"] = cable.length_m
        (row["load_point"], row["drone_point"]) = ends
        across = 1.0 / cable.length_m
        arms = [float(np.linalg.norm(end)) for end in ends]
        row["load_spin"] = arms[0] / least[first] + across / (parts[first].mass_kg or np.inf)
        row["drone_spin"] = arms[1] / least[second] + across / (parts[second].mass_kg or np.inf)
    return rows


def _rig_ends(system: RigSystem) -> Records:
    incidence = Incidence.of(system)
    ends = np.zeros((system.n_cables, 2), RIG_END)
    ends["body"] = incidence.row
    ends["point"] = incidence.point_m
    return ends


def _turning(part: Load | Drone | Anchor) -> Array:
    """Inertia, for a point mass a very large one."""
    inertia = np.array(part.inertia_kg_m2 or np.zeros((3, 3)))
    return inertia if inertia.any() else 1e9 * np.eye(3)
