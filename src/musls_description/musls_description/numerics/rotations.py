"""Rotations as arrays of quaternions [w, x, y, z], (..., 4).

Unit quaternions turn body vectors into world vectors. `vectors` has the same operations
for compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def relative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rotation from b to a: conj(b) a, elementwise over the rows."""
    w1, x1, y1, z1 = parts_of(b * np.array([1.0, -1.0, -1.0, -1.0]))
    w2, x2, y2, z2 = parts_of(a)
    return joined(
        w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
        w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
        w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
        w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
    )


def roll_pitch_yaw(q: np.ndarray) -> np.ndarray:
    """Angles of the sequence yaw (z), pitch (y), roll (x); not unwrapped.

    Roll, pitch, yaw [rad] (..., 3).
    """
    w, x, y, z = parts_of(q)
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return joined(roll, pitch, yaw)


def wrapped(angle_rad: np.ndarray | float) -> np.ndarray:
    """Angles minus the whole turns that bring them to [-pi, pi)."""
    turned = (angle_rad + np.pi) % (2.0 * np.pi)  # 2 pi where a tiny negative angle is rounded
    return np.where(turned >= 2.0 * np.pi, 0.0, turned) - np.pi


def near(angle_rad: np.ndarray | float, about_rad: np.ndarray | float) -> np.ndarray:
    """Angles plus the whole turns that bring them within half a turn of others."""
    return angle_rad + whole_turns(about_rad - angle_rad)


def whole_turns(angle_rad: np.ndarray | float) -> np.ndarray:
    """Whole turns that are next to angles, multiples of 2 pi."""
    return 2.0 * np.pi * np.round(angle_rad / (2.0 * np.pi))


def from_roll_pitch_yaw(angles_rad: np.ndarray) -> np.ndarray:
    """Unit quaternions body to world (..., 4), the inverse of `roll_pitch_yaw`: extrinsic x-y-z."""
    (cr, cp, cy), (sr, sp, sy) = (
        parts_of(f(0.5 * np.asarray(angles_rad))) for f in (np.cos, np.sin)
    )
    return joined(
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def parts_of(vectors: np.ndarray) -> Iterator[np.ndarray]:
    """Components of vectors or quaternions (..., n), n times (...)."""
    return (vectors[..., k] for k in range(vectors.shape[-1]))


def joined(*parts: np.ndarray | float) -> np.ndarray:
    """Vectors or quaternions (..., n) of n components (...); a third of the time of `np.stack`."""
    vectors = np.empty((*np.shape(parts[0]), len(parts)))
    for k, part in enumerate(parts):
        vectors[..., k] = part
    return vectors


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross products (..., 3); `np.cross` takes a multiple of the time, for few and many."""
    (x, y, z) = parts_of(a)
    (u, v, w) = parts_of(b)
    return joined(y * w - z * v, z * u - x * w, x * v - y * u)


def from_yaw(yaw_rad: np.ndarray) -> np.ndarray:
    """Turns about the vertical, (...) [rad] to quaternions."""
    return joined(np.cos(yaw_rad / 2.0), 0.0, 0.0, np.sin(yaw_rad / 2.0))


def yaw_of(q: np.ndarray) -> np.ndarray:
    """Yaw of unit quaternions (..., 4) in the sequence yaw, pitch, roll [rad], (...)."""
    w, x, y, z = parts_of(q)
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def matrix_to_body(q: np.ndarray) -> np.ndarray:
    """Matrices (..., 3, 3) that turn world vectors into the body's frame, of unit quaternions.

    C-contiguous; the rows are the body's axes in the world frame.
    """
    w, x, y, z = parts_of(q)
    rows = joined(
        1 - 2 * (y * y + z * z),
        2 * (x * y + w * z),
        2 * (x * z - w * y),
        2 * (x * y - w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z + w * x),
        2 * (x * z + w * y),
        2 * (y * z - w * x),
        1 - 2 * (x * x + y * y),
    )
    return rows.reshape(*rows.shape[:-1], 3, 3)


def matrix(q: np.ndarray) -> np.ndarray:
    """Matrices (..., 3, 3) that turn the body's vectors into the world's, of unit quaternions.

    The columns are the body's axes in the world frame.
    """
    return np.swapaxes(matrix_to_body(q), -1, -2)


def from_matrix(m: np.ndarray) -> np.ndarray:
    """Inverse of `matrix`: unit quaternions (..., 4), w >= 0.

    Each row of the table below is the quaternion times four times one of its components; the row
    of the largest component keeps all digits (Shepperd 1978).
    """
    (a, b, c), (d, e, f), (g, h, i) = np.moveaxis(np.asarray(m, float), (-2, -1), (0, 1))
    one = np.ones_like(a)
    table = np.array(
        [
            [one + a + e + i, h - f, c - g, d - b],
            [h - f, one + a - e - i, b + d, c + g],
            [c - g, b + d, one - a + e - i, f + h],
            [d - b, c + g, f + h, one - a - e + i],
        ]
    )
    rows = np.moveaxis(table, (0, 1), (-2, -1))
    largest = np.argmax(np.diagonal(rows, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(rows, largest[..., None, None], axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.where(q[..., :1] < 0.0, -q, q)


def from_rotation_vector(vector: np.ndarray) -> np.ndarray:
    """Rotations about axes by angles, both in one vector (..., 3) [rad], to quaternions."""
    half = 0.5 * np.linalg.norm(vector, axis=-1, keepdims=True)
    return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * vector], axis=-1)


def rotation_vector(q: np.ndarray) -> np.ndarray:
    """Inverse of `from_rotation_vector`: the shorter way round, at most pi (..., 3) [rad]."""
    q = np.where(q[..., :1] < 0.0, -q, q)
    sine = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    half = np.arctan2(sine, q[..., :1])
    return 2.0 * q[..., 1:] / np.sinc(half / np.pi)


def intrinsic_xyz(m: np.ndarray) -> np.ndarray:
    """Angles a, b, c with m = Rx(a) Ry(b) Rz(c), of one rotation matrix (3, 3), (3,) [rad].

    Where b is a right angle, only a + c or a - c is given; a is then what rounding makes of it.
    """
    a = np.arctan2(-m[1, 2], m[2, 2])
    back = np.cos(a) * m[1] + np.sin(a) * m[2]  # second row of Rx(a)' m = Ry(b) Rz(c)
    b = np.arctan2(m[0, 2], np.hypot(m[1, 2], m[2, 2]))
    return np.array([a, b, np.arctan2(back[0], back[1])])


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rotation b followed by a, elementwise over the rows (..., 4)."""
    return relative(b, a * np.array([1.0, -1.0, -1.0, -1.0]))


def rotate(q: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Turn vectors by unit quaternions: the vectors in the world frame (..., 3)."""
    t = 2.0 * cross(q[..., 1:], vector)
    return vector + q[..., :1] * t + cross(q[..., 1:], t)


def slerp(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Turn at constant rate from a to b, unit quaternions (n, 4), the shorter way round.

    `share` is 0 at a, 1 at b, (n,).
    """
    q = product(a, from_rotation_vector(share[:, None] * rotation_vector(relative(b, a))))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def chordal_mean(q: np.ndarray) -> np.ndarray:
    """Mean rotations over the first axis of samples (n, m, 4), w >= 0 (m, 4).

    Least sum of squared chordal distances: the eigenvector to the greatest eigenvalue of the sum
    of q q^T (Markley et al. 2007, "Averaging quaternions"), the same as projecting the mean
    rotation matrix onto SO(3); it does not depend on the quaternions' signs. Samples with NaN do
    not count; NaN without samples, or where they are so spread (half of them upside down) that no
    rotation is nearest.
    """
    finite = np.isfinite(q).all(axis=-1, keepdims=True)
    q = np.where(finite, q, 0.0)
    values, vectors = np.linalg.eigh(np.einsum("nmi,nmj->mij", q, q))
    mean = vectors[:, :, -1]
    mean = np.where(mean[:, :1] < 0.0, -mean, mean)
    ambiguous = values[:, -1] - values[:, -2] < 1e-9
    return np.where(ambiguous[:, None], np.nan, mean)
