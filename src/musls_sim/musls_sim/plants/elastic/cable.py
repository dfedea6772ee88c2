"""Axial law of a cable: force over strain, as a stiffness or as a monotone table.

A table is interpolated by monotone cubics (Fritsch and Butland, as in SciPy's
PchipInterpolator) and goes on along its end slopes. Damping acts on the rate of the strain.
A slack cable (the default) cannot push: its tension is max(0, F(strain) + c strain rate), which is
continuous in position and velocity. With damping, tension therefore begins when
F + c strain' = 0, earlier than the strain by at most the relaxation time c / EA.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from musls_description.compiled import compiled
from musls_description.errors import ConfigError
from musls_sim.plants.elastic.bodies import add_point
from musls_sim.plants.elastic.solver import add_block, add_right
from musls_sim.plants.elastic.state import (
    ALIVE,
    AS,
    AXIS_RATE_A,
    AXIS_RATE_B,
    AXIS_WORLD_A,
    AXIS_WORLD_B,
    B_CONTACT_DAMPING,
    B_CONTACT_STIFFNESS,
    B_FREE,
    B_LUMPS,
    B_MASS,
    BENDING_DAMPING,
    BENT,
    BODY_A,
    BODY_B,
    BVS,
    BXS,
    C_FORCE,
    C_PLACE,
    CLAMP_A,
    CLAMP_B,
    CLAMP_FACTOR_A,
    CLAMP_FACTOR_B,
    DAMPING,
    DELTA,
    DIRECTION,
    DRAG_ACROSS,
    DRAG_ALONG,
    EA,
    EI,
    ELASTIC,
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
    L_C0,
    L_C1,
    L_C2,
    L_C3,
    L_ENERGY,
    L_STRAIN,
    LAW_COLUMNS,
    LEAF_POINT,
    LEAF_SHIFT,
    LENGTH,
    LENGTH_SHIFT,
    LINEAR,
    MASS,
    RATE,
    REST,
    REST_RATE,
    RIGHT,
    SEGMENTS,
    SLACK,
    STIFFNESS,
    TABLE_FIRST,
    TABLE_ROWS,
    TAUT,
    TENSION,
    VS,
    XS,
)
from musls_sim.plants.rigid_links.rows import (
    GROUND_DAMPING_N_S_M2,
    GROUND_STIFFNESS_N_M2,
    OMEGA,
    POSITION,
    VELOCITY,
)

Array = NDArray[np.float64]

LEAST_END_SLOPE = 0.2
"""Slope of a table at its ends over that of the straight line between the last two pairs."""


def law_rows(table: Sequence[tuple[float, float]], linear: bool = False) -> Array:
    """Rows of the compiled law from pairs (strain, force).

    Args:
        table: Strain and force [N], both strictly increasing, at least two pairs.
        linear: Straight lines between the pairs instead of monotone cubics.

    Raises:
        ConfigError: Not monotone, or too short.
    """
    strain, force = np.array(table, float).T
    if len(strain) < 2 or (np.diff(strain) <= 0.0).any() or (np.diff(force) <= 0.0).any():
        raise ConfigError(
            f"cable law: strain and force must both increase from row to row, not {list(table)}"
        )
    pieces = np.zeros((4, len(strain) - 1))
    if linear:
        pieces[2], pieces[3] = np.diff(force) / np.diff(strain), force[:-1]
    else:
        # SciPy may choose slope 0 at an end, where a cable would have no stiffness.
        secants = np.diff(force) / np.diff(strain)
        slopes = PchipInterpolator(strain, force).derivative()(strain)
        slopes[0] = max(slopes[0], LEAST_END_SLOPE * secants[0])
        slopes[-1] = max(slopes[-1], LEAST_END_SLOPE * secants[-1])
        pieces[:] = CubicHermiteSpline(strain, force, slopes).c
    width = np.diff(strain)
    slope = pieces[2, -1] + width[-1] * (2.0 * pieces[1, -1] + 3.0 * width[-1] * pieces[0, -1])
    rows = np.zeros((len(strain) + 1, LAW_COLUMNS))
    rows[0, [L_STRAIN, L_C0, L_C1]] = strain[0], force[0], pieces[2, 0]  # below the table
    rows[1:-1, L_STRAIN] = strain[:-1]
    rows[1:-1, L_C0 : L_C3 + 1] = pieces[::-1].T
    rows[-1, [L_STRAIN, L_C0, L_C1]] = strain[-1], force[-1], slope
    area = width * (
        pieces[3] + width * (pieces[2] / 2 + width * (pieces[1] / 3 + width * pieces[0] / 4))
    )
    rows[1:, L_ENERGY] = np.concatenate([[0.0], np.cumsum(area)])
    rows[:, L_ENERGY] -= _energy_at(rows, 0.0)
    return rows


def _energy_at(rows: Array, strain: float) -> float:
    return float(table_law(rows, strain)[2])


@compiled()
def table_law(rows, strain):
    """Force [N], slope [N] and energy per metre [J/m] of a table at a strain."""
    k = rows.shape[0] - 1
    while k > 1 and strain < rows[k, L_STRAIN]:
        k -= 1
    if k == 1 and strain < rows[1, L_STRAIN]:
        k = 0
    r = rows[k]
    e = strain - r[L_STRAIN]
    force = r[L_C0] + e * (r[L_C1] + e * (r[L_C2] + e * r[L_C3]))
    slope = r[L_C1] + e * (2.0 * r[L_C2] + e * 3.0 * r[L_C3])
    area = e * (r[L_C0] + e * (r[L_C1] / 2 + e * (r[L_C2] / 3 + e * r[L_C3] / 4)))
    return force, slope, r[L_ENERGY] + area


# ---------- Forces of one cable and their derivatives in a stage, as equations of its points.

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
    """Compliant ground under a node, the law of `plants.rigid_body.add_soft_ground` taken implicitly."""
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


# ---------- The fast path: a cable without bending whose end A is a leaf or prescribed.


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


# ---------- What a linear solution leaves: errors of tensions and contacts, momentum of the end lu

TENSION_SHARE = 1e-3
"""Share of a cable's tension by which the linear tension may miss the true one."""


@compiled()
def tension_error(kind, cable, laws, nodes, segments, tolerance, dh):
    """Tensions by the linear law, and by how much they miss the true one in the new positions."""
    start, begin = kind[FIRST_NODE], kind[FIRST_SEGMENT]
    worst, largest, lost, switched = 0.0, 0.0, 0.0, 0.0
    rest_rate = cable[REST_RATE] / kind[SEGMENTS]
    shift = cable[LENGTH_SHIFT] / kind[SEGMENTS]
    for i in range(kind[SEGMENTS]):
        s = segments[begin + i]
        a, b = nodes[start + i], nodes[start + i + 1]
        longer = (
            s[DIRECTION] * (b[DELTA] - a[DELTA])
            + s[DIRECTION + 1] * (b[DELTA + 1] - a[DELTA + 1])
            + s[DIRECTION + 2] * (b[DELTA + 2] - a[DELTA + 2])
            - s[LENGTH] / (s[REST] - shift) * shift
        )
        s[TENSION] += s[STIFFNESS] * longer
        if s[ALIVE] == 0.0:
            continue
        x, y, z = b[XS] - a[XS], b[XS + 1] - a[XS + 1], b[XS + 2] - a[XS + 2]
        length = np.sqrt(x * x + y * y + z * z)
        rate = (
            x * (b[VS] - a[VS]) + y * (b[VS + 1] - a[VS + 1]) + z * (b[VS + 2] - a[VS + 2])
        ) / max(length, SHORTEST)
        inverse = 1.0 / s[REST]
        strain = length * inverse - 1.0
        strain_rate = (rate - rest_rate * (1.0 + strain)) * inverse
        tension, elastic, _ = axial_force(strain, strain_rate, kind, cable, laws, dh)
        worst = max(worst, abs(tension - s[TENSION]))
        largest = max(largest, abs(s[TENSION]))
        s[LENGTH], s[RATE], s[ELASTIC] = length, rate, elastic
        lost += (s[TENSION] - elastic) * (rate - rest_rate * (1.0 + strain))
        if kind[SLACK] and (s[TENSION] > 0.0) != (s[TAUT] > 0.0):
            switched += 1.0
    return worst / (TENSION_SHARE * largest + tolerance), lost, switched


@compiled()
def note_ends(kinds, nodes, dh):
    """Accelerations of the end nodes by the linear solution."""
    for kind in kinds:
        for i in (kind[FIRST_NODE], kind[FIRST_NODE] + kind[SEGMENTS]):
            node = nodes[i]
            for k in range(3):
                node[LINEAR + k] = node[AS + k] + node[DELTA + k] / (dh * dh)


@compiled()
def keep_momentum(bodies, numbers, motion, kinds, cables, nodes, dh):
    """Make momentum exact: a turning body moves its cable ends a little off the linear solution.

    The balance holds for the linear accelerations of the end lumps; the difference goes to the
    body they are on.
    """
    for b in range(bodies.shape[0]):
        p = bodies[b]
        if numbers[b, B_FREE] == 0 or p[B_LUMPS] == 0.0:
            continue
        x = y = z = 0.0
        total = p[B_MASS]
        for c in range(kinds.shape[0]):
            for end in range(2):
                kind = kinds[c]
                if kind[BODY_A if end == 0 else BODY_B] == b:
                    node = nodes[kind[FIRST_NODE] + (0 if end == 0 else kind[SEGMENTS])]
                    x += node[MASS] * (node[AS] - node[LINEAR])
                    y += node[MASS] * (node[AS + 1] - node[LINEAR + 1])
                    z += node[MASS] * (node[AS + 2] - node[LINEAR + 2])
                    total += node[MASS]
        _shift(p, BXS, -x / total, -y / total, -z / total, dh)
        for k in range(3):
            motion[b, POSITION + k] = p[BXS + k]
            motion[b, VELOCITY + k] = p[BVS + k]
        for c in range(kinds.shape[0]):
            for end in range(2):
                kind = kinds[c]
                if kind[BODY_A if end == 0 else BODY_B] == b:
                    node = nodes[kind[FIRST_NODE] + (0 if end == 0 else kind[SEGMENTS])]
                    _shift(node, XS, -x / total, -y / total, -z / total, dh)


@compiled()
def _shift(row, column, x, y, z, dh):
    """Change an acceleration, and velocity and position with it."""
    for k in range(3):
        a = x if k == 0 else (y if k == 1 else z)
        row[column + 6 + k] += a
        row[column + 3 + k] += dh * a
        row[column + k] += dh * dh * a


@compiled()
def contact_error(p, m, corners, ground, tolerance, dh):
    """By how much the linear ground forces miss the law in the new position, over the allowed."""
    worst, largest = 0.0, 0.0
    for c in corners:
        rx = m[0] * c[C_PLACE] + m[1] * c[C_PLACE + 1] + m[2] * c[C_PLACE + 2]
        ry = m[3] * c[C_PLACE] + m[4] * c[C_PLACE + 1] + m[5] * c[C_PLACE + 2]
        rz = m[6] * c[C_PLACE] + m[7] * c[C_PLACE + 1] + m[8] * c[C_PLACE + 2]
        depth = ground - m[POSITION + 2] - rz
        vz = m[VELOCITY + 2] + m[OMEGA] * ry - m[OMEGA + 1] * rx
        up = p[B_CONTACT_STIFFNESS] * depth - p[B_CONTACT_DAMPING] * vz
        up = max(up, 0.0) if depth > 0.0 else 0.0
        linear = c[C_FORCE + 2]
        if linear > 0.0:
            sink = -p[RIGHT + 2] - (p[RIGHT + 3] * ry - p[RIGHT + 4] * rx)
            linear += (p[B_CONTACT_STIFFNESS] + p[B_CONTACT_DAMPING] / dh) * sink
        worst = max(worst, abs(up - linear))
        largest = max(largest, up)
    return worst / (TENSION_SHARE * largest + tolerance)


# ---------- Bending moments in the joints of a cable, as forces on three nodes.

STRAIGHT_RAD = 1e-4
"""Kink below which a joint has no plane of its own."""

SMALL_SINE2 = 4e-3
"""Square of the sine of a kink up to which its angle is a series, exact to rounding."""


@compiled()
def joint_moment(t1, t2, u1, u2, stiffness, damping, a, b, out):
    """Moment of a joint as two vectors across its directions, and its matrix."""
    c = t1[0] * t2[0] + t1[1] * t2[1] + t1[2] * t2[2]
    sx = t1[1] * t2[2] - t1[2] * t2[1]
    sy = t1[2] * t2[0] - t1[0] * t2[2]
    sz = t1[0] * t2[1] - t1[1] * t2[0]
    s2 = sx * sx + sy * sy + sz * sz
    sine = np.sqrt(s2)
    if s2 < SMALL_SINE2 and c > 0.0:  # asin(s) / s
        far = 5.0 / 112.0 + s2 * (35.0 / 1152.0 + s2 * 63.0 / 2816.0)
        ratio = 1.0 + s2 * (1.0 / 6.0 + s2 * (3.0 / 40.0 + s2 * far))
        angle = ratio * sine
    else:
        angle = np.arctan2(sine, c)
        ratio = angle / sine if sine > 1e-9 else 1.0
    for k in range(3):
        a[k] = t1[k] - c * t2[k]  # length sine, decreases the angle when added to t2
        b[k] = t2[k] - c * t1[k]
        out[k], out[3 + k] = stiffness * ratio * a[k], stiffness * ratio * b[k]
    if damping == 0.0:
        out[6:15] = 0.0
        return angle, 0.0
    return angle, _damp(u1, u2, s2, damping, a, b, out)


@compiled()
def _damp(u1, u2, s2, damping, a, b, out):
    """Add the damping of a joint to its moment, and write the projector; returns the power lost."""
    # Share of the damping that acts in every direction, the rest in the kink's plane.
    every = STRAIGHT_RAD**4 / (STRAIGHT_RAD**4 + s2 * s2)
    inverse = (1.0 - every) / s2 if s2 > 1e-24 else 0.0
    rate = 0.0
    for k in range(3):
        rate -= a[k] * u2[k] + b[k] * u1[k]
    plane = damping * rate * inverse
    loss = plane * rate
    for k in range(3):
        gap = damping * every * (u2[k] - u1[k])
        loss += gap * (u2[k] - u1[k])
        out[k] += plane * a[k] - gap
        out[3 + k] += plane * b[k] + gap
    for i in range(3):
        for j in range(3):
            out[6 + 3 * i + j] = 0.5 * (a[i] * a[j] + b[i] * b[j]) * inverse
        out[6 + 4 * i] += every
    return loss


@compiled()
def assemble_bending(
    kind, cable, nodes, segments, band, border, right, corner, edge, dh, held, work, m3
):
    """Moments of all joints of a cable; its clamps are up to date in `cable`."""
    start, count = kind[FIRST_NODE], kind[SEGMENTS]
    first, begin = kind[FIRST_ROW], kind[FIRST_SEGMENT]
    lost = bent = i1 = 0.0
    damped = cable[BENDING_DAMPING] > 0.0
    out, u1, u2, a, b = work[0:15], work[15:18], work[18:21], work[21:24], work[24:27]
    for i in range(count + 1):
        before, after = segments[begin + max(i - 1, 0)], segments[begin + min(i, count - 1)]
        end_a, end_b = i == 0, i == count
        for k in range(3):
            u1[k] = cable[AXIS_RATE_A + k] if end_a else u2[k]
        weight = 1.0 / after[REST]
        if end_b:
            t2, i2 = cable[AXIS_WORLD_B : AXIS_WORLD_B + 3], 0.0
            for k in range(3):
                u2[k] = cable[AXIS_RATE_B + k]
            weight *= cable[CLAMP_FACTOR_B]
        else:
            t2, i2 = after[DIRECTION : DIRECTION + 3], 1.0 / max(after[LENGTH], SHORTEST)
            if damped:
                _turning(nodes[start + i], nodes[start + i + 1], after, i2, u2)
        if end_a:
            t1 = cable[AXIS_WORLD_A : AXIS_WORLD_A + 3]
            weight *= cable[CLAMP_FACTOR_A]
        else:
            t1 = before[DIRECTION : DIRECTION + 3]
        missing = (end_a and kind[CLAMP_A] == 0) or (end_b and kind[CLAMP_B] == 0)
        if missing or before[ALIVE] == 0.0 or after[ALIVE] == 0.0:
            i1 = i2
            continue
        stiffness, damping = cable[EI] * weight, cable[BENDING_DAMPING] * weight
        angle, loss = joint_moment(t1, t2, u1, u2, stiffness, damping, a, b, out)
        lost += loss
        bent += 0.5 * stiffness * angle * angle
        damping /= dh
        for q in range(3):
            for r in range(q, 3):
                m = -0.5 * stiffness * (t1[q] * t1[r] + t2[q] * t2[r])
                m += damping * out[6 + 3 * q + r] + (stiffness if q == r else 0.0)
                m3[q, r], m3[r, q] = m, m
        # Share of each point in t2 - t1, B of K = B^T P B: a clamp's direction stands for itself.
        low, high = (-1.0 if end_a else i1), (1.0 if end_b else i2)
        if i > 1:
            _add_inner(band, first + 3 * (i - 2), m3, low, -i1 - i2, high)
        else:
            at = -1 if end_a else i - 1
            if not held:
                add_block(band, border, corner, first, at, at, m3, low * low)
            if not (held and end_a):
                add_block(band, border, corner, first, i, i, m3, (i1 + i2) ** 2)
                add_block(band, border, corner, first, at, i, m3, -low * (i1 + i2))
            add_block(band, border, corner, first, at, i + 1, m3, low * high)
            add_block(band, border, corner, first, i, i + 1, m3, -(i1 + i2) * high)
            add_block(band, border, corner, first, i + 1, i + 1, m3, high * high)
        # -dE/dt2 moves the upper node by 1 / l2 and the joint's node against it, the same below.
        x, y, z = out[0], out[1], out[2]
        u, v, w = out[3], out[4], out[5]
        add_right(right, edge, first, i + 1, x * high, y * high, z * high)
        add_right(right, edge, first, i, u * i1 - x * i2, v * i1 - y * i2, w * i1 - z * i2)
        add_right(right, edge, first, -1 if end_a else i - 1, -u * low, -v * low, -w * low)
        i1 = i2
    cable[BENT] = bent
    return lost


@compiled()
def _add_inner(band, row, m, low, middle, high):
    """Add the blocks of a joint none of whose points is in the border; the lowest is at `row`."""
    xx, xy, xz, yy, yz, zz = m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2]
    for i in range(3):
        f = low * low if i == 0 else (middle * middle if i == 1 else high * high)
        r, s, t = band[row + 3 * i], band[row + 3 * i + 1], band[row + 3 * i + 2]
        r[0] += f * xx
        r[1] += f * xy
        r[2] += f * xz
        s[0] += f * yy
        s[1] += f * yz
        t[0] += f * zz
        if i == 2:
            break
        f = middle * (low if i == 0 else high)
        r[3] += f * xx
        r[4] += f * xy
        r[5] += f * xz
        s[2] += f * xy
        s[3] += f * yy
        s[4] += f * yz
        t[1] += f * xz
        t[2] += f * yz
        t[3] += f * zz
        if i == 0:
            f = low * high
            r[6] += f * xx
            r[7] += f * xy
            r[8] += f * xz
            s[5] += f * xy
            s[6] += f * yy
            s[7] += f * yz
            t[4] += f * xz
            t[5] += f * yz
            t[6] += f * zz


@compiled()
def _turning(a, b, segment, inverse, out):
    """Rate of the direction of a segment."""
    rate = segment[RATE]
    for k in range(3):
        out[k] = (b[VS + k] - a[VS + k] - rate * segment[DIRECTION + k]) * inverse
