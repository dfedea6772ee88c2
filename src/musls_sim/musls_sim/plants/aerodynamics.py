"""Rotors and air: what they do to one rigid body, in compiled functions for every plant.

A wrench is force, then moment about the body's origin (its centre of mass for load and drones),
world frame.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.bodies import OMEGA, VELOCITY

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
