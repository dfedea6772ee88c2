"""A delivery: pick a load up, carry it, leave it somewhere, come back without it.

    spool_up, take_off, form_up   as in every mission
    tare                          hover with slack cables: the drones weigh themselves
    pick_up                       open hooks come down to the load; waits until they have closed
    tension, lift, weigh          hover with the load and measure its mass
    the stages                    flown with the load
    approach, lower, set_down     waits until the cables are slack and the load rests
    release                       hooks open
    climb                         rises a little, waits until nothing hangs there any more
    return, descend, spread, land

A wait that takes too long aborts: the load comes back, or is landed where it is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from musls_control.formation import Cone
from musls_control.gates import HOOKED, RELEASED, RESTED, WEIGHED, Gate
from musls_control.mission import (
    Draft,
    FlightPlan,
    GroundSpot,
    fly_stages,
    lift,
    spread_and_land,
    take_off,
)
from musls_control.mission_spec import DeliverySpec, MissionSpec

Array = NDArray[np.float64]

DRAWN_M = 0.05
"""How far open hooks come down below their place on the load."""


def compile_delivery(mission: MissionSpec, cone: Cone, ground: GroundSpot) -> FlightPlan:
    """Sample all set-points of a delivery, with the rows that wait.

    Args:
        mission: With `delivery`.
        cone: Formation.
        ground: Where load and drones stand.

    Raises:
        ConfigError: The flight would last too long, or have too many set-points.
    """
    given = delivery_of(mission)
    draft = Draft(mission.setpoint_rate_hz, cone, len(ground.drone_position_enu_m))
    standing = float(ground.load_position_enu_m[2])
    if given.pick_up == "hook":
        above = replace(mission, slack_height_m=standing + given.clearance_m)
        take_off(draft, above, ground)
    else:
        take_off(draft, mission, ground)
    _hold(draft, "tare", given.weigh_s)
    if given.pick_up == "hook":
        _rise(draft, mission, "pick_up", standing - DRAWN_M)
        _wait(draft, HOOKED, given)
    lift(draft, mission, ground, float(mission.stages[0].pose(np.zeros(1))[0, 2]))
    _hold(draft, "weigh", given.weigh_s)
    _wait(draft, WEIGHED, given)
    fly_stages(draft, mission, ground)
    cruise = float(draft.last[2])
    _go(draft, mission, "approach", np.array(given.place_m))
    if given.drop == "ground":
        _rise(draft, mission, "lower", standing)
        _rise(draft, mission, "set_down", mission.slack_height_m)
        _wait(draft, RESTED, given)
    else:
        _wait(draft, RESTED, given)
    _hold(draft, "release", mission.settle_s)
    if given.drop == "ground":
        _rise(draft, mission, "climb", standing + given.clearance_m)
    _wait(draft, RELEASED, given)
    _rise(draft, mission, "climb", cruise)
    _go(draft, mission, "return", ground.load_position_enu_m[:2])
    _end(draft, mission, ground, "descend")
    return draft.plan(mission.landing_speed_m_s)


def compile_abort(
    mission: MissionSpec, cone: Cone, ground: GroundSpot, load_pose: Array, height_m: float
) -> FlightPlan:
    """Sample the rest of a delivery that failed: the load is set down, the drones land round it.

    Args:
        mission: With `delivery`.
        cone: Formation.
        ground: Where load and drones stood.
        load_pose: Present set-point of the load, (4,).
        height_m: Height to return at.
    """
    draft = Draft(mission.setpoint_rate_hz, cone, len(ground.drone_position_enu_m))
    draft.add("abort", load_pose[None].copy())
    if delivery_of(mission).abort == "return":
        _rise(draft, mission, "abort", max(height_m, float(load_pose[2])))
        _go(draft, mission, "return", ground.load_position_enu_m[:2])
    _rise(draft, mission, "lower", float(ground.load_position_enu_m[2]))
    _end(draft, mission, ground, "slacken")
    return draft.plan(mission.landing_speed_m_s)


def extra_duration_s(mission: MissionSpec) -> float:
    """About how much longer a delivery takes than a flight of its stages; 0 for other missions."""
    given = mission.delivery
    if given is None:
        return 0.0
    first = mission.stages[0].pose(np.zeros(1))[0]
    last = mission.stages[-1].pose(np.array([mission.stages[-1].duration_s]))[0]
    ways_m = np.linalg.norm(last[:2] - given.place_m) + np.linalg.norm(first[:2] - given.place_m)
    rise_m = abs(last[2] - mission.slack_height_m)
    return float(
        ways_m / mission.transit_speed_m_s
        + 2.0 * rise_m / mission.vertical_speed_m_s
        + 2.0 * given.weigh_s
        + 8.0 * mission.settle_s
    )


def delivery_of(mission: MissionSpec) -> DeliverySpec:
    """Delivery settings of a mission; its kind must be delivery."""
    assert mission.delivery is not None
    return mission.delivery


def _wait(draft: Draft, what: str, given: DeliverySpec) -> None:
    draft.gates.append(Gate(len(draft.stage), what, given.timeout_s))


def _hold(draft: Draft, name: str, duration_s: float) -> None:
    times = draft.times(duration_s, f"mission.delivery: {name}")
    draft.add(name, np.tile(draft.last, (len(times), 1)))


def _rise(draft: Draft, mission: MissionSpec, name: str, height_m: float) -> None:
    """Append a vertical move of the load's set-point, and a short rest."""
    target = draft.last.copy()
    target[2] = height_m
    draft.move(
        name, target, mission.vertical_speed_m_s, mission.transit_yaw_rate_rad_s, mission.settle_s
    )


def _go(draft: Draft, mission: MissionSpec, name: str, place_m: Array) -> None:
    """Append a level move of the load's set-point, and a rest."""
    target = draft.last.copy()
    target[:2] = place_m
    draft.move(
        name, target, mission.transit_speed_m_s, mission.transit_yaw_rate_rad_s, mission.settle_s
    )


def _end(draft: Draft, mission: MissionSpec, ground: GroundSpot, name: str) -> None:
    """Append the way down and the landing of the drones."""
    _rise(draft, mission, name, mission.slack_height_m)
    spread_and_land(draft, mission, ground)
