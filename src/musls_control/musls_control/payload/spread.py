"""Least cable forces that keep all tensions above a minimum and the drones apart.

The wrench of the load leaves a null space: mu = S wrench + N c has the same force and moment for
every c. `min_norm` takes c = 0. Here c is the shortest that keeps

    up . mu_k >= least tension             (so |mu_k| is at least that, and the drone is above)
    n_ij . (p_i - p_j) >= distance         for all pairs of drones,

with p_k = b_k + l_k mu_k / |mu_k| the place that drone k is sent to, and n_ij the direction of the
pair in formation, so that the true distance is never less. RotorTM's files had the idea (its paper
uses the minimum norm alone). Tensions are linear; the places are linearised at the solution before,
a few times within a call, until nothing moves. Each time it is a least distance problem
(`least_distance`).

Derivatives follow with the same constraints binding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from musls_control.payload.allocation import share_out
from musls_control.payload.least_distance import least_distance
from musls_description.compiled import compiled

Array = NDArray[np.float64]

_STILL = 1e-4
"""Change of a force, over the mean force of a cable, that ends the linearisations: the distance is
then wrong by its square."""

ROUNDS = 12
"""Linearisations in one call at most; one or two are enough where the load moves smoothly."""


def null_space_of(attachments_m: Array) -> Array:
    """Orthonormal changes of the cable forces without force and moment, (3 n, n_free).

    Args:
        attachments_m: About the load's centre of mass, load frame, (n, 3).
    """
    rows = []
    mean = attachments_m.mean(axis=0)
    size = max(float(np.abs(attachments_m - mean).max()), 1e-9)
    for arm in (attachments_m - mean) / size:
        x, y, z = arm
        turn = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        rows.append(np.vstack([np.eye(3), turn]))
    _, values, vectors = np.linalg.svd(np.hstack(rows))
    rank = int(np.sum(values > 1e-6 * values[0]))
    return np.ascontiguousarray(vectors[rank:].T)


def places_of(bases_m: Array, lengths_m: Array, formation_m: Array, apart_m: float) -> Array:
    """Table of the drones' places for `spread_out`, (n + pairs, 4).

    Args:
        bases_m: Where each drone would be with a cable of no length, load frame, (n, 3).
        lengths_m: Lengths of the cables, (n,).
        formation_m: Places of the drones in formation, load frame, (n, 3).
        apart_m: Least distance of two drones' centres.
    """
    n = len(bases_m)
    rows = [np.column_stack([bases_m, lengths_m])]
    for i in range(n):
        for j in range(i + 1, n):
            gap = formation_m[i] - formation_m[j]
            rows.append(np.append(gap / max(float(np.linalg.norm(gap)), 1e-9), apart_m)[None])
    return np.ascontiguousarray(np.vstack(rows))


@compiled()
def spread_out(shares, null, places, least, up, wrench, out, memory, binding):
    """Write the least cable forces of a wrench that keep tensions and distances."""
    n, (rows, free) = out.shape[0], null.shape
    scale = math.sqrt(wrench[0] ** 2 + wrench[1] ** 2 + wrench[2] ** 2) / n + 1e-9
    base, before, c, h = np.empty((n, 3)), np.empty((n, 3)), np.zeros(free), np.zeros(len(binding))
    before[:] = out
    share_out(shares, wrench, 0, base)
    g = np.zeros((len(binding), free))
    for turn in range(ROUNDS):
        constraints(places, least, up, before, scale, memory, h)
        for row in range(len(binding)):
            size = 0.0
            for k in range(free):
                total = 0.0
                for i in range(rows):
                    total += memory[row, i] * null[i, k]
                memory[row, rows + k] = g[row, k] = total
                size += total * total
            size = math.sqrt(size)
            for i in range(rows):
                h[row] -= memory[row, i] * base[i // 3, i % 3] / scale
            if size < 1e-9:  # nothing to be done about it
                g[row] = 0.0
                h[row] = 1.0 if h[row] > 1e-9 else 0.0
            else:
                g[row] /= size
                h[row] /= size
        found = least_distance(g, h, c, binding)
        moved = 0.0
        for i in range(rows):
            force = base[i // 3, i % 3]
            for k in range(free):
                force += scale * null[i, k] * c[k]
            moved = max(moved, abs(force - before[i // 3, i % 3]))
            out[i // 3, i % 3] = force
        if not found:
            return False
        if moved < _STILL * scale:
            break
        keep = 0.5 if turn > 1 else 0.0  # else they may end in a swing between two solutions
        for i in range(n):
            for k in range(3):
                before[i, k] = out[i, k] + keep * (before[i, k] - out[i, k])
    return True


@compiled()
def constraints(places, least, up, at, scale, memory, h):
    """Write gradients on the forces over `scale`, and right-hand sides, of all constraints."""
    n = at.shape[0]
    memory[:] = 0.0
    ahead = np.empty((n, 4))
    for k in range(n):
        size = math.sqrt(at[k, 0] ** 2 + at[k, 1] ** 2 + at[k, 2] ** 2)
        for a in range(3):
            ahead[k, a] = at[k, a] / size if size > 1e-9 * scale else up[a]
            memory[k, 3 * k + a] = up[a]
        ahead[k, 3] = max(size, 0.1 * scale)
        h[k] = least[k] / scale
    row = n
    for i in range(n):
        for j in range(i + 1, n):
            x, y, z, apart = places[row]
            gap = 0.0
            for end in range(2):
                k, sign = (i, 1.0) if end == 0 else (j, -1.0)
                d, length = ahead[k], places[k, 3]
                lean = x * d[0] + y * d[1] + z * d[2]
                own = x * places[k, 0] + y * places[k, 1] + z * places[k, 2]
                gap += sign * (own + length * lean)
                rate = sign * length * scale / d[3]
                memory[row, 3 * k] = rate * (x - lean * d[0])
                memory[row, 3 * k + 1] = rate * (y - lean * d[1])
                memory[row, 3 * k + 2] = rate * (z - lean * d[2])
            h[row] = apart - gap
            row += 1


@compiled()
def spread_rate(shares, null, wrench, order, memory, binding, out):
    """Write a derivative of the cable forces, along the constraints that bind."""
    rows, free = null.shape
    share_out(shares, wrench, order, out)
    basis, c, used = np.empty((free, free)), np.zeros(free), 0
    for row in range(len(binding)):
        if binding[row] == 0.0 or used == free:
            continue
        v, whole, wanted = basis[used], 0.0, 0.0
        for k in range(free):
            v[k] = memory[row, rows + k]
            whole += v[k] * v[k]
        for i in range(rows):
            wanted -= memory[row, i] * out[i // 3, i % 3]
        for k in range(free):
            wanted -= memory[row, rows + k] * c[k]
        for b in range(used):
            share = 0.0
            for k in range(free):
                share += basis[b, k] * v[k]
            for k in range(free):
                v[k] -= share * basis[b, k]
        left = 0.0
        for k in range(free):
            left += v[k] * v[k]
        if left <= 1e-16 * whole:
            continue
        for k in range(free):  # v is orthogonal to the directions before: they stay met
            c[k] += wanted * v[k] / left
            v[k] /= math.sqrt(left)
        used += 1
    for i in range(rows):
        for k in range(free):
            out[i // 3, i % 3] += null[i, k] * c[k]
