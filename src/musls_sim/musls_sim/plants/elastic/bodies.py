"""Rigid bodies within a stage: motion, points on them, momentum balance, wrenches of the air."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.elastic.state import (
    B_CONTACT_DAMPING,
    B_CONTACT_STIFFNESS,
    B_DRAG,
    B_DRONE,
    B_INERTIA,
    B_INVERSE,
    B_MASS,
    B_RADIUS,
    BA,
    BAG,
    BAS,
    BL,
    BLK,
    BLS,
    BR,
    BREF,
    BTAU,
    BTAUG,
    BTAUS,
    BV,
    BVG,
    BVK,
    BVS,
    BW,
    BWS,
    BX,
    BXK,
    BXS,
    C_ACTIVE,
    C_ANCHOR,
    C_FORCE,
    C_PLACE,
    C_TOUCHED,
    C_TRIAL,
    EXTERNAL,
    IW,
    PSD,
    PSDG,
    PSI,
    PSIK,
    RIGHT,
    SCRATCH,
)
from musls_sim.plants.rigid_links.rows import (
    OMEGA,
    POSITION,
    ROTATION,
    VELOCITY,
    add_body_drag,
    add_inputs,
    add_rotors,
)

# ---------- Rotation vectors in compiled code: exponential, its tangent, products with 3x3 tables.


@compiled()
def rotation_of(p, out):
    """Rotation matrix, row by row, of a rotation vector."""
    x, y, z = p[0], p[1], p[2]
    angle2 = x * x + y * y + z * z
    if angle2 > 1e-8:
        angle = np.sqrt(angle2)
        s, c = np.sin(angle) / angle, (1.0 - np.cos(angle)) / angle2
    else:
        s, c = 1.0 - angle2 / 6.0, 0.5 - angle2 / 24.0
    out[0] = 1.0 - c * (y * y + z * z)
    out[1] = c * x * y - s * z
    out[2] = c * x * z + s * y
    out[3] = c * x * y + s * z
    out[4] = 1.0 - c * (x * x + z * z)
    out[5] = c * y * z - s * x
    out[6] = c * x * z - s * y
    out[7] = c * y * z + s * x
    out[8] = 1.0 - c * (x * x + y * y)


@compiled()
def angular_velocity(p, rate, out):
    """Angular velocity (world) of exp(p) while the rotation vector p changes at a rate.

    omega = (I + (1 - cos a) / a^2 [p] + (a - sin a) / a^3 [p]^2) p', a = |p|.
    """
    x, y, z = p[0], p[1], p[2]
    angle2 = x * x + y * y + z * z
    if angle2 > 1e-4:
        angle = np.sqrt(angle2)
        b = (1.0 - np.cos(angle)) / angle2
        c = (angle - np.sin(angle)) / (angle2 * angle)
    else:
        b = 0.5 - angle2 / 24.0 + angle2 * angle2 / 720.0
        c = 1.0 / 6.0 - angle2 / 120.0 + angle2 * angle2 / 5040.0
    ux = y * rate[2] - z * rate[1]
    uy = z * rate[0] - x * rate[2]
    uz = x * rate[1] - y * rate[0]
    out[0] = rate[0] + b * ux + c * (y * uz - z * uy)
    out[1] = rate[1] + b * uy + c * (z * ux - x * uz)
    out[2] = rate[2] + b * uz + c * (x * uy - y * ux)


@compiled()
def multiply(a, b, out):
    """Product of two 3x3 tables given row by row, (9,) each; `out` is neither of them."""
    for i in range(3):
        for j in range(3):
            out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j]


@compiled()
def turn(r, v, out):
    """Product of a 3x3 table given row by row and a vector."""
    x, y, z = v[0], v[1], v[2]
    out[0] = r[0] * x + r[1] * y + r[2] * z
    out[1] = r[3] * x + r[4] * y + r[5] * z
    out[2] = r[6] * x + r[7] * y + r[8] * z


@compiled()
def turn_back(r, v, out):
    """Product of a transposed 3x3 table given row by row and a vector."""
    x, y, z = v[0], v[1], v[2]
    out[0] = r[0] * x + r[3] * y + r[6] * z
    out[1] = r[1] * x + r[4] * y + r[7] * z
    out[2] = r[2] * x + r[5] * y + r[8] * z


@compiled()
def similar(r, inertia, out):
    """Inertia of a turned body, R J R^T, all (9,)."""
    for i in range(3):
        a = r[3 * i] * inertia[0] + r[3 * i + 1] * inertia[3] + r[3 * i + 2] * inertia[6]
        b = r[3 * i] * inertia[1] + r[3 * i + 1] * inertia[4] + r[3 * i + 2] * inertia[7]
        c = r[3 * i] * inertia[2] + r[3 * i + 1] * inertia[5] + r[3 * i + 2] * inertia[8]
        for j in range(3):
            out[3 * i + j] = a * r[3 * j] + b * r[3 * j + 1] + c * r[3 * j + 2]


@compiled()
def orthonormalise(r):
    """Remove rounding from a rotation matrix, in place: one step of R (3 I - R^T R) / 2."""
    xx = r[0] * r[0] + r[3] * r[3] + r[6] * r[6]
    xy = r[0] * r[1] + r[3] * r[4] + r[6] * r[7]
    xz = r[0] * r[2] + r[3] * r[5] + r[6] * r[8]
    yy = r[1] * r[1] + r[4] * r[4] + r[7] * r[7]
    yz = r[1] * r[2] + r[4] * r[5] + r[7] * r[8]
    zz = r[2] * r[2] + r[5] * r[5] + r[8] * r[8]
    for i in range(3):
        x, y, z = r[3 * i], r[3 * i + 1], r[3 * i + 2]
        r[3 * i] = 1.5 * x - 0.5 * (x * xx + y * xy + z * xz)
        r[3 * i + 1] = 1.5 * y - 0.5 * (x * xy + y * yy + z * yz)
        r[3 * i + 2] = 1.5 * z - 0.5 * (x * xz + y * yz + z * zz)


@compiled()
def know(p, first, h, w):
    """What a stage knows: x_K, v_K, rotation and angular momentum."""
    for k in range(3):
        if first:
            p[BXK + k] = p[BX + k] + h * p[BV + k]
            p[BVK + k] = p[BV + k] + h * p[BA + k]
            p[BAS + k] = p[BA + k]
            p[PSIK + k] = h * p[BW + k]
            p[BLK + k] = p[BL + k] + h * p[BTAU + k]
        else:
            p[BXK + k] = p[BX + k] + h * (p[BV + k] + p[BVG + k])
            p[BVK + k] = p[BV + k] + h * (p[BA + k] + p[BAG + k])
            p[BAS + k] = p[BAG + k] + w * (p[BAG + k] - p[BA + k])
            p[PSIK + k] = h * (p[BW + k] + p[PSDG + k])
            p[BLK + k] = p[BL + k] + h * (p[BTAU + k] + p[BTAUG + k])
            p[PSD + k] = p[PSDG + k] + w * (p[PSDG + k] - p[BW + k])
    if first:
        _guess_turn(p, w)


@compiled()
def _guess_turn(p, time):
    """Rate of rotation that the present moment gives after a time."""
    momentum = p[BLS : BLS + 3]
    turn(p[IW : IW + 9], p[BW : BW + 3], momentum)
    rate = p[SCRATCH : SCRATCH + 3]
    rate[0] = p[BTAU] - p[BW + 1] * momentum[2] + p[BW + 2] * momentum[1]
    rate[1] = p[BTAU + 1] - p[BW + 2] * momentum[0] + p[BW] * momentum[2]
    rate[2] = p[BTAU + 2] - p[BW] * momentum[1] + p[BW + 1] * momentum[0]
    in_body, turned = p[SCRATCH + 3 : SCRATCH + 6], p[SCRATCH + 6 : SCRATCH + 9]
    turn_back(p[BR : BR + 9], rate, in_body)
    turn(p[B_INVERSE : B_INVERSE + 9], in_body, turned)
    turn(p[BR : BR + 9], turned, rate)
    for k in range(3):
        p[PSD + k] = p[BW + k] + time * rate[k]


@compiled()
def place(p, m, dh):
    """Motion of a free body in the stage from its acceleration and rotation rate."""
    for k in range(3):
        p[BVS + k] = p[BVK + k] + dh * p[BAS + k]
        p[BXS + k] = p[BXK + k] + dh * p[BVS + k]
        p[PSI + k] = p[PSIK + k] + dh * p[PSD + k]
        m[POSITION + k] = p[BXS + k]
        m[VELOCITY + k] = p[BVS + k]
    step = p[SCRATCH : SCRATCH + 9]
    rotation_of(p[PSI : PSI + 3], step)
    multiply(step, p[BR : BR + 9], m[ROTATION : ROTATION + 9])
    angular_velocity(p[PSI : PSI + 3], p[PSD : PSD + 3], p[BWS : BWS + 3])
    m[OMEGA : OMEGA + 3] = p[BWS : BWS + 3]
    similar(m[ROTATION : ROTATION + 9], p[B_INERTIA : B_INERTIA + 9], p[IW : IW + 9])
    turn(p[IW : IW + 9], p[BWS : BWS + 3], p[BLS : BLS + 3])
    for k in range(3):
        p[BTAUS + k] = (p[BLS + k] - p[BLK + k]) / dh


@compiled()
def follow(p, m, path, s, period):
    """Motion of a prescribed body at a share of the control period: quintic between its ends."""
    for k in range(3):
        for q in range(2):
            c = 9 * q + k
            x0, v0, a0 = path[0, c], path[0, c + 3] * period, path[0, c + 6] * period * period
            x1, v1, a1 = path[1, c], path[1, c + 3] * period, path[1, c + 6] * period * period
            gap = x1 - x0 - v0 - 0.5 * a0
            fall, bend = v1 - v0 - a0, a1 - a0
            c3 = 10.0 * gap - 4.0 * fall + 0.5 * bend
            c4 = -15.0 * gap + 7.0 * fall - bend
            c5 = 6.0 * gap - 3.0 * fall + 0.5 * bend
            x = x0 + s * (v0 + s * (0.5 * a0 + s * (c3 + s * (c4 + s * c5))))
            v = v0 + s * (a0 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))
            a = a0 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))
            if q == 0:
                p[BXS + k], p[BVS + k], p[BAS + k] = x, v / period, a / (period * period)
                m[POSITION + k], m[VELOCITY + k] = p[BXS + k], p[BVS + k]
            else:
                p[PSI + k], p[PSD + k] = x, v / period
                p[BLK + k] = a / (period * period)
    step = p[SCRATCH : SCRATCH + 9]
    rotation_of(p[PSI : PSI + 3], step)
    multiply(step, p[BREF : BREF + 9], m[ROTATION : ROTATION + 9])
    angular_velocity(p[PSI : PSI + 3], p[PSD : PSD + 3], p[BWS : BWS + 3])
    m[OMEGA : OMEGA + 3] = p[BWS : BWS + 3]
    similar(m[ROTATION : ROTATION + 9], p[B_INERTIA : B_INERTIA + 9], p[IW : IW + 9])
    turn(p[IW : IW + 9], p[BWS : BWS + 3], p[BLS : BLS + 3])
    # Rate of the angular momentum, with p'' for the angular acceleration: both of second order.
    rate = p[BTAUS : BTAUS + 3]
    turn(p[IW : IW + 9], p[BLK : BLK + 3], rate)
    rate[0] += p[BWS + 1] * p[BLS + 2] - p[BWS + 2] * p[BLS + 1]
    rate[1] += p[BWS + 2] * p[BLS] - p[BWS] * p[BLS + 2]
    rate[2] += p[BWS] * p[BLS + 1] - p[BWS + 1] * p[BLS]


@compiled()
def external_wrench(p, n, m, speed, rotors, wind, wrench_body, wrench_enu):
    """Force and moment about the centre of mass of rotors, air and inputs, into `EXTERNAL`."""
    w = p[EXTERNAL : EXTERNAL + 6]
    w[:] = 0.0
    if n[B_DRONE] >= 0:
        add_rotors(m, speed[n[B_DRONE]], rotors[n[B_DRONE]], wind, w)
    add_body_drag(m, p[B_DRAG : B_DRAG + 3], wind, w)
    add_inputs(m, wrench_body, wrench_enu, w)


@compiled()
def balance(p, gravity):
    """Right-hand side of a free body: what its momentum rates lack of the outside wrenches."""
    for k in range(3):
        p[RIGHT + k] = p[EXTERNAL + k] - p[B_MASS] * p[BAS + k]
        p[RIGHT + 3 + k] = p[EXTERNAL + 3 + k] - p[BTAUS + k]
    p[RIGHT + 2] -= p[B_MASS] * gravity


@compiled()
def correct(p, dh):
    """Apply the solution in `RIGHT` (translation, turn) to acceleration and rotation rate."""
    x, y, z = p[RIGHT + 3], p[RIGHT + 4], p[RIGHT + 5]
    u, v, w = p[PSI], p[PSI + 1], p[PSI + 2]
    for k in range(3):
        p[BAS + k] += p[RIGHT + k] / (dh * dh)
    # Change of the rotation vector that makes this further turn: (I - [psi] / 2) turn.
    p[PSD] += (x - 0.5 * (v * z - w * y)) / dh
    p[PSD + 1] += (y - 0.5 * (w * x - u * z)) / dh
    p[PSD + 2] += (z - 0.5 * (u * y - v * x)) / dh


@compiled()
def remember_first_stage(p):
    """Keep the rates of the first stage."""
    for k in range(3):
        p[BVG + k], p[BAG + k] = p[BVS + k], p[BAS + k]
        p[PSDG + k], p[BTAUG + k] = p[PSD + k], p[BTAUS + k]


@compiled()
def settle(p, m):
    """Make the stage the state."""
    for k in range(3):
        p[BX + k], p[BV + k], p[BA + k] = p[BXS + k], p[BVS + k], p[BAS + k]
        p[BW + k], p[BL + k], p[BTAU + k] = p[BWS + k], p[BLS + k], p[BTAUS + k]
    p[BR : BR + 9] = m[ROTATION : ROTATION + 9]
    orthonormalise(p[BR : BR + 9])


@compiled()
def point_motion(p, m, place_body, node, x, first):
    """Position and velocity of a point of a body, into columns x and x + 3 of a node."""
    rx = m[0] * place_body[0] + m[1] * place_body[1] + m[2] * place_body[2]
    ry = m[3] * place_body[0] + m[4] * place_body[1] + m[5] * place_body[2]
    rz = m[6] * place_body[0] + m[7] * place_body[1] + m[8] * place_body[2]
    wx, wy, wz = m[OMEGA], m[OMEGA + 1], m[OMEGA + 2]
    ux, uy, uz = wy * rz - wz * ry, wz * rx - wx * rz, wx * ry - wy * rx
    node[x], node[x + 1], node[x + 2] = m[POSITION] + rx, m[POSITION + 1] + ry, m[POSITION + 2] + rz
    node[x + 3] = m[VELOCITY] + ux
    node[x + 4] = m[VELOCITY + 1] + uy
    node[x + 5] = m[VELOCITY + 2] + uz
    if first:
        ax, ay, az = p[BLK], p[BLK + 1], p[BLK + 2]
        node[x + 6] = p[BAS] + ay * rz - az * ry + wy * uz - wz * uy
        node[x + 7] = p[BAS + 1] + az * rx - ax * rz + wz * ux - wx * uz
        node[x + 8] = p[BAS + 2] + ax * ry - ay * rx + wx * uy - wy * ux


# ---------- Ground under boxes: compliant corners with stick-slip friction, solved with everything


@compiled()
def near_ground(p, ground):
    """Whether any corner of the body can be below the ground (False if there is no ground)."""
    return p[BXS + 2] - p[B_RADIUS] < ground


@compiled()
def corner_forces(p, m, corners, ground, friction, dh, s, first, r, k3):
    """Add the ground's forces on one body to its balance, their derivatives to the matrix."""
    stiff, damp = p[B_CONTACT_STIFFNESS], p[B_CONTACT_DAMPING]
    slope = stiff + damp / dh
    for c in corners:
        for i in range(3):
            r[i] = (
                m[3 * i] * c[C_PLACE]
                + m[3 * i + 1] * c[C_PLACE + 1]
                + m[3 * i + 2] * c[C_PLACE + 2]
            )
        depth = ground - m[POSITION + 2] - r[2]
        vx = m[VELOCITY] + m[OMEGA + 1] * r[2] - m[OMEGA + 2] * r[1]
        vy = m[VELOCITY + 1] + m[OMEGA + 2] * r[0] - m[OMEGA] * r[2]
        vz = m[VELOCITY + 2] + m[OMEGA] * r[1] - m[OMEGA + 1] * r[0]
        up = stiff * depth - damp * vz
        c[C_FORCE] = c[C_FORCE + 1] = c[C_FORCE + 2] = 0.0
        if depth <= 0.0 or up <= 0.0:
            continue
        x, y = m[POSITION] + r[0], m[POSITION + 1] + r[1]
        if c[C_ACTIVE] == 0.0:  # it touches within this step: stuck where it is before the stage
            c[C_ANCHOR], c[C_ANCHOR + 1], c[C_ACTIVE] = x - dh * vx, y - dh * vy, 1.0
        fx = stiff * (c[C_ANCHOR] - x) - damp * vx
        fy = stiff * (c[C_ANCHOR + 1] - y) - damp * vy
        size = np.sqrt(fx * fx + fy * fy)
        limit = friction * up
        k3[:] = 0.0
        k3[0, 0] = k3[1, 1] = k3[2, 2] = slope
        c[C_TRIAL] = 0.0
        if size > limit:
            fx, fy = fx / size, fy / size
            scale = slope * limit / size
            k3[0, 0] = scale * (1.0 - fx * fx)
            k3[1, 1] = scale * (1.0 - fy * fy)
            k3[0, 1] = k3[1, 0] = -scale * fx * fy
            fx *= limit
            fy *= limit
            c[C_TRIAL] = 1.0
        c[C_FORCE], c[C_FORCE + 1], c[C_FORCE + 2] = fx, fy, up
        p[RIGHT] += fx
        p[RIGHT + 1] += fy
        p[RIGHT + 2] += up
        p[RIGHT + 3] += r[1] * up - r[2] * fy
        p[RIGHT + 4] += r[2] * fx - r[0] * up
        p[RIGHT + 5] += r[0] * fy - r[1] * fx
        add_point(s, first, r, k3)


@compiled()
def add_point(s, first, r, k3):
    """Add a symmetric stiffness at a point of a body to the lower triangle of a matrix.

    With the displacement d + t x r of the point: K, K [r]^T and [r] K [r]^T.
    """
    for i in range(3):
        for j in range(i + 1):
            s[first + i, first + j] += k3[i, j]
        # Row i of [r] K, then that times [r]^T, its cross product with r.
        p, q = (i + 1) % 3, (i + 2) % 3
        x = r[p] * k3[q, 0] - r[q] * k3[p, 0]
        y = r[p] * k3[q, 1] - r[q] * k3[p, 1]
        z = r[p] * k3[q, 2] - r[q] * k3[p, 2]
        row = s[first + 3 + i]
        row[first] += x
        row[first + 1] += y
        row[first + 2] += z
        row[first + 3] += r[1] * z - r[2] * y
        if i > 0:
            row[first + 4] += r[2] * x - r[0] * z
        if i > 1:
            row[first + 5] += r[0] * y - r[1] * x


@compiled()
def settle_corners(p, m, corners, ground):
    """After a step: let go of corners in the air, drag along the springs of those that slip."""
    stiff = p[B_CONTACT_STIFFNESS]
    for c in corners:
        c[C_TOUCHED] = c[C_FORCE + 2]
        if c[C_FORCE + 2] == 0.0:
            c[C_ACTIVE] = 0.0
        elif c[C_TRIAL] > 0.0:
            for i in range(2):
                at = m[POSITION + i] + (
                    m[3 * i] * c[C_PLACE]
                    + m[3 * i + 1] * c[C_PLACE + 1]
                    + m[3 * i + 2] * c[C_PLACE + 2]
                )
                c[C_ANCHOR + i] = at + c[C_FORCE + i] / stiff
