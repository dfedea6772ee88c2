"""The closest pair of drones, compiled."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled


@compiled()
def closest_pair(places, radii):
    """Find the two drones whose rotor tips come closest."""
    best, centres, row, first, second = np.inf, np.inf, 0, 0, 1
    for k in range(places.shape[0]):
        for i in range(places.shape[1]):
            for j in range(i + 1, places.shape[1]):
                square = 0.0
                for c in range(3):
                    gap = places[k, i, c] - places[k, j, c]
                    square += gap * gap
                distance = np.sqrt(square)
                if distance - radii[i] - radii[j] < best:
                    best = distance - radii[i] - radii[j]
                    centres, row, first, second = distance, k, i, j
    return row, first, second, centres, best
