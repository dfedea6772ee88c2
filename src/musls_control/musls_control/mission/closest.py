"""The least distance between two drones of a plan, between centres and between rotor tips."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from musls_control.mission.plan import FlightPlan
from musls_description.compiled import compiled
from musls_description.drone import tip_radius_m
from musls_description.system import RigSystem


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


@dataclass(frozen=True)
class Closest:
    """The two drones that come closest.

    Attributes:
        pair: Their numbers, from 1.
        centres_m: Distance of their centres of mass.
        tips_m: Distance of their rotor tips in the worst attitude; negative where discs may touch.
    """

    time_s: float
    pair: tuple[int, int]
    centres_m: float
    tips_m: float


def closest_in_plan(system: RigSystem, plan: FlightPlan) -> Closest | None:
    """The closest that a plan brings two drones, None for one drone."""
    if system.n_drones < 2:
        return None
    radii = np.array([tip_radius_m(drone) for drone in system.drones])
    row, i, j, centres_m, tips_m = closest_pair(
        np.ascontiguousarray(plan.drone_position_enu_m), radii
    )
    return Closest(row / plan.rate_hz, (i + 1, j + 1), centres_m, tips_m)
