"""Records of load, drones and massless cables; compiled functions find them from one of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray
from numpy.typing import NDArray

from musls_description.arrays import Array
from musls_description.compiled import compiled
from musls_description.obstacles import SOLID
from musls_description.records import pointer
from musls_sim.plants.rigid_body import (
    CONTACT,
    CORNER,
    RIGID_BODY,
    ROTOR,
    WRENCH,
    collect_state,
)

Records = NDArray[np.void]

STATE = np.dtype(
    [
        ("position", float, 3),
        ("attitude", float, 4),  # quaternion wxyz, body to world
        ("velocity", float, 3),
        ("omega", float, 3),  # body frame
    ]
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
    ]
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
        ("load_arm", float, 3),  # moment of a unit tension about the load's centre, load frame
        ("load_turn", float, 3),  # angular acceleration that it gives to the load
        ("drone_turn", float, 3),  # and to the drone, body frames
        ("own", float),  # its effect on the cable's own distance through its drone [1/kg]
        ("peak", float),  # largest tension in the period
        ("least", float),  # least tension in the middle of the step
        ("threshold", float),  # gap that is an event
        ("begin_gap", float),  # at the begin of the step
        ("begin_rate", float),
        ("begin_force", float, 3),
        ("value", float),  # event function after a trial, and at both ends of a bracket
        ("value_low", float),
        ("value_high", float),
        ("mean_rate", float),  # of separation in an impact
        ("impulse", float, 3),  # on the load within the period [N s]
    ]
)

ROW = np.dtype(
    [
        ("cable", np.int64),
        ("active", np.int64),  # whether the complementarity problem has it active
        ("right", float),
        ("solution", float),
    ]
)
"""Row of the problem of the cables at their length."""

EVENT = np.dtype(
    [
        ("time", float),  # since the begin of the period
        ("kind", np.int64),
        ("cable", np.int64),
        ("impulse", float),
        ("loss", float),
    ]
)

SLACKENED, TIGHTENED, IMPACT = 0, 1, 2
"""Kinds: a cable went slack, a slack one taut; a taut one took part in the others' impact."""

MAX_EVENTS = 512


class Tables(NamedTuple):
    """All records of n drones; k corners, r rotors a drone.

    Attributes:
        system: One record, (1,) of `SYSTEM`.
        bodies: Load, then drones, (1 + n,) of `BODY`.
        whole: Load and drones joined by rigid rods, (1,) of `BODY`.
        cables: (n,) of `CABLE`.
        corners: Eight a body and surface, (k,) of `CORNER`.
        rotors: (n, r) of `ROTOR`.
        rows: (n,) of `ROW`.
        matrix: Effect of tensions on the second derivatives of the distances, of the rows, (n, n).
        factor: Cholesky factor of a part of it, (n, n).
        events: (MAX_EVENTS,) of `EVENT`.
        speed: Rotor speeds at the begin of the period, (n, r).
        middle_speed: The same in the middle of the step.
        end_speed: The same at its end.
        shown: `PlantState.motion`, (1 + n, 16).
        force: `PlantState.cable_force_n` as (n, 6).
        command: Rotor speeds commanded, (n, r).
        solids: Ground and obstacles, of `SOLID`.
    """

    system: Records
    bodies: Records
    whole: Records
    cables: Records
    corners: Records
    rotors: Records
    rows: Records
    matrix: Array
    factor: Array
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
        ("taut", np.int64),  # number of cables in the rows
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
        ("rigid", np.int64),  # 1 for rods: the whole moves, and its parts with it
        ("n_moving", np.int64),  # bodies that are integrated, and where they are in memory
        ("moving", np.int64),
        ("n_cables", np.int64),
        ("n_rotors", np.int64),  # of a drone
        ("n_corners", np.int64),
        ("n_solids", np.int64),
        *((table, np.int64) for table in Tables._fields[1:]),  # where they are in memory
    ]
)
"""Argument of compiled functions: they find all tables from it, by `bodies_of`, ..."""


@compiled()
def record_at(address, dtype):
    """The record at an address, such as that of the system."""
    return carray(pointer(address), (1,), dtype)[0]


@compiled()
def bodies_of(t):
    """Load and drones."""
    return carray(pointer(t.bodies), (t.n_cables + 1,), BODY)


@compiled()
def moving_of(t):
    """Bodies that are integrated: load and drones, or the structure they belong to."""
    return carray(pointer(t.moving), (t.n_moving,), BODY)


@compiled()
def whole_of(t):
    """Load and drones as one rigid body."""
    return carray(pointer(t.whole), (1,), BODY)[0]


@compiled()
def cables_of(t):
    """Cables, in the order of the drones."""
    return carray(pointer(t.cables), (t.n_cables,), CABLE)


@compiled()
def rows_of(t):
    """Rows of the problem of the taut cables."""
    return carray(pointer(t.rows), (t.n_cables,), ROW)


@compiled()
def matrix_of(t):
    """Matrix of that problem."""
    return carray(pointer(t.matrix), (t.n_cables, t.n_cables), np.float64)


@compiled()
def factor_of(t):
    """Its factor."""
    return carray(pointer(t.factor), (t.n_cables, t.n_cables), np.float64)


@compiled()
def corners_of(t):
    """Corners of all bodies."""
    return carray(pointer(t.corners), (t.n_corners,), CORNER)


@compiled()
def solids_of(t):
    """Ground and obstacles."""
    return carray(pointer(t.solids), (t.n_solids,), SOLID)


@compiled()
def rotors_of(t):
    """Rotors of all drones."""
    return carray(pointer(t.rotors), (t.n_cables, t.n_rotors), ROTOR)


@compiled()
def events_of(t):
    """Events of the period."""
    return carray(pointer(t.events), (MAX_EVENTS,), EVENT)


@compiled()
def speeds_of(t, place):
    """Rotor speeds in one of their tables: `t.speed`, `t.end_speed`, `t.command`, ..."""
    return carray(pointer(place), (t.n_cables, t.n_rotors), np.float64)


@compiled()
def forces_of(t):
    """Forces at the ends of the cables that the plant shows."""
    return carray(pointer(t.force), (t.n_cables, 6), np.float64)


@compiled()
def keep_inputs(t, wind, in_body, in_world):
    """Write the inputs into the records; whether wind or wrenches differ from those before."""
    held, changed, bodies = t.wind, False, bodies_of(t)
    for k in range(3):
        changed |= held[k] != wind[k]
        held[k] = wind[k]
    for i in range(len(bodies)):
        body = bodies[i]
        for k in range(6):
            changed |= body.in_body[k] != in_body[i, k] or body.in_world[k] != in_world[i, k]
            body.in_body[k], body.in_world[k] = in_body[i, k], in_world[i, k]
    return changed


@compiled()
def show_bodies(t, period):
    """Write `PlantState.motion`."""
    bodies = bodies_of(t)
    shown = carray(pointer(t.shown), (len(bodies), 16), np.float64)
    for i in range(len(bodies)):
        collect_state(bodies[i], period, shown[i])
