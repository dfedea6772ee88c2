"""What a plant shows of its cables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_sim.plants.elastic.bodies import turn
from musls_sim.plants.elastic.cable import table_law
from musls_sim.plants.elastic.reels import add_reel_energies, add_reel_momenta
from musls_sim.plants.elastic.state import (
    ALIVE,
    AXIS_A,
    AXIS_B,
    AXIS_WORLD_A,
    AXIS_WORLD_B,
    B_FREE,
    B_INDEX,
    B_MASS,
    BAS,
    BENDS,
    BL,
    BODY_A,
    BODY_B,
    BR,
    BTAUS,
    BV,
    BW,
    BX,
    BXS,
    CLAMP_A,
    CLAMP_B,
    CLAMP_FACTOR_A,
    CLAMP_FACTOR_B,
    EA,
    EI,
    END_FORCE_A,
    END_FORCE_B,
    EXTERNAL,
    FIRST_NODE,
    FIRST_SEGMENT,
    GRAVITY,
    LINEAR_DENSITY,
    MASS,
    MOMENT_A,
    MOMENT_B,
    PEAK,
    REACTION,
    REST,
    SEGMENTS,
    SLACK,
    STORED_A,
    STORED_B,
    TABLE_FIRST,
    TABLE_ROWS,
    XS,
    A,
    Tables,
    V,
    X,
)
from musls_sim.plants.rigid_links.rows import collect_state

# ---------- Energies and momenta of a rig.

Array = NDArray[np.float64]


def energies(tables: Tables) -> Array:
    """Kinetic, potential, axial strain and bending energy of the state, (4,) [J]."""
    out = np.zeros(4)
    add_energies(tables, out)
    return out


@compiled()
def add_energies(t, out):
    """Add kinetic, potential, axial strain and bending energy of the state to `out`, (4,)."""
    gravity = t.parameters[GRAVITY]
    for p in t.bodies:
        for k in range(3):
            out[0] += 0.5 * (p[B_MASS] * p[BV + k] ** 2 + p[BW + k] * p[BL + k])
        out[1] += p[B_MASS] * gravity * p[BX + 2]
    for n in t.nodes:
        out[0] += 0.5 * n[MASS] * (n[V] ** 2 + n[V + 1] ** 2 + n[V + 2] ** 2)
        out[1] += n[MASS] * gravity * n[X + 2]
    add_reel_energies(t, out)
    for c in range(t.kinds.shape[0]):
        kind, cable = t.kinds[c], t.cables[c]
        for s in range(kind[SEGMENTS]):
            out[2] += strain_energy(t, kind, cable, s)
        if not kind[BENDS]:
            continue
        for i in range(kind[SEGMENTS] + 1):
            if (i == 0 and not kind[CLAMP_A]) or (i == kind[SEGMENTS] and not kind[CLAMP_B]):
                continue
            out[3] += bending_energy(t, kind, cable, i)


@compiled()
def strain_energy(t, kind, cable, s):
    """Strain energy of segment s (from 0 at end A) of a cable [J]."""
    segment = t.segments[kind[FIRST_SEGMENT] + s]
    a, b = t.nodes[kind[FIRST_NODE] + s], t.nodes[kind[FIRST_NODE] + s + 1]
    x, y, z = b[X] - a[X], b[X + 1] - a[X + 1], b[X + 2] - a[X + 2]
    strain = np.sqrt(x * x + y * y + z * z) / segment[REST] - 1.0
    if kind[SLACK] and strain <= 0.0:
        return 0.0
    if kind[TABLE_ROWS] > 0:
        first = kind[TABLE_FIRST]
        energy = table_law(t.laws[first : first + kind[TABLE_ROWS]], strain)[2]
    else:
        energy = 0.5 * cable[EA] * strain * strain
    return energy * segment[REST] * segment[ALIVE]


@compiled()
def bending_energy(t, kind, cable, i):
    """Bending energy of the joint at node i of a cable (at its ends: of the clamp) [J]."""
    t1, t2 = t.work[0:3], t.work[3:6]
    count, begin = kind[SEGMENTS], kind[FIRST_SEGMENT]
    before, after = t.segments[begin + max(i - 1, 0)], t.segments[begin + min(i, count - 1)]
    if before[ALIVE] == 0.0 or after[ALIVE] == 0.0:
        return 0.0
    first = kind[FIRST_NODE]
    if i == 0:
        turn(t.bodies[kind[BODY_A], BR : BR + 9], cable[AXIS_A : AXIS_A + 3], t1)
        weight = cable[CLAMP_FACTOR_A] / after[REST]
    else:
        for k in range(3):
            t1[k] = t.nodes[first + i, X + k] - t.nodes[first + i - 1, X + k]
    if i == count:
        turn(t.bodies[kind[BODY_B], BR : BR + 9], cable[AXIS_B : AXIS_B + 3], t2)
        weight = cable[CLAMP_FACTOR_B] / before[REST]
    else:
        for k in range(3):
            t2[k] = t.nodes[first + i + 1, X + k] - t.nodes[first + i, X + k]
    if 0 < i < count:
        weight = 2.0 / (before[REST] + after[REST])
    sx = t1[1] * t2[2] - t1[2] * t2[1]
    sy = t1[2] * t2[0] - t1[0] * t2[2]
    sz = t1[0] * t2[1] - t1[1] * t2[0]
    cosine = t1[0] * t2[0] + t1[1] * t2[1] + t1[2] * t2[2]
    angle = np.arctan2(np.sqrt(sx * sx + sy * sy + sz * sz), cosine)
    return 0.5 * cable[EI] * weight * angle * angle


def momenta(tables: Tables) -> tuple[Array, Array]:
    """Momentum and angular momentum about the origin of everything, (3,) each."""
    bodies, nodes = tables.bodies, tables.nodes
    linear = bodies[:, B_MASS] @ bodies[:, BV : BV + 3] + nodes[:, MASS] @ nodes[:, V : V + 3]
    body = np.cross(bodies[:, BX : BX + 3], bodies[:, [B_MASS]] * bodies[:, BV : BV + 3])
    node = np.cross(nodes[:, X : X + 3], nodes[:, [MASS]] * nodes[:, V : V + 3])
    angular = body.sum(axis=0) + bodies[:, BL : BL + 3].sum(axis=0) + node.sum(axis=0)
    add_reel_momenta(tables, linear, angular)
    return linear, angular


# ---------- Force and moment that keep prescribed bodies on their paths.


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


@compiled()
def collect_cables(kinds, cables, nodes, segments, gravity, force, peak):
    """Forces at the ends of the cables in the frames of their end segments."""
    for c in range(force.shape[0]):
        kind, cable = kinds[c], cables[c]
        first, begin, count = kind[FIRST_NODE], kind[FIRST_SEGMENT], kind[SEGMENTS]
        for end in range(2):
            near = first + count if end == 0 else first
            far = near - 1 if end == 0 else near + 1
            at = END_FORCE_B if end == 0 else END_FORCE_A
            # x from the load to the drone along the segment, y horizontal.
            sign = 1.0 if end == 0 else -1.0
            x = sign * (nodes[far, X] - nodes[near, X])
            y = sign * (nodes[far, X + 1] - nodes[near, X + 1])
            z = sign * (nodes[far, X + 2] - nodes[near, X + 2])
            length = np.sqrt(x * x + y * y + z * z)
            x, y, z = x / length, y / length, z / length
            flat = np.sqrt(x * x + y * y)
            c1, s1 = (x / flat, y / flat) if flat > 1e-9 else (1.0, 0.0)
            wound = cable[LINEAR_DENSITY] * cable[STORED_A if end == 1 else STORED_B]
            fx = sign * (cable[at] + wound * nodes[near, A])
            fy = sign * (cable[at + 1] + wound * nodes[near, A + 1])
            fz = sign * (cable[at + 2] + wound * (nodes[near, A + 2] + gravity))
            force[c, end, 0] = fx * x + fy * y + fz * z
            force[c, end, 1] = -fx * s1 + fy * c1
            force[c, end, 2] = -z * (fx * c1 + fy * s1) + flat * fz
        top = 0.0
        for s in range(begin, begin + count):
            top = max(top, segments[s, PEAK])
        peak[c] = top


@compiled()
def collect_bodies(motion, numbers, dt, shown):
    """State of all bodies, see `plants.rigid_body.collect_state`."""
    collect_state(motion, numbers[:, B_INDEX], dt, shown)
