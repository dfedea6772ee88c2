"""Rotation vectors in compiled code: exponential, its tangent, products with 3x3 tables."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled


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
