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
    """Sum all outside wrenches into generalised forces."""
    motion, first, joints, wrench, tau = t.motion, t.first, t.joints, t.wrench, t.tau
    wrench[:] = 0.0
    total = 0.0
    # Rows are cut out of the tables where it must be: each cut costs as much as ten operations.
    for k in range(t.parents.shape[0] - 1, 0, -1):
        i = t.drone_of[k]
        if i >= 0:
            m, w = motion[k], wrench[k]
            add_rotors(m, t.speed[i], t.rotors[i], wind, w)
            add_body_drag(m, t.drag[1 + i], wind, w)
            add_inputs(m, wrench_body[1 + i], wrench_enu[1 + i], w)
        elif motion[k, POSITION + 2] < ground:
            add_soft_ground(motion[k], ground, t.link_length[k], wrench[k])
        u = t.parents[k]
        if u < 0:  # first body of a loose piece
            total += _on_free_body(wrench[k], tau, first[k])
            continue
        fx, fy, fz = wrench[k, 0], wrench[k, 1], wrench[k, 2]
        # Moment about the joint: it sits at joints[k, 21:24] in the body's frame.
        cx, cy, cz = joints[k, 21], joints[k, 22], joints[k, 23]
        jx = motion[k, 0] * cx + motion[k, 1] * cy + motion[k, 2] * cz
        jy = motion[k, 3] * cx + motion[k, 4] * cy + motion[k, 5] * cz
        jz = motion[k, 6] * cx + motion[k, 7] * cy + motion[k, 8] * cz
        nx = wrench[k, 3] - (jy * fz - jz * fy)
        ny = wrench[k, 4] - (jz * fx - jx * fz)
        nz = wrench[k, 5] - (jx * fy - jy * fx)
        d = first[k + 1] - 1
        tau[d] = _along(motion, k, AXIS_Z, nx, ny, nz)
        tau[d - 1] = _along(motion, k, AXIS_Y, nx, ny, nz)
        if d - 2 == first[k]:
            tau[d - 2] = _along(motion, k, AXIS_X, nx, ny, nz)
        ax = motion[k, POSITION] + jx - motion[u, POSITION]
        ay = motion[k, POSITION + 1] + jy - motion[u, POSITION + 1]
        az = motion[k, POSITION + 2] + jz - motion[u, POSITION + 2]
        wrench[u, 0] += fx
        wrench[u, 1] += fy
        wrench[u, 2] += fz
        wrench[u, 3] += nx + ay * fz - az * fy
        wrench[u, 4] += ny + az * fx - ax * fz
        wrench[u, 5] += nz + ax * fy - ay * fx
    add_body_drag(motion[0], t.drag[0], wind, wrench[0])
    add_inputs(motion[0], wrench_body[0], wrench_enu[0], wrench[0])
    return np.isfinite(total + _on_free_body(wrench[0], tau, 0))


@compiled()
def _on_free_body(wrench, tau, first):
    """Generalised force of a body without a joint; returns the sum of its six numbers."""
    total = 0.0
    for i in range(3):
        tau[first + i] = wrench[3 + i]
        tau[first + 3 + i] = wrench[i]
        total += wrench[i] + wrench[3 + i]
    return total


@compiled()
def _along(motion, k, axis, x, y, z):
    """Part of a moment along an axis of body k's joint."""
    return motion[k, axis] * x + motion[k, axis + 1] * y + motion[k, axis + 2] * z
