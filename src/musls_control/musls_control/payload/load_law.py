"""What the load needs: force and moment with their first two derivatives.

With x, v, R, W position, velocity, attitude and body rate of the load, Q = R^T R_d the attitude
error, e_R = 1/2 vee(Q - Q^T) and e_W = Q W_d - W (desired minus actual, so that every gain enters
with a plus; eq. 69, 70, 73 of G. Li, R. Ge, G. Loianno and others, "RotorTM", IEEE T-RO 2023, whose
(73) has the wrong sign):

    F = m (a_d + g e3 + Kp e_x + Kd e_v + Ki int e_x)
    M = J (Q W_d' - W x Q W_d + K_R e_R + K_W e_W + K_I int e_R) + W x J W

The derivatives need acceleration and jerk of the load. They are not measured: they follow from the
cable forces that act now. Gains are accelerations per error, so that they hold for any mass.
"""

from __future__ import annotations

import math

import numpy as np

from musls_control.geometric_attitude import attitude_error
from musls_description.compiled import compiled
from musls_description.vectors import (
    add,
    body_axes_in_world,
    cross,
    elementwise,
    put,
    rotate,
    rotate_back,
    scale,
    sub,
    write_matrix,
)

GAINS = np.dtype([("proportional", float, 3), ("derivative", float, 3), ("integral", float, 3)])

LOAD = np.dtype(
    [
        ("mass", float),
        ("inertia", float, (3, 3)),
        ("inverse_inertia", float, (3, 3)),
        ("gravity", float),
        ("period", float),
        ("place", float, 3),  # of the load in a rigid structure, from the centre of mass
        ("position_gains", GAINS),  # world x, y, z
        ("attitude_gains", GAINS),  # load x, y, z
        ("reach", float, 2),  # largest acceleration by the errors, horizontal and vertical,
        ("integral_reach", float, 3),  # by the integral, along x, y, z,
        ("integral_turn", float),  # and angular acceleration by it
        ("feed_reference", float),  # 1 or 0: of jerk and snap,
        ("feed_position", float),  # of the feedback of the position,
        ("feed_attitude", float),  # and of the attitude
        ("rotation", float, (3, 3)),
        ("wanted_rotation", float, (3, 3)),
        ("wanted_rates", float, (4, 3)),  # body rate and its derivatives, wanted load frame
        ("gap", float, 3),  # errors of position and velocity,
        ("speed", float, 3),
        ("turn", float, 3),  # of attitude and body rate, load frame
        ("spin", float, 3),
        ("ahead", float, 3),  # angular acceleration that is to come anyway, its derivatives
        ("ahead_rate", float, 3),
        ("ahead_second", float, 3),
        ("position_integral", float, 3),
        ("attitude_integral", float, 3),
        ("feedback", float, 3),  # acceleration that the errors of the position ask for
        ("free", float, 3),  # 0 where it is limited
        ("acceleration", float, 3),  # that the cables' forces give
        ("jerk", float, 3),
        ("angular_acceleration", float, 3),
        ("angular_jerk", float, 3),
        ("wanted_turn", float, (3, 3)),  # angular acceleration to give, and its derivatives
        ("wrench", float, (3, 6)),  # force and moment to give, load frame, and their derivatives
    ]
)
"""The load as the law knows it: constants, gains, state and what a call finds."""


@compiled()
def respond(gains, error, rate, integral):
    """Return the acceleration that an error, its rate and its integral ask for."""
    return add(
        add(elementwise(gains.proportional, error), elementwise(gains.derivative, rate)),
        elementwise(gains.integral, integral),
    )


@compiled()
def attitude_errors(load, body):
    """Write the errors of attitude and rate and the angular acceleration that is to come anyway."""
    r, r_d = load.rotation, load.wanted_rotation
    put(load.turn, attitude_error(r, r_d))
    spin = rotate_back(r, rotate(r_d, load.wanted_rates[0]))
    put(load.spin, sub(spin, body.omega))
    ahead = rotate_back(r, rotate(r_d, load.wanted_rates[1]))
    put(load.ahead, sub(ahead, cross(body.omega, spin)))
    put(load.ahead_rate, rotate_back(r, rotate(r_d, load.wanted_rates[2])))
    put(load.ahead_second, rotate_back(r, rotate(r_d, load.wanted_rates[3])))


@compiled()
def feed_back(load, body, reference):
    """Write the acceleration that position and velocity errors ask for, within its limits."""
    put(load.gap, sub(reference[0], body.position))
    put(load.speed, sub(reference[1], body.velocity))
    gains, free = load.position_gains, load.free
    x, y, z = respond(gains, load.gap, load.speed, (0.0, 0.0, 0.0))
    put(free, (1.0, 1.0, 1.0))
    size = math.hypot(x, y)
    if size > load.reach[0]:
        x, y = x * load.reach[0] / size, y * load.reach[0] / size
        free[0] = free[1] = 0.0
    if abs(z) > load.reach[1]:
        z = math.copysign(load.reach[1], z)
        free[2] = 0.0
    put(load.feedback, add((x, y, z), elementwise(gains.integral, load.position_integral)))


@compiled()
def integrate(load):
    """Advance the integrals by one period, unless the feedback is limited; bounded."""
    for k in range(3):
        gain, most = load.position_gains.integral[k], load.integral_reach[k]
        if gain > 0.0:
            grown = load.position_integral[k] + load.free[k] * load.period * load.gap[k]
            load.position_integral[k] = min(max(grown, -most / gain), most / gain)
        gain, most = load.attitude_gains.integral[k], load.integral_turn
        if gain > 0.0:
            grown = load.attitude_integral[k] + load.free[2] * load.period * load.turn[k]
            load.attitude_integral[k] = min(max(grown, -most / gain), most / gain)


@compiled()
def demand(load, reference, order):
    """Return the force on the load and its angular acceleration, or a derivative of both."""
    gap, speed, turn, spin = load.gap, load.speed, load.turn, load.spin
    slow = sub(reference[2], load.acceleration)
    lag = sub(load.ahead, load.angular_acceleration)
    if order == 0:
        added = add((0.0, 0.0, load.gravity), load.feedback)
        asked = respond(load.attitude_gains, turn, spin, load.attitude_integral)
        return scale(load.mass, add(reference[2], added)), add(load.ahead, asked)
    if order == 1:
        added = respond(load.position_gains, speed, slow, gap)
        asked, ahead = respond(load.attitude_gains, spin, lag, turn), load.ahead_rate
    else:
        jerk = sub(reference[3], load.jerk)
        late = sub(load.ahead_rate, load.angular_jerk)
        added = respond(load.position_gains, slow, jerk, speed)
        asked, ahead = respond(load.attitude_gains, lag, late, spin), load.ahead_second
    added = scale(load.feed_position, elementwise(load.free, added))
    force = scale(load.mass, add(reference[2 + order], added))
    return force, add(ahead, scale(load.feed_attitude, asked))


@compiled()
def gyroscopic(inertia, w, alpha, jerk, order):
    """Return the moment W x J W, or its first or second derivative."""
    turning = rotate(inertia, w)
    if order == 0:
        return cross(w, turning)
    growing = rotate(inertia, alpha)
    if order == 1:
        return add(cross(alpha, turning), cross(w, growing))
    ends = add(cross(jerk, turning), cross(w, rotate(inertia, jerk)))
    return add(ends, scale(2.0, cross(alpha, growing)))


# ---------- Attitude, body rate and its derivatives from Euler angles and theirs, exactly

# Every angle is a truncated Taylor series in time, of the angle and four derivatives; cosine and
# sine of half of it, their quaternion products and the rate W = 2 vec(q* q') follow by the rules
# for products of series.


@compiled()
def attitude_reference(load, derivatives, tilt):
    """Write attitude and body rates of a reference, see `LoadReference`."""
    level = True
    for order in range(5):
        level &= tilt[order, 0] == 0.0 and tilt[order, 1] == 0.0
    if level:
        half = 0.5 * derivatives[0, 3]
        attitude = math.cos(half), 0.0, 0.0, math.sin(half)
        write_matrix(load.wanted_rotation, body_axes_in_world(attitude))
        for k in range(4):
            put(load.wanted_rates[k], (0.0, 0.0, derivatives[k + 1, 3]))
        return
    turn, nod, bank = _about(derivatives, 3, 3), _about(tilt, 1, 2), _about(tilt, 0, 1)
    q = _product(_product(turn, nod), bank)
    attitude = q[0][0], q[1][0], q[2][0], q[3][0]
    write_matrix(load.wanted_rotation, body_axes_in_world(attitude))
    factorial = 1.0
    for k in range(4):  # W = 2 q* q', its coefficient k, times k! the derivative k
        factorial *= max(k, 1)
        for a in range(3):
            b, c = 1 + (a + 1) % 3, 1 + (a + 2) % 3
            total = 0.0
            for j in range(k + 1):
                later = k - j
                slope = later + 1.0
                total += slope * (
                    q[0][j] * q[1 + a][later + 1]
                    - q[1 + a][j] * q[0][later + 1]
                    - q[b][j] * q[c][later + 1]
                    + q[c][j] * q[b][later + 1]
                )
            load.wanted_rates[k, a] = 2.0 * factorial * total


@compiled()
def _about(derivatives, column, axis):
    """Series of the quaternion of a rotation about one axis (1, 2, 3), four tuples of five."""
    x1 = 0.5 * derivatives[1, column]
    x2 = 0.25 * derivatives[2, column]
    x3 = derivatives[3, column] / 12.0
    x4 = derivatives[4, column] / 48.0
    cos, sin = math.cos(0.5 * derivatives[0, column]), math.sin(0.5 * derivatives[0, column])
    # s' = c x', c' = -s x', coefficient by coefficient
    s1, c1 = cos * x1, -sin * x1
    s2, c2 = 0.5 * (2.0 * cos * x2 + c1 * x1), -0.5 * (2.0 * sin * x2 + s1 * x1)
    s3 = (3.0 * cos * x3 + 2.0 * c1 * x2 + c2 * x1) / 3.0
    c3 = -(3.0 * sin * x3 + 2.0 * s1 * x2 + s2 * x1) / 3.0
    s4 = (4.0 * cos * x4 + 3.0 * c1 * x3 + 2.0 * c2 * x2 + c3 * x1) / 4.0
    c4 = -(4.0 * sin * x4 + 3.0 * s1 * x3 + 2.0 * s2 * x2 + s3 * x1) / 4.0
    real, imaginary = (cos, c1, c2, c3, c4), (sin, s1, s2, s3, s4)
    none = (0.0, 0.0, 0.0, 0.0, 0.0)
    if axis == 1:
        return real, imaginary, none, none
    if axis == 2:
        return real, none, imaginary, none
    return real, none, none, imaginary


@compiled()
def _times(a, b):
    """Product of two series."""
    return (
        a[0] * b[0],
        a[0] * b[1] + a[1] * b[0],
        a[0] * b[2] + a[1] * b[1] + a[2] * b[0],
        a[0] * b[3] + a[1] * b[2] + a[2] * b[1] + a[3] * b[0],
        a[0] * b[4] + a[1] * b[3] + a[2] * b[2] + a[3] * b[1] + a[4] * b[0],
    )


@compiled()
def _sum(a, sb, b, sc, c, sd, d):
    """Series a + sb b + sc c + sd d."""
    return (
        a[0] + sb * b[0] + sc * c[0] + sd * d[0],
        a[1] + sb * b[1] + sc * c[1] + sd * d[1],
        a[2] + sb * b[2] + sc * c[2] + sd * d[2],
        a[3] + sb * b[3] + sc * c[3] + sd * d[3],
        a[4] + sb * b[4] + sc * c[4] + sd * d[4],
    )


@compiled()
def _product(p, q):
    """Hamilton product of two quaternions of series."""
    return (
        _sum(_times(p[0], q[0]), -1.0, _times(p[1], q[1]), -1.0, _times(p[2], q[2]), -1.0,
             _times(p[3], q[3])),
        _sum(_times(p[0], q[1]), 1.0, _times(p[1], q[0]), 1.0, _times(p[2], q[3]), -1.0,
             _times(p[3], q[2])),
        _sum(_times(p[0], q[2]), -1.0, _times(p[1], q[3]), 1.0, _times(p[2], q[0]), 1.0,
             _times(p[3], q[1])),
        _sum(_times(p[0], q[3]), 1.0, _times(p[1], q[2]), -1.0, _times(p[2], q[1]), 1.0,
             _times(p[3], q[0])),
    )  # fmt: skip
