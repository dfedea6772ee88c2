"""Forces in the cables, from the accelerations of what they carry or from DART's joints."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.bodies import OMEGA, POSITION
from musls_sim.plants.rigid_links.kinematics import AXIS_X, AXIS_Y, AXIS_Z


@compiled()
def _add_turn(axis, rate, change, omega, alpha):
    """Add a joint axis' rate and its change to angular velocity and acceleration beyond it."""
    rx, ry, rz = rate * axis[0], rate * axis[1], rate * axis[2]
    alpha[0] += change * axis[0] + omega[1] * rz - omega[2] * ry
    alpha[1] += change * axis[1] + omega[2] * rx - omega[0] * rz
    alpha[2] += change * axis[2] + omega[0] * ry - omega[1] * rx
    omega[0] += rx
    omega[1] += ry
    omega[2] += rz


@compiled()
def _add_arm(x, y, z, omega, alpha, acceleration):
    """Add what a turning arm adds to the acceleration of its end."""
    wx, wy, wz = omega[0], omega[1], omega[2]
    ux, uy, uz = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x
    acceleration[0] += alpha[1] * z - alpha[2] * y + wy * uz - wz * uy
    acceleration[1] += alpha[2] * x - alpha[0] * z + wz * ux - wx * uz
    acceleration[2] += alpha[0] * y - alpha[1] * x + wx * uy - wy * ux


@compiled()
def cable_forces(t, before, after, step_s, gravity):
    """Forces at both ends of all cables in a step, by Newton's law for what is beyond them.

    What the cable below a body exerts on it and all beyond it is their mass times acceleration less
    their weight and the outside forces. Holds if nothing beyond touches the ground (see
    `cable_forces_from_joints`).

    Args:
        t: Tables of the plant, motion and wrenches at the beginning of the step; writes
            `cable_force` and raises `peak`.
        before: Rates at the beginning, (n_dofs,).
        after: Rates at the end, (n_dofs,).
        step_s: Length of the step [s].
        gravity: Gravity [m/s2].
    """
    omega, alpha, origin = np.empty(3), np.empty(3), np.empty(3)
    total, centre = np.empty(3), np.empty(3)
    for i in range(t.first_links.shape[0]):
        for k in range(3):
            omega[k] = t.motion[0, OMEGA + k]
            alpha[k] = (after[k] - before[k]) / step_s
            origin[k] = (after[3 + k] - before[3 + k]) / step_s
            total[k] = 0.0
        up, drone = t.motion[0], t.selected[1 + i]
        for body in range(t.first_links[i], drone + 1):
            m, c = t.motion[body], t.joints[body]
            jx = m[0] * c[21] + m[1] * c[22] + m[2] * c[23]
            jy = m[3] * c[21] + m[4] * c[22] + m[5] * c[23]
            jz = m[6] * c[21] + m[7] * c[22] + m[8] * c[23]
            _add_arm(
                m[POSITION] + jx - up[POSITION],
                m[POSITION + 1] + jy - up[POSITION + 1],
                m[POSITION + 2] + jz - up[POSITION + 2],
                omega,
                alpha,
                origin,
            )
            d = t.first[body]
            if t.first[body + 1] - d == 3:
                change = (after[d] - before[d]) / step_s
                _add_turn(m[AXIS_X : AXIS_X + 3], before[d], change, omega, alpha)
                d += 1
            change = (after[d] - before[d]) / step_s
            _add_turn(m[AXIS_Y : AXIS_Y + 3], before[d], change, omega, alpha)
            change = (after[d + 1] - before[d + 1]) / step_s
            _add_turn(m[AXIS_Z : AXIS_Z + 3], before[d + 1], change, omega, alpha)
            _add_arm(-jx, -jy, -jz, omega, alpha, origin)
            mass = t.masses[body]
            for k in range(3):
                centre[k] = origin[k]
            _add_arm(
                m[0] * mass[1] + m[1] * mass[2] + m[2] * mass[3],
                m[3] * mass[1] + m[4] * mass[2] + m[5] * mass[3],
                m[6] * mass[1] + m[7] * mass[2] + m[8] * mass[3],
                omega,
                alpha,
                centre,
            )
            centre[2] += gravity
            for k in range(3):
                total[k] += mass[0] * centre[k]
            if body == drone:
                _note(t, i, 1, drone - 1, *_scaled(mass[0], centre), t.wrench[drone])
            up = m
        first = t.first_links[i]
        _note(t, i, 0, first, total[0], total[1], total[2], t.wrench[first])


@compiled()
def _scaled(factor, v):
    return factor * v[0], factor * v[1], factor * v[2]


@compiled()
def _note(t, i, end, link, x, y, z, outside):
    """Write the force of an end in the frame of its link; it pulls backwards with the tension."""
    x, y, z, m = x - outside[0], y - outside[1], z - outside[2], t.motion[link]
    for k in range(3):
        t.cable_force[i, end, k] = -(m[k] * x + m[3 + k] * y + m[6 + k] * z)
    t.peak[i] = max(t.peak[i], t.cable_force[i, end, 0])


@compiled()
def cable_forces_from_joints(t, end_wrench):
    """The same from the forces that DART's joints transmit, contacts with the ground included.

    DART sees the outside forces as torques in the joints above, so what it reports as transmitted
    by a joint still holds the outside force on everything beyond that joint: it is taken off here.

    Args:
        t: Tables of the plant, as above.
        end_wrench: DART's body force of the first link (in its frame) and of the drone (in its
            frame) in the step: moment, force, (n, 2, 6).
    """
    for i in range(t.first_links.shape[0]):
        drone = t.selected[1 + i]
        for end in range(2):
            body = drone if end else t.first_links[i]
            m, f = t.motion[body], end_wrench[i, end]
            x = m[0] * f[3] + m[1] * f[4] + m[2] * f[5]
            y = m[3] * f[3] + m[4] * f[4] + m[5] * f[5]
            z = m[6] * f[3] + m[7] * f[4] + m[8] * f[5]
            _note(t, i, end, drone - 1 if end else body, x, y, z, t.wrench[body])
