"""What a plant shows of its cables."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_sim.plants.bodies import collect_state
from musls_sim.plants.elastic.columns import (
    B_INDEX,
    END_FORCE_A,
    END_FORCE_B,
    FIRST_NODE,
    FIRST_SEGMENT,
    LINEAR_DENSITY,
    PEAK,
    SEGMENTS,
    STORED_A,
    STORED_B,
    A,
    X,
)


@compiled()
def collect_cables(kinds, cables, nodes, segments, gravity, force, peak):
    """Forces at the ends of the cables in the frames of their end segments."""
    for c in range(force.shape[0]):
        kind, cable = kinds[c], cables[c]
        first, begin, count = kind[FIRST_NODE], kind[FIRST_SEGMENT], kind[SEGMENTS]
        for end in range(2):
            near = first + count if end == 0 else first
            far = near - 1 if end == 0 else near + 1
            at = END_FORCE_B if end == 0 else END_FORCE_A
            # x from the load to the drone along the segment, y horizontal.
            sign = 1.0 if end == 0 else -1.0
            x = sign * (nodes[far, X] - nodes[near, X])
            y = sign * (nodes[far, X + 1] - nodes[near, X + 1])
            z = sign * (nodes[far, X + 2] - nodes[near, X + 2])
            length = np.sqrt(x * x + y * y + z * z)
            x, y, z = x / length, y / length, z / length
            flat = np.sqrt(x * x + y * y)
            c1, s1 = (x / flat, y / flat) if flat > 1e-9 else (1.0, 0.0)
            wound = cable[LINEAR_DENSITY] * cable[STORED_A if end == 1 else STORED_B]
            fx = sign * (cable[at] + wound * nodes[near, A])
            fy = sign * (cable[at + 1] + wound * nodes[near, A + 1])
            fz = sign * (cable[at + 2] + wound * (nodes[near, A + 2] + gravity))
            force[c, end, 0] = fx * x + fy * y + fz * z
            force[c, end, 1] = -fx * s1 + fy * c1
            force[c, end, 2] = -z * (fx * c1 + fy * s1) + flat * fz
        top = 0.0
        for s in range(begin, begin + count):
            top = max(top, segments[s, PEAK])
        peak[c] = top


@compiled()
def collect_bodies(motion, numbers, dt, shown):
    """State of all bodies, see `plants.bodies.collect_state`."""
    collect_state(motion, numbers[:, B_INDEX], dt, shown)
