"""Massless cables of a rig: several to a body, between any bodies, in compiled code.

As in `cables`, but what couples cables are all bodies that several of them share. Each end of a
cable gives a body the acceleration s (u / m, J^-1 a) by a unit tension, s = 1 at end 1, -1 at end
2, u the direction from end 1 to end 2, a = r x R^T u the moment; so that

    d'' = b - D T,   D_jk = sum over shared bodies of s_j s_k (u_j . u_k / m + a_j . J^-1 a_k).

D is singular where tensions are not determined (four parallel cables between two bodies): each
cable gives way by a share of 1e-9, which shares the force out by least squares.
"""

from __future__ import annotations

import math

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    cross,
    dot,
    increase,
    put,
    rotate,
    rotate_back,
    scale,
    sub,
    times,
    unit,
)
from musls_sim.plants.massless.bodies import point_acceleration, shift
from musls_sim.plants.massless.records import bodies_of, cables_of, coupling_of, ends_of
from musls_sim.plants.rigid_body import arm_velocity

SOFT = 1e-9
"""Share by which a cable gives way."""


@compiled()
def find_rig_cables(t):
    """Direction, gap, rate and free acceleration of all cables, and how they act on each other."""
    bodies = bodies_of(t)
    cables = cables_of(t)
    ends = ends_of(t)
    for k in range(len(cables)):
        cable = cables[k]
        first = bodies[ends[k, 0].body]
        second = bodies[ends[k, 1].body]
        low = rotate(first.rotation, ends[k, 0].point)
        high = rotate(second.rotation, ends[k, 1].point)
        along, distance = unit(sub(sub(add(second.position, high), first.position), low))
        v = sub(arm_velocity(second, high), arm_velocity(first, low))
        rate = dot(along, v)
        across = max(dot(v, v) - rate * rate, 0.0)
        a = sub(
            point_acceleration(second, ends[k, 1].point),
            point_acceleration(first, ends[k, 0].point),
        )
        cable.gap = distance - cable.length
        cable.rate = rate
        cable.free_acceleration = dot(along, a) + (across / distance if distance > 0.0 else 0.0)
        put(cable.along, along)
        for side in range(2):
            end = ends[k, side]
            body = bodies[end.body]
            put(end.arm, cross(end.point, rotate_back(body.rotation, along)))
            put(end.turn, times(body.inverse_inertia, end.arm))
    couple(t)


@compiled()
def couple(t):
    """Fill the matrix D."""
    bodies = bodies_of(t)
    cables = cables_of(t)
    ends = ends_of(t)
    matrix = coupling_of(t)[0]
    for j in range(len(cables)):
        for k in range(j + 1):
            total = 0.0
            for p in range(2):
                for q in range(2):
                    one = ends[j, p]
                    other = ends[k, q]
                    if one.body != other.body:
                        continue
                    mobility = bodies[one.body].inverse_mass
                    effect = mobility * dot(cables[j].along, cables[k].along)
                    effect += dot(one.arm, other.turn)
                    total += effect if p == q else -effect
            matrix[j, k] = matrix[k, j] = total
        cables[j].own = matrix[j, j] = matrix[j, j] * (1.0 + SOFT)


@compiled()
def solve_rig_active(load, cables, rig):
    """Solve D z = b for the active cables, z = 0 for the others."""
    matrix = rig[0]
    root = rig[1]
    for i in range(len(cables)):
        if cables[i].active == 0:
            continue
        for j in range(i + 1):
            if cables[j].active == 0:
                continue
            s = matrix[i, j]
            for k in range(j):
                if cables[k].active != 0:
                    s -= root[i, k] * root[j, k]
            if i == j:
                root[i, i] = 1.0 / math.sqrt(max(s, 1e-3 * SOFT * matrix[i, i]))
            else:
                root[i, j] = s * root[j, j]
    solve_rig_with_factor(load, cables, rig)


@compiled()
def solve_rig_with_factor(load, cables, rig):
    """Solve the active cables' equations with the present factor, whose diagonal is inverted."""
    root = rig[1]
    m = len(cables)
    for i in range(m):
        cables[i].solution = 0.0
        if cables[i].active != 0:
            s = cables[i].right
            for k in range(i):
                if cables[k].active != 0:
                    s -= root[i, k] * cables[k].solution
            cables[i].solution = s * root[i, i]
    for i in range(m - 1, -1, -1):
        if cables[i].active != 0:
            s = cables[i].solution
            for k in range(i + 1, m):
                if cables[k].active != 0:
                    s -= root[k, i] * cables[k].solution
            cables[i].solution = s * root[i, i]
    sum_rig_pulls(load, cables, rig)


@compiled()
def sum_rig_pulls(load, cables, rig):
    """Note what the others' tensions do to each cable where `cables` looks for it: lever . pull."""
    matrix = rig[0]
    for i in range(6):
        load.pull[i] = 1.0 if i == 0 else 0.0
    for k in range(len(cables)):
        total = 0.0
        for j in range(len(cables)):
            if j != k:
                total += matrix[k, j] * cables[j].solution
        for i in range(6):
            cables[k].lever[i] = total if i == 0 else 0.0


@compiled()
def pull_rig(t, states):
    """Give the bodies the accelerations of the tensions, or the velocities of impulses."""
    bodies = bodies_of(t)
    cables = cables_of(t)
    ends = ends_of(t)
    for k in range(len(cables)):
        z = cables[k].solution
        for side in range(2):
            end = ends[k, side]
            body = bodies[end.body]
            if body.free != 0:
                pulled = z if side == 0 else -z
                out = body.state if states else body.rate
                increase(out.velocity, scale(pulled * body.inverse_mass, cables[k].along))
                increase(out.omega, scale(pulled, end.turn))


@compiled()
def shift_rig(t):
    """Move the bodies by the solution as a length of each cable, by masses."""
    bodies = bodies_of(t)
    cables = cables_of(t)
    ends = ends_of(t)
    for k in range(len(cables)):
        z = cables[k].solution
        for side in range(2):
            end = ends[k, side]
            body = bodies[end.body]
            if body.free != 0:
                pulled = z if side == 0 else -z
                way = scale(pulled * body.inverse_mass, cables[k].along)
                shift(body, way, scale(pulled, end.turn))
