"""The force of every drone, in one compiled call a period.

The load's wrench (`load_law`) is shared out to the cables (`allocation`): mu_k is the force that
cable k is to pull the load with, against q_k, the direction from drone to load. It can pull along
its present direction only, so the drone pulls with the part of mu_k along q_k and turns the cable
to q_kd = -mu_k / |mu_k| (eq. 71 to 73 of RotorTM; T. Lee, "Geometric control of quadrotor UAVs
transporting a cable-suspended rigid body", IEEE TCST 2018):

    u_along  = q q^T mu + m l |q'|^2 q + m q q^T a
    u_across = m l q x (-k_q e_q - k_w e_w - (q . w_d) q' - q x (q x w_d')) - m q x (q x a)

with e_q = q_d x q, e_w = w + q x (q x w_d), w = q x q', w_d = q_d x q_d' and a the acceleration of
the load's attachment with gravity added. Authors' code sets w_d and w_d' to zero. Here they are the
derivatives of mu, for which the load's wrench is differentiated twice; the acceleration of the load
is the one that the parts of mu along the cables give.
"""

from __future__ import annotations

from musls_control.payload.allocation import share_out, spread_out, spread_rate
from musls_control.payload.load_law import (
    AHEAD,
    GRAVITY,
    MASS,
    SPIN,
    attitude_reference,
    demand,
    feedback,
    integrate,
    load_errors,
    moment_of,
)
from musls_description.compiled import compiled
from musls_description.compiled_memory import scratch
from musls_description.vectors import (
    body_axes_in_world,
    cross,
    dot,
    put,
    rotate,
    unit,
    unit_rates,
    write_matrix,
)

# Columns of a cable's table; 0 to 2 attachment on the load (about its centre of mass), 3 to 5 on
# the drone.
DRONE_MASS, DIRECTION_GAIN, DIRECTION_RATE_GAIN, LEAST_TENSION, CABLE_COLUMNS = range(6, 11)

# Rows of the memory that a call writes, (rows, n, 3). The first three hold a value and its first
# two derivatives.
BODY, PULL, ALONG, CABLE, CABLE_RATE, LENGTH = 0, 3, 6, 8, 9, 10
FORCE, LEAN, MEMORY_ROWS = range(11, 14)


@compiled()
def payload_forces(
    estimate, reference, table, inertias, gains, cables, shares, null, places, room, ahead,
    integral, memory,
):  # fmt: skip
    """Compute the forces of all drones."""
    r, r_d, rate_d = scratch(3, 3), scratch(3, 3), scratch(4, 3)
    errors, motion, wrench = scratch(8, 3), scratch(4, 3), scratch(1, 6)[0]
    attitude, vectors, forces, turning = (
        scratch(1, 4)[0],
        scratch(3, 3),
        scratch(3, 3),
        scratch(3, 3),
    )
    motion[:] = 0.0
    forces[:] = 0.0
    turning[:] = 0.0
    row = estimate[0]
    write_matrix(r, body_axes_in_world(row[6:10]))
    attitude_reference(reference, attitude, rate_d)
    write_matrix(r_d, body_axes_in_world(attitude))
    load_errors(row, reference, r, r_d, rate_d, errors)
    added, free, wanted = vectors[0], vectors[1], vectors[2]
    feedback(table, gains, errors, integral, added, free)
    cable_directions(estimate, r, cables, memory)
    w = row[10:13]
    memory[PULL + 1 : PULL + 3] = 0.0
    kept, count = True, places.shape[0]
    gradients, binding = room[:, :-1], room[:, -1]
    turning[0] = w
    for k in range(3):
        turning[0, k] += (1.0 - ahead[2]) * errors[SPIN, k]
    for order in range(3 if ahead[0] > 0.0 else 1):
        for k in range(3):
            turning[1, k] = ahead[2] * motion[2, k] + (1.0 - ahead[2]) * errors[AHEAD, k]
        demand(
            order, table, gains, errors, integral, reference, added, free, ahead[1:3], motion,
            wrench, wanted,
        )  # fmt: skip
        moment_of(inertias[0], w, motion[2], wanted, motion[3], order, wrench[3:6])
        into_body(r, turning[0], turning[1], forces, wrench, order)
        if count == 0:
            share_out(shares, wrench, order, memory[BODY + order])
        elif order == 0:
            kept = spread_out(
                shares, null, places, cables[:, LEAST_TENSION], r[2], wrench, memory[BODY],
                gradients, binding,
            )  # fmt: skip
        else:
            spread_rate(shares, null, wrench, order, gradients, binding, memory[BODY + order])
        into_world(r, turning[0], turning[1], memory, order)
        if order == 0:
            # What the drones are to follow; the yaw they cannot: over before they have turned.
            turning[2, :2], turning[2, 2] = wanted[:2], errors[AHEAD, 2]
        if order < 2:
            pull_along(cables, memory, order)
            load_motion(table, inertias, cables, r, w, memory, motion, order)
    integrate(table, gains, errors, free, integral)
    motion[0, 2] += table[GRAVITY]
    if ahead[2] == 0.0:
        # With the acceleration that the forces give a small load, fast and late, drones drive it.
        motion[2] = turning[2]
    for i in range(cables.shape[0]):
        cable_force(cables[i], r, w, motion, memory, i)
    return kept


@compiled()
def cable_directions(estimate, r, cables, memory):
    """Write direction from drone to load, its derivative and the distance of each cable's ends."""
    r_i = scratch(3, 3)
    load = estimate[0]
    for i in range(cables.shape[0]):
        drone, c = estimate[1 + i], cables[i]
        write_matrix(r_i, body_axes_in_world(drone[6:10]))
        arm, hook = rotate(r, c[0:3]), rotate(r_i, c[3:6])
        spin = rotate(r, cross(load[10:13], c))
        swing = rotate(r_i, cross(drone[10:13], c[3:6]))
        direction, length = unit(
            (
                load[0] + arm[0] - drone[0] - hook[0],
                load[1] + arm[1] - drone[1] - hook[1],
                load[2] + arm[2] - drone[2] - hook[2],
            )
        )
        v = (
            load[3] + spin[0] - drone[3] - swing[0],
            load[4] + spin[1] - drone[4] - swing[1],
            load[5] + spin[2] - drone[5] - swing[2],
        )
        along = dot(direction, v)
        q, rate = memory[CABLE, i], memory[CABLE_RATE, i]
        put(q, direction)
        for k in range(3):
            rate[k] = (v[k] - along * q[k]) / max(length, 1e-6)
        memory[LENGTH, i, 0] = length


@compiled()
def into_body(r, w, alpha, forces, wrench, order):
    """Turn a force, or a derivative of it, into the load's frame, which turns itself."""
    x, y, z = wrench[0], wrench[1], wrench[2]
    f = forces[order]
    for k in range(3):
        f[k] = r[0, k] * x + r[1, k] * y + r[2, k] * z
    if order == 1:
        g = forces[0]
        a = cross(w, g)
        f[0], f[1], f[2] = f[0] - a[0], f[1] - a[1], f[2] - a[2]
    elif order == 2:  # f'' = R^T F'' - 2 w x f' - w x (w x f) - alpha x f
        g, g1 = forces[0], forces[1]
        inner = cross(w, g)
        a = cross(w, inner)
        b = cross(alpha, g)
        c = cross(w, g1)
        for k in range(3):
            f[k] -= a[k] + b[k] + 2.0 * c[k]
    wrench[0], wrench[1], wrench[2] = f[0], f[1], f[2]


@compiled()
def into_world(r, w, alpha, memory, order):
    """Turn the cables' forces, or a derivative of them, from the load's frame into the world."""
    for i in range(memory.shape[1]):
        b = memory[BODY + order, i]
        x, y, z = b[0], b[1], b[2]
        if order > 0:
            g = memory[BODY, i]
            inner = cross(w, g)
            if order == 1:
                x, y, z = x + inner[0], y + inner[1], z + inner[2]
            else:
                g1 = memory[BODY + 1, i]
                a = cross(w, inner)
                d = cross(alpha, g)
                c = cross(w, g1)
                x += a[0] + d[0] + 2.0 * c[0]
                y += a[1] + d[1] + 2.0 * c[1]
                z += a[2] + d[2] + 2.0 * c[2]
        out = memory[PULL + order, i]
        for k in range(3):
            out[k] = r[k, 0] * x + r[k, 1] * y + r[k, 2] * z


@compiled()
def pull_along(cables, memory, order):
    """Write the part of each cable's force that acts along it now, q q^T mu, or its derivative."""
    for i in range(cables.shape[0]):
        q, rate, out = memory[CABLE, i], memory[CABLE_RATE, i], memory[ALONG + order, i]
        mu, mu1 = memory[PULL, i], memory[PULL + 1, i]
        size = q[0] * mu[0] + q[1] * mu[1] + q[2] * mu[2]
        growth = 0.0
        if order == 1:
            growth = q[0] * mu1[0] + q[1] * mu1[1] + q[2] * mu1[2]
            growth += rate[0] * mu[0] + rate[1] * mu[1] + rate[2] * mu[2]
        if size > -cables[i, LEAST_TENSION]:
            size, growth = -cables[i, LEAST_TENSION], 0.0
        for k in range(3):
            out[k] = size * q[k] if order == 0 else growth * q[k] + size * rate[k]


@compiled()
def load_motion(table, inertias, cables, r, w, memory, motion, order):
    """Write the acceleration that the cables' forces give the load, or its derivative."""
    linear, angular = motion[order], motion[2 + order]
    linear[:] = 0.0
    angular[:] = 0.0
    for i in range(cables.shape[0]):
        f, f0, arm = memory[ALONG + order, i], memory[ALONG, i], cables[i, 0:3]
        x = r[0, 0] * f[0] + r[1, 0] * f[1] + r[2, 0] * f[2]
        y = r[0, 1] * f[0] + r[1, 1] * f[1] + r[2, 1] * f[2]
        z = r[0, 2] * f[0] + r[1, 2] * f[1] + r[2, 2] * f[2]
        if order == 1:
            x0 = r[0, 0] * f0[0] + r[1, 0] * f0[1] + r[2, 0] * f0[2]
            y0 = r[0, 1] * f0[0] + r[1, 1] * f0[1] + r[2, 1] * f0[2]
            z0 = r[0, 2] * f0[0] + r[1, 2] * f0[1] + r[2, 2] * f0[2]
            t = cross(w, (x0, y0, z0))
            x, y, z = x - t[0], y - t[1], z - t[2]
        m = cross(arm, (x, y, z))
        for k in range(3):
            linear[k] += f[k] / table[MASS]
            angular[k] += m[k]
    jw = rotate(inertias[0], w)
    if order == 0:
        turning = cross(w, jw)
        linear[2] -= table[GRAVITY]
    else:
        alpha = motion[2]
        ja = rotate(inertias[0], alpha)
        one = cross(alpha, jw)
        two = cross(w, ja)
        turning = (one[0] + two[0], one[1] + two[1], one[2] + two[2])
    for k in range(3):
        angular[k] -= turning[k]
    angular[0], angular[1], angular[2] = rotate(inertias[1], angular)


@compiled()
def cable_force(cable, r, w, motion, memory, i):
    """Write the force of drone i, see the module's text."""
    q, rate, along = memory[CABLE, i], memory[CABLE_RATE, i], memory[ALONG, i]
    inner = cross(w, cable)
    fast = cross(w, inner)
    slow = cross(motion[2], cable)
    px, py, pz = rotate(r, (fast[0] + slow[0], fast[1] + slow[1], fast[2] + slow[2]))
    a = (motion[0, 0] + px, motion[0, 1] + py, motion[0, 2] + pz)
    mu, mu1, mu2 = memory[PULL, i], memory[PULL + 1, i], memory[PULL + 2, i]
    d, d1, d2 = unit_rates(
        (-mu[0], -mu[1], -mu[2]), (-mu1[0], -mu1[1], -mu1[2]), (-mu2[0], -mu2[1], -mu2[2])
    )
    omega = cross(q, rate)
    omega_d = cross(d, d1)
    alpha_d = cross(d, d2)
    error = cross(d, q)
    spin = q[0] * omega_d[0] + q[1] * omega_d[1] + q[2] * omega_d[2]
    lift = q[0] * alpha_d[0] + q[1] * alpha_d[1] + q[2] * alpha_d[2]
    wanted = scratch(1, 3)[0]
    for k in range(3):  # q x (q x v) = (q . v) q - v
        rate_error = omega[k] + spin * q[k] - omega_d[k]
        wanted[k] = -cable[DIRECTION_GAIN] * error[k] - cable[DIRECTION_RATE_GAIN] * rate_error
        wanted[k] += -spin * rate[k] - (lift * q[k] - alpha_d[k])
    across = cross(q, wanted)
    square = rate[0] ** 2 + rate[1] ** 2 + rate[2] ** 2
    m, length = cable[DRONE_MASS], memory[LENGTH, i, 0]
    out = memory[FORCE, i]
    for k in range(3):  # the parts of m a along and across the cable are m a
        out[k] = along[k] + m * (a[k] + length * (square * q[k] + across[k]))
