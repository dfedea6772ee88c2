"""Soft ground under the cables, in a compiled function for every plant."""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.bodies import POSITION, VELOCITY

GROUND_STIFFNESS_N_M2 = 60.0
GROUND_DAMPING_N_S_M2 = 1.0
"""Ground under a cable, per length of cable. Soft enough for a node of any chain at 4 ms (the mass
of a node shrinks with its length too), hard enough that a lying cable sinks in by 1.4 mm."""


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
