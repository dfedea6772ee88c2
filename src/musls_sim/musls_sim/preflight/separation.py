"""Least distances between drones: in the plan before the flight, and in flight."""

from __future__ import annotations

import numpy as np

from musls_control.mission.plan import Closest, FlightPlan, closest_in_plan, closest_pair
from musls_description.arrays import Array
from musls_description.drone import tip_radius_m
from musls_description.errors import ConfigError
from musls_description.system import RigSystem
from musls_sim.scenario.sensors import LimitsSpec


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
        self._radii = np.array([tip_radius_m(drone) for drone in system.drones])
        self._limits_m = {"rotors_overlap": 0.0}
        if limits.separation_m:
            self._limits_m["too_close"] = limits.separation_m
        self._below: set[str] = set()
        self._least_m = np.inf
        self.closest: Closest | None = None

    def look(self, time_s: float, position_enu_m: Array) -> list[tuple[str, str]]:
        """Look at all pairs; kinds and texts of the events when the closest begins to be too close.

        `position_enu_m`: centres of mass of all bodies, (1 + n, 3).
        """
        places = position_enu_m[None, 1 : 1 + len(self._radii)]
        _, i, j, centres_m, tips_m = closest_pair(places, self._radii)
        if tips_m < self._least_m:
            self._least_m = tips_m
            self.closest = Closest(time_s, (i + 1, j + 1), centres_m, tips_m)
        below = {kind for kind, limit_m in self._limits_m.items() if tips_m < limit_m}
        text = f"rotor tips of drone_{i + 1} and drone_{j + 1} within {tips_m:.2f} m"
        begun = [(kind, text) for kind in self._limits_m if kind in below - self._below]
        self._below = below
        return begun
