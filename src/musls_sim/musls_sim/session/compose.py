"""Composes the components of a simulation from its scenario; the one place that does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from musls_control.autopilot import Autopilot, NoAutopilot
from musls_control.brief.findings import refuse_or_warn, refuse_stages
from musls_control.brief.flown_by import contingency_of
from musls_control.controllers import Controller
from musls_control.guard import Guard
from musls_control.mission.delivery import Outlet
from musls_control.mission.guidance import OFFBOARD, KnownState, guide
from musls_control.mission.plan import (
    FlightPlan,
    hold_plan,
)
from musls_description.config.errors import ConfigError
from musls_description.hanging.equilibrium import slung_state
from musls_description.numerics.rotations import from_matrix, from_rotation_vector, matrix, yaw_of
from musls_description.system.slung_system import extended_load, formation_of, slung_system
from musls_sim.autopilots import AutopilotSetup
from musls_sim.imperfections import weakened
from musls_sim.plants import PLANTS
from musls_sim.plants.elastic.cables.line import line_of
from musls_sim.plants.interface import Plant, PlantSetup
from musls_sim.plants.trim import turn_rotors
from musls_sim.scenario.events import CaptureLie, check_hooks
from musls_sim.scenario.scenario import AUTOPILOTS, Scenario
from musls_sim.sensors.estimation import Estimator, MotionCapture, SensedState, Truth
from musls_sim.session.event_queue import check_triggers
from musls_sim.session.guidance import Guidance, MissionGuidance
from musls_sim.session.load_estimation import LoadEstimation
from musls_sim.session.loop import Observer
from musls_sim.session.rigs import is_formed, rig_plan, rig_start
from musls_sim.specs.estimation import TruthSpec
from musls_sim.specs.physics import BodyState, CableStart, StartSpec
from musls_sim.wind import Wind

MakeAutopilot = Callable[[AutopilotSetup], Autopilot]


@dataclass(frozen=True)
class Components:
    """Components of a session.

    Attributes:
        load_estimation: Estimates the load without seeing it, None where it is seen.
        sensed: The plant's state as the sensors find it, None where they find the truth.
        controller: Controller of the load; None for the formation's set-points alone.
    """

    plant: Plant
    plan: FlightPlan
    autopilot: Autopilot
    estimator: Estimator
    load_estimation: LoadEstimation | None
    wind: Wind
    sensed: SensedState | None
    jitter: np.random.Generator
    scenario: Scenario
    controller: Controller | None


def compose(
    scenario: Scenario,
    logs: Path,
    *,
    force: bool = False,
    make_autopilot: MakeAutopilot | None = None,
    make_controller: Callable[[], Controller | None] = lambda: None,
) -> Components:
    """Check a scenario and build everything.

    What is refused comes in the order in which the verdict tells it: how the system hangs, what
    makes no plant, the plan, then events and controller.
    """
    refuse_or_warn(scenario.brief, force=force)
    plant = build_plant(scenario)
    plan = _plan(scenario, plant)
    refuse_or_warn(scenario.brief, force=force, plan=plan)
    check_triggers(scenario.events, plan.stage_names)
    check_hooks(scenario.events, len(scenario.system.cables))
    controller = make_controller()
    gusts, mocap, sensors, jitter = streams(scenario.seed)
    sensed = SensedState.of(plant.state, scenario.imperfections)
    state = plant.state if sensed is None else sensed.state
    make = make_autopilot or AUTOPILOTS[scenario.autopilot.kind]
    autopilot: Autopilot = NoAutopilot()
    if scenario.system.drones:
        autopilot = make(AutopilotSetup(scenario, plant.state, logs, sensors, plant))
    estimation = scenario.estimation
    if autopilot.has_sensors:  # of its own: it is told the truth
        estimator: Estimator = Truth(state, mocap, 0.0)
    elif isinstance(estimation, TruthSpec):
        estimator = Truth(state, mocap, estimation.noise)
    else:
        lies = any(isinstance(event, CaptureLie) for event in scenario.events)
        estimator = capture = MotionCapture(
            estimation,
            state,
            plant.period_s,
            scenario.physics.gravity_m_s2,
            mocap,
            with_load=(
                controller is not None
                or scenario.start.kind == "ground"
                or scenario.contingency is not None
                or lies
            ),
        )
        if lies:  # hooks of a delivery close and open: cables do not tell where drones can be
            capture.judge_samples(scenario.system, tied=scenario.mission.kind != "delivery")
    wind = Wind(scenario.wind, plant.period_s, gusts)
    (load_noise,) = mocap.spawn(1)
    load_estimation = LoadEstimation.of(
        scenario, plant.state, estimator.estimate, plant.period_s, load_noise
    )
    return Components(
        plant,
        plan,
        autopilot,
        estimator,
        load_estimation,
        wind,
        sensed,
        jitter,
        scenario,
        controller,
    )


def streams(seed: int) -> list[np.random.Generator]:
    """Sources of noise of wind, motion capture, sensors of real autopilots, and set-points.

    What one of them draws does not change what another one gets.
    """
    return np.random.default_rng(seed).spawn(4)


RIG_MODELS = ("elastic", "massless", "rigid_links")
"""Cable models that rigs fly with."""


def _check_start(scenario: Scenario) -> None:
    """Refuse a start that its mission or its cables do not allow."""
    mission = scenario.mission
    is_rig = scenario.cable_model in RIG_MODELS and scenario.system.formation is None
    if scenario.start.kind == "equilibrium" and scenario.cable_model != "elastic" and not is_rig:
        raise ConfigError(
            "start.kind = equilibrium: it is of cable_model = elastic, must be ground, air or "
            f"state with {scenario.cable_model}"
        )
    if mission.duration_s is not None:
        if scenario.start.kind in ("ground", "air"):
            raise ConfigError(
                f"start.kind = {scenario.start.kind}: mission.duration_s needs start.kind: state "
                "or equilibrium"
            )
        return
    if scenario.start.kind not in ("ground", "air"):
        return
    if scenario.hanging is None and not (is_formed(scenario) and scenario.system.drones):
        raise ConfigError(
            f"start.kind = {scenario.start.kind}: only a load that drones carry in formation "
            "(mission.stages) and rigs with drones start so; choose start: state"
            + (" or equilibrium" if scenario.cable_model == "elastic" else "")
        )


def build_plant(scenario: Scenario) -> Plant:
    """Build the physics of a scenario."""
    if scenario.cable_model not in RIG_MODELS:
        slung_system(scenario.system, f"cable_model = {scenario.cable_model}")
    scenario.rig.check(scenario.system)
    _check_start(scenario)
    if scenario.physics.engine != "embedded" and scenario.cable_model != "rigid_links":
        raise ConfigError(
            f"physics.engine = {scenario.physics.engine}: it has rigid links only, not "
            f"cable_model = {scenario.cable_model}"
        )
    if scenario.cable_model not in ("rigid_links", "elastic"):
        if set(scenario.physics.contact) != {"load", "drones"}:
            raise ConfigError(
                f"physics.contact = {', '.join(scenario.physics.contact)}: must be load, drones "
                f"with cable_model = {scenario.cable_model}; choose rigid_links or elastic"
            )
    else:
        extended_load(scenario.system, f"cable_model = {scenario.cable_model}")
    system = weakened(scenario.system, scenario.imperfections)
    if is_formed(scenario):
        system, start = rig_start(scenario, system)
    else:
        start = oriented(scenario)
    setup = PlantSetup(
        system,
        start,
        scenario.physics,
        scenario.hanging,
        snaps_taut=any(stage.snaps_taut for stage in scenario.mission.stages),
        rig=scenario.rig,
        ground_height_enu_m=scenario.world.level_ground_m,
        surfaces=scenario.world.surfaces,
    )
    if setup.start.swing_deg:
        setup = replace(setup, start=swung_out(setup, scenario.cable_model))
    plant = PLANTS[scenario.cable_model](setup)
    if setup.start.kind == "state":
        turn_rotors(plant, setup)
    return plant


def oriented(scenario: Scenario) -> StartSpec:
    """The start; bodies of a state whose attitude is not given have that of a start in the air."""
    start = scenario.start
    hanging = scenario.hanging
    if start.kind != "state" or hanging is None or hanging.refusal is not None:
        return start
    rest = hanging.on_massless_cables if scenario.cable_model == "massless" else hanging.rest
    load_wxyz, *drones_wxyz = rest.bodies[1].tolist()

    def turned(body: BodyState, wxyz: list[float]) -> BodyState:
        w, x, y, z = wxyz
        return body if body.orientation_wxyz else replace(body, orientation_wxyz=(w, x, y, z))

    load = start.load
    drones = start.drones or ()
    if len(drones) == len(drones_wxyz):  # a wrong number is refused with the plant
        drones = tuple(turned(*pair) for pair in zip(drones, drones_wxyz, strict=True))
    return replace(start, load=load and turned(load, load_wxyz), drones=drones)


def swung_out(setup: PlantSetup, cable_model: str) -> StartSpec:
    """State in which load, cables and places of the drones are turned out of rest as one.

    About the middle of the drones, which stay as upright as they hang. Elastic cables are stretched
    as by the load at that angle.
    """
    if cable_model == "rigid_rods":
        raise ConfigError("start.swing_deg: rods do not swing, must be 0 with rigid_rods")
    start = setup.start
    hanging = setup.hanging
    assert hanging is not None  # such a flight begins in formation
    rest = hanging.on_massless_cables if cable_model == "massless" else hanging.rest
    system = formation_of(setup.system, "start.swing_deg")
    places, quaternions = rest.bodies
    attitudes = matrix(quaternions)
    swing, heading = np.radians([start.swing_deg, start.heading_deg])
    turn = matrix(from_rotation_vector(swing * np.array([np.sin(heading), -np.cos(heading), 0.0])))
    own = [[np.array(end.point_m) for end in system.ends(i)] for i in range(system.n_drones)]
    anchors = places[0] + np.array([attitudes[0] @ anchor for anchor, _ in own])
    points = np.array([hook for _, hook in own])
    hooks = places[1:] + np.einsum("nij,nj->ni", attitudes[1:], points)
    if cable_model == "elastic":
        for i, cable in enumerate(system.cables):
            strain = line_of(cable).strain(rest.load_end_tension_n[i] * np.cos(swing))
            along = hooks[i] - anchors[i]
            hooks[i] = anchors[i] + (1.0 + strain) * cable.length_m * along / np.linalg.norm(along)
    middle = hooks.mean(axis=0)
    hooks = middle + (hooks - middle) @ turn.T
    load = middle + turn @ (places[0] - middle), turn @ attitudes[0]
    if cable_model == "rigid_links":  # a cable that does not twist turns its drone
        drone_poses = hooks - np.einsum("nij,nj->ni", attitudes[1:], points), attitudes[1:]
        attitudes[1:] = slung_state(system, *load, *drone_poses, hanging.gravity_m_s2)[1]
    centres = hooks - np.einsum("nij,nj->ni", attitudes[1:], points)
    poses = [load, *zip(centres, attitudes[1:], strict=True)]
    first, *drones = (
        BodyState(position_enu_m=tuple(place), orientation_wxyz=tuple(from_matrix(attitude)))
        for place, attitude in poses
    )
    cables = CableStart(shape="straight") if cable_model == "elastic" else None
    return StartSpec(kind="state", load=first, drones=tuple(drones), cables=cables)


def flight_plan(scenario: Scenario) -> FlightPlan:
    """The mission's set-points without a flight."""
    return _plan(scenario, build_plant(scenario))


def mission_guidance(components: Components, observers: Sequence[Observer]) -> Guidance:
    """Make the guidance that flies the mission's plan."""
    scenario = components.scenario
    out = Outlet()
    estimator = components.estimator
    state = KnownState.always(estimator.estimate, components.plant.state.rotor_speed_rad_s)
    guard = None
    if isinstance(estimator, MotionCapture) and estimator.relay is not None:
        guard = Guard()
        state.doubts = estimator.relay.judge.doubts
        state.heard_s = estimator.relay.used_s
        state.heard_s[OFFBOARD] = np.inf
    flight = guide(
        components.plan,
        scenario.mission,
        scenario.formation,
        scenario.system,
        scenario.physics.gravity_m_s2,
        state,
        out,
        guard=guard,
        contingency=contingency_of(scenario.brief),
    )
    period_s = components.plant.period_s
    return MissionGuidance(flight, components.autopilot, observers, period_s, out)


def _plan(scenario: Scenario, plant: Plant) -> FlightPlan:
    mission = scenario.mission
    n = scenario.system.n_drones
    state = plant.state
    yaws = yaw_of(state.orientation_wxyz)
    load = np.append(state.position_enu_m[0], yaws[0])
    refuse_stages(scenario.brief)
    if not n and mission.duration_s is None:
        raise ConfigError(
            f"mission: system {scenario.system.name} has no drones that could fly it; choose "
            "mission: {duration_s: ...}"
        )
    if mission.duration_s is not None:
        return hold_plan(mission, load, state.position_enu_m[1:], yaws[1:])
    if scenario.hanging is None:
        return rig_plan(scenario, plant)
    return scenario.brief.plan_from(load[:3], 0.0, state.position_enu_m[1:].copy())
