"""What a linear solution leaves: errors of tensions and contacts, momentum of the end lumps."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY
from musls_sim.plants.elastic.assembly import SHORTEST, axial_force
from musls_sim.plants.elastic.columns import (
    ALIVE,
    AS,
    B_CONTACT_DAMPING,
    B_CONTACT_STIFFNESS,
    B_FREE,
    B_LUMPS,
    B_MASS,
    BODY_A,
    BODY_B,
    BVS,
    BXS,
    C_FORCE,
    C_PLACE,
    DELTA,
    DIRECTION,
    ELASTIC,
    FIRST_NODE,
    FIRST_SEGMENT,
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
    TAUT,
    TENSION,
    VS,
    XS,
)

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
