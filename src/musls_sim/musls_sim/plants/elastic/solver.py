"""Equations of a cable: where their 3x3 blocks stand, elimination, and the ends on the bodies.

A cable has the local points 0 (its end 1), 1 ... n - 1 (free nodes), n (its end 2) and, where it is
clamped, the directions of its clamps. Point 0 and the direction at end 1 are the border, the rest
is the band: rows 3 (i - 1) of point i, the direction at end 2 last. Lengths that come out at the
ends stand in the border behind them. Only the upper triangle of the symmetric matrix is stored:
rows[row].band[k] couples row and row + k.

What is left of a cable after the elimination of its free nodes is a small full system of its ends
(tail, then border), which goes to the equations of its bodies and shafts.
"""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_description.vectors import (
    add,
    cross,
    dot,
    increase,
    put,
    rotate,
    scale,
    sub,
)
from musls_sim.plants.elastic.bodies import point_shift
from musls_sim.plants.elastic.state import BAND, bodies_of, matrix_of, nodes_of, rows_of, shafts_of

AXIS_1 = -1
"""Local index of the clamp's direction at end 1; that at end 2 is n + 1."""


@compiled()
def add_band(rows, row, gap, block, factor):
    """Add a symmetric block (xx, xy, xz, yy, yz, zz) times a factor at a row, `gap` columns on."""
    xx, xy, xz, yy, yz, zz = block
    a, b, c = rows[row].band, rows[row + 1].band, rows[row + 2].band
    a[gap] += factor * xx
    a[gap + 1] += factor * xy
    a[gap + 2] += factor * xz
    b[gap] += factor * yy
    b[gap + 1] += factor * yz
    c[gap] += factor * zz
    if gap > 0:
        b[gap - 1] += factor * xy
        c[gap - 2] += factor * xz
        c[gap - 1] += factor * yz


@compiled()
def add_block(rows, cable, i, j, block, factor):
    """Add a symmetric block, times a factor, that couples the local points i <= j of a cable."""
    if j > 0 and i > 0:
        add_band(rows, cable.first_row + 3 * (i - 1), 3 * (j - i), block, factor)
        return
    xx, xy, xz, yy, yz, zz = block
    if j > 0:
        row, q = cable.first_row + 3 * (j - 1), 0 if i == 0 else 3
        increase(rows[row].border[q : q + 3], (factor * xx, factor * xy, factor * xz))
        increase(rows[row + 1].border[q : q + 3], (factor * xy, factor * yy, factor * yz))
        increase(rows[row + 2].border[q : q + 3], (factor * xz, factor * yz, factor * zz))
        return
    # Both in the border: the point's columns come before the direction's.
    p, q = (0 if j == 0 else 3), (0 if i == 0 else 3)
    corner = cable.corner
    corner[p, q] += factor * xx
    corner[p, q + 1] += factor * xy
    corner[p, q + 2] += factor * xz
    corner[p + 1, q + 1] += factor * yy
    corner[p + 1, q + 2] += factor * yz
    corner[p + 2, q + 2] += factor * zz
    if p != q:
        corner[p + 1, q] += factor * xy
        corner[p + 2, q] += factor * xz
        corner[p + 2, q + 1] += factor * yz


@compiled()
def add_right(rows, cable, i, force):
    """Add a vector to the right-hand side of a local point."""
    if i > 0:
        row = cable.first_row + 3 * (i - 1)
        rows[row].right += force[0]
        rows[row + 1].right += force[1]
        rows[row + 2].right += force[2]
    else:
        at = 0 if i == 0 else 3
        cable.edge[at] += force[0]
        cable.edge[at + 1] += force[1]
        cable.edge[at + 2] += force[2]


@compiled()
def clear(rows, cable):
    """Set the equations of a cable to zero."""
    columns = cable.border + cable.reels
    for k in range(cable.first_row, tail_row(cable) + cable.tail):
        row = rows[k]
        for j in range(1 + BAND):
            row.band[j] = 0.0
        for c in range(columns):
            row.border[c] = 0.0
        row.right = 0.0
    for c in range(columns):
        cable.edge[c] = 0.0
        for e in range(c, columns):
            cable.corner[c, e] = 0.0


@compiled()
def tail_row(cable):
    """First row of the tail: of end 2."""
    return cable.first_row + 3 * (cable.segments - 1)


@compiled()
def eliminate_narrow(rows, first, end):
    """Eliminate the rows first to end - 1 (three per node) of a block tridiagonal matrix (L D L^T).

    The diagonal of eliminated rows becomes its inverse.
    """
    for k in range(first, end, 3):
        b0, b1, b2 = rows[k].band, rows[k + 1].band, rows[k + 2].band
        b3, b4, b5 = rows[k + 3].band, rows[k + 4].band, rows[k + 5].band
        r0 = rows[k].right
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
        r1, r2 = rows[k + 1].right - f1 * r0, rows[k + 2].right - f2 * r0
        r3, r4, r5 = (
            rows[k + 3].right - f3 * r0,
            rows[k + 4].right - f4 * r0,
            rows[k + 5].right - f5 * r0,
        )
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
        rows[k + 1].right, rows[k + 2].right = r1, r2
        rows[k + 3].right, rows[k + 4].right, rows[k + 5].right = (
            r3 - f3 * r2,
            r4 - f4 * r2,
            r5 - f5 * r2,
        )


@compiled()
def eliminate_wide(rows, first, end):
    """The same with couplings to the two nodes that follow, as bending makes them."""
    for k in range(first, end, 3):
        r, s, t = rows[k].band, rows[k + 1].band, rows[k + 2].band
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
        x = rows[k].right
        y = rows[k + 1].right - f * x
        z = rows[k + 2].right - g * x - h * y
        rows[k + 1].right, rows[k + 2].right = y, z
        r, u, v, w = rows[k + 3].band, a3 * p, b2 * q, c1 * o
        rows[k + 3].right -= u * x + v * y + w * z
        r[0] -= u * a3 + v * b2 + w * c1
        r[1] -= u * a4 + v * b3 + w * c2
        r[2] -= u * a5 + v * b4 + w * c3
        r[3] -= u * a6 + v * b5 + w * c4
        r[4] -= u * a7 + v * b6 + w * c5
        r[5] -= u * a8 + v * b7 + w * c6
        r, u, v, w = rows[k + 4].band, a4 * p, b3 * q, c2 * o
        rows[k + 4].right -= u * x + v * y + w * z
        r[0] -= u * a4 + v * b3 + w * c2
        r[1] -= u * a5 + v * b4 + w * c3
        r[2] -= u * a6 + v * b5 + w * c4
        r[3] -= u * a7 + v * b6 + w * c5
        r[4] -= u * a8 + v * b7 + w * c6
        r, u, v, w = rows[k + 5].band, a5 * p, b4 * q, c3 * o
        rows[k + 5].right -= u * x + v * y + w * z
        r[0] -= u * a5 + v * b4 + w * c3
        r[1] -= u * a6 + v * b5 + w * c4
        r[2] -= u * a7 + v * b6 + w * c5
        r[3] -= u * a8 + v * b7 + w * c6
        r, u, v, w = rows[k + 6].band, a6 * p, b5 * q, c4 * o
        rows[k + 6].right -= u * x + v * y + w * z
        r[0] -= u * a6 + v * b5 + w * c4
        r[1] -= u * a7 + v * b6 + w * c5
        r[2] -= u * a8 + v * b7 + w * c6
        r, u, v, w = rows[k + 7].band, a7 * p, b6 * q, c5 * o
        rows[k + 7].right -= u * x + v * y + w * z
        r[0] -= u * a7 + v * b6 + w * c5
        r[1] -= u * a8 + v * b7 + w * c6
        r, u, v, w = rows[k + 8].band, a8 * p, b7 * q, c6 * o
        rows[k + 8].right -= u * x + v * y + w * z
        r[0] -= u * a8 + v * b7 + w * c6


@compiled()
def _eliminate_border(rows, cable, end, skip):
    """What the eliminated rows leave to the border, after them."""
    corner, wide, columns = cable.corner, cable.bends != 0, cable.border + cable.reels
    for k in range(cable.first_row, end, 3):
        r, s, t = rows[k].band, rows[k + 1].band, rows[k + 2].band
        x0, y0, z0 = rows[k].border, rows[k + 1].border, rows[k + 2].border
        u0, v0, w0 = rows[k + 3].border, rows[k + 4].border, rows[k + 5].border
        f, g, h = r[1] * r[0], r[2] * r[0], s[1] * s[0]
        for c in range(skip, columns):
            x = x0[c]
            y = y0[c] - f * x
            z = z0[c] - g * x - h * y
            y0[c], z0[c] = y, z
            x, y, z = x * r[0], y * s[0], z * t[0]
            u0[c] -= r[3] * x + s[2] * y + t[1] * z
            v0[c] -= r[4] * x + s[3] * y + t[2] * z
            w0[c] -= r[5] * x + s[4] * y + t[3] * z
            if wide:
                rows[k + 6].border[c] -= r[6] * x + s[5] * y + t[4] * z
                rows[k + 7].border[c] -= r[7] * x + s[6] * y + t[5] * z
                rows[k + 8].border[c] -= r[8] * x + s[7] * y + t[6] * z
            for e in range(skip, c + 1):
                corner[e, c] -= x0[e] * x + y0[e] * y + z0[e] * z
            cable.edge[c] -= rows[k].right * x + rows[k + 1].right * y + rows[k + 2].right * z


@compiled()
def eliminate(rows, cable, skip):
    """Eliminate the free nodes of one cable, all columns of the border from `skip` on.

    What is left of the tail stands in the band below, of the border in `corner`.
    """
    end = tail_row(cable)
    if cable.bends:
        eliminate_wide(rows, cable.first_row, end)
    else:
        eliminate_narrow(rows, cable.first_row, end)
    if cable.border + cable.reels > skip:
        _eliminate_border(rows, cable, end, skip)


@compiled()
def substitute_back(rows, cable, skip):
    """Solution of the eliminated rows, in place of the right-hand side."""
    columns, shift = cable.border + cable.reels, cable.end_shift[cable.tail :]
    for k in range(tail_row(cable) - 3, cable.first_row - 1, -3):
        r, s, t = rows[k].band, rows[k + 1].band, rows[k + 2].band
        x, y, z = rows[k].right, rows[k + 1].right, rows[k + 2].right
        for c in range(skip, columns):
            x -= rows[k].border[c] * shift[c]
            y -= rows[k + 1].border[c] * shift[c]
            z -= rows[k + 2].border[c] * shift[c]
        u, v, w = rows[k + 3].right, rows[k + 4].right, rows[k + 5].right
        x -= r[3] * u + r[4] * v + r[5] * w
        y -= s[2] * u + s[3] * v + s[4] * w
        z -= t[1] * u + t[2] * v + t[3] * w
        if cable.bends:
            u, v, w = rows[k + 6].right, rows[k + 7].right, rows[k + 8].right
            x -= r[6] * u + r[7] * v + r[8] * w
            y -= s[5] * u + s[6] * v + s[7] * w
            z -= t[4] * u + t[5] * v + t[6] * w
        z *= t[0]
        y = (y - s[1] * z) * s[0]
        x = (x - r[1] * y - r[2] * z) * r[0]
        rows[k].right, rows[k + 1].right, rows[k + 2].right = x, y, z


@compiled()
def solve_envelope(s, unknowns, n):
    """Solve a symmetric positive definite system in place (Cholesky within an envelope)."""
    for i in range(n):
        for j in range(unknowns[i].first, i + 1):
            a = s[i, j]
            for k in range(max(unknowns[i].first, unknowns[j].first), j):
                a -= s[i, k] * s[j, k]
            if j < i:
                s[i, j] = a * s[j, j]
            elif a > 0.0:
                s[i, i] = 1.0 / a**0.5
            else:
                return False
    for i in range(n):
        a = unknowns[i].value
        for k in range(unknowns[i].first, i):
            a -= s[i, k] * unknowns[k].value
        unknowns[i].value = a * s[i, i]
    for i in range(n - 1, -1, -1):
        x = unknowns[i].value * s[i, i]
        unknowns[i].value = x
        for k in range(unknowns[i].first, i):
            unknowns[k].value -= s[i, k] * x
    return True


# ---------- Ends of cables on bodies and on shafts
#
# A point at the arm r from a body's centre moves by d + t x r when the body moves by d and turns
# by t; the direction of a clamp moves by t x direction. With the 3x6 tables P of these, a cable's
# equations of its ends become equations of the bodies: P^T K P.


@compiled()
def held_columns(cable, bodies):
    """Columns of the border that end 1 of a cable does not need: all if its body is prescribed."""
    return cable.border if bodies[cable.body[0]].free == 0 else 0


@compiled()
def gather_ends(rows, cable, skip):
    """Put what `eliminate` left of tail and border into one small full system."""
    ends, right, corner = cable.ends, cable.ends_right, cable.corner
    tail, columns, row = cable.tail, cable.border + cable.reels, tail_row(cable)
    for i in range(tail):
        right[i] = rows[row + i].right
        for j in range(i, tail):
            ends[i, j] = ends[j, i] = rows[row + i].band[j - i]
        for c in range(skip, columns):
            ends[i, tail + c] = ends[tail + c, i] = rows[row + i].border[c]
    for c in range(skip, columns):
        right[tail + c] = cable.edge[c]
        for e in range(c, columns):
            ends[tail + c, tail + e] = ends[tail + e, tail + c] = corner[c, e]


@compiled()
def end_node(cable, end):
    """Index of the node at end 0 or 1."""
    return cable.first_node + end * cable.segments


@compiled()
def end_arm(t, cable, end, clamp):
    """Arm with which an end's point, or the direction of its clamp, turns with its body."""
    if clamp:
        axis = cable.axis_world[end]
        return axis[0], axis[1], axis[2]
    return sub(
        nodes_of(t)[end_node(cable, end)].stage.position,
        bodies_of(t)[cable.body[end]].stage.position,
    )


@compiled()
def end_index(cable, end, clamp):
    """Where an end's point or clamp stands in the small system; -1 if the cable has no such."""
    if end == 1:
        return (3 if cable.tail == 6 else -1) if clamp else 0
    return (cable.tail + 3 if cable.border >= 6 else -1) if clamp else cable.tail


@compiled()
def add_ends(t, cable):
    """Add the small system of a cable to the equations of its bodies."""
    ends, right = cable.ends, cable.ends_right
    for p in range(4):  # point and clamp of end 2, then of end 1
        end_p, clamp_p = 1 - p // 2, p % 2 == 1
        at_p, body = end_index(cable, end_p, clamp_p), bodies_of(t)[cable.body[end_p]]
        if at_p < 0 or body.dof < 0:
            continue
        arm_p = end_arm(t, cable, end_p, clamp_p)
        force = right[at_p], right[at_p + 1], right[at_p + 2]
        if not clamp_p:
            increase(body.force, force)
        increase(body.moment, cross(arm_p, force))
        for q in range(p, 4):
            end_q, clamp_q = 1 - q // 2, q % 2 == 1
            at_q, other = end_index(cable, end_q, clamp_q), bodies_of(t)[cable.body[end_q]]
            if at_q < 0 or other.dof < 0:
                continue
            arm_q = end_arm(t, cable, end_q, clamp_q)
            if body.dof >= other.dof:
                pair = ends[at_p : at_p + 3, at_q : at_q + 3]
                _add_pair(matrix_of(t), (body.dof, other.dof), (arm_p, arm_q), (clamp_p, clamp_q),
                          pair, p != q)  # fmt: skip
            else:
                pair = ends[at_q : at_q + 3, at_p : at_p + 3]
                _add_pair(matrix_of(t), (other.dof, body.dof), (arm_q, arm_p), (clamp_q, clamp_p),
                          pair, True)  # fmt: skip


@compiled()
def _add_pair(s, firsts, arms, clamps, k3, twice):
    """Add P_a^T K P_b at rows and columns `firsts` (lower triangle; of one body also transposed).

    P = [1, -[arm]] for a point, [0, -[arm]] for the direction of a clamp.
    """
    (f, g), (a, b) = firsts, arms
    c1 = k3[0, 0], k3[1, 0], k3[2, 0]
    c2 = k3[0, 1], k3[1, 1], k3[2, 1]
    c3 = k3[0, 2], k3[1, 2], k3[2, 2]
    t1, t2, t3 = cross(a, c1), cross(a, c2), cross(a, c3)
    for i in range(6):
        if i < 3 and clamps[0]:
            continue
        # Row i of P_a^T K, then of P_a^T K P_b.
        if i < 3:
            row = k3[i, 0], k3[i, 1], k3[i, 2]
        elif i == 3:
            row = t1[0], t2[0], t3[0]
        elif i == 4:
            row = t1[1], t2[1], t3[1]
        else:
            row = t1[2], t2[2], t3[2]
        turned = cross(b, row)
        if not clamps[1]:
            _add_three(s, f, g, i, 0, row, twice)
        _add_three(s, f, g, i, 3, turned, twice)


@compiled()
def _add_three(s, f, g, i, first, values, twice):
    """Add three numbers of a row of a pair, see `_add_pair`."""
    for j, v in ((first, values[0]), (first + 1, values[1]), (first + 2, values[2])):
        if f != g or j <= i:
            s[f + i, g + j] += v
        if f == g and twice and i <= j:
            s[f + j, g + i] += v


@compiled()
def add_shafts(t, cable):
    """Add the small system's rows of the lengths that come out to the equations of the shafts."""
    ends, matrix = cable.ends, matrix_of(t)
    at, first_row, first_ratio, first_at = cable.tail + cable.border, -1, 0.0, 0
    for end in range(2):
        if cable.reel[end] < 0:
            continue
        shaft, ratio = shafts_of(t)[cable.reel[end]], cable.ratio[end]
        shaft.right += ratio * cable.ends_right[at]
        if shaft.by_rate == 0.0:
            row = shaft.dof
            matrix[row, row] += ratio * ratio * ends[at, at]
            if first_row >= 0:
                both = ratio * first_ratio * ends[at, first_at]
                if row == first_row:
                    matrix[row, row] += 2.0 * both
                else:
                    matrix[max(row, first_row), min(row, first_row)] += both
            first_row, first_ratio, first_at = row, ratio, at
            _couple_bodies(t, cable, at, ratio, row)
        at += 1


@compiled()
def _couple_bodies(t, cable, at, ratio, row):
    """Couple one shaft to the bodies at both ends of a cable (points and clamps)."""
    for p in range(4):
        end, clamp = 1 - p // 2, p % 2 == 1
        column, dof = end_index(cable, end, clamp), bodies_of(t)[cable.body[end]].dof
        if column < 0 or dof < 0:
            continue
        line = cable.ends[at]
        force = scale(ratio, (line[column], line[column + 1], line[column + 2]))
        if not clamp:
            increase(matrix_of(t)[row, dof : dof + 3], force)
        increase(matrix_of(t)[row, dof + 3 : dof + 6], cross(end_arm(t, cable, end, clamp), force))


@compiled()
def spread_ends(t, cable):
    """Displacements of the ends from those of the bodies, and the forces of the ends."""
    ends, right, shift = cable.ends, cable.ends_right, cable.end_shift
    tail, row = cable.tail, tail_row(cable)
    size = tail + cable.border + cable.reels
    for p in range(4):
        end, clamp = 1 - p // 2, p % 2 == 1
        at = end_index(cable, end, clamp)
        if at < 0:
            continue
        body, moved = bodies_of(t)[cable.body[end]], (0.0, 0.0, 0.0)
        if body.dof >= 0:
            arm = end_arm(t, cable, end, clamp)
            moved = cross(body.spin, arm) if clamp else point_shift(body, arm)
        put(shift[at : at + 3], moved)
        if not clamp:
            put(nodes_of(t)[end_node(cable, end)].shift, moved)
    for i in range(tail):
        rows_of(t)[row + i].right = shift[i]
    _shift_reels(t, cable)
    for p in range(4):
        end, clamp = 1 - p // 2, p % 2 == 1
        at = end_index(cable, end, clamp)
        if at < 0 or (end == 0 and held_columns(cable, bodies_of(t)) > 0):
            continue
        held = cable.moment[end] if clamp else cable.force[end]
        for i in range(3):
            f = right[at + i]
            for j in range(size):
                f -= ends[at + i, j] * shift[j]
            held[i] = f
    at = tail + cable.border
    for end in range(2):
        if cable.reel[end] >= 0:
            f = right[at]
            for j in range(size):
                f -= ends[at, j] * shift[j]
            cable.reel_force[end] = f
            at += 1


@compiled()
def _shift_reels(t, cable):
    """Changes of the lengths that came out, by the solution of the shafts."""
    at = cable.tail + cable.border
    cable.length_shift = 0.0
    for end in range(2):
        if cable.reel[end] < 0:
            continue
        shaft, out = shafts_of(t)[cable.reel[end]], 0.0
        if shaft.by_rate == 0.0:
            out = cable.ratio[end] * shaft.right
        cable.end_shift[at] = out
        cable.length_shift += out
        at += 1


@compiled()
def hold_end(rows, cable):
    """Force and moment on the body at end 1 if it is prescribed, from the solution.

    Its columns of the border are those before the elimination: they reach two nodes at most.
    """
    first, held, shift = cable.first_row, cable.border, cable.end_shift[cable.tail :]
    last = min(first + 6, tail_row(cable) + cable.tail)
    for c in range(held):
        f = cable.edge[c]
        for k in range(first, last):
            f -= rows[k].border[c] * rows[k].right
        for e in range(held, held + cable.reels):
            f -= cable.corner[c, e] * shift[e]
        if c < 3:
            cable.force[0, c] = f
        else:
            cable.moment[0, c - 3] = f


@compiled()
def move_nodes(t, cable, dh, part, skip):
    """Displacements of a bordered cable's nodes from those of its ends, times `part`."""
    rows, nodes = rows_of(t), nodes_of(t)
    substitute_back(rows, cable, skip)
    faster = 1.0 / dh
    for i in range(1, cable.segments):
        node, k = nodes[cable.first_node + i], cable.first_row + 3 * (i - 1)
        shift = scale(part, (rows[k].right, rows[k + 1].right, rows[k + 2].right))
        put(node.shift, shift)
        increase(node.stage.acceleration, scale(faster * faster, shift))
        increase(node.stage.velocity, scale(faster, shift))
        increase(node.stage.position, shift)
    for end in range(2):
        node = nodes[end_node(cable, end)]
        put(node.shift, scale(part, node.shift))


# ---------- Free bodies with a single cable: an end mass of it, a "leaf"


@compiled()
def _invert_symmetric(a, out):
    """Inverse of a symmetric matrix (3, 3)."""
    c0 = a[1, 1] * a[2, 2] - a[1, 2] * a[1, 2]
    c1 = a[0, 2] * a[1, 2] - a[0, 1] * a[2, 2]
    c2 = a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1]
    d = 1.0 / (a[0, 0] * c0 + a[0, 1] * c1 + a[0, 2] * c2)
    out[0, 0], out[0, 1], out[0, 2] = c0 * d, c1 * d, c2 * d
    out[1, 1] = (a[0, 0] * a[2, 2] - a[0, 2] * a[0, 2]) * d
    out[1, 2] = (a[0, 1] * a[0, 2] - a[0, 0] * a[1, 2]) * d
    out[2, 2] = (a[0, 0] * a[1, 1] - a[0, 1] * a[0, 1]) * d
    out[1, 0], out[2, 0], out[2, 1] = out[0, 1], out[0, 2], out[1, 2]


# With S the body's own matrix (6, 6), f its right-hand side and P the 3x6 table of the cable's
# point (`coupling`), the point sees a mass-like matrix C^-1 with C = P S^-1 P^T and moves by P
# S^-1 f when nothing pulls it. A drone on one cable thus costs no unknown of its own.


@compiled()
def invert_free(body, dh):
    """Inverse of a leaf's matrix where nothing but its inertia acts."""
    inverse, turn = body.leaf_inverse, body.leaf_stiffness
    inverse[:] = 0.0
    _invert_symmetric(body.stage.inertia, turn)
    for i in range(3):
        inverse[i, i] = dh * dh / body.mass
        for j in range(3):
            inverse[3 + i, 3 + j] = dh * dh * turn[i, j]


@compiled()
def invert_touching(s):
    """Inverse of a leaf's full matrix in place, given its lower triangle, (6, 6).

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


@compiled()
def prepare_leaf(body, node):
    """Matrix and free displacement of a leaf's point from its inverse and right-hand side.

    With the point's P = [1, -[arm]]: S^-1 P^T, the point's matrix (P S^-1 P^T)^-1, the free
    displacement S^-1 f and P S^-1 f.
    """
    s, g, free = body.leaf_inverse, body.leaf_arm, body.leaf_free
    arm = sub(node.stage.position, body.stage.position)
    for i in range(6):
        moved, turned = (s[i, 0], s[i, 1], s[i, 2]), (s[i, 3], s[i, 4], s[i, 5])
        put(g[i], add(moved, cross(turned, arm)))
        free[i] = dot(moved, body.force) + dot(turned, body.moment)
    c = s  # no longer needed: room for the point's
    for j in range(3):
        moved = cross((g[3, j], g[4, j], g[5, j]), arm)
        c[0, j], c[1, j], c[2, j] = g[0, j] + moved[0], g[1, j] + moved[1], g[2, j] + moved[2]
    _invert_symmetric(c, body.leaf_stiffness)
    moved = cross((free[3], free[4], free[5]), arm)
    put(body.leaf_shift, add((free[0], free[1], free[2]), moved))


@compiled()
def move_leaf(body, shift):
    """Displacement of a leaf from that of its point."""
    g, free = body.leaf_arm, body.leaf_free
    force = rotate(body.leaf_stiffness, sub(shift, body.leaf_shift))
    put(
        body.shift,
        (free[0] + dot(g[0], force), free[1] + dot(g[1], force), free[2] + dot(g[2], force)),
    )
    put(
        body.spin,
        (free[3] + dot(g[3], force), free[4] + dot(g[4], force), free[5] + dot(g[5], force)),
    )
