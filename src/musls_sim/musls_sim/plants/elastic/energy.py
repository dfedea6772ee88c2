"""Energies and momenta of a rig."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_sim.plants.elastic.axial import table_law
from musls_sim.plants.elastic.columns import (
    ALIVE,
    AXIS_A,
    AXIS_B,
    B_MASS,
    BENDS,
    BL,
    BODY_A,
    BODY_B,
    BR,
    BV,
    BW,
    BX,
    CLAMP_A,
    CLAMP_B,
    CLAMP_FACTOR_A,
    CLAMP_FACTOR_B,
    EA,
    EI,
    FIRST_NODE,
    FIRST_SEGMENT,
    GRAVITY,
    MASS,
    REST,
    SEGMENTS,
    SLACK,
    TABLE_FIRST,
    TABLE_ROWS,
    V,
    X,
)
from musls_sim.plants.elastic.reel_energy import add_reel_energies, add_reel_momenta
from musls_sim.plants.elastic.rotations import turn
from musls_sim.plants.elastic.tables import Tables

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
