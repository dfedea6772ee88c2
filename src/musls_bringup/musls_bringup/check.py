"""A scenario before it is flown: whether it can be flown, its phases and its set-points."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording, stages_from_changes
from musls_analysis.view.scene import Subject
from musls_control.formation import drone_poses
from musls_control.mission.plan import FlightPlan
from musls_description.errors import ConfigError
from musls_description.rotations import from_yaw
from musls_description.system import formation_of
from musls_sim.contingency.reallocation import Reallocation, reallocate
from musls_sim.preflight.checks import check_hover, hover_in_formation
from musls_sim.preflight.feasibility import Feasibility, assess
from musls_sim.preflight.separation import check_separation, closest_in_plan
from musls_sim.scenario.scenario import LEAST_DRONES, Scenario
from musls_sim.session.compose import Components, flight_plan
from musls_sim.session.session import Session

__all__ = ["as_data", "check", "draw", "draw_losses", "loss_sentence", "losses"]


def check(scenario: Scenario) -> Feasibility:
    """Judge whether a scenario can be flown.

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
    """One line about the loss of a drone."""
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
    """Write the figure: thrust margin over cone angle and load mass."""
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
    """Write the figure: where the drones go when one is lost, from above, with thrust margins."""
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


# ---------- Phases and set-points

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Phase:
    """One phase of a plan, named as the phase or stage.

    Attributes:
        first: Set-point of the load at its begin: x, y, z [m], yaw [rad], (4,).
        last: The same at its end.
        speed_m_s: Largest speed of the load's set-point from row to row.
    """

    name: str
    start_s: float
    duration_s: float
    first: Array
    last: Array
    speed_m_s: float


def prepare(scenario: Scenario, *, force: bool = False) -> Components:
    """Make everything that a flight needs, and check it, without flying.

    A real PX4 is not started.

    Raises:
        ConfigError: It cannot be flown.
    """
    autopilot = scenario.autopilot
    if autopilot.kind != "builtin":
        scenario = replace(scenario, autopilot=replace(autopilot, kind="builtin"))
    with Session(scenario, force=force) as session:
        return session.parts


def phases(plan: FlightPlan) -> list[Phase]:
    """Phases of a plan in their order."""
    found = []
    cuts = np.flatnonzero(np.diff(plan.stage)) + 1
    for rows in np.split(np.arange(len(plan.stage)), cuts):
        pose = plan.load_pose[rows]
        ahead = plan.load_pose[rows[0] : rows[-1] + 2, :3]
        steps = np.linalg.norm(np.diff(ahead, axis=0), axis=1) * plan.rate_hz
        found.append(
            Phase(
                plan.stage_names[plan.stage[rows[0]]],
                float(rows[0] / plan.rate_hz),
                float(len(rows) / plan.rate_hz),
                pose[0],
                plan.load_pose[min(rows[-1] + 1, len(plan.load_pose) - 1)],
                float(steps.max(initial=0.0)),
            )
        )
    return found


def planned(scenario: Scenario, parts: Components) -> Subject:
    """The set-points as if they had been flown, to be looked at."""
    plan = parts.plan
    time_s = np.arange(len(plan.stage)) / plan.rate_hz
    bodies = {}
    load = scenario.system.load
    if load is not None:
        place = plan.load_pose[:, :3].copy()
        standing = -load.collision.bottom_m
        if scenario.start.kind == "ground":
            place[:, 2] = np.maximum(place[:, 2], standing)
        bodies[LOAD] = PoseTrack(time_s, place, plan.load_orientation_wxyz)
    for i in range(scenario.system.n_drones):
        places, turns = plan.drone_position_enu_m[:, i], from_yaw(plan.drone_yaw_rad[:, i])
        bodies[f"drone_{i + 1}"] = PoseTrack(time_s, places, turns)
    for i, anchor in enumerate(scenario.system.anchors):
        place = np.tile(anchor.position_enu_m, (len(time_s), 1))
        turned = np.tile(anchor.orientation_wxyz, (len(time_s), 1))
        bodies[f"anchor_{i + 1}"] = PoseTrack(time_s, place, turned)
    names = [plan.stage_names[k] for k in plan.stage]
    stages = stages_from_changes(time_s.tolist(), names, 0.0, float(time_s[-1]))
    setpoints = {name: track for name, track in bodies.items() if not name.startswith("anchor")}
    recording = Recording(bodies, setpoints, stages=stages, source=f"plan of {scenario.name}")
    return Subject(recording, scenario.system, scenario.name)
