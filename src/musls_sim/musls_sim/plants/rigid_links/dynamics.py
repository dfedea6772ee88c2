"""Forward dynamics and integration of the tree in one compiled call: what DART does in the air.

The articulated-body algorithm (Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 7): from
the tips to the roots each body's joint is eliminated, axis by axis, and what is left of its inertia
and of the forces on it joins its parent's; from the roots to the tips the accelerations follow.
Joint damping and springs are implicit as in DART's integration: their part of the end of the step
is added to the inertia that a coordinate feels. All vectors are in the world frame, angular parts
first, and a body's own are about its joint. Tests hold the result to DART's.

An inertia about a joint is [[I, H], [H^T, M]], symmetric: twenty-one numbers. They are kept in
single variables, because LLVM keeps those in registers.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.rigid_links.multibody import AXIS_X, AXIS_Y, AXIS_Z, turn_free_body
from musls_sim.plants.rigid_links.rows import (
    OMEGA,
    POSITION,
    add_body_drag,
    add_inputs,
    add_rotors,
    add_soft_ground,
)

# Columns of a row of `articulated`: I (xx xy xz yy yz zz), H by rows, M as I, then the moment and
# the force that are needed if nothing accelerates.
_H, _M, _N, _F = 6, 15, 21, 24
ARTICULATED_COLUMNS = 27

_CELL = np.array(
    [
        [0, 1, 2, 6, 7, 8],
        [1, 3, 4, 9, 10, 11],
        [2, 4, 5, 12, 13, 14],
        [6, 9, 12, 15, 16, 17],
        [7, 10, 13, 16, 18, 19],
        [8, 11, 14, 17, 19, 20],
    ]
)
"""Column of each element of the inertia as a matrix, (6, 6)."""

# Columns of a row of `arms`: the joint's place; from the parent's joint to it; the acceleration of
# its place that the parent's angular velocity makes; then angular and linear acceleration there.
_ARM, _CENTRIPETAL, _ANGULAR, _LINEAR = 3, 6, 9, 12
ARM_COLUMNS = 15

# Columns of a row of `eliminated`, one for each coordinate: inertia times its axis (moment, force);
# what is left of its force; one over the inertia that it feels; acceleration by the rates.
_LEFT, _INVERSE, _RATES = 6, 7, 8
ELIMINATED_COLUMNS = 11


@compiled()
def dynamics_step(t, step_s, gravity):
    """One step of all coordinates, semi-implicit Euler: `next_q` and `next_dq` of the tables."""
    bodies = t.parents.shape[0]
    for k in range(bodies):
        _own_inertia(t, k, gravity)
    for k in range(bodies - 1, -1, -1):
        if t.parents[k] >= 0:
            _eliminate(t, k, step_s)
    for k in range(bodies):
        if t.parents[k] >= 0:
            _accelerate(t, k, step_s)
        else:
            _accelerate_free(t, k, step_s)
    t.next_q[:] = t.q + step_s * t.next_dq
    for k in range(bodies):
        if t.parents[k] < 0:
            turn_free_body(t.q, t.next_dq, t.first[k], step_s, t.next_q)


@compiled()
def _own_inertia(t, k, gravity):
    """A body's inertia about its joint, and what its weight and its turning need there."""
    m, b, joints = t.motion[k], t.masses[k], t.joints[k]
    a, arm = t.articulated[k], t.arms[k]
    jx, jy, jz = joints[21], joints[22], joints[23]
    if t.parents[k] < 0:
        jx = jy = jz = 0.0  # a free body's coordinates are those of its origin
    lx, ly, lz = b[1] - jx, b[2] - jy, b[3] - jz
    cx = m[0] * lx + m[1] * ly + m[2] * lz
    cy = m[3] * lx + m[4] * ly + m[5] * lz
    cz = m[6] * lx + m[7] * ly + m[8] * lz
    for i in range(3):
        arm[i] = m[POSITION + i] + m[3 * i] * jx + m[3 * i + 1] * jy + m[3 * i + 2] * jz
    xx, xy, xz = _turned_row(m, b, 0)
    ixx = xx * m[0] + xy * m[1] + xz * m[2]
    ixy = xx * m[3] + xy * m[4] + xz * m[5]
    ixz = xx * m[6] + xy * m[7] + xz * m[8]
    yx, yy, yz = _turned_row(m, b, 3)
    iyy = yx * m[3] + yy * m[4] + yz * m[5]
    iyz = yx * m[6] + yy * m[7] + yz * m[8]
    zx, zy, zz = _turned_row(m, b, 6)
    izz = zx * m[6] + zy * m[7] + zz * m[8]
    wx, wy, wz = m[OMEGA], m[OMEGA + 1], m[OMEGA + 2]
    hx = ixx * wx + ixy * wy + ixz * wz
    hy = ixy * wx + iyy * wy + iyz * wz
    hz = ixz * wx + iyz * wy + izz * wz
    mass = b[0]
    along = wx * cx + wy * cy + wz * cz
    square = wx * wx + wy * wy + wz * wz
    fx = mass * (along * wx - square * cx)
    fy = mass * (along * wy - square * cy)
    fz = mass * (along * wz - square * cz + gravity)
    a[0], a[1], a[2] = ixx + mass * (cy * cy + cz * cz), ixy - mass * cx * cy, ixz - mass * cx * cz
    a[3], a[4], a[5] = iyy + mass * (cx * cx + cz * cz), iyz - mass * cy * cz, 0.0
    a[5] = izz + mass * (cx * cx + cy * cy)
    a[_H], a[_H + 1], a[_H + 2] = 0.0, -mass * cz, mass * cy
    a[_H + 3], a[_H + 4], a[_H + 5] = mass * cz, 0.0, -mass * cx
    a[_H + 6], a[_H + 7], a[_H + 8] = -mass * cy, mass * cx, 0.0
    a[_M], a[_M + 1], a[_M + 2] = mass, 0.0, 0.0
    a[_M + 3], a[_M + 4], a[_M + 5] = mass, 0.0, mass
    a[_N] = wy * hz - wz * hy + cy * fz - cz * fy
    a[_N + 1] = wz * hx - wx * hz + cz * fx - cx * fz
    a[_N + 2] = wx * hy - wy * hx + cx * fy - cy * fx
    a[_F], a[_F + 1], a[_F + 2] = fx, fy, fz


@compiled()
def _turned_row(m, b, row):
    """A row of the rotation times the inertia in the body's frame."""
    x, y, z = m[row], m[row + 1], m[row + 2]
    return (
        x * b[4] + y * b[7] + z * b[10],
        x * b[5] + y * b[8] + z * b[11],
        x * b[6] + y * b[9] + z * b[12],
    )


@compiled()
def _eliminate(t, k, step_s):
    """Take a body's joint away and add what is left of the body to its parent."""
    a, m, u = t.articulated[k], t.motion[k], t.parents[k]
    i0, i1, i2, i3, i4, i5 = a[0], a[1], a[2], a[3], a[4], a[5]
    h0, h1, h2, h3, h4, h5, h6, h7, h8 = (
        a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
    )  # fmt: skip
    m0, m1, m2, m3, m4, m5 = a[15], a[16], a[17], a[18], a[19], a[20]
    nx, ny, nz, fx, fy, fz = a[21], a[22], a[23], a[24], a[25], a[26]
    wx, wy, wz = m[OMEGA], m[OMEGA + 1], m[OMEGA + 2]
    last = t.first[k + 1] - 1
    for d in range(last, t.first[k] - 1, -1):
        at = AXIS_Z if d == last else (AXIS_Y if d == last - 1 else AXIS_X)
        x, y, z, rate, e = m[at], m[at + 1], m[at + 2], t.dq[d], t.eliminated[d]
        rx, ry, rz = rate * x, rate * y, rate * z
        wx, wy, wz = wx - rx, wy - ry, wz - rz  # before the joint's axis turns
        bx, by, bz = wy * rz - wz * ry, wz * rx - wx * rz, wx * ry - wy * rx
        ux, uy, uz = i0 * x + i1 * y + i2 * z, i1 * x + i3 * y + i4 * z, i2 * x + i4 * y + i5 * z
        vx, vy, vz = h0 * x + h3 * y + h6 * z, h1 * x + h4 * y + h7 * z, h2 * x + h5 * y + h8 * z
        implicit = step_s * (t.damping[d] + step_s * t.stiffness[d])
        inverse = 1.0 / (x * ux + y * uy + z * uz + implicit)
        spring = t.stiffness[d] * (t.q[d] + step_s * rate - t.rest[d])
        left = t.tau[d] - t.damping[d] * rate - spring - (x * nx + y * ny + z * nz)
        e[0], e[1], e[2], e[3], e[4], e[5] = ux, uy, uz, vx, vy, vz
        e[_LEFT], e[_INVERSE], e[_RATES], e[_RATES + 1], e[_RATES + 2] = left, inverse, bx, by, bz
        px, py, pz = ux * inverse, uy * inverse, uz * inverse
        qx, qy, qz = vx * inverse, vy * inverse, vz * inverse
        i0, i1, i2 = i0 - px * ux, i1 - px * uy, i2 - px * uz
        i3, i4, i5 = i3 - py * uy, i4 - py * uz, i5 - pz * uz
        h0, h1, h2 = h0 - px * vx, h1 - px * vy, h2 - px * vz
        h3, h4, h5 = h3 - py * vx, h4 - py * vy, h5 - py * vz
        h6, h7, h8 = h6 - pz * vx, h7 - pz * vy, h8 - pz * vz
        m0, m1, m2 = m0 - qx * vx, m1 - qx * vy, m2 - qx * vz
        m3, m4, m5 = m3 - qy * vy, m4 - qy * vz, m5 - qz * vz
        nx += i0 * bx + i1 * by + i2 * bz + px * left
        ny += i1 * bx + i3 * by + i4 * bz + py * left
        nz += i2 * bx + i4 * by + i5 * bz + pz * left
        fx += h0 * bx + h3 * by + h6 * bz + qx * left
        fy += h1 * bx + h4 * by + h7 * bz + qy * left
        fz += h2 * bx + h5 * by + h8 * bz + qz * left
    arm, up, into = t.arms[k], t.arms[u], t.articulated[u]
    x, y, z = arm[0] - up[0], arm[1] - up[1], arm[2] - up[2]
    along, square = wx * x + wy * y + wz * z, wx * wx + wy * wy + wz * wz
    bx, by, bz = along * wx - square * x, along * wy - square * y, along * wz - square * z
    arm[_ARM], arm[_ARM + 1], arm[_ARM + 2] = x, y, z
    arm[_CENTRIPETAL], arm[_CENTRIPETAL + 1], arm[_CENTRIPETAL + 2] = bx, by, bz
    fx += m0 * bx + m1 * by + m2 * bz
    fy += m1 * bx + m3 * by + m4 * bz
    fz += m2 * bx + m4 * by + m5 * bz
    into[21] += nx + h0 * bx + h1 * by + h2 * bz + y * fz - z * fy
    into[22] += ny + h3 * bx + h4 * by + h5 * bz + z * fx - x * fz
    into[23] += nz + h6 * bx + h7 * by + h8 * bz + x * fy - y * fx
    into[24] += fx
    into[25] += fy
    into[26] += fz
    # About the parent's joint: H' = H + [r] M and I' = I - H [r] + [r] H'^T.
    g0, g1, g2 = h0 - z * m1 + y * m2, h1 - z * m3 + y * m4, h2 - z * m4 + y * m5
    g3, g4, g5 = h3 + z * m0 - x * m2, h4 + z * m1 - x * m4, h5 + z * m2 - x * m5
    g6, g7, g8 = h6 - y * m0 + x * m1, h7 - y * m1 + x * m3, h8 - y * m2 + x * m4
    into[0] += i0 - (h1 * z - h2 * y) - z * g1 + y * g2
    into[1] += i1 - (h2 * x - h0 * z) - z * g4 + y * g5
    into[2] += i2 - (h0 * y - h1 * x) - z * g7 + y * g8
    into[3] += i3 - (h5 * x - h3 * z) + z * g3 - x * g5
    into[4] += i4 - (h3 * y - h4 * x) + z * g6 - x * g8
    into[5] += i5 - (h6 * y - h7 * x) - y * g6 + x * g7
    into[6] += g0
    into[7] += g1
    into[8] += g2
    into[9] += g3
    into[10] += g4
    into[11] += g5
    into[12] += g6
    into[13] += g7
    into[14] += g8
    into[15] += m0
    into[16] += m1
    into[17] += m2
    into[18] += m3
    into[19] += m4
    into[20] += m5


@compiled()
def _accelerate_free(t, k, step_s):
    """Acceleration of a body that nothing holds: six equations by Cholesky's factors."""
    a, c, x, first = t.articulated[k], t.solved, t.solved[6], t.first[k]
    for i in range(6):
        x[i] = t.tau[first + i] - a[_N + i]
        for j in range(i + 1):
            rest = a[_CELL[i, j]]
            for n in range(j):
                rest -= c[i, n] * c[j, n]
            c[i, j] = np.sqrt(rest) if i == j else rest / c[j, j]
        for n in range(i):
            x[i] -= c[i, n] * x[n]
        x[i] /= c[i, i]
    for i in range(5, -1, -1):
        for n in range(i + 1, 6):
            x[i] -= c[n, i] * x[n]
        x[i] /= c[i, i]
        t.arms[k, _ANGULAR + i] = x[i]
        t.next_dq[first + i] = t.dq[first + i] + step_s * x[i]


@compiled()
def _accelerate(t, k, step_s):
    """Acceleration of a body and of its joint's angles from its parent's."""
    arm, up = t.arms[k], t.arms[t.parents[k]]
    ax, ay, az = up[_ANGULAR], up[_ANGULAR + 1], up[_ANGULAR + 2]
    x, y, z = arm[_ARM], arm[_ARM + 1], arm[_ARM + 2]
    lx = up[_LINEAR] + arm[_CENTRIPETAL] + ay * z - az * y
    ly = up[_LINEAR + 1] + arm[_CENTRIPETAL + 1] + az * x - ax * z
    lz = up[_LINEAR + 2] + arm[_CENTRIPETAL + 2] + ax * y - ay * x
    last = t.first[k + 1] - 1
    for d in range(t.first[k], last + 1):
        at = AXIS_Z if d == last else (AXIS_Y if d == last - 1 else AXIS_X)
        e, m = t.eliminated[d], t.motion[k]
        ax, ay, az = ax + e[_RATES], ay + e[_RATES + 1], az + e[_RATES + 2]
        held = e[0] * ax + e[1] * ay + e[2] * az + e[3] * lx + e[4] * ly + e[5] * lz
        change = (e[_LEFT] - held) * e[_INVERSE]
        ax, ay, az = ax + change * m[at], ay + change * m[at + 1], az + change * m[at + 2]
        t.next_dq[d] = t.dq[d] + step_s * change
    arm[_ANGULAR], arm[_ANGULAR + 1], arm[_ANGULAR + 2] = ax, ay, az
    arm[_LINEAR], arm[_LINEAR + 1], arm[_LINEAR + 2] = lx, ly, lz


# ---------- Forces from outside, as generalised forces
#
# Rotors push at their hubs, air drags on rotors and bodies, the ground holds up the cables. The
# wrenches are summed from the tips of the tree to its root, which gives the generalised force of
# every coordinate (transpose of the Jacobian) in O(n); DART then takes all in one binding call.


@compiled()
def generalised_forces(t, wind, wrench_body, wrench_enu, ground):
    """Sum all outside wrenches into generalised forces."""
    motion, first, joints, wrench, tau = t.motion, t.first, t.joints, t.wrench, t.tau
    wrench[:] = 0.0
    total = 0.0
    # Rows are cut out of the tables where it must be: each cut costs as much as ten operations.
    for k in range(t.parents.shape[0] - 1, 0, -1):
        i = t.drone_of[k]
        if i >= 0:
            m, w = motion[k], wrench[k]
            add_rotors(m, t.speed[i], t.rotors[i], wind, w)
            add_body_drag(m, t.drag[1 + i], wind, w)
            add_inputs(m, wrench_body[1 + i], wrench_enu[1 + i], w)
        elif motion[k, POSITION + 2] < ground:
            add_soft_ground(motion[k], ground, t.link_length[k], wrench[k])
        u = t.parents[k]
        if u < 0:  # first body of a loose piece
            total += _on_free_body(wrench[k], tau, first[k])
            continue
        fx, fy, fz = wrench[k, 0], wrench[k, 1], wrench[k, 2]
        # Moment about the joint: it sits at joints[k, 21:24] in the body's frame.
        cx, cy, cz = joints[k, 21], joints[k, 22], joints[k, 23]
        jx = motion[k, 0] * cx + motion[k, 1] * cy + motion[k, 2] * cz
        jy = motion[k, 3] * cx + motion[k, 4] * cy + motion[k, 5] * cz
        jz = motion[k, 6] * cx + motion[k, 7] * cy + motion[k, 8] * cz
        nx = wrench[k, 3] - (jy * fz - jz * fy)
        ny = wrench[k, 4] - (jz * fx - jx * fz)
        nz = wrench[k, 5] - (jx * fy - jy * fx)
        d = first[k + 1] - 1
        tau[d] = _along(motion, k, AXIS_Z, nx, ny, nz)
        tau[d - 1] = _along(motion, k, AXIS_Y, nx, ny, nz)
        if d - 2 == first[k]:
            tau[d - 2] = _along(motion, k, AXIS_X, nx, ny, nz)
        ax = motion[k, POSITION] + jx - motion[u, POSITION]
        ay = motion[k, POSITION + 1] + jy - motion[u, POSITION + 1]
        az = motion[k, POSITION + 2] + jz - motion[u, POSITION + 2]
        wrench[u, 0] += fx
        wrench[u, 1] += fy
        wrench[u, 2] += fz
        wrench[u, 3] += nx + ay * fz - az * fy
        wrench[u, 4] += ny + az * fx - ax * fz
        wrench[u, 5] += nz + ax * fy - ay * fx
    add_body_drag(motion[0], t.drag[0], wind, wrench[0])
    add_inputs(motion[0], wrench_body[0], wrench_enu[0], wrench[0])
    return np.isfinite(total + _on_free_body(wrench[0], tau, 0))


@compiled()
def _on_free_body(wrench, tau, first):
    """Generalised force of a body without a joint; returns the sum of its six numbers."""
    total = 0.0
    for i in range(3):
        tau[first + i] = wrench[3 + i]
        tau[first + 3 + i] = wrench[i]
        total += wrench[i] + wrench[3 + i]
    return total


@compiled()
def _along(motion, k, axis, x, y, z):
    """Part of a moment along an axis of body k's joint."""
    return motion[k, axis] * x + motion[k, axis + 1] * y + motion[k, axis + 2] * z


# ---------- Forces in the cables, from accelerations or from DART's joints


@compiled()
def _turned(motion, body, axis, rate, change, w, a):
    """Angular velocity w and acceleration a beyond a joint axis, from those before it."""
    x, y, z = motion[body, axis], motion[body, axis + 1], motion[body, axis + 2]
    rx, ry, rz = rate * x, rate * y, rate * z
    beyond = (
        a[0] + (change * x + w[1] * rz - w[2] * ry),
        a[1] + (change * y + w[2] * rx - w[0] * rz),
        a[2] + (change * z + w[0] * ry - w[1] * rx),
    )
    return (w[0] + rx, w[1] + ry, w[2] + rz), beyond


@compiled()
def _at_end(x, y, z, w, a, start):
    """Acceleration of the end of the arm (x, y, z) that turns with w and a about its start."""
    ux, uy, uz = w[1] * z - w[2] * y, w[2] * x - w[0] * z, w[0] * y - w[1] * x
    return (
        start[0] + (a[1] * z - a[2] * y + w[1] * uz - w[2] * uy),
        start[1] + (a[2] * x - a[0] * z + w[2] * ux - w[0] * uz),
        start[2] + (a[0] * y - a[1] * x + w[0] * uy - w[1] * ux),
    )


@compiled()
def cable_forces(t, before, after, step_s, gravity):
    """Forces at both ends of all cables in a step, by Newton's law for what is beyond them.

    What the cable below a body exerts on it and all beyond it is their mass times acceleration less
    their weight and the outside forces. Holds if nothing beyond touches the ground (see
    `cable_forces_from_joints`).
    """
    for i in range(t.first_links.shape[0]):
        _forces_of_cable(t, i, before, after, step_s, gravity)


@compiled()
def _forces_of_cable(t, i, before, after, step_s, gravity):
    """See `cable_forces`. Three numbers at a time and no arrays of three, which cost more."""
    motion, joints, first = t.motion, t.joints, t.first
    w = motion[0, OMEGA], motion[0, OMEGA + 1], motion[0, OMEGA + 2]
    a, origin = _rates(before, after, step_s, 0), _rates(before, after, step_s, 3)
    total_x = total_y = total_z = 0.0
    up, drone, loose = 0, t.selected[1 + i], False
    for body in range(t.first_links[i], drone + 1):
        if t.parents[body] < 0:  # from here on a piece of its own: nothing below carries it
            loose, d = True, first[body]
            w = motion[body, OMEGA], motion[body, OMEGA + 1], motion[body, OMEGA + 2]
            a = _rates(before, after, step_s, d)
            origin = _rates(before, after, step_s, d + 3)
            x, y, z = _of_centre(t, body, w, a, origin, gravity)
            if body == drone:
                x, y, z = t.wrench[body, 0], t.wrench[body, 1], t.wrench[body, 2]
                _note(t, i, 1, drone - 1, x, y, z, drone)
            up = body
            continue
        cx, cy, cz = joints[body, 21], joints[body, 22], joints[body, 23]
        jx = motion[body, 0] * cx + motion[body, 1] * cy + motion[body, 2] * cz
        jy = motion[body, 3] * cx + motion[body, 4] * cy + motion[body, 5] * cz
        jz = motion[body, 6] * cx + motion[body, 7] * cy + motion[body, 8] * cz
        origin = _at_end(
            motion[body, POSITION] + jx - motion[up, POSITION],
            motion[body, POSITION + 1] + jy - motion[up, POSITION + 1],
            motion[body, POSITION + 2] + jz - motion[up, POSITION + 2],
            w,
            a,
            origin,
        )
        z_axis = first[body + 1] - 1
        if z_axis - first[body] == 2:
            d = z_axis - 2
            w, a = _turned(motion, body, AXIS_X, before[d], (after[d] - before[d]) / step_s, w, a)
        d = z_axis - 1
        w, a = _turned(motion, body, AXIS_Y, before[d], (after[d] - before[d]) / step_s, w, a)
        d = z_axis
        w, a = _turned(motion, body, AXIS_Z, before[d], (after[d] - before[d]) / step_s, w, a)
        origin = _at_end(-jx, -jy, -jz, w, a, origin)
        x, y, z = _of_centre(t, body, w, a, origin, gravity)
        if not loose:
            total_x += x
            total_y += y
            total_z += z
        if body == drone:
            _note(t, i, 1, drone - 1, x, y, z, drone)
        up = body
    body = t.first_links[i]
    if t.parents[body] < 0:
        total_x, total_y, total_z = t.wrench[body, 0], t.wrench[body, 1], t.wrench[body, 2]
    _note(t, i, 0, body, total_x, total_y, total_z, body)


@compiled()
def _rates(before, after, step_s, first):
    """Mean acceleration of three coordinates from the first on."""
    return (
        (after[first] - before[first]) / step_s,
        (after[first + 1] - before[first + 1]) / step_s,
        (after[first + 2] - before[first + 2]) / step_s,
    )


@compiled()
def _of_centre(t, body, w, a, origin, gravity):
    """Force on a body: mass times acceleration of its centre, less its weight [N]."""
    motion, masses = t.motion, t.masses
    mass, cx, cy, cz = masses[body, 0], masses[body, 1], masses[body, 2], masses[body, 3]
    x, y, z = _at_end(
        motion[body, 0] * cx + motion[body, 1] * cy + motion[body, 2] * cz,
        motion[body, 3] * cx + motion[body, 4] * cy + motion[body, 5] * cz,
        motion[body, 6] * cx + motion[body, 7] * cy + motion[body, 8] * cz,
        w,
        a,
        origin,
    )
    return mass * x, mass * y, mass * (z + gravity)


@compiled()
def _note(t, i, end, link, x, y, z, body):
    """Write the force of an end in the frame of its link; it pulls backwards with the tension."""
    x, y, z = x - t.wrench[body, 0], y - t.wrench[body, 1], z - t.wrench[body, 2]
    m = t.motion
    for k in range(3):
        t.cable_force[i, end, k] = -(m[link, k] * x + m[link, 3 + k] * y + m[link, 6 + k] * z)
    t.peak[i] = max(t.peak[i], t.cable_force[i, end, 0])


@compiled()
def cable_forces_from_joints(t):
    """The same from the forces that DART's joints transmit, contacts with the ground included.

    DART sees the outside forces as torques in the joints above, so what it reports as transmitted
    by a joint still holds the outside force on everything beyond that joint: it is taken off here.
    """
    for i in range(t.first_links.shape[0]):
        drone = t.selected[1 + i]
        for end in range(2):
            body = drone if end else t.first_links[i]
            m, f = t.motion[body], t.end_wrench[i, end]
            x = m[0] * f[3] + m[1] * f[4] + m[2] * f[5]
            y = m[3] * f[3] + m[4] * f[4] + m[5] * f[5]
            z = m[6] * f[3] + m[7] * f[4] + m[8] * f[5]
            if t.parents[body] < 0:  # nothing carries a loose end
                x, y, z = t.wrench[body, 0], t.wrench[body, 1], t.wrench[body, 2]
            _note(t, i, end, drone - 1 if end else body, x, y, z, body)
