"""Ground under boxes: compliant corners with stick-slip friction, solved with everything else.

Normal force max(0, k depth - c rise rate) at each corner of a body's box below the ground.
Friction is a spring to the place where the corner stuck, limited to mu times the normal force
(elastic-plastic Coulomb law): a standing body does not creep.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY
from musls_sim.plants.elastic.columns import (
    B_CONTACT_DAMPING,
    B_CONTACT_STIFFNESS,
    B_RADIUS,
    BXS,
    C_ACTIVE,
    C_ANCHOR,
    C_FORCE,
    C_PLACE,
    C_TOUCHED,
    C_TRIAL,
    RIGHT,
)


@compiled()
def near_ground(p, ground):
    """Whether any corner of the body can be below the ground (False if there is no ground)."""
    return p[BXS + 2] - p[B_RADIUS] < ground


@compiled()
def corner_forces(p, m, corners, ground, friction, dh, s, first, r, k3):
    """Add the ground's forces on one body to its balance, their derivatives to the matrix."""
    stiff, damp = p[B_CONTACT_STIFFNESS], p[B_CONTACT_DAMPING]
    slope = stiff + damp / dh
    for c in corners:
        for i in range(3):
            r[i] = (
                m[3 * i] * c[C_PLACE]
                + m[3 * i + 1] * c[C_PLACE + 1]
                + m[3 * i + 2] * c[C_PLACE + 2]
            )
        depth = ground - m[POSITION + 2] - r[2]
        vx = m[VELOCITY] + m[OMEGA + 1] * r[2] - m[OMEGA + 2] * r[1]
        vy = m[VELOCITY + 1] + m[OMEGA + 2] * r[0] - m[OMEGA] * r[2]
        vz = m[VELOCITY + 2] + m[OMEGA] * r[1] - m[OMEGA + 1] * r[0]
        up = stiff * depth - damp * vz
        c[C_FORCE] = c[C_FORCE + 1] = c[C_FORCE + 2] = 0.0
        if depth <= 0.0 or up <= 0.0:
            continue
        x, y = m[POSITION] + r[0], m[POSITION + 1] + r[1]
        if c[C_ACTIVE] == 0.0:  # it touches within this step: stuck where it is before the stage
            c[C_ANCHOR], c[C_ANCHOR + 1], c[C_ACTIVE] = x - dh * vx, y - dh * vy, 1.0
        fx = stiff * (c[C_ANCHOR] - x) - damp * vx
        fy = stiff * (c[C_ANCHOR + 1] - y) - damp * vy
        size = np.sqrt(fx * fx + fy * fy)
        limit = friction * up
        k3[:] = 0.0
        k3[0, 0] = k3[1, 1] = k3[2, 2] = slope
        c[C_TRIAL] = 0.0
        if size > limit:
            fx, fy = fx / size, fy / size
            scale = slope * limit / size
            k3[0, 0] = scale * (1.0 - fx * fx)
            k3[1, 1] = scale * (1.0 - fy * fy)
            k3[0, 1] = k3[1, 0] = -scale * fx * fy
            fx *= limit
            fy *= limit
            c[C_TRIAL] = 1.0
        c[C_FORCE], c[C_FORCE + 1], c[C_FORCE + 2] = fx, fy, up
        p[RIGHT] += fx
        p[RIGHT + 1] += fy
        p[RIGHT + 2] += up
        p[RIGHT + 3] += r[1] * up - r[2] * fy
        p[RIGHT + 4] += r[2] * fx - r[0] * up
        p[RIGHT + 5] += r[0] * fy - r[1] * fx
        add_point(s, first, r, k3)


@compiled()
def add_point(s, first, r, k3):
    """Add a symmetric stiffness at a point of a body to the lower triangle of a matrix.

    With the displacement d + t x r of the point: K, K [r]^T and [r] K [r]^T.
    """
    for i in range(3):
        for j in range(i + 1):
            s[first + i, first + j] += k3[i, j]
        # Row i of [r] K, then that times [r]^T, its cross product with r.
        p, q = (i + 1) % 3, (i + 2) % 3
        x = r[p] * k3[q, 0] - r[q] * k3[p, 0]
        y = r[p] * k3[q, 1] - r[q] * k3[p, 1]
        z = r[p] * k3[q, 2] - r[q] * k3[p, 2]
        row = s[first + 3 + i]
        row[first] += x
        row[first + 1] += y
        row[first + 2] += z
        row[first + 3] += r[1] * z - r[2] * y
        if i > 0:
            row[first + 4] += r[2] * x - r[0] * z
        if i > 1:
            row[first + 5] += r[0] * y - r[1] * x


@compiled()
def settle_corners(p, m, corners, ground):
    """After a step: let go of corners in the air, drag along the springs of those that slip."""
    stiff = p[B_CONTACT_STIFFNESS]
    for c in corners:
        c[C_TOUCHED] = c[C_FORCE + 2]
        if c[C_FORCE + 2] == 0.0:
            c[C_ACTIVE] = 0.0
        elif c[C_TRIAL] > 0.0:
            for i in range(2):
                at = m[POSITION + i] + (
                    m[3 * i] * c[C_PLACE]
                    + m[3 * i + 1] * c[C_PLACE + 1]
                    + m[3 * i + 2] * c[C_PLACE + 2]
                )
                c[C_ANCHOR + i] = at + c[C_FORCE + i] / stiff
