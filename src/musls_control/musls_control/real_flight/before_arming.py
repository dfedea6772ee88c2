"""Checks before drones are armed: the list of findings, places, reach, distances, speeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from musls_control.brief.brief import Brief
from musls_control.brief.findings import Finding, findings
from musls_control.mission.plan import FlightPlan, GroundSpot, closest_in_plan
from musls_description.config.errors import ConfigError
from musls_description.config.schema import spec
from musls_description.hanging.cone import drone_poses
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import RigSystem

SHAPED_BY_PX4 = ("take_off", "land")
"""Stages that begin with one vertical step of the set-points, which PX4's own ramps shape."""


@spec
class ArmingLimits:
    """Limits that a plan and the places of the drones must keep.

    Attributes:
        reach_margin_m: Farther than a cable is long by so much, a drone is not tied to it; covers
            noise and the places of markers.
        tips_apart_m: Least distance of the rotor tips of two drones in the plan.
        setpoint_speed_m_s: Largest speed of a drone's set-points.
    """

    reach_margin_m: Annotated[float, Field(ge=0.0, le=10.0)] = 0.1
    tips_apart_m: Annotated[float, Field(ge=0.0, le=10.0)] = 0.05
    setpoint_speed_m_s: Annotated[float, Field(ge=0.1, le=50.0)] = 6.0


def check_before_arming(
    brief: Brief, plan: FlightPlan, limits: ArmingLimits, *, force: bool = False
) -> list[Finding]:
    """Refuse to arm for a plan that begins where load and drones really stand, or in the air.

    Args:
        brief: Record of the planned flight.
        plan: Plan of this flight.
        limits: Limits of real drones, beside those of the brief.
        force: Arm in spite of findings for which a flight can be forced.

    Returns:
        Findings that were forced.

    Raises:
        ConfigError: What speaks against the flight, in one line.
    """
    forced = _forced(findings(brief), force=force)
    if plan.ground is not None:
        # Before what follows from it: drones in each other's places meet in their plan as well.
        delivery = brief.mission.delivery
        tied = delivery is None or delivery.pick_up != "hook"
        _check_places(brief.system, plan, plan.ground, limits, tied=tied)
    forced += _forced(findings(brief, plan), force=force)
    _check_plan(brief.system, plan, limits)
    return forced


def _forced(all_findings: Iterable[Finding], *, force: bool) -> list[Finding]:
    """Findings that would refuse the flight but are overruled.

    Raises:
        ConfigError: The first one that is not, or cannot be.
    """
    refusing = [finding for finding in all_findings if finding.refuses]
    for finding in refusing:
        if not (force and finding.can_be_forced):
            raise ConfigError(finding.text)
    return refusing


def _check_plan(system: RigSystem, plan: FlightPlan, limits: ArmingLimits) -> None:
    """Refuse distances and speeds that real drones must not fly."""
    closest = closest_in_plan(system, plan)
    if closest is not None and closest.tips_m < limits.tips_apart_m:
        i, j = closest.pair
        stage = plan.stage_at(round(closest.time_s * plan.rate_hz))
        raise ConfigError(
            f"drone_{i} and drone_{j}: the plan brings their rotor tips within "
            f"{closest.tips_m:.2f} m in stage {stage} (centres {closest.centres_m:.2f} m); at "
            f"least {limits.tips_apart_m:g} m is allowed (tips_apart_m)"
        )
    _check_speeds(plan, limits.setpoint_speed_m_s)


def _check_places(
    system: RigSystem, plan: FlightPlan, ground: GroundSpot, limits: ArmingLimits, *, tied: bool
) -> None:
    """Refuse drones beyond their cables, or in another order than the formation's.

    `tied`: whether the cables join load and drones at the start.
    Their cables would cross. The order is right where no other one has shorter ways into the
    formation (squares), or where a drone is beyond its cable in that one as well.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    places = _first_formation(plan)[:, :2]
    standing = ground.drone_position_enu_m
    apart_m = np.linalg.norm(standing[:, None, :2] - places, axis=2)
    drones, nearest = linear_sum_assignment(apart_m**2)
    own_sum = np.sum(apart_m.diagonal() ** 2)
    beyond = _beyond_reach(system, ground, limits) if tied else ""
    exchanged = replace(ground, drone_position_enu_m=standing[np.argsort(nearest)])
    if beyond and _beyond_reach(system, exchanged, limits):
        raise ConfigError(beyond)
    if np.sum(apart_m[drones, nearest] ** 2) >= own_sum * (1.0 - 1e-6):
        return
    ways = ", ".join(
        f"drone_{i + 1} would fly to that of drone_{j + 1} ({apart_m[i, j]:.2f} m; "
        f"{apart_m[i, i]:.2f} m to its own)"
        for i, j in zip(drones, nearest, strict=True)
        if i != j
    )
    raise ConfigError(
        f"drones stand in each other's places: by the shortest ways {ways}; exchange them with "
        "their cables, or their names in the motion capture (rigid_bodies)"
    )


def _first_formation(plan: FlightPlan) -> Array:
    """Places of the drones when the formation stands for the first time, (n, 3)."""
    formed = np.flatnonzero(plan.stage == plan.stage_names.index("form_up"))
    return plan.drone_position_enu_m[formed[-1]]


def _beyond_reach(system: RigSystem, ground: GroundSpot, limits: ArmingLimits) -> str:
    """Say which drone stands farther from the load's attachment than its cable is long, or ""."""
    places = {"load": ground.load_position_enu_m}
    names = [f"drone_{i + 1}" for i in range(system.n_drones)]
    places.update(zip(names, ground.drone_position_enu_m, strict=True))
    for k, cable in enumerate(system.cables):
        at_load, at_drone = sorted(system.ends(k), key=lambda end: end.body != "load")
        if at_load.body != "load" or at_drone.body not in names:
            continue  # no drone hangs on it
        hook = np.array([at_load.point_m])
        (place,), _ = drone_poses(places["load"], ground.load_yaw_rad, hook, np.zeros(1))
        far_m = float(np.linalg.norm(places[at_drone.body] - place))
        reach_m = cable.length_m + float(np.linalg.norm(at_drone.point_m))
        if far_m > reach_m + limits.reach_margin_m:
            return (
                f"{at_drone.body} stands {far_m:.2f} m from its attachment on the load; its cable "
                f"reaches {reach_m:.2f} m (reach_margin_m {limits.reach_margin_m:g})"
            )
    return ""


def _check_speeds(plan: FlightPlan, largest_m_s: float) -> None:
    """Refuse set-points of a drone that move too fast."""
    velocity = np.diff(plan.drone_position_enu_m, axis=0) * plan.rate_hz
    begins = np.diff(plan.stage) != 0
    shaped = [k for k, name in enumerate(plan.stage_names) if name in SHAPED_BY_PX4]
    velocity[begins & np.isin(plan.stage[1:], shaped), :, 2] = 0.0
    speed = np.linalg.norm(velocity, axis=2)
    if not speed.size:
        return
    row, drone = np.unravel_index(speed.argmax(), speed.shape)
    if speed[row, drone] > largest_m_s:
        raise ConfigError(
            f"drone_{drone + 1}: its set-point moves at {speed[row, drone]:.2f} m/s in stage "
            f"{plan.stage_at(int(row) + 1)}; {largest_m_s:g} m/s is allowed (setpoint_speed_m_s)"
        )
