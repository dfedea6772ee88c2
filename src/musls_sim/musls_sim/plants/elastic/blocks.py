"""Where the 3x3 blocks of a cable stand: a band of interior nodes, a tail and a border.

A cable has the local points 0 (its end on body A), 1 ... n - 1 (free nodes), n (its end on body B)
and, where it is clamped, the directions of its clamps. Point 0 and A's direction are the border,
the rest is the band: rows 3 (i - 1) of point i, B's direction last. Only the upper triangle of the
symmetric matrix is stored: band[row, k] couples row and row + k.
"""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.elastic.columns import BAND

AXIS_A = -1
"""Local index of A's clamp direction; B's is n + 1."""


@compiled()
def add_block(band, border, corner, first, i, j, k3, factor):
    """Add a symmetric 3x3 block, times a factor, that couples the local points i and j (and j, i)."""
    if i > j:
        i, j = j, i
    if j <= 0:  # both in the border: the point's columns come before the direction's
        p, q = (0 if i == 0 else 3), (0 if j == 0 else 3)
        if p > q:
            p, q = q, p
        for r in range(3):
            for c in range(r if p == q else 0, 3):
                corner[p + r, q + c] += factor * k3[r, c]
    elif i <= 0:
        column, row = (0 if i == 0 else 3), first + 3 * (j - 1)
        for r in range(3):
            for c in range(3):
                border[row + r, column + c] += factor * k3[r, c]
    else:
        row, gap = first + 3 * (i - 1), 3 * (j - i)
        for r in range(3):
            for c in range(r if gap == 0 else 0, 3):
                band[row + r, gap + c - r] += factor * k3[r, c]


@compiled()
def clear(band, border, right, corner, edge, first, end, columns):
    """Set the equations of a cable to zero."""
    for k in range(first, end):
        row = band[k]
        for j in range(1 + BAND):
            row[j] = 0.0
        for c in range(columns):
            border[k, c] = 0.0
        right[k] = 0.0
    for c in range(columns):
        edge[c] = 0.0
        for e in range(c, columns):
            corner[c, e] = 0.0


@compiled()
def add_right(right, corner_right, first, i, x, y, z):
    """Add a vector to the right-hand side of local point i."""
    if i > 0:
        row = first + 3 * (i - 1)
        right[row] += x
        right[row + 1] += y
        right[row + 2] += z
    else:
        c = 0 if i == 0 else 3
        corner_right[c] += x
        corner_right[c + 1] += y
        corner_right[c + 2] += z


@compiled()
def eliminate_narrow(band, right, first, end):
    """Eliminate the rows first to end - 1 (three per node) of a block tridiagonal matrix (L D L^T).

    The diagonal of eliminated rows becomes its inverse.
    """
    for k in range(first, end, 3):
        b0, b1, b2, b3, b4, b5 = (
            band[k],
            band[k + 1],
            band[k + 2],
            band[k + 3],
            band[k + 4],
            band[k + 5],
        )
        r0 = right[k]
        p = 1.0 / b0[0]
        a1, a2, a3, a4, a5 = b0[1], b0[2], b0[3], b0[4], b0[5]
        f1, f2, f3, f4, f5 = a1 * p, a2 * p, a3 * p, a4 * p, a5 * p
        c0, c1, c2, c3, c4 = (
            b1[0] - f1 * a1,
            b1[1] - f1 * a2,
            b1[2] - f1 * a3,
            b1[3] - f1 * a4,
            b1[4] - f1 * a5,
        )
        d0, d1, d2, d3 = b2[0] - f2 * a2, b2[1] - f2 * a3, b2[2] - f2 * a4, b2[3] - f2 * a5
        e0, e1, e2 = b3[0] - f3 * a3, b3[1] - f3 * a4, b3[2] - f3 * a5
        g0, g1, h0 = b4[0] - f4 * a4, b4[1] - f4 * a5, b5[0] - f5 * a5
        r1, r2 = right[k + 1] - f1 * r0, right[k + 2] - f2 * r0
        r3, r4, r5 = right[k + 3] - f3 * r0, right[k + 4] - f4 * r0, right[k + 5] - f5 * r0
        b0[0] = p
        p = 1.0 / c0
        f2, f3, f4, f5 = c1 * p, c2 * p, c3 * p, c4 * p
        d0, d1, d2, d3 = d0 - f2 * c1, d1 - f2 * c2, d2 - f2 * c3, d3 - f2 * c4
        e0, e1, e2 = e0 - f3 * c2, e1 - f3 * c3, e2 - f3 * c4
        g0, g1, h0 = g0 - f4 * c3, g1 - f4 * c4, h0 - f5 * c4
        r2, r3, r4, r5 = r2 - f2 * r1, r3 - f3 * r1, r4 - f4 * r1, r5 - f5 * r1
        b1[0], b1[1], b1[2], b1[3], b1[4] = p, c1, c2, c3, c4
        p = 1.0 / d0
        f3, f4, f5 = d1 * p, d2 * p, d3 * p
        b2[0], b2[1], b2[2], b2[3] = p, d1, d2, d3
        b3[0], b3[1], b3[2] = e0 - f3 * d1, e1 - f3 * d2, e2 - f3 * d3
        b4[0], b4[1], b5[0] = g0 - f4 * d2, g1 - f4 * d3, h0 - f5 * d3
        right[k + 1], right[k + 2] = r1, r2
        right[k + 3], right[k + 4], right[k + 5] = r3 - f3 * r2, r4 - f4 * r2, r5 - f5 * r2


@compiled()
def eliminate_wide(band, right, first, end):
    """The same with couplings to the two nodes that follow, as bending makes them."""
    for k in range(first, end, 3):
        r, s, t = band[k], band[k + 1], band[k + 2]
        p, a1, a2 = 1.0 / r[0], r[1], r[2]
        a3, a4, a5, a6, a7, a8 = r[3], r[4], r[5], r[6], r[7], r[8]
        f, g = a1 * p, a2 * p
        q, b1 = 1.0 / (s[0] - f * a1), s[1] - f * a2
        b2, b3, b4 = s[2] - f * a3, s[3] - f * a4, s[4] - f * a5
        b5, b6, b7 = s[5] - f * a6, s[6] - f * a7, s[7] - f * a8
        h = b1 * q
        o = 1.0 / (t[0] - g * a2 - h * b1)
        c1, c2 = t[1] - g * a3 - h * b2, t[2] - g * a4 - h * b3
        c3, c4 = t[3] - g * a5 - h * b4, t[4] - g * a6 - h * b5
        c5, c6 = t[5] - g * a7 - h * b6, t[6] - g * a8 - h * b7
        r[0], s[0], t[0] = p, q, o
        s[1], s[2], s[3], s[4], s[5], s[6], s[7] = b1, b2, b3, b4, b5, b6, b7
        t[1], t[2], t[3], t[4], t[5], t[6] = c1, c2, c3, c4, c5, c6
        x = right[k]
        y = right[k + 1] - f * x
        z = right[k + 2] - g * x - h * y
        right[k + 1], right[k + 2] = y, z
        r, u, v, w = band[k + 3], a3 * p, b2 * q, c1 * o
        right[k + 3] -= u * x + v * y + w * z
        r[0] -= u * a3 + v * b2 + w * c1
        r[1] -= u * a4 + v * b3 + w * c2
        r[2] -= u * a5 + v * b4 + w * c3
        r[3] -= u * a6 + v * b5 + w * c4
        r[4] -= u * a7 + v * b6 + w * c5
        r[5] -= u * a8 + v * b7 + w * c6
        r, u, v, w = band[k + 4], a4 * p, b3 * q, c2 * o
        right[k + 4] -= u * x + v * y + w * z
        r[0] -= u * a4 + v * b3 + w * c2
        r[1] -= u * a5 + v * b4 + w * c3
        r[2] -= u * a6 + v * b5 + w * c4
        r[3] -= u * a7 + v * b6 + w * c5
        r[4] -= u * a8 + v * b7 + w * c6
        r, u, v, w = band[k + 5], a5 * p, b4 * q, c3 * o
        right[k + 5] -= u * x + v * y + w * z
        r[0] -= u * a5 + v * b4 + w * c3
        r[1] -= u * a6 + v * b5 + w * c4
        r[2] -= u * a7 + v * b6 + w * c5
        r[3] -= u * a8 + v * b7 + w * c6
        r, u, v, w = band[k + 6], a6 * p, b5 * q, c4 * o
        right[k + 6] -= u * x + v * y + w * z
        r[0] -= u * a6 + v * b5 + w * c4
        r[1] -= u * a7 + v * b6 + w * c5
        r[2] -= u * a8 + v * b7 + w * c6
        r, u, v, w = band[k + 7], a7 * p, b6 * q, c5 * o
        right[k + 7] -= u * x + v * y + w * z
        r[0] -= u * a7 + v * b6 + w * c5
        r[1] -= u * a8 + v * b7 + w * c6
        r, u, v, w = band[k + 8], a8 * p, b7 * q, c6 * o
        right[k + 8] -= u * x + v * y + w * z
        r[0] -= u * a8 + v * b7 + w * c6


@compiled()
def _eliminate_border(band, border, right, corner, corner_right, first, end, wide, skip, columns):
    """What the eliminated rows leave to the border, after them."""
    for k in range(first, end, 3):
        r, s, t = band[k], band[k + 1], band[k + 2]
        f, g, h = r[1] * r[0], r[2] * r[0], s[1] * s[0]
        for c in range(skip, columns):
            x = border[k, c]
            y = border[k + 1, c] - f * x
            z = border[k + 2, c] - g * x - h * y
            border[k + 1, c], border[k + 2, c] = y, z
            x, y, z = x * r[0], y * s[0], z * t[0]
            border[k + 3, c] -= r[3] * x + s[2] * y + t[1] * z
            border[k + 4, c] -= r[4] * x + s[3] * y + t[2] * z
            border[k + 5, c] -= r[5] * x + s[4] * y + t[3] * z
            if wide:
                border[k + 6, c] -= r[6] * x + s[5] * y + t[4] * z
                border[k + 7, c] -= r[7] * x + s[6] * y + t[5] * z
                border[k + 8, c] -= r[8] * x + s[7] * y + t[6] * z
            for e in range(skip, c + 1):
                corner[e, c] -= border[k, e] * x + border[k + 1, e] * y + border[k + 2, e] * z
            corner_right[c] -= right[k] * x + right[k + 1] * y + right[k + 2] * z


@compiled()
def eliminate(band, border, right, corner, corner_right, first, rows, wide, skip, columns):
    """Eliminate the free nodes of one cable.

    What is left of the tail stands in the band below, of the border in `corner`.
    """
    end = first + rows
    if wide:
        eliminate_wide(band, right, first, end)
    else:
        eliminate_narrow(band, right, first, end)
    if columns > skip:
        _eliminate_border(
            band, border, right, corner, corner_right, first, end, wide, skip, columns
        )


@compiled()
def substitute_back(band, border, right, ends, first, rows, wide, skip, columns):
    """Solution of the eliminated rows, in place of the right-hand side."""
    for k in range(first + rows - 3, first - 1, -3):
        r, s, t = band[k], band[k + 1], band[k + 2]
        x, y, z = right[k], right[k + 1], right[k + 2]
        for c in range(skip, columns):
            x -= border[k, c] * ends[c]
            y -= border[k + 1, c] * ends[c]
            z -= border[k + 2, c] * ends[c]
        u, v, w = right[k + 3], right[k + 4], right[k + 5]
        x -= r[3] * u + r[4] * v + r[5] * w
        y -= s[2] * u + s[3] * v + s[4] * w
        z -= t[1] * u + t[2] * v + t[3] * w
        if wide:
            u, v, w = right[k + 6], right[k + 7], right[k + 8]
            x -= r[6] * u + r[7] * v + r[8] * w
            y -= s[5] * u + s[6] * v + s[7] * w
            z -= t[4] * u + t[5] * v + t[6] * w
        z *= t[0]
        y = (y - s[1] * z) * s[0]
        x = (x - r[1] * y - r[2] * z) * r[0]
        right[k], right[k + 1], right[k + 2] = x, y, z


@compiled()
def solve_envelope(s, first, x, n):
    """Solve a symmetric positive definite system in place (Cholesky within an envelope)."""
    for i in range(n):
        for j in range(first[i], i + 1):
            a = s[i, j]
            for k in range(max(first[i], first[j]), j):
                a -= s[i, k] * s[j, k]
            if j < i:
                s[i, j] = a * s[j, j]
            elif a > 0.0:
                s[i, i] = 1.0 / a**0.5
            else:
                return False
    for i in range(n):
        a = x[i]
        for k in range(first[i], i):
            a -= s[i, k] * x[k]
        x[i] = a * s[i, i]
    for i in range(n - 1, -1, -1):
        x[i] *= s[i, i]
        for k in range(first[i], i):
            x[k] -= s[i, k] * x[i]
    return True
