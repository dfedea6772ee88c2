"""Which cables are taut: decided at events, kept at their length between, in compiled code."""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.massless.columns import (
    ALONG,
    BEFORE,
    DRONE_TURN,
    FREE,
    FREE_ACCELERATION,
    GAP,
    INVERSE_MASS,
    LOAD_TURN,
    RATE,
    SLACKENED,
    TAUT,
    TENSION,
    TIGHTENED,
    VALUE,
    Q,
    X,
)
from musls_sim.plants.massless.complementarity import back_substitute, solve_active
from musls_sim.plants.massless.jerk import (
    AT_LENGTH_M,
    STILL_M_S,
    jerk,
    mark_at_length,
    separation,
    write_event,
)
from musls_sim.plants.massless.rates import (
    coupling,
    free_motion,
    gather,
    pull_with,
    tensions_by_complementarity,
)

SHALLOW_M = 1e-11
"""Excursion of a slack cable from its length that is not followed."""

SHALLOW_RATE_M_S = 1e-3
"""Largest rate at its begin."""

LEAVING_M_S = 1e-9
"""Rate of approach of the ends of a cable at its length that makes it slack."""


@compiled()
def decide(t, speed, now, count, moving, wind, body, enu):
    """Find anew which cables are taut: jerks, then tensions; leaves the derivatives in `t.rate`."""
    y, out = t.state, t.rate
    free_motion(t, y, speed, now, wind, body, enu, out)
    mark_at_length(t)
    if not moving:  # before the flight: what is at its length counts as taut, nothing happens
        for c in t.cables:
            c[TAUT] = 0.0 if abs(c[RATE]) > STILL_M_S else c[TAUT]
            c[VALUE] = c[TAUT]
        tensions_by_complementarity(t, out)
        for c in t.cables:
            c[TAUT] = c[VALUE]
        return count
    if separation(t) > STILL_M_S:
        count = jerk(t, y, now, count, out)
        free_motion(t, y, speed, now, wind, body, enu, out)
    for c in t.cables:
        if c[RATE] < -LEAVING_M_S:
            c[TAUT] = 0.0
    tensions_by_complementarity(t, out)
    while capture(t):
        stop_separation(t, y)
        free_motion(t, y, speed, now, wind, body, enu, out)
        tensions_by_complementarity(t, out)
    for k in range(t.cables.shape[0]):
        c = t.cables[k]
        if c[TAUT] != c[BEFORE]:
            kind = TIGHTENED if c[TAUT] != 0.0 else SLACKENED
            count = write_event(t, count, now, kind, k, 0.0, 0.0)
    return count


@compiled()
def capture(t):
    """Mark slack cables that would come back from an excursion too shallow to follow.

    Two cables that jerk each other slack by turns do so ever faster, infinitely often in a finite
    time, after which both are taut. A slack cable at its length that would be at most `SHALLOW_M`
    short of it before it is back is taken as taut, with what is left of its rate removed.
    """
    m = gather(t, 1.0)
    found = False
    for k in range(t.cables.shape[0]):
        c = t.cables[k]
        if c[TAUT] != 0.0 or c[GAP] < -AT_LENGTH_M or not -SHALLOW_RATE_M_S < c[RATE] < 0.0:
            continue
        separating = c[FREE_ACCELERATION]
        for j in range(m):
            o = t.cables[int(t.who[j])]
            separating -= coupling(t.bodies[0, INVERSE_MASS], c, o) * o[TENSION]
        if separating > 0.0 and c[RATE] ** 2 < 2.0 * SHALLOW_M * separating:
            c[TAUT] = 2.0
            found = True
    for c in t.cables:
        c[TAUT] = min(c[TAUT], 1.0)
    return found


@compiled()
def stop_separation(t, y):
    """Remove the separation rates of the cables that are marked, by masses."""
    m = gather(t, 1.0)
    for i in range(m):
        t.right[i], t.basis[i] = t.cables[int(t.who[i]), RATE], 1.0
    solve_active(t.matrix, t.right, t.basis, m, t.factor, t.solution)
    for i in range(m):
        pull_with(t, int(t.who[i]), t.solution[i], y)


@compiled()
def project(t):
    """Remove what the step has added to length and separation rate of the taut cables.

    Along the cables, by masses: the centre of mass stays, momentum too, and of all velocities
    without separation these are the nearest, so that energy is only taken.
    """
    m = int(t.who[t.cables.shape[0]])
    y = t.state
    for i in range(m):
        t.right[i] = t.cables[int(t.who[i]), GAP]
    back_substitute(t.factor, t.right, t.basis, m, t.solution)
    for i in range(m):
        _shift(t, int(t.who[i]), t.solution[i], y)
    for i in range(m):
        t.right[i] = t.cables[int(t.who[i]), RATE]
    back_substitute(t.factor, t.right, t.basis, m, t.solution)
    for i in range(m):
        pull_with(t, int(t.who[i]), t.solution[i], y)


@compiled()
def _shift(t, k, amount, y):
    """Move both bodies of a cable along it."""
    c = t.cables[k]
    load, drone = amount * t.bodies[0, INVERSE_MASS], amount * t.bodies[k + 1, INVERSE_MASS]
    for i in range(3):
        y[0, X + i] += load * c[ALONG + i]
    _turn(y[0], amount * c[LOAD_TURN], amount * c[LOAD_TURN + 1], amount * c[LOAD_TURN + 2])
    if t.bodies[k + 1, FREE] != 0.0:
        for i in range(3):
            y[k + 1, X + i] -= drone * c[ALONG + i]
        s = -amount
        _turn(y[k + 1], s * c[DRONE_TURN], s * c[DRONE_TURN + 1], s * c[DRONE_TURN + 2])


@compiled()
def _turn(y, a, b, c):
    """Turn a state by a tiny rotation vector in its body frame."""
    q0, q1, q2, q3 = y[Q], y[Q + 1], y[Q + 2], y[Q + 3]
    y[Q] -= 0.5 * (a * q1 + b * q2 + c * q3)
    y[Q + 1] += 0.5 * (a * q0 + c * q2 - b * q3)
    y[Q + 2] += 0.5 * (b * q0 + a * q3 - c * q1)
    y[Q + 3] += 0.5 * (c * q0 + b * q1 - a * q2)
