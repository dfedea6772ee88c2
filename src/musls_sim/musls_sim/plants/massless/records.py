"""Records of load, drones and massless cables, in one piece of memory (see `records.pack`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.records import memory_at
from musls_sim.plants.rigid_body import (
    CONTACT,
    CORNER,
    RIGID_BODY,
    ROTOR,
    WRENCH,
    collect_state,
)

Array = NDArray[np.float64]
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
        ("place", float, 3),  # place and attitude in a rigid structure, see `rigid_rods`
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

SLACKENED, TIGHTENED, JERKED = 0, 1, 2
"""Kinds: a cable went slack, a slack one taut; a taut one took part in the others' impact."""

MOST_EVENTS = 512

WORLD = np.dtype(
    [
        ("gravity", float),
        ("ground", float),  # height, NaN for none
        ("friction", float),
        ("restitution", float),
        ("step", float),  # longest steps in the air and on the ground
        ("contact_step", float),
        ("tension_noise", float),  # tension that counts as none
        ("wind", float, 3),
        ("rows", np.int64),  # number of cables at their length
        ("events", np.int64),  # number of events in the period
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
    ]
)


class System(NamedTuple):
    """All records of n drones; k corners, r rotors a drone.

    Attributes:
        world: One record, (1,) of `WORLD`.
        bodies: Load, then drones, (1 + n,) of `BODY`.
        cables: (n,) of `CABLE`.
        corners: Eight a body, (k,) of `CORNER`.
        rotors: (n, r) of `ROTOR`.
        rows: (n,) of `ROW`.
        matrix: Effect of tensions on the second derivatives of the distances, of the rows, (n, n).
        factor: Cholesky factor of a part of it, (n, n).
        events: (MOST_EVENTS,) of `EVENT`.
        speed: Rotor speeds now, (n, r).
        begin_speed: The same at the begin of the period.
        middle_speed: The same in the middle of the step.
        end_speed: The same at its end.
        shown: `PlantState.motion`, (1 + n, 16).
        force: `PlantState.cable_force_n` as (n, 6).
        command: Rotor speeds commanded, (n, r).
    """

    world: Records
    bodies: Records
    cables: Records
    corners: Records
    rotors: Records
    rows: Records
    matrix: Array
    factor: Array
    events: Records
    speed: Array
    begin_speed: Array
    middle_speed: Array
    end_speed: Array
    shown: Array
    force: Array
    command: Array


@compiled()
def open_system(address, p, command):
    """Make the records of the memory and its layout, see `records.pack`, and keep the command."""
    x = memory_at(address, p[-1])
    bodies, cables = x[p[1] : p[2]].view(BODY), x[p[2] : p[3]].view(CABLE)
    n, r = command.shape
    kept = x[p[15] : p[16]].reshape((n, r))
    kept[:] = command
    return System(
        x[p[0] : p[1]].view(WORLD),
        bodies,
        cables,
        x[p[3] : p[4]].view(CORNER),
        x[p[4] : p[5]].view(ROTOR).reshape((n, r)),
        x[p[5] : p[6]].view(ROW),
        x[p[6] : p[7]].reshape((n, n)),
        x[p[7] : p[8]].reshape((n, n)),
        x[p[8] : p[9]].view(EVENT),
        x[p[9] : p[10]].reshape((n, r)),
        x[p[10] : p[11]].reshape((n, r)),
        x[p[11] : p[12]].reshape((n, r)),
        x[p[12] : p[13]].reshape((n, r)),
        x[p[13] : p[14]].reshape((1 + n, 16)),
        x[p[14] : p[15]].reshape((n, 6)),
        kept,
    )


@compiled()
def keep_inputs(t, wind, in_body, in_world):
    """Write wind and wrenches into the records; whether they differ from those before."""
    held, changed = t.world[0].wind, False
    for k in range(3):
        changed |= held[k] != wind[k]
        held[k] = wind[k]
    for i in range(in_body.shape[0]):
        body = t.bodies[i]
        for k in range(6):
            changed |= body.in_body[k] != in_body[i, k] or body.in_world[k] != in_world[i, k]
            body.in_body[k], body.in_world[k] = in_body[i, k], in_world[i, k]
    return changed


@compiled()
def show_bodies(t, period):
    """Write `PlantState.motion`."""
    for i in range(t.bodies.shape[0]):
        collect_state(t.bodies[i], period, t.shown[i])
