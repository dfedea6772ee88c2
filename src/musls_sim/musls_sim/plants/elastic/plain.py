"""The fast path: a cable without bending whose end A is a leaf or prescribed.

Its matrix is block tridiagonal without a border, so assembly and elimination are written out: the
arithmetic of `assembly` and `blocks`, in one sweep over the nodes.
"""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.elastic.assembly import lump_forces, stretch
from musls_sim.plants.elastic.columns import (
    AS,
    DELTA,
    DIRECTION,
    DRAG_ACROSS,
    DRAG_ALONG,
    END_FORCE_A,
    FIRST_NODE,
    FIRST_ROW,
    FIRST_SEGMENT,
    FOLD,
    FROM_LEAF,
    GEOMETRIC,
    GRAVITY,
    GROUND,
    LEAF_POINT,
    LEAF_SHIFT,
    MASS,
    SEGMENTS,
    STIFFNESS,
    TENSION,
    XS,
)


@compiled()
def assemble_plain(
    kind, cable, laws, nodes, segments, leaf, band, right, edge, parameters, wind, dh, rate, work
):
    """Equations of a cable, band rows written from scratch.

    Args:
        kind: Integers of the cable.
        cable: Its numbers.
        laws: Tables of axial laws.
        nodes: All nodes.
        segments: All segments.
        leaf: Row of the body at end A.
        band: See `blocks`; here the row of end A comes before `FIRST_ROW` if it is a leaf.
        right: Right-hand side.
        edge: Force at end A before the correction, (3,) is written.
        parameters: Numbers of the whole system.
        wind: (3,).
        dh: Weight of the stage [s].
        rate: Rate of the rest length of a segment [m/s].
        work: Work space, (6,).

    Returns:
        Power lost to the ground and work rate of the air [W].
    """
    start, count, begin = kind[FIRST_NODE], kind[SEGMENTS], kind[FIRST_SEGMENT]
    row = kind[FIRST_ROW] - 3
    gravity, ground = parameters[GRAVITY], parameters[GROUND]
    airy = cable[DRAG_ACROSS] > 0.0 or cable[DRAG_ALONG] > 0.0
    lost = blown = 0.0
    pxx = pyy = pzz = pxy = pyz = pxz = px = py = pz = 0.0
    scale = 1.0 / (dh * dh)
    for i in range(count + 1):
        node = nodes[start + i]
        if i < count:
            segment = segments[begin + i]
            stretch(segment, node, nodes[start + i + 1], kind, cable, laws, dh, rate)
            x, y, z = segment[DIRECTION], segment[DIRECTION + 1], segment[DIRECTION + 2]
            g = segment[GEOMETRIC]
            k = segment[STIFFNESS] - g
            xx, yy, zz = k * x * x + g, k * y * y + g, k * z * z + g
            xy, yz, xz = k * x * y, k * y * z, k * x * z
            tension = segment[TENSION]
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
def eliminate_plain(band, right, first, end):
    """Eliminate the rows first to end - 1 (three per node) of a block tridiagonal matrix."""
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
def finish_plain(kind, cable, nodes, segments, leaf, band, right, edge, dh):
    """Displacements of the nodes from that of the tail; force at end A.

    Args:
        kind: Integers of the cable.
        cable: Its numbers; the force at end A is written.
        nodes: All nodes; accelerations and displacements are written.
        segments: All segments.
        leaf: Row of the body at end A.
        band: After `eliminate_plain`.
        right: The same; the rows of the tail hold its displacement.
        edge: From `assemble_plain`.
        dh: Weight of the stage [s].
    """
    start, count = kind[FIRST_NODE], kind[SEGMENTS]
    scale = 1.0 / (dh * dh)
    k = kind[FIRST_ROW] + 3 * (count - 1)
    x, y, z = right[k], right[k + 1], right[k + 2]
    for i in range(count - 1, -1, -1):
        node = nodes[start + i]
        if i == 0 and kind[FOLD] != FROM_LEAF:
            x = y = z = 0.0
        else:
            k -= 3
            b = band[k + 2]
            w = (right[k + 2] - b[1] * x - b[2] * y - b[3] * z) * b[0]
            b = band[k + 1]
            v = (right[k + 1] - b[1] * w - b[2] * x - b[3] * y - b[4] * z) * b[0]
            b = band[k]
            u = (right[k] - b[1] * v - b[2] * w - b[3] * x - b[4] * y - b[5] * z) * b[0]
            x, y, z = u, v, w
        node[DELTA], node[DELTA + 1], node[DELTA + 2] = x, y, z
        if i > 0:
            node[AS] += scale * x
            node[AS + 1] += scale * y
            node[AS + 2] += scale * z
    a, b, s = nodes[start], nodes[start + 1], segments[kind[FIRST_SEGMENT]]
    x, y, z = b[DELTA] - a[DELTA], b[DELTA + 1] - a[DELTA + 1], b[DELTA + 2] - a[DELTA + 2]
    t = s[DIRECTION : DIRECTION + 3]
    along = (s[STIFFNESS] - s[GEOMETRIC]) * (t[0] * x + t[1] * y + t[2] * z)
    inertia = a[MASS] * scale
    cable[END_FORCE_A] = edge[0] + along * t[0] + s[GEOMETRIC] * x - inertia * a[DELTA]
    cable[END_FORCE_A + 1] = edge[1] + along * t[1] + s[GEOMETRIC] * y - inertia * a[DELTA + 1]
    cable[END_FORCE_A + 2] = edge[2] + along * t[2] + s[GEOMETRIC] * z - inertia * a[DELTA + 2]
