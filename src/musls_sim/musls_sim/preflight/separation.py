"""Least distances between drones: in the plan before the flight, and in flight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_control.mission.plan import FlightPlan
from musls_description.compiled import compiled
from musls_description.drone import tip_radius_m
from musls_description.errors import ConfigError
from musls_description.system import RigSystem
from musls_sim.scenario.sensors import LimitsSpec

Array = NDArray[np.float64]

BLOCK_ROWS = 4096
"""Rows of a plan that are looked at together."""


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
    best = Closest(0.0, (1, 2), np.inf, np.inf)
    for first in range(0, len(plan.drone_position_enu_m), BLOCK_ROWS):
        places = np.ascontiguousarray(plan.drone_position_enu_m[first : first + BLOCK_ROWS])
        row, i, j, centres_m, tips_m = closest_pair(places, radii)
        if tips_m < best.tips_m:
            pair = (int(i) + 1, int(j) + 1)
            best = Closest((first + row) / plan.rate_hz, pair, float(centres_m), float(tips_m))
    return best


def check_separation(system: RigSystem, plan: FlightPlan, limits: LimitsSpec) -> None:
    """Refuse a plan that brings drones closer than the limit (raises ConfigError)."""
    if limits.separation_m is None:
        return
    closest = closest_in_plan(system, plan)
    if closest is not None and closest.tips_m < limits.separation_m:
        k = min(int(closest.time_s * plan.rate_hz), len(plan.stage) - 1)
        raise ConfigError(
            f"limits.separation_m = {limits.separation_m:g}: the plan brings the rotor tips of "
            f"drone_{closest.pair[0]} and drone_{closest.pair[1]} within {closest.tips_m:.2f} m "
            f"(centres {closest.centres_m:.2f} m) at {closest.time_s:.1f} s, in "
            f"'{plan.stage_names[plan.stage[k]]}'; choose a wider formation"
        )


class SeparationWatch:
    """Watches how close the drones come to each other.

    Attributes:
        every: Control periods between two looks.
        closest: The closest so far, None before the first look.
    """

    every = 5

    def __init__(self, system: RigSystem, limits: LimitsSpec) -> None:
        """Prepare."""
        self._radii = np.array([tip_radius_m(drone) for drone in system.drones])
        self._limit_m = -np.inf if limits.separation_m is None else limits.separation_m
        self._is_close = False
        self._least_m = np.inf
        self.closest: Closest | None = None

    def look(self, time_s: float, position_enu_m: Array) -> str | None:
        """Look at all pairs; returns which come too close when they begin to.

        `position_enu_m`: centres of mass of all bodies, (1 + n, 3).
        """
        places = position_enu_m[None, 1 : 1 + len(self._radii)]
        _, i, j, centres_m, tips_m = closest_pair(places, self._radii)
        if tips_m < self._least_m:
            self._least_m = tips_m
            self.closest = Closest(time_s, (i + 1, j + 1), centres_m, tips_m)
        if (tips_m < self._limit_m) != self._is_close:
            self._is_close = not self._is_close
            if self._is_close:
                return f"rotor tips of drone_{i + 1} and drone_{j + 1} within {tips_m:.2f} m"
        return None
