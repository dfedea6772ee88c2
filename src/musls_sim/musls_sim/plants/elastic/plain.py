"""The fast path: a cable without bending whose end A is a leaf or prescribed.

Its matrix is block tridiagonal without a border, so assembly and elimination are written out: the
arithmetic of `assembly` and `blocks`, in one sweep over the nodes.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.elastic.assembly import SHORTEST, axial_force, lump_forces
from musls_sim.plants.elastic.columns import (
    ALIVE,
    AS,
    BXS,
    DAMPING,
    DELTA,
    DIRECTION,
    DRAG_ACROSS,
    DRAG_ALONG,
    EA,
    END_FORCE_A,
    END_FORCE_B,
    FIRST_NODE,
    FIRST_ROW,
    FIRST_SEGMENT,
    FOLD,
    FROM_LEAF,
    GEOMETRIC,
    GRAVITY,
    GROUND,
    INVERSE_REST,
    LEAF_POINT,
    LEAF_SHIFT,
    MASS,
    RIGHT,
    SEGMENTS,
    SLACK,
    STIFFNESS,
    TABLE_ROWS,
    TAUT,
    TENSION,
    VS,
    XS,
)
from musls_sim.plants.elastic.contact import add_point


@compiled()
def assemble_plain(
    kind, cable, laws, nodes, segments, leaf, band, right, edge, parameters, wind, dh, rate, work
):
    """Equations of a cable, band rows written from scratch."""
    start, count, begin = kind[FIRST_NODE], kind[SEGMENTS], kind[FIRST_SEGMENT]
    row = kind[FIRST_ROW] - 3
    gravity, ground = parameters[GRAVITY], parameters[GROUND]
    airy = cable[DRAG_ACROSS] > 0.0 or cable[DRAG_ALONG] > 0.0
    lost = blown = 0.0
    tabulated, slack = kind[TABLE_ROWS] > 0, kind[SLACK] == 1
    ea, damping = cable[EA], cable[DAMPING]
    pxx = pyy = pzz = pxy = pyz = pxz = px = py = pz = 0.0
    scale = 1.0 / (dh * dh)
    for i in range(count + 1):
        node = nodes[start + i]
        if i < count:
            s, up = segments[begin + i], nodes[start + i + 1]
            x, y, z = up[XS] - node[XS], up[XS + 1] - node[XS + 1], up[XS + 2] - node[XS + 2]
            length = np.sqrt(x * x + y * y + z * z)
            short = 1.0 / max(length, SHORTEST)
            x, y, z = x * short, y * short, z * short
            pace = (
                x * (up[VS] - node[VS])
                + y * (up[VS + 1] - node[VS + 1])
                + z * (up[VS + 2] - node[VS + 2])
            )
            inverse = s[INVERSE_REST]
            stretch = length * inverse
            strain_rate = (pace - rate * stretch) * inverse
            if tabulated:
                tension, _, slope = axial_force(stretch - 1.0, strain_rate, kind, cable, laws, dh)
            else:
                tension = ea * (stretch - 1.0) + damping * strain_rate
                slope = ea + damping / dh
            if (slack and tension <= 0.0) or s[ALIVE] == 0.0:
                tension = slope = 0.0
            g = max(tension, 0.0) * short
            s[DIRECTION], s[DIRECTION + 1], s[DIRECTION + 2] = x, y, z
            s[TENSION], s[STIFFNESS], s[GEOMETRIC] = tension, slope * inverse, g
            k = slope * inverse - g
            xx, yy, zz = k * x * x + g, k * y * y + g, k * z * z + g
            xy, yz, xz = k * x * y, k * y * z, k * x * z
            x, y, z = tension * x, tension * y, tension * z
        else:
            xx = yy = zz = xy = yz = xz = x = y = z = 0.0
        mass = node[MASS]
        fx = x - px - mass * node[AS]
        fy = y - py - mass * node[AS + 1]
        fz = z - pz - mass * (node[AS + 2] + gravity)
        inertia = mass * scale
        dx, dy, dz = pxx + xx + inertia, pyy + yy + inertia, pzz + zz + inertia
        if airy or node[XS + 2] < ground:
            a, b = lump_forces(kind, cable, nodes, segments, i, ground, wind, dh, work)
            lost += a
            blown += b
            fx, fy, fz = fx + work[0], fy + work[1], fz + work[2]
            dx, dy, dz = dx + work[3], dy + work[4], dz + work[5]
        if i == 0:
            edge[0], edge[1], edge[2] = fx, fy, fz
        if i > 0 or kind[FOLD] == FROM_LEAF:
            b0, b1, b2 = band[row], band[row + 1], band[row + 2]
            b0[0], b0[1], b0[2], b0[3], b0[4], b0[5] = dx, pxy + xy, pxz + xz, -xx, -xy, -xz
            b1[0], b1[1], b1[2], b1[3], b1[4] = dy, pyz + yz, -xy, -yy, -yz
            b2[0], b2[1], b2[2], b2[3] = dz, -xz, -yz, -zz
            right[row], right[row + 1], right[row + 2] = fx, fy, fz
        pxx, pyy, pzz, pxy, pyz, pxz, px, py, pz = xx, yy, zz, xy, yz, xz, x, y, z
        row += 3
    if kind[FOLD] == FROM_LEAF:
        row = kind[FIRST_ROW] - 3
        m, s = leaf[LEAF_POINT : LEAF_POINT + 9], leaf[LEAF_SHIFT : LEAF_SHIFT + 3]
        band[row, 0] += m[0]
        band[row, 1] += m[1]
        band[row, 2] += m[2]
        band[row + 1, 0] += m[4]
        band[row + 1, 1] += m[5]
        band[row + 2, 0] += m[8]
        for i in range(3):
            right[row + i] += m[3 * i] * s[0] + m[3 * i + 1] * s[1] + m[3 * i + 2] * s[2]
    return lost, blown


@compiled()
def finish_plain(kind, cable, laws, nodes, segments, band, right, edge, dh, rate, share, check):
    """Move the nodes, given the displacement of the tail; tensions and the force at end A."""
    start, count, begin = kind[FIRST_NODE], kind[SEGMENTS], kind[FIRST_SEGMENT]
    tabulated, slack = kind[TABLE_ROWS] > 0, kind[SLACK] == 1
    ea, damping = cable[EA], cable[DAMPING]
    faster = 1.0 / dh
    scale = faster * faster
    k = kind[FIRST_ROW] + 3 * (count - 1)
    u, v, w = right[k], right[k + 1], right[k + 2]
    x, y, z = share * u, share * v, share * w
    node = nodes[start + count]
    qx, qy, qz = node[XS] + x, node[XS + 1] + y, node[XS + 2] + z
    wx, wy, wz = node[VS] + x * faster, node[VS + 1] + y * faster, node[VS + 2] + z * faster
    dx, dy, dz = x, y, z
    node[DELTA], node[DELTA + 1], node[DELTA + 2] = x, y, z
    worst = largest = lost = switched = 0.0
    for i in range(count - 1, -1, -1):
        node = nodes[start + i]
        if i == 0 and kind[FOLD] != FROM_LEAF:
            x = y = z = 0.0
        else:
            k -= 3
            x, y, z = u, v, w
            b = band[k + 2]
            w = (right[k + 2] - b[1] * x - b[2] * y - b[3] * z) * b[0]
            b = band[k + 1]
            v = (right[k + 1] - b[1] * w - b[2] * x - b[3] * y - b[4] * z) * b[0]
            b = band[k]
            u = (right[k] - b[1] * v - b[2] * w - b[3] * x - b[4] * y - b[5] * z) * b[0]
            x, y, z = share * u, share * v, share * w
        node[DELTA], node[DELTA + 1], node[DELTA + 2] = x, y, z
        px, py, pz = node[XS] + x, node[XS + 1] + y, node[XS + 2] + z
        ux, uy, uz = node[VS] + x * faster, node[VS + 1] + y * faster, node[VS + 2] + z * faster
        if i > 0:
            node[XS], node[XS + 1], node[XS + 2] = px, py, pz
            node[VS], node[VS + 1], node[VS + 2] = ux, uy, uz
            node[AS] += scale * x
            node[AS + 1] += scale * y
            node[AS + 2] += scale * z
        s = segments[begin + i]
        tx, ty, tz = s[DIRECTION], s[DIRECTION + 1], s[DIRECTION + 2]
        linear = s[TENSION] + s[STIFFNESS] * (tx * (dx - x) + ty * (dy - y) + tz * (dz - z))
        s[TENSION] = linear
        if s[ALIVE] > 0.0:
            ex, ey, ez = qx - px, qy - py, qz - pz
            pace = tx * (wx - ux) + ty * (wy - uy) + tz * (wz - uz)
            inverse = s[INVERSE_REST]
            stretch = np.sqrt(ex * ex + ey * ey + ez * ez) * inverse
            strain_rate = (pace - rate * stretch) * inverse
            if tabulated:
                tension, elastic, _ = axial_force(stretch - 1.0, strain_rate, kind, cable, laws, dh)
            else:
                elastic = ea * (stretch - 1.0)
                tension = elastic + damping * strain_rate
                if slack:
                    elastic, tension = max(elastic, 0.0), max(tension, 0.0)
            worst = max(worst, abs(tension - linear))
            if slack and (linear > 0.0) != (s[TAUT] > 0.0):
                switched += 1.0
            largest = max(largest, abs(linear))
            lost += (linear - elastic) * pace
        qx, qy, qz, wx, wy, wz, dx, dy, dz = px, py, pz, ux, uy, uz, x, y, z
    check[0], check[1], check[2], check[3] = worst, largest, lost, switched
    a, b, s = nodes[start], nodes[start + 1], segments[begin]
    x, y, z = b[DELTA] - a[DELTA], b[DELTA + 1] - a[DELTA + 1], b[DELTA + 2] - a[DELTA + 2]
    t = s[DIRECTION : DIRECTION + 3]
    along = (s[STIFFNESS] - s[GEOMETRIC]) * (t[0] * x + t[1] * y + t[2] * z)
    inertia = a[MASS] * scale
    for q in range(3):
        gap = x if q == 0 else (y if q == 1 else z)
        cable[END_FORCE_A + q] = (
            edge[q] + along * t[q] + s[GEOMETRIC] * gap - inertia * a[DELTA + q]
        )


@compiled()
def add_tail(kind, nodes, p, first, band, right, small, small_right, matrix, r, k3):
    """Add what is left of a plain cable at end B to the equations of its body."""
    row = kind[FIRST_ROW] + 3 * (kind[SEGMENTS] - 1)
    node = nodes[kind[FIRST_NODE] + kind[SEGMENTS]]
    for i in range(3):
        r[i] = node[XS + i] - p[BXS + i]
        small_right[i] = right[row + i]
        for j in range(i, 3):
            small[i, j] = small[j, i] = k3[i, j] = k3[j, i] = band[row + i, j - i]
    if first < 0:
        return
    x, y, z = right[row], right[row + 1], right[row + 2]
    p[RIGHT] += x
    p[RIGHT + 1] += y
    p[RIGHT + 2] += z
    p[RIGHT + 3] += r[1] * z - r[2] * y
    p[RIGHT + 4] += r[2] * x - r[0] * z
    p[RIGHT + 5] += r[0] * y - r[1] * x
    add_point(matrix, first, r, k3)


@compiled()
def move_tail(kind, cable, nodes, p, first, right, small, small_right):
    """Displacement of end B from that of its body, and the force that the end then has."""
    row = kind[FIRST_ROW] + 3 * (kind[SEGMENTS] - 1)
    node = nodes[kind[FIRST_NODE] + kind[SEGMENTS]]
    x = y = z = 0.0
    if first >= 0:
        rx, ry, rz = node[XS] - p[BXS], node[XS + 1] - p[BXS + 1], node[XS + 2] - p[BXS + 2]
        x = p[RIGHT] + p[RIGHT + 4] * rz - p[RIGHT + 5] * ry
        y = p[RIGHT + 1] + p[RIGHT + 5] * rx - p[RIGHT + 3] * rz
        z = p[RIGHT + 2] + p[RIGHT + 3] * ry - p[RIGHT + 4] * rx
    right[row], right[row + 1], right[row + 2] = x, y, z
    for i in range(3):
        cable[END_FORCE_B + i] = (
            small_right[i] - small[i, 0] * x - small[i, 1] * y - small[i, 2] * z
        )
