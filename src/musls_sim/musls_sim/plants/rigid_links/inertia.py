"""The joint-space inertia matrix of a tree, made and factorised along its branches.

Composite bodies give the matrix in O(n d), with n coordinates and depth d. It has zeros between
branches and, factorised from the leaves (A = L^T L), keeps them, so factor and solve cost O(n d^2)
and O(n d) (Featherstone, Rigid Body Dynamics Algorithms, sections 6.2 and 6.5). Spatial quantities
are in the world frame about its origin, angular part first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.tree import Tree
from musls_sim.plants.bodies import POSITION
from musls_sim.plants.rigid_links.kinematics import AXIS_X, AXIS_Y, AXIS_Z

Array = NDArray[np.float64]


def mass_table(tree: Tree) -> Array:
    """Mass, centre of mass and inertia about it of all bodies, body frame, (n_bodies, 13)."""
    return np.array([[b.mass_kg, *b.com_m, *b.inertia_kg_m2.ravel()] for b in tree.bodies])


def parent_coordinates(tree: Tree) -> NDArray[np.int64]:
    """Coordinate that each coordinate hangs on, -1 for the first of a piece, (n_dofs,)."""
    parents: list[int] = []
    first = tree.first_coordinate
    for body in tree.bodies:
        above = -1
        if body.parent >= 0:
            above = int(first[body.parent]) + tree.bodies[body.parent].freedom - 1
        parents.append(above)
        parents += range(len(parents) - 1, len(parents) - 2 + body.freedom)
    return np.array(parents)


@compiled()
def factorise(inertia, parent):
    """Lower factor L with A = L^T L, in the lower half, (n, n)."""
    factor = inertia.copy()
    for k in range(factor.shape[0] - 1, -1, -1):
        root = np.sqrt(factor[k, k])
        factor[k, k] = root
        i = parent[k]
        while i >= 0:
            factor[k, i] /= root
            i = parent[i]
        i = parent[k]
        while i >= 0:
            j = i
            while j >= 0:
                factor[i, j] -= factor[k, i] * factor[k, j]
                j = parent[j]
            i = parent[i]
    return factor


@compiled()
def half_solve(factor, parent, rows):
    """Solve with the first factor: L^-T r of each row r; for J, the half H of J A^-1 J^T = H H^T."""
    half = rows.copy()
    for row in range(half.shape[0]):
        x = half[row]
        for k in range(x.shape[0] - 1, -1, -1):
            if x[k] != 0.0:
                x[k] /= factor[k, k]
                i = parent[k]
                while i >= 0:
                    x[i] -= factor[k, i] * x[k]
                    i = parent[i]
    return half


@compiled()
def other_half_solve(factor, parent, half):
    """Solve with the second factor: L^-1 y, (n,), which for y = L^-T b is A^-1 b."""
    x = half.copy()
    for k in range(x.shape[0]):
        i = parent[k]
        while i >= 0:
            x[k] -= factor[k, i] * x[i]
            i = parent[i]
        x[k] /= factor[k, k]
    return x


@compiled()
def quadratic(a, matrix, b):
    """a^T M b, in this thread: BLAS would start others for a matrix of this size."""
    total = 0.0
    for i in range(a.shape[0]):
        row = 0.0
        for j in range(b.shape[0]):
            row += matrix[i, j] * b[j]
        total += a[i] * row
    return total


@compiled()
def _spatial_inertia(m, table, out):
    """Spatial inertia of one body about the world's origin, (6, 6)."""
    mass = table[0]
    c, turned = np.empty(3), np.empty((3, 3))
    for i in range(3):
        c[i] = m[POSITION + i]
        for k in range(3):
            c[i] += m[3 * i + k] * table[1 + k]
            turned[i, k] = 0.0
            for j in range(3):
                turned[i, k] += m[3 * i + j] * table[4 + 3 * j + k]
    square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2]
    out[:] = 0.0
    for i in range(3):
        for j in range(3):
            for k in range(3):
                out[i, j] += turned[i, k] * m[3 * j + k]
            out[i, j] -= mass * c[i] * c[j]
        out[i, i] += mass * square
        out[3 + i, 3 + i] = mass
    x, y, z = mass * c[0], mass * c[1], mass * c[2]
    out[0, 4], out[0, 5], out[1, 3], out[1, 5], out[2, 3], out[2, 4] = -z, y, z, -x, -y, x
    out[4, 0], out[5, 0], out[3, 1], out[5, 1], out[3, 2], out[4, 2] = -z, y, z, -x, -y, x


@compiled()
def motion_axes(motion, parents, first, joints):
    """Spatial velocity that each coordinate's unit rate gives to what hangs on it, (n_dofs, 6)."""
    axes = np.zeros((first[-1], 6))
    for k in range(parents.shape[0]):
        m, c = motion[k], joints[k]
        if parents[k] < 0:
            free = axes[first[k] : first[k] + 6]
            x, y, z = m[POSITION], m[POSITION + 1], m[POSITION + 2]
            for i in range(3):
                free[i, i] = free[3 + i, 3 + i] = 1.0
            free[0, 4], free[0, 5] = z, -y
            free[1, 3], free[1, 5] = -z, x
            free[2, 3], free[2, 4] = y, -x
            continue
        x = m[POSITION] + m[0] * c[21] + m[1] * c[22] + m[2] * c[23]
        y = m[POSITION + 1] + m[3] * c[21] + m[4] * c[22] + m[5] * c[23]
        z = m[POSITION + 2] + m[6] * c[21] + m[7] * c[22] + m[8] * c[23]
        for back in range(first[k + 1] - first[k]):
            s = axes[first[k + 1] - 1 - back]
            at = AXIS_Z if back == 0 else (AXIS_Y if back == 1 else AXIS_X)
            ax, ay, az = m[at], m[at + 1], m[at + 2]
            s[0], s[1], s[2] = ax, ay, az
            s[3], s[4], s[5] = y * az - z * ay, z * ax - x * az, x * ay - y * ax
    return axes


@compiled()
def joint_space_inertia(motion, parents, first, joints, masses, parent, extra):
    """Inertia matrix A of all coordinates, both halves, (n_dofs, n_dofs)."""
    bodies = parents.shape[0]
    composite = np.empty((bodies, 6, 6))
    for k in range(bodies):
        _spatial_inertia(motion[k], masses[k], composite[k])
    axes = motion_axes(motion, parents, first, joints)
    inertia, force = np.zeros((first[-1], first[-1])), np.empty(6)
    for k in range(bodies - 1, -1, -1):  # tips first: composite[k] then holds all beyond k
        for column in range(first[k], first[k + 1]):
            for i in range(6):
                force[i] = 0.0
                for j in range(6):
                    force[i] += composite[k, i, j] * axes[column, j]
            row = column
            while row >= 0:
                product = 0.0
                for i in range(6):
                    product += axes[row, i] * force[i]
                inertia[row, column] = inertia[column, row] = product
                row = parent[row]
            inertia[column, column] += extra[column]
        if parents[k] >= 0:
            for i in range(6):
                for j in range(6):
                    composite[parents[k], i, j] += composite[k, i, j]
    return inertia
