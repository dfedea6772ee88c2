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

from musls_description.compiled import compiled
from musls_description.vectors import cross, rotate

# Rows of the gains, (6, 3).
POSITION, VELOCITY, POSITION_INTEGRAL, ATTITUDE, RATE, ATTITUDE_INTEGRAL = range(6)

# Columns of the load's table.
MASS, GRAVITY, PERIOD, REACH_XY, REACH_Z, MOST_XY, MOST_Z, MOST_TURN = range(8)

# Rows of the load's errors, (8, 3).
GAP, SPEED, TURN, SPIN, AHEAD, AHEAD_RATE, AHEAD_SECOND, FREE = range(8)


@compiled()
def load_errors(row, reference, r, r_d, rate_d, errors):
    """Write position and attitude errors and the angular acceleration that is to come anyway."""
    for k in range(3):
        errors[GAP, k] = reference[0, k] - row[k]
        errors[SPEED, k] = reference[1, k] - row[3 + k]
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        # (Q - Q^T) / 2 with Q = R^T R_d: element (c, b) minus element (b, c)
        cb = r[0, c] * r_d[0, b] + r[1, c] * r_d[1, b] + r[2, c] * r_d[2, b]
        bc = r[0, b] * r_d[0, c] + r[1, b] * r_d[1, c] + r[2, b] * r_d[2, c]
        errors[TURN, a] = 0.5 * (cb - bc)
    w = row[10:13]
    for order in range(4):  # turn rates from the desired frame into the load's
        x, y, z = rotate(r_d, rate_d[order])
        for a in range(3):
            errors[SPIN + order, a] = r[0, a] * x + r[1, a] * y + r[2, a] * z
    s = errors[SPIN]
    turning = cross(w, s)
    for a in range(3):
        errors[AHEAD, a] -= turning[a]
        s[a] -= w[a]


@compiled()
def feedback(table, gains, errors, integral, acceleration, free):
    """Write the acceleration that position and velocity errors ask for, within its limits."""
    for k in range(3):
        acceleration[k] = (
            gains[POSITION, k] * errors[GAP, k] + gains[VELOCITY, k] * errors[SPEED, k]
        )
    free[:] = 1.0
    size = math.hypot(acceleration[0], acceleration[1])
    if size > table[REACH_XY]:
        acceleration[0] *= table[REACH_XY] / size
        acceleration[1] *= table[REACH_XY] / size
        free[0] = free[1] = 0.0
    if abs(acceleration[2]) > table[REACH_Z]:
        acceleration[2] = math.copysign(table[REACH_Z], acceleration[2])
        free[2] = 0.0
    for k in range(3):
        acceleration[k] += gains[POSITION_INTEGRAL, k] * integral[k]


@compiled()
def integrate(table, gains, errors, free, integral):
    """Advance the integrals by one period, unless the feedback is limited; bounded."""
    period = table[PERIOD]
    for k in range(3):
        most = table[MOST_Z] if k == 2 else table[MOST_XY]
        gain = gains[POSITION_INTEGRAL, k]
        if gain > 0.0:
            grown = integral[k] + free[k] * period * errors[GAP, k]
            integral[k] = min(max(grown, -most / gain), most / gain)
        gain = gains[ATTITUDE_INTEGRAL, k]
        if gain > 0.0:
            grown = integral[3 + k] + free[2] * period * errors[TURN, k]
            integral[3 + k] = min(max(grown, -table[MOST_TURN] / gain), table[MOST_TURN] / gain)


@compiled()
def demand(
    order, table, gains, errors, integral, reference, added, free, share, motion, wrench, wanted
):
    """Write the force on the load and its angular acceleration, or a derivative of both."""
    for k in range(3):
        p, d, i = gains[POSITION, k], gains[VELOCITY, k], gains[POSITION_INTEGRAL, k]
        t, s, e = gains[ATTITUDE, k], gains[RATE, k], gains[ATTITUDE_INTEGRAL, k]
        turn, spin, ahead = errors[TURN, k], errors[SPIN, k], errors[AHEAD, k]
        gap, speed, slow = errors[GAP, k], errors[SPEED, k], reference[2, k] - motion[0, k]
        lag = ahead - motion[2, k]
        force = reference[2 + order, k]
        if order == 0:
            force += added[k]
            wanted[k] = ahead + t * turn + s * spin + e * integral[3 + k]
        elif order == 1:
            force += free[k] * share[0] * (p * speed + d * slow + i * gap)
            wanted[k] = errors[AHEAD_RATE, k] + share[1] * (t * spin + s * lag + e * turn)
        else:
            late, jerk = errors[AHEAD_RATE, k] - motion[3, k], reference[3, k] - motion[1, k]
            force += free[k] * share[0] * (p * slow + d * jerk + i * speed)
            wanted[k] = errors[AHEAD_SECOND, k] + share[1] * (t * lag + s * late + e * spin)
        wrench[k] = table[MASS] * force
    if order == 0:
        wrench[2] += table[MASS] * table[GRAVITY]


@compiled()
def moment_of(inertia, w, alpha, wanted, wanted_rate, order, moment):
    """Write J times an angular acceleration plus the gyroscopic moment, or their derivative."""
    own = rotate(inertia, wanted)
    jw = rotate(inertia, w)
    if order == 0:
        turning = cross(w, jw)
    else:
        ja = rotate(inertia, alpha)
        one = cross(alpha, jw)
        two = cross(w, ja)
        turning = (one[0] + two[0], one[1] + two[1], one[2] + two[2])
        if order == 2:
            b = wanted_rate
            jb = rotate(inertia, b)
            one = cross(b, jw)
            two = cross(alpha, ja)
            three = cross(w, jb)
            turning = (
                one[0] + 2.0 * two[0] + three[0],
                one[1] + 2.0 * two[1] + three[1],
                one[2] + 2.0 * two[2] + three[2],
            )
    for a in range(3):
        moment[a] = own[a] + turning[a]


# ---------- Attitude, body rate and its derivatives from Euler angles and theirs, exactly

ORDERS = 5
"""Coefficients of a series: angle and four derivatives."""


# Every angle is a truncated Taylor series in time; cosine and sine of half of it, their
# quaternion products and the rate W = 2 vec(q* q') follow by the rules for products of series.


@compiled()
def attitude_reference(derivatives, attitude, rate):
    """Write attitude and body rates of a reference."""
    if derivatives.shape[1] < 6:
        half = 0.5 * derivatives[0, 3]
        attitude[0], attitude[1], attitude[2], attitude[3] = (
            math.cos(half),
            0.0,
            0.0,
            math.sin(half),
        )
        for k in range(4):
            rate[k, 0], rate[k, 1], rate[k, 2] = 0.0, 0.0, derivatives[k + 1, 3]
        return
    turn, nod, tilt = (
        _about(derivatives, 3, 3),
        _about(derivatives, 5, 2),
        _about(derivatives, 4, 1),
    )
    q = _product(_product(turn, nod), tilt)
    for a in range(4):
        attitude[a] = q[a][0]
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
            rate[k, a] = 2.0 * factorial * total


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
