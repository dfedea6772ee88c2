"""A physics step: one compiled call in the air; near the ground one before DART's and one after it.

DART finds and solves contacts. Where there can be none, the same dynamics are compiled here
(`dynamics`), which takes a third of the time: no call into DART at all.
"""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_description.compiled_memory import borrowed
from musls_sim.plants.interface import SPEED_LIMIT_M_S
from musls_sim.plants.rigid_links.dart import joint_changes
from musls_sim.plants.rigid_links.dynamics import (
    cable_forces,
    cable_forces_from_joints,
    dynamics_step,
    generalised_forces,
)
from musls_sim.plants.rigid_links.multibody import body_motion
from musls_sim.plants.rigid_links.rows import POSITION, collect_state, fastest_body, spin_rotors
from musls_sim.plants.rigid_links.step_control import (
    DOUBTFUL,
    MADE_UP,
    OK,
    RUNAWAY,
    account,
    judge_energy,
    judge_step,
    mechanical_energy,
)
from musls_sim.plants.rigid_links.tables import ENERGY, KINETIC, LEDGER_COLUMNS, cut

NOT_FINITE, TOUCHING, CLEAR = -1, -2, -3
"""What `begin_step` says besides a verdict: forces are not finite; the step is DART's, and load or
drones may touch the ground in it or not."""

RATE, PERIOD, JERK, MADE, WEIGHT, TENSION = range(6)
"""What `limits` holds for a step: largest joint rate [rad/s]; length of the control period [s];
energy that a step with a jerk and that a period may make [J]; weight of all bodies [N]; from there
on, the largest tension that the step holds for each cable [N]."""

_CLEARANCE_M = 0.05
"""Height above the ground below which a box may touch it within a step (at 100 m/s and 0.5 ms)."""


@compiled()
def begin_step(
    numbers, indices, step_s, number, last, guided,
    command, wind, body, enu, ground, gravity, limits,
):  # fmt: skip
    """A whole step in the air, or what comes before DART's."""
    t = cut(borrowed(numbers), borrowed(indices))
    if number == 0:
        t.peak[:] = 0.0
        t.begin[:LEDGER_COLUMNS] = t.ledger
        t.begin[LEDGER_COLUMNS:] = t.speed.ravel()
        t.begin_q[:], t.begin_dq[:] = t.q, t.dq
    joint_changes(t, t.q, t.dq)
    spin_rotors(t.speed, command, t.rotors, step_s)
    if not generalised_forces(t, wind, body, enu, ground):
        return NOT_FINITE
    if _near_ground(t, ground):
        return TOUCHING
    if guided:
        return CLEAR
    dynamics_step(t, step_s, gravity)
    return _conclude(t, step_s, last, False, gravity, limits, t.next_q, t.next_dq)


@compiled()
def _near_ground(t, ground):
    """Whether the lowest corner of load or a drone may touch the ground within a step."""
    for i in range(t.box.shape[0]):
        m, box = t.motion[t.selected[i]], t.box[i]
        lowest = m[POSITION + 2]
        for k in range(3):
            lowest += m[6 + k] * box[k] - abs(m[6 + k]) * box[3 + k]
        if lowest < ground + _CLEARANCE_M:
            return True
    return False


@compiled()
def end_step(numbers, indices, step_s, last, contact, gravity, limits, q, dq):
    """Tension, motion, energy and verdict after DART's step."""
    t = cut(borrowed(numbers), borrowed(indices))
    return _conclude(t, step_s, last, contact, gravity, limits, q, dq)


@compiled()
def _conclude(t, step_s, last, contact, gravity, limits, q, dq):
    """See `end_step`."""
    if contact:
        cable_forces_from_joints(t)
    else:
        cable_forces(t, t.dq, dq, step_s, gravity)
    body_motion(q, dq, t.parents, t.first, t.joints, t.motion)
    kinetic, weight = mechanical_energy(t.motion, t.masses, gravity)
    made = account(t, t.q, t.dq, dq, step_s, kinetic, weight)
    verdict = judge_step(
        t.peak, limits[TENSION:], dq, t.dq, limits[RATE], made, limits[JERK], t.parents, t.first
    )
    t.q[:], t.dq[:] = q, dq
    if last and verdict != RUNAWAY:
        if fastest_body(t.motion)[1] > SPEED_LIMIT_M_S:
            return RUNAWAY
        energy = judge_energy(t.ledger, t.begin, kinetic, limits[WEIGHT], limits[MADE])
        if energy == MADE_UP or verdict == OK:
            verdict = energy
        if verdict in (OK, DOUBTFUL):
            collect_state(t.motion, t.selected, limits[PERIOD], t.state)
    return verdict


@compiled()
def restart(numbers, indices, gravity):
    """Compute the motion of coordinates that were set in the tables; energy is counted anew."""
    t = cut(borrowed(numbers), borrowed(indices))
    body_motion(t.q, t.dq, t.parents, t.first, t.joints, t.motion)
    kinetic, weight = mechanical_energy(t.motion, t.masses, gravity)
    t.ledger[:] = 0.0
    t.ledger[ENERGY], t.ledger[KINETIC] = kinetic + weight, kinetic


@compiled()
def rewind(numbers, indices):
    """Go back to the beginning of the period, which the first `begin_step` remembered."""
    t = cut(borrowed(numbers), borrowed(indices))
    t.q[:], t.dq[:] = t.begin_q, t.begin_dq
    body_motion(t.q, t.dq, t.parents, t.first, t.joints, t.motion)
    t.peak[:] = 0.0
    t.ledger[:] = t.begin[:LEDGER_COLUMNS]
    t.speed[:] = t.begin[LEDGER_COLUMNS:].reshape(t.speed.shape)
