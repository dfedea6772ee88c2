"""Jerks: cables that reach their length while their ends separate, in compiled code.

All cables at their length take part: 0 <= lambda, d'+ <= 0, lambda d'+ = 0 with
d'+ = d'- - D lambda. It has one solution, whatever the order of the cables; a cable never pushes,
momentum is kept and energy can only be lost. (Li et al., RotorTM, eq. 40 to 43, solve for equality
over the cables that lengthen; some of them then push.)

With a coefficient of restitution e the velocities are those of Moreau's law, v+ = v- + (1 + e)
(v0 - v-) with v0 those of the inelastic jerk: energy is lost for every e < 1 and any number of
cables, where Newton's law for each cable by itself can make some.
"""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.massless.bodies import place
from musls_sim.plants.massless.columns import (
    ALONG,
    BEFORE,
    EVENT_CABLE,
    EVENT_IMPULSE,
    EVENT_KIND,
    EVENT_LOSS,
    EVENT_TIME,
    FORCE_SUM,
    GAP,
    JERK_LOSS,
    JERKED,
    MOST_EVENTS,
    OWN,
    RATE,
    RESTITUTION,
    TAUT,
    TIGHTENED,
)
from musls_sim.plants.massless.complementarity import solve_complementarity
from musls_sim.plants.massless.rates import find_cable, gather, pull_with

AT_LENGTH_M = 1e-10
"""Gap below which a cable is at its length."""

STILL_M_S = 1e-11
"""Rate of separation that counts as none."""

BOUNCE_M_S = 1e-3
"""Rate of separation below which nothing bounces: it would never end."""

TOLD_M_S = 1e-9
"""Rate of separation below which a jerk of a taut cable is no event."""


@compiled()
def mark_at_length(t):
    """Mark the cables at their length (TAUT), and keep which were taut (BEFORE)."""
    for k in range(t.cables.shape[0]):
        c = t.cables[k]
        c[BEFORE] = c[TAUT]
        c[TAUT] = 1.0 if c[GAP] >= -AT_LENGTH_M or c[BEFORE] != 0.0 else 0.0


@compiled()
def separation(t):
    """Largest rate at which the ends of a marked cable separate."""
    worst = 0.0
    for k in range(t.cables.shape[0]):
        if t.cables[k, TAUT] != 0.0 and t.cables[k, RATE] > worst:
            worst = t.cables[k, RATE]
    return worst


@compiled()
def jerk(t, y, now, count, scratch):
    """Let the marked cables jerk until none of them separates."""
    for bounce in range(20):
        fastest = separation(t)
        if fastest <= STILL_M_S:
            break
        elastic = t.parameters[RESTITUTION] if fastest > BOUNCE_M_S and bounce < 19 else 0.0
        m = gather(t, 1.0)
        for i in range(m):
            t.right[i] = t.cables[int(t.who[i]), RATE]
            t.basis[i] = 1.0
        solve_complementarity(t.matrix, t.right, m, t.basis, t.factor, t.solution)
        for i in range(m):
            t.solution[i] *= 1.0 + elastic
            pull_with(t, int(t.who[i]), t.solution[i], y)
        for i in range(y.shape[0]):
            place(y[i], t.motion[i])
        for k in range(t.cables.shape[0]):
            before = t.cables[k, RATE]
            find_cable(t, k, y, scratch)
            t.spare[k] = 0.5 * (before + t.cables[k, RATE])
        count = _tell(t, m, now, count)
    return count


@compiled()
def _tell(t, m, now, count):
    """Sum up impulses and losses, write the events."""
    for i in range(m):
        k, impulse = int(t.who[i]), t.solution[i]
        c = t.cables[k]
        if impulse <= 0.0:
            continue
        loss = impulse * t.spare[k]
        t.sums[JERK_LOSS] += loss
        for j in range(3):
            c[FORCE_SUM + j] += impulse * c[ALONG + j]
        known = c[BEFORE] != 0.0 and impulse * max(c[OWN], 1e-9) < TOLD_M_S
        if known or impulse * max(c[OWN], 1e-9) < 1e-3 * TOLD_M_S:
            continue
        kind = JERKED if c[BEFORE] != 0.0 else TIGHTENED
        count = write_event(t, count, now, kind, k, impulse, loss)
        c[BEFORE] = 1.0 if kind == TIGHTENED else c[BEFORE]
    return count


@compiled()
def write_event(t, count, now, kind, k, impulse, loss):
    """Write one event where there is room; returns how many there are."""
    if count < MOST_EVENTS:
        e = t.events[count]
        e[EVENT_TIME], e[EVENT_KIND], e[EVENT_CABLE] = now, kind, k
        e[EVENT_IMPULSE], e[EVENT_LOSS] = impulse, loss
    return count + 1
