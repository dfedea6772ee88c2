"""Everything that acts on the bodies from outside, as generalised forces, in one compiled call.

Rotors push at their hubs, air drags on rotors and bodies, the ground holds up the cables. The
wrenches are summed from the tips of the tree to its root, which gives the generalised force of
every coordinate (transpose of the Jacobian) in O(n); DART then takes all in one binding call.
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.aerodynamics import add_body_drag, add_inputs, add_rotors
from musls_sim.plants.bodies import POSITION
from musls_sim.plants.ground import add_soft_ground
from musls_sim.plants.rigid_links.kinematics import AXIS_X, AXIS_Y, AXIS_Z


@compiled()
def generalised_forces(t, wind, wrench_body, wrench_enu, ground):
    """Sum all outside wrenches into generalised forces.

    Args:
        t: Tables of the plant; writes `wrench` and `tau`.
        wind: Air velocity, world, (3,) [m/s].
        wrench_body: See `PlantInputs`, (1 + n_drones, 6) [N m, N].
        wrench_enu: See `PlantInputs`, (1 + n_drones, 6) [N m, N].
        ground: Height of the ground, NaN for none [m].

    Returns:
        Whether the load's part of the result, which everything adds up to, is finite.
    """
    motion, parents, first, joints = t.motion, t.parents, t.first, t.joints
    wrench, tau = t.wrench, t.tau
    wrench[:] = 0.0
    for k in range(parents.shape[0] - 1, -1, -1):
        m, w = motion[k], wrench[k]
        i = t.drone_of[k]
        if i == -1:
            add_soft_ground(m, ground, t.link_length[k], w)
        elif i >= 0:
            add_rotors(m, t.speed[i], t.rotors[i], wind, w)
            add_body_drag(m, t.drag[1 + i], wind, w)
            add_inputs(m, wrench_body[1 + i], wrench_enu[1 + i], w)
        else:
            add_body_drag(m, t.drag[0], wind, w)
            add_inputs(m, wrench_body[0], wrench_enu[0], w)
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
