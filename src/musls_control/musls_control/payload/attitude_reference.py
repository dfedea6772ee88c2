"""Attitude, body rate and its derivatives from Euler angles and their derivatives, exactly.

Every angle is a truncated Taylor series in time; cosine and sine of half of it, their quaternion
products and the rate W = 2 vec(q* q') follow by the rules for products of series.
"""

from __future__ import annotations

import math

from musls_description.compiled import compiled

ORDERS = 5
"""Coefficients of a series: angle and four derivatives."""


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
