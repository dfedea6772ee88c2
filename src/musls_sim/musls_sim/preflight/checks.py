"""Checks before a flight: do the cables reach, can the rotors lift, is the load off the ground."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from musls_control.formation import drone_poses
from musls_description.errors import ConfigError
from musls_description.slung import formation_of
from musls_description.spawn import HangingEquilibrium, hanging_equilibrium
from musls_sim.physics import STANDARD_GRAVITY_M_S2
from musls_sim.plants.massless.start import freed
from musls_sim.preflight.mission_checks import cautions, check_mission
from musls_sim.scenario import Scenario

MAX_SAG_M = 0.5
"""Distance of the hanging load from its set-point beyond which the formation does not fit."""

MIN_THRUST_MARGIN = 1.1
"""Largest thrust over hover thrust below which a multirotor cannot be controlled any more."""


LARGEST_TURN_RAD = np.radians(5.0)
"""Yaw of the hanging load from its set-point beyond which the formation is named."""


@dataclass(frozen=True)
class Hover:
    """How the system hangs in formation.

    Attributes:
        equilibrium: Configuration, forces and moments.
        thrust_margin: Largest over needed thrust of the drone that works hardest.
        weakest: Number of that drone, from 1.
        sag_m: How much lower the load hangs than its set-point.
        turn_rad: By how much the load is turned from its set-point's yaw.
    """

    equilibrium: HangingEquilibrium
    thrust_margin: float
    weakest: int
    sag_m: float
    turn_rad: float = 0.0


def hover_in_formation(scenario: Scenario, load_pose: np.ndarray) -> Hover:
    """Hang the system below its formation.

    Args:
        scenario: System, formation and gravity.
        load_pose: Set-point of the load: x, y, z [m], yaw [rad], (4,).

    Raises:
        ConfigError: The cables cannot reach from the load to the drones.
    """
    system, cone = formation_of(scenario.system, "formation"), scenario.formation
    n = system.n_drones
    drones, yaws = drone_poses(
        load_pose[None, :3], load_pose[None, 3], cone.offsets_m(n), cone.azimuths_rad(n)
    )
    try:
        equilibrium = hanging_equilibrium(
            freed(system), drones[0], scenario.physics.gravity_m_s2, float(load_pose[3]), yaws[0]
        )
    except ConfigError as error:
        reach = min(c.length_m for c in system.cables)
        raise ConfigError(
            f"formation.radius_m = {cone.radius_m:g}, formation.height_m = {cone.height_m:g}: "
            f"the cables (shortest {reach:g} m) cannot hold the load below the drones; "
            "choose a smaller radius"
            if "stiffness" not in str(error)
            else str(error)
        ) from None
    needed = np.linalg.norm(equilibrium.drone_force_n, axis=1)
    margins = np.array([d.max_thrust_n for d in system.drones]) / needed
    sag = load_pose[2] - equilibrium.configuration.load_position_enu_m[2]
    x, y, _ = equilibrium.configuration.load_rotation[:, 0]
    turn = np.angle(np.exp(1j * (np.arctan2(y, x) - load_pose[3])))
    weakest = int(margins.argmin()) + 1
    return Hover(equilibrium, float(margins.min()), weakest, float(sag), float(turn))


def check_hover(scenario: Scenario, hover: Hover, *, force: bool = False) -> None:
    """Refuse a flight that cannot work.

    Args:
        scenario: What is to be flown.
        hover: How the system hangs in formation.
        force: Fly in spite of too little thrust.

    Raises:
        ConfigError: Too little thrust, a formation that does not fit the cables, a mission that
            cannot be flown, or the load would drag over the ground.

    Warns:
        UserWarning: A very long flight, wind the drones cannot hold against, cables not slack.
    """
    check_mission(scenario)
    if hover.thrust_margin < MIN_THRUST_MARGIN and not force:
        gravity = scenario.physics.gravity_m_s2
        raise ConfigError(
            f"the rotors cannot lift the load: thrust margin {hover.thrust_margin:.2f} (largest "
            f"over hover thrust of drone_{hover.weakest}), at least {MIN_THRUST_MARGIN} is needed"
            f"{'' if gravity == STANDARD_GRAVITY_M_S2 else f' at gravity {gravity:g} m/s2'}; "
            "--force flies anyway"
        )
    if abs(hover.sag_m) > MAX_SAG_M:
        where = "below" if hover.sag_m > 0.0 else "above"
        fitting = scenario.formation.height_m + hover.sag_m
        raise ConfigError(
            f"formation.height_m = {scenario.formation.height_m:g}: the load would hang "
            f"{abs(hover.sag_m):.2f} m {where} its set-point; about {fitting:.2f} fits these cables"
        )
    # Setting the load down on purpose needs a flight from the ground.
    heights = [
        (stage.pose(np.linspace(0.0, stage.duration_s, 200))[:, 2].min(), k)
        for k, stage in enumerate(scenario.mission.stages)
        if not stage.sets_load_down or scenario.start.kind != "ground"
    ]
    _check_ground(scenario, hover, heights)
    for text in [*_turn_caution(scenario, hover), *cautions(scenario)]:
        warnings.warn(text, stacklevel=2)


def _turn_caution(scenario: Scenario, hover: Hover) -> list[str]:
    """Whether the formation turns the load away from the yaw that it is to have."""
    system = formation_of(scenario.system, "formation")
    places = np.array(system.load.cable_attachments_m)[:, :2]
    if system.n_drones == 1 or system.load.point_mass or not places.any():
        return []  # nothing, or only the cables' twist, holds its yaw
    if abs(hover.turn_rad) < LARGEST_TURN_RAD:
        return []
    if scenario.formation.places_m is not None:
        remedy = "turn formation.places_m back by it"
    else:
        fitting = scenario.formation.first_azimuth_rad - hover.turn_rad
        fitting = float(np.angle(np.exp(1j * fitting)))
        remedy = f"formation.first_azimuth_rad = {fitting:.3f} fits its attachments"
    return [
        f"formation: the load will hang turned by {np.degrees(hover.turn_rad):.1f} deg from the "
        f"yaw of its set-point; {remedy}"
    ]


def _check_ground(scenario: Scenario, hover: Hover, heights: list[tuple[float, int]]) -> None:
    """Refuse a load that would drag over the ground."""
    if not heights:
        return
    lowest = min(heights)
    system = formation_of(scenario.system, "formation")
    clearance = lowest[0] - hover.sag_m + system.load.collision.bottom_m
    if clearance < 0.0:
        raise ConfigError(
            f"mission.stages.{lowest[1]}: the load would touch the ground: lowest set-point "
            f"{lowest[0]:g} m, and it hangs {hover.sag_m:.2f} m lower than its set-point in this "
            "formation; raise the stage or formation.height_m"
        )
