"""Hooks at the load that open and close.

A hook that opens takes the segment next to it away; what is left of the cable hangs on its drone,
one segment shorter. That segment counts as hanging straight down from the free end, with the hook
at its own end. It closes while it is slack, and only then, so that nothing changes: no force, no
velocity, no momentum.
"""

from __future__ import annotations

import numpy as np

from musls_sim.plants.elastic import columns as c
from musls_sim.plants.elastic.cuts import segment_at_load
from musls_sim.plants.elastic.engine import Engine


def is_open(engine: Engine, cable: int, from_end_a: bool) -> bool:
    """Whether a cable hangs whole on its upper end, but for the segment next to the load.

    Args:
        engine: What moves the cables.
        cable: Its index, from 0.
        from_end_a: Whether the load is at the engine's end A.
    """
    kind = engine.tables.kinds[cable]
    first, n = kind[c.FIRST_SEGMENT], kind[c.SEGMENTS]
    alive = engine.tables.segments[first : first + n, c.ALIVE] > 0.0
    lowest = segment_at_load(engine, cable, from_end_a)
    return not alive[lowest] and bool(np.delete(alive, lowest).all())


def hook_miss(engine: Engine, cable: int, from_end_a: bool) -> tuple[float, float]:
    """Distance and speed of an open hook from its place on the load [m, m/s].

    Infinitely far as long as the last segment would be taut. Arguments as for `is_open`.
    """
    free, place = (1, 0) if from_end_a else (-2, -1)
    position = engine.nodes_enu_m(cable)
    velocity = engine.node_velocities_enu_m_s(cable)
    kind = engine.tables.kinds[cable]
    row = kind[c.FIRST_SEGMENT] + segment_at_load(engine, cable, from_end_a)
    length_m = float(engine.tables.segments[row, c.REST])
    speed = float(np.linalg.norm(velocity[free] - velocity[place]))
    if np.linalg.norm(position[free] - position[place]) > length_m:
        return np.inf, speed
    below = position[free] - [0.0, 0.0, length_m]
    return float(np.linalg.norm(below - position[place])), speed


def close(engine: Engine, cable: int, from_end_a: bool) -> None:
    """Join the segment next to the load again, as it was made."""
    engine.mend(cable, segment_at_load(engine, cable, from_end_a))
