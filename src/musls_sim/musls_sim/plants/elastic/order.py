"""Order in which bodies and shafts are eliminated, and where their matrix is not zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from musls_sim.plants.elastic import columns as c

if TYPE_CHECKING:
    from musls_sim.plants.elastic.rig import Rig


def elimination_order(rig: Rig) -> list[int]:
    """Free bodies, those with fewest cables first: a load comes after its drones."""
    degree = [sum(b in cable.bodies for cable in rig.cables) for b in range(len(rig.bodies))]
    free = [b for b, body in enumerate(rig.bodies) if not body.prescribed]
    return sorted(free, key=lambda b: (degree[b], b))


def envelope_of(
    kinds: NDArray[np.int64], numbers: NDArray[np.int64], turning: NDArray[np.int64], room: int
) -> NDArray[np.int64]:
    """First column of each row of the matrix of bodies and shafts.

    Args:
        kinds: See `tables.Tables`.
        numbers: The same.
        turning: The same.
        room: Rows of the matrix.
    """
    envelope = 6 * (np.arange(room) // 6)
    envelope[turning[:, c.S_DOF]] = turning[:, c.S_DOF]
    for kind in kinds:
        pair = sorted(numbers[kind[[c.BODY_A, c.BODY_B]], c.B_DOF])
        if pair[0] >= 0:
            rows = slice(pair[1], pair[1] + 6)
            envelope[rows] = np.minimum(envelope[rows], pair[0])
        shafts = [turning[w, c.S_DOF] for w in kind[[c.REEL_A, c.REEL_B]] if w >= 0]
        for row in shafts:
            for column in [*pair, *shafts]:
                if column >= 0:
                    envelope[row] = min(envelope[row], column)
    for w in turning:
        if numbers[w[c.S_BODY], c.B_DOF] >= 0:
            envelope[w[c.S_DOF]] = min(envelope[w[c.S_DOF]], numbers[w[c.S_BODY], c.B_DOF])
    return envelope
