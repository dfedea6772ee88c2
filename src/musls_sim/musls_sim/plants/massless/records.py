"""Records of load, drones and massless cables, made of a system in its start.

Compiled functions find all of them from one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from musls_control.estimate import BodyMotion
from musls_description.hanging.rig_places import Incidence
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import (
    PLACE,
    grid_opener,
    lead_to,
    opener,
    pack_tables,
    table_at,
)
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
    corner_constants,
    corner_records,
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
        ("rig", np.int64),  # 1 if bodies share several cables, see `rig_cables`
        ("coupling", PLACE),  # D, and its factor, Cholesky's
        ("root", PLACE),
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


class MasslessTables(NamedTuple):
    """All records of n drones, a anchors and m cables; k corners, r rotors a drone.

    Attributes:
        system: One record, (1,) of `SYSTEM`.
        bodies: Load, then drones, then anchors, (1 + n + a,) of `BODY`.
        whole: Load and drones joined by rigid rods, (1,) of `BODY`.
        cables: (m,) of `CABLE`.
        ends: Ends of the cables of a rig, (m, 2) of `RIG_END`; of no other, (0, 2).
        coupling: Effect of tensions on distances, D of a rig, (m, m), else (0, 0).
        root: Room for its factor.
        corners: Eight a body and surface, (k,) of `CORNER`.
        rotors: (n, r) of `ROTOR`.
        events: (MAX_EVENTS,) of `EVENT`.
        speed: Rotor speeds at the begin of the period, (n, r).
        middle_speed: Rotor speeds in the middle of the step.
        end_speed: Rotor speeds at its end.
        shown: `PlantState.motion` and `anchor_motion`, (1 + n + a, 16).
        force: `PlantState.cable_force_n` as (m, 6).
        command: Rotor speeds commanded, (n, r).
        solids: Ground and obstacles, of `SOLID`.
    """

    system: Records
    bodies: Records
    whole: Records
    cables: Records
    ends: Records
    coupling: Array
    root: Array
    corners: Records
    rotors: Records
    events: Records
    speed: Array
    middle_speed: Array
    end_speed: Array
    shown: Array
    force: Array
    command: Array
    solids: Records


SYSTEM = np.dtype(
    [
        ("gravity", float),
        ("friction", float),
        ("restitution", float),
        ("step", float),  # longest steps in the air and on the ground
        ("contact_step", float),
        ("tension_noise", float),  # tension that counts as none
        ("wind", float, 3),
        ("happened", np.int64),  # number of events in the period
        ("driven", float),  # power of drives and of losses in a stage,
        ("lost", float),
        ("first_driven", float),  # in the first stage,
        ("first_lost", float),
        ("mean_driven", float),  # and their means
        ("mean_lost", float),
        ("work", float),  # of rotors, inputs and prescribed drones [J]
        ("absolute_work", float),
        ("loss", float),  # to air and ground
        ("impact_loss", float),
        ("refined", np.int64),  # periods with more steps than usual
        ("load", LOAD),
        ("rigid", np.int64),  # 1 for rods: the whole moves, and its parts with it
        *((table, PLACE) for table in MasslessTables._fields[1:]),
        ("moving", PLACE),  # the bodies that are integrated, or the whole
    ],
    align=True,
)

bodies_of = opener("bodies", BODY)
moving_of = opener("moving", BODY)
whole_of = opener("whole", BODY)
cables_of = opener("cables", CABLE)
ends_of = grid_opener("ends", RIG_END)
corners_of = opener("corners", CORNER)
solids_of = opener("solids", SOLID)
events_of = opener("events", EVENT)
rotors_of = grid_opener("rotors", ROTOR)


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
    motion = table_at(t.shown)
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
) -> tuple[Array, MasslessTables]:
    """Records of a system in its start: their memory, which begins with the first, and views.

    Of the cables only the lengths count. `held` are the anchors, from 1, that do not move;
    `step_s` is the longest step, a ground height of None means no ground; for `restitution` see
    `MasslessPlant`.
    """
    n = system.n_drones
    r = system.n_rotors
    assert system.load is not None  # checked before
    parts: list[Load | Drone | Anchor] = [system.load, *system.drones, *system.anchors]
    is_rig = system.formation is None
    solids = surfaces_of(ground_height_enu_m, obstacles)
    corners_m = [_corners_m(part) for part in parts]
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
    t = np.zeros(1, SYSTEM)
    t["load"]["linear"] = 1.0 / np.sqrt(system.load.mass_kg)
    if bodies["inertia"][0].any():
        t["load"]["angular"] = np.linalg.cholesky(bodies["inverse_inertia"][0])
    t["gravity"] = gravity_m_s2
    t["friction"] = system.ground_friction
    t["restitution"] = restitution
    t["step"] = step_s
    t["wind"] = np.nan
    for number in held:
        _hold(bodies[n + number])
    t["contact_step"] = min(
        contact_step_s(p.mass_kg or 0.0, _turning(p), own_m)
        for p, own_m in zip(parts, corners_m, strict=True)
        if len(own_m)
    )
    t["tension_noise"] = NOISE * bodies["mass"].sum() * gravity_m_s2
    arrays = {
        "system": t,
        "bodies": bodies,
        "whole": np.zeros(1, BODY),
        "cables": _cables(system, parts),
        "ends": _rig_ends(system) if is_rig else np.zeros((0, 2), RIG_END),
        "coupling": np.zeros((system.n_cables,) * 2 if is_rig else (0, 0)),
        "root": np.zeros((system.n_cables,) * 2 if is_rig else (0, 0)),
        "corners": corners,
        "rotors": rotor_records(system),
        "events": np.zeros(MAX_EVENTS, EVENT),
        "speed": np.zeros((n, r)),
        "middle_speed": np.zeros((n, r)),
        "end_speed": np.zeros((n, r)),
        "shown": np.zeros((len(parts), 16)),
        "force": np.zeros((system.n_cables, 6)),
        "command": np.zeros((n, r)),
        "solids": solids,
    }
    memory, views = pack_tables(arrays)
    lead_to(views["system"]["moving"], views["bodies"])
    views["system"]["load"]["rig"] = is_rig
    for name in ("coupling", "root"):
        lead_to(views["system"]["load"][name], views[name])
    return memory, MasslessTables(**views)


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
    body["stiffness"], body["damping"] = corner_constants(mass_kg)
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
