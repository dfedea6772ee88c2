"""Free bodies with a single cable: eliminated first, as an end mass of their cable.

With S the body's own matrix (6, 6), f its right-hand side and P the 3x6 table of the cable's point
(`coupling`), the point sees a mass-like matrix C^-1 with C = P S^-1 P^T and moves by P S^-1 f when
nothing pulls it. A drone on one cable thus costs no unknown of its own.
"""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.elastic.columns import (
    B_MASS,
    BXS,
    IW,
    LEAF_FREE,
    LEAF_G,
    LEAF_INVERSE,
    LEAF_POINT,
    LEAF_SHIFT,
    RIGHT,
    XS,
)


@compiled()
def invert3(a, out):
    """Inverse of a symmetric 3x3 table given row by row, (9,) each."""
    c0 = a[4] * a[8] - a[5] * a[5]
    c1 = a[2] * a[5] - a[1] * a[8]
    c2 = a[1] * a[5] - a[2] * a[4]
    d = 1.0 / (a[0] * c0 + a[1] * c1 + a[2] * c2)
    out[0], out[1], out[2] = c0 * d, c1 * d, c2 * d
    out[4] = (a[0] * a[8] - a[2] * a[2]) * d
    out[5] = (a[1] * a[2] - a[0] * a[5]) * d
    out[8] = (a[0] * a[4] - a[1] * a[1]) * d
    out[3], out[6], out[7] = out[1], out[2], out[5]


@compiled()
def invert_free(p, dh):
    """Inverse of a body's matrix where nothing but its inertia acts, into `LEAF_INVERSE`."""
    inverse = p[LEAF_INVERSE : LEAF_INVERSE + 36]
    inverse[:] = 0.0
    turn = p[LEAF_POINT : LEAF_POINT + 9]
    invert3(p[IW : IW + 9], turn)
    for i in range(3):
        inverse[7 * i] = dh * dh / p[B_MASS]
        for j in range(3):
            inverse[6 * (3 + i) + 3 + j] = dh * dh * turn[3 * i + j]


@compiled()
def invert_touching(s, p):
    """Inverse of a body's full matrix (lower triangle of a 6x6 table), into `LEAF_INVERSE`.

    Gauss and Jordan without pivoting, for a positive definite matrix.
    """
    for i in range(6):
        for j in range(i):
            s[j, i] = s[i, j]
    for k in range(6):
        d = 1.0 / s[k, k]
        s[k, k] = 1.0
        for j in range(6):
            s[k, j] *= d
        for i in range(6):
            if i != k:
                f = s[i, k]
                s[i, k] = 0.0
                for j in range(6):
                    s[i, j] -= f * s[k, j]
    for i in range(6):
        for j in range(6):
            p[LEAF_INVERSE + 6 * i + j] = s[i, j]


@compiled()
def prepare_leaf(p, node):
    """Matrix and free displacement of a leaf's point from its inverse and right-hand side."""
    s, g = p[LEAF_INVERSE : LEAF_INVERSE + 36], p[LEAF_G : LEAF_G + 18]
    rx, ry, rz = node[XS] - p[BXS], node[XS + 1] - p[BXS + 1], node[XS + 2] - p[BXS + 2]
    for i in range(6):
        a, b, c = s[6 * i + 3], s[6 * i + 4], s[6 * i + 5]
        # S^-1 P^T, P^T = [1; [r]]: row i of S^-1 times [r], its translations added.
        g[3 * i] = s[6 * i] + b * rz - c * ry
        g[3 * i + 1] = s[6 * i + 1] + c * rx - a * rz
        g[3 * i + 2] = s[6 * i + 2] + a * ry - b * rx
        free = 0.0
        for j in range(6):
            free += s[6 * i + j] * p[RIGHT + j]
        p[LEAF_FREE + i] = free
    c = p[LEAF_INVERSE : LEAF_INVERSE + 9]  # no longer needed: room for C
    for j in range(3):
        tx, ty, tz = g[9 + j], g[12 + j], g[15 + j]
        c[j] = g[j] + ty * rz - tz * ry
        c[3 + j] = g[3 + j] + tz * rx - tx * rz
        c[6 + j] = g[6 + j] + tx * ry - ty * rx
    invert3(c, p[LEAF_POINT : LEAF_POINT + 9])
    tx, ty, tz = p[LEAF_FREE + 3], p[LEAF_FREE + 4], p[LEAF_FREE + 5]
    p[LEAF_SHIFT] = p[LEAF_FREE] + ty * rz - tz * ry
    p[LEAF_SHIFT + 1] = p[LEAF_FREE + 1] + tz * rx - tx * rz
    p[LEAF_SHIFT + 2] = p[LEAF_FREE + 2] + tx * ry - ty * rx


@compiled()
def move_leaf(p, x, y, z):
    """Displacement of a leaf, into `RIGHT`, from that of its point."""
    x, y, z = x - p[LEAF_SHIFT], y - p[LEAF_SHIFT + 1], z - p[LEAF_SHIFT + 2]
    m = p[LEAF_POINT : LEAF_POINT + 9]
    fx = m[0] * x + m[1] * y + m[2] * z
    fy = m[3] * x + m[4] * y + m[5] * z
    fz = m[6] * x + m[7] * y + m[8] * z
    g = p[LEAF_G : LEAF_G + 18]
    for i in range(6):
        p[RIGHT + i] = p[LEAF_FREE + i] + g[3 * i] * fx + g[3 * i + 1] * fy + g[3 * i + 2] * fz
