"""Composes the parts of a simulation from its scenario; the one place that does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import Autopilot, NoAutopilot
from musls_control.mission.delivery import Delivery, compile_delivery
from musls_control.mission.plan import (
    FlightPlan,
    GroundSpot,
    compile_air_plan,
    compile_plan,
    hold_plan,
)
from musls_description.errors import ConfigError
from musls_description.rotations import yaw_of
from musls_description.system import extended_load, slung_system
from musls_sim.autopilots import AutopilotSetup
from musls_sim.plants import PLANTS
from musls_sim.plants.interface import Plant, PlantSetup, PlantState
from musls_sim.preflight.checks import Hover, check_hover, hover_in_formation
from musls_sim.preflight.separation import check_separation
from musls_sim.scenario.events import check_hooks
from musls_sim.scenario.imperfections import weakened
from musls_sim.scenario.physics import Wind
from musls_sim.scenario.scenario import AUTOPILOTS, Scenario
from musls_sim.scenario.sensors import TruthSpec
from musls_sim.sensors.estimation import Estimator, MotionCapture, SensedState, Truth
from musls_sim.session.delivery import DeliveryGuidance
from musls_sim.session.event_queue import check_order, check_stages
from musls_sim.session.guidance import Guidance, MissionGuidance
from musls_sim.session.loop import Observer

Array = NDArray[np.float64]

MakeAutopilot = Callable[[AutopilotSetup], Autopilot]


@dataclass(frozen=True)
class Components:
    """What a session is made of.

    Attributes:
        hover: How the system hangs in formation; None where no formation is flown.
        sensed: The plant's state as the sensors find it, None where they find the truth.
    """

    hover: Hover | None
    plant: Plant
    plan: FlightPlan
    autopilot: Autopilot
    estimator: Estimator
    wind: Wind
    sensed: SensedState | None
    jitter: np.random.Generator
    scenario: Scenario


def compose(
    scenario: Scenario,
    logs: Path,
    *,
    force: bool = False,
    make_autopilot: MakeAutopilot | None = None,
    with_load: bool = False,
) -> Components:
    """Check a scenario and build everything.

    Raises:
        ConfigError: The scenario cannot work.
        Px4Error: A real PX4 is asked for and there is none.
    """
    if scenario.cable_model != "elastic":
        slung_system(scenario.system, f"cable_model = {scenario.cable_model}")
    scenario.rig.check(scenario.system)
    hover = _hover(scenario, force=force)
    plant = build_plant(scenario, hover)
    plan = _plan(scenario, plant.state)
    check_stages(scenario.events, plan.stage_names)
    check_order(scenario.events)
    check_hooks(scenario.events, len(scenario.system.cables))
    check_separation(scenario.system, plan, scenario.limits)
    # One source of noise a part: what one part draws does not change what another one gets.
    gusts, mocap, sensors, jitter = np.random.default_rng(scenario.seed).spawn(4)
    sensed = SensedState.of(plant.state, scenario.imperfections)
    known = plant.state if sensed is None else sensed.state
    make = make_autopilot or AUTOPILOTS[scenario.autopilot.kind]
    autopilot: Autopilot = NoAutopilot()
    if scenario.system.drones:
        autopilot = make(AutopilotSetup(scenario, hover, plant.state, logs, sensors, plant))
    return Components(
        hover,
        plant,
        plan,
        autopilot,
        _estimator(
            scenario,
            known,
            plant.period_s,
            autopilot,
            mocap,
            with_load or scenario.contingency is not None,
        ),
        Wind(scenario.wind, plant.period_s, gusts),
        sensed,
        jitter,
        scenario,
    )


def _hover(scenario: Scenario, *, force: bool) -> Hover | None:
    """How a formation hangs; None for what nothing is asked of but to stay."""
    mission = scenario.mission
    if mission.duration_s is not None:
        if scenario.start.kind in ("ground", "air"):
            raise ConfigError(
                f"start.kind = {scenario.start.kind}: mission.duration_s needs start.kind: state "
                "or equilibrium"
            )
        return None
    formation = scenario.system.formation
    if formation is None:
        slung_system(scenario.system, "mission.stages, instead of mission.duration_s")
    hover = hover_in_formation(scenario, mission.stages[0].pose(np.zeros(1))[0])
    if scenario.start.kind in ("ground", "air"):
        check_hover(scenario, hover, force=force)
    return hover


def build_plant(scenario: Scenario, hover: Hover | None) -> Plant:
    """Build the physics of a scenario.

    Raises:
        ConfigError: The cable model cannot have this system, start or engine.
    """
    if scenario.physics.engine != "embedded" and scenario.cable_model != "rigid_links":
        raise ConfigError(
            f"physics.engine = {scenario.physics.engine}: Gazebo has rigid links only, not "
            f"cable_model = {scenario.cable_model}"
        )
    if scenario.cable_model in ("rigid_links", "elastic"):
        extended_load(scenario.system, f"cable_model = {scenario.cable_model}")
    return PLANTS[scenario.cable_model](
        PlantSetup(
            weakened(scenario.system, scenario.imperfections),
            scenario.start,
            scenario.physics,
            None if hover is None else hover.equilibrium,
            snaps_taut=any(stage.snaps_taut for stage in scenario.mission.stages),
            rig=scenario.rig,
        )
    )


def flight_plan(scenario: Scenario, hover: Hover) -> FlightPlan:
    """The mission's set-points without a flight.

    Raises:
        ConfigError: The cable model cannot have this system or start, or the mission does not fit.
    """
    return _plan(scenario, build_plant(scenario, hover).state)


def mission_guidance(parts: Components, observers: Sequence[Observer]) -> Guidance:
    """Make the guidance that flies the mission's plan."""
    common = parts.plan, parts.autopilot, observers, parts.plant.period_s
    scenario = parts.scenario
    if not flies_delivery(scenario):
        return MissionGuidance(*common)
    state = parts.plant.state
    place = state.position_enu_m
    make_watch = partial(
        Delivery,
        scenario.mission,
        scenario.formation,
        slung_system(scenario.system, "mission.kind = delivery"),
        parts.plan,
        GroundSpot(place[0].copy(), 0.0, place[1:].copy()),
        estimate=parts.estimator.estimate,
        rotor_speed_rad_s=state.rotor_speed_rad_s,
        gravity_m_s2=scenario.physics.gravity_m_s2,
    )
    return DeliveryGuidance(*common, make_watch)


def _plan(scenario: Scenario, state: PlantState) -> FlightPlan:
    mission, n = scenario.mission, scenario.system.n_drones
    if mission.duration_s is not None:
        yaws = yaw_of(state.orientation_wxyz)
        load = np.append(state.position_enu_m[0], yaws[0])
        return hold_plan(mission, load, state.position_enu_m[1:], yaws[1:])
    if scenario.start.kind != "ground":
        first = mission.stages[0].pose(np.zeros(1))[0]
        return compile_air_plan(mission, scenario.formation, first, n)
    spot = GroundSpot(state.position_enu_m[0].copy(), 0.0, state.position_enu_m[1:].copy())
    if flies_delivery(scenario):
        return compile_delivery(mission, scenario.formation, spot)
    return compile_plan(mission, scenario.formation, spot)


def flies_delivery(scenario: Scenario) -> bool:
    """Whether a load is picked up and left; from a start in the air only its way is flown.

    Raises:
        ConfigError: A controller is to fly it.
    """
    if scenario.mission.kind != "delivery" or scenario.start.kind != "ground":
        return False
    if scenario.controller.kind != "formation":
        raise ConfigError(
            "mission.kind = delivery: is flown by the formation, not by controller.kind = "
            f"{scenario.controller.kind}"
        )
    return True


def _estimator(
    scenario: Scenario,
    known: PlantState,
    period_s: float,
    autopilot: Autopilot,
    generator: np.random.Generator,
    with_load: bool,
) -> Estimator:
    """Estimator of the scenario; an autopilot with sensors of its own is told the truth."""
    if autopilot.has_sensors:
        return Truth(known)
    if isinstance(scenario.estimation, TruthSpec):
        return Truth(known, scenario.estimation.noise, generator)
    return MotionCapture(
        scenario.estimation,
        known,
        period_s,
        scenario.physics.gravity_m_s2,
        generator,
        with_load=with_load,
    )
