"""The point nearest to zero among linear inequalities, exactly, in compiled code.

Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23: the least distance problem

    minimise |x| subject to G x >= h

is the dual of the non-negative least squares problem min |E u - f|, u >= 0, with the columns
(G_j, h_j) in E and f = (0, ..., 0, 1). With its residual r = f - E u the answer is x = -r / r_last
(without the last element); r = 0 says that no x fits. Both are found by an active set, so that x is
exact and the constraints that bind are known.
"""

from __future__ import annotations

import math

import numpy as np

from musls_description.compiled import compiled

_NOTHING = 1e-12
"""Size of numbers of order one that counts as zero."""

_INFEASIBLE = 1e-9
"""Squared residual of the dual problem that counts as zero: an answer longer than 3e4."""


@compiled()
def least_distance(g, h, x, binding):
    """Find the shortest x with G x >= h; rows and answer should be of order one."""
    m, d = g.shape
    columns, u, s = np.empty((m, d + 1)), np.zeros(m), np.zeros(m)
    columns[:, :d], columns[:, d] = g, h
    rest, members = np.zeros(d + 1), np.zeros(d + 1, np.int64)
    q, r = np.empty((d + 1, d + 1)), np.zeros((d + 1, d + 1))
    count = decompose(columns, binding, members, q, r)
    fit(members, count, q, r, s)
    if count > 0 and s.min() >= 0.0:
        u[:] = s
    else:
        binding[:] = 0.0
        count = 0
    write_rest(columns, u, rest)
    for _ in range(20 * (m + 1)):
        joins, most = -1, _NOTHING
        for j in range(m):
            if binding[j] == 0.0:
                slope = 0.0
                for k in range(d + 1):
                    slope += columns[j, k] * rest[k]
                if slope > most:
                    joins, most = j, slope
        if joins < 0 or not join(columns, joins, members, count, q, r):
            break
        binding[joins] = 1.0
        count += 1
        fit(members, count, q, r, s)
        if s[joins] <= 0.0:  # by rounding: it adds nothing
            binding[joins] = 0.0
            break
        count = settle(columns, binding, members, count, q, r, u, s)
        write_rest(columns, u, rest)
        if rest[d] < _INFEASIBLE:
            break
    if rest[d] < _INFEASIBLE:
        binding[:] = 0.0
        x[:] = 0.0
        return False
    for k in range(d):
        x[k] = -rest[k] / rest[d]
    return True


@compiled()
def settle(columns, binding, members, count, q, r, u, s):
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
                binding[j], u[j] = 0.0, 0.0
        count = decompose(columns, binding, members, q, r)
        fit(members, count, q, r, s)
    return count


@compiled()
def write_rest(columns, u, rest):
    """Write f - E u."""
    m, size = columns.shape
    rest[:] = 0.0
    rest[size - 1] = 1.0
    for j in range(m):
        if u[j] != 0.0:
            for k in range(size):
                rest[k] -= columns[j, k] * u[j]


@compiled()
def decompose(columns, binding, members, q, r):
    """Factor the binding columns anew; those that depend on others bind no more."""
    count = 0
    for j in range(len(binding)):
        if binding[j] != 0.0:
            if join(columns, j, members, count, q, r):
                count += 1
            else:
                binding[j] = 0.0
    return count


@compiled()
def join(columns, j, members, count, q, r):
    """Add a column to the factors (modified Gram and Schmidt, twice)."""
    size = columns.shape[1]
    if count == size:
        return False
    v, whole = q[count], 0.0
    for k in range(size):
        v[k] = columns[j, k]
        whole += v[k] * v[k]
    r[:count, count] = 0.0
    for _ in range(2):  # the second time removes what rounding has left
        for i in range(count):
            share = 0.0
            for k in range(size):
                share += q[i, k] * v[k]
            r[i, count] += share
            for k in range(size):
                v[k] -= share * q[i, k]
    left = 0.0
    for k in range(size):
        left += v[k] * v[k]
    if left <= 1e-20 * whole or left == 0.0:
        return False
    r[count, count] = math.sqrt(left)
    for k in range(size):
        v[k] /= r[count, count]
    members[count] = j
    return True


@compiled()
def fit(members, count, q, r, s):
    """Write the least squares coefficients of f = (0, ..., 0, 1) on the binding columns."""
    last = q.shape[1] - 1
    s[:] = 0.0
    for i in range(count - 1, -1, -1):
        total = q[i, last]
        for j in range(i + 1, count):
            total -= r[i, j] * s[members[j]]
        s[members[i]] = total / r[i, i]
