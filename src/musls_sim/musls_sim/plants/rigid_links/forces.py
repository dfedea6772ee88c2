"""Everything that acts on the bodies from outside, as generalised forces, in one compiled call.

Rotors push at their hubs, air drags on rotors and bodies, the ground holds up the cables. The
wrenches are summed from the tips of the tree to its root, which gives the generalised force of
every coordinate (transpose of the Jacobian) in O(n); DART then takes all in one binding call.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.aerodynamics import add_body_drag, add_rotors
from musls_sim.plants.bodies import POSITION
from musls_sim.plants.ground import add_soft_ground
from musls_sim.plants.rigid_links.kinematics import AXIS_X, AXIS_Y, AXIS_Z


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
            add_rotors(m, speed[i], rotors[i], wind, w)
            add_body_drag(m, drag[1 + i], wind, w)
        elif i == -1:
            add_soft_ground(m, ground, link_length[k], w)
        else:
            add_body_drag(m, drag[0], wind, w)
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
