"""Ground under the corners of boxes: a spring and damper that only push, friction that sticks.

Normal force max(0, k depth - c rise rate); friction is a spring to where the corner stuck, limited
to mu times the normal force. Steps on the ground are short enough for its stiffness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY
from musls_sim.plants.massless.columns import (
    ANCHOR,
    CORNERS,
    DAMPING,
    FIRST_CORNER,
    FRICTION,
    GROUND,
    NEAR,
    PLACE,
    PUSH,
    RADIUS,
    STIFFNESS,
    STUCK,
    V,
    X,
)

Array = NDArray[np.float64]

STATIC_SINK_M = 5e-4
"""Depth to which a body's own weight presses four corners into the ground."""

STABLE = 1.5
"""Step times the fastest decay rate of a body on its corners; RK4 is stable up to 2.78."""


def corner_constants(mass_kg: float) -> tuple[float, float]:
    """Stiffness [N/m] and damping [N s/m] of each corner of a body: critical on four."""
    stiffness = mass_kg * 9.80665 / (4.0 * STATIC_SINK_M)
    return stiffness, float(np.sqrt(stiffness * mass_kg))


def contact_step_s(mass_kg: float, inertia: Array, corners: Array) -> float:
    """Longest step for a body that stands on four corners of its box.

    Args:
        mass_kg: Mass.
        inertia: (3, 3).
        corners: Body frame, (8, 3), the lower half of them touches.
    """
    stiffness, damping = corner_constants(mass_kg)
    effect = np.zeros((6, 6))
    for r in corners[np.argsort(corners[:, 2])[:4]]:
        arm = np.array([[0.0, r[2], -r[1]], [-r[2], 0.0, r[0]], [r[1], -r[0], 0.0]])
        jacobian = np.hstack([np.eye(3), arm])
        effect += jacobian.T @ jacobian
    weight = np.zeros((6, 6))
    weight[:3, :3], weight[3:, 3:] = mass_kg * np.eye(3), inertia
    fastest = float(np.abs(np.linalg.eigvals(np.linalg.solve(weight, effect))).max())
    # x'' + c e x' + k e x = 0: the fastest decay of the overdamped, the frequency of the other.
    c, k = damping * fastest, stiffness * fastest
    rate = max(np.sqrt(k), 0.5 * (c + np.sqrt(max(c * c - 4.0 * k, 0.0))))
    return float(STABLE / rate)


@compiled()
def look_for_ground(t, y, ahead_s):
    """Note which bodies can touch the ground within a time; whether any can."""
    ground = t.parameters[GROUND]
    any_near = False
    for i in range(y.shape[0]):
        p = t.bodies[i]
        speed = np.sqrt(y[i, V] ** 2 + y[i, V + 1] ** 2 + y[i, V + 2] ** 2)
        reach = p[RADIUS] + ahead_s * (speed + 10.0 * ahead_s)
        near = p[CORNERS] > 0.0 and y[i, X + 2] - reach < ground
        p[NEAR] = 1.0 if near else 0.0
        any_near |= near
    return any_near


@compiled()
def add_corners(t, p, m, w):
    """Add the ground's forces on one body to its wrench."""
    ground, friction = t.parameters[GROUND], t.parameters[FRICTION]
    first, count = int(p[FIRST_CORNER]), int(p[CORNERS])
    for q in range(first, first + count):
        c = t.corners[q]
        rx = m[0] * c[PLACE] + m[1] * c[PLACE + 1] + m[2] * c[PLACE + 2]
        ry = m[3] * c[PLACE] + m[4] * c[PLACE + 1] + m[5] * c[PLACE + 2]
        rz = m[6] * c[PLACE] + m[7] * c[PLACE + 1] + m[8] * c[PLACE + 2]
        depth = ground - m[POSITION + 2] - rz
        c[PUSH] = c[PUSH + 1] = c[PUSH + 2] = 0.0
        if depth <= 0.0:
            continue
        vx = m[VELOCITY] + m[OMEGA + 1] * rz - m[OMEGA + 2] * ry
        vy = m[VELOCITY + 1] + m[OMEGA + 2] * rx - m[OMEGA] * rz
        vz = m[VELOCITY + 2] + m[OMEGA] * ry - m[OMEGA + 1] * rx
        up = p[STIFFNESS] * depth - p[DAMPING] * vz
        if up <= 0.0:
            continue
        fx, fy = -p[DAMPING] * vx, -p[DAMPING] * vy
        if c[STUCK] != 0.0:
            fx += p[STIFFNESS] * (c[ANCHOR] - m[POSITION] - rx)
            fy += p[STIFFNESS] * (c[ANCHOR + 1] - m[POSITION + 1] - ry)
        size = np.sqrt(fx * fx + fy * fy)
        if size > friction * up:
            fx *= friction * up / size
            fy *= friction * up / size
        c[PUSH], c[PUSH + 1], c[PUSH + 2] = fx, fy, up
        w[0] += fx
        w[1] += fy
        w[2] += up
        w[3] += ry * up - rz * fy
        w[4] += rz * fx - rx * up
        w[5] += rx * fy - ry * fx


@compiled()
def settle_corners(t, friction):
    """After a step: corners in the air let go, those on the ground stick where they are.

    The forces are those of the last `add_corners`. A corner that slips drags its place along.
    """
    for i in range(t.bodies.shape[0]):
        p, m = t.bodies[i], t.motion[i]
        first, count = int(p[FIRST_CORNER]), int(p[CORNERS])
        for q in range(first, first + count):
            c = t.corners[q]
            if p[NEAR] == 0.0 or c[PUSH + 2] == 0.0:
                c[STUCK] = 0.0
                continue
            x = m[POSITION] + m[0] * c[PLACE] + m[1] * c[PLACE + 1] + m[2] * c[PLACE + 2]
            y = m[POSITION + 1] + m[3] * c[PLACE] + m[4] * c[PLACE + 1] + m[5] * c[PLACE + 2]
            slips = c[PUSH] ** 2 + c[PUSH + 1] ** 2 >= 0.999 * (friction * c[PUSH + 2]) ** 2
            if c[STUCK] == 0.0:
                c[ANCHOR], c[ANCHOR + 1], c[STUCK] = x, y, 1.0
            elif slips:
                c[ANCHOR] = x + c[PUSH] / p[STIFFNESS]
                c[ANCHOR + 1] = y + c[PUSH + 1] / p[STIFFNESS]
