"""Everything that acts on the bodies from outside, as generalised forces, in one compiled call.

Rotors push at their hubs, air drags on rotors and bodies, the ground holds up the cables. The
wrenches are summed from the tips of the tree to its root, which gives the generalised force of
every coordinate (transpose of the Jacobian) in O(n); DART then takes all in one binding call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.system import SlungLoadSystem
from musls_sim.plants.rigid_links.kinematics import (
    AXIS_X,
    AXIS_Y,
    AXIS_Z,
    OMEGA,
    POSITION,
    VELOCITY,
)

Array = NDArray[np.float64]

# Columns of the table of rotors.
_PLACE, _THRUST, _TORQUE, _UP, _DOWN, _DRAG = 0, 3, 4, 5, 6, 7

GROUND_STIFFNESS_N_M2 = 60.0
GROUND_DAMPING_N_S_M2 = 1.0
"""Ground under a cable, per length of cable. Soft enough for a node of any chain at 4 ms (the mass
of a node shrinks with its length too), hard enough that a lying cable sinks in by 1.4 mm."""


def rotor_table(system: SlungLoadSystem) -> Array:
    """Constants of all rotors, (n_drones, n_rotors, 8).

    Columns: place (3), thrust coefficient, reaction torque coefficient with sign about body z,
    time constants up and down, drag coefficient.
    """
    return np.array(
        [
            [
                [
                    *rotor.position_m,
                    rotor.thrust_coefficient_n_s2,
                    rotor.thrust_coefficient_n_s2
                    * rotor.moment_ratio_m
                    * (-1.0 if rotor.spin == "ccw" else 1.0),
                    rotor.time_constant_up_s,
                    rotor.time_constant_down_s,
                    rotor.drag_n_s2_m_rad,
                ]
                for rotor in drone.rotors
            ]
            for drone in system.drones
        ]
    )


@compiled()
def spin_rotors(speed, command, rotors, dt):
    """Advance all rotor speeds by their first-order lag (exact for a command held over dt).

    Args:
        speed: Rotor speeds, changed in place, (n_drones, n_rotors) [rad/s].
        command: Commanded speeds, (n_drones, n_rotors) [rad/s].
        rotors: From `rotor_table`.
        dt: Time step [s].
    """
    for i in range(speed.shape[0]):
        for j in range(speed.shape[1]):
            gap = command[i, j] - speed[i, j]
            lag = rotors[i, j, _UP] if gap > 0.0 else rotors[i, j, _DOWN]
            speed[i, j] += gap * (1.0 - np.exp(-dt / lag))


@compiled()
def _add_body_drag(m, drag, wind, w):
    """Linear drag of a body in the moving air, added to its wrench."""
    for k in range(3):
        along = 0.0
        for i in range(3):
            along += m[3 * i + k] * (m[VELOCITY + i] - wind[i])
        for i in range(3):
            w[i] -= drag[k] * along * m[3 * i + k]


@compiled()
def _add_rotors(m, speed, rotors, wind, w):
    """Thrust, reaction torque and drag of one drone's rotors, added to its wrench."""
    zx, zy, zz = m[2], m[5], m[8]
    for j in range(speed.shape[0]):
        c = rotors[j]
        omega = speed[j]
        thrust = c[_THRUST] * omega * omega
        torque = c[_TORQUE] * omega * omega
        rx = m[0] * c[0] + m[1] * c[1] + m[2] * c[2]
        ry = m[3] * c[0] + m[4] * c[1] + m[5] * c[2]
        rz = m[6] * c[0] + m[7] * c[1] + m[8] * c[2]
        fx, fy, fz = thrust * zx, thrust * zy, thrust * zz
        if c[_DRAG] > 0.0:
            # Velocity of the hub against the air, without its part along the rotor axis.
            ux = m[VELOCITY] + m[OMEGA + 1] * rz - m[OMEGA + 2] * ry - wind[0]
            uy = m[VELOCITY + 1] + m[OMEGA + 2] * rx - m[OMEGA] * rz - wind[1]
            uz = m[VELOCITY + 2] + m[OMEGA] * ry - m[OMEGA + 1] * rx - wind[2]
            along = ux * zx + uy * zy + uz * zz
            d = c[_DRAG] * omega
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
def _add_ground(m, ground, length, w):
    """Compliant ground under the origin of a link that is below it, added to its wrench."""
    depth = ground - m[POSITION + 2]
    if depth > 0.0:
        up = length * (GROUND_STIFFNESS_N_M2 * depth - GROUND_DAMPING_N_S_M2 * m[VELOCITY + 2])
        if up > 0.0:
            w[2] += up
            w[0] -= length * GROUND_DAMPING_N_S_M2 * m[VELOCITY]
            w[1] -= length * GROUND_DAMPING_N_S_M2 * m[VELOCITY + 1]


@compiled()
def generalised_forces(
    motion,
    parents,
    first,
    joints,
    drone_of,
    link_length,
    drag,
    speed,
    rotors,
    wind,
    ground,
    wrench,
    tau,
):
    """Sum all outside wrenches into generalised forces.

    Args:
        motion: From `body_motion`, (n_bodies, 27).
        parents: Parent of each body, (n_bodies,).
        first: First coordinate of each body, then their number, (n_bodies + 1,).
        joints: From `joint_table`, (n_bodies, 24).
        drone_of: Drone (from 0) of each body, -1 for links, -2 for the load, (n_bodies,).
        link_length: Length of cable for which a body stands, 0 for load and drones, (n_bodies,).
        drag: Linear drag of load and drones, (1 + n_drones, 3) [N s/m].
        speed: Rotor speeds, (n_drones, n_rotors) [rad/s].
        rotors: From `rotor_table`.
        wind: Air velocity, world, (3,) [m/s].
        ground: Height of the ground, NaN for none [m].
        wrench: Work space: force, moment about the body's origin, world, (n_bodies, 6).
        tau: Result, (n_dofs,).

    Returns:
        Whether the load's part of the result, which everything adds up to, is finite.
    """
    wrench[:] = 0.0
    for k in range(parents.shape[0] - 1, -1, -1):
        m, w = motion[k], wrench[k]
        i = drone_of[k]
        if i >= 0:
            _add_rotors(m, speed[i], rotors[i], wind, w)
            _add_body_drag(m, drag[1 + i], wind, w)
        elif i == -1:
            _add_ground(m, ground, link_length[k], w)
        else:
            _add_body_drag(m, drag[0], wind, w)
        if k == 0:
            break
        # Moment about the joint: it sits at joints[k, 21:24] in the body's frame.
        c = joints[k]
        jx = m[0] * c[21] + m[1] * c[22] + m[2] * c[23]
        jy = m[3] * c[21] + m[4] * c[22] + m[5] * c[23]
        jz = m[6] * c[21] + m[7] * c[22] + m[8] * c[23]
        nx = w[3] - (jy * w[2] - jz * w[1])
        ny = w[4] - (jz * w[0] - jx * w[2])
        nz = w[5] - (jx * w[1] - jy * w[0])
        last = first[k + 1] - 1
        tau[last] = m[AXIS_Z] * nx + m[AXIS_Z + 1] * ny + m[AXIS_Z + 2] * nz
        tau[last - 1] = m[AXIS_Y] * nx + m[AXIS_Y + 1] * ny + m[AXIS_Y + 2] * nz
        if last - 2 == first[k]:
            tau[last - 2] = m[AXIS_X] * nx + m[AXIS_X + 1] * ny + m[AXIS_X + 2] * nz
        up, u = motion[parents[k]], wrench[parents[k]]
        ax = m[POSITION] + jx - up[POSITION]
        ay = m[POSITION + 1] + jy - up[POSITION + 1]
        az = m[POSITION + 2] + jz - up[POSITION + 2]
        u[0] += w[0]
        u[1] += w[1]
        u[2] += w[2]
        u[3] += nx + ay * w[2] - az * w[1]
        u[4] += ny + az * w[0] - ax * w[2]
        u[5] += nz + ax * w[1] - ay * w[0]
    for i in range(3):
        tau[i] = wrench[0, 3 + i]
        tau[3 + i] = wrench[0, i]
    return np.isfinite(tau[:6].sum())
