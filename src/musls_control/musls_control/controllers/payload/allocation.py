"""Allocation of the load's wrench to its cables.

Cable forces mu_k in the load's frame give the force sum mu_k and the moment sum rho_k x mu_k. With
mu_k = F / n + delta_k, sum delta_k = 0, the force is exact and the moment asks for

    sum (rho_k - rho_mean) x delta_k = M - rho_mean x F,

whose smallest solution is a pseudo-inverse. Where the cables can give all six components this is
the minimum norm solution of both together (eq. 72 of RotorTM). Where they cannot (one cable: no
moment; two: none about the line through both attachments) the force stays exact and the component
that does not exist is left out, instead of trading newtons for newton metres.

What is left open, the null space, decides how far the cables are spread. `preferred` forces are
kept as far as the wrench leaves them free: the solution is the one nearest to them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from musls_description.numerics.arrays import Array, cross_matrix, grasp_matrix
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import add_scaled, dot, norm, put, scale, sub


class Sharing(NamedTuple):
    """Allocation of the wrench of a load to n cables.

    Attributes:
        shares: Forces of the cables per wrench, (3 n, 7), see `shares_of`.
        null: Directions that may be added, (n_free, 3 n), see `null_space_of`.
        places: Places of the drones, (n + pairs, 4), see `places_of`; empty where nothing keeps
            tensions and distances.
        gradients: Gradients of these constraints, (n + pairs, 3 n + n_free); written.
        binding: Mask of the constraints that bind, (n + pairs,); written.
    """

    shares: Array
    null: Array
    places: Array
    gradients: Array
    binding: Array


def shares_of(attachments_m: Array, preferred_n: Array | None = None) -> Array:
    """Matrix of the allocation: mu = shares[:, :6] wrench + shares[:, 6].

    Attachments are about the load's centre of mass, load frame, (n, 3). The cable forces stay near
    to `preferred_n`, load frame, (n, 3); None is zero, which gives the minimum norm solution.
    Returns (3 n, 7).
    """
    n = len(attachments_m)
    mean = attachments_m.mean(axis=0)
    spread = grasp_matrix(attachments_m - mean)[3:]
    turning = np.linalg.pinv(spread, rcond=1e-6)
    shares = np.zeros((3 * n, 7))
    shares[:, 3:6] = turning
    shares[:, 0:3] = np.tile(np.eye(3) / n, (n, 1)) - turning @ cross_matrix(mean)
    if preferred_n is not None:
        flat = np.ascontiguousarray(preferred_n, np.float64).ravel()
        shares[:, 6] = flat - shares[:, :6] @ (grasp_matrix(attachments_m) @ flat)
    return shares


def givable_of(attachments_m: Array, inertia_kg_m2: Array) -> Array:
    """Matrix, (3, 3), that leaves of an angular acceleration what forces of cables can give."""
    spread = grasp_matrix(attachments_m - attachments_m.mean(axis=0))[3:]
    moments = spread @ np.linalg.pinv(spread, rcond=1e-6)
    return np.asarray(np.linalg.solve(inertia_kg_m2, moments @ inertia_kg_m2))


@compiled()
def inner(a, b):
    """Return the inner product of two vectors of any length."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled()
def accumulate(out, factor, a):
    """Add a multiple of a vector to another one in place."""
    for k in range(len(out)):
        out[k] += factor * a[k]


@compiled()
def clear(table):
    """Write zeros into a table (n, m); here and below, `x[:] = 0.0` takes a second to compile."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            table[i, j] = 0.0


@compiled()
def share_out(shares, wrench, order, out):
    """Write the cable forces of a wrench, or of a derivative of it, (n, 3)."""
    for i in range(out.shape[0]):
        for axis in range(3):
            row = 3 * i + axis
            total = 0.0
            for k in range(6):
                total += shares[row, k] * wrench[k]
            out[i, axis] = (shares[row, 6] if order == 0 else 0.0) + total


# ---------- The point nearest to zero among linear inequalities, exactly, in compiled code

_NOTHING = 1e-12
"""Size of numbers of order one that counts as zero."""

_INFEASIBLE = 1e-9
"""Squared residual of the dual problem that counts as zero: an answer longer than 3e4."""


# Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23: the least distance
# problem
#
#     minimise |x| subject to G x >= h
#
# is the dual of the non-negative least squares problem min |E u - f|, u >= 0, with the columns
# (G_j, h_j) in E and f = (0, ..., 0, 1). With its residual r = f - E u the answer is x = -r /
# r_last (without the last element); r = 0 says that no x fits. Both are found by an active set,
# so that x is exact and the constraints that bind are known.


@compiled()
def least_distance(g, h, x, binding):
    """Find the shortest x with G x >= h; rows and answer should be of order one."""
    m, d = g.shape
    columns = np.empty((m, d + 1))
    u = np.zeros(m)
    s = np.empty(m)
    rest = np.empty(d + 1)
    columns[:, :d] = g
    columns[:, d] = h
    fit(columns, binding, s)
    if s.min() >= 0.0:
        u[:] = s
    else:
        binding[:] = 0.0
    for _ in range(20 * (m + 1)):
        residual(columns, u, rest)
        if rest[d] < _INFEASIBLE:
            break
        joins = -1
        most = _NOTHING
        for j in range(m):
            slope = inner(columns[j], rest)
            if binding[j] == 0.0 and slope > most:
                joins = j
                most = slope
        if joins < 0:
            break
        binding[joins] = 1.0
        fit(columns, binding, s)
        if s[joins] <= 0.0:  # by rounding: it adds nothing
            binding[joins] = 0.0
            break
        settle(columns, binding, u, s)
    if rest[d] < _INFEASIBLE:
        binding[:] = 0.0
        x[:] = 0.0
        return False
    for k in range(d):
        x[k] = -rest[k] / rest[d]
    return True


@compiled()
def settle(columns, binding, u, s):
    """Go from u towards the fit s; what would become negative leaves, until a fit is reached."""
    m = len(u)
    for _ in range(m + 1):
        step = 1.0
        for j in range(m):
            if binding[j] != 0.0 and s[j] <= 0.0:
                step = min(step, u[j] / max(u[j] - s[j], 1e-300))
        for j in range(m):
            u[j] += step * (s[j] - u[j])
        if step == 1.0:
            break
        for j in range(m):
            if binding[j] != 0.0 and s[j] <= 0.0 and u[j] <= _NOTHING:
                binding[j] = 0.0
                u[j] = 0.0
        fit(columns, binding, s)


@compiled()
def residual(columns, u, rest):
    """Write f - E u."""
    rest[:] = 0.0
    rest[-1] = 1.0
    for j in range(len(u)):
        if u[j] != 0.0:
            accumulate(rest, -u[j], columns[j])


@compiled()
def fit(columns, binding, s):
    """Write the least squares coefficients of f on the binding columns, zero for all others.

    Columns that depend on those before bind no more. Modified Gram and Schmidt, twice: the second
    time removes what rounding has left.
    """
    m, size = columns.shape
    q = np.empty((size + 1, size))
    r = np.zeros((size + 1, size + 1))
    members = np.empty(m, np.int64)
    count = 0
    for j in range(m):
        if binding[j] == 0.0:
            continue
        v = q[count]
        v[:] = columns[j]
        for _ in range(2):
            for i in range(count):
                share = inner(q[i], v)
                r[i, count] += share
                accumulate(v, -share, q[i])
        length = math.sqrt(inner(v, v))
        if count == size or length <= 1e-10 * math.sqrt(inner(columns[j], columns[j])):
            binding[j] = 0.0
            r[:count, count] = 0.0
            continue
        v /= length
        r[count, count] = length
        members[count] = j
        count += 1
    s[:] = 0.0
    for i in range(count - 1, -1, -1):
        total = q[i, size - 1]
        for k in range(i + 1, count):
            total -= r[i, k] * s[members[k]]
        s[members[i]] = total / r[i, i]


# ---------- Least cable forces that keep all tensions above a minimum and the drones apart

_CONVERGED = 1e-4
"""Change of a force, over the mean force of a cable, that ends the linearisations: the distance is
then wrong by its square."""

ROUNDS = 12
"""Linearisations in one call at most; one or two are enough where the load moves smoothly."""


# The wrench of the load leaves a null space: mu = S wrench + N^T c has the same force and moment
# for every c. `min_norm` takes c = 0. Here c is the shortest that keeps
#
#     up . mu_k >= least tension             (so |mu_k| is at least that, and the drone is above)
#     n_ij . (p_i - p_j) >= distance         for all pairs of drones,
#
# with p_k = b_k + l_k mu_k / |mu_k| the place that drone k is sent to, and n_ij the direction of
# the pair in formation, so that the true distance is never less. RotorTM's files had the idea
# (its paper uses the minimum norm alone). Tensions are linear; the places are linearised at the
# solution before, a few times within a call, until nothing moves. Each time it is a least
# distance problem (`least_distance`).
#
# Derivatives follow with the same constraints binding.


def null_space_of(attachments_m: Array) -> Array:
    """Orthonormal changes of the cable forces without force and moment, (n_free, 3 n).

    Attachments are about the load's centre of mass, load frame, (n, 3).
    """
    arms = attachments_m - attachments_m.mean(axis=0)
    _, values, vectors = np.linalg.svd(grasp_matrix(arms / max(float(np.abs(arms).max()), 1e-9)))
    rank = int(np.sum(values > 1e-6 * values[0]))
    return np.ascontiguousarray(vectors[rank:])


def places_of(bases_m: Array, lengths_m: Array, formation_m: Array, apart_m: float) -> Array:
    """Table of the drones' places for `spread_out`, (n + pairs, 4).

    `bases_m` are the drones' places with a cable of no length, `formation_m` those in formation,
    load frame, (n, 3); lengths (n,); `apart_m` is the least distance of two drones' centres.
    """
    n = len(bases_m)
    rows = [np.column_stack([bases_m, lengths_m])]
    for i in range(n):
        for j in range(i + 1, n):
            gap = formation_m[i] - formation_m[j]
            rows.append(np.append(gap / max(float(np.linalg.norm(gap)), 1e-9), apart_m)[None])
    return np.ascontiguousarray(np.vstack(rows))


@compiled()
def spread_out(sharing, least, up, wrench, out):
    """Write the least cable forces of a wrench that keep a least tension and distances."""
    shares, null, places, gradients, binding = sharing
    n = out.shape[0]
    (free, rows) = null.shape
    mean = norm(wrench) / n + 1e-9
    base = np.empty((n, 3))
    before = out.copy()
    forces = out.reshape(rows)
    g = np.empty((len(binding), free))
    h = np.empty(len(binding))
    c = np.zeros(free)
    share_out(shares, wrench, 0, base)
    for turn in range(ROUNDS):
        constraints(places, least, up, before, mean, gradients, h)
        for row in range(len(binding)):
            by_force = gradients[row, :rows]
            for k in range(free):
                gradients[row, rows + k] = g[row, k] = inner(by_force, null[k])
            size = math.sqrt(inner(g[row], g[row]))
            h[row] -= inner(by_force, base.reshape(rows)) / mean
            if size < 1e-9:  # nothing to be done about it
                g[row] = 0.0
                h[row] = 1.0 if h[row] > 1e-9 else 0.0
            else:
                g[row] /= size
                h[row] /= size
        found = least_distance(g, h, c, binding)
        out[:] = base
        for k in range(free):
            accumulate(forces, mean * c[k], null[k])
        if not found:
            return False
        if np.abs(out - before).max() < _CONVERGED * mean:
            break
        keep = 0.5 if turn > 1 else 0.0  # else they may end in a swing between two solutions
        for i in range(n):
            put(before[i], add_scaled(out[i], keep, sub(before[i], out[i])))
    return True


@compiled()
def constraints(places, least, up, at, mean, gradients, h):
    """Write gradients on the forces over their mean, and right-hand sides, of all constraints."""
    n = at.shape[0]
    gradients[:] = 0.0
    ahead = np.empty((n, 4))  # directions, and sizes of the forces
    for k in range(n):
        size = norm(at[k])
        put(ahead[k], scale(1.0 / size, at[k]) if size > 1e-9 * mean else (up[0], up[1], up[2]))
        ahead[k, 3] = max(size, 0.1 * mean)
        put(gradients[k, 3 * k :], up)
        h[k] = least / mean
    row = n
    for i in range(n):
        for j in range(i + 1, n):
            pair = places[row]
            apart = places[row, 3]
            gap = 0.0
            for end in range(2):
                k, sign = (i, 1.0) if end == 0 else (j, -1.0)
                length = places[k, 3]
                lean = dot(pair, ahead[k])
                gap += sign * (dot(pair, places[k]) + length * lean)
                rate = sign * length * mean / ahead[k, 3]
                put(gradients[row, 3 * k :], scale(rate, add_scaled(pair, -lean, ahead[k])))
            h[row] = apart - gap
            row += 1


@compiled()
def spread_rate(sharing, wrench, order, out):
    """Write a derivative of the cable forces, along the constraints that bind."""
    shares, null, _, gradients, binding = sharing
    free, rows = null.shape
    share_out(shares, wrench, order, out)
    forces = out.reshape(rows)
    basis = np.empty((free, free))
    c = np.zeros(free)
    used = 0
    for row in range(len(binding)):
        if binding[row] == 0.0 or used == free:
            continue
        by_change = gradients[row, rows:]
        v = basis[used]
        wanted = -inner(gradients[row, :rows], forces) - inner(by_change, c)
        v[:] = by_change
        for b in range(used):
            accumulate(v, -inner(basis[b], v), basis[b])
        left = inner(v, v)
        if left > 1e-16 * inner(by_change, by_change):
            accumulate(c, wanted / left, v)  # v is orthogonal to those before: they stay met
            v /= math.sqrt(left)
            used += 1
    for k in range(free):
        accumulate(forces, c[k], null[k])
