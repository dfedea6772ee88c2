"""Where the 3x3 blocks of a cable stand: a band of interior nodes, a tail and a border.

A cable has the local points 0 (its end on body A), 1 ... n - 1 (free nodes), n (its end on body B)
and, where it is clamped, the directions of its clamps. Point 0 and A's direction are the border,
the rest is the band: rows 3 (i - 1) of point i, B's direction last. Only the upper triangle of the
symmetric matrix is stored: band[row, k] couples row and row + k.
"""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.elastic.state import (
    AS,
    AXIS_WORLD_A,
    AXIS_WORLD_B,
    B_DOF,
    B_FREE,
    B_MASS,
    BAND,
    BENDS,
    BODY_A,
    BODY_B,
    BORDER,
    BXS,
    BY_RATE,
    DELTA,
    END_FORCE_A,
    END_FORCE_B,
    FIRST_NODE,
    FIRST_ROW,
    IW,
    LEAF_FREE,
    LEAF_G,
    LEAF_INVERSE,
    LEAF_POINT,
    LEAF_SHIFT,
    LENGTH_SHIFT,
    MOMENT_A,
    MOMENT_B,
    RATIO_A,
    REEL_A,
    REEL_FORCE_A,
    REELS,
    RIGHT,
    S_DOF,
    SEGMENTS,
    TAIL,
    TURN_RIGHT,
    VS,
    XS,
)

AXIS_A = -1
"""Local index of A's clamp direction; B's is n + 1."""


@compiled()
def add_block(band, border, corner, first, i, j, k3, factor):
    """Add a symmetric 3x3 block, times a factor, that couples the local points i and j."""
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


# ---------- The lengths that come out at the ends of a cable, in the equations of the shafts.


@compiled()
def add_columns(t, kind, cable, small, small_right):
    """Add the small system's rows of the lengths that come out to the equations of the shafts."""
    shafts, turning, matrix = t.shafts, t.turning, t.matrix
    at = kind[TAIL] + kind[BORDER]
    first_row, first_ratio, first_at = -1, 0.0, 0
    for end in range(2):
        w = kind[REEL_A + end]
        if w < 0:
            continue
        ratio = cable[RATIO_A + end]
        shafts[w, TURN_RIGHT] += ratio * small_right[at]
        if shafts[w, BY_RATE] == 0.0:
            row = turning[w, S_DOF]
            matrix[row, row] += ratio * ratio * small[at, at]
            if first_row >= 0:
                both = ratio * first_ratio * small[at, first_at]
                if row == first_row:
                    matrix[row, row] += 2.0 * both
                else:
                    matrix[max(row, first_row), min(row, first_row)] += both
            first_row, first_ratio, first_at = row, ratio, at
            _add_bodies(t, kind, cable, small, at, ratio, row)
        at += 1


@compiled()
def _add_bodies(t, kind, cable, small, at, ratio, row):
    """Couple one shaft to the bodies at both ends of a cable (points and clamps)."""
    nodes, bodies, numbers, matrix = t.nodes, t.bodies, t.numbers, t.matrix
    for place in range(4):
        if place == 0:
            column, b, node = 0, kind[BODY_B], kind[FIRST_NODE] + kind[SEGMENTS]
        elif place == 2:
            column, b, node = kind[TAIL], kind[BODY_A], kind[FIRST_NODE]
        elif place == 1 and kind[TAIL] == 6:
            column, b, node = 3, kind[BODY_B], -1
        elif place == 3 and kind[BORDER] >= 6:
            column, b, node = kind[TAIL] + 3, kind[BODY_A], -1
        else:
            continue
        dof = numbers[b, B_DOF]
        if dof < 0:
            continue
        fx = ratio * small[at, column]
        fy = ratio * small[at, column + 1]
        fz = ratio * small[at, column + 2]
        if node >= 0:
            x = nodes[node, XS] - bodies[b, BXS]
            y = nodes[node, XS + 1] - bodies[b, BXS + 1]
            z = nodes[node, XS + 2] - bodies[b, BXS + 2]
            matrix[row, dof] += fx
            matrix[row, dof + 1] += fy
            matrix[row, dof + 2] += fz
        else:
            axis = AXIS_WORLD_A if place == 3 else AXIS_WORLD_B
            x, y, z = cable[axis], cable[axis + 1], cable[axis + 2]
        matrix[row, dof + 3] += y * fz - z * fy
        matrix[row, dof + 4] += z * fx - x * fz
        matrix[row, dof + 5] += x * fy - y * fx


@compiled()
def note_reels(kind, cable, small, small_right, shift):
    """What the lengths that come out feel after the solution."""
    at = kind[TAIL] + kind[BORDER]
    size = at + kind[REELS]
    for end in range(2):
        w = kind[REEL_A + end]
        if w < 0:
            continue
        f = small_right[at]
        for j in range(size):
            f -= small[at, j] * shift[j]
        cable[REEL_FORCE_A + end] = f
        at += 1


@compiled()
def shift_reels(kind, cable, shafts, shift, ends):
    """Changes of the lengths that came out, by the solution of the shafts."""
    at = kind[TAIL] + kind[BORDER]
    cable[LENGTH_SHIFT] = 0.0
    column = kind[BORDER]
    for end in range(2):
        w = kind[REEL_A + end]
        if w < 0:
            continue
        out = 0.0
        if shafts[w, BY_RATE] == 0.0:
            out = cable[RATIO_A + end] * shafts[w, TURN_RIGHT]
        shift[at], ends[column] = out, out
        cable[LENGTH_SHIFT] += out
        at, column = at + 1, column + 1


# ---------- Ends of cables on bodies: the body's part of the equations and the way back.


@compiled()
def held_columns(kind, numbers):
    """Columns of the border that end A of a cable does not need: all if its body is prescribed."""
    return kind[BORDER] if numbers[kind[BODY_A], B_FREE] == 0 else 0


@compiled()
def gather_ends(kind, band, border, right, corner, edge, small, small_right, skip):
    """Put what `eliminate` left of tail and border into one small full system."""
    tail, columns = kind[TAIL], kind[BORDER] + kind[REELS]
    row = kind[FIRST_ROW] + 3 * (kind[SEGMENTS] - 1)
    for i in range(tail):
        small_right[i] = right[row + i]
        for j in range(i, tail):
            small[i, j] = small[j, i] = band[row + i, j - i]
        for c in range(skip, columns):
            small[i, tail + c] = small[tail + c, i] = border[row + i, c]
    for c in range(skip, columns):
        small_right[tail + c] = edge[c]
        for e in range(c, columns):
            small[tail + c, tail + e] = small[tail + e, tail + c] = corner[c, e]


@compiled()
def end_arm(kind, cable, nodes, bodies, end, arm):
    """Arm of an end: 0 B's point, 1 B's direction, 2 A's point, 3 A's direction."""
    b = kind[BODY_B] if end < 2 else kind[BODY_A]
    if end == 1:
        arm[:] = cable[AXIS_WORLD_B : AXIS_WORLD_B + 3]
    elif end == 3:
        arm[:] = cable[AXIS_WORLD_A : AXIS_WORLD_A + 3]
    else:
        n = kind[FIRST_NODE] + (kind[SEGMENTS] if end == 0 else 0)
        for k in range(3):
            arm[k] = nodes[n, XS + k] - bodies[b, BXS + k]
    return b


@compiled()
def end_index(kind, end):
    """Where an end stands in the small system; -1 if the cable has no such end."""
    if end == 0:
        return 0
    if end == 1:
        return 3 if kind[TAIL] == 6 else -1
    if end == 2:
        return kind[TAIL]
    return kind[TAIL] + 3 if kind[BORDER] >= 6 else -1


@compiled()
def add_ends(kind, cable, nodes, bodies, numbers, small, small_right, matrix, arms, k3):
    """Add the small system of a cable to the equations of its bodies."""
    for p in range(4):
        at_p = end_index(kind, p)
        if at_p < 0:
            continue
        b = end_arm(kind, cable, nodes, bodies, p, arms[0])
        first = numbers[b, B_DOF]
        if first < 0:
            continue
        body = bodies[b]
        fx, fy, fz = small_right[at_p], small_right[at_p + 1], small_right[at_p + 2]
        r = arms[0]
        if p % 2 == 0:
            body[RIGHT] += fx
            body[RIGHT + 1] += fy
            body[RIGHT + 2] += fz
        body[RIGHT + 3] += r[1] * fz - r[2] * fy
        body[RIGHT + 4] += r[2] * fx - r[0] * fz
        body[RIGHT + 5] += r[0] * fy - r[1] * fx
        for q in range(p, 4):
            at_q = end_index(kind, q)
            if at_q < 0:
                continue
            other = end_arm(kind, cable, nodes, bodies, q, arms[1])
            second = numbers[other, B_DOF]
            if second < 0:
                continue
            for i in range(3):
                for j in range(3):
                    k3[i, j] = small[at_p + i, at_q + j]
            if first > second or (first == second):
                _add_pair(matrix, first, arms[0], p % 2, second, arms[1], q % 2, k3, p != q)
            else:
                for i in range(3):
                    for j in range(i + 1, 3):
                        k3[i, j], k3[j, i] = k3[j, i], k3[i, j]
                _add_pair(matrix, second, arms[1], q % 2, first, arms[0], p % 2, k3, True)


@compiled()
def _add_pair(s, f, a, only_turn_a, g, b, only_turn_b, k3, twice):
    """Add P_a^T K P_b at rows f, columns g (lower triangle; of one body also the transpose)."""
    same = f == g
    for i in range(6):
        # Row i of P_a^T K.
        if i < 3:
            if only_turn_a:
                continue
            x, y, z = k3[i, 0], k3[i, 1], k3[i, 2]
        elif i == 3:
            x = a[1] * k3[2, 0] - a[2] * k3[1, 0]
            y = a[1] * k3[2, 1] - a[2] * k3[1, 1]
            z = a[1] * k3[2, 2] - a[2] * k3[1, 2]
        elif i == 4:
            x = a[2] * k3[0, 0] - a[0] * k3[2, 0]
            y = a[2] * k3[0, 1] - a[0] * k3[2, 1]
            z = a[2] * k3[0, 2] - a[0] * k3[2, 2]
        else:
            x = a[0] * k3[1, 0] - a[1] * k3[0, 0]
            y = a[0] * k3[1, 1] - a[1] * k3[0, 1]
            z = a[0] * k3[1, 2] - a[1] * k3[0, 2]
        for j in range(6):
            if j < 3:
                if only_turn_b:
                    continue
                v = x if j == 0 else (y if j == 1 else z)
            elif j == 3:
                v = b[1] * z - b[2] * y
            elif j == 4:
                v = b[2] * x - b[0] * z
            else:
                v = b[0] * y - b[1] * x
            if not same:
                s[f + i, g + j] += v
            else:
                if j <= i:
                    s[f + i, g + j] += v
                if twice and i <= j:
                    s[f + j, g + i] += v


@compiled()
def spread_ends(
    kind, cable, nodes, bodies, numbers, shafts, small, small_right, right, ends, arms, shift
):
    """Displacements of the ends from those of the bodies, and the forces of the ends."""
    tail = kind[TAIL]
    row = kind[FIRST_ROW] + 3 * (kind[SEGMENTS] - 1)
    size = tail + kind[BORDER] + kind[REELS]
    for end in range(4):
        at = end_index(kind, end)
        if at < 0:
            continue
        b = end_arm(kind, cable, nodes, bodies, end, arms[0])
        r, p = arms[0], bodies[b]
        x = y = z = 0.0
        if numbers[b, B_DOF] >= 0:
            x = p[RIGHT + 4] * r[2] - p[RIGHT + 5] * r[1]
            y = p[RIGHT + 5] * r[0] - p[RIGHT + 3] * r[2]
            z = p[RIGHT + 3] * r[1] - p[RIGHT + 4] * r[0]
            if end % 2 == 0:
                x, y, z = x + p[RIGHT], y + p[RIGHT + 1], z + p[RIGHT + 2]
        shift[at], shift[at + 1], shift[at + 2] = x, y, z
        if end % 2 == 0:
            node = nodes[kind[FIRST_NODE] + (kind[SEGMENTS] if end == 0 else 0)]
            node[DELTA], node[DELTA + 1], node[DELTA + 2] = x, y, z
    for i in range(tail):
        right[row + i] = shift[i]
    for c in range(kind[BORDER]):
        ends[c] = shift[tail + c]
    if kind[REELS] > 0:
        shift_reels(kind, cable, shafts, shift, ends)
    for end in range(4):
        at = end_index(kind, end)
        if at < 0 or (end >= 2 and held_columns(kind, numbers) > 0):
            continue
        column = (END_FORCE_B, MOMENT_B, END_FORCE_A, MOMENT_A)[end]
        for i in range(3):
            f = small_right[at + i]
            for j in range(size):
                f -= small[at + i, j] * shift[j]
            cable[column + i] = f
    if kind[REELS] > 0:
        note_reels(kind, cable, small, small_right, shift)


@compiled()
def hold_end(kind, cable, border, right, corner, edge, ends):
    """Force and moment on the body at end A if it is prescribed, from the solution.

    Its columns of the border are those before the elimination: they reach two nodes at most.
    """
    first = kind[FIRST_ROW]
    last = min(first + 6, first + 3 * (kind[SEGMENTS] - 1) + kind[TAIL])
    held = kind[BORDER]
    for c in range(held):
        f = edge[c]
        for k in range(first, last):
            f -= border[k, c] * right[k]
        for e in range(held, held + kind[REELS]):
            f -= corner[c, e] * ends[e]
        column = END_FORCE_A if c < 3 else MOMENT_A - 3
        cable[column + c] = f


@compiled()
def finish_general(kind, nodes, band, border, right, ends, dh, part, skip):
    """Displacements of a bordered cable's nodes from those of its ends."""
    rows, first = 3 * (kind[SEGMENTS] - 1), kind[FIRST_ROW]
    columns = kind[BORDER] + kind[REELS]
    substitute_back(band, border, right, ends, first, rows, kind[BENDS] != 0, skip, columns)
    start = kind[FIRST_NODE]
    faster = 1.0 / dh
    scale = faster * faster
    for i in range(1, kind[SEGMENTS]):
        node, row = nodes[start + i], first + 3 * (i - 1)
        for k in range(3):
            d = part * right[row + k]
            node[DELTA + k] = d
            node[AS + k] += scale * d
            node[VS + k] += d * faster
            node[XS + k] += d
    for node in (nodes[start], nodes[start + kind[SEGMENTS]]):
        for k in range(3):
            node[DELTA + k] *= part


# ---------- Free bodies with a single cable: eliminated first, as an end mass of their cable.


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
