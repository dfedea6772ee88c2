"""Vectors as single numbers, so that compiled code needs no temporary arrays."""

from __future__ import annotations

import math

from musls_description.compiled import compiled


@compiled()
def cross(ax, ay, az, bx, by, bz):
    """Return the cross product a x b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@compiled()
def rotate(matrix, vector):
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
def unit(x, y, z):
    """Return the direction of a vector (zeros if it has none) and its length."""
    size = math.sqrt(x * x + y * y + z * z)
    if size == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    return x / size, y / size, z / size, size


@compiled()
def unit_rates(v, v1, v2):
    """Return the direction of a vector and its first two derivatives."""
    x, y, z, size = unit(v[0], v[1], v[2])
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


# ---------- The operations of `rotations` for compiled code: quaternions [w, x, y, z] as single numbers.


@compiled()
def quaternion_product(aw, ax, ay, az, bw, bx, by, bz):
    """Return the Hamilton product a * b: rotation b followed by a."""
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


@compiled()
def rotate_by(w, a, b, c, x, y, z):
    """Turn the body vector (x, y, z) into the world frame by the unit quaternion (w, a, b, c)."""
    tx, ty, tz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (
        x + w * tx + b * tz - c * ty,
        y + w * ty + c * tx - a * tz,
        z + w * tz + a * ty - b * tx,
    )


@compiled()
def rotate_back_by(w, a, b, c, x, y, z):
    """Turn the world vector (x, y, z) into the body frame of the unit quaternion (w, a, b, c)."""
    return rotate_by(w, -a, -b, -c, x, y, z)


@compiled()
def from_rotation_vector(x, y, z):
    """Return the unit quaternion of a rotation vector (axis times angle) [rad]."""
    angle = math.sqrt(x * x + y * y + z * z)
    s = math.sin(0.5 * angle) / angle if angle > 1e-9 else 0.5
    return math.cos(0.5 * angle), s * x, s * y, s * z


@compiled()
def turned(w, a, b, c, x, y, z):
    """Return a unit quaternion after a further turn by a rotation vector in its body frame."""
    tw, tx, ty, tz = from_rotation_vector(x, y, z)
    w, a, b, c = quaternion_product(w, a, b, c, tw, tx, ty, tz)
    norm = math.sqrt(w**2 + a**2 + b**2 + c**2)
    return w / norm, a / norm, b / norm, c / norm


@compiled()
def rotation_between(aw, ax, ay, az, bw, bx, by, bz):
    """Return the rotation vector in the world frame that turns a into b the shorter way [rad]."""
    w = bw * aw + bx * ax + by * ay + bz * az
    x = -bw * ax + bx * aw - by * az + bz * ay
    y = -bw * ay + bx * az + by * aw - bz * ax
    z = -bw * az - bx * ay + by * ax + bz * aw
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    half = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 * math.atan2(half, w) / half if half > 1e-12 else 2.0
    return scale * x, scale * y, scale * z


@compiled()
def body_axes_in_world(w, x, y, z):
    """Return the body's x, y and z axis in the world frame, nine numbers.

    They are the columns of the rotation matrix of the unit quaternion.
    """
    return (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y),
        2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x),
        2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip


@compiled()
def body_z_in_world(w, x, y, z):
    """Return the third column of the rotation matrix of a unit quaternion."""
    return 2.0 * (x * z + w * y), 2.0 * (y * z - w * x), w * w - x * x - y * y + z * z


@compiled()
def world_z_in_body(w, x, y, z):
    """Return the third row of the rotation matrix of a unit quaternion."""
    return 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z


@compiled()
def from_matrix(m00, m01, m02, m10, m11, m12, m20, m21, m22):
    """Return the unit quaternion of a rotation matrix given row by row, w >= 0 (Shepperd)."""
    trace = m00 + m11 + m22
    if trace > 0.0:
        s = 2.0 * math.sqrt(1.0 + trace)
        w, x, y, z = 0.25 * s, (m21 - m12) / s, (m02 - m20) / s, (m10 - m01) / s
    elif m00 > m11 and m00 > m22:
        s = 2.0 * math.sqrt(1.0 + m00 - m11 - m22)
        w, x, y, z = (m21 - m12) / s, 0.25 * s, (m01 + m10) / s, (m02 + m20) / s
    elif m11 > m22:
        s = 2.0 * math.sqrt(1.0 + m11 - m00 - m22)
        w, x, y, z = (m02 - m20) / s, (m01 + m10) / s, 0.25 * s, (m12 + m21) / s
    else:
        s = 2.0 * math.sqrt(1.0 + m22 - m00 - m11)
        w, x, y, z = (m10 - m01) / s, (m02 + m20) / s, (m12 + m21) / s, 0.25 * s
    if w < 0.0:
        return -w, -x, -y, -z
    return w, x, y, z


@compiled()
def yaw_of(w, x, y, z):
    """Return the yaw of a unit quaternion in the sequence yaw, pitch, roll [rad]."""
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


@compiled()
def wrapped(angle_rad):
    """Wrap an angle to [-pi, pi); NaN stays NaN."""
    return angle_rad - 2.0 * math.pi * math.floor((angle_rad + math.pi) / (2.0 * math.pi))
