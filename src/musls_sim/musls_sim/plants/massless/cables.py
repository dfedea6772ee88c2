"""Derivatives of load and drones on massless cables, in compiled code.

With u the direction of a cable from the load to its drone, d the distance of its ends and T its
tension, the load is pulled by T u at its attachment, the drone by -T u at its hook. All bodies free
otherwise, the second derivatives of the distances are linear in the tensions,

    d'' = b - D T,   D_jk = u_j u_k / m_L + s_j J_L^-1 s_k + delta_jk (1 / m_k + s J_k^-1 s),

s the moment of a unit tension about a body's centre. Taut cables have d'' = 0: D T = b, symmetric
and positive definite whatever the geometry, because every cable has a drone of its own. (The
6 x 6 matrix of Li et al., "RotorTM", IEEE T-RO 2023, eq. 18 to 21, in its dual form, with drones
that are not held in their centres of mass.)
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.massless.bodies import accelerate, add_corners, drive, follow, place
from musls_sim.plants.massless.records import (
    ALONG,
    BEFORE,
    DRAG,
    DRONE_TURN,
    EVENT_CABLE,
    EVENT_IMPULSE,
    EVENT_KIND,
    EVENT_LOSS,
    EVENT_TIME,
    FORCE_SUM,
    FREE,
    FREE_ACCELERATION,
    GAP,
    GRAVITY,
    INVERSE,
    INVERSE_MASS,
    JERK_LOSS,
    JERKED,
    LENGTH,
    LOAD_ARM,
    LOAD_TURN,
    MOST_EVENTS,
    NEAR,
    OWN,
    POINT_DRONE,
    POINT_LOAD,
    RATE,
    RESTITUTION,
    SLACKENED,
    TAUT,
    TENSION,
    TENSION_NOISE,
    TIGHTENED,
    VALUE,
    Q,
    V,
    W,
    X,
)
from musls_sim.plants.rigid_links.rows import POSITION, VELOCITY, add_body_drag

# ---------- The linear complementarity problem of all cables at their length, in compiled code.


@compiled()
def solve_active(d, b, basis, m, factor, z):
    """Solve D z = b for the rows in the basis, z = 0 for the others."""
    for i in range(m):
        z[i] = 0.0
        if basis[i] == 0.0:
            continue
        for j in range(i + 1):
            if basis[j] == 0.0:
                continue
            s = d[i, j]
            for k in range(j):
                if basis[k] != 0.0:
                    s -= factor[i, k] * factor[j, k]
            factor[i, j] = np.sqrt(s) if i == j else s / factor[j, j]
    back_substitute(factor, b, basis, m, z)


@compiled()
def back_substitute(factor, b, basis, m, z):
    """Solve with the factor of `solve_active`; rows that are not active get 0."""
    for i in range(m):
        z[i] = 0.0
        if basis[i] != 0.0:
            s = b[i]
            for k in range(i):
                if basis[k] != 0.0:
                    s -= factor[i, k] * z[k]
            z[i] = s / factor[i, i]
    for i in range(m - 1, -1, -1):
        if basis[i] != 0.0:
            s = z[i]
            for k in range(i + 1, m):
                if basis[k] != 0.0:
                    s -= factor[k, i] * z[k]
            z[i] = s / factor[i, i]


@compiled()
def solve_complementarity(d, b, m, basis, factor, z):
    """Solve 0 <= z, D z - b >= 0, z (D z - b) = 0.

    All rows that violate their condition change sides at once while that leaves fewer of them;
    otherwise the last of them alone, which ends for every matrix of this kind (Judice and Pires,
    Computers and Operations Research 21, 1994; Murty 1974).
    """
    scale = 0.0
    for i in range(m):
        scale = max(scale, abs(b[i]))
    noise = 1e-14 * scale
    fewest, patience = m + 1, 3
    for _ in range(100 * (m + 1) + 2**m if m < 12 else 5000):
        solve_active(d, b, basis, m, factor, z)
        wrong, last = 0, -1
        for i in range(m):
            if violates(d, b, m, basis, z, i, noise):
                wrong += 1
                last = i
        if wrong == 0:
            for i in range(m):
                z[i] = max(z[i], 0.0)
            return
        if wrong < fewest:
            fewest, patience = wrong, 3
        elif patience > 0:
            patience -= 1
        block = patience > 0
        if not block:
            basis[last] = 1.0 - basis[last]
            continue
        flip_violators(d, b, m, basis, z, noise)


@compiled()
def violates(d, b, m, basis, z, i, noise):
    """Whether row i breaks its condition by more than rounding."""
    if basis[i] != 0.0:
        return z[i] * d[i, i] < -noise
    w = -b[i]
    for j in range(m):
        w += d[i, j] * z[j]
    return w < -noise


@compiled()
def flip_violators(d, b, m, basis, z, noise):
    """Change the side of all rows that break their condition."""
    for i in range(m):
        if basis[i] != 0.0:
            if z[i] * d[i, i] < -noise:
                basis[i] = 2.0  # leaves, once the others are judged
        elif violates(d, b, m, basis, z, i, noise):
            basis[i] = -1.0  # joins; z of this row is 0, so the others do not see it
    for i in range(m):
        if basis[i] == 2.0:
            basis[i] = 0.0
        elif basis[i] == -1.0:
            basis[i] = 1.0


SOFT = 1e-9
"""Share by which the cables of prescribed drones give way: their matrix may be singular."""


@compiled()
def rates(t, y, speed, now, wind, body, enu, out):
    """Derivatives in a state, with the cables taut that are marked so.

    Tensions, gaps and rates of the cables are left in `t.cables`, powers in `t.power`.
    """
    free_motion(t, y, speed, now, wind, body, enu, out)
    m = gather(t, 1.0)
    if m > 0:
        for i in range(m):
            t.basis[i] = 1.0
            t.right[i] = t.cables[int(t.who[i]), FREE_ACCELERATION]
        solve_active(t.matrix, t.right, t.basis, m, t.factor, t.solution)
    share_tensions(t, m, out)


@compiled()
def free_motion(t, y, speed, now, wind, body, enu, out):
    """Derivatives without cables; directions, gaps and free accelerations of the cables."""
    t.power[0] = t.power[1] = 0.0
    w, gravity = t.wrench, t.parameters[GRAVITY]
    for i in range(y.shape[0]):
        if t.bodies[i, FREE] != 0.0:
            p, m = t.bodies[i], t.motion[i]
            place(y[i], m)
            w[:] = 0.0
            add_body_drag(m, p[DRAG : DRAG + 3], wind, w)
            if p[NEAR] != 0.0:
                add_corners(t, p, m, w)
            turning = speed[i - 1] if i > 0 else speed[0, :0]
            rotors = t.rotors[i - 1] if i > 0 else t.rotors[0]
            driven, lost = drive(m, body[i], enu[i], wind, turning, rotors, w)
            t.power[0] += driven
            t.power[1] += lost
            accelerate(p, m, w, y[i], gravity, out[i])
        else:
            follow(t.path[i - 1], now, y[i], out[i])
            place(y[i], t.motion[i])
    for k in range(t.cables.shape[0]):
        find_cable(t, k, y, out)


@compiled()
def find_cable(t, k, y, out):
    """Direction, gap, rate, free acceleration and levers of cable k, see the module."""
    i = k + 1
    cable_geometry(
        t.cables[k], t.motion[0], t.motion[i], t.bodies[0], t.bodies[i], y[0], y[i], out[0], out[i]
    )


@compiled()
def cable_geometry(c, load, drone, p, q, y0, y1, out0, out1):
    """The same from the rows of the cable and of load and drone alone.

    A call costs time for every array of the tables that it hands on: here there are 30 of them.
    """
    l0, l1, l2 = _turned(load, c[POINT_LOAD], c[POINT_LOAD + 1], c[POINT_LOAD + 2])
    d0, d1, d2 = _turned(drone, c[POINT_DRONE], c[POINT_DRONE + 1], c[POINT_DRONE + 2])
    x = drone[POSITION] + d0 - load[POSITION] - l0
    e = drone[POSITION + 1] + d1 - load[POSITION + 1] - l1
    z = drone[POSITION + 2] + d2 - load[POSITION + 2] - l2
    distance = np.sqrt(x * x + e * e + z * z)
    inverse = 1.0 / distance if distance > 0.0 else 0.0
    u0, u1, u2 = x * inverse, e * inverse, z * inverse
    a0, a1, a2 = _point_velocity(load, l0, l1, l2)
    b0, b1, b2 = _point_velocity(drone, d0, d1, d2)
    v0, v1, v2 = b0 - a0, b1 - a1, b2 - a2
    rate = u0 * v0 + u1 * v1 + u2 * v2
    across = v0 * v0 + v1 * v1 + v2 * v2 - rate * rate
    a0, a1, a2 = _point_acceleration(load, y0, out0, c[POINT_LOAD : POINT_LOAD + 3])
    b0, b1, b2 = _point_acceleration(drone, y1, out1, c[POINT_DRONE : POINT_DRONE + 3])
    c[GAP], c[RATE] = distance - c[LENGTH], rate
    c[FREE_ACCELERATION] = (
        u0 * (b0 - a0) + u1 * (b1 - a1) + u2 * (b2 - a2) + max(across, 0.0) * inverse
    )
    c[ALONG], c[ALONG + 1], c[ALONG + 2] = u0, u1, u2
    s0, s1, s2 = _lever(load, c[POINT_LOAD : POINT_LOAD + 3], u0, u1, u2)
    c[LOAD_ARM], c[LOAD_ARM + 1], c[LOAD_ARM + 2] = s0, s1, s2
    for i in range(3):
        at = INVERSE + 3 * i
        c[LOAD_TURN + i] = p[at] * s0 + p[at + 1] * s1 + p[at + 2] * s2
    s0, s1, s2 = _lever(drone, c[POINT_DRONE : POINT_DRONE + 3], u0, u1, u2)
    for i in range(3):
        at = INVERSE + 3 * i
        c[DRONE_TURN + i] = q[at] * s0 + q[at + 1] * s1 + q[at + 2] * s2
    c[OWN] = q[INVERSE_MASS] + (
        s0 * c[DRONE_TURN] + s1 * c[DRONE_TURN + 1] + s2 * c[DRONE_TURN + 2]
    )


@compiled()
def _turned(m, x, y, z):
    """Body vector in the world."""
    return (
        m[0] * x + m[1] * y + m[2] * z,
        m[3] * x + m[4] * y + m[5] * z,
        m[6] * x + m[7] * y + m[8] * z,
    )


@compiled()
def _point_velocity(m, x, y, z):
    """Velocity of a point of a body at an arm in the world."""
    wx, wy, wz = m[12], m[13], m[14]
    return (
        m[VELOCITY] + wy * z - wz * y,
        m[VELOCITY + 1] + wz * x - wx * z,
        m[VELOCITY + 2] + wx * y - wy * x,
    )


@compiled()
def _point_acceleration(m, y, out, r):
    """Acceleration of a point r of a body: a + alpha x r + omega x (omega x r), in the world."""
    wx, wy, wz = y[W], y[W + 1], y[W + 2]
    ax, ay, az = out[W], out[W + 1], out[W + 2]
    cx, cy, cz = wy * r[2] - wz * r[1], wz * r[0] - wx * r[2], wx * r[1] - wy * r[0]
    x, e, z = _turned(
        m,
        ay * r[2] - az * r[1] + wy * cz - wz * cy,
        az * r[0] - ax * r[2] + wz * cx - wx * cz,
        ax * r[1] - ay * r[0] + wx * cy - wy * cx,
    )
    return out[V] + x, out[V + 1] + e, out[V + 2] + z


@compiled()
def _lever(m, r, u0, u1, u2):
    """Moment of a world direction at the point r of a body, in its frame: r x R^T u."""
    x = m[0] * u0 + m[3] * u1 + m[6] * u2
    y = m[1] * u0 + m[4] * u1 + m[7] * u2
    z = m[2] * u0 + m[5] * u1 + m[8] * u2
    return r[1] * z - r[2] * y, r[2] * x - r[0] * z, r[0] * y - r[1] * x


@compiled()
def gather(t, least):
    """List the cables marked with at least `least` and fill their matrix D."""
    m = 0
    cables, inverse_mass = t.cables, t.bodies[0, INVERSE_MASS]
    for k in range(cables.shape[0]):
        if cables[k, TAUT] < least:
            continue
        c = cables[k]
        t.who[m] = k
        for j in range(m):
            t.matrix[m, j] = t.matrix[j, m] = coupling(inverse_mass, c, cables[int(t.who[j])])
        d = inverse_mass
        for i in range(3):
            d += c[LOAD_ARM + i] * c[LOAD_TURN + i]
        t.matrix[m, m] = d + (c[OWN] if c[OWN] > 0.0 else SOFT * d)
        m += 1
    t.who[cables.shape[0]] = m
    return m


@compiled()
def coupling(inverse_mass, c, o):
    """Effect of the tension of one cable on the distance of another one, D_jk [1/kg]."""
    d = inverse_mass * (
        c[ALONG] * o[ALONG] + c[ALONG + 1] * o[ALONG + 1] + c[ALONG + 2] * o[ALONG + 2]
    )
    for i in range(3):
        d += c[LOAD_ARM + i] * o[LOAD_TURN + i]
    return d


@compiled()
def share_tensions(t, m, out):
    """Give the tensions in `t.solution` to the cables and their accelerations to the bodies."""
    for k in range(t.cables.shape[0]):
        t.cables[k, TENSION] = 0.0
    for i in range(m):
        t.cables[int(t.who[i]), TENSION] = t.solution[i]
    for i in range(m):
        k = int(t.who[i])
        pull(t.cables[k], t.bodies[0], t.bodies[k + 1], t.solution[i], out[0], out[k + 1])
        if t.bodies[k + 1, FREE] == 0.0:  # the drone's power goes into the cable
            c, s = t.cables[k], 0.0
            l0, l1, l2 = _turned(
                t.motion[k + 1], c[POINT_DRONE], c[POINT_DRONE + 1], c[POINT_DRONE + 2]
            )
            v0, v1, v2 = _point_velocity(t.motion[k + 1], l0, l1, l2)
            s = c[ALONG] * v0 + c[ALONG + 1] * v1 + c[ALONG + 2] * v2
            t.power[0] += t.solution[i] * s


@compiled()
def pull(c, p, q, amount, load, drone):
    """Add a tension's accelerations to derivatives, or an impulse's velocities to a state."""
    for i in range(3):
        load[V + i] += amount * p[INVERSE_MASS] * c[ALONG + i]
        load[W + i] += amount * c[LOAD_TURN + i]
        if q[FREE] != 0.0:
            drone[V + i] -= amount * q[INVERSE_MASS] * c[ALONG + i]
            drone[W + i] -= amount * c[DRONE_TURN + i]


@compiled()
def pull_with(t, k, impulse, y):
    """Give a state the velocities of an impulse in cable k."""
    pull(t.cables[k], t.bodies[0], t.bodies[k + 1], impulse, y[0], y[k + 1])


@compiled()
def tensions_by_complementarity(t, out):
    """Decide which of the cables at their length stay so, and apply their tensions.

    The cables marked 1 in the column TAUT are at their length and do not separate. Of them those
    become taut whose tension is positive when all together satisfy 0 <= T, d'' <= 0, T d'' = 0. A
    tension that is zero but for rounding leaves a taut cable taut and a slack one slack.
    """
    m = gather(t, 1.0)
    noise = t.parameters[TENSION_NOISE]
    for i in range(m):
        t.right[i] = t.cables[int(t.who[i]), FREE_ACCELERATION]
        t.basis[i] = 1.0
    solve_complementarity(t.matrix, t.right, m, t.basis, t.factor, t.solution)
    share_tensions(t, m, out)
    for i in range(m):
        c = t.cables[int(t.who[i])]
        if c[BEFORE] == 0.0:
            c[TAUT] = 1.0 if t.solution[i] > noise else 0.0
            continue
        closing = -t.right[i]
        for j in range(m):
            closing += t.matrix[i, j] * t.solution[j]
        c[TAUT] = 1.0 if t.solution[i] > 0.0 or closing <= noise * c[OWN] else 0.0


# ---------- Jerks: cables that reach their length while their ends separate, in compiled code.

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


# ---------- Which cables are taut: decided at events, kept at their length between, in compiled code.

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
