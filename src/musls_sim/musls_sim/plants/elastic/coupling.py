"""Ends of cables on bodies: the body's part of the equations and the way back.

A point at the arm r from a body's centre moves by d + t x r when the body moves by d and turns by
t; the direction of a clamp moves by t x direction. With the 3x6 tables P of these, a cable's
equations of its ends become equations of the bodies: P^T K P.
"""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.elastic.blocks import substitute_back
from musls_sim.plants.elastic.columns import (
    AS,
    AXIS_WORLD_A,
    AXIS_WORLD_B,
    B_DOF,
    B_FREE,
    BENDS,
    BODY_A,
    BODY_B,
    BORDER,
    BXS,
    DELTA,
    END_FORCE_A,
    END_FORCE_B,
    FIRST_NODE,
    FIRST_ROW,
    MOMENT_A,
    MOMENT_B,
    REELS,
    RIGHT,
    SEGMENTS,
    TAIL,
    VS,
    XS,
)
from musls_sim.plants.elastic.reel_coupling import note_reels, shift_reels


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
    """Displacements of the ends from those of the bodies, and the forces that the ends then have."""
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
