"""Force and moment that keep prescribed bodies on their paths."""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.elastic.columns import (
    AXIS_WORLD_A,
    AXIS_WORLD_B,
    B_FREE,
    B_MASS,
    BAS,
    BODY_A,
    BODY_B,
    BTAUS,
    BXS,
    END_FORCE_A,
    END_FORCE_B,
    EXTERNAL,
    FIRST_NODE,
    MOMENT_A,
    MOMENT_B,
    REACTION,
    SEGMENTS,
    XS,
)


@compiled()
def react(bodies, numbers, kinds, cables, nodes, gravity):
    """Force and moment that prescribed bodies need: inertia and weight less what else acts."""
    for b in range(bodies.shape[0]):
        p = bodies[b]
        if numbers[b, B_FREE]:
            continue
        for k in range(3):
            p[REACTION + k] = p[B_MASS] * p[BAS + k] - p[EXTERNAL + k]
            p[REACTION + 3 + k] = p[BTAUS + k] - p[EXTERNAL + 3 + k]
        p[REACTION + 2] += p[B_MASS] * gravity
        for c in range(kinds.shape[0]):
            kind, cable = kinds[c], cables[c]
            if kind[BODY_A] == b:
                at, force, moment, axis = kind[FIRST_NODE], END_FORCE_A, MOMENT_A, AXIS_WORLD_A
                _react_to(p, nodes[at], cable, force, moment, axis)
            if kind[BODY_B] == b:
                at = kind[FIRST_NODE] + kind[SEGMENTS]
                force, moment, axis = END_FORCE_B, MOMENT_B, AXIS_WORLD_B
                _react_to(p, nodes[at], cable, force, moment, axis)


@compiled()
def _react_to(p, node, cable, force, moment, axis):
    """Take the force of one cable's end, and the moment of its clamp, from a reaction."""
    x, y, z = node[XS] - p[BXS], node[XS + 1] - p[BXS + 1], node[XS + 2] - p[BXS + 2]
    fx, fy, fz = cable[force], cable[force + 1], cable[force + 2]
    p[REACTION] -= fx
    p[REACTION + 1] -= fy
    p[REACTION + 2] -= fz
    p[REACTION + 3] -= y * fz - z * fy
    p[REACTION + 4] -= z * fx - x * fz
    p[REACTION + 5] -= x * fy - y * fx
    x, y, z = cable[axis], cable[axis + 1], cable[axis + 2]
    fx, fy, fz = cable[moment], cable[moment + 1], cable[moment + 2]
    p[REACTION + 3] -= y * fz - z * fy
    p[REACTION + 4] -= z * fx - x * fz
    p[REACTION + 5] -= x * fy - y * fx
