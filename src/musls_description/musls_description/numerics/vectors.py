"""Vectors, matrices and quaternions for compiled code: three or four numbers, no temporary arrays.

Arguments are anything with an index: tuples, fields of records, rows of arrays. Vectors come back
as tuples of three, quaternions [w, x, y, z] as tuples of four. Unit quaternions turn body vectors
into world vectors, as everywhere in this project; `rotations` has the same for arrays of them.
"""

from __future__ import annotations

import math

from musls_description.numerics.compiled import compiled

# ---------- Vectors


@compiled()
def add(a, b):
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@compiled()
def sub(a, b):
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@compiled()
def scale(factor, a):
    """Return a vector times a number."""
    return factor * a[0], factor * a[1], factor * a[2]


@compiled()
def add_scaled(a, f, b):
    """Return a + f b."""
    return a[0] + f * b[0], a[1] + f * b[1], a[2] + f * b[2]


@compiled()
def elementwise(a, b):
    """Return the products of the components, such as gains of each axis times an error."""
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


@compiled()
def dot(a, b):
    """Return the scalar product a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled()
def cross(a, b):
    """Return the vector product a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@compiled()
def norm(a):
    """Return the length of a vector."""
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@compiled()
def unit(a):
    """Return the direction of a vector (zeros if it has none) and its length."""
    size = norm(a)
    if size == 0.0:
        return (0.0, 0.0, 0.0), 0.0
    return (a[0] / size, a[1] / size, a[2] / size), size


@compiled()
def unit_rates(v, v1, v2):
    """Return the direction of a vector and its first two derivatives."""
    u, size = unit(v)
    growth = dot(u, v1)
    u1 = (
        (v1[0] - growth * u[0]) / size,
        (v1[1] - growth * u[1]) / size,
        (v1[2] - growth * u[2]) / size,
    )
    second = u1[0] * v1[0] + u1[1] * v1[1] + u1[2] * v1[2] + u[0] * v2[0] + u[1] * v2[1]
    second += u[2] * v2[2]
    u2 = (
        (v2[0] - second * u[0] - 2.0 * growth * u1[0]) / size,
        (v2[1] - second * u[1] - 2.0 * growth * u1[1]) / size,
        (v2[2] - second * u[2] - 2.0 * growth * u1[2]) / size,
    )
    return u, u1, u2


@compiled()
def put(out, a):
    """Write a vector into an array or the field of a record."""
    out[0] = a[0]
    out[1] = a[1]
    out[2] = a[2]


@compiled()
def put_quaternion(out, q):
    """Write a quaternion into an array or the field of a record."""
    out[0] = q[0]
    out[1] = q[1]
    out[2] = q[2]
    out[3] = q[3]


@compiled()
def increase(out, a):
    """Add a vector to an array or the field of a record."""
    out[0] += a[0]
    out[1] += a[1]
    out[2] += a[2]


# ---------- Matrices (3, 3)


@compiled()
def rotate(matrix, a):
    """Return matrix times vector: with a rotation matrix, a body vector in the world."""
    return (
        matrix[0, 0] * a[0] + matrix[0, 1] * a[1] + matrix[0, 2] * a[2],
        matrix[1, 0] * a[0] + matrix[1, 1] * a[1] + matrix[1, 2] * a[2],
        matrix[2, 0] * a[0] + matrix[2, 1] * a[1] + matrix[2, 2] * a[2],
    )


@compiled()
def rotate_back(matrix, a):
    """Return the transposed matrix times vector: a world vector in the body's frame."""
    return (
        matrix[0, 0] * a[0] + matrix[1, 0] * a[1] + matrix[2, 0] * a[2],
        matrix[0, 1] * a[0] + matrix[1, 1] * a[1] + matrix[2, 1] * a[2],
        matrix[0, 2] * a[0] + matrix[1, 2] * a[1] + matrix[2, 2] * a[2],
    )


times = rotate
"""Matrix times vector, as `rotate`, with an inertia as the matrix."""


@compiled()
def column(matrix, k):
    """Return a column: with a rotation matrix, an axis of the body in the world."""
    return matrix[0, k], matrix[1, k], matrix[2, k]


@compiled()
def write_matrix(matrix, columns):
    """Write a matrix given column by column, nine numbers."""
    for k in range(3):
        matrix[k, 0] = columns[k]
        matrix[k, 1] = columns[3 + k]
        matrix[k, 2] = columns[6 + k]


@compiled()
def put_matrix(out, m):
    """Copy a matrix (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = m[i, j]


@compiled()
def turn_inertia(r, inertia, out):
    """Write the inertia of a turned body, R J R^T, (3, 3) each."""
    for i in range(3):
        row = rotate_back(inertia, (r[i, 0], r[i, 1], r[i, 2]))
        put(out[i], rotate(r, row))


@compiled()
def orthonormalise(r):
    """Remove rounding from a rotation matrix, in place: one step of R (3 I - R^T R) / 2."""
    xx = r[0, 0] * r[0, 0] + r[1, 0] * r[1, 0] + r[2, 0] * r[2, 0]
    xy = r[0, 0] * r[0, 1] + r[1, 0] * r[1, 1] + r[2, 0] * r[2, 1]
    xz = r[0, 0] * r[0, 2] + r[1, 0] * r[1, 2] + r[2, 0] * r[2, 2]
    yy = r[0, 1] * r[0, 1] + r[1, 1] * r[1, 1] + r[2, 1] * r[2, 1]
    yz = r[0, 1] * r[0, 2] + r[1, 1] * r[1, 2] + r[2, 1] * r[2, 2]
    zz = r[0, 2] * r[0, 2] + r[1, 2] * r[1, 2] + r[2, 2] * r[2, 2]
    for i in range(3):
        x, y, z = r[i, 0], r[i, 1], r[i, 2]
        r[i, 0] = 1.5 * x - 0.5 * (x * xx + y * xy + z * xz)
        r[i, 1] = 1.5 * y - 0.5 * (x * xy + y * yy + z * yz)
        r[i, 2] = 1.5 * z - 0.5 * (x * xz + y * yz + z * zz)


# ---------- Unit quaternions


@compiled()
def quaternion_product(a, b):
    """Return the Hamilton product a * b: rotation b followed by a."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@compiled()
def conjugate(q):
    """Return the inverse rotation."""
    return q[0], -q[1], -q[2], -q[3]


@compiled()
def rotate_by(q, a):
    """Turn a body vector into the world frame."""
    tx = 2.0 * (q[2] * a[2] - q[3] * a[1])
    ty = 2.0 * (q[3] * a[0] - q[1] * a[2])
    tz = 2.0 * (q[1] * a[1] - q[2] * a[0])
    return (
        a[0] + q[0] * tx + q[2] * tz - q[3] * ty,
        a[1] + q[0] * ty + q[3] * tx - q[1] * tz,
        a[2] + q[0] * tz + q[1] * ty - q[2] * tx,
    )


@compiled()
def rotate_back_by(q, a):
    """Turn a world vector into the body frame."""
    return rotate_by(conjugate(q), a)


@compiled()
def from_rotation_vector(a):
    """Return the unit quaternion of a rotation vector (axis times angle) [rad]."""
    angle = norm(a)
    s = math.sin(0.5 * angle) / angle if angle > 1e-9 else 0.5
    return math.cos(0.5 * angle), s * a[0], s * a[1], s * a[2]


@compiled()
def turned(q, a):
    """Return a unit quaternion after a further turn by a rotation vector in its body frame."""
    w, x, y, z = quaternion_product(q, from_rotation_vector(a))
    size = math.sqrt(w**2 + x**2 + y**2 + z**2)
    return w / size, x / size, y / size, z / size


@compiled()
def rotation_between(a, b):
    """Return the rotation vector in the world frame that turns a into b the shorter way [rad]."""
    w = b[0] * a[0] + b[1] * a[1] + b[2] * a[2] + b[3] * a[3]
    x = -b[0] * a[1] + b[1] * a[0] - b[2] * a[3] + b[3] * a[2]
    y = -b[0] * a[2] + b[1] * a[3] + b[2] * a[0] - b[3] * a[1]
    z = -b[0] * a[3] - b[1] * a[2] + b[2] * a[1] + b[3] * a[0]
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    half = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 * math.atan2(half, w) / half if half > 1e-12 else 2.0
    return factor * x, factor * y, factor * z


@compiled()
def body_axes_in_world(q):
    """Return the body's x, y and z axis in the world frame, the matrix's columns: nine numbers."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y),
        2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x),
        2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip


@compiled()
def body_z_in_world(q):
    """Return the third column of the rotation matrix of a unit quaternion."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return 2.0 * (x * z + w * y), 2.0 * (y * z - w * x), w * w - x * x - y * y + z * z


@compiled()
def world_z_in_body(q):
    """Return the third row of the rotation matrix of a unit quaternion."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z


@compiled()
def from_matrix(m):
    """Return the unit quaternion of a rotation matrix, w >= 0 (Shepperd)."""
    m00 = m[0, 0]
    m01 = m[0, 1]
    m02 = m[0, 2]
    m10 = m[1, 0]
    m11 = m[1, 1]
    m12 = m[1, 2]
    m20 = m[2, 0]
    m21 = m[2, 1]
    m22 = m[2, 2]
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
def yaw_of(q):
    """Return the yaw of a unit quaternion in the sequence yaw, pitch, roll [rad]."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


@compiled()
def wrapped(angle_rad):
    """Wrap an angle to [-pi, pi); NaN stays NaN."""
    return angle_rad - 2.0 * math.pi * math.floor((angle_rad + math.pi) / (2.0 * math.pi))
