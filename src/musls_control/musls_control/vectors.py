"""Vectors as single numbers, so that compiled code needs no temporary arrays."""

from __future__ import annotations

import math

from musls_description.compiled import compiled


@compiled()
def cross(ax, ay, az, bx, by, bz):
    """Return the cross product a x b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@compiled()
def times(matrix, vector):
    """Return the product of a matrix (3, 3) and a vector (3,)."""
    return (
        matrix[0, 0] * vector[0] + matrix[0, 1] * vector[1] + matrix[0, 2] * vector[2],
        matrix[1, 0] * vector[0] + matrix[1, 1] * vector[1] + matrix[1, 2] * vector[2],
        matrix[2, 0] * vector[0] + matrix[2, 1] * vector[1] + matrix[2, 2] * vector[2],
    )


@compiled()
def write_matrix(matrix, columns):
    """Write a matrix (3, 3) given column by column, nine numbers."""
    for k in range(3):
        matrix[k, 0], matrix[k, 1], matrix[k, 2] = columns[k], columns[3 + k], columns[6 + k]


@compiled()
def normalised(x, y, z):
    """Return the direction of a vector (zeros if it has none) and its length."""
    size = math.sqrt(x * x + y * y + z * z)
    if size == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    return x / size, y / size, z / size, size


@compiled()
def normalised_rates(v, v1, v2):
    """Return the direction of a vector and its first two derivatives."""
    x, y, z, size = normalised(v[0], v[1], v[2])
    growth = x * v1[0] + y * v1[1] + z * v1[2]
    x1, y1, z1 = (
        (v1[0] - growth * x) / size,
        (v1[1] - growth * y) / size,
        (v1[2] - growth * z) / size,
    )
    second = x1 * v1[0] + y1 * v1[1] + z1 * v1[2] + x * v2[0] + y * v2[1] + z * v2[2]
    return (
        (x, y, z),
        (x1, y1, z1),
        (
            (v2[0] - second * x - 2.0 * growth * x1) / size,
            (v2[1] - second * y - 2.0 * growth * y1) / size,
            (v2[2] - second * z - 2.0 * growth * z1) / size,
        ),
    )
