"""Pose and velocity of every body from the joint coordinates, in one compiled call.

DART hands over all coordinates in one binding call but each body's pose in one call per body, so
the poses are recomputed here (and a test holds them to DART's own).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.tree import Tree
from musls_description.vectors import from_matrix, rotation_between
from musls_sim.plants.rigid_links.rows import OMEGA, POSITION, VELOCITY

Array = NDArray[np.float64]

# Columns of a row of the table of joints.
_ROTATION_IN_PARENT, _POSITION_IN_PARENT, _ROTATION_IN_CHILD, _POSITION_IN_CHILD = 0, 9, 12, 21
_STRAIGHT = 24
"""Last column: 1 if both rotations are identities, as between the links of a cable, else 0."""
JOINT_COLUMNS = 25

# Columns of a row of body motion after those of `bodies`: the world directions of the joint axes.
AXIS_Z, AXIS_Y, AXIS_X = 18, 21, 24
MOTION_COLUMNS = 27


def joint_table(tree: Tree) -> Array:
    """Joint frames of all bodies as one contiguous table, (n_bodies, 25)."""
    table = np.zeros((len(tree.bodies), JOINT_COLUMNS))
    for row, body in zip(table, tree.bodies, strict=True):
        row[_ROTATION_IN_PARENT:_POSITION_IN_PARENT] = body.joint_in_parent_rotation.ravel()
        row[_POSITION_IN_PARENT:_ROTATION_IN_CHILD] = body.joint_in_parent_position_m
        row[_ROTATION_IN_CHILD:_POSITION_IN_CHILD] = body.joint_in_child_rotation.ravel()
        row[_POSITION_IN_CHILD:_STRAIGHT] = body.joint_in_child_position_m
        same = np.eye(3)
        row[_STRAIGHT] = np.array_equal(body.joint_in_parent_rotation, same) and np.array_equal(
            body.joint_in_child_rotation, same
        )
    return table


@compiled()
def _free_motion(q, dq, first, out):
    """Free joint of DART: rotation vector, position; angular and linear velocity, world frame.

    The load's, and that of the first body of a loose piece (see `pieces`).
    """
    rx, ry, rz = q[first], q[first + 1], q[first + 2]
    angle2 = rx * rx + ry * ry + rz * rz
    angle = np.sqrt(angle2)
    if angle > 1e-6:
        s, c = np.sin(angle) / angle, (1.0 - np.cos(angle)) / angle2
    else:
        s, c = 1.0 - angle2 / 6.0, 0.5 - angle2 / 24.0
    out[0] = 1.0 - c * (ry * ry + rz * rz)
    out[1] = c * rx * ry - s * rz
    out[2] = c * rx * rz + s * ry
    out[3] = c * rx * ry + s * rz
    out[4] = 1.0 - c * (rx * rx + rz * rz)
    out[5] = c * ry * rz - s * rx
    out[6] = c * rx * rz - s * ry
    out[7] = c * ry * rz + s * rx
    out[8] = 1.0 - c * (rx * rx + ry * ry)
    for i in range(3):
        out[POSITION + i] = q[first + 3 + i]
        out[OMEGA + i] = dq[first + i]
        out[VELOCITY + i] = dq[first + 3 + i]


@compiled()
def _child_motion(motion, joints, q, dq, u, k, d, twist):
    """Motion of body k from that of its parent u and its joint's angles and rates.

    Two angles are those of a universal joint, Ry Rz; three those of Rx Ry Rz. Rows are not cut out
    of the tables: each cut costs as much as some ten operations.
    """
    a, b, da, db = q[d], q[d + 1], dq[d], dq[d + 1]
    ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
    straight = joints[k, _STRAIGHT] > 0.0
    ct, st, dt = 1.0, 0.0, 0.0
    if twist:
        ct, st, dt = np.cos(q[d - 1]), np.sin(q[d - 1]), dq[d - 1]
    for i in range(3):
        r0, r1, r2 = motion[u, 3 * i], motion[u, 3 * i + 1], motion[u, 3 * i + 2]
        # Joint frame in the world (columns x, y, z), then Rx, Ry(a), Rz(b).
        x, y0, z0 = r0, r1, r2
        if not straight:
            x = r0 * joints[k, 0] + r1 * joints[k, 3] + r2 * joints[k, 6]
            y0 = r0 * joints[k, 1] + r1 * joints[k, 4] + r2 * joints[k, 7]
            z0 = r0 * joints[k, 2] + r1 * joints[k, 5] + r2 * joints[k, 8]
        y = ct * y0 + st * z0
        z = ct * z0 - st * y0
        xa = ca * x - sa * z
        za = sa * x + ca * z
        xb = cb * xa + sb * y
        yb = cb * y - sb * xa
        motion[k, AXIS_X + i] = x
        motion[k, AXIS_Y + i] = y
        motion[k, AXIS_Z + i] = za
        # Child frame = joint frame times the transpose of the joint frame seen from the child.
        x0, y1, z1 = xb, yb, za
        if not straight:
            x0 = xb * joints[k, 12] + yb * joints[k, 13] + za * joints[k, 14]
            y1 = xb * joints[k, 15] + yb * joints[k, 16] + za * joints[k, 17]
            z1 = xb * joints[k, 18] + yb * joints[k, 19] + za * joints[k, 20]
        motion[k, 3 * i], motion[k, 3 * i + 1], motion[k, 3 * i + 2] = x0, y1, z1
        # From the parent's origin to the joint, and from the joint to the child's origin.
        motion[k, POSITION + i] = r0 * joints[k, 9] + r1 * joints[k, 10] + r2 * joints[k, 11]
        motion[k, OMEGA + i] = motion[u, OMEGA + i] + dt * x + da * y + db * za
    px, py, pz = motion[k, POSITION], motion[k, POSITION + 1], motion[k, POSITION + 2]
    wx, wy, wz = motion[u, OMEGA], motion[u, OMEGA + 1], motion[u, OMEGA + 2]
    vx = motion[u, VELOCITY] + wy * pz - wz * py
    vy = motion[u, VELOCITY + 1] + wz * px - wx * pz
    vz = motion[u, VELOCITY + 2] + wx * py - wy * px
    cx, cy, cz = joints[k, 21], joints[k, 22], joints[k, 23]
    dx = -(motion[k, 0] * cx + motion[k, 1] * cy + motion[k, 2] * cz)
    dy = -(motion[k, 3] * cx + motion[k, 4] * cy + motion[k, 5] * cz)
    dz = -(motion[k, 6] * cx + motion[k, 7] * cy + motion[k, 8] * cz)
    wx, wy, wz = motion[k, OMEGA], motion[k, OMEGA + 1], motion[k, OMEGA + 2]
    motion[k, VELOCITY] = vx + wy * dz - wz * dy
    motion[k, VELOCITY + 1] = vy + wz * dx - wx * dz
    motion[k, VELOCITY + 2] = vz + wx * dy - wy * dx
    motion[k, POSITION] = motion[u, POSITION] + px + dx
    motion[k, POSITION + 1] = motion[u, POSITION + 1] + py + dy
    motion[k, POSITION + 2] = motion[u, POSITION + 2] + pz + dz


@compiled()
def body_motion(q, dq, parents, first, joints, motion):
    """Compute the motion of all bodies."""
    _free_motion(q, dq, 0, motion[0])
    for k in range(1, parents.shape[0]):
        if parents[k] < 0:
            _free_motion(q, dq, first[k], motion[k])
            continue
        y_axis = first[k + 1] - 2
        _child_motion(motion, joints, q, dq, parents[k], k, y_axis, y_axis > first[k])


# ---------- Joint-space inertia matrix of a tree, factorised along its branches
#
# Composite bodies give the matrix in O(n d), with n coordinates and depth d. It has zeros between
# branches and, factorised from the leaves (A = L^T L), keeps them, so factor and solve cost O(n
# d^2) and O(n d) (Featherstone, Rigid Body Dynamics Algorithms, sections 6.2 and 6.5). Spatial
# quantities are in the world frame about its origin, angular part first.


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
    """Solve with the first factor: L^-T r of each row r; of J the half H, J A^-1 J^T = H H^T."""
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


# ---------- Ends of the cables: Jacobians, and wrenches that bring them to a pose

MISS = 1e-9
"""Miss of a pose [m, rad] that is not corrected any more."""

CORRECTIONS = 5
"""At most as many times; each leaves of the miss about the share by which joints turn in a step."""


@compiled()
def end_wrenches(inertia, parent, jacobian, positions, free, drones, table, pose, dt, wrench):
    """Wrenches on the drones that bring them to a pose in a step, see `prescribed`."""
    motion, parents, first, joints, _ = table
    rows, n = jacobian.shape
    factor = factorise(inertia, parent)
    half = half_solve(factor, parent, jacobian)
    compliance = np.empty((rows, rows))
    missing, sought = np.empty(rows), np.zeros(rows)
    velocity_to_pose(motion, drones, pose[0], pose[1], dt, missing)
    for i in range(rows):
        for k in range(n):
            missing[i] -= jacobian[i, k] * free[k]
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += half[i, k] * half[j, k]
            compliance[i, j] = compliance[j, i] = dt * total
    solve = np.linalg.inv(compliance)
    then, coordinates, ahead = free, np.empty(n), np.empty_like(motion)
    for _ in range(1 + CORRECTIONS):
        right = np.zeros(n)
        for i in range(rows):
            for j in range(rows):
                sought[i] += solve[i, j] * missing[j]
            for k in range(n):
                right[k] += sought[i] * half[i, k]
        then = free + dt * other_half_solve(factor, parent, right)
        advance_coordinates(positions, then, dt, coordinates)
        body_motion(coordinates, then, parents, first, joints, ahead)
        velocity_to_pose(ahead, drones, pose[0], pose[1], dt, missing)
        if np.abs(missing).max() * dt < MISS:
            break
    generalised = np.zeros(n)
    for i in range(rows):
        wrench[i // 6, i % 6] = sought[i]
        for k in range(n):
            generalised[k] += sought[i] * jacobian[i, k]
    return then, generalised


@compiled()
def velocity_to_pose(motion, drones, position, quaternion, dt, out):
    """Constant velocities that bring the drones to a pose in a time."""
    for i in range(drones.shape[0]):
        m, q = motion[drones[i]], quaternion[i]
        now = from_matrix(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8])
        turn = rotation_between(now, q)
        for k in range(3):
            out[6 * i + k] = turn[k] / dt
            out[6 * i + 3 + k] = (position[i, k] - m[POSITION + k]) / dt


@compiled()
def advance_coordinates(positions, velocities, dt, out):
    """Coordinates after a step, as DART integrates them: the load turns by exp(omega dt)."""
    out[:] = positions + dt * velocities
    turn_free_body(positions, velocities, 0, dt, out)


@compiled()
def turn_free_body(positions, velocities, first, dt, out):
    """Rotation vector of a free body after a step; `first` is its first coordinate."""
    px, py, pz = positions[first], positions[first + 1], positions[first + 2]
    wx, wy, wz = velocities[first], velocities[first + 1], velocities[first + 2]
    aw, ax, ay, az = _half_turn(px, py, pz)
    bw, bx, by, bz = _half_turn(dt * wx, dt * wy, dt * wz)
    w = bw * aw - bx * ax - by * ay - bz * az
    x = bw * ax + bx * aw + by * az - bz * ay
    y = bw * ay - bx * az + by * aw + bz * ax
    z = bw * az + bx * ay - by * ax + bz * aw
    half = np.sqrt(x * x + y * y + z * z)
    scale = 2.0 * np.arctan2(half, w) / half if half > 1e-12 else 2.0
    out[first], out[first + 1], out[first + 2] = scale * x, scale * y, scale * z


@compiled()
def _half_turn(x, y, z):
    """Quaternion w, x, y, z of a rotation vector."""
    angle = np.sqrt(x * x + y * y + z * z)
    scale = np.sin(angle / 2.0) / angle if angle > 1e-12 else 0.5
    return np.cos(angle / 2.0), scale * x, scale * y, scale * z


@compiled()
def end_jacobians(motion, first, joints, first_links, drones, out):
    """Jacobians of all drones below each other, see `end_jacobian`, (6 n, n_dofs)."""
    for i in range(drones.shape[0]):
        chain = np.arange(first_links[i], drones[i] + 1)
        end_jacobian(motion, joints, first, chain, out[6 * i : 6 * i + 6])


@compiled()
def end_jacobian(motion, joints, first, chain, out):
    """Jacobian of the last body of a chain: angular and linear velocity of its origin, world."""
    out[:] = 0.0
    end = motion[chain[-1]]
    for i in range(3):
        out[i, i] = 1.0
        out[3 + i, 3 + i] = 1.0
    _cross_columns(motion[0], end, out)
    for k in chain:
        m, c = motion[k], joints[k]
        arm = np.empty(3)
        for i in range(3):
            hinge = m[POSITION + i] + m[3 * i] * c[21] + m[3 * i + 1] * c[22] + m[3 * i + 2] * c[23]
            arm[i] = end[POSITION + i] - hinge
        last = first[k + 1] - 1
        for back in range(first[k + 1] - first[k]):
            column = last - back
            at = AXIS_Z if back == 0 else (AXIS_Y if back == 1 else AXIS_X)
            ax, ay, az = m[at], m[at + 1], m[at + 2]
            out[0, column], out[1, column], out[2, column] = ax, ay, az
            out[3, column] = ay * arm[2] - az * arm[1]
            out[4, column] = az * arm[0] - ax * arm[2]
            out[5, column] = ax * arm[1] - ay * arm[0]


@compiled()
def _cross_columns(load, end, out):
    """Linear velocity of the end by the load's angular velocity: omega x arm."""
    x = end[POSITION] - load[POSITION]
    y = end[POSITION + 1] - load[POSITION + 1]
    z = end[POSITION + 2] - load[POSITION + 2]
    out[3, 1], out[3, 2] = z, -y
    out[4, 0], out[4, 2] = -z, x
    out[5, 0], out[5, 1] = y, -x
