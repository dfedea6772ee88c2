"""Loops of a rig: ends of cables that stay at their places on other bodies, by forces.

The tree of bodies has no loops. Where a rig has one, a cable ends at a closing: the place p of its
end and the place b of where it is held, on another body or in the world, are to stay together. With
the force F on the end, and its opposite on the body, accelerations are linear,

    p'' - b'' = c + W F,   W from unit forces at all closings, symmetric,

and F is such that p'' - b'' = -2 w (p' - b') - w^2 (p - b): what a step misses of the way fades
within 1 / w (Baumgarte 1972). One evaluation of the dynamics shows what is missing, W says by how
much F has to change, and a second one gives the motion with it. F and its opposite act at the same
place, p, so they change no momentum.

Where taut cables are more than hold the bodies in place, W is nearly singular, and any tensions do
that pull against each other. So all cables give way a little, as ropes of one stiffness would, see
`mechanism.GIVES`. With their tensions t + P dF after a change of F, and what is missing, m,

    (W + w^2 P^T K P) dF = m - w^2 P^T K t,

K diagonal, length per tension: a gap at rest is what the cables of its loop give way together, and
what is not determined is shared out with the least energy, as equal elastic cables do.
"""

from __future__ import annotations

import math
from functools import partial

from numba import types

from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import record_at
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    column,
    cross,
    dot,
    increase,
    put,
    rotate,
    scale,
    sub,
)
from musls_sim.plants.rigid_links.articulated import (
    free_acceleration,
    read3,
    transmitted_force,
)
from musls_sim.plants.rigid_links.mechanism import (
    SYSTEM,
    bodies_of,
    closings_of,
    coordinates_of,
    effects_of,
    first_links_of,
    gaps_of,
    missing_of,
    mobility_of,
    pulls_of,
    slacks_of,
)

FADES_RAD_S = 50.0
"""Rate w with which a gap fades: a fifth of a radian in the longest step."""

CLOSED_M_S2 = 1e-9
"""Acceleration of a gap that counts as none."""


@compiled()
def find_arms(t):
    """Note where the closings are, from the joints of both bodies."""
    bodies = bodies_of(t)
    for row in closings_of(t):
        link = bodies[row.link]
        put(row.arm, add(sub(link.position, link.joint), rotate(link.rotation, row.point)))
        if row.body >= 0:
            body = bodies[row.body]
            put(row.far_arm, add(sub(body.position, body.joint), rotate(body.rotation, row.place)))


@compiled()
def push_joint(body, arm, force):
    """Add a force at an arm from its joint to what acts on a body."""
    put(body.force, sub(body.force, force))
    put(body.moment, sub(body.moment, cross(arm, force)))


@compiled()
def pull_closing(bodies, row, force):
    """Add a force on the end of a cable, and its opposite at the same place."""
    link = bodies[row.link]
    push_joint(link, row.arm, force)
    if row.body >= 0:
        body = bodies[row.body]
        place = sub(add(link.joint, row.arm), body.joint)
        push_joint(body, place, scale(-1.0, force))


@compiled()
def add_closing_forces(t):
    """Add the forces at all closings to what acts on the bodies."""
    bodies = bodies_of(t)
    find_arms(t)
    for row in closings_of(t):
        if row.open == 0:
            pull_closing(bodies, row, read3(row.force))


@compiled()
def gap_acceleration(bodies, row):
    """Acceleration of a cable's end against its place by those of the bodies alone."""
    link = bodies[row.link]
    gap = add(read3(link.linear), cross(link.angular, row.arm))
    if row.body < 0:
        return gap
    body = bodies[row.body]
    return sub(gap, add(read3(body.linear), cross(body.angular, row.far_arm)))


@compiled()
def turning(body, arm):
    """Centripetal acceleration at an arm, see `articulated.own_inertia`."""
    w = read3(body.omega)
    s = read3(body.swing)
    return add(cross(w, cross(w, arm)), cross(s, cross(s, arm)))


@compiled()
def flow(body, arm):
    """Velocity at an arm from the joint of a body."""
    return add(body.velocity, cross(body.omega, sub(add(body.joint, arm), body.position)))


@compiled()
def lack(bodies, row):
    """Acceleration that is missing at a closing."""
    link = bodies[row.link]
    gap = add(link.joint, row.arm)
    rate = flow(link, row.arm)
    change = add(gap_acceleration(bodies, row), turning(link, row.arm))
    if row.body >= 0:
        body = bodies[row.body]
        gap = sub(gap, add(body.joint, row.far_arm))
        rate = sub(rate, flow(body, row.far_arm))
        change = sub(change, turning(body, row.far_arm))
    else:
        gap = sub(gap, row.place)
    change = add_scaled(change, 2.0 * FADES_RAD_S, rate)
    return scale(-1.0, add_scaled(change, FADES_RAD_S * FADES_RAD_S, gap))


@partial(CompiledStage, gives=types.boolean, on_demand=True)
def closings_hold(address):
    """Whether the ends of all cables stay at their places; corrects the forces there if not."""
    t = record_at(address, SYSTEM)
    bodies = bodies_of(t)
    closings = closings_of(t)
    missing = missing_of(t)
    most = 0.0
    for k in range(closings.shape[0]):
        x, y, z = 0.0, 0.0, 0.0
        if closings[k].open == 0:
            x, y, z = lack(bodies, closings[k])
        put(missing[3 * k : 3 * k + 3], (x, y, z))
        most = max(most, abs(x), abs(y), abs(z))
    if most < CLOSED_M_S2 or not math.isfinite(most):
        return True
    mobility = mobility_of(t)
    pulls = pulls_of(t)
    find_pulls(t, pulls)
    find_mobility(t, mobility, missing, pulls)
    factorise(mobility)
    solve(mobility, missing)
    find_lightness(t, mobility)
    for k in range(closings.shape[0]):
        increase(closings[k].force, missing[3 * k : 3 * k + 3])
    return False


@compiled()
def find_pulls(t, pulls):
    """Tension of each cable at its first link, (n_cables,)."""
    bodies = bodies_of(t)
    first = first_links_of(t)
    for i in range(first.shape[0]):
        body = bodies[first[i]]
        pulls[i] = -dot(column(body.rotation, 0), transmitted_force(body))


@compiled()
def find_mobility(t, mobility, missing, pulls):
    """Fill W + w^2 P^T K P, and take w^2 P^T K t from what is missing; t are `pulls`."""
    bodies = bodies_of(t)
    slacks = slacks_of(t)
    closings = closings_of(t)
    size = mobility.shape[0]
    effects = effects_of(t)
    for one in range(size):
        for other in range(size):
            mobility[other, one] = 0.0
        row = closings[one // 3]
        if row.open != 0:
            mobility[one, one] = 1.0
            for i in range(pulls.shape[0]):
                effects[one, i] = 0.0
            continue
        forget_forces(bodies)
        pull_closing(bodies, row, unit_vector(one % 3))
        reply(t)
        find_pulls(t, effects[one])
        for k in range(closings.shape[0]):
            if closings[k].open == 0:
                put(mobility[3 * k : 3 * k + 3, one], gap_acceleration(bodies, closings[k]))
    for i in range(pulls.shape[0]):
        gives = FADES_RAD_S * FADES_RAD_S * slacks[i].gives
        for one in range(size):
            missing[one] -= gives * effects[one, i] * pulls[i]
            for other in range(size):
                mobility[one, other] += gives * effects[one, i] * effects[other, i]


@compiled()
def unit_vector(axis):
    """A unit vector along an axis from 0 to 2."""
    x = 1.0 if axis == 0 else 0.0
    y = 1.0 if axis == 1 else 0.0
    return x, y, 1.0 - x - y


@compiled()
def find_lightness(t, factor):
    """Find `lightness` of the cables that slide: the acceleration of a slide by a unit force.

    `factor`: that of the mobility, see `factorise`.
    """
    bodies = bodies_of(t)
    closings = closings_of(t)
    slacks = slacks_of(t)
    first = first_links_of(t)
    for i in range(first.shape[0]):
        body = bodies[first[i]]
        if body.slides < 0:
            continue
        forget_forces(bodies)
        along = read3(slacks[i].along)
        up = bodies[body.parent]
        push_joint(body, (0.0, 0.0, 0.0), along)
        push_joint(up, body.arm, scale(-1.0, along))
        reply(t)
        held = add(read3(up.linear), cross(up.angular, body.arm))
        free = dot(along, sub(read3(body.linear), held))
        gaps = gaps_of(t)
        for k in range(closings.shape[0]):
            x, y, z = 0.0, 0.0, 0.0
            if closings[k].open == 0:
                x, y, z = gap_acceleration(bodies, closings[k])
            put(gaps[3 * k : 3 * k + 3], (x, y, z))
        forward(factor, gaps)
        for k in range(gaps.shape[0]):  # of W = L L^T what is L^-1 gaps squared
            free -= gaps[k] * gaps[k]
        slacks[i].lightness = free


# NumPy's solver would take three seconds to compile in every flight of rigid links.


@compiled()
def factorise(matrix):
    """Replace a symmetric, positive definite matrix by its factor L, W = L L^T (Cholesky)."""
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            rest = matrix[i, j]
            for k in range(j):
                rest -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(rest) if i == j else rest / matrix[j, j]


@compiled()
def forward(factor, x):
    """Replace x by L^-1 x."""
    for i in range(x.shape[0]):
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] /= factor[i, i]


@compiled()
def solve(factor, x):
    """Replace x by W^-1 x."""
    forward(factor, x)
    for i in range(x.shape[0] - 1, -1, -1):
        for k in range(i + 1, x.shape[0]):
            x[i] -= factor[k, i] * x[k]
        x[i] /= factor[i, i]


@compiled()
def forget_forces(bodies):
    """Nothing acts on the bodies."""
    for k in range(bodies.shape[0]):
        put(bodies[k].moment, (0.0, 0.0, 0.0))
        put(bodies[k].force, (0.0, 0.0, 0.0))


@compiled()
def reply(t):
    """Accelerations of all bodies at rest by `force` and `moment`, with the present inertias."""
    bodies = bodies_of(t)
    rows = coordinates_of(t)
    slacks = slacks_of(t)
    for k in range(bodies.shape[0] - 1, -1, -1):
        if bodies[k].parent >= 0:
            reply_below(bodies[k], bodies[bodies[k].parent], rows, slacks)
    for k in range(bodies.shape[0]):
        body = bodies[k]
        if body.parent < 0:
            angular, linear = free_acceleration(body, body.moment, body.force)
            put(body.angular, angular)
            put(body.linear, linear)
        else:
            reply_above(body, bodies[body.parent], rows, slacks)


@compiled()
def reply_below(body, up, rows, slacks):
    """Pass moment and force on to the body below, see `articulated.eliminate`."""
    moment = read3(body.moment)
    force = read3(body.force)
    if body.slides >= 0:
        row = slacks[body.slides]
        row.left = -dot(row.along, force)
        moment = add_scaled(moment, row.left * row.inverse, row.turning)
        force = add_scaled(force, row.left * row.inverse, row.pushing)
    for d in range(body.first + body.freedom - 1, body.first - 1, -1):
        row = rows[d]
        row.left = -dot(row.axis, moment)
        moment = add_scaled(moment, row.left * row.inverse, row.turning)
        force = add_scaled(force, row.left * row.inverse, row.pushing)
    increase(up.moment, add(moment, cross(body.arm, force)))
    increase(up.force, force)


@compiled()
def reply_above(body, up, rows, slacks):
    """Pass accelerations on to the body above, see `articulated.accelerate`."""
    angular = read3(up.angular)
    linear = add(up.linear, cross(up.angular, body.arm))
    for d in range(body.first, body.first + body.freedom):
        row = rows[d]
        change = row.left - dot(row.turning, angular) - dot(row.pushing, linear)
        angular = add_scaled(angular, change * row.inverse, row.axis)
    if body.slides >= 0:
        row = slacks[body.slides]
        change = row.left - dot(row.turning, angular) - dot(row.pushing, linear)
        linear = add_scaled(linear, change * row.inverse, row.along)
    put(body.angular, angular)
    put(body.linear, linear)
