"""The linear complementarity problem of all cables at their length, in compiled code.

0 <= z, D z - b >= 0, z (D z - b) = 0 with D symmetric and positive definite: one solution, whatever
the order of the cables. Tensions (b: how fast the ends would separate) and impulses (b: how
fast they do) are the same problem.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled


@compiled()
def solve_active(d, b, basis, m, factor, z):
    """Solve D z = b for the rows in the basis, z = 0 for the others."""
    for i in range(m):
        z[i] = 0.0
        if basis[i] == 0.0:
            continue
        for j in range(i + 1):
            if basis[j] == 0.0:
                continue
            s = d[i, j]
            for k in range(j):
                if basis[k] != 0.0:
                    s -= factor[i, k] * factor[j, k]
            factor[i, j] = np.sqrt(s) if i == j else s / factor[j, j]
    back_substitute(factor, b, basis, m, z)


@compiled()
def back_substitute(factor, b, basis, m, z):
    """Solve with the factor of `solve_active`; rows that are not active get 0."""
    for i in range(m):
        z[i] = 0.0
        if basis[i] != 0.0:
            s = b[i]
            for k in range(i):
                if basis[k] != 0.0:
                    s -= factor[i, k] * z[k]
            z[i] = s / factor[i, i]
    for i in range(m - 1, -1, -1):
        if basis[i] != 0.0:
            s = z[i]
            for k in range(i + 1, m):
                if basis[k] != 0.0:
                    s -= factor[k, i] * z[k]
            z[i] = s / factor[i, i]


@compiled()
def solve_complementarity(d, b, m, basis, factor, z):
    """Solve 0 <= z, D z - b >= 0, z (D z - b) = 0.

    All rows that violate their condition change sides at once while that leaves fewer of them;
    otherwise the last of them alone, which ends for every matrix of this kind (Judice and Pires,
    Computers and Operations Research 21, 1994; Murty 1974).
    """
    scale = 0.0
    for i in range(m):
        scale = max(scale, abs(b[i]))
    noise = 1e-14 * scale
    fewest, patience = m + 1, 3
    for _ in range(100 * (m + 1) + 2**m if m < 12 else 5000):
        solve_active(d, b, basis, m, factor, z)
        wrong, last = 0, -1
        for i in range(m):
            if violates(d, b, m, basis, z, i, noise):
                wrong += 1
                last = i
        if wrong == 0:
            for i in range(m):
                z[i] = max(z[i], 0.0)
            return
        if wrong < fewest:
            fewest, patience = wrong, 3
        elif patience > 0:
            patience -= 1
        block = patience > 0
        if not block:
            basis[last] = 1.0 - basis[last]
            continue
        flip_violators(d, b, m, basis, z, noise)


@compiled()
def violates(d, b, m, basis, z, i, noise):
    """Whether row i breaks its condition by more than rounding."""
    if basis[i] != 0.0:
        return z[i] * d[i, i] < -noise
    w = -b[i]
    for j in range(m):
        w += d[i, j] * z[j]
    return w < -noise


@compiled()
def flip_violators(d, b, m, basis, z, noise):
    """Change the side of all rows that break their condition."""
    for i in range(m):
        if basis[i] != 0.0:
            if z[i] * d[i, i] < -noise:
                basis[i] = 2.0  # leaves, once the others are judged
        elif violates(d, b, m, basis, z, i, noise):
            basis[i] = -1.0  # joins; z of this row is 0, so the others do not see it
    for i in range(m):
        if basis[i] == 2.0:
            basis[i] = 0.0
        elif basis[i] == -1.0:
            basis[i] = 1.0
