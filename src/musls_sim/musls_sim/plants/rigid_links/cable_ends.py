"""Where the ends of the cables are, how joint rates move them, and what brings them to a pose."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_description.compiled_rotations import from_matrix, rotation_between
from musls_sim.plants.bodies import POSITION
from musls_sim.plants.rigid_links.inertia import factorise, half_solve, other_half_solve
from musls_sim.plants.rigid_links.kinematics import (
    AXIS_X,
    AXIS_Y,
    AXIS_Z,
    body_motion,
)

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
        w, x, y, z = from_matrix(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8])
        turn = rotation_between(w, x, y, z, q[0], q[1], q[2], q[3])
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
