"""What batteries, cables and propellers do not stand, found before a flight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from musls_description.rotor_reach import propeller_radius_m
from musls_description.system import Drone
from musls_sim.preflight.checks import MIN_THRUST_MARGIN
from musls_sim.preflight.thrust import full_thrust_n
from musls_sim.scenario import Scenario

if TYPE_CHECKING:
    from musls_sim.preflight.feasibility import DroneMargins

BREAK_SHARE = 0.8
"""Of a cable's break force that it may carry."""


def hardware_problems(
    scenario: Scenario, where: Sequence[tuple[str, Sequence[DroneMargins]]], flight_s: float
) -> Iterator[str]:
    """Why batteries or cables do not stand a flight, one line each.

    Args:
        scenario: Drones and cables.
        where: Margins of all drones in the formation and at the hardest moment, with a name each.
        flight_s: How long the flight takes.
    """
    for name, margins in where:
        for i, (drone, m) in enumerate(zip(scenario.system.drones, margins, strict=False), start=1):
            if m.thrust_margin < MIN_THRUST_MARGIN:
                continue  # said already
            for time, charge in _charges(drone, m, flight_s):
                margin = full_thrust_n(drone, charge) / m.thrust_n
                if margin < MIN_THRUST_MARGIN:
                    yield (
                        f"{name}: the voltage that is left {time} gives drone_{i} a thrust margin "
                        f"of {margin:.2f}, at least {MIN_THRUST_MARGIN} is needed"
                    )
                    break
        cables = scenario.system.cables
        for i, (cable, m) in enumerate(zip(cables, margins, strict=False), start=1):
            breaks_n = cable.elastic.break_force_n
            if breaks_n is not None and m.tension_n > BREAK_SHARE * breaks_n:
                yield (
                    f"{name}: cable_{i} carries {m.tension_n:.1f} N, more than "
                    f"{100.0 * BREAK_SHARE:g} % of its break force of {breaks_n:g} N"
                )


def hardware_cautions(scenario: Scenario) -> Iterator[str]:
    """What one should know of drones that can be flown, one line each."""
    wind = scenario.wind
    windy = any(wind.mean_enu_m_s) or any(wind.gust_std_m_s)
    for i, drone in enumerate(scenario.system.drones, start=1):
        if windy and not any(drone.drag_n_s_m) and not any(r.drag_n_s2_m_rad for r in drone.rotors):
            yield f"drone_{i} has no drag (drag_n_s_m, rotors.drag_n_s2_m_rad): no wind pushes it"
        gap = _least_gap_m(drone)
        diameter = 2.0 * propeller_radius_m(drone)
        if diameter > gap * (1.0 + 1e-9):
            yield (
                f"drone_{i}: propellers of {diameter:.3g} m on hubs {gap:.3g} m apart: they "
                "overlap, which its thrust does not know"
            )


def _charges(drone: Drone, m: DroneMargins, flight_s: float) -> Iterator[tuple[str, float]]:
    """Shares of the charge at the begin and at the end of a flight, as in hover all the time."""
    propulsion = drone.propulsion
    if propulsion is None or propulsion.motor is None or propulsion.battery is None:
        return
    battery = propulsion.battery
    yield "at the begin", battery.start_charge
    if m.minutes:
        used = (battery.start_charge - battery.reserve) * flight_s / (60.0 * m.minutes)
        yield "at the end", max(battery.start_charge - used, 0.0)


def _least_gap_m(drone: Drone) -> float:
    """Least distance of two hubs that do not share a place, from above."""
    hubs = np.array([rotor.position_m[:2] for rotor in drone.rotors])
    gaps = np.linalg.norm(hubs[:, None] - hubs[None], axis=2)
    apart = gaps[gaps > 1e-6]
    return float(apart.min()) if len(apart) else np.inf
