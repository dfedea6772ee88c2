"""Forces on the links of a Gazebo server and in its cables, in compiled functions."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.aerodynamics import add_body_drag, add_inputs, add_rotors, spin_rotors
from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY
from musls_sim.plants.ground import add_soft_ground


@compiled()
def outside_forces(moving, command, constants, wind, inputs, step_s):
    """Everything that acts on the links from outside but Gazebo's contacts."""
    motion, wrench, speed = moving
    rotors, drag, length, selected = constants
    body, enu = inputs
    spin_rotors(speed, command, rotors, step_s)
    wrench[:] = 0.0
    for k in range(motion.shape[0]):
        if length[k] > 0.0:
            add_soft_ground(motion[k], 0.0, length[k], wrench[k])
    for i in range(selected.shape[0]):
        k = selected[i]
        if i > 0:
            add_rotors(motion[k], speed[i - 1], rotors[i - 1], wind, wrench[k])
        add_body_drag(motion[k], drag[i], wind, wrench[k])
        add_inputs(motion[k], body[i], enu[i], wrench[k])


@compiled()
def _com_velocity(m, com, out):
    """Velocity of a point fixed in a body, world."""
    x = m[0] * com[1] + m[1] * com[2] + m[2] * com[3]
    y = m[3] * com[1] + m[4] * com[2] + m[5] * com[3]
    z = m[6] * com[1] + m[7] * com[2] + m[8] * com[3]
    out[0] = m[VELOCITY] + m[OMEGA + 1] * z - m[OMEGA + 2] * y
    out[1] = m[VELOCITY + 1] + m[OMEGA + 2] * x - m[OMEGA] * z
    out[2] = m[VELOCITY + 2] + m[OMEGA] * y - m[OMEGA + 1] * x


@compiled()
def cable_forces(moving, constants, reach, step_s, gravity, force, peak):
    """Forces at both ends of all cables, the mean over a step, by Newton's law."""
    before, after, wrench = moving
    mass, first, drone = constants
    total, old, new = np.empty(3), np.empty(3), np.empty(3)
    for i in range(first.shape[0]):
        total[:] = 0.0
        force[i] = 0.0
        if after[drone[i], POSITION + 2] < reach[i]:
            continue
        for body in range(drone[i], first[i] - 1, -1):
            _com_velocity(before[body], mass[body], old)
            _com_velocity(after[body], mass[body], new)
            for k in range(3):
                total[k] += mass[body, 0] * (new[k] - old[k]) / step_s - wrench[body, k]
            total[2] += mass[body, 0] * gravity
            if body == drone[i] or body == first[i]:
                end = 1 if body == drone[i] else 0
                m = after[drone[i] - 1 if end else body]
                for k in range(3):
                    force[i, end, k] = -(
                        m[k] * total[0] + m[3 + k] * total[1] + m[6 + k] * total[2]
                    )
                peak[i] = max(peak[i], force[i, end, 0])
