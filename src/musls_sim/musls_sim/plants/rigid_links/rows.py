"""`rigid_body` on rows of numbers, as the tables of `rigid_links` and of Gazebo's server keep them.

A row holds the rotation from the body's frame to the world (row by row), the position of its
origin, its angular velocity and the velocity of its origin, all in the world frame, (>= 18,). A
wrench is a row of force, then moment about the body's origin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.system import RigSystem
from musls_description.vectors import from_matrix
from musls_sim.plants.rigid_body import (
    GROUND_DAMPING_N_S_M2,
    GROUND_STIFFNESS_N_M2,
    rotor_records,
)

ROTATION, POSITION, OMEGA, VELOCITY = 0, 9, 12, 15
"""Columns of a row."""


@compiled()
def fastest_body(motion):
    """Index and speed [m/s] of the body that moves fastest; a non-finite one counts as infinite."""
    worst, speed2 = 0, -1.0
    for k in range(motion.shape[0]):
        v2 = motion[k, VELOCITY] ** 2 + motion[k, VELOCITY + 1] ** 2 + motion[k, VELOCITY + 2] ** 2
        if not np.isfinite(v2 + motion[k, POSITION] + motion[k, 0]):
            return k, np.inf
        if v2 > speed2:
            worst, speed2 = k, v2
    return worst, np.sqrt(speed2)


@compiled()
def collect_state(motion, selected, dt, state):
    """Write the motion of selected bodies (load, drones) into the plant's state."""
    for i in range(selected.shape[0]):
        m, s = motion[selected[i]], state[i]
        w, x, y, z = from_matrix(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8])
        dot = w * s[6] + x * s[7] + y * s[8] + z * s[9]
        sign = -1.0 if dot < 0.0 else 1.0
        s[6], s[7], s[8], s[9] = sign * w, sign * x, sign * y, sign * z
        for k in range(3):
            v = m[VELOCITY + k]
            s[13 + k] = (v - s[3 + k]) / dt if dt > 0.0 else 0.0
            s[k] = m[POSITION + k]
            s[3 + k] = v
            s[10 + k] = m[k] * m[OMEGA] + m[3 + k] * m[OMEGA + 1] + m[6 + k] * m[OMEGA + 2]


# ---------- Rotors and air

PLACE, THRUST, TORQUE, UP, DOWN, DRAG = 0, 3, 4, 5, 6, 7
"""Columns of the table of rotors, see `rotors.rotor_table`."""


@compiled()
def spin_rotors(speed, command, rotors, dt):
    """Advance all rotor speeds by their first-order lag (exact for a command held over dt)."""
    last = share = 0.0
    for i in range(speed.shape[0]):
        for j in range(speed.shape[1]):
            gap = command[i, j] - speed[i, j]
            lag = rotors[i, j, UP] if gap > 0.0 else rotors[i, j, DOWN]
            if lag != last:
                last, share = lag, 1.0 - np.exp(-dt / lag)
            speed[i, j] += gap * share


@compiled()
def add_body_drag(m, drag, wind, w):
    """Add the linear drag of a body in the moving air to its wrench."""
    for k in range(3):
        along = 0.0
        for i in range(3):
            along += m[3 * i + k] * (m[VELOCITY + i] - wind[i])
        for i in range(3):
            w[i] -= drag[k] * along * m[3 * i + k]


@compiled()
def add_rotors(m, speed, rotors, wind, w):
    """Add thrust, reaction torque and drag of one drone's rotors to its wrench."""
    zx, zy, zz = m[2], m[5], m[8]
    for j in range(speed.shape[0]):
        c = rotors[j]
        omega = speed[j]
        thrust = c[THRUST] * omega * omega
        torque = c[TORQUE] * omega * omega
        rx = m[0] * c[0] + m[1] * c[1] + m[2] * c[2]
        ry = m[3] * c[0] + m[4] * c[1] + m[5] * c[2]
        rz = m[6] * c[0] + m[7] * c[1] + m[8] * c[2]
        fx, fy, fz = thrust * zx, thrust * zy, thrust * zz
        if c[DRAG] > 0.0:
            # Velocity of the hub against the air, without its part along the rotor axis.
            ux = m[VELOCITY] + m[OMEGA + 1] * rz - m[OMEGA + 2] * ry - wind[0]
            uy = m[VELOCITY + 1] + m[OMEGA + 2] * rx - m[OMEGA] * rz - wind[1]
            uz = m[VELOCITY + 2] + m[OMEGA] * ry - m[OMEGA + 1] * rx - wind[2]
            along = ux * zx + uy * zy + uz * zz
            d = c[DRAG] * omega
            fx -= d * (ux - along * zx)
            fy -= d * (uy - along * zy)
            fz -= d * (uz - along * zz)
        w[0] += fx
        w[1] += fy
        w[2] += fz
        w[3] += torque * zx + ry * fz - rz * fy
        w[4] += torque * zy + rz * fx - rx * fz
        w[5] += torque * zz + rx * fy - ry * fx


@compiled()
def add_inputs(m, body, enu, w):
    """Add the wrenches that are put in from outside to a body's wrench."""
    for k in range(3):
        w[k] += enu[3 + k] + (m[3 * k] * body[3] + m[3 * k + 1] * body[4] + m[3 * k + 2] * body[5])
        w[3 + k] += enu[k] + (m[3 * k] * body[0] + m[3 * k + 1] * body[1] + m[3 * k + 2] * body[2])


# ---------- Soft ground under the cables


@compiled()
def add_soft_ground(m, ground, length, w):
    """Add the push of compliant ground under a piece of cable that is below it to its wrench."""
    depth = ground - m[POSITION + 2]
    if depth > 0.0:
        up = length * (GROUND_STIFFNESS_N_M2 * depth - GROUND_DAMPING_N_S_M2 * m[VELOCITY + 2])
        if up > 0.0:
            w[2] += up
            w[0] -= length * GROUND_DAMPING_N_S_M2 * m[VELOCITY]
            w[1] -= length * GROUND_DAMPING_N_S_M2 * m[VELOCITY + 1]


# ---------- The table of rotors

Array = NDArray[np.float64]


def rotor_table(system: RigSystem) -> Array:
    """Constants of all rotors, (n_drones, n_rotors, 8).

    Columns: place (3), thrust coefficient, reaction torque coefficient with sign about body z,
    time constants up and down, drag coefficient.
    """
    table: Array = rotor_records(system).view(float).reshape(system.n_drones, system.n_rotors, 8)
    return table
