"""The lengths that come out at the ends of a cable, in the equations of the shafts."""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.elastic.columns import (
    AXIS_WORLD_A,
    AXIS_WORLD_B,
    B_DOF,
    BODY_A,
    BODY_B,
    BORDER,
    BXS,
    BY_RATE,
    FIRST_NODE,
    LENGTH_SHIFT,
    RATIO_A,
    REEL_A,
    REEL_FORCE_A,
    REELS,
    S_DOF,
    SEGMENTS,
    TAIL,
    TURN_RIGHT,
    XS,
)


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
