"""The plan of a flight, to be looked at: its phases, and its set-points as if they were flown."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording, stages_from_changes
from musls_analysis.scene import Subject
from musls_control.mission.plan import FlightPlan
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.compose import Components
from musls_sim.session.session import Session


@dataclass(frozen=True)
class PlannedPhase:
    """One phase of a plan, named as the phase or stage.

    Attributes:
        first: Set-point of the load at its begin: x, y, z [m], yaw [rad], (4,).
        last: Set-point of the load at its end.
        speed_m_s: Largest speed of the load's set-point from row to row.
    """

    name: str
    start_s: float
    duration_s: float
    first: Array
    last: Array
    speed_m_s: float


def prepare(scenario: Scenario, *, force: bool = False) -> Components:
    """Make and check everything that a flight needs, without flying or starting a real PX4."""
    autopilot = scenario.autopilot
    if autopilot.kind != "builtin":
        scenario = replace(scenario, autopilot=replace(autopilot, kind="builtin"))
    with Session(scenario, force=force) as session:
        return session.components


def phases(plan: FlightPlan) -> list[PlannedPhase]:
    """Phases of a plan in their order."""
    result = []
    cuts = np.flatnonzero(np.diff(plan.stage)) + 1
    for rows in np.split(np.arange(len(plan.stage)), cuts):
        pose = plan.load_pose[rows[0] : rows[-1] + 2]  # to the first row of the next phase
        steps = np.linalg.norm(np.diff(pose[:, :3], axis=0), axis=1) * plan.rate_hz
        name = plan.stage_names[plan.stage[rows[0]]]
        begin = float(rows[0])
        lasts = len(rows)
        result.append(
            PlannedPhase(
                name,
                begin / plan.rate_hz,
                lasts / plan.rate_hz,
                pose[0],
                pose[-1],
                float(steps.max(initial=0.0)),
            )
        )
    return result


def planned(scenario: Scenario, components: Components) -> Subject:
    """The set-points as if they had been flown, to be looked at."""
    plan = components.plan
    time_s = np.arange(len(plan.stage)) / plan.rate_hz
    bodies = {}
    load = scenario.system.load
    if load is not None:
        place = plan.load_pose[:, :3].copy()
        if scenario.start.kind == "ground":
            place[:, 2] = np.maximum(place[:, 2], -load.collision.bottom_m)
        bodies[LOAD] = PoseTrack(time_s, place, plan.load_orientation_wxyz)
    for i in range(scenario.system.n_drones):
        places = plan.drone_position_enu_m[:, i]
        turns = from_yaw(plan.drone_yaw_rad[:, i])
        bodies[f"drone_{i + 1}"] = PoseTrack(time_s, places, turns)
    for i, anchor in enumerate(scenario.system.anchors):
        place = np.tile(anchor.position_enu_m, (len(time_s), 1))
        attitude = np.tile(anchor.orientation_wxyz, (len(time_s), 1))
        bodies[f"anchor_{i + 1}"] = PoseTrack(time_s, place, attitude)
    names = [plan.stage_names[k] for k in plan.stage]
    stages = stages_from_changes(time_s.tolist(), names, 0.0, float(time_s[-1]))
    setpoints = {name: track for name, track in bodies.items() if not name.startswith("anchor")}
    recording = Recording(
        bodies,
        setpoints,
        stages=stages,
        source=f"plan of {scenario.name}",
        obstacles=scenario.world.surfaces,
    )
    return Subject(recording, scenario.system, scenario.name)
