"""Rigid bodies within a stage: motion, points on them, momentum balance, wrenches of the air."""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.aerodynamics import add_body_drag, add_inputs, add_rotors
from musls_sim.plants.bodies import OMEGA, POSITION, ROTATION, VELOCITY
from musls_sim.plants.elastic.columns import (
    B_DRAG,
    B_DRONE,
    B_INERTIA,
    B_INVERSE,
    B_MASS,
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
    EXTERNAL,
    IW,
    PSD,
    PSDG,
    PSI,
    PSIK,
    RIGHT,
    SCRATCH,
)
from musls_sim.plants.elastic.rotations import (
    angular_velocity,
    multiply,
    orthonormalise,
    rotation_of,
    similar,
    turn,
    turn_back,
)


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
