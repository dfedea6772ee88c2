"""What `musls check` says: table, JSON and figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from musls_control.formation import drone_poses
from musls_description.errors import ConfigError
from musls_description.slung import formation_of
from musls_sim.contingency.reallocation import Reallocation, reallocate
from musls_sim.preflight.checks import check_hover, hover_in_formation
from musls_sim.preflight.feasibility import Feasibility, assess
from musls_sim.preflight.separation import check_separation, closest_in_plan
from musls_sim.scenario.scenario import LEAST_DRONES, Scenario
from musls_sim.session.compose import flight_plan

__all__ = ["as_data", "check", "draw", "draw_losses", "loss_sentence", "losses"]


def check(scenario: Scenario) -> Feasibility:
    """Judge whether a scenario can be flown.

    Args:
        scenario: What is to be flown.

    Raises:
        ConfigError: The scenario makes no sense: the cables do not reach, the cable model does not
            have this system, ...
    """
    if scenario.mission.duration_s is not None:
        raise ConfigError(
            f"{scenario.name}: mission.duration_s: there is nothing to check, no mission is flown"
        )
    hover = hover_in_formation(scenario, scenario.mission.stages[0].pose(np.zeros(1))[0])
    problems = []
    if scenario.start.kind != "state":
        try:
            check_hover(scenario, hover, force=True)
        except ConfigError as error:
            problems.append(str(error))
    plan = flight_plan(scenario, hover)
    try:
        check_separation(scenario.system, plan, scenario.limits)
    except ConfigError as error:
        problems.append(str(error))
    separation = closest_in_plan(scenario.system, plan)
    return assess(scenario, hover, separation, problems=problems)


def losses(scenario: Scenario) -> list[Reallocation | None]:
    """What the loss of each drone would lead to; empty where the scenario does not survive one."""
    spec = scenario.contingency
    if spec is None or scenario.system.n_drones < LEAST_DRONES:
        return []
    numbers = range(1, scenario.system.n_drones + 1)
    hangs = spec.hook == "hold"
    return [reallocate(scenario, [i], [i] if hangs else [], spec) for i in numbers]


def loss_sentence(scenario: Scenario, number: int, found: Reallocation | None) -> str:
    """One line about the loss of a drone.

    Args:
        scenario: With a `contingency`.
        number: Of the drone, from 1.
        found: The formation of the others.
    """
    if found is None:
        return f"without drone_{number}: no formation holds the load, it is set down at once"
    assert scenario.contingency is not None
    goes_on = found.thrust_margin >= scenario.contingency.margin
    then = (
        "goes on" if goes_on and scenario.contingency.then == "continue" else "sets the load down"
    )
    return f"without drone_{number}: thrust margin {found.thrust_margin:.2f}, {then}"


def as_data(
    scenario: Scenario, found: Feasibility, lost: Sequence[Reallocation | None] = ()
) -> dict[str, Any]:
    """Everything that was found, for JSON."""
    moment = found.moment
    return {
        "losses": [
            {
                "drone": i,
                "thrust_margin": None if left is None else left.thrust_margin,
                "load_tilt_deg": None if left is None else left.load_tilt_deg,
                "places_m": None
                if left is None
                else [None if np.isnan(p[0]) else p.tolist() for p in left.offsets_m],
            }
            for i, left in enumerate(lost, start=1)
        ],
        "scenario": scenario.name,
        "can_be_flown": found.can_be_flown,
        "problems": list(found.problems),
        "cautions": list(found.cautions),
        "thrust_margin": found.thrust_margin,
        "weakest_drone": found.weakest,
        "formation": [dataclasses.asdict(m) for m in found.formation],
        "hardest": [dataclasses.asdict(m) for m in found.hardest],
        "moment": None
        if moment is None
        else {
            "stage": moment.stage,
            "number": moment.number,
            "time_s": moment.time_s,
            "velocity_enu_m_s": moment.motion.velocity_enu_m_s.tolist(),
            "acceleration_enu_m_s2": moment.motion.acceleration_enu_m_s2.tolist(),
            "wind_enu_m_s": moment.motion.wind_enu_m_s.tolist(),
        },
        "tilt_limit_deg": found.tilt_limit_deg,
        "ceiling_m": found.ceiling_m,
        "lowest_m": found.lowest_m,
        "separation": None if found.separation is None else dataclasses.asdict(found.separation),
        "flight_s": found.flight_s,
        "first_empty": None
        if found.first_empty is None
        else {"drone": found.first_empty[0], "minutes": found.first_empty[1]},
    }


def draw(scenario: Scenario, found: Feasibility, path: Path) -> None:
    """Write the figure: thrust margin over cone angle and load mass.

    Args:
        scenario: Drones and formation.
        found: The scenario's own point.
        path: PNG.
    """
    from musls_analysis.figures.formation import Carriers, margins_figure
    from musls_analysis.figures.style import save, styled

    system, cone = formation_of(scenario.system, "formation"), scenario.formation
    n = system.n_drones
    places, _ = drone_poses(np.zeros((1, 3)), np.zeros(1), cone.offsets_m(n), cone.azimuths_rad(n))
    attachments = np.array(system.load.cable_attachments_m)[:n]
    along = places[0] - attachments
    tilt = np.arctan2(np.linalg.norm(along[:, :2], axis=1), np.maximum(along[:, 2], 1e-6))
    carriers = Carriers(
        np.array([drone.mass_kg for drone in system.drones]),
        np.array([drone.max_thrust_n for drone in system.drones]),
        system.carried_mass_kg - system.load.mass_kg,
        scenario.physics.gravity_m_s2,
    )
    with styled():
        save(margins_figure(carriers, float(np.degrees(tilt.mean())), system.load.mass_kg), path)


def draw_losses(scenario: Scenario, lost: Sequence[Reallocation | None], path: Path) -> None:
    """Write the figure: where the drones go when one is lost, from above, with thrust margins.

    Args:
        scenario: Formation.
        lost: From `losses`.
        path: PNG.
    """
    from musls_analysis.figures.formation import losses_figure
    from musls_analysis.figures.style import save, styled

    system = formation_of(scenario.system, "formation")
    places = scenario.formation.offsets_m(system.n_drones)
    found = [
        None
        if left is None
        else (left.offsets_m, np.array([margin.thrust_margin for margin in left.margins]))
        for left in lost
    ]
    with styled():
        anchors = np.array(system.load.cable_attachments_m)[: system.n_drones]
        save(losses_figure(places, anchors, found), path)
