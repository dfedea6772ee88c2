"""Equations of a cable: where they stand, their elimination, and what it leaves to the bodies.

The unknowns are the displacements of the points 0 (end 1) to n (end 2) of a cable and, where it is
clamped, of the directions of its clamps, which count as points -1 and n + 1. Each has three rows of
a symmetric band matrix, of which the upper triangle is stored: rows[row].band[k] couples row and
row + k. The elimination begins at the one end, the first, and ends at the other, the last. The
first end's body is

- prescribed: the rows of that end stay as they are, their unknowns are zero;
- a leaf, a free body with nothing but a hinge of this cable: its turn stands in place of the
  clamp's direction, its translation in the rows of the hinge. It costs no unknown of the bodies;
- any other: the rows of that end become columns of the border, rows[row].border.

Two more columns are the lengths that come out at the ends. What is left is a small full system,
`ends`: the last end's point and direction (0 to 5), the border: the first end's direction and point
(6 to 11), lengths at end 1 and 2 (12, 13). It goes to the bodies and shafts, which are solved
together; then every cable moves with its ends.
"""

from __future__ import annotations

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import add, cross, increase, put, scale, sub
from musls_sim.plants.elastic.bodies import point_shift
from musls_sim.plants.elastic.state import (
    BAND,
    BORDER,
    NOTHING,
    bodies_of,
    matrix_of,
    nodes_of,
    rows_of,
    shafts_of,
    unknowns_of,
)


@compiled()
def row_of(cable, i):
    """First row of point i of a cable."""
    return cable.row_0 + cable.row_step * i


@compiled()
def set_rows(rows, cable, row, block, ahead, right):
    """Write the equations of a point: block, minus that with the next one, right-hand side.

    Blocks are symmetric, (xx, xy, xz, yy, yz, zz).
    """
    (xx, xy, xz, yy, yz, zz) = block
    (ax, bx, cx, by, cy, cz) = ahead
    a = rows[row].band
    b = rows[row + 1].band
    c = rows[row + 2].band
    a[0] = xx
    a[1] = xy
    a[2] = xz
    a[3] = -ax
    a[4] = -bx
    a[5] = -cx
    b[0] = yy
    b[1] = yz
    b[2] = -bx
    b[3] = -by
    b[4] = -cy
    c[0] = zz
    c[1] = -cx
    c[2] = -cy
    c[3] = -cz
    rows[row].right, rows[row + 1].right, rows[row + 2].right = right
    if cable.bends:
        a[6] = a[7] = a[8] = b[5] = b[6] = b[7] = c[4] = c[5] = c[6] = 0.0
    if cable.size > 6:
        for k in range(3):
            for j in range(BORDER):
                rows[row + k].border[j] = 0.0


@compiled()
def clear_ends(rows, cable):
    """Set the equations of the clamps' directions and all beyond the band to zero."""
    for row in (cable.first_row, cable.end + 3):
        set_rows(rows, cable, row, NOTHING, NOTHING, (0.0, 0.0, 0.0))
    if cable.size > 6:
        for i in range(cable.size):
            cable.ends_right[i] = 0.0
            for j in range(cable.size):
                cable.ends[i, j] = 0.0


@compiled()
def add_block(rows, cable, i, j, block, factor):
    """Add a symmetric block, times a factor, that couples two points of a cable."""
    xx, xy, xz, yy, yz, zz = block
    row = row_of(cable, i)
    gap = row_of(cable, j) - row_of(cable, i)
    if gap < 0:
        row = row + gap
        gap = -gap
    a = rows[row].band
    b = rows[row + 1].band
    c = rows[row + 2].band
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
def add_right(rows, cable, i, force):
    """Add a vector to the right-hand side of a point."""
    row = row_of(cable, i)
    for k in range(3):
        rows[row + k].right += force[k]


@compiled()
def open_border(rows, cable):
    """Make the rows of the first end columns of the border, and part of what is left."""
    for k in range(cable.low, 6):
        i = 6 + k
        row = cable.first_row + k
        cable.ends_right[i] = rows[row].right
        for c in range(6, cable.high):
            cable.ends[i, 6 + c] = rows[row].border[c]
        for j in range(1 + BAND - k % 3):
            if k + j < 6:
                cable.ends[i, i + j] = rows[row].band[j]
            else:
                rows[row + j].border[k] = rows[row].band[j]


@compiled()
def eliminate(rows, cable):
    """Eliminate the points of a cable (L D L^T); their diagonal becomes D^-1.

    What is left of the last end stands in its rows, of the border in `ends` (upper triangle).
    """
    if cable.bends:  # with a constant reach the loops are unrolled: a third faster
        _eliminate(rows, cable, 9)
    else:
        _eliminate(rows, cable, 6)


@compiled()
def _eliminate(rows, cable, reach):
    """Eliminate points whose first row couples to a number of further columns."""
    low = cable.low
    high = cable.high
    ends = cable.ends
    right = cable.ends_right
    for k in range(cable.begin, cable.end, 3):
        r = rows[k].band
        s = rows[k + 1].band
        t = rows[k + 2].band
        p = 1.0 / r[0]
        f = r[1] * p
        g = r[2] * p
        for j in range(reach - 1):
            s[j] -= f * r[j + 1]
        for j in range(reach - 2):
            t[j] -= g * r[j + 2]
        q = 1.0 / s[0]
        h = s[1] * q
        for j in range(reach - 2):
            t[j] -= h * s[j + 1]
        o = 1.0 / t[0]
        for i in range(3, reach):
            other = rows[k + i].band
            u = r[i] * p
            v = s[i - 1] * q
            w = t[i - 2] * o
            for j in range(i, reach):
                other[j - i] -= u * r[j] + v * s[j - 1] + w * t[j - 2]
        x = rows[k].right
        y = rows[k + 1].right - f * x
        z = rows[k + 2].right - g * x - h * y
        rows[k + 1].right = y
        rows[k + 2].right = z
        u = x * p
        v = y * q
        w = z * o
        for i in range(3, reach):
            rows[k + i].right -= r[i] * u + s[i - 1] * v + t[i - 2] * w
        for c in range(low, high):
            bx = rows[k].border
            by = rows[k + 1].border
            bz = rows[k + 2].border
            by[c] -= f * bx[c]
            bz[c] -= g * bx[c] + h * by[c]
            right[6 + c] -= bx[c] * u + by[c] * v + bz[c] * w
            a = bx[c] * p
            b = by[c] * q
            d = bz[c] * o
            for i in range(3, reach):
                rows[k + i].border[c] -= r[i] * a + s[i - 1] * b + t[i - 2] * d
            for e in range(low, c + 1):
                ends[6 + e, 6 + c] -= bx[e] * a + by[e] * b + bz[e] * d
        r[0] = p
        s[0] = q
        t[0] = o


@compiled()
def substitute_back(rows, cable):
    """Solution of the eliminated rows, in place of the right-hand side."""
    if cable.bends:
        _substitute_back(rows, cable, 9)
    else:
        _substitute_back(rows, cable, 6)


@compiled()
def _substitute_back(rows, cable, reach):
    """Solution of rows that couple as those of `_eliminate`."""
    shift = cable.end_shift
    for k in range(cable.end - 3, cable.begin - 1, -3):
        r = rows[k].band
        s = rows[k + 1].band
        t = rows[k + 2].band
        x, y, z = rows[k].right, rows[k + 1].right, rows[k + 2].right
        for c in range(cable.low, cable.high):
            x -= rows[k].border[c] * shift[6 + c]
            y -= rows[k + 1].border[c] * shift[6 + c]
            z -= rows[k + 2].border[c] * shift[6 + c]
        for i in range(reach - 1, 2, -1):
            v = rows[k + i].right
            x -= r[i] * v
            y -= s[i - 1] * v
            z -= t[i - 2] * v
        z *= t[0]
        y = s[0] * y - s[0] * s[1] * z
        x = r[0] * x - r[0] * r[2] * z - r[0] * r[1] * y
        rows[k].right = x
        rows[k + 1].right = y
        rows[k + 2].right = z


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
# by t; the direction of a clamp moves by t x direction; a length that comes out by the turn of its
# shaft times the ratio. With P for all of these the small system becomes P^T K P.


@compiled()
def end_node(cable, end):
    """Index of the node at end 0 or 1."""
    return cable.first_node + end * cable.segments


@compiled()
def _end_body(t, cable, end):
    return bodies_of(t)[cable.body[end]]


@compiled()
def end_arm(t, cable, end):
    """Arm of the point at end 0 or 1 from its body's centre."""
    node = nodes_of(t)[end_node(cable, end)]
    return sub(node.stage.position, _end_body(t, cable, end).stage.position)


@compiled()
def _turn_with_body(cable, at, to, arm, axis):
    """Make rows and columns `at` (a point's) those of a body's translation, `to` of its turn."""
    ends = cable.ends
    right = cable.ends_right
    for j in range(cable.size):
        point = ends[at, j], ends[at + 1, j], ends[at + 2, j]
        moment = cross(axis, (ends[to, j], ends[to + 1, j], ends[to + 2, j]))
        ends[to, j], ends[to + 1, j], ends[to + 2, j] = add(moment, cross(arm, point))
    for i in range(cable.size):
        row = ends[i]
        moment = cross(axis, (row[to], row[to + 1], row[to + 2]))
        row[to], row[to + 1], row[to + 2] = add(
            moment, cross(arm, (row[at], row[at + 1], row[at + 2]))
        )
    moment = cross(axis, (right[to], right[to + 1], right[to + 2]))
    right[to], right[to + 1], right[to + 2] = add(
        moment, cross(arm, (right[at], right[at + 1], right[at + 2]))
    )


@compiled()
def add_ends(t, cable):
    """Gather what is left of a cable and add it to the equations of its bodies and shafts."""
    rows = rows_of(t)
    matrix = matrix_of(t)
    unknowns = unknowns_of(t)
    ends = cable.ends
    right = cable.ends_right
    where = cable.unknown
    for i in range(6):
        right[i] = rows[cable.end + i].right
        for j in range(i, 6):
            ends[i, j] = ends[j, i] = rows[cable.end + i].band[j - i]
        for c in range(cable.low, cable.high):
            ends[i, 6 + c] = ends[6 + c, i] = rows[cable.end + i].border[c]
    first = cable.first_end
    if cable.size > 6:
        for i in range(6, cable.size):
            for j in range(i):
                ends[i, j] = ends[j, i]
        _turn_with_shafts(t, cable)
    for border in range(cable.size // 6):
        end = first if border else 1 - first
        arm = end_arm(t, cable, end)
        axis = cable.axis_world[end]
        _turn_with_body(cable, 9 * border, 3 + 3 * border, arm, axis)
    for i in range(cable.size):
        row = where[i]
        if row < 0:
            continue
        unknowns[row].value += right[i]
        for j in range(i + 1):
            column = where[j]
            if column >= 0:
                both = 2.0 if j < i and row == column else 1.0
                matrix[max(row, column), min(row, column)] += both * ends[i, j]


@compiled()
def _turn_with_shafts(t, cable):
    """Add the columns of the paid-out lengths to the shafts; drives by rate have no unknown."""
    for end in range(2):
        i = 12 + end
        cable.unknown[12 + end] = -1
        if cable.reel[end] >= 0:
            shaft = shafts_of(t)[cable.reel[end]]
            if shaft.by_rate == 0.0:
                cable.unknown[i] = shaft.dof
        for j in range(cable.size):
            cable.ends[i, j] *= cable.ratio[end]
        for j in range(cable.size):
            cable.ends[j, i] *= cable.ratio[end]
        cable.ends_right[i] *= cable.ratio[end]


@compiled()
def spread_ends(t, cable):
    """Displacements of the ends by those of bodies and shafts, and what the cable exerts there."""
    x = cable.end_shift
    wrench = cable.ends_right
    first = cable.first_end
    last = 1 - cable.first_end
    body = _end_body(t, cable, last)
    other = _end_body(t, cable, first)
    put(x[0:3], body.shift)
    put(x[3:6], body.spin)
    for i in range(6, cable.size):
        x[i] = unknowns_of(t)[cable.unknown[i]].value if cable.unknown[i] >= 0 else 0.0
    for i in range(cable.size):
        for j in range(cable.size):
            wrench[i] -= cable.ends[i, j] * x[j]
    put(cable.force[last], wrench[0:3])
    put(cable.moment[last], wrench[3:6])
    rows = rows_of(t)
    row = cable.end
    shift = point_shift(body, end_arm(t, cable, last))
    rows[row].right, rows[row + 1].right, rows[row + 2].right = shift
    shift = cross(body.spin, cable.axis_world[last])
    rows[row + 3].right, rows[row + 4].right, rows[row + 5].right = shift
    cable.length_shift = 0.0
    if cable.low < 6:
        put(cable.force[first], wrench[9:12])
        put(cable.moment[first], wrench[6:9])
        put(x[6:9], cross(other.spin, cable.axis_world[first]))
        put(x[9:12], point_shift(other, end_arm(t, cable, first)))
    if cable.reels > 0:
        for end in range(2):
            cable.reel_torque[end] = wrench[12 + end]
            x[12 + end] *= cable.ratio[end]
            cable.length_shift += x[12 + end]


@compiled()
def _hold_end(t, cable):
    """Force and moment on the prescribed body at the first end, from the solution."""
    rows = rows_of(t)
    end = cable.first_end
    wrench = cable.ends_right
    for k in range(6):
        row = cable.first_row + k
        f = rows[row].right
        for j in range(6 - k, 1 + BAND - k % 3):
            f -= rows[row].band[j] * rows[row + j].right
        for c in range(6, cable.high):
            f -= rows[row].border[c] * cable.end_shift[6 + c]
        wrench[k] = f
    force = wrench[3], wrench[4], wrench[5]
    moment = cross(cable.axis_world[end], (wrench[0], wrench[1], wrench[2]))
    put(cable.force[end], force)
    put(cable.moment[end], add(moment, cross(end_arm(t, cable, end), force)))


# ---------- Leaves
#
# With the displacement p of its hinge at the arm r as unknown, d = p + r x t, a body's own system
# in (d, t) becomes one in (p, t): rows 3 to 5 and 0 to 2 of the cable's.


@compiled()
def add_leaf(t, cable):
    """Add the own system of the leaf at the first end of a cable to its equations."""
    body = _end_body(t, cable, cable.first_end)
    arm = end_arm(t, cable, cable.first_end)
    rows = rows_of(t)
    s = body.own_matrix
    for i in range(6):
        for j in range(i):
            s[j, i] = s[i, j]
    for j in range(6):
        moment = cross((s[0, j], s[1, j], s[2, j]), arm)
        for k in range(3):
            s[3 + k, j] += moment[k]
    for i in range(6):
        increase(s[i, 3:6], cross((s[i, 0], s[i, 1], s[i, 2]), arm))
    for i in range(6):
        for j in range(i, 6):
            rows[cable.begin + i].band[j - i] += s[(i + 3) % 6, (j + 3) % 6]
    moment = add(body.moment, cross(body.force, arm))
    for k in range(3):
        rows[cable.begin + k].right += moment[k]
        rows[cable.begin + 3 + k].right += body.force[k]


@compiled()
def _move_leaf(t, cable):
    """Displacement of a leaf, and what the cable exerts on it."""
    rows = rows_of(t)
    row = cable.begin
    end = cable.first_end
    body = _end_body(t, cable, end)
    arm = end_arm(t, cable, end)
    point = rows[row + 3].right, rows[row + 4].right, rows[row + 5].right
    turn = rows[row].right, rows[row + 1].right, rows[row + 2].right
    put(body.spin, turn)
    put(body.shift, sub(point, cross(turn, arm)))
    s = body.own_matrix
    force = cable.force[end]
    moment = cable.moment[end]
    for i in range(3):
        force[i] = -body.force[i]
        moment[i] = -body.moment[i]
        for j in range(3):
            force[i] += s[i, j] * point[j] + s[i, 3 + j] * turn[j]
            moment[i] += s[3 + i, j] * point[j] + s[3 + i, 3 + j] * turn[j]
    increase(moment, sub(cross(arm, force), cross(body.force, arm)))


# ---------- A cable as a whole


@compiled()
def move_cable(t, cable, dh, part):
    """Move the points of a cable by the solution of its ends, times `part`."""
    rows = rows_of(t)
    nodes = nodes_of(t)
    faster = 1.0 / dh
    spread_ends(t, cable)
    substitute_back(rows, cable)
    if cable.leaf:
        _move_leaf(t, cable)
    elif cable.low == 6:
        _hold_end(t, cable)
    cable.length_shift *= part
    for i in range(1, cable.segments):
        node = nodes[cable.first_node + i]
        k = row_of(cable, i)
        shift = scale(part, (rows[k].right, rows[k + 1].right, rows[k + 2].right))
        put(node.shift, shift)
        increase(node.stage.acceleration, scale(faster * faster, shift))
        increase(node.stage.velocity, scale(faster, shift))
        increase(node.stage.position, shift)
    for end in range(2):
        shift = point_shift(_end_body(t, cable, end), end_arm(t, cable, end))
        put(nodes[end_node(cable, end)].shift, scale(part, shift))
