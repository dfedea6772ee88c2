"""Whether a physics step was too long for what happened in it, and the energy that it made."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY
from musls_sim.plants.rigid_links.tables import (
    BALANCE,
    ENERGY,
    EXCHANGED,
    KINETIC,
    LOW,
    RECENT,
    RECENT_EXCHANGED,
    SPURIOUS,
)

OK, TOO_COARSE, RUNAWAY, MADE_UP, DOUBTFUL, UNBALANCED = range(6)
"""Verdicts on a step and what came before it: too long for the tension or the joint rates; not
physical any more; too much of the run's energy is spurious, or much of it is; the step or period
made energy."""

JERK_RAD_S = 1.0
"""Change of a joint's rate (or of the load's velocity, m/s) in one step that calls for a look at
the energy. In calm flight steps of 4 ms change rates by some 0.1 rad/s."""

MADE_ENERGY_J = 0.05
"""Energy that such a step may make from nothing. Flights make less than 3 mJ in 999 of 1000 steps;
the load's touch-down, resolved too coarsely, flings a drone with some joules."""

PERIOD_LIFT_M = 0.0015
"""Energy that a control period may make from nothing before it is repeated with finer steps: what
lifts the whole system by this height. Calm flights of the paper's system make less than 3 mJ in 999
of 1000 periods, taut-jerked cables 50 mJ; this is 0.11 J. Much less once energy was made before."""

WARN_SHARE, END_SHARE = 0.01, 0.05
"""Spurious energy that is warned of, and that ends a run: a share of the kinetic energy and the
work exchanged, over the whole run and over about the last second."""

FLOOR_LIFT_M = 0.01
"""And what lifts the whole system by this height, which is free."""

MEMORY_S = 1.0
"""Time constant of "the last second"."""

SPEED_LIMIT_M_S = 100.0
"""No body of a slung-load system gets that fast; beyond it the integration has failed."""


@compiled()
def judge_step(
    peak, tension_limit, rates, before, rate_limit, made_j, made_limit_j, parents, first
):
    """Whether a step was too long for the tension or the joint rates it met, or ran away."""
    coarse = jerk = False
    for body in range(parents.shape[0]):
        load, free = body == 0, parents[body] < 0
        for k in range(first[body], first[body + 1]):
            rate = np.abs(rates[k])
            linear = free and k >= first[body] + 3
            if not rate <= (SPEED_LIMIT_M_S if load or linear else 20.0 * SPEED_LIMIT_M_S):
                return RUNAWAY
            if not (load or linear) and rate > rate_limit:
                coarse = True
            elif np.abs(rates[k] - before[k]) > JERK_RAD_S:
                jerk = True
    for i in range(peak.shape[0]):
        if not np.isfinite(peak[i]):
            return RUNAWAY
        if peak[i] > tension_limit[i]:
            coarse = True
    if coarse:
        return TOO_COARSE
    return UNBALANCED if jerk and made_j > made_limit_j else OK


@compiled()
def mechanical_energy(motion, masses, gravity):
    """Kinetic energy and that of weight [J]."""
    kinetic = weight = 0.0
    for k in range(motion.shape[0]):
        m, b = motion[k], masses[k]
        x = m[0] * b[1] + m[1] * b[2] + m[2] * b[3]
        y = m[3] * b[1] + m[4] * b[2] + m[5] * b[3]
        z = m[6] * b[1] + m[7] * b[2] + m[8] * b[3]
        wx, wy, wz = m[OMEGA], m[OMEGA + 1], m[OMEGA + 2]
        vx = m[VELOCITY] + wy * z - wz * y
        vy = m[VELOCITY + 1] + wz * x - wx * z
        vz = m[VELOCITY + 2] + wx * y - wy * x
        p = m[0] * wx + m[3] * wy + m[6] * wz  # angular velocity in the body's frame
        q = m[1] * wx + m[4] * wy + m[7] * wz
        r = m[2] * wx + m[5] * wy + m[8] * wz
        turning = p * (b[4] * p + b[5] * q + b[6] * r)
        turning += q * (b[7] * p + b[8] * q + b[9] * r)
        turning += r * (b[10] * p + b[11] * q + b[12] * r)
        kinetic += 0.5 * (b[0] * (vx * vx + vy * vy + vz * vz) + turning)
        weight += b[0] * gravity * (m[POSITION + 2] + z)
    return kinetic, weight


@compiled()
def account(t, q, before, after, step_s, kinetic, weight):
    """Enter a step into the ledger.

    The balance is the energy less the work of all forces that DART integrates: those from outside
    and the joints' dampers and springs, which act at the end of the step. All work along the mean
    of the velocities, which for the kinetic energy is exact. Contacts only take energy, so what the
    balance rises is spurious.
    """
    work = joints = exchanged = 0.0
    for k in range(after.shape[0]):
        mean = 0.5 * step_s * (before[k] + after[k])
        work += t.tau[k] * mean
        exchanged += np.abs(t.tau[k] * mean)
        spring = t.stiffness[k] * (q[k] + step_s * after[k] - t.rest[k])
        joints -= (t.damping[k] * after[k] + spring) * mean
    ledger = t.ledger
    gain = kinetic + weight - ledger[ENERGY]
    ledger[ENERGY] = kinetic + weight
    ledger[KINETIC] = max(ledger[KINETIC], kinetic)
    ledger[EXCHANGED] += exchanged
    ledger[BALANCE] += gain - work - joints
    ledger[LOW] = min(ledger[LOW], ledger[BALANCE])
    ledger[SPURIOUS] = max(ledger[SPURIOUS], ledger[BALANCE] - ledger[LOW])
    kept = 1.0 - step_s / MEMORY_S
    ledger[RECENT] = max(kept * ledger[RECENT] + gain - work - joints, 0.0)
    ledger[RECENT_EXCHANGED] = kept * ledger[RECENT_EXCHANGED] + exchanged
    return gain - work


@compiled()
def judge_energy(ledger, before, kinetic, weight, allowed_j):
    """Whether a control period made too much energy, or the run so far."""
    floor = FLOOR_LIFT_M * weight
    whole = ledger[KINETIC] + ledger[EXCHANGED]
    recent = kinetic + ledger[RECENT_EXCHANGED]
    if ledger[SPURIOUS] > floor + END_SHARE * whole or ledger[RECENT] > floor + END_SHARE * recent:
        return MADE_UP
    doubtful = (
        ledger[SPURIOUS] > floor + WARN_SHARE * whole
        or ledger[RECENT] > floor + WARN_SHARE * recent
    )
    if ledger[BALANCE] - before[BALANCE] > (0.05 if doubtful else 1.0) * allowed_j:
        return UNBALANCED
    return DOUBTFUL if doubtful else OK
