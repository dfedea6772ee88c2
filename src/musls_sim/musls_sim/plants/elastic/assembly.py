"""Forces of one cable and their derivatives in a stage, as equations of its points.

All derivatives are with respect to positions; velocities follow positions by dv = dx / (d h). The
matrix is kept symmetric and positive definite: what is left out (a pushing segment's transverse
softening, the turning of a damper) is small and only costs iterations.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.elastic.axial import table_law
from musls_sim.plants.elastic.columns import (
    ALIVE,
    AS,
    DAMPING,
    DIRECTION,
    DRAG_ACROSS,
    DRAG_ALONG,
    EA,
    ELASTIC,
    FIRST_NODE,
    FIRST_ROW,
    FIRST_SEGMENT,
    GEOMETRIC,
    GRAVITY,
    GROUND,
    LENGTH,
    MASS,
    RATE,
    REST,
    SEGMENTS,
    SLACK,
    STIFFNESS,
    TABLE_FIRST,
    TABLE_ROWS,
    TENSION,
    VS,
    XS,
)
from musls_sim.plants.ground import GROUND_DAMPING_N_S_M2, GROUND_STIFFNESS_N_M2

SHORTEST = 1e-9
"""Length below which a segment has no direction [m]."""


@compiled()
def axial_force(strain, strain_rate, kind, cable, laws, dh):
    """Tension of a segment: with damping, without, and the derivative by the strain."""
    if kind[TABLE_ROWS] > 0:
        first = kind[TABLE_FIRST]
        elastic, slope, _ = table_law(laws[first : first + kind[TABLE_ROWS]], strain)
    else:
        elastic, slope = cable[EA] * strain, cable[EA]
    tension = elastic + cable[DAMPING] * strain_rate
    slope += cable[DAMPING] / dh
    if kind[SLACK] == 1:
        elastic = max(elastic, 0.0)
        if tension <= 0.0:
            tension, slope = 0.0, 0.0
    return tension, elastic, slope


@compiled()
def stretch(segment, a, b, kind, cable, laws, dh, rest_rate):
    """Direction, length, tension and stiffness of a segment from its nodes, into its row."""
    x, y, z = b[XS] - a[XS], b[XS + 1] - a[XS + 1], b[XS + 2] - a[XS + 2]
    length = np.sqrt(x * x + y * y + z * z)
    inverse = 1.0 / max(length, SHORTEST)
    x, y, z = x * inverse, y * inverse, z * inverse
    rate = x * (b[VS] - a[VS]) + y * (b[VS + 1] - a[VS + 1]) + z * (b[VS + 2] - a[VS + 2])
    rest = segment[REST]
    tension, elastic, slope = axial_force(
        (length - rest) / rest, (rate - rest_rate * length / rest) / rest, kind, cable, laws, dh
    )
    tension, elastic, slope = (
        tension * segment[ALIVE],
        elastic * segment[ALIVE],
        slope * segment[ALIVE],
    )
    segment[DIRECTION], segment[DIRECTION + 1], segment[DIRECTION + 2] = x, y, z
    segment[LENGTH], segment[RATE] = length, rate
    segment[TENSION], segment[ELASTIC] = tension, elastic
    segment[STIFFNESS] = slope / rest
    segment[GEOMETRIC] = max(tension, 0.0) * inverse


@compiled()
def assemble_axial(kind, cable, laws, nodes, segments, band, border, right, corner, edge, dh, rate):
    """Tension of all segments of a cable."""
    start, count = kind[FIRST_NODE], kind[SEGMENTS]
    first, begin = kind[FIRST_ROW], kind[FIRST_SEGMENT]
    for s in range(count):
        segment = segments[begin + s]
        stretch(segment, nodes[start + s], nodes[start + s + 1], kind, cable, laws, dh, rate)
        x, y, z = segment[DIRECTION], segment[DIRECTION + 1], segment[DIRECTION + 2]
        tension, g = segment[TENSION], segment[GEOMETRIC]
        k = segment[STIFFNESS] - g
        xx, yy, zz = k * x * x + g, k * y * y + g, k * z * z + g
        xy, yz, xz = k * x * y, k * y * z, k * x * z
        row = first + 3 * s  # of the node at the upper end
        band[row, 0] += xx
        band[row + 1, 0] += yy
        band[row + 2, 0] += zz
        band[row, 1] += xy
        band[row + 1, 1] += yz
        band[row, 2] += xz
        right[row] -= tension * x
        right[row + 1] -= tension * y
        right[row + 2] -= tension * z
        if s > 0:
            low = row - 3
            band[low, 0] += xx
            band[low + 1, 0] += yy
            band[low + 2, 0] += zz
            band[low, 1] += xy
            band[low + 1, 1] += yz
            band[low, 2] += xz
            band[low, 3] -= xx
            band[low, 4] -= xy
            band[low, 5] -= xz
            band[low + 1, 2] -= xy
            band[low + 1, 3] -= yy
            band[low + 1, 4] -= yz
            band[low + 2, 1] -= xz
            band[low + 2, 2] -= yz
            band[low + 2, 3] -= zz
            right[low] += tension * x
            right[low + 1] += tension * y
            right[low + 2] += tension * z
        else:
            corner[0, 0] += xx
            corner[1, 1] += yy
            corner[2, 2] += zz
            corner[0, 1] += xy
            corner[1, 2] += yz
            corner[0, 2] += xz
            border[row, 0] -= xx
            border[row, 1] -= xy
            border[row, 2] -= xz
            border[row + 1, 0] -= xy
            border[row + 1, 1] -= yy
            border[row + 1, 2] -= yz
            border[row + 2, 0] -= xz
            border[row + 2, 1] -= yz
            border[row + 2, 2] -= zz
            edge[0] += tension * x
            edge[1] += tension * y
            edge[2] += tension * z


@compiled()
def lump_forces(kind, cable, nodes, segments, i, ground, wind, dh, work):
    """Ground and air at node i of a cable: force and diagonal of the matrix, into `work`."""
    work[:6] = 0.0
    count, begin = kind[SEGMENTS], kind[FIRST_SEGMENT]
    node = nodes[kind[FIRST_NODE] + i]
    share = lost = blown = 0.0
    if i > 0:
        share += 0.5 * segments[begin + i - 1, REST]
    if i < count:
        share += 0.5 * segments[begin + i, REST]
    if node[XS + 2] < ground and 0 < i < count:
        lost = _ground(node, ground, share, dh, work)
    if cable[DRAG_ACROSS] > 0.0 or cable[DRAG_ALONG] > 0.0:
        t = work[6:9]
        _along(segments, begin + i - 1, begin + i, i > 0, i < count, t)
        blown = _air(node, t, share, cable, wind, dh, work)
    return lost, blown


@compiled()
def _along(segments, before, after, has_before, has_after, t):
    """Direction of the cable at a node: the mean of the segments beside it that are not broken."""
    t[:] = 0.0
    for k in range(3):
        if has_before and segments[before, ALIVE] > 0.0:
            t[k] += segments[before, DIRECTION + k]
        if has_after and segments[after, ALIVE] > 0.0:
            t[k] += segments[after, DIRECTION + k]
    size = np.sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2])
    if size > 1e-9:  # folded flat, or broken on both sides: no direction, all drag is across
        for k in range(3):
            t[k] /= size


@compiled()
def assemble_lumps(
    kind, cable, nodes, segments, band, right, corner, edge, parameters, wind, dh, work
):
    """Inertia, weight, air and ground of all nodes of a cable."""
    start, count, first = kind[FIRST_NODE], kind[SEGMENTS], kind[FIRST_ROW]
    gravity, ground = parameters[GRAVITY], parameters[GROUND]
    airy = cable[DRAG_ACROSS] > 0.0 or cable[DRAG_ALONG] > 0.0
    scale = 1.0 / (dh * dh)
    lost = blown = 0.0
    for i in range(count + 1):
        node = nodes[start + i]
        mass = node[MASS]
        fx, fy = -mass * node[AS], -mass * node[AS + 1]
        fz = -mass * (node[AS + 2] + gravity)
        kx = ky = kz = mass * scale
        if airy or node[XS + 2] < ground:
            a, b = lump_forces(kind, cable, nodes, segments, i, ground, wind, dh, work)
            lost += a
            blown += b
            fx, fy, fz = fx + work[0], fy + work[1], fz + work[2]
            kx, ky, kz = kx + work[3], ky + work[4], kz + work[5]
        if i > 0:
            row = first + 3 * (i - 1)
            right[row] += fx
            right[row + 1] += fy
            right[row + 2] += fz
            band[row, 0] += kx
            band[row + 1, 0] += ky
            band[row + 2, 0] += kz
        else:
            edge[0] += fx
            edge[1] += fy
            edge[2] += fz
            corner[0, 0] += kx
            corner[1, 1] += ky
            corner[2, 2] += kz
    return lost, blown


@compiled()
def _ground(node, ground, share, dh, work):
    """Compliant ground under a node, the law of `plants.ground` taken implicitly."""
    stiff, damp = share * GROUND_STIFFNESS_N_M2, share * GROUND_DAMPING_N_S_M2
    up = stiff * (ground - node[XS + 2]) - damp * node[VS + 2]
    if up <= 0.0:
        return 0.0
    work[2] += up
    work[0] -= damp * node[VS]
    work[1] -= damp * node[VS + 1]
    work[3] += damp / dh
    work[4] += damp / dh
    work[5] += stiff + damp / dh
    return damp * (node[VS] ** 2 + node[VS + 1] ** 2) - up * node[VS + 2]


@compiled()
def _air(node, t, share, cable, wind, dh, work):
    """Quadratic drag of the length of cable at a node, across and along its direction."""
    x, y, z = node[VS] - wind[0], node[VS + 1] - wind[1], node[VS + 2] - wind[2]
    along = x * t[0] + y * t[1] + z * t[2]
    ax, ay, az = x - along * t[0], y - along * t[1], z - along * t[2]
    across = share * cable[DRAG_ACROSS] * np.sqrt(ax * ax + ay * ay + az * az)
    length = share * cable[DRAG_ALONG] * abs(along)
    gx, gy, gz = (
        -across * ax - length * along * t[0],
        -across * ay - length * along * t[1],
        -across * az - length * along * t[2],
    )
    work[0] += gx
    work[1] += gy
    work[2] += gz
    for q in range(3):
        work[3 + q] += (across + length) / dh
    return gx * node[VS] + gy * node[VS + 1] + gz * node[VS + 2]
