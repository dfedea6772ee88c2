"""Forward dynamics of the mechanism by articulated bodies, in O(n).

The articulated-body algorithm (Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 7): from
the tips to the roots each body's joint is eliminated, axis by axis, and what is left of its inertia
and of the forces on it joins its parent's; from the roots to the tips the accelerations follow.

An articulated inertia about a joint relates the acceleration (alpha, a) of the body there to moment
and force,

    n = I alpha + H a,   f = H^T alpha + M a,

I and M symmetric and kept as six numbers (xx xy xz yy yz zz), H by rows.
"""

from __future__ import annotations

import math

from musls_description.hanging.tree import STOP_RAD
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    dot,
    increase,
    put,
    rotate,
    scale,
    sub,
    times,
)
from musls_sim.plants.rigid_links.mechanism import (
    SLACK,
    angle_of,
    bodies_of,
    change_of,
    coordinates_of,
    last_change_of,
    middle_rate_of,
    rate_of,
    slacks_of,
)

# ---------- Symmetric matrices as six numbers, matrices as nine


@compiled()
def sym_times(s, a):
    """Symmetric matrix times vector."""
    return (
        s[0] * a[0] + s[1] * a[1] + s[2] * a[2],
        s[1] * a[0] + s[3] * a[1] + s[4] * a[2],
        s[2] * a[0] + s[4] * a[1] + s[5] * a[2],
    )


@compiled()
def times9(h, a):
    """Matrix times vector."""
    return (
        h[0] * a[0] + h[1] * a[1] + h[2] * a[2],
        h[3] * a[0] + h[4] * a[1] + h[5] * a[2],
        h[6] * a[0] + h[7] * a[1] + h[8] * a[2],
    )


@compiled()
def back_times9(h, a):
    """Transposed matrix times vector."""
    return (
        h[0] * a[0] + h[3] * a[1] + h[6] * a[2],
        h[1] * a[0] + h[4] * a[1] + h[7] * a[2],
        h[2] * a[0] + h[5] * a[1] + h[8] * a[2],
    )


@compiled()
def sym_less(s, p, u):
    """Symmetric matrix minus p u^T; the product has to be symmetric."""
    return (
        s[0] - p[0] * u[0],
        s[1] - p[0] * u[1],
        s[2] - p[0] * u[2],
        s[3] - p[1] * u[1],
        s[4] - p[1] * u[2],
        s[5] - p[2] * u[2],
    )


@compiled()
def less9(h, p, v):
    """Matrix minus p v^T."""
    return (
        h[0] - p[0] * v[0],
        h[1] - p[0] * v[1],
        h[2] - p[0] * v[2],
        h[3] - p[1] * v[0],
        h[4] - p[1] * v[1],
        h[5] - p[1] * v[2],
        h[6] - p[2] * v[0],
        h[7] - p[2] * v[1],
        h[8] - p[2] * v[2],
    )


@compiled()
def sym_inverse(s):
    """Inverse of a symmetric matrix."""
    a = s[3] * s[5] - s[4] * s[4]
    b = s[2] * s[4] - s[1] * s[5]
    c = s[1] * s[4] - s[2] * s[3]
    f = 1.0 / (s[0] * a + s[1] * b + s[2] * c)
    return (
        f * a,
        f * b,
        f * c,
        f * (s[0] * s[5] - s[2] * s[2]),
        f * (s[1] * s[2] - s[0] * s[4]),
        f * (s[0] * s[3] - s[1] * s[1]),
    )


@compiled()
def coupling_at(h, m, r):
    """H about a place from which the arm r leads to the old one: H + [r] M."""
    x, y, z = r[0], r[1], r[2]
    return (
        h[0] - z * m[1] + y * m[2],
        h[1] - z * m[3] + y * m[4],
        h[2] - z * m[4] + y * m[5],
        h[3] + z * m[0] - x * m[2],
        h[4] + z * m[1] - x * m[4],
        h[5] + z * m[2] - x * m[5],
        h[6] - y * m[0] + x * m[1],
        h[7] - y * m[1] + x * m[3],
        h[8] - y * m[2] + x * m[4],
    )


@compiled()
def inertia_at(i, h, g, r):
    """I about that place, with H there as g: I - H [r] + [r] g^T."""
    x, y, z = r[0], r[1], r[2]
    return (
        i[0] - h[1] * z + h[2] * y - z * g[1] + y * g[2],
        i[1] - h[2] * x + h[0] * z - z * g[4] + y * g[5],
        i[2] - h[0] * y + h[1] * x - z * g[7] + y * g[8],
        i[3] - h[5] * x + h[3] * z + z * g[3] - x * g[5],
        i[4] - h[3] * y + h[4] * x + z * g[6] - x * g[8],
        i[5] - h[6] * y + h[7] * x - y * g[6] + x * g[7],
    )


@compiled()
def read6(s):
    """Six numbers of a record."""
    return s[0], s[1], s[2], s[3], s[4], s[5]


@compiled()
def read9(h):
    """Nine numbers of a record."""
    return h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8]


@compiled()
def increase_by(out, values):
    """Add numbers to those of a record."""
    for k in range(len(values)):
        out[k] += values[k]


@compiled()
def read3(a):
    """Three numbers of a record."""
    return a[0], a[1], a[2]


# ---------- The algorithm


@compiled(inlined=True)
def own_inertia(body, gravity):
    """A body's inertia about its joint, and what its weight, turning and wrench need there."""
    r = body.rotation
    mass = body.mass
    w = read3(body.omega)
    s = read3(body.swing)
    centre = rotate(r, body.com)
    c = sub(add(body.position, centre), body.joint)
    spin = world_inertia(body)
    ixx, ixy, ixz, iyy, iyz, izz = spin
    turning = add(cross(w, sym_times(spin, w)), cross(s, sym_times(spin, s)))
    cx, cy, cz = c
    body.spin[0] = ixx + mass * (cy * cy + cz * cz)
    body.spin[1] = ixy - mass * cx * cy
    body.spin[2] = ixz - mass * cx * cz
    body.spin[3] = iyy + mass * (cx * cx + cz * cz)
    body.spin[4] = iyz - mass * cy * cz
    body.spin[5] = izz + mass * (cx * cx + cy * cy)
    h = body.coupling
    h[0] = h[4] = h[8] = 0.0
    h[1] = -mass * cz
    h[2] = mass * cy
    h[3] = mass * cz
    h[5] = -mass * cx
    h[6] = -mass * cy
    h[7] = mass * cx
    m = body.inert
    m[0] = m[3] = m[5] = mass
    m[1] = m[2] = m[4] = 0.0
    centripetal = add(cross(w, cross(w, c)), cross(s, cross(s, c)))
    force = scale(mass, (centripetal[0], centripetal[1], centripetal[2] + gravity))
    put(body.force, sub(force, body.wrench.force))
    outside = add(body.wrench.moment, cross(sub(body.position, body.joint), body.wrench.force))
    put(body.moment, sub(add(turning, cross(c, force)), outside))


@compiled(inlined=True)
def world_inertia(body):
    """A body's inertia about its centre of mass in the world, six numbers."""
    r = body.rotation
    if body.slender != 0:
        across = body.inertia[1, 1]
        more = body.inertia[0, 0] - across
        x, y, z = r[0, 0], r[1, 0], r[2, 0]
        return (
            across + more * x * x,
            more * x * y,
            more * x * z,
            across + more * y * y,
            more * y * z,
            across + more * z * z,
        )
    a, b, c = rotated_rows(r, body.inertia)
    ixx, ixy, ixz = rotate(r, a)
    _, iyy, iyz = rotate(r, b)
    _, _, izz = rotate(r, c)
    return ixx, ixy, ixz, iyy, iyz, izz


@compiled()
def rotated_rows(r, inertia):
    """Rows of R J, three vectors; those of R J R^T are `rotate(R, row)`."""
    return (
        times(inertia, (r[0, 0], r[0, 1], r[0, 2])),
        times(inertia, (r[1, 0], r[1, 1], r[1, 2])),
        times(inertia, (r[2, 0], r[2, 1], r[2, 2])),
    )


@compiled()
def yield_at(body, arm, b):
    """Reduce the force at an arm r from the joint by B times the acceleration there.

    B is symmetric: xx, xy, xz, yy, yz, zz. Adds B, [r] B and [r] B [r]^T.
    """
    xx, xy, xz, yy, yz, zz = b
    c1, c2, c3 = cross(arm, (xx, xy, xz)), cross(arm, (xy, yy, yz)), cross(arm, (xz, yz, zz))
    s1 = cross(arm, (c1[0], c2[0], c3[0]))
    s2 = cross(arm, (c1[1], c2[1], c3[1]))
    s3 = cross(arm, (c1[2], c2[2], c3[2]))
    increase_by(body.spin, (s1[0], s1[1], s1[2], s2[1], s2[2], s3[2]))
    increase_by(body.coupling, (c1[0], c2[0], c3[0], c1[1], c2[1], c3[1], c1[2], c2[2], c3[2]))
    increase_by(body.inert, b)


@compiled(inlined=True)
def eliminate(t, k, h):
    """Eliminate a body's joint and add its remaining inertia and force to its parent.

    Joint damping acts on the mean rate of the step, v + h/2 a, carried a quarter of a step further
    along the change of the acceleration, h/4 (a - a1), which makes it stable for any damping;
    springs on the mean position. Friction and stops are implicit: they act on the rate at the end.
    """
    bodies = bodies_of(t)
    rows = coordinates_of(t)
    rate = rate_of(t)
    angle = angle_of(t)
    middle = middle_rate_of(t)
    last_change = last_change_of(t)
    body = bodies[k]
    up = bodies[body.parent]
    inertia = read6(body.spin)
    coupling = read9(body.coupling)
    mass = read6(body.inert)
    moment = read3(body.moment)
    force = read3(body.force)
    w = read3(body.omega)
    s = read3(body.swing)
    if body.slides >= 0:
        row = slacks_of(t)[body.slides]
        inertia, coupling, mass = slide_below(row, body, inertia, coupling, mass, h)
        drift = read3(row.drift)
        own_change = row.left * row.inverse
        moment = add(moment, add(times9(coupling, drift), scale(own_change, row.turning)))
        force = add(force, add(sym_times(mass, drift), scale(own_change, row.pushing)))
    whole = 0.0
    for d in range(body.first, body.first + body.freedom):
        whole += rate[d] * rate[d]
    steadying = slacks_of(t)[body.cable].steadying
    for d in range(body.first + body.freedom - 1, body.first - 1, -1):
        row = rows[d]
        damping = row.damping  # of a third axis, about the cable: it has no waves
        if d >= body.first + body.freedom - 2:
            damping = max(damping, steadying)
        axis = read3(row.axis)
        turn = scale(middle[d], axis)
        w = sub(w, turn)  # before the joint's axis turns
        swing = scale(middle[d] - rate[d], axis)
        s = sub(s, swing)
        if body.even == 0:
            drift = add(cross(w, turn), cross(s, swing))
        else:
            drift = add(cross(body.turning, turn), cross(body.turning_swing, swing))
        slip = rate[d] * rate[d] if body.even == 0 else whole
        row.torque, row.felt = joint_torque(
            row, damping, angle[d], rate[d], slip, last_change[d], h
        )
        u, v = sym_times(inertia, axis), back_times9(coupling, axis)
        inverse = 1.0 / (dot(axis, u) + row.felt)
        net_torque = row.torque - dot(axis, moment)
        put(row.turning, u)
        put(row.pushing, v)
        put(row.drift, drift)
        row.left = net_torque
        row.inverse = inverse
        p = scale(inverse, u)
        q = scale(inverse, v)
        inertia = sym_less(inertia, p, u)
        coupling = less9(coupling, p, v)
        mass = sym_less(mass, q, v)
        moment = add(moment, add(sym_times(inertia, drift), scale(net_torque, p)))
        force = add(force, add(back_times9(coupling, drift), scale(net_torque, q)))
    r = read3(body.arm)
    centripetal = add(cross(w, cross(w, r)), cross(s, cross(s, r)))
    put(body.centripetal, centripetal)
    force = add(force, sym_times(mass, centripetal))
    moment = add(add(moment, times9(coupling, centripetal)), cross(r, force))
    above = coupling_at(coupling, mass, r)
    increase_by(up.spin, inertia_at(inertia, coupling, above, r))
    increase_by(up.coupling, above)
    increase_by(up.inert, mass)
    increase(up.moment, moment)
    increase(up.force, force)


@compiled()
def slide_below(row, body, inertia, coupling, mass, h):
    """Eliminate a first link's slide, the last axis of its joint, from I, H and M."""
    e = read3(row.along)
    drift = scale(2.0 * row.middle_rate, cross(body.omega, e))
    drift = add_scaled(drift, 2.0 * (row.middle_rate - row.rate), cross(body.swing, e))
    u, v = times9(coupling, e), sym_times(mass, e)
    pull, loss = (-row.weight, 0.0) if row.state == SLACK else pull_of(row, h)
    row.beyond = dot(e, v)
    put(row.turning, u)
    put(row.pushing, v)
    put(row.drift, drift)
    row.inverse = 1.0 / (dot(e, v) + loss)
    row.left = pull - dot(e, body.force)
    p = scale(row.inverse, u)
    q = scale(row.inverse, v)
    return sym_less(inertia, p, u), less9(coupling, p, v), sym_less(mass, q, v)


@compiled()
def pull_of(row, h):
    """Tension of a stretched cable at no acceleration, and its loss per acceleration.

    The length is that of half the step.
    """
    pull = row.rest - row.stiffness * row.length - row.damping * row.rate
    return pull, 0.25 * h * h * row.stiffness + 0.5 * h * row.damping


@compiled(inlined=True)
def accelerate(t, k):
    """Acceleration of a body and of its coordinates, from its parent's."""
    bodies = bodies_of(t)
    rows = coordinates_of(t)
    change = change_of(t)
    body = bodies[k]
    i = bodies[k].first
    if body.parent < 0:
        angular, linear = free_acceleration(body, body.moment, body.force)
        put(change[i : i + 3], angular)
        put(change[i + 3 : i + 6], linear)
        put(body.angular, angular)
        put(body.linear, linear)
        return
    up = bodies[body.parent]
    angular = read3(up.angular)
    linear = add(add(up.linear, body.centripetal), cross(angular, body.arm))
    for d in range(i, i + body.freedom):
        row = rows[d]
        angular = add(angular, row.drift)
        resistance = dot(row.turning, angular) + dot(row.pushing, linear)
        change[d] = (row.left - resistance) * row.inverse
        angular = add(angular, scale(change[d], row.axis))
    if body.slides >= 0:
        row = slacks_of(t)[body.slides]
        linear = add(linear, row.drift)
        resistance = dot(row.turning, angular) + dot(row.pushing, linear)
        row.change = (row.left - resistance) * row.inverse
        linear = add_scaled(linear, row.change, row.along)
    put(body.angular, angular)
    put(body.linear, linear)


@compiled()
def free_acceleration(body, moment, force):
    """Acceleration of a free articulated body that a moment and a force hold back."""
    h = read9(body.coupling)
    inverse = sym_inverse(body.inert)
    # I - H M^-1 H^T, column by column of H^T
    i = read6(body.spin)
    a = sym_times(inverse, (h[0], h[1], h[2]))
    b = sym_times(inverse, (h[3], h[4], h[5]))
    c = sym_times(inverse, (h[6], h[7], h[8]))
    ha = times9(h, a)
    hb = times9(h, b)
    hc = times9(h, c)
    rest = (i[0] - ha[0], i[1] - ha[1], i[2] - ha[2], i[3] - hb[1], i[4] - hb[2], i[5] - hc[2])
    right = sub(times9(h, sym_times(inverse, force)), moment)
    angular = sym_times(sym_inverse(rest), right)
    linear = sym_times(inverse, add(force, back_times9(h, angular)))
    return angular, (-linear[0], -linear[1], -linear[2])


@compiled()
def transmitted_force(body):
    """Force that a joint transmits to its body, from the body's acceleration."""
    h = read9(body.coupling)
    m = read6(body.inert)
    inertia_force = add(back_times9(h, body.angular), sym_times(m, body.linear))
    return add(inertia_force, body.force)


# ---------- Torques of the joints

STICK_RATE_RAD_S = 0.02
"""Rate w_s below which a joint counts as stuck (creep)."""

STOP_STIFFNESS_N_M_RAD = 5.0
STOP_DAMPING_N_M_S_RAD = 0.01
"""Damping of the stop of a joint's second axis, `tree.STOP_RAD` on either side, where it is
singular."""

# Coulomb friction: the torque -tau w / sqrt(w^2 + w_s^2) tends to Coulomb's law for rates above w_s
# and creeps at w_s r / sqrt(1 - r^2), r = torque / tau, when it sticks. It enters as damping
# tau / sqrt(w^2 + w_s^2) with w from the begin of the step.


@compiled()
def joint_torque(row, damping, angle, rate, slip, last_change, h):
    """Torque of a coordinate's damper, spring, friction and stop at no acceleration.

    And what it loses by acceleration, as an inertia. The angle is that of half the step, `slip` the
    square of the rate at which surfaces slip that rub.
    """
    c = damping
    k = row.stiffness
    torque = -c * (rate - 0.25 * h * last_change) - k * angle
    loss = 0.75 * h * c + 0.25 * h * h * k
    if row.friction > 0.0:
        c = row.friction / math.sqrt(slip + STICK_RATE_RAD_S * STICK_RATE_RAD_S)
        torque -= c * rate
        loss += h * c
    if row.second == 1 and abs(angle) > STOP_RAD:
        excess = angle - math.copysign(STOP_RAD, angle)
        c = STOP_DAMPING_N_M_S_RAD
        k = STOP_STIFFNESS_N_M_RAD
        torque -= k * (excess + 0.5 * h * rate) + c * rate
        loss += h * c + 0.5 * h * h * k
    return torque, loss
